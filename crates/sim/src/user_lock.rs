//! Locks of user space for which a task spins before it sleeps: `s_lock()` of a database, an adaptive mutex.
//!
//! ```text
//!   lock_spinning -- free ---------------------------------------> locked
//!        |  taken: spins in user mode -- given back --------------> locked
//!        |         |  spun enough                                     ^
//!        |         v                                                  |
//!        |       sleeps for a while, or until it is given back -------+
//! ```
//!
//! A task that spins can be preempted like any task in user mode, and so can the holder: then all others spin
//! uselessly. A released lock goes to one of the tasks that are spinning on a CPU at that time, the nearest first; if
//! there is none, it is free, and each of them tries again once it runs.
//!
//! The lock is one cache line. All spinning CPUs have a copy, and on release the line goes to each of them once
//! before one has the lock: the more CPUs spin, the longer that takes.
//!
//! Left out: spinning with pauses leaves more of a core to its sibling.

use schedlab_machine::{Mechanism, Work};
use schedlab_sched::{Scheduler, TaskState};
use schedlab_topology::CpuId;
use schedlab_units::{Duration, TaskId};
use schedlab_workload::{MutexId, MutexKind};

use crate::engine::Engine;
use crate::task::{Stage, Wait};

impl<S: Scheduler> Engine<'_, S> {
    /// How long a task spins for a lock, and how long a task that has spun that long sleeps (zero: until the lock is
    /// released). `None` if no task spins for it.
    pub fn spins_for_lock(&self, id: MutexId) -> Option<(Duration, Duration)> {
        match self.workload.objects.mutexes[id.index()].kind {
            MutexKind::Spin { spin, sleep } => Some((spin, sleep)),
            MutexKind::Futex | MutexKind::Kernel => None,
        }
    }

    /// A lock was found taken: spins for it.
    pub fn spin_for_lock(&mut self, cpu: CpuId, task: TaskId, id: MutexId, spin: Duration) {
        self.objects.mutexes[id.index()].spin(task);
        let entry = &mut self.tasks[task.index()];
        entry.work = Work::nanos(spin.0);
        entry.stage = Stage::SpunForMutex(id);
        self.turn_changes(cpu);
    }

    /// Has spun enough: sleeps.
    pub fn spun_for_mutex(&mut self, cpu: CpuId, task: TaskId, id: MutexId) {
        self.objects.mutexes[id.index()].stop_spinning(task);
        let (_, sleep) = self.spins_for_lock(id).expect("it span");
        if sleep > Duration::ZERO {
            self.sleep_until(cpu, task, self.now + sleep, Stage::Lock(id));
        } else {
            self.objects.mutexes[id.index()].wait(task);
            self.charge(cpu, self.paths.syscall + self.paths.futex);
            self.sleep(cpu, task, TaskState::Interruptible, Wait::Mutex(id), Stage::Lock(id));
        }
    }

    /// Hands a released lock to the nearest task that spins for it on a CPU, after its line has gone to every spinner.
    /// False if no task spins on a CPU now.
    pub fn give_to_spinner(&mut self, cpu: CpuId, id: MutexId) -> bool {
        let line = |engine: &Self, to: CpuId| {
            if to != cpu && engine.machine.has(Mechanism::CacheLines) { engine.line_ns(to, cpu) } else { 0 }
        };
        let (mut next, mut ns) = (None, 0);
        for spinner in self.objects.mutexes[id.index()].spinners() {
            let on = self.sched.task(spinner).cpu;
            if self.curr(on) == Some(spinner) {
                let takes = line(self, on);
                ns += takes;
                if next.is_none_or(|(least, _)| takes < least) {
                    next = Some((takes, spinner));
                }
            }
        }
        let Some((_, next)) = next else {
            // No spinner is on a CPU now: each tries again when it runs.
            while let Some(spinner) = self.objects.mutexes[id.index()].next_spinner() {
                self.end_spin_after(spinner, Stage::Lock(id), self.atomic());
            }
            return false;
        };
        let mutex = &mut self.objects.mutexes[id.index()];
        mutex.stop_spinning(next);
        // If CPUs execute in turn, the spinner looks again when its turn comes.
        let at_once = self.turns.is_none();
        if at_once {
            mutex.take(next);
        }
        let stage = if at_once { Stage::Fetch } else { Stage::Lock(id) };
        self.end_spin_after(next, stage, ns.max(self.atomic()));
        true
    }
}
