//! Whether the running task has to make way: for one that arrives, or because its turn is over.
//!
//! The kernel answers a wake-up by setting a bit of the running task, or not. Events show the
//! bit of the CPU that they happen on, so where a wake-up ends on the target itself the answer
//! stands in its own event. Otherwise it is in the next event of the target: a bit in its
//! flags, or a switch away from a task that could go on. A task that goes to sleep first does
//! not show it. A switch for which no wake-up asked was asked for by a tick or timer.

use schedlab_sched::{
    Curr, FairPolicy, Feature, PreemptDecision, Protection, Reason, SeId, calc_delta_fair, wf,
};
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Flags, Kind};
use schedlab_units::{Duration, Pid, TaskId, Time};

use crate::arrival::{is_by_time, learn, possible};
use crate::audit::Audit;
use crate::listener::Listener;
use crate::nearest::Nearest;
use crate::shadow::Shadow;
use crate::verdict::{Answer, Choice, Decision, Hidden, Possible, Verdict};

/// A task that moved to a control group says so within this time.
const GROUP_PATIENCE: Duration = Duration::millis(1);

/// What a CPU was asked and has not shown yet.
#[derive(Debug, Default)]
pub struct Asked {
    verdicts: Vec<Question>,
    /// Somebody asked the running task to make way, and it is known that it was told to.
    told: bool,
    /// An event has shown that the running task is to make way, so what is asked from now on does not show.
    pending: bool,
    /// Its task was woken while it ran: it meant to sleep, and calls the scheduler of itself.
    meant_to_sleep: bool,
    /// Somebody was moved there who may have asked.
    moved_there: bool,
}

/// Whether somebody who arrived has the running task make way.
#[derive(Debug)]
struct Question {
    verdict: Verdict,
    /// Who arrived, and what our answer was, if it was by virtual times.
    by: Option<(TaskId, bool)>,
    /// If our answer was that the turn of the running task was over: by how much at least, and its error, ns.
    over: Option<(u64, u64)>,
}

/// Who ran on a CPU before a task was queued there, if it may be asked to make way.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    pub curr: TaskId,
    pub at: CpuId,
    /// How long it has run.
    ran: u64,
    /// How far the end of its turn is at least.
    left: i64,
}

/// A task that was moved to where another runs.
pub struct Arrived {
    /// Who ran there.
    pub before: Before,
    /// Who came.
    pub task: TaskId,
    /// What we decide.
    pub decided: PreemptDecision,
}

/// The running task of a CPU where another is about to be queued. None where there is nothing
/// to decide: the CPU is idle, its task makes way already, or is of a class of its own.
pub fn before(shadow: &Shadow, at: CpuId, task: TaskId) -> Option<Before> {
    let Curr::Task(curr) = shadow.sched.rqs[at].curr else { return None };
    let fair = |task| shadow.sched.task(task).policy.is_fair();
    let decides = curr != task && fair(curr) && fair(task) && shadow.sched.task(curr).on_rq;
    if !decides || !shadow.cpu_known[at] || shadow.sched.rqs[at].need_resched.any() {
        return None;
    }
    let left = slice_left(shadow, at, curr).err()?;
    Some(Before { curr, at, ran: shadow.sched.task(curr).se.sum_exec_runtime, left })
}

impl Before {
    /// How far from its end its turn may have been that was over when it was charged for another's arrival.
    fn left_at_most(&self, shadow: &Shadow) -> i64 {
        let entry = shadow.sched.task(self.curr);
        let ran = entry.se.sum_exec_runtime - self.ran;
        let levels = std::iter::successors(Some(SeId(self.curr.0)), |&se| shadow.sched.se(se).parent);
        let farthest = |se| {
            let charged = calc_delta_fair(ran, &shadow.sched.se(se).load) as i64;
            self.left.saturating_add(2 * shadow.error_of(se) as i64) - charged
        };
        levels.map(farthest).max().unwrap_or(0)
    }
}

/// Whether the flags of an event say that the running task is to make way at once.
pub fn bit_full(flags: Flags) -> Option<bool> {
    flags.is_known().then(|| flags.has(Flags::NEED_RESCHED))
}

/// Whether the flags of an event, if it has any, say that the running task was asked by one who arrived to make way.
/// Where those ask lazily, a full request alone is another's, and hides what they asked.
fn bit(shadow: &Shadow, flags: Flags) -> Option<Option<bool>> {
    let full = flags.has(Flags::NEED_RESCHED) || flags.has(Flags::PREEMPT_RESCHED);
    let lazy = flags.has(Flags::NEED_RESCHED_LAZY);
    let hides = full && !lazy && shadow.sched.kernel.preempt.lazy_request(false, false);
    flags.is_known().then_some(if hides { None } else { Some(full || lazy) })
}

/// Whether the turn of a CPU's task is over, and otherwise how far its end is, in virtual
/// time. Its queues are charged up to now.
fn slice_left(shadow: &Shadow, at: CpuId, task: TaskId) -> Result<Reason, i64> {
    if shadow.sched.rqs[at].need_resched.any() {
        return Ok(Reason::SliceEnd);
    }
    let levels = std::iter::successors(Some(SeId(task.0)), |&se| shadow.sched.se(se).parent);
    let mut left = i64::MAX;
    for se in levels {
        let (cfs, entity) = (shadow.sched.cfs_rq_of(se), shadow.sched.se(se));
        if shadow.sched.cfs(cfs).nr_queued < 2 {
            continue;
        }
        let rules = &shadow.sched.kernel.rules;
        if rules.policy == FairPolicy::Eevdf {
            let mut end = entity.deadline.wrapping_sub(entity.vruntime) as i64;
            if rules.protection == Protection::MinSlice {
                end = end.min(entity.vprot.wrapping_sub(entity.vruntime) as i64);
            }
            left = left.min(end - shadow.error_of(se) as i64);
        } else if let Some(reason) = shadow.sched.check_preempt_tick(cfs, se) {
            return Ok(reason);
        } else {
            let error = shadow.error_of(se) as i64;
            let ran = (entity.sum_exec_runtime - entity.prev_sum_exec_runtime) as i64 + error;
            let ideal = shadow.sched.ideal_runtime(cfs, se) as i64;
            left = left.min(ideal - ran);
            if ran >= shadow.sched.scaled.min_granularity as i64
                && let Some(first) = shadow.sched.cfs(cfs).timeline.leftmost()
            {
                let lead = entity.vruntime.wrapping_sub(first.vruntime) as i64;
                left = left.min(ideal - lead - error - shadow.error_of(first.se) as i64);
            }
        }
    }
    Err(left)
}

/// Whether a task began its request so little ago that the kernel may only now have found the one before to be over.
fn just_renewed(shadow: &Shadow, task: TaskId) -> bool {
    let mut levels = std::iter::successors(Some(SeId(task.0)), |&se| shadow.sched.se(se).parent);
    levels.any(|se| {
        let entity = shadow.sched.se(se);
        let left = entity.deadline.wrapping_sub(entity.vruntime) as i64;
        let used = calc_delta_fair(entity.slice, &entity.load) as i64 - left;
        let eevdf = shadow.sched.kernel.rules.policy == FairPolicy::Eevdf;
        eevdf && (0..=shadow.error_of(se) as i64).contains(&used)
    })
}

impl<S: Listener> Audit<S> {
    /// A task was queued where another runs.
    pub(crate) fn judge_preempt(
        &mut self,
        event: &Event,
        before: Option<Before>,
        task: TaskId,
        decided: Option<PreemptDecision>,
    ) {
        let Some(before) = before else { return };
        let Some(decided) = decided else {
            // How it was woken was not seen, so neither is what was asked.
            self.asked[before.at].told = true;
            return;
        };
        if self.asked[before.at].pending {
            return;
        }
        let who = self.shadow.known(before.curr).who();
        let mut verdict = Verdict::begun(event.time, before.at, Decision::Preempt, who, Choice::Nothing);
        verdict.hidden = Some(Hidden::Request);
        let mut over = None;
        verdict.ours = if decided.reason == Reason::KeepPending {
            // Its slice was found to be over when it was charged.
            let mut found = slice(&mut self.shadow, true, Reason::SliceEnd);
            let left = before.left_at_most(&self.shadow);
            if left > 0 {
                found.push(turn(false, Reason::SliceEnd, Some(Hidden::VirtualTime)));
            } else {
                let error = self.shadow.error_of(SeId(before.curr.0));
                over = Some((left.unsigned_abs() + 2 * error, error));
            }
            found
        } else {
            possible(&mut self.shadow, before, task, &decided)
        };
        let by = is_by_time(decided.reason).then_some((task, decided.preempt));
        let question = Question { verdict, by, over };
        // A new task's event is written before it is asked.
        let shown = event.cpu == before.at && !matches!(event.kind, Kind::SchedWakeupNew { .. });
        match bit(&self.shadow, event.flags).filter(|_| shown) {
            Some(Some(asked)) => self.answered(question, asked, false, true, event.time),
            Some(None) => self.unanswered(question.verdict),
            None => self.asked[before.at].verdicts.push(question),
        }
    }

    /// Tasks were moved to where another runs, which may have been asked to make way.
    pub(crate) fn moved_there(&mut self, arrived: Vec<Arrived>) {
        for Arrived { before, task, decided } in arrived {
            let found = possible(&mut self.shadow, before, task, &decided);
            let asked = |possible: &Possible| possible.choice == Choice::Preempt(true);
            self.asked[before.at].moved_there |= found.iter().any(asked);
            self.shadow.spare.give_back(found);
        }
    }

    /// A task is woken; if it runs, it was about to sleep.
    pub(crate) fn woken_running(&mut self, task: TaskId, at: CpuId) {
        self.asked[at].meant_to_sleep |= self.shadow.sched.rqs[at].curr == Curr::Task(task);
    }

    /// Whoever preempts is a buddy.
    fn apply_answer(&mut self, at: CpuId, by: Option<(TaskId, bool)>, asked: bool) {
        let sched = &mut self.shadow.sched;
        if let Some((task, ours)) = by
            && ours != asked
            && sched.kernel.rules.policy == FairPolicy::Cfs
        {
            sched.preempt_as_recorded(at, task, asked);
            learn(&mut self.shadow, at, task, asked);
        }
    }

    /// Whether the kernel's answer follows if the CPU lost its turn in a switch.
    fn is_of_lost_turn(&mut self, at: CpuId, task: TaskId, asked: bool) -> bool {
        let pending = std::mem::take(&mut self.shadow.sched.rqs[at].need_resched);
        let is_so = |shadow: &mut Shadow| shadow.sched.check_preempt(at, task, wf::TTWU).preempt == asked;
        let found = self.shadow.find_lost_turn(at, is_so);
        self.shadow.sched.rqs[at].need_resched = pending;
        found
    }

    /// The kernel's answer is known. `else_asked`: somebody else may have asked as well. `alone`: nobody else arrived.
    fn answered(&mut self, question: Question, asked: bool, else_asked: bool, alone: bool, now: Time) {
        let Question { mut verdict, by, over } = question;
        let at = verdict.cpu;
        verdict.kernel = Choice::Preempt(asked);
        verdict.judge();
        verdict.doubt(2);
        if verdict.answer == Answer::Differs && asked && else_asked {
            verdict.without(Hidden::SliceEnd);
        }
        let is_there = |shadow: &Shadow, task: TaskId| {
            let entry = shadow.sched.task(task);
            entry.on_rq
                && entry.cpu == at
                && shadow.sched.rqs[at].curr.task().is_some_and(|curr| curr != task)
        };
        let wrong = |ours| ours != asked || verdict.answer == Answer::Differs;
        let arrived = by;
        let by = by.filter(|&(task, ours)| alone && wrong(ours) && is_there(&self.shadow, task));
        if let Some((task, _)) = by
            && verdict.answer == Answer::Differs
            && self.is_of_lost_turn(at, task, asked)
        {
            verdict.without(Hidden::LostTurn);
        }
        if self.asks_nearest(&verdict) {
            let nearest = match (over, arrived) {
                (Some((by, error)), _) => Some(Nearest::turn_end(false, by, error)),
                (None, Some((task, _))) => self.nearest_of_answer(at, task, asked, now),
                (None, None) => None,
            };
            verdict.nearest = nearest.map(Box::new);
        }
        self.apply_answer(at, by, asked);
        self.asked[at].told |= asked;
        self.asked[at].pending |= asked;
        self.give(verdict);
    }

    /// The kernel's answer will not be known.
    fn unanswered(&mut self, mut verdict: Verdict) {
        verdict.without(Hidden::Request);
        self.give(verdict);
    }

    /// A CPU shows whether its task is to make way.
    pub(crate) fn shown(&mut self, event: &Event) {
        let cpu = event.cpu;
        let answer = match event.kind {
            // Who meant to sleep, or yields, calls the scheduler whether asked or not.
            Kind::SchedSwitch { prev_state, prev_pid, .. } => {
                let of_itself = self.asked[cpu].meant_to_sleep
                    || !prev_state.is_preempted()
                        && self.shadow.find(prev_pid).is_some_and(|prev| self.shadow.known(prev).yields());
                (prev_state.is_runnable() && !of_itself).then_some(true)
            }
            _ => match bit(&self.shadow, event.flags) {
                None => return,
                Some(known) => known,
            },
        };
        if !self.asked[cpu].verdicts.is_empty() {
            self.show_all(event, answer);
        }
        match event.kind {
            Kind::SchedSwitch { .. } => self.asked[cpu].pending = false,
            // Which may be what asks.
            Kind::SchedWakeup { .. } | Kind::SchedWakeupNew { .. } => {}
            _ => self.asked[cpu].pending = answer == Some(true),
        }
        if answer == Some(false) && self.shadow.sched.rqs[cpu].curr != Curr::Idle {
            self.overrun(event);
            // What was not asked for here is not pending in the kernel either.
            let rq = &mut self.shadow.sched.rqs[cpu];
            (rq.need_resched, rq.skip_clock_update) = Default::default();
        }
    }

    /// A CPU's answer to all that it was asked; none if its task went to sleep instead.
    fn show_all(&mut self, event: &Event, answer: Option<bool>) {
        let cpu = event.cpu;
        let asks = matches!(event.kind, Kind::SchedWakeup { .. } | Kind::SchedWakeupNew { .. });
        let mut verdicts = std::mem::take(&mut self.asked[cpu].verdicts);
        if bit_full(event.flags) == Some(true) {
            self.shadow.sched.rqs[cpu].skip_clock_update = true;
        }
        let several = verdicts.len() > 1;
        for question in verdicts.drain(..) {
            match answer {
                Some(asked) => {
                    let over = asked && self.turn_over(event);
                    self.answered(question, asked, asks || several || over, !several, event.time);
                }
                None => self.unanswered(question.verdict),
            }
        }
        self.asked[cpu].verdicts = verdicts;
    }

    /// Whether the turn of a CPU's task is over by now, for all we know.
    fn turn_over(&mut self, event: &Event) -> bool {
        let Curr::Task(curr) = self.shadow.sched.rqs[event.cpu].curr else { return false };
        if !self.shadow.sched.rqs[event.cpu].skip_clock_update {
            self.shadow.sched.update_rq_clock(event.cpu, event.time);
        }
        self.shadow.charge_levels(curr);
        slice_left(&self.shadow, event.cpu, curr).map_or_else(|left| left <= 0, |_| true)
    }

    /// A CPU whose task should have made way some time ago says that it need not.
    fn overrun(&mut self, event: &Event) {
        let cpu = event.cpu;
        let Some(ended) = self.shadow.slice_ended[cpu].take() else { return };
        let late = event.time.since(ended.at);
        if late <= Duration(self.shadow.sched.tick_ns()) || !self.shadow.sched.rqs[cpu].need_resched.any() {
            return;
        }
        let Curr::Task(curr) = self.shadow.sched.rqs[cpu].curr else { return };
        let error = self.shadow.error_of(SeId(curr.0));
        let mut verdict = self.of_slice(event.time, cpu, curr, false);
        verdict.ours = slice(&mut self.shadow, true, Reason::SliceEnd);
        if error > late.0 {
            verdict.ours.push(turn(false, Reason::SliceEnd, Some(Hidden::VirtualTime)));
        }
        verdict.judge();
        verdict.doubt(2);
        if verdict.answer == Answer::Differs {
            verdict.nearest = Some(Box::new(Nearest::turn_end(false, late.0, error)));
        }
        self.give(verdict);
    }

    /// A task that could go on makes way: if nobody who arrived asked for it, its turn is over.
    pub(crate) fn judge_slice(&mut self, event: &Event, next: Curr, clock: Time) -> Option<Verdict> {
        let cpu = event.cpu;
        let asked = &mut self.asked[cpu];
        let told = std::mem::take(&mut asked.told);
        let by_another_way =
            std::mem::take(&mut asked.meant_to_sleep) | std::mem::take(&mut asked.moved_there);
        let ended = self.shadow.slice_ended[cpu].take();
        let Kind::SchedSwitch { prev_state, prev_pid, .. } = event.kind else { return None };
        let (Some(prev), Curr::Task(next)) = (self.shadow.find(prev_pid), next) else { return None };
        let fair = |task| self.shadow.sched.task(task).policy.is_fair();
        let entry = self.shadow.sched.task(prev);
        let goes_on = prev_state.is_runnable() && prev_pid != Pid::IDLE && entry.on_rq && entry.cpu == cpu;
        // Who comes from nowhere arrived unseen, and may have asked.
        let next_entry = self.shadow.sched.task(next);
        let arrived = !next_entry.on_rq || next_entry.se.sched_delayed || next_entry.cpu != cpu;
        if told || !goes_on || !fair(prev) || !fair(next) || arrived {
            return None;
        }
        self.shadow.sched.update_rq_clock(cpu, clock);
        self.shadow.charge_levels(prev);
        let mut verdict = self.of_slice(event.time, cpu, prev, true);
        // Also one after which we would have gone on with the same task.
        let ended = ended.filter(|ended| event.time <= ended.until).map(|_| Reason::SliceEnd);
        // When in its exit it leaves its group is not told.
        let exits = self.shadow.made_way_to_end(prev).then_some(Reason::GroupChange);
        let mut end = None;
        match ended.or(exits).map_or_else(|| slice_left(&self.shadow, cpu, prev), Ok) {
            Ok(reason) => verdict.ours = slice(&mut self.shadow, true, reason),
            Err(_) if by_another_way => return None,
            Err(_) if self.joins_group(prev_pid, event.time) => {
                verdict.ours = slice(&mut self.shadow, true, Reason::GroupChange);
            }
            Err(left) => {
                verdict.ours = slice(&mut self.shadow, false, Reason::SliceEnd);
                verdict.ours[0].numbers.push(("left", left));
                end = Some(left.max(0) as u64);
                if left <= 0 || self.shadow.groups_hidden || just_renewed(&self.shadow, prev) {
                    verdict.ours.push(turn(true, Reason::SliceEnd, Some(Hidden::VirtualTime)));
                }
            }
        }
        verdict.judge();
        verdict.doubt(2);
        if verdict.answer == Answer::Differs && self.shadow.limit_of(prev).is_some() {
            verdict.without(Hidden::Quota);
        } else if !prev_state.is_preempted() {
            match verdict.answer {
                Answer::Differs | Answer::Undecided if self.shadow.known(prev).yields() => {
                    verdict.without(Hidden::Yield);
                }
                Answer::Differs => self.shadow.left_early(prev, clock),
                _ => {}
            }
        }
        if let Some(left) = end.filter(|_| verdict.answer == Answer::Differs) {
            let error = self.shadow.error_of(SeId(prev.0));
            verdict.nearest = Some(Box::new(Nearest::turn_end(true, left + error, error)));
        }
        Some(verdict)
    }

    /// Whether a task is just moving itself to a control group, of which the event comes when that is done.
    ///
    /// Kernel: sched_move_task(), kernel/sched/core.c, v6.1 and v6.12, has a running task make way.
    fn joins_group(&self, task: Pid, now: Time) -> bool {
        let asks = self.shadow.sched.kernel.has(Feature::RegroupAsks);
        asks && self.pairing.ahead(now + GROUP_PATIENCE).any(|event| {
            event.pid == task && matches!(event.kind, Kind::CgroupAttachTask { pid, .. } if pid == task)
        })
    }

    fn of_slice(&self, time: Time, cpu: CpuId, task: TaskId, preempted: bool) -> Verdict {
        let who = self.shadow.known(task).who();
        Verdict::begun(time, cpu, Decision::Preempt, who, Choice::Preempt(preempted))
    }
}

fn slice(shadow: &mut Shadow, over: bool, reason: Reason) -> Vec<Possible> {
    let mut found = shadow.spare.list();
    found.push(turn(over, reason, None));
    found
}

fn turn(over: bool, reason: Reason, hidden: Option<Hidden>) -> Possible {
    Possible { choice: Choice::Preempt(over), reason: reason.name(), hidden, numbers: Default::default() }
}
