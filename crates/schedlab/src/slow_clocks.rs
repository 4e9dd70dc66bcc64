//! Periodic mechanisms of the scheduler whose period is longer than a run.
//!
//! State that changes once per second stays as it began in a run of 60 ms, so its effects are not seen. Averages
//! need eleven half-lives of 32 ms; each domain is balanced in its own interval, which busy CPUs stretch by
//! BUSY_FACTOR; passes of the LLC's domain set the limit of searches; pages follow their tasks once per second.

use schedlab_machine::Mechanism;
use schedlab_report::fitting_time;
use schedlab_sched::{Domains, Feature, Kernel};
use schedlab_sim::PAGES_FOLLOW;
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
    let (topology, workload) = (&machine.topology, &row.workload);
    let domains = Domains::build(topology, kernel, &topology.in_domains());
    let averages =
        if workload.groups.is_empty() { "averages of load" } else { "averages of load, shares of groups" };
    let mut clocks = vec![SlowClock { name: averages.to_string(), period: AVERAGES }];
    let scans = machine.bandwidth.page_scan_mbps.get() > 0 && machine.has(Mechanism::Bandwidth);
    if topology.nodes().len() > 1 && !workload.objects.regions.is_empty() && scans {
        clocks.push(SlowClock { name: "pages that follow their tasks".to_string(), period: PAGES_FOLLOW });
    }
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

/// A line about the row with the shortest runs: how long they take, whether they waited until figures had settled, and
/// what is slower. `None` if they did not wait and nothing is slower.
pub fn note(experiment: &Experiment, results: &Results) -> Option<String> {
    let base = &experiment.columns[0];
    let longest = |runs: &[Run]| runs.iter().map(|run| run.simulated).max();
    let rows =
        experiment.keys.iter().zip(&results.runs).filter_map(|(key, of)| Some((base.row(key)?, &of[0])));
    let (row, runs) = rows.filter(|(_, runs)| !runs.is_empty()).min_by_key(|(_, runs)| longest(runs))?;
    let slower = slow_clocks(&base.scenario, row, runs);
    let of = if row.key.is_empty() { String::new() } else { format!(" of row {}", row.key) };
    let names: Vec<String> =
        slower.iter().map(|clock| format!("{} ({})", clock.name, clock.period)).collect();
    let names = names.join(", ");
    let took = told(longest(runs)?);
    let settled: Option<Vec<_>> = runs
        .iter()
        .map(|run| run.settled.filter(|settled| settled.stands).map(|settled| settled.after))
        .collect();
    match settled.and_then(|after| after.into_iter().max()) {
        Some(after) if slower.is_empty() => {
            Some(format!("runs{of} take {took}; their figures stand still after {}", told(after)))
        }
        Some(after) => Some(format!(
            "runs{of} take {took}; their figures stand still after {}, but slower clocks have not completed a period: {names}",
            told(after)
        )),
        None if slower.is_empty() => None,
        None => Some(format!(
            "runs{of} take {took}; slower clocks have not completed a period: {names}; warmup = \"auto\" continues until figures \
             stand still, if the workload has a duration or a window"
        )),
    }
}

/// `5.7 ms`
fn told(span: Duration) -> String {
    let (unit, size) = fitting_time(span.0 as f64);
    format!("{:.1} {unit}", span.0 as f64 / size)
}

/// The mechanisms that do not complete a period in the longest run of a row, warm-up included.
pub fn slow_clocks(scenario: &Scenario, row: &Row, runs: &[Run]) -> Vec<SlowClock> {
    let Ok(kernel) = scenario.kernel_of(&scenario.kernels[0], row) else { return Vec::new() };
    let Some(longest) = runs.iter().map(|run| run.simulated).max() else { return Vec::new() };
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

    fn noted(text: &str) -> String {
        let scenario = Scenario::parse("f", text, &NoFiles).unwrap();
        let experiment = Experiment::of(&scenario);
        let mut results = experiment.nothing();
        experiment.extend(&mut results, 1, 1, false, || true, |_, _| ()).unwrap();
        note(&experiment, &results).unwrap_or_default()
    }

    #[test]
    fn a_settled_run_says_after_how_long_and_what_is_slower_still() {
        let of = |warmup: &str| {
            noted(&format!(
                "machine = \"2x4\"\nkernels = [\"v6.12\"]\n{warmup}[workload]\nduration = \"30ms\"\n[[workload.task]]\n\
                 name = \"w\"\ncount = 3\nprogram = [\"loop forever\", \"run 50us\", \"sleep 200us\", \"end\"]\n"
            ))
        };
        let (settled, not) = (of("warmup = \"auto\"\n"), of(""));
        assert!(
            settled.contains("; their figures stand still after ")
                && settled.ends_with("averages of load (353ms)")
                && !settled.contains("warmup"),
            "{settled}"
        );
        assert!(
            not.starts_with("runs take 30.0 ms; slower clocks") && not.contains("warmup = \"auto\""),
            "{not}"
        );
    }

    #[test]
    fn groups_and_pages_have_slow_clocks_of_their_own() {
        let text = "machine = \"2x4\"\nkernels = [\"v6.12\"]\n[workload]\n[workload.region]\nr = \"1M\"\n[workload.group]\n\
                    \"/g\" = { weight = 200 }\n[[workload.task]]\nname = \"w\"\ngroup = \"/g\"\n\
                    program = [\"touch r 4096\", \"access r sequential read=4096\"]\n";
        let one_node = text.replace("2x4", "8");
        assert!(
            noted(text).contains("shares of groups (353ms), pages that follow their tasks (1s)"),
            "{}",
            noted(text)
        );
        assert!(!noted(&one_node).contains("pages"), "{}", noted(&one_node));
    }
}
