//! Taking locks, waiting for them, and releasing them.
//!
//! ```text
//!   lock_kernel -- taken ------------------------------------------> locked
//!        |  owner runs: spins -- granted --------------------------> locked
//!        |       | owner leaves, or the CPU is wanted                  ^
//!        v       v                                                     |
//!   lock_slowly: waiters, asleep -- woken --> lock_woken -- taken -----+
//!                     ^-- owner does not run ----+ | owner runs: spins-+
//! ```
//!
//! A spinning task cannot be preempted, but stops when preemption is requested at once; a lazy request does not count.
//! It is then preempted while runnable, and does not spin any more when it comes back.
//!
//! Kernel: mutex_lock(), __mutex_lock_common(), mutex_optimistic_spin(),
//! __mutex_unlock_slowpath(), kernel/locking/mutex.c, v6.12.

use schedlab_machine::Work;
use schedlab_sched::{Deactivate, Scheduler, TaskState};
use schedlab_topology::CpuId;
use schedlab_units::TaskId;
use schedlab_workload::{ChannelId, MutexId, MutexKind, Section};

use crate::account::Part;
use crate::emit::Context;
use crate::engine::Engine;
use crate::shared::Object;
use crate::task::{Mode, Stage, Wait};
use crate::wait::KernelMutex;

/// Which mutex of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelLock {
    /// One that programs take by name.
    Program(MutexId),
    /// That of a pipe.
    Pipe(ChannelId),
}

impl<S: Scheduler> Engine<'_, S> {
    fn kernel_mutex(&mut self, lock: KernelLock) -> &mut KernelMutex {
        let programs = self.workload.objects.mutexes.len();
        let index = match lock {
            KernelLock::Program(id) => id.index(),
            KernelLock::Pipe(id) => programs + id.index(),
        };
        &mut self.objects.kernel_mutexes[index]
    }

    /// The holder of a mutex, and its name.
    pub fn owner_of(&self, lock: KernelLock) -> (Option<TaskId>, &str) {
        let objects = &self.workload.objects;
        let (index, name) = match lock {
            KernelLock::Program(id) => (id.index(), &objects.mutexes[id.index()].name),
            KernelLock::Pipe(id) => (objects.mutexes.len() + id.index(), &objects.channels[id.index()].name),
        };
        (self.objects.kernel_mutexes[index].owner(), name)
    }

    /// Whether others spin or sleep for a mutex.
    pub fn is_wanted(&mut self, lock: KernelLock) -> bool {
        self.kernel_mutex(lock).is_wanted()
    }

    /// Takes a lock or waits for it.
    pub fn lock(&mut self, cpu: CpuId, task: TaskId, id: MutexId) {
        if self.workload.objects.mutexes[id.index()].kind == MutexKind::Kernel {
            let lock = KernelLock::Program(id);
            if self.might_sleep(cpu) {
                self.tasks[task.index()].stage = Stage::KernelLock(lock);
                return;
            }
            self.charge(cpu, self.atomic());
            self.touch_word(cpu, Object::Mutex(id.index()));
            return self.lock_kernel(cpu, task, lock);
        }
        self.charge(cpu, self.atomic());
        self.touch_word(cpu, Object::Mutex(id.index()));
        let mutex = &mut self.objects.mutexes[id.index()];
        if mutex.take(task) {
            self.tasks[task.index()].stage = Stage::Fetch;
            return;
        }
        if let Some((spin, _)) = self.spins_for_lock(id) {
            return self.spin_for_lock(cpu, task, id, spin);
        }
        let mutex = &mut self.objects.mutexes[id.index()];
        mutex.wait(task);
        self.charge(cpu, self.paths.syscall + self.paths.futex);
        self.sleep(cpu, task, TaskState::Interruptible, Wait::Mutex(id), Stage::Lock(id));
    }

    /// Releases a lock; notifies the task that gets it, or may get it.
    pub fn unlock(&mut self, cpu: CpuId, task: TaskId, id: MutexId) {
        if self.workload.objects.mutexes[id.index()].kind == MutexKind::Kernel {
            self.charge(cpu, self.atomic());
            return self.unlock_kernel(cpu, task, KernelLock::Program(id));
        }
        self.charge(cpu, self.atomic());
        self.touch_word(cpu, Object::Mutex(id.index()));
        self.objects.mutexes[id.index()].give(task);
        if self.spins_for_lock(id).is_some() && self.give_to_spinner(cpu, id) {
            return;
        }
        if let Some(next) = self.objects.mutexes[id.index()].wakes() {
            self.charge(cpu, self.paths.syscall + self.paths.futex);
            self.wake_up(cpu, Context::Task, next, false);
        }
    }

    /// A task in the kernel takes a mutex, spins for it or sleeps. The price of one that is
    /// free is part of the path it is taken on.
    pub fn lock_kernel(&mut self, cpu: CpuId, task: TaskId, lock: KernelLock) {
        if self.kernel_mutex(lock).take(task) {
            self.locked(task, lock);
        } else if self.can_spin(cpu, lock) {
            self.spin(task, lock);
        } else {
            self.lock_slowly(cpu, task, lock);
        }
    }

    /// Whether the owner runs, and this CPU has no immediate request to reschedule.
    fn can_spin(&mut self, cpu: CpuId, lock: KernelLock) -> bool {
        let Some(owner) = self.kernel_mutex(lock).owner() else { return true };
        !self.sched.need_resched(cpu).full && self.curr(self.sched.task(owner).cpu) == Some(owner)
    }

    fn spin(&mut self, task: TaskId, lock: KernelLock) {
        self.kernel_mutex(lock).spin(task);
        let entry = &mut self.tasks[task.index()];
        entry.spins_for = Some(lock);
        entry.work = Work::nanos(u64::MAX);
        entry.mode = Mode::Kernel(Section { preempt_off: true, cond_resched_ns: 0 });
        entry.stage = Stage::SpunForLock(lock);
        self.turn_changes(self.sched.task(task).cpu);
    }

    /// A spinning task stops without the lock.
    pub fn spun_in_vain(&mut self, cpu: CpuId, task: TaskId, lock: KernelLock) {
        self.kernel_mutex(lock).stop_spinning(task);
        let waited = self.kernel_mutex(lock).waits(task);
        self.tasks[task.index()].spins_for = None;
        if self.sched.need_resched(cpu).full {
            let stage = if waited { Stage::LockWoken(lock) } else { Stage::LockSlowly(lock) };
            self.tasks[task.index()].stage = stage;
            self.reschedule(cpu, Deactivate::Yielded);
        } else {
            self.lock_slowly(cpu, task, lock);
        }
    }

    /// Tries once more, then sleeps.
    pub fn lock_slowly(&mut self, cpu: CpuId, task: TaskId, lock: KernelLock) {
        self.charge(cpu, self.atomic());
        let mutex = self.kernel_mutex(lock);
        if mutex.take(task) {
            return self.locked(task, lock);
        }
        mutex.wait(task);
        self.sleep(cpu, task, TaskState::Uninterruptible, Wait::KernelMutex(lock), Stage::LockWoken(lock));
    }

    /// A waiter runs again: if it finds the lock taken, it gets it next.
    pub fn lock_woken(&mut self, cpu: CpuId, task: TaskId, lock: KernelLock) {
        self.charge(cpu, self.atomic());
        if self.kernel_mutex(lock).take(task) {
            return self.locked(task, lock);
        }
        self.kernel_mutex(lock).ask_handoff(task);
        if self.kernel_mutex(lock).is_first(task) && self.can_spin(cpu, lock) {
            self.spin(task, lock);
        } else {
            self.lock_slowly(cpu, task, lock);
        }
    }

    /// A task has the lock it requested.
    pub fn locked(&mut self, task: TaskId, lock: KernelLock) {
        self.tasks[task.index()].holds.push(lock);
        match lock {
            KernelLock::Program(_) => self.tasks[task.index()].stage = Stage::Fetch,
            KernelLock::Pipe(pipe) => self.hold_pipe(task, pipe),
        }
    }

    /// Releases a mutex: the first spinner has it, at once or when its turn comes if it is still free then, and the
    /// first waiter is woken.
    pub fn unlock_kernel(&mut self, cpu: CpuId, task: TaskId, lock: KernelLock) {
        let held = self.tasks[task.index()].holds.remove_last(&lock);
        assert!(held, "the owner unlocks a mutex");
        let at_once = self.turns.is_none();
        let given = self.kernel_mutex(lock).give(task, at_once);
        if let Some(next) = given.spinner {
            let has = self.kernel_mutex(lock).owner() == Some(next);
            self.end_spin(next, if has { Stage::Locked(lock) } else { Stage::KernelLock(lock) });
        }
        if let Some(waiter) = given.wakes {
            self.wake_up(cpu, Context::Task, waiter, false);
        }
    }

    /// A task exits: its locks are released, so that other tasks can exit.
    pub fn unlock_all(&mut self, cpu: CpuId, task: TaskId) {
        while let Some(&lock) = self.tasks[task.index()].holds.last() {
            self.unlock_kernel(cpu, task, lock);
        }
    }

    /// A task is off its CPU: tasks that spin for its locks give up.
    pub fn owner_leaves(&mut self, task: TaskId) {
        for held in 0..self.tasks[task.index()].holds.len() {
            let lock = self.tasks[task.index()].holds[held];
            while let Some(spinner) = self.kernel_mutex(lock).next_spinner() {
                self.end_spin(spinner, Stage::SpunForLock(lock));
            }
        }
    }

    /// A task that spins sees that it can stop, wherever it is.
    pub fn end_spin(&mut self, task: TaskId, stage: Stage) {
        self.end_spin_after(task, stage, self.machine.cost.spin_exit_ns.get());
    }

    /// The same after `notice` ns.
    pub fn end_spin_after(&mut self, task: TaskId, stage: Stage, notice: u64) {
        let cpu = self.sched.task(task).cpu;
        let runs = self.curr(cpu) == Some(task);
        if runs {
            self.advance(cpu);
            // The line of what it spun on comes to it.
            let entry = &mut self.cpus[cpu];
            entry.account.charge_within(Part::Lines, Work::nanos(notice).time_at(entry.rate));
        }
        let entry = &mut self.tasks[task.index()];
        entry.spins_for = None;
        entry.work = Work::nanos(notice);
        entry.stage = stage;
        if runs {
            self.arm_next(cpu);
        }
    }
}

#[cfg(test)]
mod tests {
    use schedlab_machine::Machine;
    use schedlab_sched::Kernel;
    use schedlab_trace::NullSink;
    use schedlab_units::Duration;
    use schedlab_workload::{Op, TaskSpec, WorkloadBuilder};

    use crate::Simulation;
    use crate::engine::Listens;

    /// A writer and a reader on two CPUs spin for the mutex of their pipe again and again.
    #[test]
    fn tasks_that_spin_leave_nothing_in_the_queue_of_events() {
        let mut w = WorkloadBuilder::new("test");
        let channel = w.pipe("pipe");
        let ops = [Op::Write { channel, bytes: 4096 }, Op::Read { channel, bytes: 4096 }];
        for op in ops {
            let program = w.program("streams", |p| {
                p.forever(|p| _ = p.op(op));
            });
            w.task(TaskSpec::root("streams", program));
        }
        w.stop_after(Duration::millis(50));
        let workload = w.finish().unwrap();
        let (machine, kernel) = (Machine::preset("2").unwrap(), Kernel::parse("v6.12").unwrap());
        let simulation = Simulation::new(&machine, &kernel, &workload).unwrap();
        let mut engine = simulation.engine(Listens::of(&NullSink));
        let limits = simulation.limits(&engine);
        engine.run(limits, &mut NullSink);
        assert!(engine.queue.room() < 100, "room for {} events", engine.queue.room());
    }
}
