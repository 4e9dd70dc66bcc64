//! Decisions that distinguish kernels.
//!
//! Most decisions have only one candidate, or have the same result under every kernel, so agreement on them proves
//! nothing about the rules. A decision is *contested* if the rules of at least two kernels lead to disjoint sets of
//! choices. An audit can fail only on those, so the figures of the recorded kernel are shown beside those of the other
//! kernels.

use std::collections::BTreeMap;

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};

use crate::report::verdict::{Answer, Choice, Decision, Verdict};

/// How one kernel's rules do on the contested decisions of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contested {
    /// The rules lead to one choice, and the recorded kernel made it.
    pub exact: u64,
    /// The rules leave several choices open, and the recorded kernel made one of them.
    pub in_set: u64,
    /// Total size of those sets.
    pub set_sizes: u64,
    /// The rules do not lead to the recorded choice.
    pub wrong: u64,
    /// A missing fact prevents a judgement.
    pub undecided: u64,
}

impl Contested {
    /// Number of decisions that were judged.
    pub fn judged(&self) -> u64 {
        self.exact + self.in_set + self.wrong
    }

    /// Share of judged decisions that agree, in percent; `None` if nothing was judged.
    pub fn agreement(&self) -> Option<f64> {
        (self.judged() > 0).then(|| (self.exact + self.in_set) as f64 * 100.0 / self.judged() as f64)
    }

    /// Adds the counts of another recording.
    pub fn add(&mut self, other: &Contested) {
        self.exact += other.exact;
        self.in_set += other.in_set;
        self.set_sizes += other.set_sizes;
        self.wrong += other.wrong;
        self.undecided += other.undecided;
    }
}

/// The contested decisions of one recording, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contest {
    /// For each kind, how many decisions were compared between the kernels, contested or not.
    pub asked: BTreeMap<Decision, u64>,
    /// For each kind, the counts of each kernel, in the given order of kernels.
    pub of: BTreeMap<Decision, Vec<Contested>>,
}

impl Contest {
    /// Compares the verdicts of several kernels' rules on the same recording; each list comes from an audit that keeps
    /// its verdicts.
    pub fn between(verdicts: &[Vec<Verdict>]) -> Contest {
        // Several decisions about one task may have the same time and CPU; their order distinguishes them.
        type Key = (Time, CpuId, Decision, Pid, u32);
        let kernels = verdicts.len();
        let mut by_key: BTreeMap<Key, Vec<Option<&Verdict>>> = BTreeMap::new();
        for (kernel, verdicts) in verdicts.iter().enumerate() {
            let mut last: Option<(Time, CpuId, Decision, Pid)> = None;
            let mut number = 0;
            for verdict in verdicts {
                let key = (verdict.time, verdict.cpu, verdict.decision, verdict.pid);
                number = if last == Some(key) { number + 1 } else { 0 };
                last = Some(key);
                let key = (key.0, key.1, key.2, key.3, number);
                by_key.entry(key).or_insert_with(|| vec![None; kernels])[kernel] = Some(verdict);
            }
        }
        let mut contest = Contest::default();
        for ((_, _, decision, ..), of_kernels) in by_key {
            // Skip a decision that one of the kernels did not recognise as a decision.
            let Some(all) = of_kernels.into_iter().collect::<Option<Vec<&Verdict>>>() else { continue };
            *contest.asked.entry(decision).or_default() += 1;
            if !part(&all) {
                continue;
            }
            let counts = contest.of.entry(decision).or_insert_with(|| vec![Contested::default(); kernels]);
            for (kernel, verdict) in counts.iter_mut().zip(all) {
                match verdict.answer {
                    Answer::Agrees => kernel.exact += 1,
                    Answer::AgreesInSet => {
                        kernel.in_set += 1;
                        kernel.set_sizes += verdict.ours.len() as u64;
                    }
                    Answer::Differs => kernel.wrong += 1,
                    Answer::Undecided => kernel.undecided += 1,
                }
            }
        }
        contest
    }

    /// Adds the counts of another recording, with the same kernels.
    pub fn add(&mut self, other: &Contest) {
        for (&decision, &asked) in &other.asked {
            *self.asked.entry(decision).or_default() += asked;
        }
        for (&decision, kernels) in &other.of {
            let sums = self.of.entry(decision).or_insert_with(|| vec![Contested::default(); kernels.len()]);
            sums.iter_mut().zip(kernels).for_each(|(sum, kernel)| sum.add(kernel));
        }
    }

    /// The counts of each kernel over all kinds.
    pub fn total(&self) -> Vec<Contested> {
        let mut total: Vec<Contested> = Vec::new();
        for kernels in self.of.values() {
            total.resize(kernels.len().max(total.len()), Contested::default());
            total.iter_mut().zip(kernels).for_each(|(sum, kernel)| sum.add(kernel));
        }
        total
    }
}

/// Whether two of the verdicts have no choice in common.
fn part(all: &[&Verdict]) -> bool {
    let choices = |verdict: &Verdict| -> Vec<Choice> {
        let decided = verdict.answer != Answer::Undecided;
        verdict.ours.iter().filter(|_| decided).map(|possible| possible.choice).collect()
    };
    let sets: Vec<Vec<Choice>> =
        all.iter().map(|verdict| choices(verdict)).filter(|set| !set.is_empty()).collect();
    sets.iter()
        .enumerate()
        .any(|(at, one)| sets[at + 1..].iter().any(|other| one.iter().all(|choice| !other.contains(choice))))
}

#[cfg(test)]
mod tests {
    use schedlab_trace::Comm;

    use super::*;
    use crate::report::verdict::{Numbers, Possible};

    fn verdict(time: u64, kernel: u16, ours: &[u16], answer: Answer) -> Verdict {
        let possible = |&cpu: &u16| Possible {
            choice: Choice::Cpu(CpuId(cpu)),
            reason: "PREV_IDLE",
            hidden: None,
            numbers: Numbers::default(),
        };
        Verdict {
            time: Time(time),
            cpu: CpuId(0),
            decision: Decision::Wakeup,
            pid: Pid(7),
            comm: Comm::from("make"),
            answer,
            kernel: Choice::Cpu(CpuId(kernel)),
            ours: ours.iter().map(possible).collect(),
            hidden: None,
            gravity: 0,
            nearest: None,
        }
    }

    #[test]
    fn only_decisions_on_which_kernels_part_count() {
        use Answer::{Agrees, AgreesInSet, Differs, Undecided};
        let right = vec![
            verdict(1, 3, &[3], Agrees),
            verdict(2, 3, &[3, 4], AgreesInSet),
            verdict(3, 3, &[3], Agrees),
            verdict(4, 3, &[], Undecided),
            verdict(5, 3, &[4], Differs),
        ];
        let other = vec![
            verdict(1, 3, &[3], Agrees),
            verdict(2, 3, &[5], Differs),
            verdict(3, 3, &[3, 5], AgreesInSet),
            verdict(4, 3, &[6], Differs),
            verdict(5, 3, &[3], Agrees),
        ];
        let contest = Contest::between(&[right, other]);
        assert_eq!(contest.asked[&Decision::Wakeup], 5);
        let [right, other] = contest.of[&Decision::Wakeup][..] else { panic!("two kernels") };
        assert_eq!(right, Contested { in_set: 1, set_sizes: 2, wrong: 1, ..Contested::default() });
        assert_eq!(other, Contested { exact: 1, wrong: 1, ..Contested::default() });
        assert_eq!((right.agreement(), other.agreement()), (Some(50.0), Some(50.0)));
        assert_eq!(contest.total(), [right, other]);
    }

    #[test]
    fn a_decision_that_one_kernel_does_not_meet_is_left_out() {
        let contest = Contest::between(&[vec![verdict(1, 3, &[3], Answer::Agrees)], vec![]]);
        assert_eq!(contest, Contest::default());
    }
}
