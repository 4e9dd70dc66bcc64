//! The result of an audit: how often our rules led to the recorded choice, by kind, rule and fact.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::report::probe::CarriedFacts;
use crate::report::verdict::{Answer, Decision, Verdict};
use crate::unknown::wakee_flips::Inherited;

/// How often each answer was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Our rules lead to one choice, and it happened.
    pub agrees: u64,
    /// One of the choices that hidden facts leave open happened.
    pub agrees_in_set: u64,
    /// Something else happened.
    pub differs: u64,
    /// Facts are missing.
    pub undecided: u64,
}

impl Counts {
    /// Adds one answer.
    pub fn count(&mut self, answer: Answer) {
        match answer {
            Answer::Agrees => self.agrees += 1,
            Answer::AgreesInSet => self.agrees_in_set += 1,
            Answer::Differs => self.differs += 1,
            Answer::Undecided => self.undecided += 1,
        }
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Counts) {
        self.agrees += other.agrees;
        self.agrees_in_set += other.agrees_in_set;
        self.differs += other.differs;
        self.undecided += other.undecided;
    }

    /// Number of all decisions.
    pub fn all(&self) -> u64 {
        self.decided() + self.undecided
    }

    /// Number of decisions that were judged.
    pub fn decided(&self) -> u64 {
        self.agrees + self.agrees_in_set + self.differs
    }

    /// Share of judged decisions that agree, exactly or in a set; `None` if none was judged.
    pub fn agreement(&self) -> Option<f64> {
        (self.decided() > 0).then(|| (self.agrees + self.agrees_in_set) as f64 / self.decided() as f64)
    }

    /// Share of all decisions that are undecided; `None` if there are none.
    pub fn undecided_part(&self) -> Option<f64> {
        (self.all() > 0).then(|| self.undecided as f64 / self.all() as f64)
    }
}

/// The counts of one kind of decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DecisionReport {
    /// All decisions of the kind.
    #[serde(flatten)]
    pub counts: Counts,
    /// By the rule that decided.
    pub by_reason: BTreeMap<&'static str, Counts>,
    /// By the hidden fact, where there was one.
    pub by_hidden: BTreeMap<&'static str, Counts>,
    /// Total number of choices left open in agreements in a set.
    pub choices_in_sets: u64,
    /// Disagreements by our rule.
    pub differs_by_reason: BTreeMap<&'static str, u64>,
    /// Undecided decisions by the missing fact.
    pub undecided_by_fact: BTreeMap<&'static str, u64>,
}

/// Finds the counter of a name. There are few names and each comes from one place, so comparing addresses is nearly
/// always enough, and frequent names move to the front half; the map is for the report.
#[derive(Clone, Debug, Default)]
struct ByName(Vec<(&'static str, Counts)>);

impl ByName {
    fn count(&mut self, name: &'static str, answer: Answer) {
        let at = self.0.iter().position(|(known, _)| std::ptr::eq(known.as_ptr(), name.as_ptr()));
        let at = at.unwrap_or_else(|| {
            self.0.push((name, Counts::default()));
            self.0.len() - 1
        });
        self.0[at].1.count(answer);
        if at >= 4 {
            self.0.swap(at / 2, at);
        }
    }

    fn sum(&self) -> BTreeMap<&'static str, Counts> {
        let mut sum: BTreeMap<&'static str, Counts> = BTreeMap::new();
        self.0.iter().for_each(|(name, counts)| sum.entry(name).or_default().add(counts));
        sum
    }
}

/// Counts of one kind while a trace is followed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    counts: Counts,
    choices_in_sets: u64,
    by_reason: ByName,
    by_hidden: ByName,
}

impl Tally {
    pub(crate) fn count(&mut self, verdict: &Verdict) {
        self.counts.count(verdict.answer);
        self.by_reason.count(verdict.reason(), verdict.answer);
        if let Some(hidden) = verdict.hidden {
            self.by_hidden.count(hidden.name(), verdict.answer);
        }
        if verdict.answer == Answer::AgreesInSet {
            self.choices_in_sets += verdict.ours.len() as u64;
        }
    }

    pub(crate) fn report(&self) -> DecisionReport {
        let (by_reason, by_hidden) = (self.by_reason.sum(), self.by_hidden.sum());
        let some = |(&name, count): (&&'static str, u64)| (count > 0).then_some((name, count));
        DecisionReport {
            counts: self.counts,
            choices_in_sets: self.choices_in_sets,
            differs_by_reason: by_reason
                .iter()
                .map(|(name, counts)| (name, counts.differs))
                .filter_map(some)
                .collect(),
            undecided_by_fact: by_hidden
                .iter()
                .map(|(name, counts)| (name, counts.undecided))
                .filter_map(some)
                .collect(),
            by_reason,
            by_hidden,
        }
    }
}

impl DecisionReport {
    fn add(&mut self, other: &DecisionReport) {
        self.counts.add(&other.counts);
        self.choices_in_sets += other.choices_in_sets;
        for (own, others) in
            [(&mut self.by_reason, &other.by_reason), (&mut self.by_hidden, &other.by_hidden)]
        {
            others.iter().for_each(|(name, counts)| own.entry(name).or_default().add(counts));
        }
        for (own, others) in [
            (&mut self.differs_by_reason, &other.differs_by_reason),
            (&mut self.undecided_by_fact, &other.undecided_by_fact),
        ] {
            others.iter().for_each(|(name, count)| *own.entry(name).or_default() += count);
        }
    }
}

/// The result of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// Placement of woken tasks.
    pub wakeup: DecisionReport,
    /// Placement of new tasks.
    pub fork: DecisionReport,
    /// Placement of tasks that execute another program.
    pub exec: DecisionReport,
    /// Choice of the next task to run.
    pub pick: DecisionReport,
    /// Preemption.
    pub preempt: DecisionReport,
    /// Moves by balancing.
    pub balance: DecisionReport,
    /// Moves by pushing and pulling of real-time and deadline tasks.
    pub push: DecisionReport,
    /// How accurately the shadow tracks what probes of a white-box recording saw.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub carried: CarriedFacts,
    /// What the first new task had inherited from before the recording.
    #[serde(skip)]
    pub inherited: Option<Inherited>,
    /// Events followed.
    pub events: u64,
    /// Number of missing switches: a CPU runs another task than the one it last switched to.
    pub unseen_switches: u64,
    /// The first disagreements of each kind and rule.
    pub stories: Vec<Verdict>,
    /// All verdicts, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
}

impl AuditReport {
    /// The counts of a kind.
    pub fn of(&self, decision: Decision) -> &DecisionReport {
        match decision {
            Decision::Wakeup => &self.wakeup,
            Decision::Fork => &self.fork,
            Decision::Exec => &self.exec,
            Decision::Pick => &self.pick,
            Decision::Preempt => &self.preempt,
            Decision::Balance => &self.balance,
            Decision::Push => &self.push,
        }
    }

    pub(crate) fn of_mut(&mut self, decision: Decision) -> &mut DecisionReport {
        match decision {
            Decision::Wakeup => &mut self.wakeup,
            Decision::Fork => &mut self.fork,
            Decision::Exec => &mut self.exec,
            Decision::Pick => &mut self.pick,
            Decision::Preempt => &mut self.preempt,
            Decision::Balance => &mut self.balance,
            Decision::Push => &mut self.push,
        }
    }

    /// Whether a disagreement is grave enough to be among the stories kept so far.
    pub(crate) fn would_tell(&self, verdict: &Verdict, gravity: u64, stories: usize) -> bool {
        let key = |verdict: &Verdict| (verdict.decision, verdict.reason());
        let same = self.stories.iter().filter(|story| key(story) == key(verdict));
        let (told, least) =
            same.fold((0, u64::MAX), |(told, least), story| (told + 1, least.min(story.gravity)));
        told < stories || stories > 0 && least < gravity
    }

    /// Keeps a disagreement if it is one of the `stories` gravest of its kind and rule.
    pub(crate) fn tell(&mut self, verdict: &Verdict, stories: usize) {
        let key = |verdict: &Verdict| (verdict.decision, verdict.reason());
        let same = || self.stories.iter().enumerate().filter(|(_, story)| key(story) == key(verdict));
        if same().count() < stories {
            return self.stories.push(verdict.clone());
        }
        // The latest of the least grave is dropped.
        let least = same().map(|(at, story)| (story.gravity, std::cmp::Reverse(at))).min();
        if let Some((gravity, std::cmp::Reverse(at))) = least
            && gravity < verdict.gravity
        {
            self.stories.remove(at);
            self.stories.push(verdict.clone());
        }
    }

    /// Adds the result of another recording.
    pub fn add(&mut self, other: AuditReport, stories: usize) {
        for decision in Decision::ALL {
            self.of_mut(decision).add(other.of(decision));
        }
        for (fact, carried) in other.carried {
            self.carried.entry(fact).or_default().add(carried);
        }
        self.events += other.events;
        self.unseen_switches += other.unseen_switches;
        other.stories.iter().for_each(|story| self.tell(story, stories));
        self.verdicts.extend(other.verdicts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::verdict::{Choice, Possible};
    use schedlab_topology::CpuId;
    use schedlab_units::{Pid, Time};

    fn verdict(time: u64, gravity: u64, answer: Answer) -> Verdict {
        Verdict {
            time: Time(time),
            cpu: CpuId(0),
            decision: Decision::Wakeup,
            pid: Pid(1),
            comm: "a".into(),
            answer,
            kernel: Choice::Cpu(CpuId(1)),
            ours: vec![Possible {
                choice: Choice::Cpu(CpuId(0)),
                reason: "PREV_IDLE",
                hidden: None,
                numbers: Default::default(),
            }],
            hidden: None,
            gravity,
            nearest: None,
        }
    }

    #[test]
    fn the_gravest_disagreements_are_reported() {
        let (mut report, mut tally) = (AuditReport::default(), Tally::default());
        for (time, gravity) in [(1, 3), (2, 1), (3, 2), (4, 1)] {
            tally.count(&verdict(time, gravity, Answer::Differs));
            report.tell(&verdict(time, gravity, Answer::Differs), 2);
        }
        tally.count(&verdict(5, 9, Answer::Agrees));
        report.wakeup = tally.report();
        let told: Vec<u64> = report.stories.iter().map(|story| story.time.0).collect();
        assert_eq!(told, [1, 3]);
        assert_eq!(report.wakeup.differs_by_reason["PREV_IDLE"], 4);
        let mut sum = AuditReport::default();
        sum.add(report.clone(), 2);
        sum.add(report, 2);
        assert_eq!((sum.wakeup.counts.differs, sum.wakeup.counts.agrees, sum.stories.len()), (8, 2, 2));
    }
}
