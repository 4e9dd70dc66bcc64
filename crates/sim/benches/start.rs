//! 100,000 tasks on 1024 CPUs: how long it takes until all have started, and how much
//! memory. With `--test` the input is tiny.

mod common;

use schedlab_machine::Machine;
use schedlab_units::Duration;
use schedlab_workload::{TaskSpec, WorkloadBuilder};

fn main() {
    let (machine, tasks) = if common::is_tiny() { ("2x2x4", 100) } else { ("4x32x8", 100_000) };
    let machine = Machine::preset(machine).expect("a regular machine");
    let mut w = WorkloadBuilder::new("start");
    let program = w.program("sleep", |p| _ = p.sleep(Duration::secs(10)));
    for i in 0..tasks {
        w.task(TaskSpec::root(format!("task{i}"), program));
    }
    let workload = w.finish().expect("the workload is sound");
    println!("{tasks} tasks on {} CPUs start and go to sleep", machine.topology.nr_cpus());
    common::measure("v6.12", &machine, "v6.12", &workload, Duration::secs(1));
}
