//! The sum of an audit: how often our rules led to what happened, by kind, rule and fact.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::probe::CarriedFacts;
use crate::verdict::{Answer, Decision, Verdict};

/// How often each answer was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// The one choice of our rules happened.
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

    /// All decisions.
    pub fn all(&self) -> u64 {
        self.decided() + self.undecided
    }

    /// Decisions that were judged.
    pub fn decided(&self) -> u64 {
        self.agrees + self.agrees_in_set + self.differs
    }

    /// Part of the decided ones that agree, exactly or in a set; none if there are none.
    pub fn agreement(&self) -> Option<f64> {
        (self.decided() > 0).then(|| (self.agrees + self.agrees_in_set) as f64 / self.decided() as f64)
    }

    /// Part of all that is undecided; none if there are none.
    pub fn undecided_part(&self) -> Option<f64> {
        (self.all() > 0).then(|| self.undecided as f64 / self.all() as f64)
    }
}

/// The counts of one kind of decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DecisionReport {
    /// In all.
    #[serde(flatten)]
    pub counts: Counts,
    /// By the rule that spoke.
    pub by_reason: BTreeMap<&'static str, Counts>,
    /// By the fact that was hidden, where one was.
    pub by_hidden: BTreeMap<&'static str, Counts>,
}

/// The sum of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// Placement of woken tasks.
    pub wakeup: DecisionReport,
    /// Placement of new tasks.
    pub fork: DecisionReport,
    /// Choice of who runs next.
    pub pick: DecisionReport,
    /// Preemption.
    pub preempt: DecisionReport,
    /// Moves by balancing.
    pub balance: DecisionReport,
    /// How well the shadow carries what probes of a white-box recording saw.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub carried: CarriedFacts,
    /// Events followed.
    pub events: u64,
    /// The first disagreements of each kind and rule.
    pub stories: Vec<Verdict>,
    /// All verdicts, if they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
}

impl AuditReport {
    /// The counts of a kind.
    pub fn of(&self, decision: Decision) -> &DecisionReport {
        match decision {
            Decision::Wakeup => &self.wakeup,
            Decision::Fork => &self.fork,
            Decision::Pick => &self.pick,
            Decision::Preempt => &self.preempt,
            Decision::Balance => &self.balance,
        }
    }

    pub(crate) fn of_mut(&mut self, decision: Decision) -> &mut DecisionReport {
        match decision {
            Decision::Wakeup => &mut self.wakeup,
            Decision::Fork => &mut self.fork,
            Decision::Pick => &mut self.pick,
            Decision::Preempt => &mut self.preempt,
            Decision::Balance => &mut self.balance,
        }
    }

    /// Adds a verdict. Of each kind and rule the first `stories` disagreements are kept.
    pub(crate) fn count(&mut self, verdict: &Verdict, stories: usize) {
        let reason = verdict.reason();
        let report = self.of_mut(verdict.decision);
        report.counts.count(verdict.answer);
        let by_reason = report.by_reason.entry(reason).or_default();
        by_reason.count(verdict.answer);
        let told = by_reason.differs;
        if let Some(hidden) = verdict.hidden {
            report.by_hidden.entry(hidden.name()).or_default().count(verdict.answer);
        }
        if verdict.answer == Answer::Differs && told <= stories as u64 {
            self.stories.push(verdict.clone());
        }
    }
}
