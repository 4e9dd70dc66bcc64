//! Where a pending reschedule request is acted on.
//!
//! | the CPU is | asked | honoured |
//! | --- | --- | --- |
//! | in user mode | by an interrupt | at its return |
//! | in user mode | lazily by another CPU | at the next exit to user mode, the tick's at the latest |
//! | on a kernel path | | at its end: exit to user mode, or `preempt_enable()`; of a kernel thread also `cond_resched()` |
//! | in a stretch of kernel work | | at the interrupt's return if the kernel is preemptible, else at the next `cond_resched()`, else at the end |
//! | where preemption is off | | after it |
//!
//! Which bit counts at which point is the kernel's rule ([`schedlab_sched::Preempt`]).

use schedlab_machine::Work;
use schedlab_sched::{Deactivate, Point, Scheduler};
use schedlab_topology::CpuId;
use schedlab_units::{Duration, TaskId};

use crate::engine::Engine;
use crate::task::{Mode, Stage};

impl<S: Scheduler> Engine<'_, S> {
    fn honours(&self, cpu: CpuId, point: Point) -> bool {
        self.sched.kernel().preempt.honours(point, self.sched.need_resched(cpu))
    }

    /// The CPU is about to return to user mode.
    pub fn exit_to_user(&mut self, cpu: CpuId) {
        if let Some(task) = self.curr(cpu)
            && self.tasks[task.index()].killed
        {
            self.begin_exit(cpu, task);
        } else if let Some(task) = self.curr(cpu)
            && self.tasks[task.index()].frozen
        {
            self.stops(cpu, task);
        } else if !self.task_work(cpu) && self.honours(cpu, Point::ExitToUser) {
            self.reschedule(cpu, Deactivate::Yielded);
        }
    }

    /// The running task, about to return to user mode, does what waits for this. It leaves its CPU if its group is out of
    /// quota, with or without a reschedule request.
    fn task_work(&mut self, cpu: CpuId) -> bool {
        let leaves = self.sched.has_task_work()
            && self.curr(cpu).is_some_and(|task| self.sched.exit_to_user(task, self.now));
        if leaves {
            self.reschedule(cpu, Deactivate::Yielded);
        }
        leaves
    }

    /// An interrupt returns to the kernel.
    pub fn return_to_kernel(&mut self, cpu: CpuId) {
        let Some(task) = self.curr(cpu) else { return };
        let in_path = self.cpus[cpu].in_kernel;
        let off = matches!(self.tasks[task.index()].mode, Mode::Kernel(section) if section.preempt_off);
        if !in_path && !off && self.honours(cpu, Point::IrqReturnToKernel) {
            self.reschedule(cpu, Deactivate::Preempted);
        }
    }

    /// A kernel path is at its end, with the task about to continue with its stage. Returns whether another
    /// task runs now.
    pub fn path_ends(&mut self, cpu: CpuId, task: TaskId) -> bool {
        if !self.cpus[cpu].in_kernel {
            return false;
        }
        let entry = &self.tasks[task.index()];
        let works = entry.work != Work::NONE;
        let to_user =
            entry.mode == Mode::User && (works || matches!(entry.stage, Stage::Fetch | Stage::Act(_)));
        if to_user || works {
            self.cpus[cpu].in_kernel = false;
        }
        if to_user && entry.killed {
            self.begin_exit(cpu, task);
            return true;
        }
        if to_user && entry.frozen {
            self.stops(cpu, task);
            return true;
        }
        if to_user && self.task_work(cpu) {
            return true;
        }
        if !self.sched.need_resched(cpu).any() {
            return false;
        }
        if to_user && self.sched.task(task).kthread {
            // It has no user mode to return to: a worker offers its CPU between two items.
            return self.cond_resched(cpu) || self.preempt_enable(cpu);
        }
        if to_user && self.honours(cpu, Point::ExitToUser) {
            self.reschedule(cpu, Deactivate::Yielded);
            return true;
        }
        let off = matches!(self.tasks[task.index()].mode, Mode::Kernel(section) if section.preempt_off);
        !off && self.preempt_enable(cpu)
    }

    /// A lock is released inside the kernel. Returns whether another task runs now.
    pub fn preempt_enable(&mut self, cpu: CpuId) -> bool {
        self.call_if(cpu, Point::PreemptEnable)
    }

    /// The kernel might sleep here. Returns whether another task runs now.
    pub fn might_sleep(&mut self, cpu: CpuId) -> bool {
        self.call_if(cpu, Point::MightSleep)
    }

    /// The kernel offers its CPU. Returns whether another task runs now.
    pub fn cond_resched(&mut self, cpu: CpuId) -> bool {
        self.call_if(cpu, Point::CondResched)
    }

    /// These calls count as preemption, as the trace shows.
    fn call_if(&mut self, cpu: CpuId, point: Point) -> bool {
        let honours = self.honours(cpu, point);
        if honours {
            self.reschedule(cpu, Deactivate::Preempted);
        }
        honours
    }

    /// The time at which a pending request is acted on inside a stretch of kernel
    /// work: now if the kernel is preemptible, at its next `cond_resched()` if that acts.
    pub fn point_in_work(&self, cpu: CpuId, task: TaskId) -> Option<Duration> {
        let entry = &self.tasks[task.index()];
        let Mode::Kernel(section) = entry.mode else { return None };
        if entry.spins_for.is_some() && self.sched.need_resched(cpu).full {
            return Some(Duration::ZERO);
        }
        if section.preempt_off || !self.sched.need_resched(cpu).any() {
            return None;
        }
        if self.honours(cpu, Point::PreemptEnable) {
            return Some(Duration::ZERO);
        }
        if section.cond_resched_ns == 0 || !self.honours(cpu, Point::CondResched) {
            return None;
        }
        let step = Work::nanos(section.cond_resched_ns.into());
        let until = Work(entry.work.0 % step.0);
        Some(Duration(until.time_at(self.cpus[cpu].work_rate)))
    }

    /// The armed point inside kernel work is reached. Returns whether another task runs now.
    pub fn point_reached(&mut self, cpu: CpuId, task: TaskId) -> bool {
        if self.cpus[cpu].resched_at.is_none_or(|at| at > self.now) {
            return false;
        }
        self.cpus[cpu].resched_at = None;
        if self.tasks[task.index()].spins_for.is_some() {
            // Spinning ends when another task wants the CPU.
            self.tasks[task.index()].work = Work::NONE;
        } else if !self.preempt_enable(cpu) {
            self.cond_resched(cpu);
        }
        self.curr(cpu) != Some(task)
    }
}
