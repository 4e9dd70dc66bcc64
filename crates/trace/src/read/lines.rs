//! The lines of a text, of bounded length.

use std::io::{self, BufRead, Read};

use memchr::memchr;

use super::{Error, Gap, Place, Record};

/// A line longer than this is no line of a trace.
const LINE_MAX: u64 = 1 << 20;

/// Gives the lines of a text one by one, and counts them.
pub(super) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    number: u64,
    done: bool,
}

impl<R: BufRead> Lines<R> {
    pub fn new(input: R) -> Lines<R> {
        Lines { input, buffer: Vec::new(), number: 0, done: false }
    }

    /// Where the last record stands.
    pub fn place(&self) -> Place {
        Place::Line(self.number)
    }

    /// The record of the next line that has one; what is wrong with a line makes a gap.
    pub fn find(
        &mut self,
        mut record: impl FnMut(&[u8]) -> Option<Result<Record, String>>,
    ) -> Option<Result<Record, Error>> {
        while !self.done {
            let found = match self.at_hand() {
                Ok(Some((line, taken))) => {
                    let found = record(line);
                    self.input.consume(taken);
                    self.number += 1;
                    found
                }
                Ok(None) => match self.advance() {
                    Ok(true) => self.gathered(&mut record),
                    Ok(false) => {
                        self.done = true;
                        return None;
                    }
                    Err(error) => return Some(self.cut(error)),
                },
                Err(error) => return Some(self.cut(error)),
            };
            match found {
                None => {}
                Some(Ok(record)) => return Some(Ok(record)),
                Some(Err(why)) => return Some(Ok(Record::Gap(Gap { at: Place::Line(self.number), why }))),
            }
        }
        None
    }

    /// What comes of bytes that cannot be had. Lines before them are not in vain.
    #[cold]
    fn cut(&mut self, error: io::Error) -> Result<Record, Error> {
        self.done = true;
        if self.number == 0 {
            return Err(error.into());
        }
        let why = format!("from here on nothing can be read: {error}");
        Ok(Record::Gap(Gap { at: Place::Line(self.number + 1), why }))
    }

    /// The next line, if it stands whole in what was read, as most do, and how many bytes it takes.
    #[inline]
    fn at_hand(&mut self) -> io::Result<Option<(&[u8], usize)>> {
        let ready = match self.input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            ready => ready?,
        };
        let end = memchr(b'\n', ready).filter(|&end| (end as u64) < LINE_MAX - 1);
        Ok(end.map(|end| (ready[..end].trim_ascii_end(), end + 1)))
    }

    /// What is made of a line that was gathered.
    #[cold]
    fn gathered(
        &self,
        record: impl FnOnce(&[u8]) -> Option<Result<Record, String>>,
    ) -> Option<Result<Record, String>> {
        if self.buffer.len() as u64 >= LINE_MAX {
            return Some(Err(format!("a line of more than {LINE_MAX} bytes is not part of a trace")));
        }
        record(self.buffer.trim_ascii_end())
    }

    /// Reads one line, or the first part of one that is too long and passes over its rest.
    fn advance(&mut self) -> io::Result<bool> {
        self.buffer.clear();
        let read = (&mut self.input).take(LINE_MAX).read_until(b'\n', &mut self.buffer)?;
        self.number += u64::from(read > 0);
        if read as u64 == LINE_MAX && self.buffer.last() != Some(&b'\n') {
            self.input.skip_until(b'\n')?;
        }
        Ok(read > 0)
    }
}

/// The beginning of a line, to be shown.
pub(super) fn excerpt(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(100)]).escape_debug().to_string()
}
