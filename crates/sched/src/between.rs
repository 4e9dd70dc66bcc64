//! Kernels between the presets, each defined by the rules of another and the changes.
//!
//! The changes were read in the sources of the named point release. Rules not named here are those of the base
//! kernel. For releases between these it is not known when each change was made.
//!
//! Five rules were not checked in these sources, `REGROUP_WAKES`, `CLASS_CHANGE_ASKS`, `UTIL_EST_CAPACITY`,
//! `BANDWIDTH_AT_PICK` and `NEWIDLE_READS_CLOCK`: they are as in the kernel that the preset is based on. Neither was `BALANCE_FAIR`, which
//! follows from the date of its change, June 2026. `TWO_SPARE_PAGES` was measured on a 6.18 (write and read two, then
//! four pages). `RT_PUSH_IPI` is on in 6.18.15, as a recording shows; for 6.19 and
//! 7.1 it is not known.

/// Name, and the kernel string that it represents.
///
/// `v6.12` is a late stable release, so `v6.17` lacks some of its changes. Not modelled, because no rule exists for it:
/// a newly idle pass of 6.17 that finds nothing raises the cost of its domain by half; up to 6.19 a task whose
/// parameters change while it runs is protected again.
pub const BETWEEN: [(&str, &str); 5] = [
    // 5.10.262.
    (
        "v5.10",
        "v5.18+NO_WA_PREV_IDLE+NO_RECENT_CPU_MASK_BUG+NO_IDLE_CORE_MASK_ALLOWED+NO_SCAN_FROM_NEXT+NO_WAKE_AVG_IDLE\
         +NO_CLS_LEVEL+NO_NUMA_DESCEND+NO_IDLE_MIN_GRANULARITY+NO_IDLE_GROUPS+NO_NEWIDLE_PENDING_WAKE\
         +NO_NOHZ_NEXT_KICK+RECENT_USED_CPU=waker+IDLE_CORE=separate+IDLE_SMT=target_last+ASYM_FITS=uclamp\
         +NUMA_IMBALANCE=any_idle+LB_NUMA_IMBALANCE=pair+IMB_NUMA_NR=off+ASYM_DOMAINS=level+ACTIVE_BALANCE=any_failure\
         +ASYM_PACKING=prefer+NEWIDLE_GATE=migration_cost+ANY_CPU=affinity+BUDDIES_CLEAR=picked+CPUPRI_DL=ignored+NO_SWITCH_STATE_PASSED\
         +LB_LOCAL_ABOVE_AVERAGE+QUEUE_GIVES=several_for_util+ASYM_GROUPS=extremes+FORK_STATS_ALLOWED+LB_UTIL_SHIFT\
         +NO_UNTHROTTLE_ASKS_EMPTY+NO_IDLE_PERIOD_REFILLS+NO_LISTED_BY_DECAY+NO_STEAL_CATCHES_UP+NO_BALANCE_PUSH+NO_NUMA_UPDATE\
         +DST_GROUP=balance_mask+PELT_SUMS=synced+preempt=static/voluntary",
    ),
    // 6.17.8.
    (
        "v6.17",
        "v6.12+LB_COUNT_RUNNABLE+LB_ELIGIBLE_FIRST+NO_NI_RANDOM+NO_FORK_STATS_ALLOWED+NO_SMT_LEVEL_ALWAYS\
         +DOMAIN_FLAGS=plain+PROTECTION=min_slice+WAKEUP_PREEMPT=pick_unprotected+REWEIGHT=placed\
         +AVG_REFERENCE=min_vruntime+YIELD=deadline+PIPE_WAKE=one_if_freed+TWO_SPARE_PAGES\
         +ASYM_GROUPS=destination",
    ),
    // 6.18.15.
    (
        "v6.18",
        "v6.17+NI_RANDOM+SERIALIZE_INSIDE+BANDWIDTH_PER_TASK+AVG_REFERENCE=zero_vruntime+YIELD=request",
    ),
    // 6.19.6.
    ("v6.19", "v6.18+FORK_STATS_ALLOWED+BUDDY_PICK=in_pick+WAKEUP_PREEMPT=pick_or_lower"),
    // 7.1.13.
    (
        "v7.1",
        "v7.2+NO_SCHED_CACHE+NO_WAKE_CPU_FIXUP+IMB_NUMA_NR=node_eighth+ASYM_FITS=uclamp+TG_LOAD_CLOCK=cpu_clock\
         +BALANCE_FAIR=no_fair",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernel;

    #[test]
    fn each_part_changes_what_the_kernel_was() {
        for (name, made_of) in BETWEEN {
            let mut parts = made_of.split('+');
            let mut kernel = Kernel::parse(parts.next().unwrap()).unwrap();
            for part in parts {
                assert!(kernel.is_turned_by(part), "{name}: {part}");
                kernel.switch(part).unwrap();
            }
            let parsed = Kernel::parse(name).unwrap();
            assert_eq!((parsed.rules, parsed.features), (kernel.rules, kernel.features), "{name}");
            assert_eq!(parsed.name, name);
        }
    }
}
