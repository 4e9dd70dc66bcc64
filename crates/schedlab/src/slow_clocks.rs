//! What a comparison says about slow mechanisms of the scheduler that its runs were too short for.

use schedlab_sim::{Settled, SlowClock};
use schedlab_units::Duration;

use schedlab_report::fitting_time;

use crate::columns::Experiment;
use crate::experiment::{Results, Run};
use crate::halves::differences;

/// A line about the row with the shortest runs: how long they take, whether they waited until figures had settled, and
/// what is slower. `None` if they did not wait and nothing is slower.
pub fn note(experiment: &Experiment, results: &Results) -> Option<String> {
    let base = &experiment.columns[0];
    let longest = |runs: &[Run]| runs.iter().map(|run| run.simulated).max();
    let rows =
        experiment.keys.iter().zip(&results.runs).filter_map(|(key, of)| Some((base.row(key)?, &of[0])));
    let (row, runs) = rows.filter(|(_, runs)| !runs.is_empty()).min_by_key(|(_, runs)| longest(runs))?;
    let slower = slow_clocks(runs);
    let of = if row.key.is_empty() { String::new() } else { format!(" of row {}", row.key) };
    let names: Vec<String> =
        slower.iter().map(|clock| format!("{} ({})", clock.does, rounded(clock.period))).collect();
    let names = names.join(", ");
    let took = told(longest(runs)?);
    let settled: Option<Vec<_>> = runs
        .iter()
        .map(|run| run.settled.filter(|settled| settled.stands).map(|settled| settled.after))
        .collect();
    let guessed = guessed(runs.iter().filter_map(|run| run.settled));
    match settled.and_then(|after| after.into_iter().max()) {
        Some(after) if slower.is_empty() => {
            Some(format!("runs{of} take {took}; their figures stand still after {}", told(after)))
        }
        Some(after) => Some(format!(
            "runs{of} take {took}; their figures stand still after {}, but slower clocks have not completed a period: {names}{guessed}",
            told(after)
        )),
        None if slower.is_empty() => None,
        None if runs.iter().any(|run| run.settled.is_some()) => {
            Some(format!("runs{of} take {took}; slower clocks have not completed a period: {names}{guessed}"))
        }
        None => Some(format!(
            "runs{of} take {took}; slower clocks have not completed a period: {names}; warmup = \"auto\" waits for those it \
             can afford and until figures stand still, if the workload has a duration or a window"
        )),
    }
}

/// `5.7 ms`
pub(crate) fn told(span: Duration) -> String {
    let (unit, size) = fitting_time(span.0 as f64);
    format!("{:.1} {unit}", span.0 as f64 / size)
}

/// `; begun from a guess: the limit of searches`
fn guessed(settled: impl Iterator<Item = Settled>) -> String {
    let (mut limit, mut pages) = (false, false);
    for settled in settled {
        limit |= settled.guessed_limit;
        pages |= settled.guessed_pages;
    }
    let names = [(limit, "the limit of searches"), (pages, "where pages are")];
    let names: Vec<&str> = names.into_iter().filter_map(|(guessed, name)| guessed.then_some(name)).collect();
    if names.is_empty() { String::new() } else { format!("; begun from a guess: {}", names.join(", ")) }
}

/// A period to three digits.
fn rounded(period: Duration) -> Duration {
    let digits = period.0.checked_ilog10().unwrap_or(0).saturating_sub(2);
    let unit = 10u64.pow(digits);
    Duration((period.0 + unit / 2) / unit * unit)
}

/// The mechanisms that do not complete a period in the longest run of a row, warm-up included.
pub fn slow_clocks(runs: &[Run]) -> Vec<SlowClock> {
    runs.iter().max_by_key(|run| run.simulated).map(|run| run.slower.clone()).unwrap_or_default()
}

/// A line for each row and column whose runs waited until they had settled and then still changed: their second half is
/// not like the first.
pub fn unlike_halves(experiment: &Experiment, results: &Results) -> Vec<String> {
    let line = |key: &str, column: &str, differ: Vec<(&str, f64)>| {
        let row = if key.is_empty() { String::new() } else { format!("row {key}, ") };
        let figures: Vec<String> =
            differ.iter().map(|(name, change)| format!("{name} ({:+.1} %)", 100.0 * change)).collect();
        format!(
            "{row}{column}: the second half differs from the first in {}: not settled; measure for longer",
            figures.join(", ")
        )
    };
    results
        .cells(experiment)
        .map(|(key, column, row, runs)| (key, &column.name, differences(&row.workload, runs)))
        .filter(|(_, _, differ)| !differ.is_empty())
        .map(|(key, column, differ)| line(key, column, differ))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{NoFiles, Scenario};

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
            let found = slow_clocks(&results.runs[0][0]);
            found.iter().map(|clock| format!("{} {}", clock.does, rounded(clock.period))).collect::<Vec<_>>()
        };
        assert_eq!(
            told("50ms"),
            [
                "balancing of busy CPUs in MC, with the limit of searches 124ms",
                "balancing of busy CPUs in NUMA 252ms",
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

    fn sleepers(top: &str, more: &str) -> String {
        format!(
            "machine = \"2x4\"\nkernels = [\"v6.12\"]\n{top}[workload]\nduration = \"200ms\"\n[[workload.task]]\n\
             name = \"w\"\ncount = 3\nprogram = [\"loop forever\", \"run 50us\", \"sleep 200us\", \"end\"]\n{more}"
        )
    }

    #[test]
    fn a_settled_run_says_after_how_long_and_one_that_is_not_what_is_slower() {
        let settled = noted(&sleepers("warmup = \"auto\"\n", ""));
        assert!(settled.contains("; their figures stand still after 420"), "{settled}");
        assert!(!settled.contains("slower clocks"), "{settled}");
        let not = noted(&sleepers("", ""));
        assert!(
            not.starts_with("runs take 200.0 ms; slower clocks have not completed a period: averages of load (353ms); warmup"),
            "{not}"
        );
    }

    #[test]
    fn a_second_half_that_is_not_like_the_first_is_reported() {
        // Another task begins when the second half does.
        let late = "[[workload.task]]\nname = \"late\"\nprogram = [\"sleep 520ms\", \"loop forever\", \"run 50us\", \
                    \"sleep 200us\", \"end\"]\n";
        let of = |runs: u32, more: &str| {
            let text = sleepers(&format!("warmup = \"auto\"\nruns = {runs}\n"), more);
            let scenario = Scenario::parse("f", &text, &NoFiles).unwrap();
            let experiment = Experiment::of(&scenario);
            let mut results = experiment.nothing();
            experiment.extend(&mut results, runs, 1, false, || true, |_, _| ()).unwrap();
            results.unmeasured(&experiment)
        };
        for runs in [1, 3] {
            assert_eq!(of(runs, ""), Vec::<String>::new());
            let told = of(runs, late);
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(
                told[0].starts_with("v6.12: the second half differs from the first in switches (+3")
                    && told[0].contains(", wake-ups (+3")
                    && told[0].ends_with(": not settled; measure for longer"),
                "{told:?}"
            );
        }
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
