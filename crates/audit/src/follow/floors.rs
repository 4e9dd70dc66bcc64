//! Virtual times that the recording contains, and the queue floors that follow from them.
//!
//! Up to v6.8 `sched_stat_runtime` contains the virtual time of the task that it charges. It is relative to the queue's
//! own clock, which began long before the recording, so the first value for a queue shifts the whole queue to it.
//! Recorded values are exact. The virtual times of waiting tasks follow from the floor of their queue. The floor is
//! known once a value is recorded for a task that was placed at the floor: a new task, or one that slept for long.

use schedlab_sched::{CfsRqId, Feature, MIN_VRUNTIME_START, SeId};
use schedlab_units::TaskId;

use crate::follow::shadow::Shadow;
use crate::follow::watch::Watch;

/// How far values derived from a floor may be off, ns: before a task's first recorded charge, its time is computed from
/// event times.
const ROUNDED: u64 = 20_000;

impl<W: Watch> Shadow<W> {
    /// A charge shows the virtual time that a task has reached.
    pub fn come_to(&mut self, task: TaskId, vruntime: u64) {
        let se = SeId(task.0);
        let cfs = self.sched.cfs_rq_of(se);
        let entity = self.sched.se(se);
        let off = vruntime.wrapping_sub(entity.vruntime);
        let deadline = entity.deadline.wrapping_add(off);
        let known = self.known(task);
        let by_floor = known.by_floor && known.told_on != Some(cfs);
        let is_first = !self.floors_told.contains_key(&cfs);
        if is_first || by_floor && (off as i64).unsigned_abs() > ROUNDED {
            let told =
                |shadow: &Self, se: SeId| se.is_task() && shadow.known(TaskId(se.0)).told_on == Some(cfs);
            let stay: Vec<SeId> = self.sched.members(cfs).filter(|&se| told(self, se)).collect();
            self.sched.shift_virtual_times(cfs, off, &stay);
        } else if off != 0 {
            self.sched.set_virtual_time(se, vruntime, deadline);
        }
        if by_floor {
            self.floors_told.insert(cfs, self.sched.cfs(cfs).min_vruntime);
        } else if is_first {
            // The running task was placed at most the sleepers' credit before the floor.
            self.floors_told.insert(cfs, vruntime.wrapping_add(self.sleepers_credit()));
        }
        let known = self.known_mut(task);
        (known.vruntime_error, known.told_on) = (0, Some(cfs));
    }

    /// How much later than ours the floor of a queue may be, if its virtual times are recorded. The error is zero once
    /// the running tasks have reached the latest value that the floor can have.
    pub fn floor_error(&self, cfs: CfsRqId) -> u64 {
        let latest = self.floors_told.get(&cfs);
        latest
            .map_or(0, |latest| (latest.wrapping_sub(self.sched.cfs(cfs).min_vruntime) as i64).max(0) as u64)
    }

    /// How much later than the floor says a task may be placed if it fell asleep before the recording. It was at most
    /// the targeted latency behind the floor, and the floor has advanced since. On a CPU that was idle at the start the
    /// task is assumed to have slept for long.
    pub fn later_than_floor(&self, cfs: CfsRqId) -> u64 {
        let queue = self.sched.cfs(cfs);
        if !self.began_busy[queue.cpu] {
            return 0;
        }
        let gone_on = queue.min_vruntime.wrapping_sub(MIN_VRUNTIME_START);
        (self.sleepers_credit() + self.sched.scaled.latency).saturating_sub(gone_on)
    }

    /// How far before the floor of a queue sleepers are placed at most.
    ///
    /// Kernel: place_entity(), kernel/sched/fair.c, v6.1.
    pub fn sleepers_credit(&self) -> u64 {
        self.sched.scaled.latency >> u32::from(self.sched.kernel.has(Feature::GentleFairSleepers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    /// A running task that was not placed at the floor.
    fn runs() -> (Shadow, TaskId) {
        let (mut shadow, task) = <Shadow>::with_one("v6.1", Time(1_000_000_000));
        shadow.known_mut(task).by_floor = false;
        (shadow, task)
    }

    fn floor(shadow: &Shadow) -> u64 {
        shadow.sched.root_cfs(CpuId(0)).min_vruntime
    }

    #[test]
    fn the_first_recorded_time_shifts_the_queue_and_later_ones_only_the_task() {
        let (mut shadow, task) = runs();
        let lead = floor(&shadow).wrapping_sub(shadow.sched.task(task).se.vruntime);
        shadow.come_to(task, 7_000_000_000);
        let first = floor(&shadow);
        assert_eq!(first.wrapping_sub(7_000_000_000), lead);
        shadow.come_to(task, 7_001_000_000);
        assert_eq!(shadow.sched.task(task).se.vruntime, 7_001_000_000);
        assert_eq!(floor(&shadow), first);
    }

    #[test]
    fn a_floor_is_known_once_a_task_placed_by_it_is_recorded() {
        let (mut shadow, task) = runs();
        let cfs = shadow.sched.root_cfs_id(CpuId(0));
        shadow.come_to(task, 7_000_000_000);
        let lead = floor(&shadow).wrapping_sub(7_000_000_000);
        assert_eq!(shadow.floor_error(cfs), shadow.sleepers_credit().saturating_sub(lead));
        let before = floor(&shadow);
        let known = shadow.known_mut(task);
        (known.by_floor, known.told_on) = (true, None);
        shadow.come_to(task, 6_990_000_000);
        assert_eq!(before - floor(&shadow), 10_000_000, "the floor is earlier by as much");
        assert_eq!(shadow.floor_error(cfs), 0);
    }
}
