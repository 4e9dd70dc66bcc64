//! Interrupts, softirqs, requests to reschedule and stoppers, delivered to both sides CPU by CPU in one order.

use schedlab_sched::{Curr, Deactivate, Effect, MigrationCause, Scheduler, Step, TaskState, Wakeup};
use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::Pair;
use crate::timers::Timer;

/// Number of rounds after which a machine counts as never settling.
const ROUNDS: u32 = 1000;

/// Work for a stopper.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StopperWork {
    /// Active balancing: move some task to this CPU.
    Balance { to: CpuId },
    /// Move this task.
    Move { task: TaskId, to: CpuId, cause: MigrationCause },
    /// Move this task off a CPU that is leaving.
    Push { task: TaskId },
    /// Take the CPU down.
    Die,
}

impl Pair {
    /// Runs until nothing is pending, or the sides differ.
    pub(crate) fn settle(&mut self) {
        for _ in 0..ROUNDS {
            let mut busy = false;
            for cpu in (0..self.nr_cpus()).map(CpuId::from) {
                if !self.equal() {
                    return;
                }
                if self.offline[cpu.index()] {
                    continue;
                }
                busy |= self.interrupt(cpu);
                busy |= self.softirq(cpu);
                busy |= self.reschedule(cpu);
                busy |= self.stop(cpu);
                busy |= self.take_down(cpu);
            }
            if !busy {
                return;
            }
        }
        self.differs("the settling", "work left", "the machine".into(), "endless".into(), "endless".into());
    }

    fn interrupt(&mut self, cpu: CpuId) -> bool {
        let due = self.kernel.pending(cpu).ipi();
        let asked = self.kicked[cpu.index()] || self.unthrottles[cpu.index()] || self.pushes[cpu.index()];
        if !due && self.sched.rqs[cpu].wake_list.is_empty() && !asked {
            return false;
        }
        self.kernel.ipi(cpu);
        let now = self.time();
        if std::mem::take(&mut self.unthrottles[cpu.index()]) {
            self.sched.cfsb_csd_unthrottle(cpu, now);
        }
        if std::mem::take(&mut self.pushes[cpu.index()]) {
            self.sched.rto_push_irq_work(cpu, now);
        }
        for task in self.sched.wake_list_in_turn(cpu) {
            self.sched.drain_one(task, now);
            self.sched.task_woken(cpu, task, now);
        }
        if std::mem::take(&mut self.kicked[cpu.index()]) && self.sched.nohz_kicked(cpu) {
            self.balance_due[cpu.index()] = true;
        }
        self.tell(|| format!("interrupt of CPU {}", cpu.0));
        self.after(format_args!("an interrupt of CPU {}", cpu.0));
        true
    }

    fn softirq(&mut self, cpu: CpuId) -> bool {
        let (theirs, ours) = (self.kernel.pending(cpu).softirq(), self.balance_due[cpu.index()]);
        if !theirs && !ours {
            return false;
        }
        self.counts.passes += 1;
        self.balance_due[cpu.index()] = false;
        self.tell(|| format!("balance softirq of CPU {}", cpu.0));
        if theirs != ours {
            let of = format!("CPU {}", cpu.0);
            self.differs("a tick or a kick", "balance softirq", of, theirs.to_string(), ours.to_string());
            return true;
        }
        self.kernel.softirq(cpu);
        let now = self.time();
        self.sched.run_rebalance_domains(cpu, now);
        self.after(format_args!("balancing by CPU {}", cpu.0));
        true
    }

    fn reschedule(&mut self, cpu: CpuId) -> bool {
        let theirs = self.kernel.pending(cpu).resched();
        let ours = self.sched.rqs[cpu].need_resched.full;
        if theirs != ours {
            let of = format!("CPU {}", cpu.0);
            self.differs("what came before", "need_resched", of, theirs.to_string(), ours.to_string());
        }
        if !theirs || !ours {
            return false;
        }
        self.kernel.resched(cpu);
        self.schedule(cpu, Deactivate::Preempted);
        self.after(format_args!("schedule() on CPU {}", cpu.0));
        true
    }

    /// The request is only a lazy one, as a full one is honoured as soon as it can be. A kernel thread, which never goes
    /// to user mode, waits for the tick.
    pub(crate) fn resched_lazy(&mut self, cpu: CpuId) -> bool {
        let rq = &self.sched.rqs[cpu];
        let Some(task) = rq.curr.task().filter(|_| rq.need_resched.lazy) else { return false };
        if self.sched.task(task).kthread {
            return false;
        }
        self.kernel.resched_lazy(cpu);
        self.schedule(cpu, Deactivate::Preempted);
        true
    }

    fn stop(&mut self, cpu: CpuId) -> bool {
        if !self.kernel.pending(cpu).stopper() {
            return false;
        }
        let now = self.time();
        self.tell(|| format!("stopper of CPU {}", cpu.0));
        self.kernel.stopper(cpu);
        // Our stoppers are the first tasks.
        if self.sched.rqs[cpu].curr == Curr::Task(TaskId(u32::from(cpu.0))) {
            for work in std::mem::take(&mut self.stopper_work[cpu.index()]) {
                match work {
                    StopperWork::Balance { to } => _ = self.sched.active_balance(cpu, to, now),
                    StopperWork::Push { task } => self.sched.balance_push_cpu_stop(cpu, task, now),
                    StopperWork::Die => {
                        self.sched.cpu_dying(cpu, now);
                        self.offline[cpu.index()] = true;
                    }
                    StopperWork::Move { task, to, cause } => {
                        Scheduler::stopper_moves(&mut self.sched, cpu, task, to, cause, now);
                    }
                }
                self.effects();
            }
            self.schedule(cpu, Deactivate::Sleep(TaskState::Interruptible));
        }
        self.after(format_args!("the stopper of CPU {}", cpu.0));
        true
    }

    /// Our side of a context switch.
    pub(crate) fn schedule(&mut self, cpu: CpuId, how: Deactivate) {
        let now = self.time();
        let switched = self.sched.schedule(cpu, how, now);
        if let (Curr::Task(prev), true) = (switched.prev, switched.prev != switched.next) {
            self.sched.finish_task_switch(prev);
        }
        self.sched.balance_callbacks(cpu, now);
        self.counts.picks += 1;
        self.tell(|| format!("CPU {} switches from {:?} to {:?}", cpu.0, switched.prev, switched.next));
        self.effects();
        if let Some(task) = self.sched.balance_push(cpu).filter(|_| !self.offline[cpu.index()]) {
            self.ask_stopper(cpu, cpu, StopperWork::Push { task }, true);
            // schedule() goes on until nothing asks for it.
            self.schedule(cpu, Deactivate::Preempted);
        }
    }

    /// Queues work for the stopper of a CPU, and wakes it.
    pub(crate) fn ask_stopper(&mut self, by: CpuId, cpu: CpuId, work: StopperWork, in_task: bool) {
        self.stopper_work[cpu.index()].push(work);
        let (task, now) = (TaskId(u32::from(cpu.0)), self.time());
        let waker = self.sched.rqs[by].curr.task();
        let wakeup = Wakeup { task, waker, this_cpu: by, sync: false, in_task, current_cpu: false };
        self.sched.try_to_wake_up(&wakeup, now);
        self.sched.task_woken(by, task, now);
    }

    /// Handles the requests of our rules to a driver.
    pub(crate) fn effects(&mut self) {
        for pass in self.sched.balance_log.as_mut().map(std::mem::take).unwrap_or_default() {
            let over = self.sched.domains.sd(pass.sd).span_weight;
            let from = pass.src.map_or(String::new(), |src| format!(" from CPU {}", src.0));
            let asks = if pass.active { ", asks the stopper" } else { "" };
            let nr_cpus = self.nr_cpus();
            let skips = pass.steps.iter().filter_map(|step| match step {
                Step::Skip { task, why } => Some(format!(", t{} {why:?}", task.index() - nr_cpus)),
                _ => None,
            });
            let skips: String = skips.collect();
            self.tell(|| {
                format!(
                    "CPU {} balances over {over} CPUs ({:?}): {}, imbalance {} ({:?}){from}, {} moved{asks}{skips}",
                    pass.cpu.0,
                    pass.idle,
                    pass.reason.name(),
                    pass.imbalance,
                    pass.migration_type,
                    pass.moved
                )
            });
        }
        while !self.sched.effects.is_empty() {
            for effect in std::mem::take(&mut self.sched.effects) {
                match effect {
                    Effect::ActiveBalance { by, cpu, to } => {
                        self.ask_stopper(by, cpu, StopperWork::Balance { to }, false);
                    }
                    // What is sent to a CPU that is offline is lost.
                    Effect::NohzKick { cpu } | Effect::Unthrottle { cpu } | Effect::RtPush { cpu }
                        if self.offline[cpu.index()] => {}
                    Effect::NohzKick { cpu } => self.kicked[cpu.index()] = true,
                    Effect::Unthrottle { cpu } => self.unthrottles[cpu.index()] = true,
                    Effect::RtPush { cpu } => self.pushes[cpu.index()] = true,
                    Effect::StartPeriodTimer { tg, at } => self.set_timer(at, Timer::Period(tg)),
                    Effect::StartSlackTimer { tg, at } => self.set_timer(at, Timer::Slack(tg)),
                    // The timers of fair servers are read from their state.
                    Effect::StartRtPeriodTimer { .. } if self.sched.has_fair_server() => {}
                    Effect::StartRtPeriodTimer { at } => self.set_timer(at, Timer::Rt),
                    Effect::StartDlTimer { task, after } => {
                        self.set_timer(self.now + after, Timer::Deadline(task));
                    }
                    Effect::StartDlInactiveTimer { task, after } => {
                        self.set_timer(self.now + after, Timer::Inactive(task));
                    }
                    _ => {}
                }
            }
        }
    }
}
