//! The idle loop: which state a CPU sleeps in, and whether its tick is stopped.
//!
//! The state is chosen by the expected idle time: the average of earlier ones, bounded by the last timer that
//! was set on this CPU. When less than a tick is expected the tick is left running, as the governors of v4.17
//! and later do; when it then finds the CPU still idle, it is stopped. Without a governor, as in most guests,
//! some kernels stop it at once. Before v4.17 every idle CPU without a timer within a tick stopped it.

use schedlab_machine::Mechanism;
use schedlab_sched::Scheduler;
use schedlab_topology::CpuId;
use schedlab_trace::{IDLE_EXIT, Kind};
use schedlab_units::{Duration, Time};

use crate::account::Part;
use crate::emit::Context;
use crate::engine::Engine;
use crate::event::Event;

impl<S: Scheduler> Engine<'_, S> {
    /// The CPU runs its idle task from now on, or goes back to sleep after an interrupt.
    pub fn enter_idle(&mut self, cpu: CpuId) {
        let machine = self.machine;
        let now = self.now;
        let entry = &mut self.cpus[cpu];
        // Remaining costs are paid before the CPU sleeps.
        let left = entry.overhead_ns();
        let begin = now + Duration(left);
        entry.account.path_ends(left);
        entry.overhead = schedlab_machine::Work::NONE;
        entry.idle_since = begin;
        entry.awake_at = None;
        entry.in_kernel = false;
        entry.idle_number = entry.idle_number.wrapping_add(1);
        if entry.next_timer <= now {
            entry.next_timer = Time::MAX;
        }
        let timer = entry.next_timer.since(now).0;
        let predicted = entry.predictor.predict(timer);
        let polls = machine.idle.prices.poll_ns.get();
        let state = machine.idle.choose(predicted).filter(|_| machine.has(Mechanism::IdleStates));
        if polls > 0 && state.is_some() {
            let number = entry.idle_number;
            self.queue.push(begin + Duration(polls), Event::Deeper { cpu, number });
            self.set_idle_state(cpu, None);
        } else {
            self.set_idle_state(cpu, state);
        }
        // Without a governor there is no prediction.
        let expected = machine.idle.is_governed().then_some(predicted);
        let stop = self.sched.stops_tick(expected, timer) || !self.cpus[cpu].tick_armed;
        if stop && !self.cpus[cpu].tick_stopped {
            self.stop_tick(cpu);
        }
        self.turn_changes(cpu);
    }

    /// A CPU that has just become idle does not sleep: an interrupt is already pending.
    pub fn stay_awake(&mut self, cpu: CpuId) {
        self.cpus[cpu].awake_at = Some(self.now);
        if self.cpus[cpu].idle_state.is_some() {
            self.set_idle_state(cpu, None);
        }
    }

    /// An idle CPU has polled long enough.
    pub fn deeper(&mut self, cpu: CpuId, number: u32) {
        if self.is_idle(cpu) && self.cpus[cpu].idle_number == number && self.cpus[cpu].awake_at.is_none() {
            let left = self.cpus[cpu].next_timer.since(self.now).0;
            let predicted = self.cpus[cpu].predictor.predict(left);
            let state = self.machine.idle.choose(predicted);
            self.set_idle_state(cpu, state);
        }
    }

    fn set_idle_state(&mut self, cpu: CpuId, state: Option<usize>) {
        let idle = &self.machine.idle;
        self.cpus[cpu].idle_state = state;
        self.sched.set_polling(cpu, idle.watches(state));
        self.sched.set_idle_exit_latency(cpu, state.map(|_| idle.exit_ns(state)));
        if self.tracing && !self.omits() {
            let state = state.map_or(0, |state| state as u32 + 1);
            self.emit(cpu, Context::Task, Kind::CpuIdle { state, cpu });
        }
    }

    /// An interrupt or a switch ends the idle time.
    pub fn exit_idle_state(&mut self, cpu: CpuId) {
        let slept = self.now.since(self.cpus[cpu].idle_since).0;
        let entry = &mut self.cpus[cpu];
        entry.predictor.note(slept);
        entry.account.charge(Part::IdleExit, self.machine.idle.exit_ns(entry.idle_state).min(slept));
        if let Some(state) = entry.idle_state.take() {
            let state = &self.machine.idle.states()[state];
            if state.flushes && slept >= state.residency_ns && self.warmth {
                let core = usize::from(self.machine.topology.cpu(cpu).core);
                if self.cores[core].busy == 0 {
                    self.cores[core].clock.flush();
                }
            }
        }
        self.sched.set_polling(cpu, true);
        self.sched.set_idle_exit_latency(cpu, None);
        if self.tracing && !self.omits() {
            self.emit(cpu, Context::Task, Kind::CpuIdle { state: IDLE_EXIT, cpu });
        }
    }

    /// The CPU switches away from its idle task.
    pub fn leave_idle(&mut self, cpu: CpuId) {
        let entry = &mut self.cpus[cpu];
        entry.account.passed(self.now.since(entry.since).0, false);
        entry.since = self.now;
        entry.awake_at = None;
        self.sched.set_polling(cpu, false);
        self.restart_tick(cpu);
        self.set_busy(cpu, true);
        self.turn_changes(cpu);
    }

    /// How long an idle CPU takes until it handles an event that arrives now; zero if it is awake.
    pub fn exit_latency(&self, cpu: CpuId) -> u64 {
        let entry = &self.cpus[cpu];
        match entry.awake_at.filter(|_| entry.leaving.is_none()) {
            Some(at) => at.since(self.now).0,
            None => {
                // Not yet asleep: it first finishes its remaining work.
                let begin = entry.idle_since.since(self.now).0;
                if entry.leaving.is_some() {
                    return begin;
                }
                begin + self.machine.idle.exit_ns(entry.idle_state)
            }
        }
    }
}
