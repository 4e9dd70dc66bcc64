//! A page of the kernel's ring buffer: records behind each other, each with its time.
//!
//! ```text
//! | time of the first record | bytes used, losses | record | record | ... | unused |
//!
//! record:  delta (27 bits) and type (5 bits) | payload
//! type     1-28  that many words of payload      0   a word with the length, then payload
//!          29    padding, to be passed over      30  the delta goes on in the next word
//!          31    the whole time, from here on
//! ```
//!
//! Kernel: struct buffer_data_page, kernel/trace/ring_buffer.c; enum ring_buffer_type,
//! include/linux/ring_buffer.h.

use super::Endian;

/// How pages of a file are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub endian: Endian,
    /// Bytes of a page.
    pub page_size: usize,
    /// Bytes of the field that says how many bytes are used.
    pub commit_size: usize,
    /// Where the records begin.
    pub data: usize,
}

impl Layout {
    /// The layout of 64-bit kernels.
    pub const USUAL: Layout = Layout { endian: Endian::Little, page_size: 4096, commit_size: 8, data: 16 };

    /// Parses sizes and offsets from the kernel's `header_page` text.
    pub fn parse(text: &str, endian: Endian, page_size: usize) -> Layout {
        let field = |name: &str, key: &str| -> Option<usize> {
            let line = text.lines().find(|line| line.contains(name))?;
            line.split(';').find_map(|part| part.trim().strip_prefix(key))?.parse().ok()
        };
        Layout {
            endian,
            page_size,
            commit_size: field(" commit;", "size:").unwrap_or(8).clamp(4, 8),
            data: field(" data;", "offset:").unwrap_or(16).clamp(12, 64),
        }
    }
}

/// A page with its head read.
#[derive(Clone, Debug)]
pub(crate) struct Page<'a> {
    endian: Endian,
    data: &'a [u8],
    at: usize,
    time: u64,
    missed: Option<Option<u64>>,
}

/// Events were lost before this page.
const MISSED: u64 = 1 << 31;
/// Their number is stored after the records.
const MISSED_STORED: u64 = 1 << 30;

impl<'a> Page<'a> {
    /// Reads a page's head. `None` if the page is too short for the size it states.
    pub fn new(layout: Layout, page: &'a [u8]) -> Option<Page<'a>> {
        let endian = layout.endian;
        let time = endian.uint_at(page, 0, 8)?;
        let commit = endian.uint_at(page, 8, layout.commit_size)?;
        let used = (commit & 0xfff_ffff) as usize;
        let rest = page.get(layout.data..)?;
        let data = rest.get(..used)?;
        let missed = (commit & MISSED != 0).then(|| {
            let stored = commit & MISSED_STORED != 0;
            endian.uint_at(rest, used, layout.commit_size).filter(|_| stored)
        });
        Some(Page { endian, data, at: 0, time, missed })
    }

    /// Whether events were lost before this page, and how many if the page states it.
    pub fn missed(&self) -> Option<Option<u64>> {
        self.missed
    }

    /// Takes the word at the current place.
    fn word(&mut self) -> Result<u32, Broken> {
        let word = self.endian.uint_at(self.data, self.at, 4).ok_or(Broken)?;
        self.at += 4;
        Ok(word as u32)
    }

    /// The next record and its time.
    fn record(&mut self) -> Result<Option<(u64, &'a [u8])>, Broken> {
        while self.at < self.data.len() {
            let word = self.word()?;
            let (kind, delta) = match self.endian {
                Endian::Little => (word & 31, word >> 5),
                Endian::Big => (word >> 27, word & ((1 << 27) - 1)),
            };
            let delta = u64::from(delta);
            match kind {
                29 => {
                    if delta == 0 {
                        return Ok(None);
                    }
                    let length = self.word()? as usize;
                    self.at = self.at.checked_add(length.saturating_sub(4)).ok_or(Broken)?;
                    self.time = self.time.wrapping_add(delta);
                }
                30 => {
                    let high = u64::from(self.word()?);
                    self.time = self.time.wrapping_add(high << 27 | delta);
                }
                31 => {
                    // The highest five bits do not fit in and stay unchanged.
                    let high = u64::from(self.word()?);
                    self.time = self.time & (31 << 59) | high << 27 | delta;
                }
                kind => {
                    let length = match kind {
                        0 => (self.word()? as usize).checked_sub(4).ok_or(Broken)?,
                        words => 4 * words as usize,
                    };
                    let end = self.at.checked_add(length).ok_or(Broken)?;
                    let record = self.data.get(self.at..end).ok_or(Broken)?;
                    self.at = end.next_multiple_of(4);
                    self.time = self.time.wrapping_add(delta);
                    return Ok(Some((self.time, record)));
                }
            }
        }
        Ok(None)
    }
}

/// The rest of the page is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

impl<'a> Iterator for Page<'a> {
    type Item = Result<(u64, &'a [u8]), Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.record().transpose();
        if !matches!(record, Some(Ok(_))) {
            self.at = self.data.len();
        }
        record
    }
}

/// Fills pages with records.
#[derive(Clone, Debug)]
pub(crate) struct PageWriter {
    page: Vec<u8>,
    time: u64,
}

impl PageWriter {
    /// An empty page, of [`Layout::USUAL`].
    pub fn new() -> PageWriter {
        PageWriter { page: Vec::new(), time: 0 }
    }

    /// Whether the page is empty.
    pub fn is_empty(&self) -> bool {
        self.page.is_empty()
    }

    /// Adds a record. Returns false if the record does not fit, or comes so late that its delta does not; the page must
    /// then be taken first.
    pub fn push(&mut self, time: u64, record: &[u8]) -> bool {
        let layout = Layout::USUAL;
        if self.is_empty() {
            self.page.resize(layout.data, 0);
            self.page[..8].copy_from_slice(&time.to_le_bytes());
            self.time = time;
        }
        let delta = time.saturating_sub(self.time);
        if delta >= 1 << 59 {
            return false;
        }
        let extended = delta >= 1 << 27;
        let words = record.len().div_ceil(4);
        let long = words > 28;
        let length = 4 + 8 * usize::from(extended) + 4 * usize::from(long) + 4 * words;
        if self.page.len() + length > layout.page_size {
            return false;
        }
        if extended {
            self.word((delta as u32) << 5 | 30);
            self.word((delta >> 27) as u32);
        }
        let short_delta = if extended { 0 } else { delta as u32 };
        self.word(short_delta << 5 | if long { 0 } else { words as u32 });
        if long {
            self.word(4 + 4 * words as u32);
        }
        self.page.extend_from_slice(record);
        self.page.resize(self.page.len().next_multiple_of(4), 0);
        self.time = time;
        true
    }

    fn word(&mut self, word: u32) {
        self.page.extend_from_slice(&word.to_le_bytes());
    }

    /// The page, padded; the next one begins empty.
    pub fn take(&mut self) -> Vec<u8> {
        let layout = Layout::USUAL;
        let mut page = std::mem::take(&mut self.page);
        page.resize(page.len().max(layout.data), 0);
        let used = (page.len() - layout.data) as u64;
        page[8..16].copy_from_slice(&used.to_le_bytes());
        page.resize(layout.page_size, 0);
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_keep_their_times_whatever_lies_between_them() {
        let mut writer = PageWriter::new();
        let records: Vec<(u64, Vec<u8>)> = [0, 1, (1 << 27) - 1, 1 << 27, 1 << 40, (1 << 59) - 5]
            .into_iter()
            .scan(7, |time, delta| {
                *time += delta;
                Some((*time, vec![delta as u8 | 1; 4 * (1 + delta as usize % 40)]))
            })
            .collect();
        for (time, record) in &records {
            assert!(writer.push(*time, record));
        }
        assert!(!writer.push(u64::MAX, &[1; 4]), "a delta takes 59 bits");
        let bytes = writer.take();
        assert_eq!(bytes.len(), 4096);
        let page = Page::new(Layout::USUAL, &bytes).unwrap();
        assert_eq!(page.missed(), None);
        let found: Vec<_> = page.map(|r| r.map(|(time, bytes)| (time, bytes.to_vec())).unwrap()).collect();
        assert_eq!(found, records);
        assert!(writer.is_empty());
    }

    #[test]
    fn a_full_page_takes_no_more() {
        let mut writer = PageWriter::new();
        let fits = (0..).take_while(|&time| writer.push(time, &[1; 64])).count();
        assert_eq!(fits, (4096 - 16) / 68);
        assert_eq!(Page::new(Layout::USUAL, &writer.take()).unwrap().count(), fits);
    }

    fn page(commit: u64, words: &[u32]) -> Vec<u8> {
        let mut page = 100u64.to_le_bytes().to_vec();
        page.extend_from_slice(&commit.to_le_bytes());
        words.iter().for_each(|word| page.extend_from_slice(&word.to_le_bytes()));
        page
    }

    #[test]
    fn padding_and_whole_times_are_understood() {
        let words = [5 << 5 | 29, 8, 0, 1 << 5 | 1, 77, 9 << 5 | 31, 2, 3 << 5 | 1, 78, 29, 1 << 5 | 1];
        let bytes = page(44, &words);
        let found: Vec<_> = Page::new(Layout::USUAL, &bytes).unwrap().map(|r| r.unwrap().0).collect();
        assert_eq!(found, [106, (2 << 27) + 9 + 3]);
    }

    #[test]
    fn losses_are_reported_with_their_number_if_it_is_there() {
        let bytes = page(MISSED | MISSED_STORED | 8, &[1, 77, 5, 0]);
        assert_eq!(Page::new(Layout::USUAL, &bytes).unwrap().missed(), Some(Some(5)));
        let bytes = page(MISSED | 8, &[1, 77, 5, 0]);
        assert_eq!(Page::new(Layout::USUAL, &bytes).unwrap().missed(), Some(None));
    }

    #[test]
    fn a_broken_page_ends_where_it_breaks() {
        for words in [
            &[1, 77, 5 << 5 | 28, 1][..],
            &[1, 77, 0, 3],
            &[1, 77, 0, u32::MAX],
            &[1, 77, 30],
            &[1, 77, 1 << 5 | 29],
        ] {
            let bytes = page(4 * words.len() as u64, words);
            let found: Vec<_> = Page::new(Layout::USUAL, &bytes).unwrap().collect();
            assert_eq!(found.len(), 2, "{words:?}");
            assert_eq!(found[1], Err(Broken), "{words:?}");
        }
        assert!(Page::new(Layout::USUAL, &page(5000, &[])).is_none());
        assert!(Page::new(Layout::USUAL, &[0; 9]).is_none());
    }
}
