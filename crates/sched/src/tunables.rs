//! Numbers a kernel string can set: `v6.12+base_slice_ns=1000000`.

use core::ops::RangeInclusive;

macro_rules! tunables {
    ($($(#[doc = $doc:literal])* $field:ident = $default:expr, $range:expr;)*) => {
        /// Numbers of a kernel that users can set. Times in ns before scaling by CPU count
        /// unless said otherwise.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Tunables { $($(#[doc = $doc])* pub $field: u64,)* }

        impl Default for Tunables {
            fn default() -> Tunables {
                Tunables { $($field: $default,)* }
            }
        }

        impl Tunables {
            /// Every tunable: name, and how to reach it.
            pub const ALL: &'static [Tunable] = &[$(Tunable {
                name: stringify!($field),
                sentence: concat!($($doc),*).trim_ascii_start(),
                range: $range,
                get: |t| t.$field,
                set: |t, v| t.$field = v,
            },)*];

            /// The tunable of a name, in letters of either case.
            pub fn named(name: &str) -> Option<&'static Tunable> {
                Tunables::ALL.iter().find(|row| row.name.eq_ignore_ascii_case(name))
            }
        }
    };
}

/// One number by name.
pub struct Tunable {
    /// Name in kernel strings.
    pub name: &'static str,
    /// One sentence.
    pub sentence: &'static str,
    /// What it can be set to: as the kernel has it, where it has limits.
    pub range: RangeInclusive<u64>,
    /// Reads it.
    pub get: fn(&Tunables) -> u64,
    /// Sets it.
    pub set: fn(&mut Tunables, u64),
}

/// Slices and latencies: the sysctls have 100 us to 1 s for what is in force, which is up to eight times as much.
const TIMES_NS: RangeInclusive<u64> = 12_500..=1_000_000_000;
/// What the kernel keeps in 32 bits without limits.
const U32: RangeInclusive<u64> = 0..=4_294_967_295;
/// What the kernel keeps in 31 bits, zero refused.
const POSITIVE: RangeInclusive<u64> = 1..=2_147_483_647;

tunables! {
    /// Ticks per second.
    hz = 250, 1..=10_000;
    /// CFS: targeted latency.
    latency_ns = 6_000_000, TIMES_NS;
    /// CFS: shortest slice.
    min_granularity_ns = 750_000, TIMES_NS;
    /// CFS: shortest slice of idle entities (not scaled), v5.18 on.
    idle_min_granularity_ns = 750_000, TIMES_NS;
    /// CFS: vruntime lead needed to preempt on wake-up.
    wakeup_granularity_ns = 1_000_000, 0..=1_000_000_000;
    /// EEVDF: request size.
    base_slice_ns = 750_000, TIMES_NS;
    /// 0 none, 1 logarithmic, 2 linear scaling of the above by CPU count.
    tunable_scaling = 1, 0..=2;
    /// Time since it ran for which a task is cache hot; also bounds avg_idle.
    migration_cost_ns = 500_000, U32;
    /// Factor by which a busy CPU balances a domain less often than an idle one; 32 before v5.10.
    busy_factor = 16, U32;
    /// How busy another group must be in percent of the local one; for domains above the LLC, 125 before v5.10.
    imbalance_pct = 117, 100..=10_000;
    /// Tasks moved in one go.
    nr_migrate = 32, U32;
    /// Slice a CPU takes from a quota pool, us.
    cfs_bandwidth_slice_us = 5_000, POSITIVE;
    /// v4.13: averaging time of RT pressure, ms.
    sched_time_avg_ms = 1_000, POSITIVE;
    /// RT period, us.
    rt_period_us = 1_000_000, POSITIVE;
    /// RT time per period, us; equal to the period means no limit.
    rt_runtime_us = 950_000, 0..=2_147_483_647;
    /// Time slice of SCHED_RR tasks, ms.
    rr_timeslice_ms = 100, POSITIVE;
    /// v6.12: time per period of a CPU that fair tasks get beside RT tasks, ns; 0 is none.
    fair_server_runtime_ns = 50_000_000, 0..=4_194_304_000;
    /// v6.12: that period, ns.
    fair_server_period_ns = 1_000_000_000, 100_000..=4_194_304_000;
    /// v7.2 cache-aware balancing: epoch, jiffies.
    llc_epoch_period = 2, U32;
    /// Epochs without a scan after which the preference is dropped.
    llc_epoch_affinity_timeout = 5, U32;
    /// Percent of an LLC's capacity that counts as full.
    llc_overaggr_pct = 50, U32;
    /// Percent difference between LLCs worth keeping.
    llc_imb_pct = 20, U32;
    /// How large a process may be to be aggregated.
    llc_aggr_tolerance = 1, U32;
}

/// Tunables as they are in force, ns: some grow with the number of CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scaled {
    /// CFS: targeted latency.
    pub latency: u64,
    /// CFS: shortest slice.
    pub min_granularity: u64,
    /// CFS: vruntime lead needed to preempt on wake-up.
    pub wakeup_granularity: u64,
    /// EEVDF: request size.
    pub base_slice: u64,
    /// CFS: tasks that fit into one latency.
    pub nr_latency: u64,
    /// Length of a tick, ns: every event asks for it.
    pub tick_ns: u64,
}

impl Scaled {
    /// The values with a number of CPUs online.
    ///
    /// Kernel: get_update_sysctl_factor(), update_sysctl(), kernel/sched/fair.c, v6.1.
    pub fn new(tunables: &Tunables, nr_online: usize) -> Scaled {
        let cpus = nr_online.clamp(1, 8) as u64;
        let factor = match tunables.tunable_scaling {
            0 => 1,
            1 => 1 + cpus.ilog2() as u64,
            _ => cpus,
        };
        Scaled {
            latency: factor * tunables.latency_ns,
            min_granularity: factor * tunables.min_granularity_ns,
            wakeup_granularity: factor * tunables.wakeup_granularity_ns,
            base_slice: factor * tunables.base_slice_ns,
            nr_latency: tunables.latency_ns.div_ceil(tunables.min_granularity_ns.max(1)),
            tick_ns: 1_000_000_000 / tunables.hz,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunables_grow_with_the_logarithm_of_up_to_eight_cpus() {
        let tunables = Tunables::default();
        let latency_ms = |cpus| Scaled::new(&tunables, cpus).latency / 1_000_000;
        assert_eq!([1, 2, 3, 4, 7, 8, 256].map(latency_ms), [6, 12, 12, 18, 18, 24, 24]);
        assert_eq!(Scaled::new(&tunables, 8).nr_latency, 8);
        let linear = Tunables { tunable_scaling: 2, ..Tunables::default() };
        assert_eq!(Scaled::new(&linear, 5).min_granularity, 3_750_000);
        let none = Tunables { tunable_scaling: 0, ..Tunables::default() };
        assert_eq!(Scaled::new(&none, 8).base_slice, 750_000);
    }
}
