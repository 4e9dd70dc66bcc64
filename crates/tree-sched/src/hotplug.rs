//! CPUs of a tree that go offline and come back.
//!
//! The engine takes a CPU down in the stopper of that CPU: it first closes it to tasks, then takes it offline. From
//! 5.11 on a CPU that leaves hands each task that it switches to to its stopper. Here the library does so for all of
//! them at once, in no time.
//!
//! Left out: a kernel thread that is bound to the CPU and waits there is not parked. What waits behind it stays too.
//!
//! Kernel: cpu_down(), cpu_up(), kernel/cpu.c; sched_cpu_deactivate(), balance_push(), kernel/sched/core.c, v6.12.

use schedlab_kernel_tree::{Curr, How, KernelTask, end_run};
use schedlab_sched::{MigrationCause, Scheduler};
use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::TreeSched;
use crate::told::Call;

impl TreeSched {
    /// A CPU is there again, for kernel threads that are bound to it.
    pub(crate) fn starts(&mut self, cpu: CpuId, now: Time) {
        self.at(now);
        self.rules.cpu_starting(cpu);
        self.rules.effects.clear();
        self.library.starting(cpu);
        self.library.nohz_exit(cpu);
        let entry = self.of_mut(cpu);
        (entry.online, entry.timers) = (true, cpu);
        self.told(cpu, MigrationCause::Affinity, Call::AsksStopper);
    }

    /// A CPU takes tasks again, or no more. In the second case its stopper runs.
    pub(crate) fn opens(&mut self, cpu: CpuId, active: bool, now: Time) {
        self.at(now);
        let before = self.effects.len();
        let ours = self.pass_beside(|rules| rules.set_active(cpu, active, now));
        if ours.is_none() {
            // They do not know which tasks wait there. The engine reads their domains.
            self.rules.rqs[cpu].active = active;
            self.rules.rebuild_domains(now);
            self.rules.effects.clear();
        }
        self.of_mut(cpu).active = active;
        if active {
            self.library.activate(cpu);
        } else {
            self.library.offline(cpu).unwrap_or_else(|error| {
                end_run(format!(
                    "CPU {cpu} cannot go offline at {now}: the kernel returns error {error}. Error 16 says that the \
                     other CPUs have too little bandwidth for the deadline tasks; end them first, or take another CPU"
                ))
            });
            if self.library.pending(cpu).resched() {
                self.push_all(cpu);
            }
        }
        self.told(cpu, MigrationCause::Affinity, Call::AsksStopper);
        self.moved_as(cpu, before, ours.map(|(_, moved)| moved), now);
    }

    /// Each task that a CPU switches to is moved by its stopper, until it has none left.
    fn push_all(&mut self, cpu: CpuId) {
        let pending = self.has_wake_list(cpu);
        loop {
            let how = match self.library.curr(cpu) {
                Curr::Stopper => {
                    self.library.stopper_works(cpu);
                    How::Sleeps
                }
                Curr::Task(KernelTask(task)) if !self.tasks[task as usize].kthread_is_per_cpu() => {
                    How::Preempted
                }
                _ => break,
            };
            self.library.schedule(cpu, how, pending);
        }
        // For the engine its stopper has been running all along.
        self.library.wake_stopper(cpu);
        self.library.schedule(cpu, How::Preempted, pending);
        self.library.stopper_works(cpu);
    }

    /// The stopper of a CPU takes it offline.
    pub(crate) fn goes_offline(&mut self, cpu: CpuId, now: Time) {
        self.at(now);
        let before = self.effects.len();
        let ours = self.pass_beside(|rules| Scheduler::set_offline(rules, cpu, now));
        if ours.is_none() {
            self.rules.rqs[cpu].online = false;
        }
        let due = self.library.timer_at(cpu);
        self.library.take_down(cpu);
        self.library.stopper_works(cpu);
        self.of_mut(cpu).online = false;
        self.told(cpu, MigrationCause::Affinity, Call::AsksStopper);
        self.moved_as(cpu, before, ours.map(|(_, moved)| moved), now);
        // Its timers are another CPU's now. The engine calls for them where they were set.
        let has_them =
            |&other: &CpuId| other != cpu && self.of(other).online && self.library.timer_at(other) <= due;
        let other = (0..self.cpus.len()).map(CpuId::from).find(has_them);
        self.of_mut(cpu).timers = other.filter(|_| due < i64::MAX as u64).unwrap_or(cpu);
    }
}
