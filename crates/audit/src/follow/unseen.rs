//! Switches that are missing from a trace.
//!
//! A recording may lack events without notice: a filter, a tool that lost some and does not report it, a kernel that
//! leaves some out. Then a CPU runs a task that no switch put there, or is idle while others seem to wait for it. A
//! task shown as running does run, and tasks that seem to wait on an idle CPU without a reschedule request have run and
//! left. After such a switch the tasks waiting on the CPU are unknown until it is next seen idle, and the lags of those
//! that waited remain unknown even then.

use schedlab_sched::{Curr, Policy, TaskState};
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Flags, Kind};
use schedlab_units::{Pid, TaskId, Time};

use crate::follow::clocks::ATTACH_PATIENCE;
use crate::follow::shadow::Shadow;
use crate::follow::watch::Watch;

impl<W: Watch> Shadow<W> {
    /// What an event shows about missing switches before it: a CPU is idle and has no request to reschedule.
    pub fn idles(&mut self, event: &Event) {
        let asked = event.flags.has(Flags::NEED_RESCHED | Flags::NEED_RESCHED_LAZY);
        // A switch clears the flag before it is recorded.
        let switches = matches!(event.kind, Kind::SchedSwitch { .. });
        if event.pid == Pid::IDLE && event.flags.is_known() && !asked && !switches {
            self.emptied(event.cpu, event.time);
        }
    }

    /// A CPU is idle, so no task waits there. Tasks that seem to wait have run and gone to sleep since, except those
    /// that were just taken from another queue and are not yet on this one, as long as no switch was missed.
    pub fn emptied(&mut self, cpu: CpuId, now: Time) {
        let moving = now.since(self.clocks.queued_at(cpu)) <= ATTACH_PATIENCE;
        if self.sched.rqs[cpu].nr_running > 0 && (!moving || self.unseen[cpu]) {
            W::left_waiting(self, cpu, now);
            let gone = self.waiting(cpu);
            // Where quotas are in use, the tasks may be out of quota, whatever group they are in.
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

    /// A switch to or from a task was not seen.
    pub fn switched_unseen(&mut self, cpu: CpuId) {
        self.unseen_switches += 1;
        self.loses_sight(cpu);
    }

    /// The tasks waiting on a CPU and their lags are unknown from now on.
    fn loses_sight(&mut self, cpu: CpuId) {
        self.unseen[cpu] = true;
        self.lags_are_unknown(cpu);
    }

    /// The recorder lost events of a CPU, or of an unknown one.
    pub fn events_lost(&mut self, cpu: Option<CpuId>) {
        for other in self.cpus().filter(|&other| cpu.is_none_or(|cpu| cpu == other)) {
            self.loses_sight(other);
        }
    }

    /// A task is about to be queued: if it is a CPU's stopper, no other stopper is there any more.
    #[inline]
    pub fn no_other_stopper(&mut self, task: TaskId, cpu: CpuId, now: Time) {
        if self.sched.task(task).policy == Policy::Stop {
            self.stopper_left(cpu, task, now);
        }
    }

    /// If another task is queued as the stopper of a CPU, it has left.
    pub fn stopper_left(&mut self, cpu: CpuId, for_task: TaskId, now: Time) {
        if let Some(stopper) = self.sched.rqs[cpu].stop.filter(|&stopper| stopper != for_task) {
            self.switched_unseen(cpu);
            self.leave(stopper, TaskState::Interruptible, now);
        }
    }

    /// A pid is a new task's: the previous task with it has exited, whether that was seen or not.
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

    /// The tasks that seem to wait on a CPU.
    pub fn waiting(&self, cpu: CpuId) -> Vec<TaskId> {
        (0..self.known.len() as u32).map(TaskId).filter(|&task| self.waits(task, cpu)).collect()
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
