//! The lines of a text, of bounded length.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use memchr::{memchr, memrchr};

use super::{Error, Gap, Place, Record};

/// A longer line is not a line of a trace.
const LINE_MAX: u64 = 1 << 20;

/// At most this much text is taken at once, if that much is available.
const CHUNK_MAX: usize = 1 << 14;

/// Returns the lines of a text one by one and counts them.
pub(super) struct Lines<R> {
    input: R,
    /// Whole lines, shared with the records made from them.
    chunk: Arc<[u8]>,
    /// Where the next one begins; after the last line it stays at the end.
    at: usize,
    number: u64,
    done: bool,
}

/// A line without its end.
pub(super) struct Line<'a> {
    pub bytes: &'a [u8],
    /// The chunk of lines that contains it.
    pub chunk: &'a Arc<[u8]>,
    /// Where it ends in the chunk.
    pub end: usize,
    number: u64,
}

impl Line<'_> {
    /// A gap record for this line.
    #[cold]
    pub fn gap(&self, why: String) -> Result<Record, Error> {
        Ok(Record::Gap(Gap { at: Some(Place::Line(self.number)), why }))
    }
}

/// What comes next in a text.
pub(super) enum Next<'a> {
    Line(Line<'a>),
    /// Something that is not a line of a trace.
    Other(Result<Record, Error>),
    End,
}

impl<R: BufRead> Lines<R> {
    pub fn new(input: R) -> Lines<R> {
        Lines { input, chunk: Arc::default(), at: 0, number: 0, done: false }
    }

    /// The place of the last record.
    pub fn place(&self) -> Place {
        Place::Line(self.number)
    }

    #[inline(always)]
    pub fn next(&mut self) -> Next<'_> {
        if self.at == self.chunk.len() {
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return Next::End,
                Err(error) => return Next::Other(self.cut(error)),
            }
        }
        let (start, rest) = (self.at, &self.chunk[self.at..]);
        let len = memchr(b'\n', rest).unwrap_or(rest.len());
        self.at = self.chunk.len().min(start + len + 1);
        self.number += 1;
        if len as u64 >= LINE_MAX {
            return Next::Other(self.too_long());
        }
        let bytes = rest[..len].trim_ascii_end();
        Next::Line(Line { bytes, chunk: &self.chunk, end: start + bytes.len(), number: self.number })
    }

    #[cold]
    fn too_long(&self) -> Result<Record, Error> {
        let why = format!("a line of more than {LINE_MAX} bytes is not part of a trace");
        Ok(Record::Gap(Gap { at: Some(self.place()), why }))
    }

    /// What to return if bytes cannot be read. Lines before them still count.
    #[cold]
    fn cut(&mut self, error: io::Error) -> Result<Record, Error> {
        self.done = true;
        if self.number == 0 {
            return Err(error.into());
        }
        let why = format!("from here on nothing can be read: {error}");
        Ok(Record::Gap(Gap { at: Some(Place::Line(self.number + 1)), why }))
    }

    /// Takes the lines that are complete in the buffer, as most are.
    #[cold]
    fn advance(&mut self) -> io::Result<bool> {
        if self.done {
            return Ok(false);
        }
        let ready = match self.input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => &[],
            ready => ready?,
        };
        let ready = &ready[..ready.len().min(CHUNK_MAX)];
        match memrchr(b'\n', ready) {
            Some(end) => {
                (self.chunk, self.at) = (ready[..=end].into(), 0);
                self.input.consume(end + 1);
                Ok(true)
            }
            None => self.gather(),
        }
    }

    /// Takes one line, or the first part of a line that is too long, skipping the rest.
    fn gather(&mut self) -> io::Result<bool> {
        let mut line = Vec::new();
        let read = (&mut self.input).take(LINE_MAX).read_until(b'\n', &mut line)?;
        if read as u64 == LINE_MAX && line.last() != Some(&b'\n') {
            self.input.skip_until(b'\n')?;
        }
        (self.chunk, self.at) = (line.into(), 0);
        self.done = read == 0;
        Ok(!self.done)
    }
}

/// The start of a line, for messages.
pub(super) fn excerpt(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(100)]).escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// Returns some bytes, and then fails.
    struct Cut(&'static [u8]);

    impl Read for Cut {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                read => Ok(read),
            }
        }
    }

    #[test]
    fn a_cut_is_reported_once_after_the_last_whole_line() {
        for (text, expected) in [
            (&b"a\nb\nhalf a li"[..], &["a", "b", "line 3"][..]),
            (b"a\nb\n", &["a", "b", "line 3"]),
            (b"half a li", &["error"]),
        ] {
            // As much at once as possible, and almost nothing.
            for capacity in [1 << 10, 3] {
                let mut lines = Lines::new(BufReader::with_capacity(capacity, Cut(text)));
                let mut found = Vec::new();
                loop {
                    match lines.next() {
                        Next::Line(line) => found.push(String::from_utf8_lossy(line.bytes).into_owned()),
                        Next::Other(Ok(Record::Gap(gap))) => found.push(gap.at.unwrap().to_string()),
                        Next::Other(_) => found.push("error".to_owned()),
                        Next::End => break,
                    }
                }
                assert_eq!(found, expected, "{capacity} bytes at once");
            }
        }
    }
}
