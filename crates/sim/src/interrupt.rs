//! Interrupts: what they hit on a CPU, and what it returns to.
//!
//! ```text
//!   what ran --+            +-- the same, or another if the return honours a request
//!              +-- handler -+
//! ```
//!
//! The handler takes effect at once; its time is taken from whatever runs next. An idle CPU first has to
//! leave its idle state.

use schedlab_sched::{Deactivate, Scheduler};
use schedlab_topology::CpuId;
use schedlab_units::{Duration, TaskId};

use crate::account::Part;
use crate::emit::Context;
use crate::engine::Engine;
use crate::event::Event;
use crate::task::{Mode, Role};

/// What an interrupt hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    /// The idle task.
    Idle,
    /// A task in user mode.
    User,
    /// A task in the kernel.
    Kernel,
}

impl<S: Scheduler> Engine<'_, S> {
    /// Whether an event on a CPU has to wait until it has left its idle state; if so the event is put off
    /// until then.
    pub fn put_off(&mut self, cpu: CpuId, event: Event) -> bool {
        if !self.is_idle(cpu) {
            return false;
        }
        let latency = self.exit_latency(cpu);
        if latency == 0 {
            return false;
        }
        let at = self.now + Duration(latency);
        self.cpus[cpu].awake_at = Some(at);
        self.queue.push(at, event);
        true
    }

    /// An interrupt of this many ns begins on a CPU.
    pub fn interrupt(&mut self, cpu: CpuId, ns: u64) -> Hit {
        self.advance(cpu);
        self.arrives_at_idle(cpu);
        let hit = match self.curr(cpu) {
            None => {
                self.exit_idle_state(cpu);
                Hit::Idle
            }
            Some(_) if self.cpus[cpu].in_kernel => Hit::Kernel,
            Some(task) if self.tasks[task.index()].mode == Mode::User => Hit::User,
            Some(_) => Hit::Kernel,
        };
        self.cpus[cpu].in_kernel = true;
        self.take_time(cpu, ns);
        hit
    }

    /// Interrupts take time from a CPU.
    pub fn take_time(&mut self, cpu: CpuId, ns: u64) {
        if ns > 0 {
            self.charge_to(cpu, Part::Irq, ns);
            self.sched.steal(cpu, ns, self.now);
        }
    }

    /// The interrupt returns to what it hit, or to another task.
    pub fn irq_return(&mut self, cpu: CpuId, hit: Hit) {
        match hit {
            Hit::Idle => {
                if self.sched.need_resched(cpu).any() || self.sched.nr_running(cpu) > 0 {
                    self.reschedule(cpu, Deactivate::Yielded);
                } else {
                    self.enter_idle(cpu);
                }
            }
            Hit::User => self.exit_to_user(cpu),
            Hit::Kernel => self.return_to_kernel(cpu),
        }
        self.go_on(cpu);
    }

    /// Notifies a CPU of a reschedule request, woken tasks, or balancing for idle CPUs. `by` is the CPU that sends the
    /// notification.
    pub fn notify(&mut self, by: CpuId, cpu: CpuId) {
        if self.cpus[cpu].notified {
            return;
        }
        self.cpus[cpu].notified = true;
        // The sender first has to get to this point of its own path.
        let mut delay = self.cpus[by].overhead_ns();
        let idle = self.is_idle(cpu);
        if idle && self.sched.is_polling(cpu) {
            delay += self.paths.ipi_polling;
            if self.tracing && by != cpu && !self.omits() {
                let kind = schedlab_trace::Kind::SchedWakeIdleWithoutIpi { cpu };
                self.emit(by, Context::Task, kind);
            }
        } else {
            self.counts.ipis += 1;
            self.charge_to(by, Part::Irq, self.paths.ipi_send);
            delay += self.paths.ipi_send + self.paths.ipi_deliver;
        }
        if self.cpus[cpu].leaving.is_some() {
            // It is still looking for tasks elsewhere, and sees in memory that one was queued.
            self.passes_end(cpu, Duration(self.cpus[by].overhead_ns()));
            delay = delay.max(self.cpus[cpu].idle_since.since(self.now).0);
        } else if idle {
            if self.cpus[cpu].awake_at.is_none() && self.cpus[cpu].idle_since > self.now {
                self.passes_end(cpu, Duration(delay));
            }
            delay += self.exit_latency(cpu);
        }
        if let Some(heard) = self.cpus[cpu].heard {
            delay = heard.0;
        }
        let at = self.now + Duration(delay);
        if idle {
            self.cpus[cpu].awake_at = Some(at);
        }
        self.queue.push(at, Event::Notify { cpu });
    }

    /// A CPU notices a notification.
    pub fn noticed(&mut self, cpu: CpuId) {
        self.cpus[cpu].notified = false;
        let idle = self.is_idle(cpu);
        let watched = idle && self.sched.is_polling(cpu);
        if idle && self.cpus[cpu].awake_at.is_none() && self.put_off(cpu, Event::Notify { cpu }) {
            // It went back to sleep in the meantime.
            self.cpus[cpu].notified = true;
            return;
        }
        let ns = if watched { 0 } else { self.paths.ipi_handle };
        let hit = self.interrupt(cpu, ns);
        self.drain_wake_list(cpu);
        if std::mem::take(&mut self.cpus[cpu].unthrottle) {
            self.sched.cfsb_csd_unthrottle(cpu, self.now);
            self.effects(cpu, Context::Hardirq);
        }
        if std::mem::take(&mut self.cpus[cpu].rt_push) {
            self.sched.rto_push_irq_work(cpu, self.now);
            self.effects(cpu, Context::Hardirq);
        }
        if std::mem::take(&mut self.cpus[cpu].nohz_kick) {
            self.nohz_balance(cpu);
        }
        self.irq_return(cpu, hit);
    }

    /// A sleep is over.
    pub fn timer(&mut self, task: TaskId, number: u32) {
        let entry = &self.tasks[task.index()];
        if entry.timer != number {
            return;
        }
        let cpu = self.instead_of(entry.timer_cpu);
        if entry.wheel && self.ticks_at(cpu, self.now) {
            self.cpus[cpu].wheel.push((task, number));
            return;
        }
        if self.put_off(cpu, Event::Timer { task, number }) {
            return;
        }
        let hit = self.interrupt(cpu, self.paths.timer_irq);
        self.timer_fires(cpu, Context::Hardirq, task, number);
        self.irq_return(cpu, hit);
    }

    /// A timer wakes its task, if it was not cancelled.
    pub fn timer_fires(&mut self, cpu: CpuId, context: Context, task: TaskId, number: u32) {
        let entry = &mut self.tasks[task.index()];
        if entry.timer != number {
            return;
        }
        entry.timer = entry.timer.wrapping_add(1);
        entry.timer_set = false;
        if entry.role != Role::Noise {
            self.pending -= 1;
        }
        self.timer_expired(task);
        self.wake_up(cpu, context, task, false);
    }
}
