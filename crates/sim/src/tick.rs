//! Ticks, the balancing they raise, and the slice timer.
//!
//! All CPUs tick at the same instants, or somewhat later where such a delay is known. A busy CPU always ticks. A CPU
//! that goes idle for long stops its tick, and the tick is armed again when it has something to run. An idle CPU
//! without a tick costs no events.

use schedlab_sched::{Scheduler, TgId};
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::emit::Context;
use crate::engine::Engine;
use crate::event::Event;

impl<S: Scheduler> Engine<'_, S> {
    /// Stops the tick of an idle CPU: other CPUs balance for it.
    pub fn stop_tick(&mut self, cpu: CpuId) {
        self.cpus[cpu].tick_stopped = true;
        self.sched.nohz_balance_enter_idle(cpu);
    }

    /// A CPU has something to run: its tick is restarted. The scheduler notices it at the first tick.
    pub fn restart_tick(&mut self, cpu: CpuId) {
        self.cpus[cpu].tick_stopped = false;
        self.arm_tick(cpu);
    }

    /// Puts the next tick of a CPU into the queue, unless ticks come from outside.
    fn arm_tick(&mut self, cpu: CpuId) {
        if self.ticks_come || self.cpus[cpu].tick_armed {
            return;
        }
        self.cpus[cpu].tick_armed = true;
        let tick = self.sched.tick_ns();
        let number = self.now.0 / tick + 1;
        let at = Time(number * tick + self.tick_late(cpu, number));
        self.cpus[cpu].tick_at = at;
        self.queue.push(at, Event::Tick { cpu });
        self.timer_set(at);
    }

    /// Whether the next tick of a CPU is at this time.
    pub fn ticks_at(&self, cpu: CpuId, time: Time) -> bool {
        self.cpus[cpu].tick_armed && self.cpus[cpu].tick_at == time
    }

    /// Timers of the wheel that expire in this tick.
    fn wheel_turns(&mut self, cpu: CpuId) {
        let mut expired = std::mem::take(&mut self.cpus[cpu].wheel);
        for (task, number) in expired.drain(..) {
            self.timer_fires(cpu, Context::Softirq, task, number);
        }
        self.cpus[cpu].wheel = expired;
    }

    /// How late a tick of a CPU comes, ns: as late as the nearest tick with a known delay.
    fn tick_late(&self, cpu: CpuId, number: u64) -> u64 {
        let known = &self.late_ticks[cpu];
        let next = known.partition_point(|&(other, _)| other < number);
        let near = known[next.saturating_sub(1)..].iter().take(2);
        near.min_by_key(|(other, _)| other.abs_diff(number)).map_or(0, |&(_, late)| late)
    }

    /// The tick of a CPU.
    pub fn tick(&mut self, cpu: CpuId) {
        self.cpus[cpu].tick_armed = false;
        let idle = self.is_idle(cpu);
        if idle && (self.cpus[cpu].tick_stopped || !self.sched.is_online(cpu)) {
            if !self.cpus[cpu].wheel.is_empty() {
                self.by_interrupt(cpu, |engine| engine.wheel_turns(cpu));
            }
            return;
        }
        if self.put_off(cpu, Event::Tick { cpu }) {
            self.cpus[cpu].tick_armed = true;
            return;
        }
        self.counts.ticks += 1;
        let hit = self.interrupt(cpu, self.paths.tick);
        let pending = self.pending(cpu);
        let ticked = self.sched.tick(cpu, self.now);
        self.effects(cpu, Context::Hardirq);
        if self.tracing {
            self.emit_charged(cpu, Context::Hardirq, pending, cpu);
        }
        if !self.cpus[cpu].wheel.is_empty() {
            self.wheel_turns(cpu);
        }
        if ticked.raise_balance {
            self.balance(cpu);
        }
        self.sample_clock(cpu);
        if !idle {
            self.arm_tick(cpu);
        }
        self.irq_return(cpu, hit);
    }

    /// A kicked CPU balances for the idle ones, if it is still idle itself.
    pub fn nohz_balance(&mut self, cpu: CpuId) {
        let balances = self.sched.nohz_kicked(cpu, self.now);
        // In a kernel tree this interrupt also wakes tasks on the wake list, such as a stopper.
        self.effects(cpu, Context::Hardirq);
        if balances {
            self.balance(cpu);
        }
    }

    /// The balance softirq runs on a CPU.
    fn balance(&mut self, cpu: CpuId) {
        let overload = self.sched.overload(cpu);
        self.sched.run_rebalance_domains(cpu, self.now);
        self.effects(cpu, Context::Softirq);
        self.found_no_overload(cpu, overload);
    }

    /// Arms or cancels the slice timer, as the scheduler wants it, this long after now.
    #[inline]
    pub fn rearm_hrtick(&mut self, cpu: CpuId, after: u64) {
        let wanted = self.sched.hrtick_at(cpu);
        let entry = &mut self.cpus[cpu];
        if wanted == entry.hrtick {
            return;
        }
        entry.hrtick = wanted;
        entry.hrtick_number = entry.hrtick_number.wrapping_add(1);
        if let Some(at) = wanted {
            let number = entry.hrtick_number;
            let at = Time(at + after + self.paths.timer_delivery).max(self.now);
            self.queue.push(at, Event::HrTick { cpu, number });
            self.timer_set(at);
        }
    }

    /// The slice timer expires.
    pub fn hrtick(&mut self, cpu: CpuId, number: u32) {
        if self.cpus[cpu].hrtick_number != number || self.is_idle(cpu) {
            return;
        }
        self.cpus[cpu].hrtick = None;
        let hit = self.interrupt(cpu, 0);
        let pending = self.pending(cpu);
        self.sched.hrtick(cpu, self.now);
        // The interrupt takes its time from what runs next: by the clock that its handler reads the slice is over.
        self.take_time(cpu, self.paths.timer_irq);
        self.effects(cpu, Context::Hardirq);
        if self.tracing {
            self.emit_charged(cpu, Context::Hardirq, pending, cpu);
        }
        self.rearm_hrtick(cpu, 0);
        self.irq_return(cpu, hit);
    }

    /// Calls `act` in an interrupt on a CPU, and notifies the CPUs that have to reschedule.
    pub fn by_interrupt(&mut self, cpu: CpuId, act: impl FnOnce(&mut Self)) {
        let hit = self.interrupt(cpu, self.paths.timer_irq);
        act(self);
        self.effects(cpu, Context::Hardirq);
        self.irq_return(cpu, hit);
    }

    /// A group's quota is renewed.
    pub fn period(&mut self, tg: TgId, cpu: CpuId) {
        let cpu = self.instead_of(cpu);
        if let Some(at) = self.sched.timer_was_set(tg, cpu, self.now) {
            if at < Time::MAX {
                self.queue.push(at.max(self.now), Event::Period { tg, cpu });
            }
            return;
        }
        if self.put_off(cpu, Event::Period { tg, cpu }) {
            return;
        }
        self.by_interrupt(cpu, |engine| {
            if let Some(next) = engine.sched.period_timer(tg, cpu, engine.now) {
                engine.queue.push(next.max(engine.now), Event::Period { tg, cpu });
            }
        });
    }

    /// Returned quota is handed out.
    pub fn slack(&mut self, tg: TgId, cpu: CpuId) {
        let cpu = self.instead_of(cpu);
        if !self.put_off(cpu, Event::Slack { tg, cpu }) {
            self.by_interrupt(cpu, |engine| engine.sched.slack_timer(tg, cpu, engine.now));
        }
    }

    /// The period of RT throttling is over.
    pub fn rt_period(&mut self, cpu: CpuId) {
        let cpu = self.instead_of(cpu);
        if self.put_off(cpu, Event::RtPeriod { cpu }) {
            return;
        }
        self.by_interrupt(cpu, |engine| {
            if let Some(next) = engine.sched.rt_period_timer(engine.now) {
                engine.queue.push(next.max(engine.now), Event::RtPeriod { cpu });
            }
        });
    }

    /// A deadline task gets a new budget.
    pub fn replenish(&mut self, task: TaskId) {
        let cpu = self.sched.task(task).cpu;
        if !self.put_off(cpu, Event::Replenish { task }) {
            self.by_interrupt(cpu, |engine| engine.sched.dl_timer(cpu, task, engine.now));
        }
    }

    /// The bandwidth of a deadline task is no longer in use, if it still sleeps.
    pub fn dl_inactive(&mut self, task: TaskId) {
        let cpu = self.sched.task(task).cpu;
        if self.sched.dl_inactive_due(task, self.now) && !self.put_off(cpu, Event::DlInactive { task }) {
            self.by_interrupt(cpu, |engine| engine.sched.dl_inactive_timer(task, engine.now));
        }
    }
}
