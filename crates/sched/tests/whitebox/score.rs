//! How many decisions agree with the recorded ones, step by step.
//!
//! A decision counts if nothing changed from the snapshot to the result. Decisions during which something
//! changed mostly agree as well; if they do not, the snapshot was out of date. A step whose inputs are not
//! all recorded is hidden.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::recording::Recording;

#[derive(Default)]
pub struct Score {
    pub agree: u64,
    pub differ: u64,
    pub moving_agree: u64,
    pub moving_differ: u64,
    pub hidden: u64,
}

#[derive(Default)]
pub struct Scores {
    pub scores: BTreeMap<(String, &'static str), Score>,
    pub differences: Vec<String>,
}

impl Scores {
    pub fn of(&mut self, recording: &Recording, step: &'static str) -> &mut Score {
        let kernel = recording.kernel.name.split('+').next().unwrap().to_string();
        self.scores.entry((kernel, step)).or_default()
    }

    pub fn judge(
        &mut self,
        recording: &Recording,
        step: &'static str,
        moving: bool,
        same: bool,
        what: impl FnOnce() -> String,
    ) {
        let score = self.of(recording, step);
        match (moving, same) {
            (true, true) => score.moving_agree += 1,
            (true, false) => score.moving_differ += 1,
            (false, true) => score.agree += 1,
            (false, false) => {
                score.differ += 1;
                let place =
                    format!("{} {} {}", recording.kernel.name, recording.topology.name, recording.load);
                self.differences.push(format!("{place}: {step}: {}", what()));
            }
        }
    }
}

impl Scores {
    /// One line per kernel and step.
    pub fn table(&self) -> String {
        let mut table = String::new();
        for ((kernel, step), score) in &self.scores {
            let Score { agree, differ, moving_agree, moving_differ, hidden } = score;
            let all = agree + differ;
            let moving = moving_agree + moving_differ;
            writeln!(
                table,
                "{kernel} {step}: {agree} of {all}; moving {moving_agree} of {moving}; hidden {hidden}"
            )
            .unwrap();
        }
        table
    }

    /// In each step at most one decision of a thousand differs.
    pub fn check(&self) {
        for ((kernel, step), score) in &self.scores {
            let all = score.agree + score.differ;
            assert!(score.differ * 1000 <= all, "{kernel} {step}: {} of {all} differ", score.differ);
        }
    }
}
