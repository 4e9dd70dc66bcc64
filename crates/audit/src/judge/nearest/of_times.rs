//! What would have led to the kernel's choice where virtual times decide: which task runs next, and whether a task is
//! preempted.
//!
//! Each time of the two compared entities is moved alone, by the smallest amount that changes the answer.

use schedlab_sched::{CfsRqId, Curr, FairPolicy, Feature, SeId, wf};
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use super::least::least;
use crate::judge::Audit;
use crate::report::listener::Listener;
use crate::unknown::Shadow;
use crate::unknown::otherwise::Shifted;
use crate::unknown::otherwise::{Fact, Nearest, Otherwise};

/// Two siblings in a queue, and the question about them.
struct Siblings<'a> {
    cfs: CfsRqId,
    two: [SeId; 2],
    /// Whether our rules lead to what the kernel did.
    agrees: &'a dyn Fn(&Shadow) -> bool,
}

impl<S: Listener> Audit<S> {
    /// The nearest fact by which `chosen` comes before `ours`, as in the kernel's pick.
    pub(crate) fn nearest_of_pick(
        &mut self,
        cpu: CpuId,
        ours: Curr,
        chosen: Curr,
        now: Time,
    ) -> Option<Nearest> {
        let (Curr::Task(ours), Curr::Task(chosen)) = (ours, chosen) else { return None };
        let sched = &self.shadow.sched;
        let waits = |task| sched.task(task).on_rq && sched.task(task).cpu == cpu;
        let fair = |task| sched.task(task).policy.is_fair();
        if ours == chosen || ![ours, chosen].into_iter().all(|task| waits(task) && fair(task)) {
            return None;
        }
        let (one, two) = sched.find_matching_se(SeId(ours.0), SeId(chosen.0));
        let cfs = sched.cfs_rq_of(one);
        let cfs_policy = sched.kernel.rules.policy == FairPolicy::Cfs;
        let agrees = |shadow: &Shadow| {
            let sched = &shadow.sched;
            let curr = sched.cfs(cfs).curr.filter(|&curr| sched.se(curr).on_rq);
            let (picked, _) = if cfs_policy { sched.pick_cfs(cfs, curr) } else { sched.pick_eevdf_next(cfs) };
            picked == two
        };
        let siblings = Siblings { cfs, two: [one, two], agrees: &agrees };
        siblings.nearest(&mut self.shadow, cpu, now)
    }

    /// The nearest fact by which an arriving task preempts the running one, or does not.
    pub(crate) fn nearest_of_answer(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        asked: bool,
        now: Time,
    ) -> Option<Nearest> {
        let Curr::Task(curr) = self.shadow.sched.rqs[cpu].curr else { return None };
        let entry = self.shadow.sched.task(task);
        if curr == task || !entry.on_rq || entry.cpu != cpu {
            return None;
        }
        let sched = &self.shadow.sched;
        let (one, two) = sched.find_matching_se(SeId(curr.0), SeId(task.0));
        let cfs = sched.cfs_rq_of(one);
        let flags = [wf::TTWU, wf::TTWU | wf::SYNC];
        let flags = if sched.kernel.has(Feature::NextBuddy) { &flags[..] } else { &flags[..1] };
        let agrees = |shadow: &Shadow| {
            flags.iter().any(|&flags| shadow.sched.check_preempt(cpu, task, flags).preempt == asked)
        };
        let pending = std::mem::take(&mut self.shadow.sched.rqs[cpu].need_resched);
        let siblings = Siblings { cfs, two: [one, two], agrees: &agrees };
        let found = siblings.nearest(&mut self.shadow, cpu, now);
        self.shadow.sched.rqs[cpu].need_resched = pending;
        found
    }
}

impl Siblings<'_> {
    fn nearest(&self, shadow: &mut Shadow, cpu: CpuId, now: Time) -> Option<Nearest> {
        // An entity that is moved and moved back lands behind others with its deadline, so the order is restored
        // afterwards.
        let order = shadow.sched.cfs(self.cfs).timeline.clone();
        let moved = self.least_move(shadow);
        shadow.sched.cfs_mut(self.cfs).timeline = order;
        let plain = self.plain(shadow, cpu, now);
        let found = plain.into_iter().chain(moved).min_by_key(Otherwise::distance);
        found.map(Nearest::alone)
    }

    /// The time that has to be moved least.
    fn least_move(&self, shadow: &mut Shadow) -> Option<Otherwise> {
        let eevdf = shadow.sched.kernel.rules.policy == FairPolicy::Eevdf;
        let error = self.two.map(|se| shadow.error_of(se)).iter().sum::<u64>();
        let curr = shadow.sched.cfs(self.cfs).curr;
        let kinds: &[fn(Shifted) -> Fact] =
            if eevdf { &[Fact::Vruntime, Fact::Placed, Fact::Deadline] } else { &[Fact::Vruntime] };
        let mut best: Option<(u64, Fact)> = None;
        let mut keep = |by: Option<u64>, fact| {
            if let Some(by) = by
                && best.is_none_or(|(least, _)| by < least)
            {
                best = Some((by, fact));
            }
        };
        for earlier in [true, false] {
            for se in self.two {
                let pid = se.is_task().then(|| shadow.known(TaskId(se.0)).pid);
                // The running task was placed long ago, and its protection depends on its deadline.
                let kinds = if curr == Some(se) { &kinds[..1] } else { kinds };
                for kind in kinds {
                    let fact = kind(Shifted { pid, earlier });
                    keep(least(|by| self.agrees_if(shadow, se, fact, signed(by, earlier))), fact);
                }
            }
            let queue = shadow.sched.cfs(self.cfs).timeline.entries().iter().map(|entry| entry.se);
            let others: Vec<(SeId, i64)> =
                queue.filter(|se| !self.two.contains(se)).map(|se| (se, signed(1, earlier))).collect();
            if eevdf && !others.is_empty() {
                keep(least(|by| self.agrees_beside(shadow, &others, by as i64)), Fact::Average { earlier });
            }
        }
        best.map(|(by, fact)| Otherwise::by(fact, by, error))
    }

    fn agrees_if(&self, shadow: &mut Shadow, se: SeId, fact: Fact, by: i64) -> bool {
        let (vruntime, deadline) = match fact {
            Fact::Placed(_) => (by, by),
            Fact::Deadline(_) => (0, by),
            _ => (by, 0),
        };
        shift(shadow, se, vruntime, deadline);
        let agrees = (self.agrees)(shadow);
        shift(shadow, se, -vruntime, -deadline);
        agrees
    }

    /// Whether our rules agree when others are later or earlier by `by`.
    fn agrees_beside(&self, shadow: &mut Shadow, others: &[(SeId, i64)], by: i64) -> bool {
        shadow.sched.shift_vruntimes(self.cfs, others, by);
        let agrees = (self.agrees)(shadow);
        shadow.sched.shift_vruntimes(self.cfs, others, -by);
        agrees
    }

    /// Facts without a size that lead to the kernel's choice.
    fn plain(&self, shadow: &mut Shadow, cpu: CpuId, now: Time) -> Option<Otherwise> {
        if shadow.sched.kernel.rules.policy == FairPolicy::Cfs {
            return None;
        }
        let one = self.two[0];
        if shadow.sched.cfs(self.cfs).curr == Some(one) {
            let (rules, before) = (shadow.sched.kernel.rules, shadow.sched.se(one).clone());
            shadow.sched.se_mut(one).cancel_protection(&rules);
            let leads = (self.agrees)(shadow);
            *shadow.sched.se_mut(one) = before;
            if leads {
                return Some(Otherwise::plain(Fact::Unprotected));
            }
        }
        let sleepers = shadow.doubtful_sleepers(|on| on == cpu);
        if sleepers.is_empty() {
            return None;
        }
        let before = shadow.sched.clone();
        let sleepers = sleepers.into_iter();
        sleepers.filter(|(task, _)| !self.two.contains(&SeId(task.0))).find_map(|(task, queued)| {
            shadow.turn_sleeper(task, now);
            let leads = (self.agrees)(shadow);
            shadow.sched.clone_from(&before);
            let fact = Fact::Sleeper { pid: shadow.known(task).pid, queued: !queued };
            leads.then(|| Otherwise::plain(fact))
        })
    }
}

fn signed(by: u64, earlier: bool) -> i64 {
    if earlier { -(by as i64) } else { by as i64 }
}

/// Moves an entity's virtual time and its deadline.
fn shift(shadow: &mut Shadow, se: SeId, vruntime: i64, deadline: i64) {
    let entity = shadow.sched.se(se);
    let vruntime = entity.vruntime.wrapping_add(vruntime as u64);
    let deadline = entity.deadline.wrapping_add(deadline as u64);
    shadow.sched.set_virtual_time(se, vruntime, deadline);
}
