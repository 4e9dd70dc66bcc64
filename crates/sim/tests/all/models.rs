//! Every benchmark model on every kernel, for a short time: the invariants of the state hold, every checker
//! stays quiet, and the run ends as it should.

use schedlab_machine::Machine;
use schedlab_sched::{Kernel, PRESETS};
use schedlab_sim::checker::Checkers;
use schedlab_sim::{Outcome, Simulation};
use schedlab_units::Duration;
use schedlab_workload::Workload;
use schedlab_workload::models::Model;

fn run(machine: &str, kernel: &str, workload: &Workload, ms: u64) -> Outcome {
    let machine = Machine::preset(machine).unwrap();
    let kernel = Kernel::parse(kernel).unwrap();
    let mut checkers = Checkers::new(Duration::secs(1));
    let simulation = Simulation::new(&machine, &kernel, workload).unwrap().limit(Duration::millis(ms));
    let outcome = simulation.run_checked(400, &mut checkers);
    checkers.assert_quiet(outcome.time);
    outcome
}

fn on_every_kernel(machine: &str, ms: u64) {
    for name in Model::NAMES {
        let workload = Model::named(name).unwrap().workload().unwrap();
        for kernel in PRESETS {
            println!("{name} on {machine} under {kernel}");
            let outcome = run(machine, kernel, &workload, ms);
            assert!(outcome.is_ok(), "{name} on {machine} under {kernel}: {}", outcome.end);
            assert!(outcome.counts.switches > 0, "{name} ran");
        }
    }
}

#[test]
fn on_two_nodes_of_two_llcs() {
    on_every_kernel("2x2x4", 40);
}

#[test]
fn on_cores_of_two_threads() {
    on_every_kernel("2x2x2x2", 40);
}

#[test]
fn on_one_cpu() {
    on_every_kernel("1", 40);
}
