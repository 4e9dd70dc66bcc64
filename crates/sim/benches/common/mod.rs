//! Measuring a run: CPU time of this process, switches, and a hash of the counts.

use schedlab_machine::Machine;
use schedlab_sched::Kernel;
use schedlab_sim::{Outcome, Simulation};
use schedlab_trace::NullSink;
use schedlab_units::Duration;
use schedlab_workload::Workload;

/// Whether to use tiny input: with `--test`, or when built without optimisation.
pub fn is_tiny() -> bool {
    std::env::args().any(|arg| arg == "--test") || cfg!(debug_assertions)
}

/// Runs a workload and prints a line about it.
pub fn measure(
    name: &str,
    machine: &Machine,
    kernel: &str,
    workload: &Workload,
    simulated: Duration,
) -> Outcome {
    let kernel = Kernel::parse(kernel).expect("a kernel");
    let simulation =
        Simulation::new(machine, &kernel, workload).expect("it fits the machine").limit(simulated);
    let begin = cpu_seconds();
    let outcome = simulation.run(&mut NullSink);
    let spent = cpu_seconds() - begin;
    let counts = outcome.counts;
    println!(
        "{name}: {:>6.2} M dispatches/s, {:>6.2} M switches/s, {:>6.2} M events/s, {:>9} switches in {:>8.3} s, {:>5} MB, hash {:016x}",
        counts.dispatches as f64 / spent / 1e6,
        counts.switches as f64 / spent / 1e6,
        counts.events as f64 / spent / 1e6,
        counts.switches,
        spent,
        peak_mb(),
        hash(&outcome),
    );
    outcome
}

/// CPU time of this thread so far, as the system counts it: other programs do not affect it.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Peak memory of this process so far, MB; 0 if the system does not report it.
pub fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).map_or(0, |kb| kb / 1024)
}

/// FNV-1a over the counters of a run.
fn hash(outcome: &Outcome) -> u64 {
    let c = &outcome.counts;
    let numbers =
        [c.events, c.switches, c.voluntary, c.wakeups, c.forks, c.exits, c.migrations, c.ipis, c.ticks];
    numbers
        .iter()
        .chain(&c.by_cause)
        .chain([&outcome.elapsed().0])
        .flat_map(|n| n.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}
