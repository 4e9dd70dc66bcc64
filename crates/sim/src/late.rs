//! What other CPUs see late.
//!
//! A waker that has found an idle CPU still has to wait for the lock of its run queue and to queue the task, or to
//! write to the CPU's wake list. Another waker that comes to the same CPU before that finds it idle too:
//!
//! ```text
//!   one      search, CPU 5 is idle |-- lock of CPU 5 --| queued
//!   another         search, CPU 5 is idle |-- lock of CPU 5 --  | queued behind the first
//! ```
//!
//! The engine queues a task at the instant at which its waker begins. So it remembers how long the waker takes from its
//! choice on, and decisions that begin less than that before or after its own see the CPU as idle. How long the other
//! one searches is known only afterwards, so its search is assumed to be as long as the first.
//!
//! A pass of balancing that finds no CPU with two tasks says so when its statistics are complete: until then newly idle
//! CPUs look for work.
//!
//! Left out: a pass that finds such CPUs again overwrites what another has found meanwhile. Up to v6.1 a CPU clears its
//! flag of pending wake-ups before it takes its lock to queue them; here it is afterwards.
//!
//! Kernel: try_to_wake_up(), ttwu_queue(), kernel/sched/core.c; update_sd_lb_stats(), kernel/sched/fair.c, v6.12.

use schedlab_sched::Scheduler;
use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::engine::Engine;
use crate::event::Event;

/// A waker's way to a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    /// When it began to look for one, and when it had chosen, ns.
    pub began: u64,
    pub chose: u64,
}

/// An idle CPU that got its first task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late {
    cpu: CpuId,
    /// When its waker began to look for a CPU, and how long it took from the choice to the queue, ns.
    began: u64,
    took: u64,
    /// When others see it, ns.
    seen: u64,
}

impl<S: Scheduler> Engine<'_, S> {
    /// A CPU has queued a task elsewhere, or on a wake list, for the waker that is at work.
    #[inline]
    pub fn got_task(&mut self, by: CpuId, cpu: CpuId) {
        let Some(Chosen { began, chose }) = self.chose else { return };
        if by == cpu || !self.sched.has_first_task(cpu) || self.cpus[cpu].leaving.is_some() {
            return;
        }
        // Of several notices the first is the one that comes right after the task was queued.
        self.chose = None;
        let seen = self.comes_to_it(by);
        if seen > chose && self.late.iter().all(|late| late.cpu != cpu) {
            self.late.push(Late { cpu, began, took: seen - chose, seen });
        }
    }

    /// A waker that begins to look for a CPU at this time sees as idle what others have chosen but not filled yet.
    #[inline]
    pub fn hide_late(&mut self, at: u64) {
        if self.late.is_empty() {
            return;
        }
        let now = self.now.0;
        self.late.retain(|late| late.seen > now);
        for late in &self.late {
            if late.began.abs_diff(at) < late.took {
                self.sched.hide_queued(late.cpu, true);
            }
        }
    }

    /// Its choice is made.
    #[inline]
    pub fn show_late(&mut self) {
        for late in &self.late {
            self.sched.hide_queued(late.cpu, false);
        }
    }

    /// A CPU may have balanced, and before that newly idle CPUs looked for work or not. If it found that they need not,
    /// they learn it when its passes are over.
    #[inline]
    pub fn found_no_overload(&mut self, cpu: CpuId, before: bool) {
        if !before || self.sched.overload(cpu) {
            return;
        }
        let over = self.comes_to_it(cpu);
        if over > self.now.0 {
            self.sched.set_overload(cpu, true);
            self.queue.push(Time(over), Event::NoOverload { cpu });
        }
    }
}

#[cfg(test)]
mod tests {
    use schedlab_machine::{Machine, Without};
    use schedlab_sched::Kernel;
    use schedlab_topology::CpuId;
    use schedlab_trace::{Event, Kind, Sink};
    use schedlab_units::Duration;
    use schedlab_workload::{CpuList, Op, ProgramId, Start, TaskSpec, Workload, WorkloadBuilder};

    use crate::Simulation;

    const fn run(us: u64) -> Op {
        Op::Run { work: Duration::micros(us) }
    }

    fn bound(w: &mut WorkloadBuilder, cpu: u16, name: &str, program: ProgramId) -> TaskSpec {
        let cpus = Some(w.cpus(CpuList::new(vec![CpuId(cpu)]).unwrap()));
        TaskSpec { start_cpu: Some(CpuId(cpu)), cpus, ..TaskSpec::root(name, program) }
    }

    fn simulate(workload: &Workload, kernel: &str, without: &str, seen: &mut dyn Sink) {
        let machine = Machine::preset("1x1x4").unwrap().without(Without::parse(without).unwrap());
        let kernel = Kernel::parse(kernel).unwrap();
        assert!(Simulation::new(&machine, &kernel, workload).unwrap().run(seen).is_ok());
    }

    /// Where the sleepers were queued.
    #[derive(Default)]
    struct Queued(Vec<u16>);

    impl Sink for Queued {
        fn event(&mut self, event: &Event) {
            if let Kind::SchedWakeup { comm, target_cpu, .. } = event.kind
                && comm.as_bytes() == b"sleeps"
            {
                self.0.push(target_cpu.0);
            }
        }
    }

    /// Two wakers at work on CPUs 0 and 1, the second `later` us behind, wake two tasks that slept where a hog runs. Only
    /// CPU 2 is idle.
    fn queued(later: u64, without: &str) -> Vec<u16> {
        let mut w = WorkloadBuilder::new("test");
        let start = Start::At(Duration::millis(100));
        for (cpu, before) in [(0, 1_000), (1, 1_000 + later)] {
            let sem = w.sem(if cpu == 0 { "first" } else { "second" }, 0);
            let wakes = w.program(if cpu == 0 { "wakes" } else { "wakes too" }, |p| {
                p.op(run(before)).op(Op::SemPost { sem }).op(run(5_000));
            });
            let sleeps = w.program(if cpu == 0 { "sleeps" } else { "sleeps too" }, |p| {
                p.op(Op::SemWait { sem }).op(run(500));
            });
            let spec = bound(&mut w, cpu, "wakes", wakes);
            w.task(TaskSpec { start, ..spec });
            w.task(TaskSpec { start_cpu: Some(CpuId(3)), ..TaskSpec::root("sleeps", sleeps) });
        }
        let hog = w.program("hog", |p| {
            p.op(run(20_000));
        });
        let spec = bound(&mut w, 3, "hog", hog);
        w.task(TaskSpec { start, ..spec });
        let workload = w.finish().unwrap();
        let mut seen = Queued::default();
        simulate(&workload, "v6.12", without, &mut seen);
        seen.0
    }

    #[test]
    fn two_wakers_at_once_take_the_same_idle_cpu() {
        assert_eq!(queued(0, ""), [2, 2]);
        assert_eq!(queued(3, "")[0], 2);
        assert_ne!(queued(3, "")[1], 2, "the first is queued by then");
        assert_ne!(queued(0, "cache-lines,kernel-costs"), [2, 2], "nothing takes time");
    }

    /// How often CPUs 0 and 1 looked for work when they had none left.
    #[derive(Default)]
    struct Looked([u32; 2]);

    impl Sink for Looked {
        fn event(&mut self, event: &Event) {
            if let Kind::Newidle(newidle) = &event.kind
                && newidle.dst_cpu.index() < 2
                && newidle.reason != "NI_NO_OVERLOAD"
            {
                self.0[newidle.dst_cpu.index()] += 1;
            }
        }

        fn wants_decisions(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_cpu_that_goes_idle_during_a_pass_looks_for_work_as_well() {
        let looked = |later: u64| {
            let mut w = WorkloadBuilder::new("test");
            let sleep = |us| Op::Sleep { span: Duration::micros(us) };
            for (name, cpu, ops) in [
                ("one", 0, vec![run(20), sleep(170)]),
                ("two", 1, vec![run(20 + later), sleep(170 - later)]),
                ("hog", 3, vec![run(1_000)]),
                ("another", 3, vec![run(10), sleep(60)]),
            ] {
                let program = w.program(name, |p| {
                    p.forever(|p| ops.iter().for_each(|&op| _ = p.op(op)));
                });
                let spec = bound(&mut w, cpu, name, program);
                w.task(spec);
            }
            w.stop_after(Duration::millis(100));
            let workload = w.finish().unwrap();
            let mut seen = Looked::default();
            simulate(&workload, "v5.18", "", &mut seen);
            seen.0
        };
        let [first, second] = looked(0);
        assert!(second > 100 && second * 10 > first * 8, "{first} {second}");
        let [first, second] = looked(10);
        assert!(second * 2 < first, "its pass is over: {first} {second}");
    }
}
