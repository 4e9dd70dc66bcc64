//! A pipe: a ring of pages between writers and readers.
//!
//! Small writes share a page as long as they fit into the rest of it; a reader frees a page when it has read all of it.
//! A writer sleeps when every page is used, so it continues a page later, not a message later. The kernel's rule
//! (`PIPE_WAKE`) decides which task is woken when, always with the hint that the waker soon sleeps (sync).
//!
//! A page that has been read is kept for the next write. The pipe keeps one, or two (`TWO_SPARE_PAGES`); others are
//! freed, and allocated again. So a full pipe that is read at one go costs more than a message at a time.
//!
//! ```text
//!   readers <- [ read | 1200 left ][ full ] ... [ full | 300 free ] <- writers
//! ```
//!
//! Kernel: pipe_read(), pipe_write(), fs/pipe.c, v4.13, v5.5, v6.1, v7.2.

use std::collections::VecDeque;

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use super::Waiters;

/// Bytes of the pages in which a workload counts a pipe's room.
const COUNTED_PAGE: u32 = 4096;

/// A used page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page {
    /// First byte not yet read.
    begin: u32,
    /// Where the next byte goes.
    end: u32,
}

/// A pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pipe {
    pages: VecDeque<Page>,
    pages_max: usize,
    /// Bytes of a page on this machine.
    page: u32,
    readers: Waiters,
    writers: Waiters,
    /// Pages that were read and are kept.
    spare: usize,
    spare_max: usize,
    /// The CPU of the last call that held its mutex.
    last_cpu: Option<CpuId>,
}

impl Pipe {
    /// An empty pipe for so many bytes on a machine with pages of 4 KB, at least a page.
    /// With larger pages it has as many: the kernel counts them, not bytes. No machine has
    /// smaller ones. It keeps at most `spare_max` pages that were read.
    pub fn new(capacity: u32, page: u32, spare_max: usize) -> Pipe {
        let pages_max = capacity.div_ceil(COUNTED_PAGE).max(1) as usize;
        Pipe {
            pages: VecDeque::new(),
            pages_max,
            page: page.max(COUNTED_PAGE),
            readers: Waiters::default(),
            writers: Waiters::default(),
            spare: 0,
            spare_max,
            last_cpu: None,
        }
    }

    /// A call on this CPU holds its mutex: which CPU did before.
    pub fn used_on(&mut self, cpu: CpuId) -> Option<CpuId> {
        self.last_cpu.replace(cpu)
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// How many pages are used.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Whether every page is used.
    pub fn is_full(&self) -> bool {
        self.pages.len() >= self.pages_max
    }

    /// Whether a write of this size can write anything.
    pub fn has_room(&self, bytes: u32) -> bool {
        !self.is_full() || self.shares_page(bytes % self.page)
    }

    /// Whether so many bytes fit into the rest of the last page.
    fn shares_page(&self, part: u32) -> bool {
        part > 0 && self.pages.back().is_some_and(|last| last.end + part <= self.page)
    }

    /// Writes as much as fits; returns how many bytes.
    pub fn write(&mut self, bytes: u32) -> u32 {
        let mut left = bytes;
        // Only the part that would not fill a page of its own may share one.
        let part = left % self.page;
        if self.shares_page(part)
            && let Some(last) = self.pages.back_mut()
        {
            last.end += part;
            left -= part;
        }
        while left > 0 && !self.is_full() {
            let chunk = left.min(self.page);
            self.pages.push_back(Page { begin: 0, end: chunk });
            self.spare = self.spare.saturating_sub(1);
            left -= chunk;
        }
        bytes - left
    }

    /// How many pages a write of this size allocates.
    pub fn allocates(&self, bytes: u32) -> usize {
        let part = bytes % self.page;
        let own = if self.shares_page(part) { bytes - part } else { bytes };
        let pages = own.div_ceil(self.page) as usize;
        pages.min(self.pages_max.saturating_sub(self.pages.len())).saturating_sub(self.spare)
    }

    /// How many pages a read of this size frees.
    pub fn frees(&self, bytes: u32) -> usize {
        let mut left = bytes;
        let read = self.pages.iter().take_while(|page| {
            let whole = page.end - page.begin;
            let fits = whole <= left;
            left = left.saturating_sub(whole);
            fits
        });
        (read.count() + self.spare).saturating_sub(self.spare_max)
    }

    /// Reads the available data, at most `bytes`; returns how many bytes.
    pub fn read(&mut self, bytes: u32) -> u32 {
        let mut left = bytes;
        while left > 0 {
            let Some(page) = self.pages.front_mut() else { break };
            let chunk = left.min(page.end - page.begin);
            page.begin += chunk;
            left -= chunk;
            if page.begin == page.end {
                self.pages.pop_front();
                self.spare = self.spare_max.min(self.spare + 1);
            }
        }
        bytes - left
    }

    /// Tasks that wait for something to read.
    pub fn readers(&mut self) -> &mut Waiters {
        &mut self.readers
    }

    /// Tasks that wait for room.
    pub fn writers(&mut self) -> &mut Waiters {
        &mut self.writers
    }

    /// A task that waits is killed.
    pub fn give_up(&mut self, task: TaskId) -> bool {
        self.readers.remove(task).is_some() || self.writers.remove(task).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_hundred_bytes_share_pages() {
        let mut pipe = Pipe::new(65_536, 4_096, 1);
        let mut written = 0;
        while pipe.write(100) == 100 {
            written += 1;
        }
        assert_eq!(written, 16 * 40, "forty to a page, sixteen pages");
        for read in 0..40 {
            assert!(pipe.is_full(), "the first page is not read yet at {read}");
            assert_eq!(pipe.read(100), 100);
        }
        assert!(!pipe.is_full(), "one page is free");
        assert_eq!(pipe.write(100), 100);
        assert!(pipe.is_full());
    }

    #[test]
    fn larger_pages_hold_more_messages_in_as_many_pages() {
        let mut pipe = Pipe::new(65_536, 65_536, 1);
        let mut written = 0;
        while pipe.write(100) == 100 {
            written += 1;
        }
        assert_eq!(written, 16 * 655);
    }

    #[test]
    fn a_large_write_takes_what_fits() {
        let mut pipe = Pipe::new(8_192, 4_096, 1);
        assert_eq!(pipe.write(10_000), 8_192);
        assert_eq!(pipe.write(10_000), 0);
        assert_eq!(pipe.read(5_000), 5_000);
        assert_eq!(pipe.write(5_000), 4_096);
        assert_eq!(pipe.read(99_999), 7_288);
        assert!(pipe.is_empty());
    }

    #[test]
    fn a_page_that_was_read_is_kept_and_the_others_are_freed() {
        for spare in [1, 2] {
            let mut pipe = Pipe::new(65_536, 4_096, spare);
            let mut counts = (0, 0);
            for _ in 0..2 {
                for _ in 0..16 {
                    counts.0 += pipe.allocates(4_096);
                    assert_eq!(pipe.write(4_096), 4_096);
                }
                assert_eq!(pipe.allocates(4_096), 0, "nothing is written to a full pipe");
                for _ in 0..16 {
                    counts.1 += pipe.frees(4_096);
                    assert_eq!(pipe.read(4_096), 4_096);
                }
            }
            assert_eq!(
                counts,
                (16 + 16 - spare, 2 * (16 - spare)),
                "with {spare}: of the second round some are kept"
            );
        }
        let mut pipe = Pipe::new(65_536, 4_096, 1);
        assert_eq!(pipe.write(100), 100);
        assert_eq!((pipe.allocates(100), pipe.frees(99), pipe.frees(100)), (0, 0, 0));
        assert_eq!((pipe.allocates(9_000), pipe.allocates(8_292)), (2, 2), "odd bytes share a page");
    }
}
