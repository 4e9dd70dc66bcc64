//! A CPU's number, and tables indexed by it.

use core::fmt;
use core::ops::{Index, IndexMut};

/// A logical CPU, numbered as the kernel does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(pub u16);

/// A NUMA node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

impl CpuId {
    /// The index into a dense table.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<usize> for CpuId {
    #[inline]
    fn from(index: usize) -> CpuId {
        CpuId(index as u16)
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One value for each CPU of a machine, indexed by [`CpuId`] alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerCpu<T>(Vec<T>);

impl<T> PerCpu<T> {
    /// Makes the value of each of `nr_cpus` CPUs.
    pub fn new(nr_cpus: usize, make: impl FnMut(CpuId) -> T) -> PerCpu<T> {
        PerCpu((0..nr_cpus).map(CpuId::from).map(make).collect())
    }

    /// How many CPUs there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no CPU.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each CPU with its value, in CPU order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (CpuId, &T)> + ExactSizeIterator {
        self.0.iter().enumerate().map(|(i, v)| (CpuId::from(i), v))
    }

    /// Each CPU with its value to change, in CPU order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (CpuId, &mut T)> {
        self.0.iter_mut().enumerate().map(|(i, v)| (CpuId::from(i), v))
    }

    /// The values alone, in CPU order.
    pub fn values(&self) -> &[T] {
        &self.0
    }
}

impl<T> From<Vec<T>> for PerCpu<T> {
    fn from(values: Vec<T>) -> PerCpu<T> {
        PerCpu(values)
    }
}

impl<T> Index<CpuId> for PerCpu<T> {
    type Output = T;

    #[inline]
    fn index(&self, cpu: CpuId) -> &T {
        &self.0[cpu.index()]
    }
}

impl<T> IndexMut<CpuId> for PerCpu<T> {
    #[inline]
    fn index_mut(&mut self, cpu: CpuId) -> &mut T {
        &mut self.0[cpu.index()]
    }
}
