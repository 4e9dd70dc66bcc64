//! Switches that are not in a trace.
//!
//! A recording may lack events without a word: a filter, a tool that lost some and does not tell, a kernel that leaves
//! some out. Then a CPU runs somebody whom no switch put there, or idles while others seem to wait for it. Who is
//! shown to run does run, and what waits on an idle CPU that is not asked to make way has run and gone.
//! From such a switch on, who waits on the CPU is not known until it is next seen idle, and what those who did are
//! owed not even then.

use schedlab_sched::{Curr, Policy, TaskState};
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Flags, Kind};
use schedlab_units::{Pid, TaskId, Time};

use crate::audit::ATTACH_PATIENCE;
use crate::shadow::Shadow;
use crate::verdict::{Choice, Verdict};

impl Shadow {
    /// What an event says of switches before it that are not in the trace: a CPU idles and is not asked to make way.
    pub fn idles(&mut self, event: &Event) {
        let asked = event.flags.has(Flags::NEED_RESCHED | Flags::NEED_RESCHED_LAZY);
        // A switch takes the flag away before it is recorded.
        let switches = matches!(event.kind, Kind::SchedSwitch { .. });
        if event.pid == Pid::IDLE && event.flags.is_known() && !asked && !switches {
            self.emptied(event.cpu, event.time);
        }
    }

    /// Nobody waits on a CPU: it idles. Whoever seems to has run meanwhile and gone to sleep, but for those who were
    /// just taken from another queue and are not yet put on this one, as long as no switch was missed.
    pub fn emptied(&mut self, cpu: CpuId, now: Time) {
        let moving = now.since(self.clocks.queued_at(cpu)) <= ATTACH_PATIENCE;
        if self.sched.rqs[cpu].nr_running > 0 && (!moving || self.unseen[cpu]) {
            let gone: Vec<TaskId> =
                (0..self.known.len() as u32).map(TaskId).filter(|&task| self.waits(task, cpu)).collect();
            let (out_of_quota, gone): (Vec<TaskId>, Vec<TaskId>) =
                gone.into_iter().partition(|&task| self.limit_of(task).is_some());
            for task in out_of_quota {
                self.throttle(task, now);
            }
            // Where quotas are at work they may be out of it, whatever group they are in.
            self.unseen_switches += u64::from(!gone.is_empty() && !self.quota_shown);
            for task in gone {
                self.leave(task, TaskState::Interruptible, now);
                if self.sched.task(task).se.sched_delayed {
                    self.sched.complete_delayed_dequeue(task, now);
                }
            }
        }
        self.unseen[cpu] = false;
    }

    /// A task was switched to, or from, unseen.
    pub fn switched_unseen(&mut self, cpu: CpuId) {
        self.unseen_switches += 1;
        self.loses_sight(cpu);
    }

    /// Who waits on a CPU, and what they are owed, is not known from now on.
    fn loses_sight(&mut self, cpu: CpuId) {
        self.unseen[cpu] = true;
        self.lags_are_unknown(cpu);
    }

    /// The recorder lost events of a CPU, or of some that is not known.
    pub fn events_lost(&mut self, cpu: Option<CpuId>) {
        for other in self.cpus().filter(|&other| cpu.is_none_or(|cpu| cpu == other)) {
            self.loses_sight(other);
        }
    }

    /// A task is about to be queued: if it is a CPU's stopper, no other one is there any more.
    #[inline]
    pub fn no_other_stopper(&mut self, task: TaskId, cpu: CpuId, now: Time) {
        if self.sched.task(task).policy == Policy::Stop {
            self.stopper_left(cpu, task, now);
        }
    }

    /// The stopper that is queued on a CPU, if that is another task than this one, has left it.
    pub fn stopper_left(&mut self, cpu: CpuId, for_task: TaskId, now: Time) {
        if let Some(stopper) = self.sched.rqs[cpu].stop.filter(|&stopper| stopper != for_task) {
            self.switched_unseen(cpu);
            self.leave(stopper, TaskState::Interruptible, now);
        }
    }

    /// A number is a new task's: whoever had it has ended, whether that was seen or not.
    pub fn ended_unseen(&mut self, pid: Pid, now: Time) {
        let Some(task) = self.find(pid).filter(|&task| !self.sched.task(task).is_gone()) else { return };
        self.leave(task, TaskState::Dead, now);
        if self.sched.task(task).se.sched_delayed {
            self.sched.complete_delayed_dequeue(task, now);
        }
        self.forget_handed_over(task);
        if self.runs(task) {
            let cpu = self.sched.task(task).cpu;
            self.switched_unseen(cpu);
            self.run(cpu, Curr::Idle, self.clock_at(cpu, now), now);
        }
        self.sched.task_mut(task).state = TaskState::Dead;
        self.dead.died(task, now);
    }

    /// Whether what a verdict is about hangs on a CPU that switched unseen.
    pub fn is_unseen(&self, verdict: &Verdict) -> bool {
        let of = |choice: Option<Choice>| match choice {
            Some(Choice::Cpu(cpu)) => self.unseen[cpu],
            Some(Choice::Task(_) | Choice::Preempt(_)) => self.unseen[verdict.cpu],
            _ => false,
        };
        of(Some(verdict.kernel)) || of(verdict.ours.first().map(|ours| ours.choice))
    }

    fn waits(&self, task: TaskId, cpu: CpuId) -> bool {
        let entry = self.sched.task(task);
        entry.on_rq
            && entry.cpu == cpu
            && !entry.se.sched_delayed
            && self.sched.rqs[cpu].curr != Curr::Task(task)
            && !self.sched.throttled_hierarchy_of(task)
    }
}
