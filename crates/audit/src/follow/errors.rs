//! How far the virtual times here may be from the kernel's.
//!
//! A virtual time is a sum of many time spans and of averages over queues, each derived from event times. Whatever the
//! trace does not contain causes an error. Where that error can be bounded, the bound is kept with the task: every task
//! that could come first within the bounds is a possible pick.

use schedlab_sched::{CfsRqId, FairPolicy, Feature, LoadWeight, NICE_0_LOAD, SeId, calc_delta_fair};
use schedlab_topology::CpuId;
use schedlab_units::{Duration, TaskId, Time};

use crate::follow::shadow::Shadow;
use crate::follow::watch::Watch;

/// How much a time span between events may differ from what the kernel charged, ns.
const EVENT_ERROR: u64 = 5_000;

/// A group's weight may be off by this fraction (1/16): averages are off by more than a twentieth in one sample of
/// four.
const WEIGHT_PART: u64 = 16;

/// The same under EEVDF where charges are recorded: nine of ten weights of simulated groups are off by less than one
/// part in two hundred, and one in a hundred by a fifth. Under CFS errors do not cause further errors, and few answers
/// are open.
const WEIGHT_PART_TOLD: u64 = 64;

/// Largest error of the virtual time of a nice 0 entity, ns: placement keeps all entities within a few slices of each
/// other.
const ERROR_MAX: u64 = 10_000_000;

/// A task that changes its own priority does so within this time after it first runs; the middle of that interval is
/// assumed.
const PRIORITY_DELAY: Duration = Duration::millis(2);

impl<W: Watch> Shadow<W> {
    /// How far the virtual time of an entity may be off.
    #[inline]
    pub fn error_of(&self, se: SeId) -> u64 {
        if se.is_task() {
            return self.known(TaskId(se.0)).vruntime_error;
        }
        self.group_errors.get(&se).copied().unwrap_or(0)
    }

    fn error_mut(&mut self, se: SeId) -> &mut u64 {
        if se.is_task() {
            return &mut self.known_mut(TaskId(se.0)).vruntime_error;
        }
        self.group_errors.entry(se).or_insert(0)
    }

    /// Adds an error to that of an entity. Errors are independent, so their squares are added; but where sleepers may
    /// stay queued and it is unknown which did, each error causes the next, and the errors themselves are added.
    pub fn add_error(&mut self, se: SeId, error: u64) {
        if error == 0 {
            return;
        }
        let leads_on = self.sched.kernel.has(Feature::DelayDequeue);
        let most = calc_delta_fair(ERROR_MAX, &self.sched.se(se).load);
        let known = self.error_mut(se);
        let (before, error) = ((*known).min(most), error.min(most));
        // The square of the error of an entity with the lowest weight can overflow.
        let square = |error: u64| error.saturating_mul(error);
        let sum =
            if leads_on { before + error } else { square(before).saturating_add(square(error)).isqrt() };
        *known = sum.min(most);
    }

    /// The error of a queue's average that follows from the errors of its members.
    pub fn average_error(&self, cfs: CfsRqId) -> u64 {
        self.average_of(cfs, |se| self.error_of(se))
    }

    /// The mean of a quantity over the members of a queue, weighted by their load weights.
    pub fn average_of(&self, cfs: CfsRqId, of: impl Fn(SeId) -> u64) -> u64 {
        let queue = self.sched.cfs(cfs);
        let tree = queue.timeline.entries().iter().map(|entry| entry.se);
        let (mut sum, mut weights) = (0, 0);
        for se in queue.curr.into_iter().chain(tree) {
            let weight = self.sched.se(se).load.weight >> 10;
            sum += weight * of(se);
            weights += weight;
        }
        sum / weights.max(1)
    }

    /// Whether an entity is owed service whatever the errors are, so that its dequeue is not delayed.
    pub fn is_surely_owed(&self, se: SeId) -> bool {
        let cfs = self.sched.cfs_rq_of(se);
        if !self.sched.kernel.has(Feature::DelayDequeue) || self.sched.cfs(cfs).nr_queued < 2 {
            return true;
        }
        let (lag, error) = self.lag_of(se);
        lag > error
    }

    /// The lag of an entity and how far it may be off.
    pub fn lag_of(&self, se: SeId) -> (i64, i64) {
        let cfs = self.sched.cfs_rq_of(se);
        let lag = self.sched.avg_sums(cfs).average().wrapping_sub(self.sched.se(se).vruntime) as i64;
        (lag, (self.error_of(se) + self.average_error(cfs)) as i64)
    }

    /// The entities of the groups that contain a task, the innermost first.
    fn group_entities(&self, task: TaskId) -> impl Iterator<Item = SeId> + '_ {
        std::iter::successors(self.sched.task(task).se.parent, |&se| self.sched.se(se).parent)
    }

    /// A task leaves for another CPU and has not arrived yet: its virtual time is taken relative to one clock and added
    /// to another, and neither reading time is known exactly. `left` is the error of the average that it leaves.
    pub fn moved(&mut self, task: TaskId, left: u64) {
        let slack = if self.runtime_told { 0 } else { self.slack.time().0 };
        let floor = self.floor_error(self.sched.cfs_rq_of(SeId(task.0)));
        self.add_error(SeId(task.0), slack + left + floor);
        let known = self.known_mut(task);
        (known.by_floor, known.told_on) = (false, None);
    }

    /// A task was queued by a CPU that read the clock some time after `from`: it is placed relative to the running
    /// task, which has run on since.
    pub fn placed(&mut self, task: TaskId, from: Time, now: Time) {
        if self.sched.kernel.rules.policy != FairPolicy::Eevdf || !self.sched.task(task).policy.is_fair() {
            return;
        }
        self.placed_entity(SeId(task.0), from, now);
        let groups: Vec<SeId> = self.group_entities(task).collect();
        for se in groups {
            // A group that has other members was queued before.
            let below = self.sched.se(se).my_q.expect("a group has a queue");
            if self.sched.cfs(below).nr_queued > 1 {
                break;
            }
            self.placed_entity(se, from, now);
        }
    }

    fn placed_entity(&mut self, se: SeId, from: Time, now: Time) {
        let cfs = self.sched.cfs_rq_of(se);
        let queue = self.sched.cfs(cfs);
        if queue.nr_queued < 2 {
            return;
        }
        let mut error = self.average_error(cfs);
        if !self.runtime_told {
            let span = now.since(from).0.min(ERROR_MAX);
            error += span * NICE_0_LOAD / queue.load.weight.max(1);
        }
        self.add_error(se, error);
    }

    /// A task stopped running. The switch read the clock at some time within `held` before its event; the remaining
    /// time is charged to the task that runs next.
    pub fn ran(&mut self, task: TaskId, held: Duration, now: Time) {
        self.charged_about(task, EVENT_ERROR + held.0);
        // A group's weight is its share of averages, and each of those is slightly off.
        let span = now.since(self.known(task).began).0;
        let off = match self.runtime_told && self.sched.kernel.rules.policy == FairPolicy::Eevdf {
            true => span / WEIGHT_PART_TOLD + EVENT_ERROR,
            false => span / WEIGHT_PART + EVENT_ERROR + held.0,
        };
        let mut level = self.sched.task(task).se.parent;
        while let Some(se) = level {
            level = self.sched.se(se).parent;
            let off = calc_delta_fair(off, &self.sched.se(se).load);
            self.add_error(se, off);
        }
    }

    /// A task began to run at a switch that read the clock at some time within `held` before its event.
    pub fn begins(&mut self, task: TaskId, held: Duration) {
        self.charged_about(task, held.0);
        W::begins(self, task);
    }

    /// A virtual time was so far off that the error bound did not explain what happened. Something left no event, and
    /// the time was moved only as far as necessary.
    pub fn contradicted(&mut self, se: SeId, by: u64) {
        self.add_error(se, by);
        if se.is_task() {
            self.known_mut(TaskId(se.0)).lag_error += by;
        }
    }

    /// A task was charged with a time that may be off by `error`.
    fn charged_about(&mut self, task: TaskId, error: u64) {
        if error > 0 && !self.known(task).charged.is_told() {
            let off = calc_delta_fair(error, &self.sched.task(task).se.load);
            self.add_error(SeId(task.0), off);
        }
    }

    /// When a task that runs for the first time changes its priority, if a later event shows the change and none shows
    /// its time.
    pub fn changes_priority(&self, task: TaskId) -> Option<Time> {
        let known = self.known(task);
        let later = known.later_prio.is_some_and(|later| !later.in_second_turn);
        let untold = later && known.first_run && !self.runtime_told && self.runs(task);
        // A preempted task had already used part of this delay, but not all of it.
        let ran = self.sched.task(task).se.prev_sum_exec_runtime;
        let delay = (PRIORITY_DELAY.0 / 2).saturating_sub(ran).max(PRIORITY_DELAY.0 / 8);
        untold.then(|| known.began + Duration(delay))
    }

    /// A task changed its priority at some time since it began to run, so its virtual time advanced by either weight.
    pub fn changed_weight(&mut self, task: TaskId, before: LoadWeight, now: Time) {
        if self.runtime_told {
            return;
        }
        let span = now.since(self.known(task).began).0.min(PRIORITY_DELAY.0);
        self.had_weight(task, before, span);
    }

    /// Another task changed the weight of a task at some time before the event that shows it. A running task was
    /// charged by either weight. Under EEVDF the lag of a waiting task was scaled relative to an average that has
    /// advanced since.
    pub fn weight_was_changed(&mut self, task: TaskId, before: LoadWeight, now: Time) {
        let known = self.known(task);
        let since = match self.sched.kernel.rules.policy {
            _ if self.runs(task) => known.began,
            FairPolicy::Eevdf if self.sched.task(task).on_rq => known.left,
            _ => return,
        };
        if !self.runtime_told {
            let error = self.had_weight(task, before, now.since(since).0);
            self.known_mut(task).lag_error += error;
        }
    }

    fn had_weight(&mut self, task: TaskId, before: LoadWeight, span: u64) -> u64 {
        let after = self.sched.task(task).se.load;
        let error = calc_delta_fair(span, &after).abs_diff(calc_delta_fair(span, &before));
        self.add_error(SeId(task.0), error);
        error
    }

    /// The virtual time of a task is known from others: it is alone in its queue, so its lag is zero, or the floor
    /// follows it. A task that may have had a delayed sleeper queued with it may still be owed something.
    pub fn steady(&mut self, task: TaskId) {
        if !self.sched.task(task).policy.is_fair() {
            return;
        }
        if self.is_steady(SeId(task.0)) && !self.known(task).beside_sleeper {
            let error = self.event_error();
            let known = self.known_mut(task);
            (known.vruntime_error, known.lag_error, known.lag_known) = (error, 0, true);
        }
        let mut level = self.sched.task(task).se.parent;
        while let Some(se) = level {
            if self.is_steady(se) {
                *self.error_mut(se) = self.event_error();
            }
            level = self.sched.se(se).parent;
        }
    }

    /// The error of a time that was just read from an event; zero where charges are recorded.
    fn event_error(&self) -> u64 {
        if self.runtime_told { 0 } else { EVENT_ERROR }
    }

    fn is_steady(&self, se: SeId) -> bool {
        let (queue, entity) = (self.sched.cfs(self.sched.cfs_rq_of(se)), self.sched.se(se));
        match self.sched.kernel.rules.policy {
            FairPolicy::Cfs => entity.vruntime == queue.min_vruntime,
            FairPolicy::Eevdf => queue.nr_queued == 1 && entity.on_rq,
        }
    }

    /// A task was queued. Under CFS it may have been placed at the earliest time that sleepers get; then only the
    /// floor's error remains.
    pub fn queued(&mut self, task: TaskId) {
        let kernel = &self.sched.kernel;
        let entry = self.sched.task(task);
        if kernel.rules.policy != FairPolicy::Cfs || !entry.policy.is_fair() {
            self.steady(task);
            return self.first_placed(task);
        }
        let cfs = self.sched.cfs_rq_of(SeId(task.0));
        let lead = self.sched.cfs(cfs).min_vruntime.wrapping_sub(entry.se.vruntime);
        let earliest = lead == self.sleepers_credit();
        if earliest {
            let told = self.floors_told.contains_key(&cfs);
            let slack = if told { self.floor_error(cfs) } else { self.slack.time().0 };
            // A task that fell asleep before the recording began may have done so just before, and be placed later.
            let known = std::mem::replace(&mut self.known_mut(task).lag_known, true);
            let later = if known || told { 0 } else { self.later_than_floor(cfs) };
            let known = self.known_mut(task);
            (known.vruntime_error, known.lag_error) = (slack + later, later);
        }
        let known = self.known_mut(task);
        known.by_floor |= earliest || known.first_run && !known.charged.is_told();
        if earliest {
            known.told_on = None;
        } else if !known.by_floor && known.told_on.is_none() {
            let floor = self.floor_error(cfs);
            self.add_error(SeId(task.0), floor);
        }
    }

    /// A task is queued for the first time in the recording: it keeps, within bounds, the lag that it had when it last
    /// left a queue.
    fn first_placed(&mut self, task: TaskId) {
        if std::mem::replace(&mut self.known_mut(task).lag_known, true) {
            return;
        }
        self.lag_is_unknown(task);
    }

    /// Bound on the lag of an entity, positive or negative.
    fn lag_bound(&self, se: SeId) -> u64 {
        let entity = self.sched.se(se);
        calc_delta_fair(entity.slice + self.sched.tick_ns(), &entity.load)
    }

    fn lag_is_unknown(&mut self, task: TaskId) {
        let bound = self.lag_bound(SeId(task.0));
        self.known_mut(task).lag_error = bound;
        self.add_error(SeId(task.0), bound);
    }

    /// The lags of the tasks queued on a CPU are no longer known.
    pub fn lags_are_unknown(&mut self, cpu: CpuId) {
        let mut queues = vec![self.sched.root_cfs_id(cpu)];
        while let Some(cfs) = queues.pop() {
            let queue = self.sched.cfs(cfs);
            let waiting = queue.timeline.entries().iter().map(|entry| entry.se);
            let curr = queue.curr.filter(|&se| self.sched.se(se).on_rq);
            let queued: Vec<SeId> = curr.into_iter().chain(waiting).collect();
            for se in queued {
                match self.sched.se(se).my_q {
                    None => self.lag_is_unknown(TaskId(se.0)),
                    Some(below) => {
                        self.add_error(se, self.lag_bound(se));
                        queues.push(below);
                    }
                }
            }
        }
    }
}
