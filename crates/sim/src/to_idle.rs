//! The way to idle: a CPU whose last task sleeps looks for work elsewhere, and only then switches to its idle task.
//!
//! ```text
//!   the task sleeps |-- passes of balancing --| switch to idle | idle loop
//!                            ^ a wake-up: no pass begins after the one under way
//! ```
//!
//! Until the switch the sleeping task is the CPU's current one, so searches do not take the CPU for idle. If a task
//! was queued on it meanwhile, the CPU switches to that and not to idle. Tasks on its wake list are queued after the
//! switch: interrupts are off until then.
//!
//! Left out: tasks that a pass pulls are moved, and switched to, when the pass begins; its time passes
//! afterwards.
//!
//! Kernel: __schedule(), kernel/sched/core.c; sched_balance_newidle(), kernel/sched/fair.c, v6.12.

use schedlab_machine::Work;
use schedlab_sched::{Curr, Deactivate, Scheduler, Switched};
use schedlab_topology::CpuId;
use schedlab_trace::TaskState as Shown;
use schedlab_units::{Duration, TaskId, Time};

use crate::engine::Engine;

/// The task that a CPU still has to switch away from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    pub task: TaskId,
    /// In which state it sleeps.
    pub state: Shown,
    /// The switch to idle, as the scheduler made it.
    switched: Switched,
}

impl<S: Scheduler> Engine<'_, S> {
    /// A CPU has chosen its idle task: it switches to it now, or after its newly idle balance passes.
    pub fn turns_to_idle(&mut self, cpu: CpuId, switched: &Switched, how: Deactivate) {
        let passes_last = self.cpus[cpu].passes.last_beyond(self.now);
        match switched.prev {
            Curr::Task(task) if self.lingers && passes_last && switched.voluntary && !switched.delayed => {
                let state = self.shown_state(switched, how);
                self.looks_for_work(cpu, Leaving { task, state, switched: *switched });
            }
            _ => self.switch(cpu, switched, how),
        }
    }

    fn looks_for_work(&mut self, cpu: CpuId, leaving: Leaving) {
        self.leaves(cpu, leaving.task, &leaving.switched);
        let entry = &mut self.cpus[cpu];
        let left = entry.overhead_ns();
        entry.account.path_ends(left);
        entry.overhead = Work::NONE;
        entry.idle_since = self.now + Duration(left);
        entry.awake_at = None;
        entry.leaving = Some(leaving);
        self.arm(cpu, self.now + Duration(left));
        self.turn_changes(cpu);
    }

    /// A CPU without a task continues: if it was on its way to idle and has looked everywhere, it switches.
    pub fn has_looked(&mut self, cpu: CpuId) {
        if self.cpus[cpu].leaving.is_none() {
            return;
        }
        if self.cpus[cpu].idle_since > self.now {
            self.arm(cpu, self.cpus[cpu].idle_since);
        } else if self.sched.nr_running(cpu) > 0 {
            self.reschedule(cpu, Deactivate::Yielded);
            self.go_on(cpu);
        } else {
            self.arrives_at_idle(cpu);
        }
    }

    /// A CPU on its way to idle switches to its idle task, whether or not it has searched everywhere.
    pub fn arrives_at_idle(&mut self, cpu: CpuId) {
        let Some(leaving) = self.cpus[cpu].leaving else { return };
        let (until, awake_at) = (self.cpus[cpu].idle_since, self.cpus[cpu].awake_at);
        self.switch(cpu, &leaving.switched, Deactivate::Yielded);
        let entry = &mut self.cpus[cpu];
        entry.idle_since = until.max(self.now);
        if awake_at.is_some_and(|at| at <= self.now) {
            // An interrupt was waiting for the switch.
            self.stay_awake(cpu);
        }
    }

    /// A wake-up that takes effect in `by` ns ends the passes of a CPU on its way to idle.
    pub fn passes_end(&mut self, cpu: CpuId, by: Duration) {
        let entry = &mut self.cpus[cpu];
        let left_out = entry.passes.cut(self.now + by);
        entry.idle_since = Time(entry.idle_since.0 - left_out.0);
        entry.account.left_out(crate::account::Part::Pass, left_out.0);
        if entry.leaving.is_some() {
            let at = entry.idle_since;
            self.arm(cpu, at);
        }
    }

    /// Whether a CPU still has to switch away from a task.
    pub fn is_leaving(&self, cpu: CpuId, task: TaskId) -> bool {
        self.cpus[cpu].leaving.is_some_and(|leaving| leaving.task == task)
    }
}

#[cfg(test)]
mod tests {
    use schedlab_machine::{Machine, Without};
    use schedlab_sched::Kernel;
    use schedlab_topology::CpuId;
    use schedlab_trace::{Event, Kind, Sink};
    use schedlab_units::{Duration, Pid, Time};
    use schedlab_workload::{CpuList, Op, TaskSpec, Workload, WorkloadBuilder};

    use crate::Simulation;

    /// What followed when CPU 0 had no task left and found none elsewhere.
    #[derive(Default)]
    struct Seen {
        /// When it began to look. The duration differs from the cost used in decisions, which is based on what each CPU
        /// took the last time.
        began: Option<Time>,
        /// Switches to idle, and those of them that came too early.
        to_idle: u32,
        early: u32,
        /// Switches to another task in place of that.
        to_another: u32,
    }

    impl Sink for Seen {
        fn event(&mut self, event: &Event) {
            match &event.kind {
                Kind::Newidle(newidle) if newidle.dst_cpu == CpuId(0) && newidle.pulled == 0 => {
                    let cost =
                        newidle.numbers.iter().find(|(name, _)| *name == "cost").map_or(0, |(_, ns)| *ns);
                    self.began = (cost > 0).then_some(event.time);
                }
                Kind::SchedSwitch { next_pid, .. } if event.cpu == CpuId(0) => {
                    let Some(began) = self.began.take() else { return };
                    if *next_pid == Pid::IDLE {
                        self.to_idle += 1;
                        self.early += u32::from(event.time < began + Duration(500));
                    } else {
                        self.to_another += 1;
                    }
                }
                _ => {}
            }
        }

        fn wants_decisions(&self) -> bool {
            true
        }
    }

    /// A sleeper on CPU 0, two tasks bound to CPU 1, and one on CPU 2 that wakes a task of CPU 0, or none.
    fn workload(wakes: bool) -> Workload {
        let mut w = WorkloadBuilder::new("test");
        let sem = w.sem("sem", 0);
        let run = |us| Op::Run { work: Duration::micros(us) };
        let forever = |w: &mut WorkloadBuilder, name: &str, cpu, ops: &[Op]| {
            let program = w.program(name, |p| {
                p.forever(|p| ops.iter().for_each(|&op| _ = p.op(op)));
            });
            let cpus = Some(w.cpus(CpuList::new(vec![CpuId(cpu)]).unwrap()));
            w.task(TaskSpec { start_cpu: Some(CpuId(cpu)), cpus, ..TaskSpec::root(name, program) });
        };
        forever(&mut w, "sleeps", 0, &[run(20), Op::Sleep { span: Duration::micros(170) }]);
        forever(&mut w, "hog", 1, &[run(1_000)]);
        // Each time it wakes, CPUs notice again that some have more than one task.
        forever(&mut w, "another", 1, &[run(10), Op::Sleep { span: Duration::micros(60) }]);
        if wakes {
            forever(&mut w, "waits", 0, &[Op::SemWait { sem }, run(2)]);
            forever(&mut w, "wakes", 2, &[run(67), Op::SemPost { sem }]);
        }
        w.stop_after(Duration::millis(200));
        w.finish().unwrap()
    }

    /// What CPU 0 does there.
    fn seen(kernel: &str, wakes: bool) -> Seen {
        let workload = workload(wakes);
        let (machine, kernel) = (Machine::preset("1x1x16").unwrap(), Kernel::parse(kernel).unwrap());
        let mut seen = Seen::default();
        assert!(Simulation::new(&machine, &kernel, &workload).unwrap().run(&mut seen).is_ok());
        seen
    }

    #[test]
    fn a_cpu_switches_to_idle_when_it_has_looked_everywhere() {
        for kernel in ["v5.18", "v6.12+NO_NI_RANDOM"] {
            let seen = seen(kernel, false);
            assert!(seen.to_idle > 20 && seen.to_another == 0, "{kernel}");
            assert_eq!(seen.early, 0, "{kernel}");
        }
    }

    /// The longest time that the scheduler measured for its passes, ns.
    #[derive(Default)]
    struct Measured(i64);

    impl Sink for Measured {
        fn event(&mut self, event: &Event) {
            if let Kind::Newidle(newidle) = &event.kind {
                let cost = newidle.numbers.iter().find(|(name, _)| *name == "cost");
                self.0 = self.0.max(cost.map_or(0, |(_, ns)| *ns));
            }
        }

        fn wants_decisions(&self) -> bool {
            true
        }
    }

    #[test]
    fn where_searching_costs_nothing_passes_take_no_time_from_the_first_on() {
        let workload = workload(false);
        let longest = |without: &str| {
            let machine = Machine::preset("1x1x16").unwrap().without(Without::parse(without).unwrap());
            let mut measured = Measured::default();
            let kernel = Kernel::parse("v6.12").unwrap();
            assert!(Simulation::new(&machine, &kernel, &workload).unwrap().run(&mut measured).is_ok());
            measured.0
        };
        assert_eq!(longest("search-costs"), 0);
        assert!(longest("smt") > 0);
    }

    #[test]
    fn a_task_that_is_queued_there_meanwhile_runs_at_once_but_one_on_the_wake_list_after_idle() {
        // Since v5.19 a task that is woken for a CPU without tasks goes through its wake list.
        assert!(seen("v5.18", true).to_another > 5);
        assert_eq!(seen("v6.12+NO_NI_RANDOM", true).to_another, 0);
    }
}
