//! Time that passes: ticks, and the timers of both sides, each at its own time.

use std::collections::BTreeSet;

use schedlab_sched::Curr;
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use schedlab_sched::TgId;

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
}

/// The timers of our rules. Those that are due at one instant expire in the order in which they were set, as the kernel's.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// When a timer is due, ns, and how many were set before it.
    due: BTreeSet<(u64, u64, Timer)>,
    set: u64,
}

impl Timers {
    /// Sets a timer; to set it again for the same time changes nothing.
    pub(crate) fn set(&mut self, at: u64, timer: Timer) {
        if !self
            .due
            .iter()
            .skip_while(|due| due.0 < at)
            .take_while(|due| due.0 == at)
            .any(|due| due.2 == timer)
        {
            self.due.insert((at, self.set, timer));
            self.set += 1;
        }
    }

    /// Moves timers, in this order, behind all that are due at the same time.
    fn set_again(&mut self, timers: &[Timer]) {
        for timer in timers {
            if let Some(&due) = self.due.iter().find(|due| due.2 == *timer) {
                self.due.remove(&due);
                self.due.insert((due.0, self.set, due.2));
                self.set += 1;
            }
        }
    }

    fn first_at(&self) -> Option<u64> {
        self.due.first().map(|due| due.0)
    }

    /// The timers that are due.
    fn due(&self, now: u64) -> impl Iterator<Item = Timer> + '_ {
        self.due.iter().take_while(move |due| due.0 <= now).map(|due| due.2)
    }

    /// Takes the first timer that is due, of those that are meant.
    fn take_due(&mut self, now: u64, meant: impl Fn(Timer) -> bool) -> Option<Timer> {
        let due = *self.due.iter().take_while(|due| due.0 <= now).find(|due| meant(due.2))?;
        self.due.remove(&due);
        Some(due.2)
    }
}

impl Pair {
    /// Time passes: ticks of all CPUs and timers when they are due.
    pub(crate) fn pass(&mut self, ns: u64) {
        let end = self.now + ns;
        let mut at_once = 0;
        while self.equal() {
            let theirs = (0..self.nr_cpus()).map(|cpu| self.kernel.timer_at(CpuId::from(cpu))).min();
            let servers =
                (0..self.nr_cpus()).filter_map(|cpu| self.sched.fair_server_timer_at(CpuId::from(cpu)));
            let ours = servers.chain(self.timers.first_at()).min().unwrap_or(u64::MAX);
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

    /// The timers that are due, on the CPUs on which the kernel set them. Ours are of no CPU, but for the slice timers: each
    /// expires where the kernel's does. The one of RT throttling expires with the first.
    fn fire(&mut self) {
        // What a CPU that died had set is due on another.
        for cpu in (0..self.nr_cpus()).map(CpuId::from) {
            if self.kernel.timer_at(cpu) > self.now {
                self.sched.fair_server_timer(cpu, self.time());
            }
        }
        let mut by = None;
        let places: Vec<(Timer, u64)> =
            self.timers.due(self.now).map(|timer| (timer, self.place_of(timer))).collect();
        for cpu in (0..self.nr_cpus()).map(CpuId::from) {
            if self.kernel.timer_at(cpu) > self.now {
                continue;
            }
            let slice = self.sched.hrtick_at(cpu).is_some_and(|at| at <= self.now);
            self.kernel.timer(cpu);
            if slice {
                self.sched.hrtick(cpu, self.time());
                self.tell(|| format!("slice timer of CPU {}", cpu.0));
            } else {
                self.sched.fair_server_timer(cpu, self.time());
                let here = |at: u64| at == ANYWHERE || at == u64::from(cpu.0);
                let elsewhere = |timer| places.iter().any(|&(of, at)| of == timer && !here(at));
                self.fire_ours(cpu, |timer| !elsewhere(timer));
            }
            by = by.or(Some(cpu));
        }
        let by = by.unwrap_or(CpuId(0));
        self.fire_ours(by, |_| true);
        self.after(format_args!("timers on CPU {}", by.0));
        self.settle();
    }

    /// A CPU dies: its timers move to another CPU, where others that are due at the same time expire first.
    ///
    /// Kernel: migrate_hrtimer_list(), kernel/time/hrtimer.c, v6.1.
    pub(crate) fn timers_move(&mut self, cpu: CpuId) {
        let here = |due: &&(u64, u64, Timer)| self.place_of(due.2) == u64::from(cpu.0);
        let moved: Vec<Timer> = self.timers.due.iter().filter(here).map(|due| due.2).collect();
        self.timers.set_again(&moved);
    }

    /// The CPU on which the kernel set a timer. It is not known for the timer of RT throttling, nor for a task that ended.
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
            Timer::Period(tg) => group(tg).period_timer_cpu,
            Timer::Slack(tg) => group(tg).slack_timer_cpu,
            Timer::Deadline(of) => task(of).map_or(ANYWHERE, |task| task.dl_timer_cpu),
            Timer::Inactive(of) => task(of).map_or(ANYWHERE, |task| task.inactive_timer_cpu),
            Timer::Rt => ANYWHERE,
        }
    }

    /// Those of our rules that are due, of those that are meant.
    fn fire_ours(&mut self, by: CpuId, meant: impl Fn(Timer) -> bool) {
        let now = self.time();
        while let Some(timer) = self.timers.take_due(self.now, &meant) {
            self.tell(|| format!("timer {timer:?}, by CPU {}", by.0));
            let again = match timer {
                Timer::Period(tg) => self.sched.period_timer(tg, by, now),
                Timer::Slack(tg) => {
                    self.sched.slack_timer(tg, by, now);
                    None
                }
                Timer::Rt => self.sched.rt_period_timer(now),
                Timer::Deadline(task) => {
                    self.sched.dl_timer(by, task, now);
                    None
                }
                Timer::Inactive(task) => {
                    self.sched.dl_inactive_timer(task, now);
                    None
                }
            };
            if let Some(Time(at)) = again {
                self.timers.set(at, timer);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_of_one_instant_expire_in_the_order_in_which_they_were_set() {
        let mut timers = Timers::default();
        let [first, second] = [Timer::Period(TgId(3)), Timer::Period(TgId(1))];
        timers.set(10, first);
        timers.set(10, second);
        timers.set(10, first);
        timers.set(5, Timer::Rt);
        timers.set(10, Timer::Slack(TgId(2)));
        timers.set_again(&[first]);
        assert_eq!(timers.take_due(4, |_| true), None);
        let order: Vec<Timer> = std::iter::from_fn(|| timers.take_due(10, |_| true)).collect();
        assert_eq!(order, [Timer::Rt, second, Timer::Slack(TgId(2)), first], "the first was moved");
    }
}
