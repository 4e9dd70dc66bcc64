//! Calling the scheduler on a CPU, and what a switch does to CPU and caches.

use schedlab_machine::{Caches, Work};
use schedlab_sched::{Access, Curr, Deactivate, Scheduler, Shared, Switched, TaskState};
use schedlab_topology::CpuId;
use schedlab_trace::TaskState as Shown;
use schedlab_units::{Duration, TaskId};

use crate::account::Part;
use crate::cpu::Passes;
use crate::emit::Context;
use crate::engine::Engine;
use crate::task::{Role, Stage, Wait};

impl<S: Scheduler> Engine<'_, S> {
    /// The current task of a CPU sleeps until it is woken, then continues with `stage`.
    pub fn sleep(&mut self, cpu: CpuId, task: TaskId, state: TaskState, wait: Wait, stage: Stage) {
        let entry = &mut self.tasks[task.index()];
        entry.stage = stage;
        entry.wait = wait;
        if let Role::Worker { .. } = entry.role
            && wait != Wait::Work
        {
            self.worker_sleeps(cpu, task);
        }
        self.charge_to(cpu, Part::Switch, self.paths.sleep);
        self.reschedule(cpu, Deactivate::Sleep(state));
    }

    /// Calls the scheduler on a CPU, whose execution is up to date.
    pub fn reschedule(&mut self, cpu: CpuId, how: Deactivate) {
        let called_for = self.pending(cpu);
        self.touch(cpu, Shared::Rq(cpu), Access::Lock, self.paths.context_switch / 2);
        self.tell_times(cpu);
        self.cpus[cpu].passes = Passes::default();
        let stall = self.stall(cpu);
        let overload = self.sched.overload(cpu);
        let switched = self.sched.schedule(cpu, how, stall, self.now);
        if self.tracing
            && let Curr::Task(prev) = switched.prev
        {
            self.emit_runtime(cpu, Context::Task, called_for, prev);
        }
        self.effects(cpu, Context::Task);
        self.found_no_overload(cpu, overload);
        // The timer is set when the switch is done, by the clock at that time.
        self.rearm_hrtick(cpu, self.cpus[cpu].overhead_ns() + self.paths.context_switch);
        if switched.next == Curr::Idle && self.cpus[cpu].leaving.is_some() {
            self.arrives_at_idle(cpu);
        } else if switched.prev == switched.next {
            if switched.next == Curr::Idle {
                self.enter_idle(cpu);
            }
        } else if switched.next == Curr::Idle {
            self.turns_to_idle(cpu, &switched, how);
        } else {
            self.switch(cpu, &switched, how);
        }
        if switched.next != Curr::Idle {
            self.sched.balance_callbacks(cpu, self.now);
            self.effects(cpu, Context::Task);
        }
    }

    /// A CPU switches from what it runs to what was chosen.
    pub fn switch(&mut self, cpu: CpuId, switched: &Switched, how: Deactivate) {
        let leaving = self.cpus[cpu].leaving.take();
        self.counts.switches += 1;
        self.counts.dispatches += u64::from(switched.next != Curr::Idle);
        self.counts.voluntary += u64::from(switched.voluntary || leaving.is_some());
        if self.tracing {
            if self.explaining {
                self.explain_pick(cpu, switched);
            }
            let (prev, state) = match leaving {
                Some(leaving) => (Curr::Task(leaving.task), leaving.state),
                None => (switched.prev, self.shown_state(switched, how)),
            };
            self.emit_switch(cpu, prev, state, switched.next);
        }
        self.cpus[cpu].shown = switched.next;
        match (leaving, switched.prev) {
            (Some(leaving), _) => {
                let done_at = self.cpus[cpu].idle_since.max(self.now) + Duration(self.paths.context_switch);
                self.tasks[leaving.task.index()].off_cpu_at = done_at;
            }
            (None, Curr::Task(prev)) => self.leaves(cpu, prev, switched),
            (None, Curr::Idle) => self.leave_idle(cpu),
        }
        match switched.next {
            Curr::Task(next) => self.arrives(cpu, next),
            Curr::Idle => {
                self.sched.is_at_idle(cpu);
                self.set_busy(cpu, false);
                self.enter_idle(cpu);
            }
        }
    }

    /// A task leaves a CPU.
    pub fn leaves(&mut self, cpu: CpuId, prev: TaskId, switched: &Switched) {
        let done_at = self.now + Duration(self.cpus[cpu].overhead_ns() + self.paths.context_switch);
        let dead = self.sched.task(prev).state == TaskState::Dead;
        let entry = &mut self.tasks[prev.index()];
        if switched.voluntary && !switched.delayed && !dead {
            // A wake-up before the switch is over finds the task still on its CPU.
            entry.off_cpu_at = done_at;
        } else {
            self.sched.finish_task_switch(prev);
        }
        if entry.streams && entry.work != Work::NONE {
            self.memory.flow(cpu, prev, false);
        }
        if self.warmth && entry.footprint > 0 {
            let ran = self.now.since(entry.since).0;
            let place = self.machine.topology.cpu(cpu);
            let (core, llc) = (usize::from(place.core), usize::from(place.llc));
            self.cores[core].clock.advance(ran, entry.footprint, self.machine.l2_bytes(cpu));
            self.llcs[llc].clock.advance(ran, entry.footprint, self.machine.llc_bytes(cpu));
            let warmth = entry.warmth.get_or_insert_default();
            self.machine.cache.ran(warmth, ran, self.cores[core].clock, self.llcs[llc].clock);
        }
        if self.crowds && self.tasks[prev.index()].footprint > 0 {
            self.crowd(cpu, self.tasks[prev.index()].footprint, false);
        }
        self.owner_leaves(prev);
        if switched.voluntary {
            self.creditor_sleeps(prev, done_at);
        }
    }

    fn arrives(&mut self, cpu: CpuId, next: TaskId) {
        self.charge_to(cpu, Part::Switch, self.paths.context_switch);
        self.touch(cpu, Shared::Task(next), Access::Write, 0);
        let task = &mut self.tasks[next.index()];
        task.since = self.now;
        let streams = task.streams && task.work != Work::NONE;
        if self.warmth && task.footprint > 0 {
            let place = self.machine.topology.cpu(cpu);
            let (core, llc) = (usize::from(place.core), usize::from(place.llc));
            let at = Caches {
                core: place.core.into(),
                core_clock: self.cores[core].clock,
                l2_bytes: self.machine.l2_bytes(cpu),
                llc: place.llc.into(),
                llc_clock: self.llcs[llc].clock,
                llc_bytes: self.machine.llc_bytes(cpu),
                node: place.node.0,
            };
            let stall = self.machine.cache.arrive(task.warmth.get_or_insert_default(), task.footprint, &at);
            if streams {
                self.charge_to(cpu, Part::Refill, stall);
            } else {
                task.work = task.work.plus_nanos(stall);
                self.cpus[cpu].account.charge_within(Part::Refill, stall);
            }
        }
        if self.crowds && self.tasks[next.index()].footprint > 0 {
            self.crowd(cpu, self.tasks[next.index()].footprint, true);
        }
        if self.smt || self.crowds {
            self.cpus[cpu].rate = self.rate_of(cpu);
        }
        self.cpus[cpu].work_rate = self.cpus[cpu].rate;
        self.cpus[cpu].in_kernel = true;
        self.cpus[cpu].resched_at = None;
        self.pays(next);
        if streams {
            self.memory.flow(cpu, next, true);
        }
        if self.pauses(cpu) {
            self.turn_changes(cpu);
        }
    }

    /// Marks a task as off its CPU if the switch away from it is over by now.
    #[inline]
    pub fn settle(&mut self, task: TaskId) {
        if self.sched.task(task).on_cpu
            && self.tasks[task.index()].off_cpu_at <= self.now
            && self.sched.curr(self.sched.task(task).cpu) != Curr::Task(task)
        {
            self.sched.finish_task_switch(task);
        }
    }

    /// The state in which a task leaves its CPU, as the trace shows it.
    pub fn shown_state(&self, switched: &Switched, how: Deactivate) -> Shown {
        match how {
            Deactivate::Preempted => match switched.prev {
                Curr::Task(_) => Shown::RUNNING.with(Shown::PREEMPTED),
                Curr::Idle => Shown::RUNNING,
            },
            Deactivate::Yielded => Shown::RUNNING,
            Deactivate::Sleep(TaskState::Uninterruptible) => Shown::UNINTERRUPTIBLE,
            Deactivate::Sleep(_) => match switched.prev {
                Curr::Task(task) if self.tasks[task.index()].wait == Wait::Work && self.is_worker(task) => {
                    Shown::IDLE
                }
                _ => Shown::INTERRUPTIBLE,
            },
            Deactivate::Exit => match switched.prev {
                Curr::Task(task) if self.tasks[task.index()].is_thread => Shown::DEAD,
                _ => Shown::ZOMBIE,
            },
        }
    }
}
