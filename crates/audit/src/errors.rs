//! How far the virtual times here may be from the kernel's.
//!
//! A virtual time is a sum of many spans and of averages over queues, each known from the
//! times of events. What is not in the trace makes an error, and where it can be bounded,
//! the bound is carried with the task: whoever could come first within the bounds is a
//! possible pick.

use schedlab_sched::{FairPolicy, Feature, LoadWeight, NICE_0_LOAD, calc_delta_fair};
use schedlab_topology::CpuId;
use schedlab_units::{Duration, TaskId, Time};

use crate::shadow::Shadow;

/// By how much a span between events may differ from what the kernel charged, ns.
const EVENT_ERROR: u64 = 5_000;

/// Largest error of a virtual time: placing keeps all within some slices, ns.
const ERROR_MAX: u64 = 10_000_000;

/// A task that gives itself another priority does so within this time from its first run,
/// and for all we know in the middle.
const PRIORITY_DELAY: Duration = Duration::millis(2);

impl Shadow {
    /// What the errors of a queue make of its average.
    pub fn average_error(&self, cpu: CpuId) -> u64 {
        let root = self.sched.root_cfs(cpu);
        let tree = root.timeline.entries().iter().map(|entry| entry.se);
        let (mut sum, mut weights) = (0, 0);
        for se in root.curr.into_iter().chain(tree).filter(|se| se.is_task()) {
            let weight = self.sched.se(se).load.weight >> 10;
            sum += weight * self.known(TaskId(se.0)).vruntime_error;
            weights += weight;
        }
        sum / weights.max(1)
    }

    /// A task came to another CPU: its virtual time was taken off one clock and put on
    /// another, both read at times that are not quite known. `left` is the error of the
    /// average where it was.
    pub fn moved(&mut self, task: TaskId, left: u64) {
        let slack = if self.runtime_told { EVENT_ERROR } else { self.slack.time().0 };
        let error = self.known(task).vruntime_error + slack + left;
        self.known_mut(task).vruntime_error = error.min(ERROR_MAX);
    }

    /// A task was queued by a CPU that read the clock some time since `from`: its place is
    /// relative to what runs there, which went on.
    pub fn placed(&mut self, task: TaskId, from: Time, now: Time) {
        let entry = self.sched.task(task);
        let root = self.sched.root_cfs(entry.cpu);
        if self.sched.kernel.rules.policy != FairPolicy::Eevdf
            || !entry.policy.is_fair()
            || root.nr_queued < 2
        {
            return;
        }
        let mut error = self.average_error(entry.cpu);
        if !self.runtime_told {
            let span = now.since(from).0.min(ERROR_MAX);
            error += span * NICE_0_LOAD / root.load.weight.max(1);
        }
        let known = self.known_mut(task);
        known.vruntime_error = (known.vruntime_error + error).min(ERROR_MAX);
    }

    /// A task stopped running. The switch read the clock some time within `held` before its
    /// event: what was left is charged to the task that runs next.
    pub fn ran(&mut self, task: TaskId, held: Duration) {
        self.charged_about(task, EVENT_ERROR + held.0);
    }

    /// A task began to run at a switch that read the clock some time within `held` before
    /// its event.
    pub fn begins(&mut self, task: TaskId, held: Duration) {
        self.charged_about(task, held.0);
    }

    fn charged_about(&mut self, task: TaskId, error: u64) {
        let known = self.known_mut(task);
        if !known.charged.is_told() {
            known.vruntime_error = (known.vruntime_error + error).min(ERROR_MAX);
        }
    }

    /// When a task that runs for the first time changes its priority, if that was seen ahead
    /// and no event tells when.
    pub fn changes_priority(&self, task: TaskId) -> Option<Time> {
        let known = self.known(task);
        let untold = known.later_prio.is_some() && known.first_run && !self.runtime_told && self.runs(task);
        untold.then(|| known.began + Duration(PRIORITY_DELAY.0 / 2))
    }

    /// A task changed its priority some time since it began to run: its virtual time went on
    /// by the one weight or the other.
    pub fn changed_weight(&mut self, task: TaskId, before: LoadWeight, now: Time) {
        if self.runtime_told {
            return;
        }
        let known = self.known(task);
        let span = now.since(known.began).0.min(PRIORITY_DELAY.0);
        let after = self.sched.task(task).se.load;
        let error = calc_delta_fair(span, &after).abs_diff(calc_delta_fair(span, &before));
        let known = self.known_mut(task);
        known.vruntime_error = (known.vruntime_error + error).min(ERROR_MAX);
    }

    /// A task whose virtual time is known from others': it is alone in its queue, so its lag
    /// is nothing, or the floor follows it.
    pub fn steady(&mut self, task: TaskId) {
        let entry = self.sched.task(task);
        if !entry.policy.is_fair() {
            return;
        }
        let root = self.sched.root_cfs(entry.cpu);
        let floor = match self.sched.kernel.rules.policy {
            FairPolicy::Cfs => entry.se.vruntime == root.min_vruntime,
            FairPolicy::Eevdf => root.nr_queued == 1 && entry.se.on_rq,
        };
        if floor {
            let known = self.known_mut(task);
            known.vruntime_error = EVENT_ERROR;
            known.lag_known = true;
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
        let credit = self.sched.scaled.latency >> u32::from(kernel.has(Feature::GentleFairSleepers));
        let floor = self.sched.root_cfs(entry.cpu).min_vruntime;
        if floor.wrapping_sub(entry.se.vruntime) == credit {
            let slack = self.slack.time().0;
            self.known_mut(task).vruntime_error = slack;
        }
    }

    /// A task is queued for the first time since the recording began: it brings the lag it
    /// had when it left some queue before, within its bounds.
    fn first_placed(&mut self, task: TaskId) {
        if std::mem::replace(&mut self.known_mut(task).lag_known, true) {
            return;
        }
        let entity = &self.sched.task(task).se;
        let bound = calc_delta_fair(entity.slice + self.sched.tick_ns(), &entity.load);
        let known = self.known_mut(task);
        known.vruntime_error = (known.vruntime_error + bound).min(ERROR_MAX);
    }
}
