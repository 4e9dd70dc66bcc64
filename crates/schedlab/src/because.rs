//! Why two kernels differ: what each did to its tasks, in a few lines.

use schedlab_report::metrics::Cause;
use schedlab_sched::Reason;
use schedlab_sim::{OfCpu, Part};

use crate::columns::Experiment;
use crate::experiment::{Results, Run};

/// New tasks whose CPUs are listed one by one.
const LISTED: usize = 16;

/// Share of decisions, in percentage points, that a rule must gain or lose to be named.
const WORTH_NAMING: f64 = 2.0;

/// Percentage points of busy CPU time that a part must gain or lose to be named.
const WORTH_A_PART: f64 = 1.0;

/// The lines of each row in which the kernels differ.
pub fn because(experiment: &Experiment, results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, by_column) in experiment.keys.iter().zip(&results.runs) {
        let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
        for (name, runs) in experiment.names().into_iter().zip(by_column).skip(1) {
            if by_column[0].is_empty() || runs.is_empty() {
                continue;
            }
            let parts = differences(&by_column[0], runs);
            if !parts.is_empty() {
                lines.push(format!("{key}{name}: {}", parts.join("; ")));
            }
        }
    }
    lines
}

fn differences(base: &[Run], runs: &[Run]) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(rates("switches", base, runs, |r| r.folds.counts.switches));
    for cause in Cause::ALL {
        let name = format!("migrations by {}", cause.name());
        parts.extend(rates(&name, base, runs, |r| r.folds.migrations.of(cause)));
    }
    parts.extend(times(base, runs));
    for (kind, plural) in [("wakeup", "wake-ups"), ("fork", "forks")] {
        parts.extend(rules(kind, plural, base, runs));
    }
    let went = |runs: &[Run]| -> Vec<String> {
        runs[0].folds.placements.tasks.iter().take(LISTED + 1).map(|t| t.to.to_string()).collect()
    };
    let (before, after) = (went(base), went(runs));
    if before != after && before.len() <= LISTED && !before.is_empty() {
        parts.push(format!("new tasks went to CPUs {} instead of {}", after.join(" "), before.join(" ")));
    }
    parts
}

/// Events per second of run time before and after, if they differ by more than 5 %.
fn rates(name: &str, base: &[Run], runs: &[Run], count: impl Fn(&Run) -> u64) -> Option<String> {
    let rate = |runs: &[Run]| {
        let seconds: f64 = runs.iter().map(|r| r.elapsed.0 as f64 / 1e9).sum();
        runs.iter().map(|r| count(r) as f64).sum::<f64>() / seconds
    };
    let (before, after) = (rate(base), rate(runs));
    let changed = (after - before).abs() > 0.05 * before.max(after) && before.max(after) >= 1.0;
    changed.then(|| format!("{name} {}/s -> {}/s", thousands(before), thousands(after)))
}

/// Share of busy CPU time that something took, percent, over all runs.
pub(crate) fn busy_share(runs: &[Run], of: impl Fn(&OfCpu) -> u64) -> f64 {
    let totals: Vec<OfCpu> = runs.iter().map(|run| run.account.total()).collect();
    let (took, busy) = (totals.iter().map(of).sum::<u64>(), totals.iter().map(OfCpu::busy).sum::<u64>());
    100.0 * took as f64 / busy.max(1) as f64
}

/// Parts of CPU time that grew or shrank by at least a percentage point of busy time, the tasks' own work first.
fn times(base: &[Run], runs: &[Run]) -> Vec<String> {
    let changed = |name: &str, of: &dyn Fn(&OfCpu) -> u64| {
        let (before, after) = (busy_share(base, of), busy_share(runs, of));
        ((after - before).abs() >= WORTH_A_PART)
            .then(|| format!("{name} {after:.1} % of the time of busy CPUs, before {before:.1} %"))
    };
    let own = changed("tasks' own work takes", &OfCpu::own_work);
    let parts =
        Part::ALL.iter().map(|&part| changed(&format!("{} take", part.name()), &|total| total.part(part)));
    own.into_iter().chain(parts.flatten()).collect()
}

/// The rule whose share of decisions grew most, and the one that lost most.
fn rules(kind: &str, plural: &str, base: &[Run], runs: &[Run]) -> Vec<String> {
    let shares = |runs: &[Run]| {
        let mut counts: Vec<(String, u64)> = Vec::new();
        for (reason, n) in runs.iter().flat_map(|r| r.folds.reasons.of(kind)) {
            match counts.iter_mut().find(|(known, _)| known == reason) {
                Some((_, sum)) => *sum += n,
                None => counts.push((reason.to_string(), n)),
            }
        }
        let total: u64 = counts.iter().map(|(_, n)| n).sum();
        counts.into_iter().map(|(r, n)| (r, 100.0 * n as f64 / total as f64)).collect::<Vec<_>>()
    };
    let (before, after) = (shares(base), shares(runs));
    // The code of a tree gives no reasons of its own.
    let of_tree = |(reason, _): &(String, f64)| reason == Reason::TreeDecides.name();
    if before.is_empty() || after.is_empty() || before.iter().chain(&after).any(of_tree) {
        return Vec::new();
    }
    let of = |list: &[(String, f64)], reason: &str| {
        list.iter().find(|(r, _)| r == reason).map_or(0.0, |(_, share)| *share)
    };
    let mut names: Vec<&String> = before.iter().chain(&after).map(|(r, _)| r).collect();
    names.sort();
    names.dedup();
    let mut changes: Vec<(f64, &String)> =
        names.iter().map(|r| (of(&after, r) - of(&before, r), *r)).collect();
    changes.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let told = [changes.first(), changes.last().filter(|_| changes.len() > 1)];
    told.into_iter()
        .flatten()
        .filter(|(change, _)| change.abs() >= WORTH_NAMING)
        .map(|(_, r)| format!("{:.0} % of {plural} are {r}, before {:.0} %", of(&after, r), of(&before, r)))
        .collect()
}

/// `18,420`; small numbers keep a decimal.
fn thousands(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_grouped_by_thousands() {
        assert_eq!([1234567.0, 240.0, 3.25].map(thousands), ["1,234,567", "240", "3.2"]);
    }
}
