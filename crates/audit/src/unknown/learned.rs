//! What is learned of the facts that no event shows, kept beside the shadow; and the window through which the shadow is asked.

use schedlab_sched::{Curr, Kernel, Supposed, View};
use schedlab_topology::{CpuId, PerCpu};
use schedlab_units::{TaskId, Time};

use super::Shadow;
use super::deadlines::BudgetTimers;
use super::idle_scan_limit::ScanLimits;
use super::idle_stamp::IdleStates;
use super::loads;
use super::lost_turn::Turns;
use super::sync_flag::SyncFlags;
use super::wakee_flips::{Family, Flips};
use crate::follow::clocks::Clock;
use crate::follow::watch::Watch;

/// What is learned, by fact.
pub struct Learned {
    /// Unknown facts have the values that earlier events suggest; switched off where nothing is inferred from the
    /// outcome.
    pub trusts: bool,
    /// The current question is hypothetical and leaves nothing behind.
    pub supposing: bool,
    /// The flips of tasks.
    pub family: Family,
    /// How many CPUs searches may have been allowed to examine.
    pub scan_limits: ScanLimits,
    /// How far averages are trusted.
    pub loads: loads::Trust,
    /// For each CPU, its latest switches whose clock may have been read long before.
    pub turns: PerCpu<Turns>,
    /// Where the slice timer may be set for a deadline task.
    pub budget_timers: BudgetTimers,
    /// Depth of the idle states of idle CPUs.
    pub idle_states: IdleStates,
}

/// What is learned of a task.
#[derive(Clone, Debug, Default)]
pub struct OfTask {
    /// Its wakee flips, if those of its ancestor are guessed.
    pub flips: Option<Flips>,
    /// Whether its wakers set the sync flag.
    pub sync_flags: SyncFlags,
    /// How often it left its CPU early without a request, up to the number from which it is assumed to yield.
    pub left_early: u8,
}

impl Watch for Learned {
    type OfTask = OfTask;

    fn new(nr_cpus: usize, kernel: &Kernel) -> Learned {
        Learned {
            trusts: true,
            supposing: false,
            family: Family::new(kernel.tunables.hz, 0),
            scan_limits: ScanLimits::default(),
            loads: loads::Trust::default(),
            turns: PerCpu::new(nr_cpus, |_| Turns::new()),
            budget_timers: BudgetTimers::new(nr_cpus, kernel),
            idle_states: IdleStates::new(nr_cpus),
        }
    }

    fn begun(shadow: &mut Shadow, now: Time) {
        shadow.learned.family = Family::new(shadow.sched.kernel.tunables.hz, shadow.sched.jiffies(now));
    }

    fn forks(shadow: &mut Shadow, parent: TaskId, now: Time) {
        shadow.founds_family(parent, now);
    }

    fn born(shadow: &mut Shadow, task: TaskId, parent: TaskId) {
        shadow.known_mut(task).learned.flips = shadow.known(parent).learned.flips;
    }

    fn ticked(shadow: &mut Shadow, at: Time) {
        shadow.look_at_scan_limits(at);
    }

    fn joins(shadow: &mut Shadow, task: TaskId, now: Time) {
        shadow.replenish(task, now);
    }

    #[inline]
    fn switched(shadow: &mut Shadow, cpu: CpuId, prev: Curr, next: Curr, clock: Clock) {
        shadow.sets_budget_timer(cpu, next);
        shadow.turned(cpu, prev, next, clock);
    }

    #[inline]
    fn begins(shadow: &mut Shadow, task: TaskId) {
        shadow.may_have_yielded(task);
    }

    fn left_waiting(shadow: &mut Shadow, cpu: CpuId, now: Time) {
        shadow.out_of_quota(cpu, now);
    }
}

impl Shadow {
    /// Runs `look` under an assumption, without keeping what it learns.
    pub fn suppose<T>(&mut self, look: impl FnOnce(&mut Shadow) -> T) -> T {
        let before = std::mem::replace(&mut self.learned.supposing, true);
        let result = look(self);
        self.learned.supposing = before;
        result
    }

    /// The window for a question about this state.
    pub fn view(&self, now: Time) -> View<'_> {
        if self.learned.supposing {
            self.supposed(now, &Supposed::NOTHING)
        } else {
            View::new(&self.sched, now, None)
        }
    }

    /// The window for a question about this state with some values replaced.
    pub fn supposed<'a>(&'a self, now: Time, supposed: &'a Supposed<'a>) -> View<'a> {
        View::supposing(&self.sched, now, supposed)
    }
}
