//! Periodic mechanisms of the scheduler whose period is longer than a run.
//!
//! State that changes once per second stays as it began in a run of 60 ms, so its effects are not seen. Averages
//! need eleven half-lives of 32 ms; each domain is balanced in its own interval, which busy CPUs stretch by
//! BUSY_FACTOR; passes of the LLC's domain set the limit of searches; pages follow their tasks once per second.

use schedlab_report::fitting_time;
use schedlab_sched::{Domains, Feature, Kernel};
use schedlab_units::Duration;

use crate::columns::Experiment;
use crate::experiment::{Results, Run};
use crate::scenario::{Row, Scenario};

/// Until load averages have forgotten their initial value: LOAD_AVG_MAX_N, 345, periods of 1024 us.
const AVERAGES: Duration = Duration::millis(353);

/// A periodic mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowClock {
    /// What it does.
    pub name: String,
    /// Its period.
    pub period: Duration,
}

/// The mechanisms of a row, slowest last.
fn clocks(scenario: &Scenario, kernel: &Kernel, row: &Row) -> Vec<SlowClock> {
    let machine = scenario.machine_of(row);
    let topology = &machine.topology;
    let domains = Domains::build(topology, kernel, &topology.in_domains());
    let mut clocks = vec![SlowClock { name: "averages of load".to_string(), period: AVERAGES }];
    let Some(cpu) = topology.online().first() else { return clocks };
    let llc = domains.per_cpu[cpu].llc;
    for (id, sd) in domains.walk(cpu) {
        let ms = sd.min_interval * u64::from(sd.busy_factor);
        let limit =
            if llc == Some(id) && kernel.has(Feature::SisUtil) { ", with the limit of searches" } else { "" };
        let name = format!("balancing of busy CPUs in {}{limit}", sd.name);
        clocks.push(SlowClock { name, period: Duration::millis(ms) });
    }
    clocks.sort_by_key(|clock| clock.period);
    clocks
}

/// A line about the row with the shortest runs: how long they take, and what is slower. `None` if nothing is.
pub fn note(experiment: &Experiment, results: &Results) -> Option<String> {
    let base = &experiment.columns[0];
    let longest = |runs: &[Run]| runs.iter().map(|run| run.elapsed).max();
    let rows =
        experiment.keys.iter().zip(&results.runs).filter_map(|(key, of)| Some((base.row(key)?, &of[0])));
    let (row, runs) = rows.filter(|(_, runs)| !runs.is_empty()).min_by_key(|(_, runs)| longest(runs))?;
    let slower = slow_clocks(&base.scenario, row, runs);
    if slower.is_empty() {
        return None;
    }
    let of = if row.key.is_empty() { String::new() } else { format!(" of row {}", row.key) };
    let took = longest(runs)?.0 as f64;
    let (unit, size) = fitting_time(took);
    let names: Vec<String> =
        slower.iter().map(|clock| format!("{} ({})", clock.name, clock.period)).collect();
    Some(format!(
        "runs{of} take {:.1} {unit}; slower clocks have not completed a period: {}; warmup = \"auto\" continues until figures stand still, \
         if the workload has a duration or a window",
        took / size,
        names.join(", ")
    ))
}

/// The mechanisms that do not complete a period in the longest run of a row; empty if runs continued until figures had
/// settled.
pub fn slow_clocks(scenario: &Scenario, row: &Row, runs: &[Run]) -> Vec<SlowClock> {
    let Ok(kernel) = scenario.kernel_of(&scenario.kernels[0], row) else { return Vec::new() };
    let Some(longest) = runs.iter().map(|run| run.elapsed).max() else { return Vec::new() };
    if runs.iter().all(|run| run.settled.is_some_and(|settled| settled.stands)) {
        return Vec::new();
    }
    clocks(scenario, &kernel, row).into_iter().filter(|clock| clock.period > longest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::NoFiles;

    #[test]
    fn a_short_run_lists_what_is_slower_and_a_long_one_nothing() {
        let told = |limit: &str| {
            let text = format!(
                "machine = \"2x4\"\nkernels = [\"v6.12\"]\nlimit = \"{limit}\"\n[workload]\nduration = \"{limit}\"\n\
                 [[workload.task]]\nname = \"w\"\nprogram = [\"loop forever\", \"run 5ms\", \"end\"]\n"
            );
            let scenario = Scenario::parse("f", &text, &NoFiles).unwrap();
            let experiment = Experiment::of(&scenario);
            let mut results = experiment.nothing();
            experiment.extend(&mut results, 1, 1, false, || true, |_, _| ()).unwrap();
            let found = slow_clocks(&scenario, &scenario.rows[0], &results.runs[0][0]);
            found.iter().map(|clock| format!("{} {}", clock.name, clock.period)).collect::<Vec<_>>()
        };
        assert_eq!(
            told("50ms"),
            [
                "balancing of busy CPUs in MC, with the limit of searches 64ms",
                "balancing of busy CPUs in NUMA 128ms",
                "averages of load 353ms"
            ]
        );
        assert_eq!(told("400ms"), Vec::<String>::new());
    }
}
