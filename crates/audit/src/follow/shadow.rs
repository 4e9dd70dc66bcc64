//! A scheduler that is kept in step with a recording.
//!
//! What the trace shows is applied to a [`Sched`]: which tasks join and leave a queue, run and move. From that the
//! shadow derives what no event shows: averages, virtual times, idle stamps, recently used CPUs, wakee flips. A trace
//! does not contain ticks; they are simulated where a busy CPU must have had them.

use std::collections::BTreeMap;

use schedlab_sched::{CfsRqId, Curr, Feature, Kernel, Sched, SeId, Took};
use schedlab_topology::{CpuId, CpuMask, PerCpu, Topology};
use schedlab_trace::Comm;
use schedlab_units::{Duration, Pid, TaskId, Time};

use crate::follow::averages::Averages;
use crate::follow::charged::Charged;
use crate::follow::clocks::Clocks;
use crate::follow::dead::Dead;
use crate::follow::grouping::{Grouping, InGroups};
use crate::follow::pairing::LaterPrio;
use crate::follow::pids::Pids;
use crate::follow::slack::Slack;
use crate::follow::unmoved::Unmoved;
use crate::follow::watch::Watch;
use schedlab_recording::AffinityHint;
use schedlab_recording::{Policies, PolicyKind};

/// Idle stamp of a CPU that went idle at an unknown time before the recording.
pub const IDLE_BEFORE: u64 = 1;

/// What is known about a task besides its state in the scheduler.
#[derive(Clone, Debug)]
pub struct Known<T> {
    /// Its pid.
    pub pid: Pid,
    /// Its name, as last seen.
    pub comm: Comm,
    /// Its priority, if one was applied since the task got its name.
    pub prio: Option<i32>,
    /// Which of the policies that share its priority it has.
    pub kind: PolicyKind,
    /// Its mask is known from its name, from a hint or from its parent.
    pub bound: bool,
    /// It existed before the recording began.
    pub lived_before: bool,
    /// Its recently used CPU is known.
    pub recent_known: bool,
    /// It was born during the recording and has not been switched out since.
    pub first_run: bool,
    /// The priority that it will have given itself when it first leaves a CPU.
    pub later_prio: Option<LaterPrio>,
    /// A look ahead has shown the priority that it gives itself.
    pub nice_told: bool,
    /// Its priority has changed since it began to run.
    pub other_prio: bool,
    /// How far its virtual time may be from the shadow's, ns.
    pub vruntime_error: u64,
    /// How much of that error comes from its lag before the recording, or from a weight that another task changed, ns.
    pub lag_error: u64,
    /// It was placed at the floor of its queue.
    pub by_floor: bool,
    /// The queue for which a recorded virtual time of this task is known, since it joined that queue.
    pub told_on: Option<CfsRqId>,
    /// Its lag when it last left a queue is known.
    pub lag_known: bool,
    /// When it began to run.
    pub began: Time,
    /// When it was switched out.
    pub left: Time,
    /// What charge events show about its run time.
    pub charged: Charged,
    /// A kernel thread that has not been woken since its birth, and so is not bound yet.
    pub newborn: bool,
    /// It was woken while it was leaving its CPU, which will complete the wake-up.
    pub handed_over: bool,
    /// When it fell asleep, if its dequeue may have been delayed.
    pub may_stay: Option<Time>,
    /// The task that it replaced on the CPU may still be queued with it.
    pub beside_sleeper: bool,
    /// Its next wake-up comes without the sync flag: the flag is set only for interruptible sleepers, and not by hard
    /// interrupts.
    pub plainly_woken: bool,
    /// CPUs on which it was seen.
    pub seen_on: CpuMask,
    /// Its groups.
    pub groups: InGroups,
    /// What is learned of it.
    pub learned: T,
}

impl<T> Known<T> {
    /// Its pid and name, for a verdict.
    pub fn who(&self) -> (Pid, Comm) {
        (self.pid, self.comm)
    }
}

/// A tick or the slice timer requested that a task be preempted.
#[derive(Clone, Copy, Debug)]
pub struct SliceEnded {
    /// Time of the request.
    pub at: Time,
    /// A switch up to this time may be the answer, even if the same task would continue here.
    pub until: Time,
    /// The request came from the timer, which is answered at once.
    pub by_timer: bool,
}

/// The first tick from a time on.
fn tick_from(time: u64, tick: u64) -> Time {
    Time(time.div_ceil(tick).saturating_mul(tick))
}

/// A scheduler and what the recording shows about its tasks. `W` has a hook for each step and keeps what it learns.
pub struct Shadow<W: Watch = ()> {
    /// The state.
    pub sched: Sched,
    /// Start of the recording.
    pub start: Time,
    /// Changes each time an event changes the state.
    pub generation: u64,
    /// It is not known which groups tasks are in.
    pub groups_hidden: bool,
    /// Which groups tasks are in.
    pub grouping: Grouping,
    /// How far the virtual times of group entities may be from the shadow's, ns.
    pub group_errors: BTreeMap<SeId, u64>,
    /// The trace contains charges (`sched_stat_runtime`).
    pub runtime_told: bool,
    /// Queues with recorded virtual times, and the latest value of their floors when the first was recorded.
    pub floors_told: BTreeMap<CfsRqId, u64>,
    /// How far apart events of different CPUs can be and still overlap.
    pub slack: Slack,
    /// How long before their events CPUs may have read their clocks.
    pub clocks: Clocks,
    /// When a tick or the slice timer requested preemption of the task of a CPU.
    pub slice_ended: PerCpu<Option<SliceEnded>>,
    /// Whether the current task of a CPU is known.
    pub cpu_known: PerCpu<bool>,
    /// Whether the CPU that each CPU last picked out of several suitable ones is known (`any_cpu`).
    pub any_cpu_known: PerCpu<bool>,
    /// Whether a CPU was busy when the recording began.
    pub began_busy: PerCpu<bool>,
    /// For each CPU, whether it switched unseen since it was last seen idle.
    pub unseen: PerCpu<bool>,
    /// Number of switches that must be missing.
    pub unseen_switches: u64,
    /// Runnable tasks were replaced by the idle task, so some group has a quota.
    pub quota_shown: bool,
    /// A CPU may be held up between reading its clock and writing its event.
    pub heeds_holds: bool,
    pub(crate) tasks: Pids,
    pub(crate) known: Vec<Known<W::OfTask>>,
    pub(crate) dead: Dead,
    pub(crate) hints: Vec<AffinityHint>,
    pub(crate) policies: Policies,
    /// Masks that a simulated trace reported for tasks not seen yet.
    pub(crate) told_masks: BTreeMap<Pid, CpuMask>,
    /// Tasks that run for the first time and are about to change their priority.
    pub(crate) changing: Vec<TaskId>,
    /// Idle CPUs that got tasks by balancing, and when.
    pub(crate) roused: Vec<(CpuId, Time)>,
    next_tick: Time,
    /// Ticks that wait for their charge.
    pub(crate) due_ticks: Vec<(CpuId, Time)>,
    /// Averages of each CPU when it last went idle.
    pub at_idle: PerCpu<Averages>,
    /// Clock of the averages of each CPU at the start of the recording.
    pub(crate) pelt_start: PerCpu<u64>,
    /// What is learned of the facts that no event shows.
    pub learned: W,
}

/// How long the recorded kernel's own work took: no event shows it, so it is guessed. Two bounds depend on it: of
/// scans by average cost, and of newly idle balancing.
const TOOK: Took = Took { scan_cpu: 18, pass: 300, pass_cpu: 50, pass_task: 300, blocked_update: 500 };

impl<W: Watch> Shadow<W> {
    /// A machine about which nothing is known yet.
    pub fn new(topology: &Topology, kernel: &Kernel, hints: Vec<AffinityHint>) -> Self {
        let mut sched = Sched::new(topology, kernel, TOOK, 1);
        sched.mover = &Unmoved;
        // No event shows when the kernel throttles real-time tasks, and no timer would unthrottle them here. No event
        // shows a budget either, or the timer that may end it.
        sched.kernel.features.set(Feature::HrtickDl, false);
        let tunables = &mut sched.kernel.tunables;
        (tunables.rt_runtime_us, tunables.fair_server_runtime_ns) = (tunables.rt_period_us, 0);
        Shadow {
            sched,
            start: Time::ZERO,
            generation: 0,
            groups_hidden: false,
            grouping: Grouping::default(),
            group_errors: BTreeMap::new(),
            runtime_told: false,
            floors_told: BTreeMap::new(),
            slack: Slack::default(),
            clocks: Clocks::new(topology.nr_cpus()),
            told_masks: BTreeMap::new(),
            slice_ended: PerCpu::new(topology.nr_cpus(), |_| None),
            cpu_known: PerCpu::new(topology.nr_cpus(), |_| false),
            any_cpu_known: PerCpu::new(topology.nr_cpus(), |_| false),
            began_busy: PerCpu::new(topology.nr_cpus(), |_| false),
            unseen: PerCpu::new(topology.nr_cpus(), |_| false),
            unseen_switches: 0,
            quota_shown: false,
            heeds_holds: true,
            tasks: Pids::default(),
            known: Vec::new(),
            dead: Dead::default(),
            hints,
            policies: Policies::default(),
            changing: Vec::new(),
            roused: Vec::new(),
            next_tick: Time::ZERO,
            due_ticks: Vec::new(),
            at_idle: PerCpu::new(topology.nr_cpus(), |_| Averages::default()),
            pelt_start: PerCpu::new(topology.nr_cpus(), |_| 0),
            learned: W::new(topology.nr_cpus(), kernel),
        }
    }

    /// The recording begins: all CPUs are idle until it shows otherwise.
    pub fn begin(&mut self, now: Time) {
        self.start = now;
        let tick = self.sched.tick_ns();
        self.next_tick = tick_from(now.0, tick);
        for cpu in self.cpus() {
            self.sched.update_rq_clock(cpu, now);
            self.pelt_start[cpu] = self.sched.rq_clock_pelt(cpu);
            self.sched.rqs[cpu].idle_stamp = IDLE_BEFORE;
            self.sched.update_idle_core(cpu);
            self.sched.nohz_balance_enter_idle(cpu);
        }
        W::begun(self, now);
    }

    /// All CPUs.
    pub fn cpus(&self) -> impl Iterator<Item = CpuId> + use<W> {
        (0..self.sched.rqs.len()).map(CpuId::from)
    }

    /// Whether the machine has a CPU.
    #[inline]
    pub fn has_cpu(&self, cpu: CpuId) -> bool {
        cpu.index() < self.sched.rqs.len()
    }

    /// What is known about a task.
    #[inline]
    pub fn known(&self, task: TaskId) -> &Known<W::OfTask> {
        &self.known[task.index()]
    }

    /// What is known about a task, for changes.
    #[inline]
    pub fn known_mut(&mut self, task: TaskId) -> &mut Known<W::OfTask> {
        &mut self.known[task.index()]
    }

    /// The task with a pid, if it has been seen.
    #[inline]
    pub fn find(&self, pid: Pid) -> Option<TaskId> {
        self.tasks.get(pid)
    }

    /// Advances time: runs the ticks of busy CPUs.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        if self.next_tick <= now || !self.changing.is_empty() {
            self.pass(now);
        }
        self.sched.effects.clear();
    }

    fn pass(&mut self, now: Time) {
        let tick = self.sched.tick_ns();
        // A recording may contain a gap of hours; averages are zero after a few seconds.
        let gap = 2_000_000_000;
        if now.since(self.next_tick).0 > gap {
            self.next_tick = tick_from(now.0 - gap, tick);
        }
        self.change_priorities(now);
        // At the end of time no other tick follows.
        while self.next_tick <= now && self.next_tick < Time::MAX {
            let at = self.next_tick;
            for cpu in self.cpus() {
                if self.sched.rqs[cpu].curr != Curr::Idle {
                    self.slice_timer(cpu, at);
                    self.tick_in_turn(cpu, at);
                }
            }
            W::ticked(self, at);
            self.next_tick = at + Duration(tick);
        }
    }

    /// A tick of a busy CPU and the balancing that it causes, which only leaves its marks. `just_asked`: whether the
    /// tick's charge, if it is recorded, has requested preemption of the task.
    pub(crate) fn tick(&mut self, cpu: CpuId, at: Time, just_asked: bool) {
        self.doubt(cpu);
        let asked = self.is_asked(cpu);
        let ticked = self.sched.tick(cpu, at);
        if let Curr::Task(task) = self.sched.rqs[cpu].curr {
            self.sched.task_cache_work(task, at);
        }
        if !asked && self.is_asked(cpu) {
            let until = at + Duration(self.sched.tick_ns());
            self.slice_ended[cpu] = Some(SliceEnded { at, until, by_timer: false });
        }
        if !just_asked {
            self.goes_on(cpu, at);
        }
        if ticked.raise_balance {
            self.sched.run_rebalance_domains(cpu, at);
        }
        if let Some(ilb) = ticked.nohz_kick
            && self.sched.nohz_kicked(ilb)
        {
            self.sched.run_rebalance_domains(ilb, at);
        }
    }

    /// Whether preemption of the task of a CPU has been requested.
    #[inline]
    pub fn is_asked(&self, cpu: CpuId) -> bool {
        self.sched.rqs[cpu].need_resched.any()
    }

    /// Runs the slice timer of a CPU if it has expired since the last check.
    #[inline]
    pub fn slice_timer(&mut self, cpu: CpuId, now: Time) {
        if self.slice_ended[cpu].is_some() || self.sched.hrtick_at(cpu).is_some() {
            self.set_off(cpu, now);
        }
    }

    fn set_off(&mut self, cpu: CpuId, now: Time) {
        if let Some(SliceEnded { at, by_timer: true, .. }) = self.slice_ended[cpu]
            && self.is_asked(cpu)
            && now > at + self.slack.time()
        {
            // The task was preempted and picked again at once, which no event shows.
            self.sched.switch_to(cpu, self.sched.rqs[cpu].curr, at);
        }
        // If charges are recorded, the timer's own charge comes first.
        if !self.tells_clock(cpu) {
            self.expire_slice_timer(cpu, now);
        }
    }

    /// The slice timer of a CPU fires, if it is due.
    pub fn expire_slice_timer(&mut self, cpu: CpuId, now: Time) {
        // If charges are recorded, the current one is the timer's own.
        let told = self.tells_clock(cpu);
        while let Some(at) = self.sched.hrtick_at(cpu).filter(|&at| at <= now.0).map(Time) {
            let at = if told { now } else { at };
            let asked = self.is_asked(cpu);
            self.sched.hrtick(cpu, at);
            let Curr::Task(curr) = self.sched.rqs[cpu].curr else { return };
            if !asked && self.is_asked(cpu) {
                let off = self.slack.time() + Duration(self.error_of(SeId(curr.0)));
                self.slice_ended[cpu] = Some(SliceEnded { at, until: at + off, by_timer: true });
            }
            self.goes_on(cpu, at);
        }
    }

    /// If preemption of a CPU's task was requested but the task is picked again, it continues; no event shows that.
    /// Sleepers that came first have left their queue.
    pub fn goes_on(&mut self, cpu: CpuId, now: Time) {
        let curr = self.sched.rqs[cpu].curr;
        if self.is_asked(cpu) && self.sched.choose_next(cpu).next == curr {
            self.sched.switch_to(cpu, curr, now);
        }
    }

    /// Whether a task runs.
    #[inline]
    pub fn runs(&self, task: TaskId) -> bool {
        self.sched.rqs[self.sched.task(task).cpu].curr == Curr::Task(task)
    }

    /// How long a CPU may have been held up before its event, which is processed next.
    #[inline]
    pub fn held(&self, cpu: CpuId, now: Time) -> Duration {
        if self.heeds_holds { self.clocks.held(cpu, now) } else { Duration::ZERO }
    }

    /// Charges the current entities in the queues of a task and above.
    pub fn charge_levels(&mut self, task: TaskId) {
        let mut level = Some(SeId(task.0));
        while let Some(se) = level {
            self.sched.update_curr(self.sched.cfs_rq_of(se));
            level = self.sched.se(se).parent;
        }
    }
}

#[cfg(test)]
impl<W: Watch> Shadow<W> {
    /// For tests: `a` has run alone on CPU 0 of two since `at`, when the recording began.
    pub(crate) fn with_one(kernel: &str, at: Time) -> (Shadow<W>, TaskId) {
        let topology = Topology::regular("1x1x2").unwrap();
        let mut shadow = Self::new(&topology, &Kernel::parse(kernel).unwrap(), Vec::new());
        shadow.begin(at);
        shadow.sync_curr(CpuId(0), Pid(7), &Comm::from("a"), at);
        let task = shadow.find(Pid(7)).unwrap();
        (shadow, task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_end_with_time() {
        let topology = Topology::regular("1x1x2").unwrap();
        let mut shadow = <Shadow>::new(&topology, &Kernel::parse("v6.12").unwrap(), Vec::new());
        let tick = shadow.sched.tick_ns();
        shadow.begin(Time(u64::MAX - 5 * tick));
        shadow.sync_curr(CpuId(0), Pid(7), &Comm::from("a"), Time(u64::MAX - 4 * tick));
        for before in [3 * tick, tick, 1, 0, 0] {
            shadow.advance(Time(u64::MAX - before));
        }
        assert_eq!(shadow.next_tick, Time::MAX);
    }
}
