//! Two tasks per CPU that run 500 us and sleep 500 us, on 4 to 1024 CPUs, no trace kept.
//!
//! Prints dispatches (switches to a task) and context switches (those to idle too) per second of this host's CPU
//! time, and a hash of what was counted. With `--test` (as `cargo test` runs it) the input is tiny.

mod common;

use schedlab_machine::Machine;
use schedlab_units::Duration;
use schedlab_workload::{TaskSpec, Workload, WorkloadBuilder};

fn load(cpus: usize) -> Workload {
    let mut w = WorkloadBuilder::new("run and sleep");
    let span = Duration::micros(500);
    let program = w.program("run and sleep", |p| _ = p.forever(|p| _ = p.run(span).sleep(span)));
    for i in 0..2 * cpus {
        w.task(TaskSpec::root(format!("task{i}"), program));
    }
    w.finish().expect("the workload is sound")
}

fn main() {
    let tiny = common::is_tiny();
    // With a number of CPUs as argument only that machine is measured.
    let only = std::env::args().skip(1).find_map(|arg| arg.parse::<usize>().ok());
    println!("run and sleep, 2 tasks per CPU, 500 us each way");
    for (cpus, machine) in [(4, "4"), (64, "2x4x8"), (256, "2x16x8"), (1024, "4x32x8")] {
        if tiny && cpus > 64 || only.is_some_and(|only| only != cpus) {
            continue;
        }
        let machine = Machine::preset(machine).expect("a regular machine");
        let workload = load(cpus);
        for kernel in ["v5.18", "v6.12"] {
            let simulated = Duration::millis(if tiny { 20 } else { (100_000 / cpus as u64).max(500) });
            common::measure(&format!("{cpus:>5} CPUs {kernel:>6}"), &machine, kernel, &workload, simulated);
        }
    }
}
