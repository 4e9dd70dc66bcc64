//! Invariants of averages.

use alloc::format;
use alloc::string::String;

use super::{differ, name};
use crate::pelt::LOAD_AVG_MAX;
use crate::{Feature, PeltClock, PeltSums, Sched, SchedAvg, Task, TgId};

/// All averages with the names of their places.
fn averages(sched: &Sched) -> impl Iterator<Item = (String, &SchedAvg)> {
    let queues = sched.queues().map(|(id, queue)| (name(id, queue), &queue.avg));
    let tasks = fair_tasks(sched).map(|(n, task)| (format!("task {n}"), &task.se.avg));
    let groups = sched.group_ses.iter().enumerate().map(|(n, se)| (format!("group entity {n}"), &se.avg));
    queues.chain(tasks).chain(groups)
}

/// Tasks that queues count. Others have a time only for a later return to the fair class.
fn fair_tasks(sched: &Sched) -> impl Iterator<Item = (usize, &Task)> {
    sched.tasks.iter().enumerate().filter(|(_, task)| task.policy.is_fair())
}

/// The limit of the series without truncation at every step, as in sums that are scaled up by
/// 1024. [`LOAD_AVG_MAX`] is the limit with truncation.
const UNCUT_MAX: u64 = 47_789;

/// The kernel warns about it in cfs_rq_is_decayed(), since it has floors for sums. Before, subtracting
/// rounded values could lose a sum.
pub(super) fn sums(sched: &Sched) -> Option<String> {
    averages(sched)
        .filter(|_| !matches!(sched.kernel.rules.pelt_sums, PeltSums::Plain | PeltSums::Synced))
        .find_map(|(place, avg)| {
            let attached = avg.last_update_time != 0;
            let lost =
                attached && avg.is_decayed() && (avg.load_avg, avg.util_avg, avg.runnable_avg) != (0, 0, 0);
            lost.then(|| format!("{place} has {avg:?}"))
        })
}

pub(super) fn own_sums(sched: &Sched) -> Option<String> {
    let weighs = sched.kernel.rules.pelt == PeltClock::InContribution;
    sched.tasks.iter().enumerate().find_map(|(n, task)| {
        let avg = &task.se.avg;
        // A task that comes from another class keeps its load: with a smaller weight now, its sum is the larger.
        let load = weighs || avg.load_sum <= LOAD_AVG_MAX * (avg.load_avg + 1);
        let scaled = avg.runnable_sum.max(avg.util_sum) <= UNCUT_MAX << 10;
        let whole = load && scaled && avg.runnable_avg.max(avg.util_avg) <= 1025;
        (!whole).then(|| format!("task {n} has {avg:?}"))
    })
}

pub(super) fn update_times(sched: &Sched) -> Option<String> {
    fair_tasks(sched).find_map(|(n, task)| {
        if sched.is_flat() && task.tg != TgId::ROOT {
            // Its dequeue may have been delayed: it was decayed by the clock of the root's queue when it woke.
            return None;
        }
        let queue = sched.cfs(task.se.cfs_rq?);
        let (own, of_queue) = (task.se.avg.last_update_time, queue.avg.last_update_time);
        (own > of_queue).then(|| format!("task {n} at {own}, its queue at {of_queue}"))
    })
}

pub(super) fn tg_load_avg(sched: &Sched) -> Option<String> {
    sched.tgs.iter().enumerate().find_map(|(n, group)| {
        let parts = sched.queues_of(TgId(n as u32)).map(|cfs| sched.cfs(cfs).tg_load_avg_contrib as i64);
        differ(format!("group {n}"), group.load_avg.iter().sum::<i64>(), parts.sum::<i64>())
    })
}

pub(super) fn util_est(sched: &Sched) -> Option<String> {
    sched.rqs.iter().find_map(|(cpu, rq)| {
        let queued = sched.cfs_tasks(cpu).map(|id| sched.task(id)).filter(|task| !task.se.sched_delayed);
        let sum: u32 = queued.map(|task| task.estimate(sched.kernel.rules.util_est_form)).sum();
        let sum = if sched.kernel.has(Feature::UtilEst) { sum } else { 0 };
        let less = sched.kernel.has(Feature::UtilEstTwice);
        let sum = if less { sum.min(rq.util_est_enqueued) } else { sum };
        differ(format!("cpu {cpu}"), rq.util_est_enqueued, sum)
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::check::tests::broken;
    use crate::{NICE_0_LOAD, TgId};

    #[test]
    fn each_is_noticed() {
        let root = |sched: &mut crate::Sched| sched.root_cfs_id(CpuId(0));
        expect!["an average is nothing when its sums are"].assert_eq(&broken(|sched| {
            let cfs = root(sched);
            let avg = &mut sched.cfs_mut(cfs).avg;
            (avg.load_sum, avg.runnable_sum, avg.util_sum, avg.load_avg) = (0, 0, 0, 1);
            avg.last_update_time = 1;
        }));
        expect!["a task's sums are at most those of one that always ran"]
            .assert_eq(&broken(|sched| sched.tasks[0].se.avg.util_sum = 47_790 << 10));
        expect!["a task is not aged beyond its queue"].assert_eq(&broken(|sched| {
            sched.tasks[0].se.avg.last_update_time = u64::MAX;
        }));
        expect!["a group's load is the sum of what its CPUs wrote"].assert_eq(&broken(|sched| {
            let tg = sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), crate::drawing::NOW);
            sched.tgs[tg.0 as usize].load_avg[0] = 1;
        }));
        expect!["the estimate of a CPU is the sum of its tasks', or less if sleepers leave it twice"]
            .assert_eq(&broken(|sched| sched.rqs[CpuId(0)].util_est_enqueued += 1));
    }
}
