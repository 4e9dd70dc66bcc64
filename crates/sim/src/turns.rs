//! One processor that executes all CPUs in turn, like an emulator whose clock counts instructions.
//!
//! A CPU runs alone until its turn is over or it sleeps; meanwhile the others are stopped, and events for them wait for
//! their turn. Turns are taken in order of CPU number. The turns of one pass over n CPUs have the same length: 1/n of
//! the time until the next timer, as of the start of the pass. After an interrupt by a timer or a device each CPU's
//! next turn is measured again, so after a tick each is shorter than the one before by 1/n. When all CPUs sleep, time
//! advances to the next event, and its CPU gets the turn.
//!
//! ```text
//!   all sleep         a pass of 992 / 16 us, until CPU 15       the next, of 500 / 16 us
//!       | CPU 5  | CPU 6  | CPU 7  | (8 sleeps) CPU 9 .. CPU 15 | CPU 0 | CPU 1 | CPU 2 | ..
//! ```
//!
//! A task that spins yields the turn with each pause. Left out: requests of QEMU's own threads, which end
//! turns too.
//!
//! Source: QEMU 10, rr_cpu_thread_fn() and icount_percpu_budget(); the recordings in `traces/` show all of it.

use schedlab_machine::Work;
use schedlab_sched::Scheduler;
use schedlab_topology::{CpuId, PerCpu};
use schedlab_units::{Duration, Time};

use crate::engine::Engine;
use crate::event::Event;
use crate::rng::Stream;
use crate::task::Stage;

/// A turn of a loop that pauses, ns.
const PAUSE: u64 = 20;

/// Time that such a loop must take to count as the pause of its model, ns: see the programs of
/// [`schedlab_workload::models::Barrier`].
const PAUSED: u64 = 10_000;

/// The turns of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    /// The CPU whose turn it is, or was last.
    at: CpuId,
    /// Whether a CPU has the turn.
    taken: bool,
    /// Number of the armed end of the turn.
    number: u32,
    /// Events that arrived for a CPU outside its turn.
    due: PerCpu<Vec<Event>>,
    /// CPUs whose next turn is measured again.
    anew: PerCpu<bool>,
    /// How long a turn of this pass lasts, ns, and the end of the current one.
    turn: u64,
    until: Time,
    /// The timer up to which turns are measured.
    deadline: Time,
    /// The timer to which time jumped when all CPUs slept, so that the host can catch up.
    jumped: Option<Time>,
    /// A timer of the machine itself expires this long after each tick is due.
    reach: Duration,
}

impl Turns {
    /// All CPUs sleep.
    pub fn new(nr_cpus: usize, tick: u64, seed: u64) -> Turns {
        // Observed: 0.2 to 3.6 ms of 4.
        let reach = tick / 20 + Stream::new(seed, "turns", 0).next() % (tick * 17 / 20);
        Turns {
            at: CpuId(0),
            taken: false,
            number: 0,
            due: PerCpu::new(nr_cpus, |_| Vec::new()),
            anew: PerCpu::new(nr_cpus, |_| true),
            turn: 0,
            until: Time::ZERO,
            deadline: Time::ZERO,
            jumped: None,
            reach: Duration(reach),
        }
    }
}

impl<S: Scheduler> Engine<'_, S> {
    /// Whether an event for a CPU has to wait for its turn; if so it is kept until then.
    pub fn awaits_turn(&mut self, event: Event) -> bool {
        let cpu = self.comes_for(event);
        let Some((turns, cpu)) = self.turns.as_mut().zip(cpu) else { return false };
        if !matches!(event, Event::Notify { .. }) {
            turns.anew.iter_mut().for_each(|(_, anew)| *anew = true);
        }
        if turns.taken && turns.at == cpu {
            return false;
        }
        turns.due[cpu].push(event);
        if !turns.taken {
            self.give_turn(cpu);
        }
        true
    }

    /// The CPU that an event interrupts.
    fn comes_for(&self, event: Event) -> Option<CpuId> {
        match event {
            Event::Tick { cpu } => {
                let stopped = self.is_idle(cpu) && self.cpus[cpu].tick_stopped;
                Some(cpu).filter(|_| !stopped)
            }
            Event::HrTick { cpu, number } => {
                Some(cpu).filter(|_| self.cpus[cpu].hrtick_number == number && !self.is_idle(cpu))
            }
            Event::Notify { cpu } => Some(cpu),
            Event::DeviceIrq { cpu, .. } => Some(self.instead_of(cpu)),
            Event::Irq { source } => Some(self.instead_of(self.workload.objects.sources[source.index()].cpu)),
            Event::Timer { task, number } => {
                let task = &self.tasks[task.index()];
                Some(self.instead_of(task.timer_cpu)).filter(|_| task.timer == number)
            }
            _ => None,
        }
    }

    /// The turn is over.
    pub fn turn_over(&mut self, number: u32) {
        let Some(turns) = &mut self.turns else { return };
        if turns.number != number {
            return;
        }
        let cpu = turns.at;
        if std::mem::take(&mut turns.taken) && !self.is_idle(cpu) {
            self.advance(cpu);
            self.suspend(cpu);
        }
        self.pass_turn();
    }

    /// A CPU is stopped from now on.
    fn suspend(&mut self, cpu: CpuId) {
        let pauses = self.pauses(cpu) && self.cpus[cpu].overhead == Work::NONE;
        let entry = &mut self.cpus[cpu];
        entry.waits = true;
        entry.armed = None;
        entry.number = entry.number.wrapping_add(1);
        if pauses && let Some(task) = self.curr(cpu) {
            let work = &mut self.tasks[task.index()].work;
            *work = work.after(PAUSED, schedlab_machine::Rate::FULL);
        }
    }

    /// Passes the turn to the next CPU that has something to do.
    fn pass_turn(&mut self) {
        let Some(turns) = &self.turns else { return };
        let (last, nr_cpus) = (turns.at.index(), self.machine.topology.nr_cpus());
        for step in 1..=nr_cpus {
            let cpu = CpuId::from((last + step) % nr_cpus);
            let turns = self.turns.as_ref().expect("there are turns");
            if (!self.is_idle(cpu) || !turns.due[cpu].is_empty()) && self.give_turn(cpu) {
                return;
            }
        }
    }

    /// A CPU gets its turn: it handles pending events, then continues. Returns whether it uses the turn.
    fn give_turn(&mut self, cpu: CpuId) -> bool {
        let deadline = self.next_deadline();
        let nr_cpus = self.machine.topology.nr_cpus() as u64;
        let turns = self.turns.as_mut().expect("there are turns");
        if std::mem::take(&mut turns.anew[cpu]) || cpu <= turns.at {
            turns.deadline = deadline;
            turns.turn = (deadline.since(self.now).0 / nr_cpus).max(1);
        }
        turns.until = self.now + Duration(turns.turn);
        turns.at = cpu;
        turns.taken = true;
        turns.number = turns.number.wrapping_add(1);
        let due = std::mem::take(&mut turns.due[cpu]);
        self.advance(cpu);
        self.cpus[cpu].waits = false;
        for event in due {
            self.handle(event);
        }
        if self.is_idle(cpu) && self.cpus[cpu].idle_since <= self.now {
            self.turns.as_mut().expect("there are turns").taken = false;
            return false;
        }
        self.arm_turn();
        if !self.is_idle(cpu) {
            self.go_on(cpu);
        }
        true
    }

    /// Sets the end of the current turn again: the CPU started or stopped working or spinning.
    pub fn arm_turn(&mut self) {
        let Some(turns) = &self.turns else { return };
        if !turns.taken {
            return;
        }
        let cpu = turns.at;
        let end = if self.is_idle(cpu) {
            self.cpus[cpu].idle_since.max(self.now)
        } else if self.pauses(cpu) {
            self.now + Duration(self.cpus[cpu].overhead_ns() + PAUSE)
        } else {
            turns.until.max(self.now + Duration(1))
        };
        let turns = self.turns.as_mut().expect("there are turns");
        turns.number = turns.number.wrapping_add(1);
        let number = turns.number;
        self.queue.push(end, Event::Turn { number });
    }

    /// A CPU began to run something, or to sleep.
    pub fn turn_changes(&mut self, cpu: CpuId) {
        let idle = self.is_idle(cpu);
        let Some(turns) = &mut self.turns else { return };
        if turns.taken && turns.at == cpu {
            return self.arm_turn();
        }
        self.cpus[cpu].waits = true;
        if !turns.taken && !idle {
            // Something other than an interrupt made it run.
            turns.number = turns.number.wrapping_add(1);
            let number = turns.number;
            self.queue.push(self.now, Event::Turn { number });
        }
    }

    /// A timer is set: if it expires before all others, turns are measured by it from now on.
    pub fn timer_set(&mut self, at: Time) {
        let (now, nr_cpus) = (self.now, self.machine.topology.nr_cpus() as u64);
        let Some(turns) = self.turns.as_mut().filter(|turns| turns.taken && at < turns.deadline) else {
            return;
        };
        turns.deadline = at;
        turns.anew.iter_mut().for_each(|(_, anew)| *anew = true);
        turns.until = turns.until.min(now + Duration(at.since(now).0 / nr_cpus));
        self.arm_turn();
    }

    /// The turn of a CPU is over as soon as its current work is paid for.
    pub fn end_turn(&mut self, cpu: CpuId) {
        let end = self.now + Duration(self.cpus[cpu].overhead_ns());
        let Some(turns) = self.turns.as_mut().filter(|turns| turns.taken && turns.at == cpu) else { return };
        turns.until = turns.until.min(end);
        self.arm_turn();
    }

    /// Devices belong to the host: while all CPUs sleep, time jumps to the next timer at once, and the host finishes
    /// only then. Returns that time; `None` if a CPU has the turn.
    pub fn host_is_done_at(&mut self) -> Option<Time> {
        let turns = self.turns.as_mut()?;
        if turns.taken {
            turns.jumped = None;
            return None;
        }
        if turns.jumped == Some(self.now) {
            return None;
        }
        let next = self.next_deadline();
        self.turns.as_mut()?.jumped = Some(next);
        Some(next)
    }

    /// When the next timer expires.
    fn next_deadline(&self) -> Time {
        let tick = self.sched.tick_ns();
        let of_machine = |now: Time| {
            let reach = self.turns.as_ref().map_or(0, |turns| turns.reach.0);
            let at = now.0 / tick * tick + reach;
            Time(if at > now.0 { at } else { at + tick })
        };
        let mut next = of_machine(self.now);
        for cpu in self.machine.topology.online().iter() {
            let entry = &self.cpus[cpu];
            if entry.tick_armed {
                next = next.min(Time((self.now.0 / tick + 1) * tick));
            }
            let timers = [entry.next_timer, entry.hrtick.map_or(Time::MAX, Time)];
            next = timers.into_iter().filter(|&at| at > self.now).fold(next, Time::min);
        }
        next
    }

    /// After how much work, unpaid work included, the turn of a CPU ends, and how long the turns of the
    /// others then take, if they are of the same length.
    pub fn stall(&self, cpu: CpuId) -> Option<(u64, u64)> {
        let turns = self.turns.as_ref().filter(|turns| turns.taken && turns.at == cpu)?;
        let left = turns.until.since(self.now).0.checked_sub(self.cpus[cpu].overhead_ns())?;
        let others =
            self.machine.topology.online().iter().filter(|&other| other != cpu && !self.is_idle(other));
        Some((left, others.count() as u64 * turns.turn))
    }

    /// Whether the task on a CPU spins, at a barrier or for a mutex.
    pub fn pauses(&self, cpu: CpuId) -> bool {
        let stage =
            self.curr(cpu).filter(|_| self.turns.is_some()).map(|task| self.tasks[task.index()].stage);
        matches!(stage, Some(Stage::SpunAtBarrier(_) | Stage::SpunForLock(_) | Stage::SpunForMutex(_)))
    }
}
