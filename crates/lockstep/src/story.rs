//! Describes a failing run.

use std::fmt;

use crate::run::repeat;
use crate::{Difference, Operation, Plan};

/// The operations, the last actions of both sides, and the two states.
#[derive(Clone, Debug)]
pub struct Story {
    operations: Vec<String>,
    last: Vec<String>,
    at_work: String,
    differ: Vec<Difference>,
}

/// Maximum number of actions listed before the difference.
const LAST: usize = 12;
/// Maximum number of differences listed.
const MOST: usize = 16;

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
