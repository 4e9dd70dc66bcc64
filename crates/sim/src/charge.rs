//! Effects of the scheduler: notifications, trace events, and costs.
//!
//! The scheduler reports what it touched; here the machine prices it.

use schedlab_sched::{Access, Effect, MigrationCause, Scheduler, Shared};
use schedlab_topology::CpuId;
use schedlab_units::{Duration, Time};

use crate::emit::Context;
use crate::engine::Engine;
use crate::event::Event;

impl<S: Scheduler> Engine<'_, S> {
    /// Acts on what the scheduler did since last asked, on behalf of a CPU.
    #[inline]
    pub fn effects(&mut self, by: CpuId, context: Context) {
        if self.counting {
            self.count_balance();
        }
        if self.explaining {
            self.explain_balance(by, context);
        }
        if !self.sched.effects().is_empty() {
            self.have_effect(by, context);
        }
    }

    fn have_effect(&mut self, by: CpuId, context: Context) {
        while !self.sched.effects().is_empty() {
            // The buffer goes back, so that nothing is allocated in the long run.
            let mut effects =
                std::mem::replace(self.sched.effects(), std::mem::take(&mut self.spare_effects));
            for &effect in &effects {
                self.effect(by, context, effect);
            }
            effects.clear();
            self.spare_effects = effects;
        }
    }

    fn effect(&mut self, by: CpuId, context: Context, effect: Effect) {
        match effect {
            Effect::Resched { cpu, lazy } => {
                self.got_task(by, cpu);
                if cpu == by {
                    // It is on a kernel path, which checks the request at its end.
                    self.cpus[by].in_kernel = true;
                } else if !lazy || self.is_idle(cpu) {
                    self.notify(by, cpu);
                }
            }
            Effect::WakeList { cpu } => {
                self.got_task(by, cpu);
                if cpu != by {
                    self.notify(by, cpu);
                } else {
                    self.cpus[by].own_list = true;
                }
            }
            // It represents a thread that already existed.
            Effect::Migrated { task, cause: MigrationCause::Wakeup, .. }
                if self.tasks[task.index()].comes_to_waker => {}
            Effect::Migrated { task, from, to, cause } => {
                self.counts.migrations += 1;
                self.counts.by_cause[cause as usize] += 1;
                if self.tracing {
                    // A woken or new task leaves no queue.
                    let queued = !matches!(cause, MigrationCause::Wakeup | MigrationCause::Fork);
                    if queued {
                        self.emit_charged(by, context, self.pending(by), from);
                    }
                    self.explain_move(by, context, task, (from, to), cause);
                    self.emit_migrate(by, context, task, from, to);
                    if queued {
                        self.emit_charged(by, context, self.pending(by), to);
                    }
                }
            }
            Effect::ActiveBalance { cpu, to, .. } => self.ask_stopper(by, cpu, to),
            Effect::NohzKick { cpu } => {
                self.cpus[cpu].nohz_kick = true;
                self.notify(by, cpu);
            }
            Effect::Unthrottle { cpu } => {
                self.cpus[cpu].unthrottle = true;
                self.notify(by, cpu);
            }
            Effect::RtPush { cpu } => {
                self.cpus[cpu].rt_push = true;
                self.notify(by, cpu);
            }
            Effect::Balanced { cpu, examined, moved } => self.passed(cpu, examined, moved),
            Effect::Touch { by, what: Shared::TgLoadAvg(tg), how } => {
                self.tg_load_avg(tg, by, how != Access::Read);
            }
            Effect::Touch { by, what, how } => self.touch(by, what, how, self.paths.activate),
            Effect::Throttled { tg, cpu, on } => self.count_throttled(tg, cpu, on),
            // These timers stay on the CPU where they were started.
            Effect::StartPeriodTimer { tg, at } => {
                self.queue.push(self.not_before(at), Event::Period { tg, cpu: by })
            }
            Effect::StartSlackTimer { tg, at } => {
                self.queue.push(self.not_before(at), Event::Slack { tg, cpu: by })
            }
            Effect::StartRtPeriodTimer { at } => {
                self.queue.push(self.not_before(at), Event::RtPeriod { cpu: by })
            }
            Effect::StartDlTimer { task, after } => {
                self.queue.push(self.now + Duration(after), Event::Replenish { task })
            }
            Effect::StartDlInactiveTimer { task, after } => {
                self.queue.push(self.now + Duration(after), Event::DlInactive { task })
            }
        }
    }

    /// A time that is not in the past.
    fn not_before(&self, at: u64) -> Time {
        Time(at).max(self.now)
    }

    /// Time to fetch a line that another CPU wrote last.
    pub fn line_ns(&self, to: CpuId, from: CpuId) -> u64 {
        self.places.lines.way(from, to)
    }
}
