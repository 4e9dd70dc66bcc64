//! The trace text inside the page that systrace writes.
//!
//! The page is a viewer of some megabytes and contains the text in elements `<script class="trace-data"
//! type="application/text">`: first a list of processes, then the trace, which begins with `# tracer:`.

use std::io::{self, BufRead, Read};

/// Whether a file begins as a page.
pub(super) fn is_page(start: &[u8]) -> bool {
    let begins = |tag: &str| {
        start
            .trim_ascii_start()
            .get(..tag.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(tag.as_bytes()))
    };
    begins("<!doctype html") || begins("<html")
}

/// The text of the trace, from its header to the end of its element.
pub(super) struct Inside<R> {
    page: R,
    line: Vec<u8>,
    /// How much of the line was returned.
    given: usize,
    ended: bool,
}

impl<R: BufRead> Inside<R> {
    /// Skips everything before the trace; `None` if the page contains no trace.
    pub fn find(mut page: R) -> io::Result<Option<Inside<R>>> {
        let (mut line, mut is_data) = (Vec::new(), false);
        loop {
            line.clear();
            if page.read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            let begins = memchr::memmem::rfind(&line, b"class=\"trace-data\"");
            if let Some(at) = begins {
                is_data = true;
                // The first line may directly follow the tag.
                let end = memchr::memchr(b'>', &line[at..]).map_or(line.len(), |end| at + end + 1);
                line.drain(..end);
            }
            if is_data && line.trim_ascii_start().starts_with(b"# tracer:") {
                return Ok(Some(Inside { page, line, given: 0, ended: false }));
            }
            is_data &= !ends(&line);
        }
    }
}

/// Whether an element ends in this line.
fn ends(line: &[u8]) -> bool {
    memchr::memmem::find(line, b"</script>").is_some()
}

impl<R: BufRead> Read for Inside<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.line.len() && !self.ended {
            self.line.clear();
            self.given = 0;
            self.ended = self.page.read_until(b'\n', &mut self.line)? == 0;
            if ends(&self.line) {
                self.ended = true;
                let end = memchr::memmem::find(&self.line, b"</script>").unwrap_or(0);
                self.line.truncate(end);
            }
        }
        let part = buffer.len().min(self.line.len() - self.given);
        buffer[..part].copy_from_slice(&self.line[self.given..][..part]);
        self.given += part;
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(page: &str) -> Option<String> {
        let mut text = String::new();
        Inside::find(page.as_bytes()).unwrap()?.read_to_string(&mut text).unwrap();
        Some(text)
    }

    #[test]
    fn the_trace_is_found_behind_the_viewer() {
        let page = "<!DOCTYPE html>\n<script>x()</script>\n\
                    <script class=\"trace-data\" type=\"application/text\">\nPROCESS DUMP\nroot 1\n</script>\n\
                    <script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\n#\na line\n  </script>\n# more";
        assert!(is_page(page.as_bytes()));
        assert_eq!(inside(page).unwrap(), "# tracer: nop\n#\na line\n  ");
        let behind_the_tag = "<html><script class=\"trace-data\"># tracer: nop\nx</script></html>";
        assert_eq!(inside(behind_the_tag).unwrap(), "# tracer: nop\nx");
    }

    #[test]
    fn a_page_without_a_trace_has_none() {
        assert_eq!(inside("<html>\n# tracer: in the text\n</html>"), None);
    }
}
