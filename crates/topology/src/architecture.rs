//! The architecture of a machine: kernels build scheduling domains differently on each.

use crate::validate::CAPACITY_SCALE;
use crate::{Cpu, CpuMask};

/// An architecture whose kernel has its own way of building domains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Architecture {
    /// x86, and any architecture that is not listed below.
    #[default]
    X86,
    /// arm and arm64: groups by `drivers/base/arch_topology.c`.
    Arm64,
    /// riscv: the same code as arm64.
    Riscv,
    /// powerpc.
    Power,
    /// s390: books and drawers above the sockets.
    S390,
}

impl Architecture {
    /// The architecture with a name from `uname -m`, hwloc, perf.data or a device's modalias; `None` if the name is not
    /// known, in which case x86 rules are the closest.
    pub fn named(name: &str) -> Option<Architecture> {
        let name = name.trim().to_ascii_lowercase();
        let x86 = ["x86", "amd64", "i386", "i486", "i586", "i686"];
        Some(if x86.iter().any(|x86| name.starts_with(x86)) {
            Architecture::X86
        } else if name.starts_with("aarch64") || name.starts_with("arm") {
            Architecture::Arm64
        } else if name.starts_with("riscv") {
            Architecture::Riscv
        } else if name.starts_with("ppc") || name.starts_with("power") {
            Architecture::Power
        } else if name.starts_with("s390") {
            Architecture::S390
        } else {
            return None;
        })
    }

    /// The name that `uname -m` gives it.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::X86 => "x86_64",
            Architecture::Arm64 => "aarch64",
            Architecture::Riscv => "riscv64",
            Architecture::Power => "ppc64le",
            Architecture::S390 => "s390x",
        }
    }

    /// Whether `drivers/base/arch_topology.c` groups the CPUs.
    pub fn has_arch_topology(self) -> bool {
        matches!(self, Architecture::Arm64 | Architecture::Riscv)
    }

    /// The architecture to assume if none is recorded: cores of more than two threads are POWER's.
    pub(crate) fn guessed(cores: &[CpuMask]) -> Architecture {
        if cores.iter().any(|core| core.weight() > 2) { Architecture::Power } else { Architecture::X86 }
    }
}

/// Scales capacities so that the largest becomes 1024, as the kernel normalises them. Returns the previous largest
/// value if it was lower.
///
/// hwloc averages the capacities of CPUs of one kind, and a list may leave out the largest CPUs.
///
/// Kernel: topology_normalize_cpu_scale(), drivers/base/arch_topology.c, v6.12.
pub(crate) fn normalize_capacities(cpus: &mut [Cpu]) -> Option<u16> {
    let largest =
        cpus.iter().map(|cpu| cpu.capacity).max().filter(|largest| (1..CAPACITY_SCALE).contains(largest))?;
    for cpu in cpus {
        let scaled = u32::from(cpu.capacity) * u32::from(CAPACITY_SCALE) / u32::from(largest);
        cpu.capacity = scaled as u16;
    }
    Some(largest)
}
