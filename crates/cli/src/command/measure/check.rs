//! `schedlab measure --check mine.toml`: two benchmarks of perf, run on this host and predicted from its measured file.
//!
//! Nothing is fitted to them. Measured and predicted times are printed side by side, with their ratio.

use std::process::Command;

use schedlab::machine::Machine;
use schedlab::sched::Kernel;

use super::{probe, simulated};
use crate::error::Error;
use crate::output;

/// Number of runs of each benchmark; the median is reported.
const RUNS: usize = 5;

/// Turns of `perf bench sched pipe`.
const TURNS: u32 = 200_000;

/// Number of turns simulated; all turns are alike.
const SIMULATED: u32 = 4_000;

/// Groups of `perf bench sched messaging`, and messages from each sender to each receiver.
const GROUPS: u32 = 4;
const LOOPS: u32 = 100;

/// One benchmark: how perf is called, and what is simulated for it.
struct Bench {
    name: &'static str,
    arguments: Vec<String>,
    scenario: String,
    measure: &'static str,
    /// Factor from simulated seconds to those of the benchmark.
    times: f64,
    /// Whether all its tasks are bound to one CPU.
    on_one_cpu: bool,
}

fn benches(kernel: &Kernel) -> Vec<Bench> {
    let head = format!("machine = \"1\"\nkernels = [\"{}\"]\nlimit = \"600s\"\n[workload]\n", kernel.name);
    let words = |text: String| text.split(' ').map(str::to_string).collect();
    let messaging = |name, kind: &str, flag: &str| Bench {
        name,
        arguments: words(format!("bench sched messaging -g {GROUPS} -l {LOOPS}{flag}")),
        scenario: format!(
            "{head}model = \"hackbench\"\ngroups = {GROUPS}\nloops = {LOOPS}\ntransport = \"socket\"\nkind = \"{kind}\"\n"
        ),
        measure: "time",
        times: 1.0,
        on_one_cpu: false,
    };
    let turn = |ops: [&str; 2], mark: &str| {
        format!("program = [\"loop {SIMULATED}\", \"{}\", \"{}\", {mark}\"end\"]\n", ops[0], ops[1])
    };
    let pipe = |name, on_one_cpu: bool| {
        let bound = if on_one_cpu { "cpus = \"0\"\nstart_cpu = 0\n" } else { "" };
        Bench {
            name,
            arguments: words(format!("bench sched pipe -l {TURNS}")),
            scenario: format!(
                "{head}[[workload.task]]\nname = \"sched-pipe\"\n{bound}{}[[workload.task]]\nname = \"sched-pipe2\"\n{bound}{}\
                 [[workload.measure]]\nname = \"time\"\nrule = \"elapsed\"\nfrom = \"turn\"\nto = \"turn\"\n",
                turn(["write a 4", "read b 4"], "\"mark turn 1\", "),
                turn(["read a 4", "write b 4"], ""),
            ),
            measure: "time",
            times: f64::from(TURNS) / f64::from(SIMULATED - 1),
            on_one_cpu,
        }
    };
    vec![
        pipe("sched pipe, one CPU", true),
        pipe("sched pipe", false),
        messaging("sched messaging", "process", ""),
        messaging("sched messaging -t", "thread", " -t"),
    ]
}

/// Seconds that perf says a benchmark took: `Total time: 1.234 [sec]`.
fn seconds_of(text: &str) -> Option<f64> {
    let rest = text.split_once("Total time:")?.1;
    rest.split_whitespace().next()?.parse().ok()
}

/// Prints measured times beside predicted ones.
pub fn run(machine: &Machine, kernel: &Kernel) -> Result<(), Error> {
    let mut lines = vec![format!(
        "{:<24}{:>12}{:>22}{:>14}{:>9}",
        "perf bench", "this host, s", "least to most", "predicted, s", "ratio"
    )];
    for bench in benches(kernel) {
        let place = if bench.on_one_cpu { " on one CPU" } else { "" };
        say!("perf {}{place}, {RUNS} times", bench.arguments.join(" "));
        let mut seconds = Vec::new();
        for _ in 0..RUNS {
            let start = || Command::new("perf").args(&bench.arguments).output();
            let started = if bench.on_one_cpu { on_first_cpu(start)? } else { start() };
            let done = started.map_err(|e| {
                Error::new(format!(
                    "perf cannot be run: {e}; it comes with the package linux-perf or linux-tools of a distribution"
                ))
            })?;
            let text = String::from_utf8_lossy(&done.stdout).into_owned();
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            let found = seconds_of(&text).or_else(|| seconds_of(&said));
            seconds.push(found.ok_or_else(|| {
                Error::new(format!(
                    "perf {} says no \"Total time\": {}",
                    bench.arguments.join(" "),
                    said.trim()
                ))
            })?);
        }
        seconds.sort_by(f64::total_cmp);
        let here = seconds[RUNS / 2];
        let predicted = bench.times * simulated::measured(&bench.scenario, machine, bench.measure)?;
        lines.push(format!(
            "{:<24}{here:>12.4}{:>22}{predicted:>14.4}{:>9.2}",
            bench.name,
            format!("{:.4} to {:.4}", seconds[0], seconds[RUNS - 1]),
            predicted / here
        ));
    }
    output::print(|out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
    if super::is_virtual() {
        say!(
            "note: in a virtual machine an idle CPU can count as preempted (vcpu_is_preempted()); then both tasks of `sched pipe` stay \
             on one CPU. The prediction does not know this: compare such a time with the first line."
        );
    }
    Ok(())
}

/// Starts a program on the first CPU that this process may use. Its children inherit that.
fn on_first_cpu<T: Send>(start: impl FnOnce() -> T + Send) -> Result<T, Error> {
    let cpu = probe::allowed().map_err(Error::new)?[0];
    probe::on(cpu, start).map_err(Error::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_found_in_what_perf_prints() {
        let text = "# Running 'sched/pipe' benchmark:\n# Executed 1000 pipe operations\n\n     Total time: 0.012 [sec]\n";
        assert_eq!(seconds_of(text), Some(0.012));
        assert_eq!(seconds_of("usage"), None);
    }

    #[test]
    fn each_benchmark_can_be_simulated() {
        let machine = Machine::preset("2").unwrap();
        for bench in benches(&Kernel::parse("v6.12").unwrap()) {
            let seconds =
                bench.times * simulated::measured(&bench.scenario, &machine, bench.measure).unwrap();
            assert!(seconds > 0.01 && seconds < 10.0, "{}: {seconds}", bench.name);
        }
    }
}
