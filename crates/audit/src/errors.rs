//! How far the virtual times here may be from the kernel's.
//!
//! A virtual time is a sum of many spans and of averages over queues, each known from the
//! times of events. What is not in the trace makes an error, and where it can be bounded,
//! the bound is carried with the task: whoever could come first within the bounds is a
//! possible pick.

use schedlab_sched::{CfsRqId, FairPolicy, Feature, LoadWeight, NICE_0_LOAD, SeId, calc_delta_fair};
use schedlab_topology::CpuId;
use schedlab_units::{Duration, TaskId, Time};

use crate::shadow::Shadow;

/// By how much a span between events may differ from what the kernel charged, ns.
const EVENT_ERROR: u64 = 5_000;

/// By how much virtual times differ under EEVDF where all charges are told: an average rounds by which point it is
/// taken from, which moves at updates that are in no event, and each task that is placed by it keeps that, ns.
const ROUNDING: u64 = 64;

/// Part of a group's weight by which it may be off: averages are off by more than a twentieth
/// in one look of four.
const WEIGHT_PART: u64 = 16;

/// The same under EEVDF where charges are told: nine of ten weights of simulated groups are off by less than a two
/// hundredth, and one of a hundred by a fifth. Under CFS, where errors do not lead to each other, few answers are open.
const WEIGHT_PART_TOLD: u64 = 64;

/// Largest error of a virtual time, of an entity of nice 0: placing keeps all within some slices, ns.
const ERROR_MAX: u64 = 10_000_000;

/// A task that gives itself another priority does so within this time from its first run,
/// and for all we know in the middle.
const PRIORITY_DELAY: Duration = Duration::millis(2);

impl Shadow {
    /// How far the virtual time of an entity may be off.
    pub fn error_of(&self, se: SeId) -> u64 {
        if se.is_task() {
            return self.known(TaskId(se.0)).vruntime_error;
        }
        self.group_errors.get(&se).copied().unwrap_or(0)
    }

    /// How far the virtual time of an entity is likely to be off. What its errors add up to at most grows with each switch,
    /// but picks and answers set right what is off by more than they leave room for, so a CPU that lost its turn at
    /// the wrong moment is seen before it has lost many: the charges of a task are likely to be off by no more than
    /// one turn. What it brings from before the recording comes on top, and what a change of its weight left open.
    pub fn likely_error(&self, se: SeId) -> u64 {
        let most = self.error_of(se);
        if self.sched.se(se).parent.is_some() || !se.is_task() || self.runtime_told {
            return most;
        }
        let turn = calc_delta_fair(self.slack.time().0, &self.sched.se(se).load);
        most.min(turn + self.known(TaskId(se.0)).lag_error)
    }

    fn error_mut(&mut self, se: SeId) -> &mut u64 {
        if se.is_task() {
            return &mut self.known_mut(TaskId(se.0)).vruntime_error;
        }
        self.group_errors.entry(se).or_insert(0)
    }

    /// An error is added to that of an entity. They have nothing to do with each other, so
    /// their squares add up; but where sleepers may stay queued, and which did is not known, each
    /// error leads to the next.
    fn add_error(&mut self, se: SeId, error: u64) {
        if error == 0 {
            return;
        }
        let leads_on = self.sched.kernel.has(Feature::DelayDequeue);
        let most = calc_delta_fair(ERROR_MAX, &self.sched.se(se).load);
        let known = self.error_mut(se);
        let (before, error) = ((*known).min(most), error.min(most));
        // Squares of what an entity of the least weight may be off are too large for a number.
        let square = |error: u64| error.saturating_mul(error);
        let sum =
            if leads_on { before + error } else { square(before).saturating_add(square(error)).isqrt() };
        *known = sum.min(most);
    }

    /// How far the virtual time of an entity is held to be off: as far as is likely, or at most where nothing follows from that.
    pub fn trusted_error(&self, se: SeId) -> u64 {
        if self.trusts {
            return self.likely_error(se);
        }
        let rounds = self.runtime_told && self.sched.kernel.rules.policy == FairPolicy::Eevdf;
        self.error_of(se) + if rounds { ROUNDING } else { 0 }
    }

    /// What the errors of a queue make of its average.
    pub fn average_error(&self, cfs: CfsRqId) -> u64 {
        self.average_of(cfs, |se| self.error_of(se))
    }

    /// The mean of something over the members of a queue, by their weights.
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

    /// Whether an entity is owed service within all errors, so that its dequeue is not delayed.
    pub fn is_surely_owed(&self, se: SeId) -> bool {
        let cfs = self.sched.cfs_rq_of(se);
        if !self.sched.kernel.has(Feature::DelayDequeue) || self.sched.cfs(cfs).nr_queued < 2 {
            return true;
        }
        let (lag, error) = self.lag_of(se);
        lag > error
    }

    /// Whether an entity has had more service than its part within all errors, so that it is not picked.
    pub fn is_surely_ahead(&self, se: SeId) -> bool {
        let (lag, error) = self.lag_of(se);
        lag < -error
    }

    /// What an entity is owed, and how far off that may be.
    fn lag_of(&self, se: SeId) -> (i64, i64) {
        let cfs = self.sched.cfs_rq_of(se);
        let lag = self.sched.avg_sums(cfs).average().wrapping_sub(self.sched.se(se).vruntime) as i64;
        (lag, (self.error_of(se) + self.average_error(cfs)) as i64)
    }

    /// The entities of the groups that a task is in, the lowest first.
    fn group_entities(&self, task: TaskId) -> impl Iterator<Item = SeId> + '_ {
        std::iter::successors(self.sched.task(task).se.parent, |&se| self.sched.se(se).parent)
    }

    /// A task comes to another CPU, and is not there yet: its virtual time is taken off one clock and put on
    /// another, both read at times that are not quite known. `left` is the error of the
    /// average where it was.
    pub fn moved(&mut self, task: TaskId, left: u64) {
        let slack = if self.runtime_told { 0 } else { self.slack.time().0 };
        let floor = self.floor_error(self.sched.cfs_rq_of(SeId(task.0)));
        self.add_error(SeId(task.0), slack + left + floor);
        let known = self.known_mut(task);
        (known.by_floor, known.told_on) = (false, None);
    }

    /// A task was queued by a CPU that read the clock some time since `from`: its place is
    /// relative to what runs there, which went on.
    pub fn placed(&mut self, task: TaskId, from: Time, now: Time) {
        if self.sched.kernel.rules.policy != FairPolicy::Eevdf || !self.sched.task(task).policy.is_fair() {
            return;
        }
        self.placed_entity(SeId(task.0), from, now);
        let groups: Vec<SeId> = self.group_entities(task).collect();
        for se in groups {
            // A group that had others was queued before.
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

    /// A task stopped running. The switch read the clock some time within `held` before its
    /// event: what was left is charged to the task that runs next.
    pub fn ran(&mut self, task: TaskId, held: Duration, now: Time) {
        self.charged_about(task, EVENT_ERROR + held.0);
        // A group's weight is its part of averages, each a little off.
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

    /// A task began to run at a switch that read the clock some time within `held` before
    /// its event.
    pub fn begins(&mut self, task: TaskId, held: Duration) {
        self.charged_about(task, held.0);
        if self.known(task).yields() && self.sched.kernel.rules.policy == FairPolicy::Eevdf {
            // Who yields and comes first again leaves no event, but has given up a turn.
            let entity = &self.sched.task(task).se;
            self.add_error(SeId(task.0), calc_delta_fair(entity.slice, &entity.load));
        }
    }

    /// A virtual time was so far off that what happened did not follow within its error: something is in no event,
    /// and the time was moved only as far as it had to be.
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

    /// When a task that runs for the first time changes its priority, if that was seen ahead
    /// and no event tells when.
    pub fn changes_priority(&self, task: TaskId) -> Option<Time> {
        let known = self.known(task);
        let later = known.later_prio.is_some_and(|later| !later.in_second_turn);
        let untold = later && known.first_run && !self.runtime_told && self.runs(task);
        // It came some way before if it was preempted, but not so far.
        let ran = self.sched.task(task).se.prev_sum_exec_runtime;
        let delay = (PRIORITY_DELAY.0 / 2).saturating_sub(ran).max(PRIORITY_DELAY.0 / 8);
        untold.then(|| known.began + Duration(delay))
    }

    /// A task changed its priority some time since it began to run: its virtual time went on
    /// by the one weight or the other.
    pub fn changed_weight(&mut self, task: TaskId, before: LoadWeight, now: Time) {
        if self.runtime_told {
            return;
        }
        let span = now.since(self.known(task).began).0.min(PRIORITY_DELAY.0);
        self.had_weight(task, before, span);
    }

    /// Another changed the weight of a task some time before an event that shows it. Who runs was charged by the one weight
    /// or the other; the lag of who waits was scaled, under EEVDF, from an average that has gone on since.
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

    /// A task whose virtual time is known from others': it is alone in its queue, so its lag
    /// is nothing, or the floor follows it. Who may have had a sleeper beside it may be owed something.
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

    /// How far off a time is that was just read off an event; none is where charges are told.
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

    /// A task was queued. Under CFS it may have been put to the earliest time that sleepers
    /// get, which leaves no error but that of the floor.
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
            // Who fell asleep before the recording began may have done so just then, and come later.
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

    /// A task is queued for the first time since the recording began: it brings the lag it
    /// had when it left some queue before, within its bounds.
    fn first_placed(&mut self, task: TaskId) {
        if std::mem::replace(&mut self.known_mut(task).lag_known, true) {
            return;
        }
        self.lag_is_unknown(task);
    }

    /// What an entity may be owed, or owe.
    fn lag_bound(&self, se: SeId) -> u64 {
        let entity = self.sched.se(se);
        calc_delta_fair(entity.slice + self.sched.tick_ns(), &entity.load)
    }

    fn lag_is_unknown(&mut self, task: TaskId) {
        let bound = self.lag_bound(SeId(task.0));
        self.known_mut(task).lag_error = bound;
        self.add_error(SeId(task.0), bound);
    }

    /// What those are owed who are queued on a CPU is not known any more.
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
