//! CPUs, cores, caches and nodes: the machine as the scheduler sees it.
//!
//! A [`Topology`] is plain data. It is the same whether it was read from a host,
//! from a file or written as `2x8x8x2`; scheduling domains are built from it by
//! the `sched` crate, because they depend on the kernel.

mod architecture;
mod cpu;
mod draw;
mod error;
mod hwloc;
mod lscpu;
mod machine_file;
mod mask;
mod nearest;
mod nest;
mod perf_data;
mod places;
mod preset;
mod regular;
mod size;
mod sysfs;
mod topology;
mod validate;

pub use architecture::Architecture;
pub use cpu::{CpuId, NodeId, PerCpu};
pub use error::TopologyError;
pub use mask::CpuMask;
pub use nearest::nearest;
pub use perf_data::PerfSections;
pub use preset::{preset_names, preset_toml};
pub use sysfs::{SavedSysfs, SysfsTree};
pub use topology::{CacheSizes, Cpu, Topology};
pub use validate::NR_CPUS_MAX;
