//! One run of a plan.

use std::fmt;

use crate::value::Value;

/// What a combination sets: paths with their values, in the order of the axes.
pub type Settings = Vec<(String, Value)>;

/// One run of a plan: what is set, and under which kernel and seed it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its number in the plan.
    pub index: u64,
    /// What its combination sets, in the order of the axes.
    pub settings: Settings,
    /// Key of the scenario's row; empty if it has one without a name.
    pub row: String,
    /// The kernel, before the combination adds its parts.
    pub kernel: String,
    /// Which of the seeds, from 0.
    pub repeat: u64,
    /// The seed itself if the plan gives it by number; otherwise it is derived from the point.
    pub seed: Option<u64>,
}

impl Point {
    /// The value at an axis.
    pub fn setting(&self, path: &str) -> Option<&Value> {
        self.settings.iter().find(|(known, _)| known == path).map(|(_, value)| value)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, value) in &self.settings {
            write!(f, "{path}={value} ")?;
        }
        if !self.row.is_empty() {
            write!(f, "row={} ", self.row)?;
        }
        write!(f, "kernel={} ", self.kernel)?;
        match self.seed {
            Some(seed) => write!(f, "seed={seed}"),
            None => write!(f, "repeat={}", self.repeat),
        }
    }
}
