//! Decisions that tell kernels apart.
//!
//! Most decisions have one candidate, or fall alike under every kernel: agreement on them says nothing of the rules.
//! A decision is *contested* if the rules of at least two kernels lead to choices of which none is in common. Only on
//! those can an audit fail, so the figures of the kernel that was recorded are read beside those of the others.

use std::collections::BTreeMap;

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};

use crate::verdict::{Answer, Choice, Decision, Verdict};

/// What one kernel's rules say of the contested decisions of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contested {
    /// They lead to one choice, and the recorded kernel made it.
    pub exact: u64,
    /// They leave several open, and the recorded kernel made one of them.
    pub in_set: u64,
    /// The choices of those sets, added up.
    pub set_sizes: u64,
    /// They do not lead to what was recorded.
    pub wrong: u64,
    /// A missing fact forbids a judgement.
    pub undecided: u64,
}

impl Contested {
    /// Decisions that were judged.
    pub fn judged(&self) -> u64 {
        self.exact + self.in_set + self.wrong
    }

    /// The share of judged decisions that agree, percent; none if nothing was judged.
    pub fn agreement(&self) -> Option<f64> {
        (self.judged() > 0).then(|| (self.exact + self.in_set) as f64 * 100.0 / self.judged() as f64)
    }

    /// Adds those of another recording.
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
    /// How many decisions of each kind all kernels were asked about, contested or not.
    pub asked: BTreeMap<Decision, u64>,
    /// Of each kind, what each kernel says, in the order in which they were given.
    pub of: BTreeMap<Decision, Vec<Contested>>,
}

impl Contest {
    /// Compares what several kernels' rules say of the same recording; an audit that keeps its verdicts for each.
    pub fn between(verdicts: &[Vec<Verdict>]) -> Contest {
        // Several decisions about one task may fall at one time on one CPU: they are told apart by their order.
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
            // A decision that one of them did not see as one says nothing.
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

    /// Adds those of another recording, by the same kernels.
    pub fn add(&mut self, other: &Contest) {
        for (&decision, &asked) in &other.asked {
            *self.asked.entry(decision).or_default() += asked;
        }
        for (&decision, kernels) in &other.of {
            let sums = self.of.entry(decision).or_insert_with(|| vec![Contested::default(); kernels.len()]);
            sums.iter_mut().zip(kernels).for_each(|(sum, kernel)| sum.add(kernel));
        }
    }

    /// What each kernel says of all kinds together.
    pub fn total(&self) -> Vec<Contested> {
        let mut total: Vec<Contested> = Vec::new();
        for kernels in self.of.values() {
            total.resize(kernels.len().max(total.len()), Contested::default());
            total.iter_mut().zip(kernels).for_each(|(sum, kernel)| sum.add(kernel));
        }
        total
    }
}

/// Whether two of the verdicts lead to choices of which none is in common.
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
    use crate::verdict::{Numbers, Possible};

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
