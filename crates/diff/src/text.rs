//! A difference as text.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use schedlab_report::render::Lean::{Left, Right};
use schedlab_report::render::columns;

use crate::difference::{Difference, KindOfTask};

/// Maximum number of reasons and kinds of tasks that are printed.
const TOLD: usize = 12;

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "A  {}, {:.6} s", self.names[0], self.seconds[0])?;
        writeln!(f, "B  {}, {:.6} s", self.names[1], self.seconds[1])?;
        writeln!(f, "\n{}", self.tasks_in_words())?;
        writeln!(f, "{}", self.first_in_words())?;
        if !self.kinds.is_empty() {
            writeln!(f)?;
            let head = ["kind of task", "tasks", "ran, ms", "wait p50, us", "wait p99, us", "elsewhere"];
            let mut rows = vec![head.map(str::to_owned).to_vec()];
            rows.extend(self.kinds.iter().take(TOLD).map(KindOfTask::cells));
            f.write_str(&columns(&rows, &[Left, Right, Right, Right, Right, Right], "  "))?;
            if self.kinds.len() > TOLD {
                writeln!(f, "and {} more kinds of tasks, which ran for less", self.kinds.len() - TOLD)?;
            }
            for kind in self.kinds.iter().take(TOLD).filter(|kind| kind.elsewhere >= 10.0) {
                writeln!(f, "where  {}", kind.places_in_words())?;
            }
        }
        writeln!(f)?;
        let mut rows = vec![["per second", "A", "B", "change", "chance alone"].map(str::to_owned).to_vec()];
        rows.extend(self.counts.iter().map(|count| {
            let chance = count.chance;
            let [a, b] = count.rates.map(|rate| format!("{rate:.1}"));
            let change = format!("{:+.1}", chance.difference);
            vec![
                count.what.to_string(),
                a,
                b,
                change,
                format!("+-{:.1}", chance.within),
                chance.word().to_string(),
            ]
        }));
        f.write_str(&columns(&rows, &[Left, Right, Right, Right, Right, Left], "  "))?;
        let changed: Vec<_> = self.reasons.iter().filter(|reason| reason.chance.stands_out()).collect();
        if !self.reasons.is_empty() {
            writeln!(
                f,
                "\nreasons whose share changed by more than chance alone: {} of {}",
                changed.len(),
                self.reasons.len()
            )?;
            for reason in changed.iter().take(TOLD) {
                writeln!(
                    f,
                    "{:<10}  {:<24}  {:>5.1} % -> {:>5.1} %   +-{:.1}",
                    reason.kind, reason.reason, reason.shares[0], reason.shares[1], reason.chance.within
                )?;
            }
        } else {
            writeln!(
                f,
                "\nreasons cannot be compared: only simulated traces contain decisions, and at least one of these contains none"
            )?;
        }
        writeln!(f, "\n{}", Difference::NOTE)
    }
}

impl Difference {
    /// What a reader must know to read the figures.
    pub const NOTE: &str = "Each trace is one run. \"Chance alone\" is what independent events would scatter by in 95 of 100 cases; \
                            runs of one kernel often scatter by more. `schedlab compare` compares several runs.";

    /// How many tasks are matched, and which are not.
    pub fn tasks_in_words(&self) -> String {
        let mut text = format!("{} tasks are matched by name, parent and order of creation.", self.matched);
        for (side, names) in [("A", &self.only_a), ("B", &self.only_b)] {
            if !names.is_empty() {
                text.push_str(&format!(" Only in {side}: {}.", list(names)));
            }
        }
        text
    }

    /// The first decision that differs, in a sentence.
    pub fn first_in_words(&self) -> String {
        match &self.first {
            None if self.matched == 0 => {
                "No task is in both traces, so no decision can be compared. Are they of the same program?".to_owned()
            }
            None => "No decision differs: every matched task was placed, moved and preempted alike up to the end of the shorter trace.".to_owned(),
            Some(first) => format!(
                "The first decision that differs is number {} about {} ({} in A, {} in B): in A it {} at {:.9} s, in B it {} at {:.9} s. {} of {} matched tasks differ somewhere.",
                first.step, first.task, first.pids[0], first.pids[1], first.what[0], first.at[0], first.what[1], first.at[1], self.parted, self.matched
            ),
        }
    }
}

impl KindOfTask {
    /// A row of the table.
    fn cells(&self) -> Vec<String> {
        let pair = |[a, b]: [Option<f64>; 2]| format!("{} -> {}", optional(a), optional(b));
        vec![
            self.name.clone(),
            self.tasks.to_string(),
            pair(self.ran_ms.map(Some)),
            pair(self.wait_p50_us),
            pair(self.wait_p99_us),
            format!("{:.1} %", self.elsewhere),
        ]
    }

    /// Where the tasks ran, in a few words.
    pub fn places_in_words(&self) -> String {
        let side = |places: &[(String, f64)]| {
            let parts: Vec<String> =
                places.iter().map(|(place, share)| format!("{place} {share:.0} %")).collect();
            parts.join(", ")
        };
        format!("{}: A {}; B {}", self.name, side(&self.places[0]), side(&self.places[1]))
    }
}

/// Four digits are enough.
fn optional(value: Option<f64>) -> String {
    match value {
        Some(value) if value >= 1000.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.1}"),
        None => "-".to_owned(),
    }
}

fn list(names: &BTreeMap<String, usize>) -> String {
    let mut parts: Vec<String> = names
        .iter()
        .take(TOLD)
        .map(|(name, count)| if *count == 1 { name.clone() } else { format!("{name} ({count})") })
        .collect();
    if names.len() > TOLD {
        parts.push(format!("and {} more names", names.len() - TOLD));
    }
    parts.join(", ")
}
