//! How busy a group of CPUs is: a type, ordered by the need to move load away.
//!
//! Fork placement and balancing classify groups in the same way, each from its own statistics. The order of
//! the types is the order of pulling: only groups of the same type are compared by numbers.

use crate::group_sums::CpuStats;
use crate::{Feature, Features};

/// How busy a group is, from least to most in need of help.
///
/// Kernel: enum group_type, kernel/sched/fair.c, v7.2; earlier kernels have fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupType {
    /// Capacity is left for more tasks.
    #[default]
    HasSpare,
    /// Fully used; tasks do not compete.
    FullyBusy,
    /// A task is too large for its CPU, or its CPU lost much capacity.
    MisfitTask,
    /// v6.5 on: a core with several busy threads, which an idle core could relieve.
    SmtBalance,
    /// A CPU of higher priority could run its tasks.
    AsymPacking,
    /// Affinity kept an earlier pass from balancing.
    Imbalanced,
    /// v7.2: tasks here prefer the destination's last-level cache.
    LlcBalance,
    /// More tasks than capacity.
    Overloaded,
}

impl GroupType {
    /// Its name in explanations.
    pub fn name(self) -> &'static str {
        match self {
            GroupType::HasSpare => "has_spare",
            GroupType::FullyBusy => "fully_busy",
            GroupType::MisfitTask => "misfit_task",
            GroupType::SmtBalance => "smt_balance",
            GroupType::AsymPacking => "asym_packing",
            GroupType::Imbalanced => "imbalanced",
            GroupType::LlcBalance => "llc_balance",
            GroupType::Overloaded => "overloaded",
        }
    }
}

/// Statistics of a group, as `struct sg_lb_stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SgLbStats {
    /// Load per capacity of 1024; computed only where it is compared.
    pub avg_load: u64,
    /// Load of all CPUs.
    pub group_load: u64,
    /// Capacity of all CPUs.
    pub group_capacity: u64,
    /// Utilisation of all CPUs.
    pub group_util: u64,
    /// Runnable time of all CPUs.
    pub group_runnable: u64,
    /// Tasks of all classes.
    pub sum_nr_running: u32,
    /// Fair tasks.
    pub sum_h_nr_running: u32,
    /// CPUs that are idle.
    pub idle_cpus: u32,
    /// CPUs.
    pub group_weight: u32,
    /// How busy it is.
    pub group_type: GroupType,
    /// The destination is preferred to this group.
    pub group_asym_packing: bool,
    /// Several threads of a core are busy.
    pub group_smt_balance: bool,
    /// Tasks prefer the destination's last-level cache.
    pub group_llc_balance: bool,
    /// Largest load of a task that does not fit its CPU.
    pub group_misfit_task_load: u64,
    /// Tasks that prefer the destination's last-level cache.
    pub nr_pref_dst_llc: u32,
}

impl SgLbStats {
    /// Sets the sums over the CPUs; fair tasks as balancing counts them.
    #[inline]
    pub(crate) fn set_sums(&mut self, sums: &CpuStats) {
        self.group_load = sums.load;
        self.group_util = sums.util;
        self.group_runnable = sums.runnable;
        self.sum_nr_running = sums.nr_running;
        self.sum_h_nr_running = sums.h_nr_running;
        self.idle_cpus = sums.idle;
    }

    /// Classifies a group; `imbalanced` is the flag an earlier pass left.
    ///
    /// Kernel: group_classify(), kernel/sched/fair.c, v7.2, v6.12 and v5.5.
    #[inline]
    pub fn classify(&self, features: Features, imbalance_pct: u32, imbalanced: bool) -> GroupType {
        if self.is_overloaded(features, imbalance_pct) {
            GroupType::Overloaded
        } else if self.group_llc_balance {
            GroupType::LlcBalance
        } else if imbalanced {
            GroupType::Imbalanced
        } else if self.group_asym_packing {
            GroupType::AsymPacking
        } else if self.group_smt_balance {
            GroupType::SmtBalance
        } else if self.group_misfit_task_load != 0 {
            GroupType::MisfitTask
        } else if self.has_capacity(features, imbalance_pct) {
            GroupType::HasSpare
        } else {
            GroupType::FullyBusy
        }
    }

    /// Whether tasks could be added: fewer than CPUs, or capacity to spare.
    ///
    /// Kernel: group_has_capacity(), kernel/sched/fair.c, v6.12, v5.5 and v4.13.
    #[inline]
    pub fn has_capacity(&self, features: Features, imbalance_pct: u32) -> bool {
        self.sum_nr_running < self.group_weight
            || !self.runnable_exceeds(features, imbalance_pct)
                && self.group_capacity * 100 > self.group_util * u64::from(imbalance_pct)
    }

    /// Whether there are more tasks than CPUs, and they need more than the capacity.
    ///
    /// Kernel: group_is_overloaded(), kernel/sched/fair.c, v6.12, v5.5 and v4.13.
    #[inline]
    pub fn is_overloaded(&self, features: Features, imbalance_pct: u32) -> bool {
        self.sum_nr_running > self.group_weight
            && (self.group_capacity * 100 < self.group_util * u64::from(imbalance_pct)
                || self.runnable_exceeds(features, imbalance_pct))
    }

    /// Tasks had to wait for much of their runnable time.
    #[inline]
    fn runnable_exceeds(&self, features: Features, imbalance_pct: u32) -> bool {
        features.has(Feature::GroupRunnable)
            && self.group_capacity * u64::from(imbalance_pct) < self.group_runnable * 100
    }

    /// Load per capacity.
    pub fn load_per_capacity(&self) -> u64 {
        self.group_load * 1024 / self.group_capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernel;

    /// A group of 4 CPUs, capacity 4096, imbalance_pct 117, with tasks, utilisation and runnable time.
    fn check(kernel: &str, tasks: u32, util: u64, runnable: u64, expected: GroupType) {
        let stats = SgLbStats {
            sum_nr_running: tasks,
            group_util: util,
            group_runnable: runnable,
            group_weight: 4,
            group_capacity: 4096,
            ..SgLbStats::default()
        };
        let features = Kernel::parse(kernel).unwrap().features;
        assert_eq!(stats.classify(features, 117, false), expected, "{kernel} {tasks} {util} {runnable}");
    }

    #[test]
    fn a_group_is_full_by_tasks_and_by_use() {
        check("v5.5", 3, 4096, 0, GroupType::HasSpare);
        check("v5.5", 4, 3500, 0, GroupType::HasSpare);
        check("v5.5", 4, 3501, 0, GroupType::FullyBusy);
        check("v5.5", 5, 3500, 0, GroupType::HasSpare);
        check("v5.5", 5, 3501, 0, GroupType::Overloaded);
    }

    #[test]
    fn waiting_counts_where_runnable_time_does() {
        check("v5.5", 5, 1000, 4793, GroupType::HasSpare);
        check("v5.18", 5, 1000, 4792, GroupType::HasSpare);
        check("v5.18", 5, 1000, 4793, GroupType::Overloaded);
        check("v5.18", 4, 1000, 4793, GroupType::FullyBusy);
        check("v5.18+NO_GROUP_RUNNABLE", 5, 1000, 4793, GroupType::HasSpare);
    }

    #[test]
    fn what_a_group_asks_for_is_ranked() {
        let all = SgLbStats {
            sum_nr_running: 5,
            group_weight: 4,
            group_capacity: 4096,
            group_asym_packing: true,
            group_smt_balance: true,
            group_llc_balance: true,
            group_misfit_task_load: 1,
            ..SgLbStats::default()
        };
        let features = Kernel::preset(7).features;
        let without: [fn(&mut SgLbStats); 4] = [
            |s| s.group_llc_balance = false,
            |s| s.group_asym_packing = false,
            |s| s.group_smt_balance = false,
            |s| s.group_misfit_task_load = 0,
        ];
        let mut stats = SgLbStats { group_util: 9999, ..all };
        let mut found = alloc::vec![stats.classify(features, 117, true)];
        stats.group_util = 0;
        found.push(stats.classify(features, 117, true));
        without[0](&mut stats);
        found.push(stats.classify(features, 117, true));
        for drop in &without[1..] {
            found.push(stats.classify(features, 117, false));
            drop(&mut stats);
        }
        found.push(stats.classify(features, 117, false));
        use GroupType::*;
        assert_eq!(
            found,
            [Overloaded, LlcBalance, Imbalanced, AsymPacking, SmtBalance, MisfitTask, HasSpare]
        );
        assert!(found.windows(2).all(|pair| pair[0] > pair[1]));
    }
}
