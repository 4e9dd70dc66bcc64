//! A set of CPUs named before the machine is known.

use core::fmt;
use core::str::FromStr;

use schedlab_topology::{CpuId, CpuMask, NR_CPUS_MAX};

/// CPUs in increasing order, each once. Invariant: not empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuList(Vec<CpuId>);

impl CpuList {
    /// The given CPUs, in any order; `None` if there are none.
    pub fn new(cpus: impl IntoIterator<Item = CpuId>) -> Option<CpuList> {
        let mut cpus: Vec<CpuId> = cpus.into_iter().collect();
        cpus.sort_unstable();
        cpus.dedup();
        (!cpus.is_empty()).then_some(CpuList(cpus))
    }

    /// One CPU.
    pub fn one(cpu: CpuId) -> CpuList {
        CpuList(vec![cpu])
    }

    /// The CPUs in increasing order.
    pub fn cpus(&self) -> &[CpuId] {
        &self.0
    }

    /// The highest CPU.
    pub fn last(&self) -> CpuId {
        self.0[self.0.len() - 1]
    }

    /// The set on a machine.
    ///
    /// # Errors
    /// The first CPU that the machine does not have.
    pub fn mask(&self, nr_cpus: usize) -> Result<CpuMask, CpuId> {
        match self.0.iter().find(|cpu| cpu.index() >= nr_cpus) {
            Some(&outside) => Err(outside),
            None => Ok(CpuMask::of(nr_cpus, self.0.iter().copied())),
        }
    }
}

impl FromStr for CpuList {
    type Err = String;

    /// Reads a list as the kernel writes it: `0-3,8,10-14:2`.
    fn from_str(list: &str) -> Result<CpuList, String> {
        let mask = CpuMask::parse_list(list, NR_CPUS_MAX)?;
        CpuList::new(mask.iter()).ok_or_else(|| format!("the CPU list \"{list}\" is empty"))
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        CpuMask::of(self.last().index() + 1, self.0.iter().copied()).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_kept_in_order_without_doubles() {
        let list = CpuList::new([3, 1, 3, 2].map(CpuId)).unwrap();
        assert_eq!(list.to_string(), "1-3");
        assert_eq!("0,16,32-34".parse::<CpuList>().unwrap().to_string(), "0,16,32-34");
        assert!(CpuList::new([]).is_none());
        assert!("".parse::<CpuList>().is_err());
    }

    #[test]
    fn a_cpu_the_machine_lacks_is_named() {
        let list: CpuList = "2,9,12".parse().unwrap();
        assert_eq!(list.mask(8), Err(CpuId(9)));
        assert_eq!(list.mask(16).unwrap().to_string(), "2,9,12");
    }
}
