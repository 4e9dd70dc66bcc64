//! Tasks end, and other tasks wait for that.
//!
//! ```text
//!   begin_exit                    exiting                    ended
//!       |  memory, files: exit_ns    |  exit_notify_ns of it   |  the parent is woken, the last switch
//! ```
//!
//! Between the two stretches the task leaves the group of its session. In most kernels this requests a
//! reschedule: a preemptible kernel switches there, and the task comes back only to die.
//!
//! Left out: the exact place of `sched_process_exit`, which is in the middle here. Up to v6.15 it comes a few us
//! earlier, since then before the memory is freed.

use schedlab_machine::{Mechanism, Work};
use schedlab_sched::{Deactivate, Scheduler, TaskState};
use schedlab_topology::CpuId;
use schedlab_trace::Kind;
use schedlab_units::TaskId;
use schedlab_workload::{Section, SpecId};

use crate::emit::Context;
use crate::engine::Engine;
use crate::outcome::End;
use crate::task::{Mode, Stage, Wait};

impl<S: Scheduler> Engine<'_, S> {
    /// A task begins to exit; a worker is done with an item.
    pub fn begin_exit(&mut self, cpu: CpuId, task: TaskId) {
        if self.is_worker(task) {
            self.tasks[task.index()].stage = Stage::NextItem;
            self.charge(cpu, self.paths.syscall);
            return;
        }
        self.sched.set_exiting(task);
        let entry = &mut self.tasks[task.index()];
        entry.killed = false;
        if std::mem::take(&mut entry.streams) {
            self.cpus[cpu].work_rate = self.cpus[cpu].rate;
            self.memory.flow(cpu, task, false);
        }
        self.unlock_all(cpu, task);
        let ns = if self.machine.has(Mechanism::KernelCosts) { self.machine.cost.exit_ns.get() } else { 1 };
        if self.tasks[task.index()].spec.is_some_and(|spec| self.workload.task(spec).lives_on) {
            return self.in_kernel_for(task, ns, Stage::Ended);
        }
        self.in_kernel_for(task, ns.saturating_sub(self.exit_notify()), Stage::Exiting);
    }

    /// A task has freed its resources and leaves the group of its session.
    ///
    /// Kernel: do_exit(), kernel/exit.c, v6.1, v6.12.
    pub fn exiting(&mut self, cpu: CpuId, task: TaskId) {
        if self.tracing {
            let ((comm, pid), prio) = (self.who(task), self.prio(task));
            self.emit(cpu, Context::Task, Kind::SchedProcessExit { comm, pid, prio, group_dead: None });
        }
        let pending = self.pending(cpu);
        self.sched.sched_autogroup_exit_task(task, self.now);
        self.emit_runtime(cpu, Context::Task, pending, task);
        self.effects(cpu, Context::Task);
        self.in_kernel_for(task, self.exit_notify(), Stage::Ended);
        // There is no `cond_resched()` on this last stretch.
        let section = Section { preempt_off: false, cond_resched_ns: 0 };
        self.tasks[task.index()].mode = Mode::Kernel(section);
    }

    /// How long a kernel path takes, ns: zero if such costs are turned off.
    pub fn kernel_ns(&self, ns: u64) -> u64 {
        if self.machine.has(Mechanism::KernelCosts) { ns } else { 0 }
    }

    /// How long the last stretch takes, ns.
    fn exit_notify(&self) -> u64 {
        self.kernel_ns(self.machine.cost.exit_notify_ns.get())
    }

    /// A task ends.
    pub fn ended(&mut self, cpu: CpuId, task: TaskId) {
        self.counts.exits += 1;
        let entry = &mut self.tasks[task.index()];
        entry.ended = true;
        let (parent, is_thread, joiner, background) =
            (entry.parent, entry.is_thread, entry.joiner.take(), entry.background);
        if let Some(joiner) = joiner {
            self.wake_up(cpu, Context::Task, joiner, false);
        }
        if let Some(parent) = parent.filter(|_| !is_thread) {
            let entry = &mut self.tasks[parent.index()];
            entry.children -= 1;
            entry.zombies += 1;
            if entry.wait == Wait::Children {
                self.wake_up(cpu, Context::Task, parent, false);
            }
        }
        if !background {
            self.foreground -= 1;
            if self.foreground == 0 {
                self.end = Some(End::Done);
            }
        }
        self.reschedule(cpu, Deactivate::Exit);
    }

    /// Ends a task and the other threads of its process.
    pub fn exit_group(&mut self, cpu: CpuId, task: TaskId) {
        let process = self.sched.task(task).process;
        let others: Vec<TaskId> = (0..self.tasks.len() as u32)
            .map(TaskId)
            .filter(|&other| other != task && !self.tasks[other.index()].ended)
            .filter(|&other| self.sched.task(other).process == process)
            .collect();
        for other in others {
            self.kill(cpu, other);
        }
        self.begin_exit(cpu, task);
    }

    /// A task must end as soon as it would return to user mode.
    fn kill(&mut self, cpu: CpuId, task: TaskId) {
        self.tasks[task.index()].killed = true;
        if let Stage::SpunAtBarrier(id) = self.tasks[task.index()].stage {
            self.objects.barriers[id.index()].give_up(task);
        }
        if let Stage::SpunForMutex(id) = self.tasks[task.index()].stage {
            self.objects.mutexes[id.index()].stop_spinning(task);
        }
        self.give_up_wait(task);
        if let Wait::KernelMutex(_) = self.tasks[task.index()].wait {
            // It continues until it has taken the mutex and released it.
        } else if self.tasks[task.index()].wait != Wait::Nothing {
            let entry = &mut self.tasks[task.index()];
            entry.stage = Stage::Fetch;
            entry.work = Work::NONE;
            self.wake_up(cpu, Context::Task, task, false);
        } else if self.curr(self.sched.task(task).cpu) == Some(task) {
            let there = self.sched.task(task).cpu;
            self.notify(cpu, there);
        }
    }

    /// Removes a task from the object it waits at.
    fn give_up_wait(&mut self, task: TaskId) {
        let objects = &mut self.objects;
        match self.tasks[task.index()].wait {
            Wait::Mutex(id) => _ = objects.mutexes[id.index()].give_up(task),
            Wait::Cond(id) => _ = objects.conds[id.index()].give_up(task),
            Wait::Sem(id) => {
                objects.sems[id.index()].give_up(task);
                objects.owed[id.index()].give_up(task);
            }
            Wait::Barrier(id) => _ = objects.barriers[id.index()].give_up(task),
            Wait::Word(id) => _ = objects.futexes[id.index()].give_up(task),
            Wait::Readable(id) | Wait::Writable(id) => match &mut objects.channels[id.index()] {
                crate::objects::Channel::Pipe(pipe) => _ = pipe.give_up(task),
                crate::objects::Channel::Socket(socket) => _ = socket.give_up(task),
            },
            Wait::Join(other) => self.tasks[other.index()].joiner = None,
            Wait::Nothing
            | Wait::KernelMutex(_)
            | Wait::Timer
            | Wait::Device(_)
            | Wait::Children
            | Wait::Stopper
            | Wait::Thaw
            | Wait::Work => {}
        }
    }

    /// Sleeps until no forked process is left, and takes the status of those that have ended.
    pub fn wait_children(&mut self, cpu: CpuId, task: TaskId) {
        let reap = self.kernel_ns(self.machine.cost.reap_ns.get());
        let entry = &mut self.tasks[task.index()];
        if entry.zombies > 0 && reap > 0 {
            entry.zombies -= 1;
            // It is already on the wait queue: a child that ends meanwhile wakes it although it is still
            // running.
            entry.wait = Wait::Children;
            return self.in_kernel_for(task, reap, Stage::WaitChildren);
        }
        entry.zombies = 0;
        entry.wait = Wait::Nothing;
        self.charge(cpu, self.paths.syscall);
        if self.tasks[task.index()].children == 0 {
            self.tasks[task.index()].stage = Stage::Fetch;
            return;
        }
        self.sleep(cpu, task, TaskState::Interruptible, Wait::Children, Stage::WaitChildren);
    }

    /// Sleeps until a thread has ended.
    pub fn join(&mut self, cpu: CpuId, task: TaskId, spec: SpecId) {
        self.charge(cpu, self.paths.syscall);
        let forked = self.tasks[task.index()].forked.iter().find(|(known, _)| *known == spec);
        let Some(&(_, child)) = forked.filter(|(_, child)| !self.tasks[child.index()].ended) else {
            self.tasks[task.index()].stage = Stage::Fetch;
            return;
        };
        self.tasks[child.index()].joiner = Some(task);
        self.sleep(cpu, task, TaskState::Interruptible, Wait::Join(child), Stage::Fetch);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use schedlab_machine::Machine;
    use schedlab_sched::Kernel;
    use schedlab_trace::{Event, Kind, Sink};
    use schedlab_units::Duration;
    use schedlab_workload::{Start, TaskSpec, WorkloadBuilder};

    use crate::Simulation;

    /// How the first task leaves its CPU, from its exit on.
    #[derive(Default)]
    struct Last {
        ends: bool,
        told: String,
    }

    impl Sink for Last {
        fn event(&mut self, event: &Event) {
            match &event.kind {
                Kind::SchedProcessExit { comm, .. } => self.ends |= *comm == "first",
                Kind::SchedSwitch { prev_comm, prev_state, .. } if self.ends && *prev_comm == "first" => {
                    self.told += &format!(" {prev_state}");
                }
                _ => {}
            }
        }
    }

    /// Sleeps and wake-ups of a task.
    #[derive(Default)]
    struct Parent {
        sleeps: u32,
        wakeups: u32,
    }

    impl Sink for Parent {
        fn event(&mut self, event: &Event) {
            match &event.kind {
                Kind::SchedWakeup { comm, .. } => self.wakeups += u32::from(*comm == "parent"),
                Kind::SchedSwitch { prev_comm, prev_state, .. } if *prev_comm == "parent" => {
                    self.sleeps += u32::from(prev_state.to_string() == "S");
                }
                _ => {}
            }
        }
    }

    /// How often a parent sleeps and is woken whose two children end 50 us after each other.
    fn waits(reap_us: u64) -> (u32, u32) {
        let mut w = WorkloadBuilder::new("test");
        let children = [1_000, 1_050].map(|us| {
            let program = w.program("child", |p| _ = p.run(Duration::micros(us)));
            w.task(TaskSpec::forked("child", program))
        });
        let program = w.program("parent", |p| {
            for child in children {
                p.fork(child);
            }
            p.wait_children();
        });
        w.task(TaskSpec::root("parent", program));
        let workload = w.finish().unwrap();
        let (mut machine, kernel) = (Machine::preset("1x1x4").unwrap(), Kernel::parse("v6.12").unwrap());
        machine.apply_toml("test", &format!("[cost]\nfork_ns = 0\nreap_ns = {}\n", reap_us * 1000)).unwrap();
        let mut parent = Parent::default();
        assert!(Simulation::new(&machine, &kernel, &workload).unwrap().run(&mut parent).is_ok());
        (parent.sleeps, parent.wakeups)
    }

    #[test]
    fn a_child_that_ends_wakes_its_parent_even_while_it_reaps_another() {
        assert_eq!(waits(0), (2, 2), "asleep again when the second ends");
        assert_eq!(waits(200), (1, 2), "awake, and then there is nobody to wait for");
    }

    /// How a task ends beside another on its CPU.
    fn ends(kernel: &str) -> String {
        let mut w = WorkloadBuilder::new("test");
        for (name, start, work) in [("first", 0, 2_000), ("second", 100, 20_000)] {
            let program = w.program(name, |p| _ = p.run(Duration::micros(work)));
            let start = Start::At(Duration::micros(start));
            w.task(TaskSpec { start, ..TaskSpec::root(name, program) });
        }
        let workload = w.finish().unwrap();
        let (machine, kernel) = (Machine::preset("1").unwrap(), Kernel::parse(kernel).unwrap());
        let mut last = Last::default();
        assert!(Simulation::new(&machine, &kernel, &workload).unwrap().run(&mut last).is_ok());
        last.told
    }

    #[test]
    fn a_task_that_ends_makes_way_where_the_kernel_can_be_preempted() {
        let kernels = [
            "v5.5+preempt=full+NO_START_DEBIT",
            "v6.1+NO_START_DEBIT",
            "v6.1+preempt=full+NO_START_DEBIT",
            "v6.10+preempt=full",
            "v6.12",
            "v6.12+preempt=full",
            "v7.2",
            "v7.2+NO_REGROUP_SAME",
            "v7.2+NO_REGROUP_ASKS",
        ];
        let told: String = kernels.iter().map(|kernel| format!("{kernel}:{}\n", ends(kernel))).collect();
        expect![[r#"
            v5.5+preempt=full+NO_START_DEBIT: Z
            v6.1+NO_START_DEBIT: Z
            v6.1+preempt=full+NO_START_DEBIT: R+ Z
            v6.10+preempt=full: Z
            v6.12: Z
            v6.12+preempt=full: R+ Z
            v7.2: R+ Z
            v7.2+NO_REGROUP_SAME: Z
            v7.2+NO_REGROUP_ASKS: Z
        "#]]
        .assert_eq(&told);
    }
}
