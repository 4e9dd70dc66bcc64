//! Finds what belongs to a number, such as that of a process.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// How many numbers share a page.
const PAGE: usize = 256;

/// Marks a number that has nothing.
const NONE: u32 = u32::MAX;

/// An index for each number, in pages: where numbers are dense, as those of processes are, it takes four bytes for each, a
/// quarter of a tree. Numbers are expected to be pids or smaller: the list of pages ends with that of the largest.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    pages: Vec<Option<Box<[u32; PAGE]>>>,
}

impl Numbers {
    /// The index of a number.
    pub(super) fn get(&self, number: u32) -> Option<u32> {
        let page = self.pages.get(number as usize / PAGE)?.as_ref()?;
        Some(page[number as usize % PAGE]).filter(|&index| index != NONE)
    }

    /// Gives a number an index, in place of the one that it had.
    pub(super) fn insert(&mut self, number: u32, index: u32) {
        let at = number as usize / PAGE;
        if self.pages.len() <= at {
            self.pages.resize_with(at + 1, || None);
        }
        let page = self.pages[at].get_or_insert_with(|| Box::new([NONE; PAGE]));
        page[number as usize % PAGE] = index;
    }

    /// Takes a number's index away, and returns it.
    pub(super) fn remove(&mut self, number: u32) -> Option<u32> {
        let index = self.get(number)?;
        self.insert(number, NONE);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_index_that_it_was_given_last() {
        let mut numbers = Numbers::default();
        assert_eq!((numbers.get(0), numbers.remove(300)), (None, None));
        numbers.insert(300, 0);
        numbers.insert(4_194_304, 1);
        numbers.insert(300, 2);
        assert_eq!([299, 300, 4_194_304, u32::MAX].map(|n| numbers.get(n)), [None, Some(2), Some(1), None]);
        assert_eq!((numbers.remove(300), numbers.remove(300), numbers.get(300)), (Some(2), None, None));
        assert_eq!(numbers.get(4_194_304), Some(1), "another number keeps its index");
    }
}
