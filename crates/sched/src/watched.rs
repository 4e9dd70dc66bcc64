//! A table by CPU that remembers where it may have changed.
//!
//! Sums over groups of CPUs are updated from those elements alone. Reading leaves no trace; requesting an element for
//! change marks it, so no change can be missed.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Deref, Index, IndexMut};

use schedlab_topology::{CpuId, PerCpu};

use crate::Rq;

/// A table whose first elements belong to a CPU each, in order.
#[derive(Clone)]
pub struct Watched<C> {
    table: C,
    /// One bit per CPU that is watched.
    touched: Vec<u64>,
}

impl<C> Watched<C> {
    /// A table that has no watcher yet.
    pub fn new(table: C) -> Watched<C> {
        Watched { table, touched: Vec::new() }
    }

    /// Watches the first `nr_cpus` elements, which belong to the CPUs; no elements if that is 0. All of them count as
    /// changed.
    pub(crate) fn watch(&mut self, nr_cpus: usize) {
        self.touched = vec![u64::MAX; nr_cpus.div_ceil(64)];
    }

    /// CPUs that may have changed, as words of 64 bits. Bits beyond the CPUs mean nothing.
    #[inline]
    pub(crate) fn touched(&self) -> &[u64] {
        &self.touched
    }

    /// Clears the changes of 64 CPUs.
    #[inline]
    pub(crate) fn take_touched(&mut self, word: usize) -> u64 {
        core::mem::take(&mut self.touched[word])
    }
}

/// Marks an element, if it is watched.
#[inline]
fn touch(touched: &mut [u64], index: usize) {
    if let Some(word) = touched.get_mut(index / 64) {
        *word |= 1 << (index % 64);
    }
}

impl<C> Deref for Watched<C> {
    type Target = C;

    #[inline]
    fn deref(&self) -> &C {
        &self.table
    }
}

impl<I, C: Index<I>> Index<I> for Watched<C> {
    type Output = C::Output;

    #[inline]
    fn index(&self, index: I) -> &C::Output {
        &self.table[index]
    }
}

impl<T> IndexMut<usize> for Watched<Vec<T>> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        let element = &mut self.table[index];
        touch(&mut self.touched, index);
        element
    }
}

impl<T> Watched<Vec<T>> {
    /// Each element, mutable, in order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.touched.fill(u64::MAX);
        self.table.iter_mut()
    }

    /// Drops the last element, which belongs to no CPU alone.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.table.pop()
    }

    /// Adds an element that belongs to no CPU alone.
    pub(crate) fn push(&mut self, value: T) {
        self.table.push(value);
    }
}

impl IndexMut<CpuId> for Watched<PerCpu<Rq>> {
    #[inline]
    fn index_mut(&mut self, cpu: CpuId) -> &mut Rq {
        let rq = &mut self.table[cpu];
        touch(&mut self.touched, cpu.index());
        rq
    }
}

impl Watched<PerCpu<Rq>> {
    /// A run queue of which only clocks and the slice timer will change: no sum depends on them, so it is
    /// not marked.
    #[inline]
    pub(crate) fn clocks_of(&mut self, cpu: CpuId) -> &mut Rq {
        &mut self.table[cpu]
    }

    /// Each CPU with its mutable run queue, in CPU order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (CpuId, &mut Rq)> {
        self.touched.fill(u64::MAX);
        self.table.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_to_change_marks_and_reading_does_not() {
        let mut watched = Watched::new(vec!['a'; 70]);
        watched[3] = 'b';
        assert!(watched.touched().is_empty(), "nobody watches");
        watched.watch(66);
        assert_eq!((watched.take_touched(0), watched.take_touched(1)), (u64::MAX, u64::MAX));
        assert_eq!(watched[65], 'a');
        assert_eq!(watched.touched(), [0, 0]);
        watched[65] = 'b';
        watched[3] = 'c';
        assert_eq!(watched.touched(), [1 << 3, 1 << 1]);
        watched.push('d');
        watched[70] = 'e';
        assert_eq!(watched.take_touched(1), 1 << 1 | 1 << 6, "beyond the CPUs: no meaning");
        assert_eq!(watched.touched(), [1 << 3, 0]);
    }
}
