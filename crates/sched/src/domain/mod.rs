//! Scheduling domains and groups as data.
//!
//! Domains are private to a CPU; groups are shared by all CPUs of a
//! non-overlapping level, capacities by all groups of the same balance mask.
//! [`Domains::build`] makes them all from a topology, as `build_sched_domains()` does:
//!
//! | file | what it decides |
//! | --- | --- |
//! | `levels.rs` | which levels a machine has under a kernel, and the CPUs of each |
//! | `sd_init.rs` | initial values of a domain |
//! | `groups.rs` | groups and their order in the ring |
//! | `imb_numa_nr.rs` | the NUMA imbalance a domain allows |
//! | `degenerate.rs` | domains that contribute nothing are removed |
//! | `build.rs` | all of it in order, and the per-CPU short cuts |

mod build;
mod degenerate;
mod groups;
mod imb_numa_nr;
mod levels;
mod sd_init;

use alloc::sync::Arc;
use alloc::vec::Vec;

use schedlab_topology::{CpuId, CpuMask, PerCpu};

use crate::LevelNames;

pub(crate) use build::capacity_orig;
pub use groups::Ring;

/// A domain of one CPU at one level: index into [`Domains::sds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SdId(pub u32);

/// A group: index into [`Domains::sgs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SgId(pub u32);

/// State shared by the CPUs of a last-level cache: index into [`Domains::shared`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedId(pub u32);

/// The topology level of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DomainLevel {
    /// Threads of a core.
    Smt,
    /// Cores sharing a mid-level cache.
    Cls,
    /// POWER: CPUs sharing an L2.
    Cache,
    /// CPUs sharing the last-level cache.
    Mc,
    /// s390: sockets of a book.
    Book,
    /// s390: books of a drawer.
    Drawer,
    /// CPUs of a node or package; named DIE up to v6.6.
    Pkg,
    /// One node, v4.19 on.
    Node,
    /// Nodes within a distance.
    Numa,
}

/// Why a balance pass runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleType {
    /// CPU_NOT_IDLE.
    NotIdle,
    /// CPU_IDLE.
    Idle,
    /// CPU_NEWLY_IDLE.
    NewlyIdle,
}

/// Flags of a domain, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SdFlags(pub u32);

macro_rules! sd_flags {
    ($($name:ident = $bit:expr, $text:expr;)*) => {
        impl SdFlags {
            $(#[doc = $text] pub const $name: SdFlags = SdFlags(1 << $bit);)*
            /// Every flag with the name kernels from v6.10 on print, in their order.
            pub const NAMES: &'static [(SdFlags, &'static str)] = &[$((SdFlags::$name, $text)),*];
        }
    };
}

sd_flags! {
    BALANCE_NEWIDLE = 0, "SD_BALANCE_NEWIDLE";
    BALANCE_EXEC = 1, "SD_BALANCE_EXEC";
    BALANCE_FORK = 2, "SD_BALANCE_FORK";
    BALANCE_WAKE = 3, "SD_BALANCE_WAKE";
    WAKE_AFFINE = 4, "SD_WAKE_AFFINE";
    ASYM_CPUCAPACITY = 5, "SD_ASYM_CPUCAPACITY";
    ASYM_CPUCAPACITY_FULL = 6, "SD_ASYM_CPUCAPACITY_FULL";
    SHARE_CPUCAPACITY = 7, "SD_SHARE_CPUCAPACITY";
    CLUSTER = 8, "SD_CLUSTER";
    SHARE_LLC = 9, "SD_SHARE_LLC";
    SERIALIZE = 10, "SD_SERIALIZE";
    ASYM_PACKING = 11, "SD_ASYM_PACKING";
    PREFER_SIBLING = 12, "SD_PREFER_SIBLING";
    OVERLAP = 13, "SD_OVERLAP";
    NUMA = 14, "SD_NUMA";
    LOAD_BALANCE = 15, "SD_LOAD_BALANCE";
    SHARE_POWERDOMAIN = 16, "SD_SHARE_POWERDOMAIN";
}

impl SdFlags {
    /// The names of the flags set, in the kernel's order.
    pub fn names(self, names: LevelNames) -> impl Iterator<Item = &'static str> {
        SdFlags::NAMES.iter().filter(move |(flag, _)| self.has(*flag)).map(move |&(flag, name)| {
            if flag == SdFlags::SHARE_LLC && names == LevelNames::Die {
                "SD_SHARE_PKG_RESOURCES"
            } else {
                name
            }
        })
    }

    /// Whether all of `flags` are set.
    #[inline]
    pub fn has(self, flags: SdFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These and those.
    pub fn with(self, flags: SdFlags) -> SdFlags {
        SdFlags(self.0 | flags.0)
    }

    /// Whether any of `flags` is set.
    #[inline]
    pub fn any(self, flags: SdFlags) -> bool {
        self.0 & flags.0 != 0
    }

    /// These but not those.
    pub fn without(self, flags: SdFlags) -> SdFlags {
        SdFlags(self.0 & !flags.0)
    }
}

/// A domain of one CPU, as `struct sched_domain`.
#[derive(Clone, Debug)]
pub struct SchedDomain {
    /// CPU that owns it.
    pub cpu: CpuId,
    /// Level.
    pub level: DomainLevel,
    /// Name as this kernel prints it.
    pub name: &'static str,
    /// The kernel's number of the level, counted before any domain is removed.
    pub number: u8,
    /// CPUs covered; one mask for all CPUs with the same span.
    pub span: Arc<CpuMask>,
    /// Size of `span`.
    pub span_weight: u32,
    /// Flags.
    pub flags: SdFlags,
    /// One level up.
    pub parent: Option<SdId>,
    /// One level down.
    pub child: Option<SdId>,
    /// Groups in ring order; the first is the local one.
    pub groups: Ring,
    /// Shortest balance interval, ms.
    pub min_interval: u64,
    /// Longest balance interval, ms.
    pub max_interval: u64,
    /// Factor on the interval of busy CPUs.
    pub busy_factor: u32,
    /// Imbalance worth acting on, percent.
    pub imbalance_pct: u32,
    /// Failed passes before hot tasks are moved.
    pub cache_nice_tries: u32,
    /// v4.13: past load that a busy CPU compares with (LB_BIAS).
    pub busy_idx: u8,
    /// v4.13: past load that an idle CPU compares with.
    pub idle_idx: u8,
    /// Running tasks up to which a NUMA imbalance is allowed.
    pub imb_numa_nr: u32,
    /// State shared by the CPUs of the LLC, for domains inside one.
    pub shared: Option<SharedId>,

    /// Jiffy of the last periodic pass.
    pub last_balance: u64,
    /// Current interval, ms.
    pub balance_interval: u64,
    /// Passes in a row that moved nothing.
    pub nr_balance_failed: u32,
    /// Longest newly idle pass, ns.
    pub max_newidle_lb_cost: u64,
    /// Jiffy of its last decay.
    pub last_decay_max_lb_cost: u64,
    /// SIS_PROP: average cost of a scan, ns.
    pub avg_scan_cost: u64,
    /// NI_RANDOM: calls, successes and their ratio of 1024.
    pub newidle_call: u32,
    /// Successes.
    pub newidle_success: u32,
    /// Successes of 1024 calls.
    pub newidle_ratio: u32,
    /// v7.2: time stamp of the ratio.
    pub newidle_stamp: u64,
}

/// Fraction of the longest newly idle pass that is kept each second, of 256.
const NEWIDLE_COST_DECAY: u64 = 253;

impl SchedDomain {
    /// Decays the longest newly idle pass, once per second of `hz` jiffies. Returns whether it did.
    ///
    /// Kernel: update_newidle_cost(), kernel/sched/fair.c, v6.12; rebalance_domains(), v5.5.
    pub(crate) fn decay_newidle_cost(&mut self, jiffy: u64, hz: u64) -> bool {
        if jiffy <= self.last_decay_max_lb_cost + hz {
            return false;
        }
        self.max_newidle_lb_cost = self.max_newidle_lb_cost * NEWIDLE_COST_DECAY / 256;
        self.last_decay_max_lb_cost = jiffy;
        true
    }
}

/// A group of CPUs, as `struct sched_group`.
#[derive(Clone, Debug)]
pub struct SchedGroup {
    /// CPUs covered; never empty.
    pub span: Arc<CpuMask>,
    /// The same as a list: balance passes walk it at every turn.
    pub cpus: Arc<[CpuId]>,
    /// Size of `span`.
    pub group_weight: u32,
    /// Cores in `span`.
    pub cores: u32,
    /// Flags of the child domain it covers.
    pub flags: SdFlags,
    /// CPUs that may balance on behalf of the group.
    pub balance_mask: Arc<CpuMask>,
    /// Capacity object: index into [`Domains::sgcs`].
    pub sgc: u32,
    /// Preferred CPU for ASYM_PACKING.
    pub asym_prefer_cpu: CpuId,
}

/// Capacity of a group, as `struct sched_group_capacity`.
#[derive(Clone, Debug)]
pub struct SgCapacity {
    /// Sum over the CPUs.
    pub capacity: u64,
    /// Smallest CPU.
    pub min_capacity: u64,
    /// Largest CPU.
    pub max_capacity: u64,
    /// Jiffy of the next update.
    pub next_update: u64,
    /// A pass below failed because of affinity.
    pub imbalance: bool,
    /// First CPU of the balance mask.
    pub id: CpuId,
}

/// What the CPUs of a last-level cache share, as `struct sched_domain_shared`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedDomain {
    /// Some core may be wholly idle.
    pub has_idle_cores: bool,
    /// CPUs with a running tick, and those that had none when the domains were built.
    pub nr_busy_cpus: i32,
    /// CPUs when it was built, with those that are leaving: for check only.
    pub nr_cpus: i32,
    /// SIS_UTIL: how many CPUs an idle search may examine.
    pub nr_idle_scan: u32,
    /// v7.2: utilisation and capacity of the LLC as last recorded.
    pub util_avg: u64,
    /// v7.2: capacity.
    pub capacity: u64,
}

/// Per-CPU short cuts into the domain tree.
#[derive(Clone, Debug, Default)]
pub struct Shortcuts {
    /// Lowest domain.
    pub base: Option<SdId>,
    /// Highest domain inside an LLC.
    pub llc: Option<SdId>,
    /// CPUs in the LLC, 1 without such a domain.
    pub llc_size: u32,
    /// Same for CPUs that share a cache.
    pub llc_id: u32,
    /// Same for CPUs that share a cluster (or LLC if none).
    pub share_id: u32,
    /// Shared state of the LLC.
    pub llc_shared: Option<SharedId>,
    /// The state that idle searches use: that of the domain with all capacities, if it has its own, or of the LLC.
    pub balance_shared: Option<SharedId>,
    /// The CPU does not count as busy in its LLC: it stopped its tick since the domains were built.
    pub nohz_idle: bool,
    /// Lowest NUMA domain.
    pub numa: Option<SdId>,
    /// Highest ASYM_PACKING domain.
    pub asym_packing: Option<SdId>,
    /// Lowest domain with all capacities; up to v5.13 that of the level that knows them.
    pub asym_cpucapacity: Option<SdId>,
}

impl Shortcuts {
    /// The shared state of the domain with all capacities, if it has its own.
    pub fn asym_shared(&self) -> Option<SharedId> {
        self.balance_shared.filter(|_| self.balance_shared != self.llc_shared)
    }
}

/// All domains of a machine under a kernel.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    /// Domains.
    pub sds: Vec<SchedDomain>,
    /// Groups.
    pub sgs: Vec<SchedGroup>,
    /// Capacities.
    pub sgcs: Vec<SgCapacity>,
    /// Shared state of LLCs, followed by that of domains with all capacities.
    pub shared: Vec<SharedDomain>,
    /// How many LLCs have shared state.
    pub nr_llcs: usize,
    /// Some LLC has several CPUs, and there are others outside it.
    pub multi_llcs: bool,
    /// Short cuts.
    pub per_cpu: PerCpu<Shortcuts>,
    /// Threads of each CPU's core, the CPU itself included.
    pub smt_mask: PerCpu<Arc<CpuMask>>,
    /// Some core has more than one thread.
    pub smt_active: bool,
    /// Most threads that a core had at boot (cpu_smt_num_threads).
    pub smt_threads: u32,
    /// Some LLC has several clusters below it (the cluster static key).
    pub cluster_active: bool,
    /// CPUs differ in original capacity.
    pub asym_active: bool,
    /// Largest original capacity.
    pub max_cpu_capacity: u64,
    /// Some LLC is inside a larger domain (v7.2: cache-aware scheduling is useful).
    pub multi_llc: bool,
    /// CPUs that take part (span of the root domain).
    pub span: CpuMask,
    /// Some CPU had more than one task (root domain "overload").
    pub overload: bool,
}

impl Domains {
    /// The domain.
    #[inline]
    pub fn sd(&self, id: SdId) -> &SchedDomain {
        &self.sds[id.0 as usize]
    }

    /// The domain, to change.
    #[inline]
    pub fn sd_mut(&mut self, id: SdId) -> &mut SchedDomain {
        &mut self.sds[id.0 as usize]
    }

    /// The group.
    #[inline]
    pub fn sg(&self, id: SgId) -> &SchedGroup {
        &self.sgs[id.0 as usize]
    }

    /// The capacity of a group.
    #[inline]
    pub fn sgc(&self, id: SgId) -> &SgCapacity {
        &self.sgcs[self.sg(id).sgc as usize]
    }

    /// The domains of a CPU from lowest to highest.
    pub fn walk(&self, cpu: CpuId) -> impl Iterator<Item = (SdId, &SchedDomain)> {
        let mut next = self.per_cpu[cpu].base;
        core::iter::from_fn(move || {
            let id = next?;
            let sd = self.sd(id);
            next = sd.parent;
            Some((id, sd))
        })
    }
}
