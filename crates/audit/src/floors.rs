//! Virtual times that the kernel tells, and the floors of queues that follow from them.
//!
//! Up to v6.8 `sched_stat_runtime` says to which virtual time the task that it charges has come. It is the queue's own
//! clock, which began long before the recording, so the first that is told of a queue brings all of it there. What
//! was told is exact. Those who wait are known by the floor of their queue, which is known once one is told that was
//! put there by it: a new task, or one that slept for long.

use schedlab_sched::{CfsRqId, Feature, MIN_VRUNTIME_START, SeId};
use schedlab_units::TaskId;

use crate::shadow::Shadow;

/// How far what follows from a floor may be from what is told, ns: what is charged before the first charge that is told goes by
/// the times of events.
const ROUNDED: u64 = 20_000;

impl Shadow {
    /// A task that was charged has come to a virtual time.
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
                |shadow: &Shadow, se: SeId| se.is_task() && shadow.known(TaskId(se.0)).told_on == Some(cfs);
            let stay: Vec<SeId> = self.sched.members(cfs).filter(|&se| told(self, se)).collect();
            self.sched.shift_virtual_times(cfs, off, &stay);
        } else if off != 0 {
            self.sched.set_virtual_time(se, vruntime, deadline);
        }
        if by_floor {
            self.floors_told.insert(cfs, self.sched.cfs(cfs).min_vruntime);
        } else if is_first {
            // Who runs was put no farther before the floor than sleepers are.
            self.floors_told.insert(cfs, vruntime.wrapping_add(self.sleepers_credit()));
        }
        let known = self.known_mut(task);
        (known.vruntime_error, known.told_on) = (0, Some(cfs));
    }

    /// How much later than here the floor of a queue may be of which virtual times are told: by nothing once those who
    /// run have come to the latest that it can have been.
    pub fn floor_error(&self, cfs: CfsRqId) -> u64 {
        let latest = self.floors_told.get(&cfs);
        latest
            .map_or(0, |latest| (latest.wrapping_sub(self.sched.cfs(cfs).min_vruntime) as i64).max(0) as u64)
    }

    /// How much later than by the floor a task may be placed that fell asleep before the recording: it was not further
    /// behind the floor than the targeted latency, and that has gone on since. On a CPU that idled when the recording began
    /// it is taken to have slept for long.
    pub fn later_than_floor(&self, cfs: CfsRqId) -> u64 {
        let queue = self.sched.cfs(cfs);
        if !self.began_busy[queue.cpu] {
            return 0;
        }
        let gone_on = queue.min_vruntime.wrapping_sub(MIN_VRUNTIME_START);
        (self.sleepers_credit() + self.sched.scaled.latency).saturating_sub(gone_on)
    }

    /// How far before the floor of a queue sleepers are put at most.
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

    /// A task that runs, which the floor did not place.
    fn runs() -> (Shadow, TaskId) {
        let (mut shadow, task) = Shadow::with_one("v6.1", Time(1_000_000_000));
        shadow.known_mut(task).by_floor = false;
        (shadow, task)
    }

    fn floor(shadow: &Shadow) -> u64 {
        shadow.sched.root_cfs(CpuId(0)).min_vruntime
    }

    #[test]
    fn the_first_that_is_told_brings_the_queue_there_and_later_ones_the_task_alone() {
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
    fn a_floor_is_known_once_one_is_told_whom_it_has_placed() {
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
