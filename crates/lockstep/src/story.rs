//! Describes a failing run.

use std::fmt;

use crate::run::repeat;
use schedlab_sched::{Curr, Policy};

use crate::{Difference, Operation, Pair, Plan};

/// The operations, the last actions of both sides, and the two states.
#[derive(Clone, Debug)]
pub struct Story {
    operations: Vec<String>,
    last: Vec<String>,
    at_work: String,
    differ: Vec<Difference>,
}

/// Maximum number of actions listed before the difference.
const LAST: usize = 24;
/// Maximum number of differences listed.
const MOST: usize = 32;

impl Story {
    /// Repeats a failing run.
    pub fn of(plan: &Plan, operations: &[Operation]) -> Option<Story> {
        let (ended, told) = repeat(plan, operations, true).ok()?;
        Some(Story {
            operations: operations.iter().map(ToString::to_string).collect(),
            last: told[told.len().saturating_sub(LAST)..].to_vec(),
            at_work: ended.at_work,
            differ: ended.differ,
        })
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "operations:")?;
        for operation in &self.operations {
            writeln!(f, "  {operation}")?;
        }
        writeln!(f, "the last that happened, in seconds:")?;
        for line in &self.last {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "after {}:", self.at_work)?;
        for difference in self.differ.iter().take(MOST) {
            writeln!(f, "  {difference}")?;
        }
        if self.differ.len() > MOST {
            writeln!(f, "  and {} more", self.differ.len() - MOST)?;
        }
        Ok(())
    }
}

impl Pair {
    /// What is queued where, by our rules: `*` runs.
    pub(crate) fn queues(&self) -> String {
        let mut cpus: Vec<Vec<String>> = vec![Vec::new(); self.nr_cpus()];
        for (number, &(id, _)) in self.tasks.iter().enumerate().filter(|(number, _)| !self.ended[*number]) {
            let task = self.sched.task(id);
            if !task.on_rq {
                continue;
            }
            let mark = if self.sched.rqs[task.cpu].curr == Curr::Task(id) { "*" } else { "" };
            let policy = match task.policy {
                Policy::Normal => String::new(),
                Policy::Deadline { .. } => " (Deadline)".into(),
                policy => format!(" ({policy:?})"),
            };
            let delayed = if task.se.sched_delayed { " (delayed)" } else { "" };
            cpus[task.cpu.index()].push(format!("t{number}{mark}{policy}{delayed}"));
        }
        let busy = cpus.iter().enumerate().filter(|(_, tasks)| !tasks.is_empty());
        busy.map(|(cpu, tasks)| format!("{cpu}[{}]", tasks.join(" "))).collect::<Vec<_>>().join(" ")
    }
}
