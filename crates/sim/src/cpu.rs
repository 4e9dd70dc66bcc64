//! What a CPU is executing, and its progress.
//!
//! A CPU first processes its `overhead` (the kernel's own paths: switches, system calls, interrupts), then the work of
//! its current task. Both pass at a rate, and rates change only at events, so the state at any time between follows
//! from `since`. At most one event per CPU is armed. When its cause moves to a later time, the event is left alone and
//! finds, when it comes, that it is too early.

use schedlab_machine::{EvictionClock, IdlePredictor, Rate, Work};
use schedlab_sched::Curr;
use schedlab_topology::CpuId;
use schedlab_trace::Comm;
use schedlab_units::{Duration, TaskId, Time};

use crate::account::{OfCpu, Part};
use crate::to_idle::Leaving;

/// One CPU.
#[derive(Clone, Debug)]
pub(crate) struct Cpu {
    /// Everything up to here is accounted for.
    pub since: Time,
    /// Work in the kernel before the current task continues.
    pub overhead: Work,
    /// How fast it works.
    pub rate: Rate,
    /// How fast the current task's own work passes: the same, or that of its memory flow.
    pub work_rate: Rate,
    /// It is stalled: it waits for a cache line.
    pub stands: bool,
    /// It is stopped: it is not its turn.
    pub waits: bool,
    /// It is on a kernel path, which ends when the overhead is worked off.
    pub in_kernel: bool,
    /// When a request is acted on inside the present stretch of kernel work.
    pub resched_at: Option<Time>,
    /// What it runs according to the trace.
    pub shown: Curr,
    /// The name of its idle task.
    pub swapper: Comm,
    /// Number of the armed event, and its time.
    pub number: u32,
    pub armed: Option<Time>,
    /// A notification is on its way.
    pub notified: bool,
    /// How long the present notification takes to reach it, if not as the machine defines.
    pub heard: Option<Duration>,
    /// It put a wake-up on its own wake list.
    pub own_list: bool,
    /// Balancing for the idle CPUs was requested.
    pub nohz_kick: bool,
    /// It was asked to unthrottle queues that have quota again.
    pub unthrottle: bool,
    /// It was asked to push RT tasks.
    pub rt_push: bool,
    /// Its tick is stopped while idle.
    pub tick_stopped: bool,
    /// A tick is in the queue, and for when.
    pub tick_armed: bool,
    pub tick_at: Time,
    /// Timers of the wheel that expire in that tick: whose, and their numbers.
    pub wheel: Vec<(TaskId, u32)>,
    /// Time of the slice timer in the queue, and its number.
    pub hrtick: Option<u64>,
    pub hrtick_number: u32,
    /// Newly idle balancing: the CPUs that each pass examined, and the begin and end of all passes together.
    pub passes: Passes,
    /// It looks for work, and still has to switch away from this task.
    pub leaving: Option<Leaving>,
    /// While idle: since when, in which state, and when it has left it because
    /// something happens.
    pub idle_since: Time,
    pub idle_state: Option<usize>,
    pub idle_number: u32,
    pub awake_at: Option<Time>,
    pub predictor: IdlePredictor,
    /// Up to when its time is counted in the profile.
    pub counted: Time,
    /// Where its time went.
    pub account: OfCpu,
    /// Earliest timer known to be set here.
    pub next_timer: Time,
    /// Active balancing and other work for the stopper.
    pub stopper: Option<TaskId>,
    /// Time it was busy since the clock was last sampled, and up to when that is counted.
    pub busy_ns: u64,
    pub busy_since: Time,
}

impl Cpu {
    /// An idle CPU at the start of a run.
    pub fn new(cpu: CpuId, now: Time) -> Cpu {
        Cpu {
            swapper: Comm::swapper(cpu),
            since: now,
            overhead: Work::NONE,
            rate: Rate::FULL,
            work_rate: Rate::FULL,
            stands: false,
            waits: false,
            in_kernel: false,
            resched_at: None,
            shown: Curr::Idle,
            number: 0,
            armed: None,
            notified: false,
            heard: None,
            own_list: false,
            nohz_kick: false,
            unthrottle: false,
            rt_push: false,
            tick_stopped: false,
            tick_armed: false,
            tick_at: now,
            wheel: Vec::new(),
            hrtick: None,
            hrtick_number: 0,
            passes: Passes::default(),
            leaving: None,
            idle_since: now,
            idle_state: None,
            idle_number: 0,
            awake_at: None,
            predictor: IdlePredictor::new(),
            counted: now,
            account: OfCpu::default(),
            next_timer: Time::MAX,
            stopper: None,
            busy_ns: 0,
            busy_since: now,
        }
    }

    /// Accounts for the time up to `now`; `work` is that of the current task, if any. Returns how long the task worked.
    #[inline]
    pub fn advance(&mut self, now: Time, work: Option<&mut Work>) -> u64 {
        let mut ns = now.0 - self.since.0;
        self.since = now;
        if ns == 0 {
            return 0;
        }
        if self.stands_still() {
            if self.stands {
                self.account.charge(Part::Waiting, ns);
            } else {
                self.account.passed(ns, false);
            }
            return 0;
        }
        if self.overhead != Work::NONE {
            let needed = self.overhead.time_at(self.rate);
            if ns < needed {
                self.overhead = self.overhead.after(ns, self.rate);
                return 0;
            }
            self.overhead = Work::NONE;
            ns -= needed;
        }
        if ns > 0 {
            // Nothing was pending at the end of the kernel's path, or an event had been armed.
            self.in_kernel = false;
            self.account.passed(ns, work.is_some());
        }
        let Some(work) = work else { return 0 };
        *work = work.after(ns, self.work_rate);
        ns
    }

    /// Whether it makes no progress as time passes.
    #[inline]
    pub fn stands_still(&self) -> bool {
        self.stands || self.waits
    }

    /// How long until the overhead is worked off.
    #[inline]
    pub fn overhead_ns(&self) -> u64 {
        self.overhead.time_at(self.rate)
    }
}

/// Consecutive balance passes of a CPU, the smallest domain first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passes {
    begin: Time,
    end: Time,
    /// What each pass has examined, together with the passes before it.
    looked: [u32; Passes::MAX],
    count: usize,
}

impl Passes {
    /// Number of domains that are distinguished; on a machine with more the largest ones count as one.
    const MAX: usize = 6;

    /// Another pass examined `examined` CPUs; the first of them began at `begin`, and it ends at `end`.
    pub fn add(&mut self, begin: Time, end: Time, examined: u32) {
        if self.count == 0 {
            self.begin = begin;
        }
        let before = self.count.checked_sub(1).map_or(0, |last| self.looked[last]);
        self.count = (self.count + 1).min(Passes::MAX);
        self.looked[self.count - 1] = before + examined;
        self.end = end;
    }

    /// Whether the last of them ends after `now`.
    pub fn last_beyond(&self, now: Time) -> bool {
        self.count > 0 && self.end > now
    }

    /// A wake-up comes: what is left out, as no pass begins after that.
    ///
    /// Kernel: sched_balance_newidle(), kernel/sched/fair.c, v6.12.
    pub fn cut(&mut self, now: Time) -> Duration {
        if now >= self.end || self.count == 0 {
            return Duration::ZERO;
        }
        let (all, lasts) = (u64::from(self.looked[self.count - 1].max(1)), self.end.since(self.begin).0);
        let end_of = |looked: u32| self.begin + Duration(lasts * u64::from(looked) / all);
        let under_way = self.looked[..self.count].iter().map(|&looked| end_of(looked)).find(|&end| end > now);
        let left_out = self.end.since(under_way.unwrap_or(self.end));
        self.count = 0;
        left_out
    }
}

/// What the CPUs of a core, of a cluster or of an LLC share.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CoreState {
    /// How many of its CPUs are busy.
    pub busy: u32,
    /// Bytes of its cache that the tasks on it want.
    pub wanted: u64,
    /// Eviction clock of its cache.
    pub clock: EvictionClock,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_ends_passes_behind_the_one_under_way() {
        let passes = || {
            let mut passes = Passes::default();
            for (examined, end) in [(2, 1_500), (18, 2_000)] {
                passes.add(Time(1_000), Time(end), examined);
            }
            passes
        };
        for (now, cut) in [(900, 900), (1_050, 900), (1_100, 0), (1_999, 0), (2_000, 0), (3_000, 0)] {
            assert_eq!(passes().cut(Time(now)), Duration(cut), "a wake-up at {now}");
        }
        let mut twice = passes();
        assert_eq!([twice.cut(Time(900)), twice.cut(Time(950))], [Duration(900), Duration::ZERO]);
    }

    #[test]
    fn overhead_comes_before_work_and_remainders_are_kept() {
        let mut cpu = Cpu::new(CpuId(0), Time::ZERO);
        cpu.rate = Rate::of(1, 2);
        cpu.work_rate = Rate::of(1, 2);
        cpu.overhead = Work::nanos(10);
        let mut work = Work::nanos(100);
        cpu.advance(Time(15), Some(&mut work));
        assert_eq!((cpu.overhead_ns(), work), (5, Work::nanos(100)));
        cpu.advance(Time(25), Some(&mut work));
        assert_eq!((cpu.overhead_ns(), work), (0, Work(Work::nanos(97).0 + 0x8000)));
        assert_eq!(work.time_at(cpu.rate), 195);
    }
}
