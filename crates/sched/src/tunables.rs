//! Numbers a kernel string can set: `v6.12+base_slice_ns=1000000`.

macro_rules! tunables {
    ($($(#[doc = $doc:literal])* $field:ident = $default:expr;)*) => {
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
                get: |t| t.$field,
                set: |t, v| t.$field = v,
            },)*];
        }
    };
}

/// One number by name.
pub struct Tunable {
    /// Name in kernel strings.
    pub name: &'static str,
    /// One sentence.
    pub sentence: &'static str,
    /// Reads it.
    pub get: fn(&Tunables) -> u64,
    /// Sets it.
    pub set: fn(&mut Tunables, u64),
}

tunables! {
    /// Ticks per second.
    hz = 250;
    /// CFS: targeted latency.
    latency_ns = 6_000_000;
    /// CFS: shortest slice.
    min_granularity_ns = 750_000;
    /// CFS: shortest slice of idle entities (not scaled), v5.18 on.
    idle_min_granularity_ns = 750_000;
    /// CFS: vruntime lead needed to preempt on wake-up.
    wakeup_granularity_ns = 1_000_000;
    /// EEVDF: request size.
    base_slice_ns = 750_000;
    /// 0 none, 1 logarithmic, 2 linear scaling of the above by CPU count.
    tunable_scaling = 1;
    /// Time since it ran for which a task is cache hot; also bounds avg_idle.
    migration_cost_ns = 500_000;
    /// Tasks moved in one go.
    nr_migrate = 32;
    /// Slice a CPU takes from a quota pool, us.
    cfs_bandwidth_slice_us = 5_000;
    /// v4.13: averaging time of RT pressure, ms.
    sched_time_avg_ms = 1_000;
    /// NUMA distance above which a domain loses EXEC, FORK and WAKE_AFFINE.
    reclaim_distance = 30;
    /// RT period, us.
    rt_period_us = 1_000_000;
    /// RT time per period, us; equal to the period means no limit.
    rt_runtime_us = 950_000;
    /// v7.2 cache-aware balancing: epoch, jiffies.
    llc_epoch_period = 2;
    /// Epochs without a scan after which the preference is dropped.
    llc_epoch_affinity_timeout = 5;
    /// Percent of an LLC's capacity that counts as full.
    llc_overaggr_pct = 50;
    /// Percent difference between LLCs worth keeping.
    llc_imb_pct = 20;
    /// How large a process may be to be aggregated.
    llc_aggr_tolerance = 1;
}
