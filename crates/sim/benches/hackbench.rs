//! hackbench with 60 groups over pipes on 256 CPUs, no trace kept.
//!
//! Prints context switches per second of this host's CPU time, memory, and a hash of
//! what was counted. With `--test` the input is tiny.

mod common;

use schedlab_machine::Machine;
use schedlab_units::Duration;
use schedlab_workload::models::Hackbench;
use schedlab_workload::models::hackbench::Transport;

fn main() {
    let tiny = common::is_tiny();
    let (machine, groups, loops) = if tiny { ("2x2x4", 2, 2) } else { ("zen3-2s", 60, 100) };
    let machine = Machine::preset(machine).expect("a preset");
    let bench = Hackbench { groups, loops, transport: Transport::Pipe, ..Hackbench::default() };
    let workload = bench.workload().expect("the workload is sound");
    println!("hackbench -pipe {groups} process {loops}");
    for kernel in ["v5.18", "v6.12"] {
        common::measure(kernel, &machine, kernel, &workload, Duration::secs(100));
    }
}
