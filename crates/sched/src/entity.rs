//! A queued entity: a task, or a group's representative on one CPU.

use crate::{CfsRqId, FairPolicy, Rules};

/// A scheduling entity. Ids below [`SeId::GROUP`] are tasks with the same
/// `TaskId`; the others are the group entities of [`crate::Sched::group_ses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeId(pub u32);

impl SeId {
    /// The bit that marks a group entity.
    pub const GROUP: u32 = 1 << 31;

    /// Whether the entity is a task.
    #[inline]
    pub fn is_task(self) -> bool {
        self.0 & SeId::GROUP == 0
    }
}

/// A weight with its cached inverse, as `struct load_weight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadWeight {
    /// Weight, scaled up by 2^10.
    pub weight: u64,
    /// 2^32 over the unscaled weight, or 0 when not computed yet.
    pub inv_weight: u32,
}

/// Decaying averages of an entity or a run queue, as `struct sched_avg`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedAvg {
    /// Average load.
    pub load_avg: u64,
    /// Average number of runnable tasks times 1024.
    pub runnable_avg: u64,
    /// Average utilisation, 0..=1024.
    pub util_avg: u64,
    /// Clock of the last update, ns, a multiple of 1024 from the first.
    pub last_update_time: u64,
    /// Sum of load contributions.
    pub load_sum: u64,
    /// Sum of runnable contributions, shifted left by 10.
    pub runnable_sum: u64,
    /// Sum of running contributions, shifted left by 10.
    pub util_sum: u64,
    /// Part of the current period already counted, 0..1024 units of 1024 ns.
    pub period_contrib: u32,
    /// v4.13 only: queued-only load of a run queue, sum and average.
    pub runnable_load_sum: u64,
    /// v4.13 only: average of the above ("weighted_cpuload").
    pub runnable_load_avg: u64,
}

impl Entity {
    /// The weight with which it competes.
    #[inline]
    pub(crate) fn line_load(&self) -> &LoadWeight {
        self.h_load.as_ref().unwrap_or(&self.load)
    }

    /// The key by which queued entities are ordered.
    #[inline]
    pub(crate) fn key(&self, rules: &Rules) -> u64 {
        match rules.policy {
            FairPolicy::Cfs => self.vruntime,
            FairPolicy::Eevdf => self.deadline,
        }
    }
}

/// A scheduling entity, as `struct sched_entity`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entity {
    /// Weight in its queue.
    pub load: LoadWeight,
    /// Under FLAT_GROUPS a task's weight in the time line, if it differs from `load`.
    pub h_load: Option<LoadWeight>,
    /// Queued, or current and not put to sleep.
    pub on_rq: bool,
    /// Asleep but still queued until its lag is used up (delayed dequeue).
    pub sched_delayed: bool,
    /// `deadline` is relative to `vruntime` while not queued.
    pub rel_deadline: bool,
    /// The task set its own slice.
    pub custom_slice: bool,
    /// Group entity of an idle group, or SCHED_IDLE task.
    pub idle: bool,
    /// Clock (clock_task) from which the next charge counts.
    pub exec_start: u64,
    /// Total run time, ns.
    pub sum_exec_runtime: u64,
    /// `sum_exec_runtime` when it was last picked.
    pub prev_sum_exec_runtime: u64,
    /// Virtual run time; wraps.
    pub vruntime: u64,
    /// EEVDF: virtual deadline.
    pub deadline: u64,
    /// EEVDF: lag when last dequeued; v6.10/6.12: protection mark while running.
    pub vlag: i64,
    /// EEVDF: request size, ns.
    pub slice: u64,
    /// v7.2: protected from preemption until this vruntime.
    pub vprot: u64,
    /// Averages.
    pub avg: SchedAvg,
    /// `avg.util_avg` has changed since the task's last estimate.
    pub util_avg_changed: bool,
    /// Group entity one level up.
    pub parent: Option<SeId>,
    /// Queue it is (or would be) on.
    pub cfs_rq: Option<CfsRqId>,
    /// For a group entity: the queue it represents.
    pub my_q: Option<CfsRqId>,
    /// Number of levels above it.
    pub depth: u8,
    /// Group entity: number of runnable tasks below, the PELT runnable input.
    pub runnable_weight: u64,
}
