//! Semaphores whose posts are owed: each wait sleeps, each post wakes.
//!
//! A post that finds no sleeper leaves the posting task in debt. The task continues, and pays when the waiter falls
//! asleep: at once, if the poster is running; when it runs next, if it waits for a CPU; and if it is asleep itself, the
//! CPU on which the waiter fell asleep pays for it.

use schedlab_sched::{Scheduler, TaskState};
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};
use schedlab_workload::SemId;

use crate::emit::Context;
use crate::engine::Engine;
use crate::event::Event;
use crate::task::{Stage, Wait};

/// The posts owed at a semaphore.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owed {
    /// The tasks that owe a post, in the order of the posts.
    by: Vec<TaskId>,
    sleeper: Option<TaskId>,
}

impl Owed {
    /// A task that waits is killed.
    pub fn give_up(&mut self, task: TaskId) {
        self.sleeper = self.sleeper.filter(|&sleeper| sleeper != task);
    }
}

impl<S: Scheduler> Engine<'_, S> {
    /// A task posts.
    pub fn owe(&mut self, cpu: CpuId, task: TaskId, sem: SemId) {
        let owed = &mut self.objects.owed[sem.index()];
        match owed.sleeper.take() {
            Some(sleeper) => {
                self.charge(cpu, self.paths.syscall + self.paths.futex);
                self.wake_up(cpu, Context::Task, sleeper, self.workload.objects.sems[sem.index()].sync);
            }
            None => {
                owed.by.push(task);
                let owes = &mut self.tasks[task.index()].owes;
                if !owes.contains(&sem) {
                    owes.push(sem);
                }
            }
        }
    }

    /// A task waits, and sleeps even if posts are owed.
    pub fn wait_owed(&mut self, cpu: CpuId, task: TaskId, sem: SemId) {
        self.charge(cpu, self.paths.syscall + self.paths.futex);
        self.objects.owed[sem.index()].sleeper = Some(task);
        self.sleep(cpu, task, TaskState::Interruptible, Wait::Sem(sem), Stage::Fetch);
    }

    /// A task that sleeps will be off its CPU by then: what it is owed can be paid. A wake-up before that would not
    /// choose a CPU.
    pub fn creditor_sleeps(&mut self, task: TaskId, off_cpu_at: Time) {
        if let Wait::Sem(sem) = self.tasks[task.index()].wait
            && !self.objects.owed[sem.index()].by.is_empty()
        {
            self.queue.push(off_cpu_at, Event::Pay { sem });
        }
    }

    /// A task runs again: it pays what it owes.
    pub fn pays(&mut self, task: TaskId) {
        for &sem in self.tasks[task.index()].owes.iter() {
            if self.objects.owed[sem.index()].sleeper.is_some() {
                self.queue.push(self.now, Event::Pay { sem });
            }
        }
    }

    /// Pays a post that is owed at a semaphore, if possible: by a running task; if none runs, by the next that runs;
    /// and if all sleep, in the name of the first.
    pub fn pay(&mut self, sem: SemId) {
        let owed = &self.objects.owed[sem.index()];
        let Some(sleeper) = owed.sleeper.filter(|_| !owed.by.is_empty()) else { return };
        let runs = |&by: &TaskId| self.curr(self.sched.task(by).cpu) == Some(by);
        let waits = |&by: &TaskId| self.tasks[by.index()].wait == Wait::Nothing && self.sched.task(by).on_rq;
        let (debt, cpu, context) = match owed.by.iter().position(runs) {
            Some(debt) => (debt, self.sched.task(owed.by[debt]).cpu, Context::Task),
            None if owed.by.iter().any(waits) => return,
            None => (0, self.sched.task(sleeper).cpu, Context::Hardirq),
        };
        let owed = &mut self.objects.owed[sem.index()];
        let by = owed.by.remove(debt);
        owed.sleeper = None;
        if !owed.by.contains(&by) {
            self.tasks[by.index()].owes.retain(|&debt| debt != sem);
        }
        let hit = self.interrupt(cpu, self.paths.syscall + self.paths.futex);
        let sync = context == Context::Task && self.workload.objects.sems[sem.index()].sync;
        self.wake_up(cpu, context, sleeper, sync);
        self.irq_return(cpu, hit);
    }
}

#[cfg(test)]
mod tests {
    use schedlab_machine::Machine;
    use schedlab_sched::Kernel;
    use schedlab_topology::CpuId;
    use schedlab_trace::{Event, Kind, Sink};
    use schedlab_units::Duration;
    use schedlab_workload::{CpuList, Op, TaskSpec, WorkloadBuilder};

    use crate::Simulation;

    #[derive(Default)]
    struct Seen {
        wakings: usize,
        sleeps_of_poster: usize,
    }

    impl Sink for Seen {
        fn event(&mut self, event: &Event) {
            match &event.kind {
                Kind::SchedWaking { comm, .. } => self.wakings += usize::from(*comm == "waits"),
                Kind::SchedSwitch { prev_comm, prev_state, .. } if *prev_comm == "posts" => {
                    self.sleeps_of_poster += usize::from(!prev_state.is_runnable() && !prev_state.is_dead());
                }
                _ => {}
            }
        }
    }

    #[test]
    fn each_wait_sleeps_and_each_post_wakes_and_the_poster_goes_on() {
        // On one CPU a poster that was preempted pays when it runs next; a poster that ended has its debts paid.
        for (machine, between, after) in
            [("1", 100, 100), ("2", 100, 5_000), ("2", 2_000, 2_000), ("2", 100, 100)]
        {
            let mut w = WorkloadBuilder::new("test");
            let sem = w.sem("sem", 0);
            w.workload_mut().objects.sems[sem.index()].owes = true;
            let run = |us| Op::Run { work: Duration::micros(us) };
            let posts = w.program("posts", |p| {
                for _ in 0..4 {
                    p.op(run(between)).op(Op::SemPost { sem });
                }
                p.op(run(after));
            });
            let waits = w.program("waits", |p| {
                for _ in 0..4 {
                    p.op(Op::SemWait { sem }).op(run(1_000));
                }
            });
            w.task(TaskSpec::root("posts", posts));
            w.task(TaskSpec::root("waits", waits));
            let workload = w.finish().unwrap();
            let (machine, kernel) = (Machine::preset(machine).unwrap(), Kernel::parse("v6.12").unwrap());
            let mut seen = Seen::default();
            assert!(Simulation::new(&machine, &kernel, &workload).unwrap().run(&mut seen).is_ok());
            assert_eq!((seen.wakings, seen.sleeps_of_poster), (4, 0), "{between} {after}");
        }
    }

    /// The CPU on which the waiter is queued each time.
    #[derive(Default)]
    struct Placed(Vec<u32>);

    impl Sink for Placed {
        fn event(&mut self, event: &Event) {
            match &event.kind {
                Kind::SchedWakeup { comm, target_cpu, .. } if *comm == "waits" => {
                    self.0.push(target_cpu.0.into())
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_sync_post_brings_the_waiter_to_the_cpu_of_a_lone_poster() {
        for (sync, expected) in [(false, 1), (true, 0)] {
            let mut w = WorkloadBuilder::new("test");
            let sem = w.sem("sem", 0);
            let spec = &mut w.workload_mut().objects.sems[sem.index()];
            (spec.owes, spec.sync) = (true, sync);
            let run = |ms| Op::Run { work: Duration::millis(ms) };
            let posts = w.program("posts", |p| {
                p.op(run(20)).op(Op::SemPost { sem }).op(run(20));
            });
            let waits = w.program("waits", |p| {
                p.op(run(1)).op(Op::SemWait { sem }).op(run(1));
            });
            let hog = w.program("hog", |p| {
                p.op(run(60));
            });
            for (name, program, cpu) in [("waits", waits, 1), ("hog", hog, 1), ("posts", posts, 0)] {
                let cpus = (name != "waits").then(|| w.cpus(CpuList::new(vec![CpuId(cpu)]).unwrap()));
                w.task(TaskSpec { cpus, start_cpu: Some(CpuId(cpu)), ..TaskSpec::root(name, program) });
            }
            let workload = w.finish().unwrap();
            let (machine, kernel) = (Machine::preset("2").unwrap(), Kernel::parse("v6.12").unwrap());
            let mut placed = Placed::default();
            assert!(Simulation::new(&machine, &kernel, &workload).unwrap().run(&mut placed).is_ok());
            assert_eq!(placed.0, [expected], "{sync}");
        }
    }
    /// The CPU on which the waiter is woken each time.
    #[derive(Default)]
    struct WokenOn(Vec<u32>);

    impl Sink for WokenOn {
        fn event(&mut self, event: &Event) {
            if matches!(&event.kind, Kind::SchedWaking { comm, .. } if *comm == "waits") {
                self.0.push(event.cpu.0.into());
            }
        }
    }

    #[test]
    fn any_task_that_owes_pays_the_runner_first_and_a_sleeper_where_the_waiter_sleeps() {
        for (first_sleeps, expected) in [(false, [0, 1]), (true, [1, 2])] {
            let mut w = WorkloadBuilder::new("test");
            let sem = w.sem("sem", 0);
            w.workload_mut().objects.sems[sem.index()].owes = true;
            let run = |us| Op::Run { work: Duration::micros(us) };
            let first = w.program("first", |p| {
                p.op(run(100)).op(Op::SemPost { sem });
                if first_sleeps {
                    p.op(Op::Sleep { span: Duration::millis(20) });
                }
                p.op(run(20_000));
            });
            let second = w.program("second", |p| {
                p.op(run(200)).op(Op::SemPost { sem }).op(run(20_000));
            });
            let waits = w.program("waits", |p| {
                for _ in 0..2 {
                    p.op(run(2_000)).op(Op::SemWait { sem });
                }
            });
            for (name, program, cpu) in [("first", first, 0), ("second", second, 1), ("waits", waits, 2)] {
                let cpus = Some(w.cpus(CpuList::new(vec![CpuId(cpu)]).unwrap()));
                w.task(TaskSpec { cpus, start_cpu: Some(CpuId(cpu)), ..TaskSpec::root(name, program) });
            }
            let workload = w.finish().unwrap();
            let (machine, kernel) = (Machine::preset("4").unwrap(), Kernel::parse("v6.12").unwrap());
            let mut woken = WokenOn::default();
            assert!(Simulation::new(&machine, &kernel, &workload).unwrap().run(&mut woken).is_ok());
            assert_eq!(woken.0, expected, "{first_sleeps}");
        }
    }

    /// How many wake-ups of the waiter found it still on its CPU.
    #[derive(Default)]
    struct HandedOver(u32);

    impl Sink for HandedOver {
        fn event(&mut self, event: &Event) {
            if let Kind::Placement(placement) = &event.kind {
                self.0 += u32::from(placement.reason == "ON_CPU_HANDOVER");
            }
        }

        fn wants_decisions(&self) -> bool {
            true
        }
    }

    #[test]
    fn what_is_owed_is_paid_when_the_waiter_is_off_its_cpu() {
        let mut w = WorkloadBuilder::new("test");
        let sem = w.sem("sem", 0);
        w.workload_mut().objects.sems[sem.index()].owes = true;
        let run = |us| Op::Run { work: Duration::micros(us) };
        let posts = w.program("posts", |p| {
            p.op(run(100)).op(Op::SemPost { sem }).op(Op::SemPost { sem }).op(run(20_000));
        });
        let waits = w.program("waits", |p| {
            p.op(run(1_000)).op(Op::SemWait { sem }).op(run(1_000)).op(Op::SemWait { sem });
        });
        for (name, program, cpu) in [("posts", posts, 0), ("waits", waits, 4)] {
            w.task(TaskSpec { start_cpu: Some(CpuId(cpu)), ..TaskSpec::root(name, program) });
        }
        let workload = w.finish().unwrap();
        let (machine, kernel) = (Machine::preset("2x1x4").unwrap(), Kernel::parse("v6.12").unwrap());
        let mut seen = HandedOver::default();
        assert!(Simulation::new(&machine, &kernel, &workload).unwrap().run(&mut seen).is_ok());
        assert_eq!(seen.0, 0);
    }
}
