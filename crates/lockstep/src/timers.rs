//! Time that passes: ticks, and the timers of both sides, each at its own time.

use std::collections::BTreeSet;

use schedlab_kernel_tree::timer_cpu;
use schedlab_sched::{Curr, TgId};
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::Pair;
use crate::pair::TICK;

/// Number of timers at one instant after which a kernel counts as never done.
const SAME_INSTANT: u32 = 10_000;

/// The place of a timer that expires with the first of the kernel's.
const ANYWHERE: u64 = u64::MAX;

/// A timer of our rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The quota of a group is renewed.
    Period(TgId),
    /// Returned quota is handed out.
    Slack(TgId),
    /// RT throttling.
    Rt,
    /// A deadline task gets a new budget.
    Deadline(TaskId),
    /// The bandwidth of a deadline task is no longer in use.
    Inactive(TaskId),
    /// The slice of a CPU's task ends.
    Slice(CpuId),
    /// The fair server of a CPU.
    Server(CpuId),
}

/// Timers of groups and tasks, and when each is due, ns.
pub(crate) type Timers = BTreeSet<(u64, Timer)>;

impl Pair {
    /// Time passes: ticks of all CPUs and timers when they are due.
    pub(crate) fn pass(&mut self, ns: u64) {
        let end = self.now + ns;
        let mut at_once = 0;
        while self.equal() {
            let theirs = (0..self.nr_cpus()).map(|cpu| self.kernel.timer_at(CpuId::from(cpu))).min();
            let servers =
                (0..self.nr_cpus()).filter_map(|cpu| self.sched.fair_server_timer_at(CpuId::from(cpu)));
            let ours = servers.chain(self.timers.first().map(|due| due.0)).min().unwrap_or(u64::MAX);
            let timer = theirs.unwrap_or(u64::MAX).min(ours).max(self.now);
            let next = timer.min(self.next_tick);
            if next > end {
                break;
            }
            at_once = if next == self.now { at_once + 1 } else { 0 };
            if at_once > SAME_INSTANT {
                self.differs("timers", "timers", "the machine".into(), "endless".into(), "endless".into());
                return;
            }
            self.now = next;
            self.kernel.now(next);
            if timer == next {
                self.fire();
            } else {
                for cpu in (0..self.nr_cpus()).map(CpuId::from) {
                    self.tick(cpu);
                }
                self.next_tick += TICK;
            }
        }
        if self.equal() {
            self.now = end;
            self.kernel.now(end);
        }
    }

    /// The timers that are due expire on both sides, CPU by CPU. Ours are of no CPU, but for those of slices and servers: each
    /// expires where the kernel's does. Timers of one instant expire in the order in which the kernel set them, as that decides
    /// which group gets quota first.
    fn fire(&mut self) {
        // What a CPU that died had set is due on another.
        self.fire_servers();
        let mut due = self.due();
        let mut first = None;
        for cpu in (0..self.nr_cpus()).map(CpuId::from) {
            if self.kernel.timer_at(cpu) > self.now {
                continue;
            }
            self.kernel.timer(cpu);
            first = first.or(Some(cpu));
            let here = |place: u64| timer_cpu(place).is_none_or(|at| at == cpu.0);
            for (_, timer) in due.extract_if(.., |(place, _)| here(*place)) {
                self.fire_ours(cpu, timer);
            }
        }
        let by = first.unwrap_or(CpuId(0));
        // In 5.10 a timer that is set while a CPU dies stays there, and never expires.
        due.retain(|(place, _)| timer_cpu(*place).is_none_or(|cpu| !self.offline[usize::from(cpu)]));
        for (_, timer) in due {
            self.fire_ours(by, timer);
        }
        // A timer that one of these set to expire at once has done so in the same interrupt.
        self.effects();
        for (place, timer) in self.due_of_groups_and_tasks() {
            match timer_cpu(place).map(CpuId).filter(|&cpu| self.kernel.timer_at(cpu) > self.now) {
                Some(cpu) => self.fire_ours(cpu, timer),
                None => self.set_timer(self.now, timer),
            }
        }
        self.fire_servers();
        self.after(format_args!("timers on CPU {}", by.0));
        self.settle();
    }

    /// The timers of servers expire that the kernel has none of any more.
    fn fire_servers(&mut self) {
        for cpu in (0..self.nr_cpus()).map(CpuId::from) {
            if self.kernel.timer_at(cpu) > self.now {
                self.sched.fair_server_timer(cpu, self.time());
            }
        }
    }

    /// Takes the timers of our rules that are due, with the places of the kernel's, in their order.
    fn due(&mut self) -> Vec<(u64, Timer)> {
        let mut due = self.due_of_groups_and_tasks();
        for cpu in (0..self.nr_cpus()).map(CpuId::from) {
            if self.kernel.timer_at(cpu) > self.now {
                continue;
            }
            let is_due = |at: Option<u64>| at.is_some_and(|at| at <= self.now);
            let slice = is_due(self.sched.hrtick_at(cpu)).then_some(Timer::Slice(cpu));
            let server = is_due(self.sched.fair_server_timer_at(cpu)).then_some(Timer::Server(cpu));
            due.extend(slice.into_iter().chain(server).map(|timer| (self.place_of(timer), timer)));
        }
        due.sort_unstable();
        due
    }

    fn due_of_groups_and_tasks(&mut self) -> Vec<(u64, Timer)> {
        let later = self.timers.split_off(&(self.now + 1, Timer::Period(TgId(0))));
        let due = std::mem::replace(&mut self.timers, later);
        due.into_iter().map(|(_, timer)| (self.place_of(timer), timer)).collect()
    }

    /// The place of the kernel's timer. It is not known for the timer of RT throttling, nor for a task that ended.
    fn place_of(&self, timer: Timer) -> u64 {
        let group = |tg: TgId| {
            let (_, group) =
                self.groups[self.groups.iter().position(|(ours, _)| *ours == tg).expect("it exists")];
            self.kernel.group_state(group, CpuId(0))
        };
        let task = |task: TaskId| {
            let number = task.index() - self.nr_cpus();
            (!self.ended[number]).then(|| self.kernel.task_state(self.tasks[number].1))
        };
        match timer {
            Timer::Period(tg) => group(tg).period_timer_place,
            Timer::Slack(tg) => group(tg).slack_timer_place,
            Timer::Deadline(of) => task(of).map_or(ANYWHERE, |task| task.dl_timer_place),
            Timer::Inactive(of) => task(of).map_or(ANYWHERE, |task| task.inactive_timer_place),
            Timer::Rt => ANYWHERE,
            Timer::Slice(cpu) => self.kernel.cpu_state(cpu).hrtick_place,
            Timer::Server(cpu) => self.kernel.cpu_state(cpu).server_place,
        }
    }

    fn fire_ours(&mut self, by: CpuId, timer: Timer) {
        let now = self.time();
        self.tell(|| format!("timer {timer:?}, by CPU {}", by.0));
        let again = match timer {
            Timer::Period(tg) => self.sched.period_timer(tg, by, now),
            Timer::Rt => self.sched.rt_period_timer(now),
            Timer::Slack(tg) => {
                self.sched.slack_timer(tg, by, now);
                None
            }
            Timer::Deadline(task) => {
                self.sched.dl_timer(by, task, now);
                None
            }
            Timer::Inactive(task) => {
                self.sched.dl_inactive_timer(task, now);
                None
            }
            Timer::Slice(cpu) => {
                self.sched.hrtick(cpu, now);
                None
            }
            Timer::Server(cpu) => {
                self.sched.fair_server_timer(cpu, now);
                None
            }
        };
        if let Some(Time(at)) = again {
            self.set_timer(at, timer);
        }
    }

    pub(crate) fn set_timer(&mut self, at: u64, timer: Timer) {
        self.timers.insert((at, timer));
    }

    fn tick(&mut self, cpu: CpuId) {
        if self.offline[cpu.index()] {
            return;
        }
        if self.nohz {
            let stopped = &mut self.tick_stopped[cpu.index()];
            if self.sched.rqs[cpu].curr == Curr::Idle {
                if !*stopped {
                    *stopped = true;
                    self.kernel.nohz_enter(cpu);
                    self.sched.nohz_balance_enter_idle(cpu);
                }
                return;
            }
            if *stopped {
                *stopped = false;
                self.kernel.nohz_exit(cpu);
            }
        }
        self.kernel.tick(cpu);
        let ticked = self.sched.tick(cpu, self.time());
        self.balance_due[cpu.index()] |= ticked.raise_balance;
        self.tell(|| format!("tick on CPU {}", cpu.0));
        self.after(format_args!("the tick of CPU {}", cpu.0));
        self.settle();
    }
}
