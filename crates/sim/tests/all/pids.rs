//! Every task of a run has a pid of its own.

use std::collections::BTreeSet;

use schedlab_machine::Machine;
use schedlab_sched::Kernel;
use schedlab_sim::{Simulation, checker::Checkers};
use schedlab_trace::{Each, Event, Kind, Tee};
use schedlab_units::Duration;
use schedlab_workload::{TaskSpec, WorkloadBuilder};

#[test]
fn a_thousand_kernel_threads_share_no_pid_with_other_tasks() {
    let mut w = WorkloadBuilder::new("pids");
    let program = w.program("task", |p| _ = p.run(Duration::micros(20)));
    for number in 0..1_100 {
        w.task(TaskSpec { kthread: number >= 100, ..TaskSpec::root("task", program) });
    }
    let (machine, kernel) = (Machine::preset("8").unwrap(), Kernel::parse("v6.12").unwrap());
    let workload = w.finish().unwrap();
    let simulation = Simulation::new(&machine, &kernel, &workload).unwrap();
    let (mut born, mut again) = (BTreeSet::new(), Vec::new());
    let note = |event: &Event| {
        if let Kind::SchedWakeupNew { pid, .. } = event.kind
            && !born.insert(pid)
        {
            again.push(pid);
        }
    };
    let mut sink = Tee(Each(note), Checkers::new(Duration::secs(5)));
    let outcome = simulation.run_checked(1_000, &mut sink);
    drop(sink);
    assert!(outcome.is_ok(), "{}", outcome.end);
    assert_eq!((born.len(), again), (1_100, Vec::new()));
}
