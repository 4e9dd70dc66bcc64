//! The bounds of a change, given the ranges of the machine's constants.
//!
//! A verdict may depend on a constant that is not well known: at one end of its range a cache line is always free, at
//! the other never. So each constant that the runs used is set to both ends of its range, on both sides, with the same
//! seeds:
//!
//! ```text
//!   change as it is      +2.9 %
//!   constant at its low end, at its high end, one after the other      +0.7 %  +34 %
//!   span                 +0.7 to +34 %
//! ```

use crate::columns::{Column, Experiment};
use crate::error::Error;

/// Maximum number of runs of each side at an end.
pub const RUNS: u32 = 3;

/// A constant at one end of its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Its name, as a machine file has it.
    pub name: String,
    /// Its value there.
    pub value: u64,
    /// Its value otherwise.
    pub usual: u64,
    /// Columns of the two sides.
    pub columns: (usize, usize),
}

/// The two unmodified sides, columns 0 and 1, and the sides at every end.
#[derive(Clone, Debug)]
pub struct Ends {
    /// All columns.
    pub experiment: Experiment,
    /// The ends.
    pub ends: Vec<End>,
}

impl Ends {
    /// Plans the ends of every constant that runs of `base` and `other` used.
    ///
    /// # Errors
    /// A side that does not belong to this machine.
    pub fn plan(base: &Column, other: &Column) -> Result<Ends, Error> {
        let mut columns = vec![base.clone(), other.clone()];
        for column in &mut columns {
            column.scenario.runs = column.scenario.runs.min(RUNS);
        }
        let mut ends = Vec::new();
        for (row, cost) in base.scenario.machine.constants() {
            if !cost.was_asked() {
                continue;
            }
            let (range, usual, name) = (cost.range(), cost.get(), row.path());
            for value in [*range.start(), *range.end()] {
                if value == usual {
                    continue;
                }
                let at = columns.len();
                for side in [base, other] {
                    let mut column = side.clone();
                    column.scenario.runs = column.scenario.runs.min(RUNS);
                    column.scenario.set_constant(&name, value).map_err(|e| Error::new(e.to_string()))?;
                    column.name = format!("{} at {name} {value}", side.name);
                    columns.push(column);
                }
                ends.push(End { name: name.clone(), value, usual, columns: (at, at + 1) });
            }
        }
        Ok(Ends { experiment: Experiment::new(columns), ends })
    }
}

/// The span of changes, and what determines its two ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The least change and the greatest, as fractions.
    pub bounds: [f64; 2],
    /// The constants' ends that produce them; `None` for the unmodified change.
    pub by: [Option<End>; 2],
}

impl Span {
    /// The span of the unmodified change and the changes at the ends.
    pub fn of(change: f64, at_ends: impl Iterator<Item = (End, f64)>) -> Span {
        let mut span = Span { bounds: [change; 2], by: [None, None] };
        for (end, change) in at_ends {
            for (side, is_beyond) in
                [change < span.bounds[0], change > span.bounds[1]].into_iter().enumerate()
            {
                if is_beyond {
                    (span.bounds[side], span.by[side]) = (change, Some(end.clone()));
                }
            }
        }
        span
    }

    /// Whether the sign is the same over the whole span.
    pub fn keeps_sign(&self) -> bool {
        self.bounds[0] > 0.0 || self.bounds[1] < 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{NoFiles, Scenario};

    const TEXT: &str = "machine = \"2x2\"\nkernels = [\"v5.5\", \"v6.12\"]\nruns = 5\nlimit = \"3ms\"\n[workload]\n\
                        [[workload.task]]\nname = \"w\"\ncount = 3\nprogram = [\"loop forever\", \"run 50us\", \"sleep 50us\", \"end\"]\n";

    #[test]
    fn only_constants_that_a_run_asked_for_go_to_their_ends_and_on_both_sides() {
        let scenario = Scenario::parse("f", TEXT, &NoFiles).unwrap();
        let experiment = Experiment::of(&scenario);
        let mut results = experiment.nothing();
        assert!(
            Ends::plan(&experiment.columns[0], &experiment.columns[1]).unwrap().ends.is_empty(),
            "nothing ran"
        );
        experiment.extend(&mut results, 1, 1, false, || true, |_, _| ()).unwrap();
        let plan = Ends::plan(&experiment.columns[0], &experiment.columns[1]).unwrap();
        let has = |name: &str| plan.ends.iter().filter(|end| end.name == name).count();
        assert_eq!(
            (has("cost.context_switch_ns"), has("cost.pipe_ns"), has("bandwidth.core_mbps")),
            (2, 0, 0)
        );
        for end in &plan.ends {
            for at in [end.columns.0, end.columns.1] {
                let machine = &plan.experiment.columns[at].scenario.machine;
                let set = machine.constants().into_iter().find(|(row, _)| row.path() == end.name).unwrap();
                assert_eq!(set.1.get(), end.value);
            }
        }
    }

    #[test]
    fn a_span_names_what_sets_its_ends() {
        let end = |name: &str| End { name: name.to_string(), value: 1, usual: 2, columns: (2, 3) };
        let span = Span::of(0.03, [(end("a"), 0.01), (end("b"), 0.34), (end("c"), 0.2)].into_iter());
        assert_eq!(span, Span { bounds: [0.01, 0.34], by: [Some(end("a")), Some(end("b"))] });
        assert!(span.keeps_sign());
        assert!(!Span::of(0.03, [(end("a"), -0.01)].into_iter()).keeps_sign());
    }
}
