//! Every disagreement of the audits, and the fact that would have led to the kernel's choice: a table by kernel
//! and nearest fact, one by our rule, and a list with a line for each.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schedlab::audit::{AuditReport, Choice, Decision, Verdict};

/// What differs, in the order of the recordings.
#[derive(Default)]
pub struct Disagreements(Vec<Disagreement>);

struct Disagreement {
    kernel: &'static str,
    /// Machine and load.
    recording: String,
    verdict: Verdict,
}

impl Disagreements {
    /// Adds those of a recording.
    pub fn add(&mut self, kernel: &'static str, recording: &str, report: &AuditReport) {
        let mut verdicts: Vec<&Verdict> = report.stories.iter().collect();
        verdicts.sort_by_key(|verdict| (verdict.decision, verdict.time));
        let told = |verdict: &Verdict| Disagreement {
            kernel,
            recording: recording.to_owned(),
            verdict: verdict.clone(),
        };
        self.0.extend(verdicts.into_iter().map(told));
    }

    /// Number of disagreements that each nearest fact explains, by kernel and kind, with its sizes.
    pub fn table(&self) -> String {
        let mut by_fact: BTreeMap<_, BTreeMap<String, Sizes>> = BTreeMap::new();
        for Disagreement { kernel, verdict, .. } in &self.0 {
            let sizes = by_fact.entry((order(kernel), *kernel, verdict.decision)).or_default();
            sizes.entry(nearest(verdict)).or_default().add(verdict);
        }
        let mut text = String::new();
        for ((_, kernel, decision), facts) in by_fact {
            let mut facts: Vec<_> = facts.into_iter().collect();
            facts.sort_by_key(|(name, sizes)| (std::cmp::Reverse(sizes.count), name.clone()));
            for (name, sizes) in facts {
                let Sizes { count, us, times } = sizes;
                let [us, times] = [us, times].map(middle_and_most);
                _ = writeln!(text, "| {kernel} | {} | {name} | {count} | {us} | {times} |", decision.name());
            }
        }
        text
    }

    /// In which loads each of our rules differs from the kernel, and the nearest facts.
    pub fn by_rule(&self) -> String {
        let mut by_rule: BTreeMap<_, [BTreeMap<String, u64>; 2]> = BTreeMap::new();
        for Disagreement { recording, verdict, .. } in &self.0 {
            let load = recording.rsplit('/').next().unwrap_or_default().to_owned();
            let names = [load, nearest(verdict)];
            let counts = by_rule.entry((verdict.decision, verdict.reason())).or_default();
            for (counts, name) in counts.iter_mut().zip(names) {
                *counts.entry(name).or_default() += 1;
            }
        }
        let mut rules: Vec<_> = by_rule.into_iter().collect();
        let all = |loads: &BTreeMap<String, u64>| loads.values().sum::<u64>();
        rules.sort_by_key(|((decision, _), [loads, _])| (*decision, std::cmp::Reverse(all(loads))));
        let row = |((decision, rule), [loads, facts]): &((Decision, &str), [_; 2])| {
            let (all, loads, facts) = (all(loads), most_first(loads), most_first(facts));
            format!("| {} | {rule} | {all} | {loads} | {facts} |\n", decision.name())
        };
        rules.iter().map(row).collect()
    }

    /// A row for each, after a row of names, separated by tabs.
    pub fn list(&self) -> String {
        let mut text =
            "decision\tkernel\trecording\ttime_s\tcpu\ttask\tours\tthe_kernel's\twould_agree_if\n".to_owned();
        for decision in Decision::ALL {
            let of_kind = self.0.iter().filter(|disagreement| disagreement.verdict.decision == decision);
            for Disagreement { kernel, recording, verdict } in of_kind {
                text += &format!("{}\t{kernel}\t{}", decision.name(), line(recording, verdict));
            }
        }
        text
    }
}

/// The name of the nearest fact.
fn nearest(verdict: &Verdict) -> String {
    verdict.nearest.as_ref().map_or_else(|| "none found".to_owned(), |nearest| nearest.name())
}

/// Names with their counts, the most frequent first; the rest are combined after five.
fn most_first(counts: &BTreeMap<String, u64>) -> String {
    let mut counts: Vec<_> = counts.iter().collect();
    counts.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let (told, rest) = counts.split_at(counts.len().min(5));
    let mut words: Vec<String> = told.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let rest: u64 = rest.iter().map(|&(_, count)| count).sum();
    if rest > 0 {
        words.push(format!("others {rest}"));
    }
    words.join(", ")
}

/// Kernels in the order of their release.
fn order(kernel: &str) -> Vec<u32> {
    kernel.split('.').filter_map(|part| part.parse().ok()).collect()
}

/// Sizes of one fact.
#[derive(Default)]
struct Sizes {
    count: u64,
    us: Vec<u64>,
    times: Vec<u64>,
}

impl Sizes {
    fn add(&mut self, verdict: &Verdict) {
        self.count += 1;
        let first = verdict.nearest.as_ref().map(|nearest| &nearest.first);
        self.us.extend(first.and_then(|first| first.ns).map(|ns| ns.div_ceil(1000)));
        self.times.extend(first.and_then(|first| first.times));
    }
}

/// Median and largest.
fn middle_and_most(mut sizes: Vec<u64>) -> String {
    sizes.sort_unstable();
    match sizes.last() {
        None => "-".to_owned(),
        Some(most) => format!("{}, {most}", sizes[(sizes.len() - 1) / 2]),
    }
}

fn line(recording: &str, verdict: &Verdict) -> String {
    let Verdict { time, cpu, comm, pid, kernel, .. } = verdict;
    let choice = |choice: &Choice| match choice {
        Choice::Move { pid, from, to } if pid.0 != 0 => format!("{pid}: {from} to {to}"),
        other => other.to_string(),
    };
    let ours = verdict.ours.first().map_or_else(|| "-".to_owned(), |ours| choice(&ours.choice));
    let nearest = verdict.nearest.as_ref().map_or_else(|| "-".to_owned(), |nearest| nearest.to_string());
    format!(
        "{recording}\t{time}\t{cpu}\t{comm}-{pid}\t{ours} by {}\t{}\t{nearest}\n",
        verdict.reason(),
        choice(kernel)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_names_the_most_frequent_are_reported() {
        let counts = |names: &[(&str, u64)]| names.iter().map(|&(name, n)| (name.to_owned(), n)).collect();
        assert_eq!(most_first(&counts(&[("a", 1), ("b", 3), ("c", 1)])), "b 3, a 1, c 1");
        let many = [("a", 9), ("b", 8), ("c", 7), ("d", 6), ("e", 5), ("f", 2), ("g", 1)];
        assert_eq!(most_first(&counts(&many)), "a 9, b 8, c 7, d 6, e 5, others 3");
    }
}
