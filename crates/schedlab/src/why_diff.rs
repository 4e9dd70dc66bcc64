//! Two runs of the same seed, decision by decision: the first decision that differs, and the reasons whose share
//! differs.
//!
//! Up to the first decision that differs both runs are the same. After that everything may happen at another time, so
//! each kind of decision is compared separately: the n-th decision on one side with the n-th on the other.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::why::Answer;

/// Number of decisions of a kind that are kept to find the first difference; later ones are only counted.
const KEPT: usize = 50_000;

/// What one side decided.
#[derive(Clone, Debug, Default)]
pub struct Side {
    kinds: BTreeMap<&'static str, Vec<Answer>>,
    reasons: BTreeMap<(&'static str, String), u64>,
    /// Time of the first: a kernel with another tick begins at another time.
    first: Option<u64>,
}

/// The first decisions of a kind that differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parting {
    /// `wakeup`, `balance`, ..
    pub kind: &'static str,
    /// Number of equal decisions of the kind before it.
    pub alike: usize,
    /// The decision of the base; `None` if the base has no more.
    pub base: Option<Answer>,
    /// The decision of the other side.
    pub other: Option<Answer>,
}

/// A reason whose share of its kind's decisions differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// `wakeup`, `balance`, ..
    pub kind: &'static str,
    /// The reason.
    pub reason: String,
    /// Counts in the base and the other side.
    pub counts: [u64; 2],
    /// Percent of the decisions of the kind, in the base and the other side.
    pub percent: [f64; 2],
}

impl Side {
    /// Takes a decision.
    pub fn take(&mut self, answer: Answer) {
        self.first.get_or_insert(answer.time_ns);
        *self.reasons.entry((answer.kind, answer.reason.clone())).or_default() += 1;
        let kept = self.kinds.entry(answer.kind).or_default();
        if kept.len() < KEPT {
            kept.push(answer);
        }
    }

    /// The first difference of each kind, the earliest first.
    pub fn partings(&self, other: &Side) -> Vec<Parting> {
        let mut found: Vec<Parting> = Vec::new();
        let kinds =
            self.kinds.keys().chain(other.kinds.keys().filter(|kind| !self.kinds.contains_key(*kind)));
        for &kind in kinds {
            let none = Vec::new();
            let (here, there) =
                (self.kinds.get(kind).unwrap_or(&none), other.kinds.get(kind).unwrap_or(&none));
            let alike = here.iter().zip(there).take_while(|(a, b)| self.is_alike(a, other, b)).count();
            let (base, other) = (here.get(alike).cloned(), there.get(alike).cloned());
            if (base.is_some() || other.is_some()) && alike < KEPT {
                found.push(Parting { kind, alike, base, other });
            }
        }
        let time = |parting: &Parting| {
            let times = [&parting.base, &parting.other].into_iter().flatten().map(|answer| answer.time_ns);
            times.min().unwrap_or(u64::MAX)
        };
        found.sort_by_key(time);
        found
    }

    /// Whether a decision has the same outcome and reason as one of the other side, and came equally long after the
    /// first. The numbers behind it may differ.
    fn is_alike(&self, answer: &Answer, other: &Side, of_other: &Answer) -> bool {
        let after = |side: &Side, answer: &Answer| answer.time_ns - side.first.unwrap_or(answer.time_ns);
        let moved = Answer { time_ns: answer.time_ns, ..of_other.clone() };
        after(self, answer) == after(other, of_other)
            && answer.reason == moved.reason
            && answer.decides_as(&moved)
    }

    /// Reasons whose share differs by at least `points` percentage points, the largest difference first.
    pub fn shares(&self, other: &Side, points: f64) -> Vec<Share> {
        let total = |side: &Side, kind: &str| -> u64 {
            side.reasons.iter().filter(|((k, _), _)| *k == kind).map(|(_, n)| n).sum()
        };
        let mut keys: Vec<&(&'static str, String)> =
            self.reasons.keys().chain(other.reasons.keys()).collect();
        keys.sort();
        keys.dedup();
        let mut found = Vec::new();
        for key in keys {
            let counts = [self, other].map(|side| side.reasons.get(key).copied().unwrap_or(0));
            let totals = [self, other].map(|side| total(side, key.0));
            let percent = [0, 1]
                .map(|i| if totals[i] == 0 { 0.0 } else { 100.0 * counts[i] as f64 / totals[i] as f64 });
            if (percent[0] - percent[1]).abs() >= points {
                found.push(Share { kind: key.0, reason: key.1.clone(), counts, percent });
            }
        }
        let change = |share: &Share| (share.percent[0] - share.percent[1]).abs();
        found.sort_by(|a, b| change(b).total_cmp(&change(a)).then_with(|| a.reason.cmp(&b.reason)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(time_ns: u64, kind: &'static str, reason: &str) -> Answer {
        Answer { time_ns, cpu: 0, kind, reason: reason.to_string(), sentence: reason.to_string() }
    }

    fn side(answers: &[(u64, &'static str, &str)]) -> Side {
        let mut side = Side::default();
        answers.iter().for_each(|&(time, kind, reason)| side.take(answer(time, kind, reason)));
        side
    }

    #[test]
    fn each_kind_parts_by_itself_the_earliest_first() {
        let here = side(&[(1, "wakeup", "A"), (2, "pick", "P"), (3, "wakeup", "A"), (9, "balance", "B")]);
        let there = side(&[(1, "wakeup", "A"), (2, "pick", "P"), (3, "wakeup", "C"), (5, "wakeup", "C")]);
        let partings = here.partings(&there);
        let told: Vec<(&str, usize, bool)> =
            partings.iter().map(|p| (p.kind, p.alike, p.other.is_some())).collect();
        assert_eq!(told, [("wakeup", 1, true), ("balance", 0, false)]);
        assert!(here.partings(&here).is_empty());
        let later = side(&[(5, "wakeup", "A"), (6, "pick", "P"), (7, "wakeup", "A"), (13, "balance", "B")]);
        assert!(here.partings(&later).is_empty(), "only its clock began elsewhere");
    }

    #[test]
    fn shares_that_changed_are_reported_the_most_first() {
        let here = side(&[(1, "wakeup", "A"), (2, "wakeup", "A"), (3, "wakeup", "B"), (4, "wakeup", "B")]);
        let there = side(&[(1, "wakeup", "A"), (2, "wakeup", "C"), (3, "wakeup", "C"), (4, "wakeup", "B")]);
        let shares = here.shares(&there, 2.0);
        let told: Vec<(&str, [f64; 2])> = shares.iter().map(|s| (s.reason.as_str(), s.percent)).collect();
        assert_eq!(told, [("C", [0.0, 50.0]), ("A", [50.0, 25.0]), ("B", [50.0, 25.0])]);
    }
}
