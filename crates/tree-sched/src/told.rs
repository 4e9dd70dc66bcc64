//! Translates what a call of the library did into effects.

use schedlab_kernel_tree::{Event, KernelTask};
use schedlab_sched::{Effect, MigrationCause, Scheduler, Shared, TgId};
use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::TreeSched;

/// A placeholder group: the library has one timer per CPU, whatever it is for.
pub(crate) const TIMERS: TgId = TgId(u32::MAX);

/// What a call reported besides its effects.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// Number of other CPUs that the fair class examined.
    pub scanned: u32,
    /// The CPU it chose for a task.
    pub selected: Option<CpuId>,
    /// Tasks that changed their CPU.
    pub moved: u32,
}

/// The purpose of an interrupt to another CPU, and whether the engine is notified of stoppers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// It may wake tasks there.
    Wakes,
    /// Anything else.
    Other,
    /// It picks its next task: what the fair class examines is newly idle passes.
    Schedules,
    /// Anything else; the task that waits for the stopper requests it itself.
    AsksStopper,
}

impl TreeSched {
    /// Processes what CPU `by` has just done.
    pub(crate) fn told(&mut self, by: CpuId, cause: MigrationCause, call: Call) {
        let mut told = Told::default();
        let mut pulled = 0;
        let mut events = std::mem::take(&mut self.spare);
        self.library.events(|event| events.push(event));
        for event in events.drain(..) {
            match event {
                Event::Resched(cpu) if cpu != by => self.effects.push(Effect::Resched { cpu, lazy: false }),
                Event::Resched(_) => {}
                Event::Call(cpu) if call == Call::Wakes => self.effects.push(Effect::WakeList { cpu }),
                Event::Call(cpu) => self.effects.push(Effect::NohzKick { cpu }),
                Event::RqLock(of) => self.effects.push(Effect::lock(by, Shared::Rq(of))),
                // The engine makes the lines of a new task after its fork.
                Event::TaskLock(_) if cause == MigrationCause::Fork => {}
                Event::TaskLock(KernelTask(task)) => {
                    self.effects.push(Effect::write(by, Shared::Task(TaskId(task))));
                }
                // One line, of which only the owner is known: priced like the line of a wake list.
                Event::Line(of) => self.effects.push(Effect::write(by, Shared::WakeList(of))),
                Event::TgLoadAvg(group, write) => {
                    self.touched(by, Shared::TgLoadAvg(TgId(group.0 + 1)), write)
                }
                Event::Atomic(line, write) => self.touched(by, Shared::Atomic(line), write),
                Event::Looked(word, cpus) => self.looked.note_word(word as usize, cpus),
                Event::Scanned(examined) if call == Call::Schedules => {
                    let moved = told.moved - std::mem::replace(&mut pulled, told.moved);
                    self.effects.push(Effect::Balanced { cpu: by, examined, moved });
                }
                Event::Scanned(cpus) => told.scanned += cpus,
                Event::Selected(_, cpu) => told.selected = Some(cpu),
                Event::Migrated(KernelTask(task), from, to) => {
                    if from != to {
                        let task = TaskId(task);
                        let cause = self.cause_of(task, cause);
                        self.tasks[task.index()].cpu = to;
                        told.moved += 1;
                        self.effects.push(Effect::Migrated { task, from, to, cause });
                    }
                }
                Event::Stopper(cpu) if call != Call::AsksStopper => {
                    self.effects.push(Effect::ActiveBalance { by, cpu, to: cpu });
                }
                Event::Stopper(_) => {}
            }
        }
        self.spare = events;
        self.told = told;
        let (pending, known) = (self.need_resched(by), self.of(by).asked);
        // A lazy request can become a full one.
        if pending.full && !known.full || pending.lazy && !known.any() {
            self.effects.push(Effect::Resched { cpu: by, lazy: !pending.full });
        }
        self.of_mut(by).asked = pending;
        self.arm(by);
    }

    fn touched(&mut self, by: CpuId, what: Shared, write: bool) {
        self.effects.push(if write { Effect::write(by, what) } else { Effect::read(by, what) });
    }

    /// Sets when the timers of a CPU are due, if the engine would call too late for them.
    fn arm(&mut self, cpu: CpuId) {
        let at = self.library.timer_at(cpu);
        if at < self.of(cpu).timer && at < i64::MAX as u64 {
            self.of_mut(cpu).timer = at;
            self.effects.push(Effect::StartPeriodTimer { tg: TIMERS, at });
        }
    }
}
