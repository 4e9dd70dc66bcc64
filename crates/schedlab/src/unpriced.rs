//! Effects of a change that have no price, which may be why a comparison shows no difference.

use schedlab_machine::{Law, Machine, Mechanism};
use schedlab_sched::Kernel;

use crate::attribute::differences;
use crate::columns::{Column, Experiment};
use crate::kernels::is_tree;

/// When a rule acts on something without a price.
#[derive(Clone, Copy, PartialEq)]
enum When {
    /// Always, but it is a few instructions: not a reason to doubt that nothing differs.
    Slight,
    /// The workload does not specify what its tasks share.
    NothingShared,
    /// Idle CPUs have no idle states to exit.
    NoIdleStates,
    /// The clock model does not use what the scheduler computes, or clocks are constant.
    Clocks,
}

/// Rules, and those of their effects that have no price.
const RULES: &[(&str, When, &str)] = &[
    (
        "SCHED_CACHE",
        When::NothingShared,
        "what threads of a process gain by sharing a cache: footprints are of one task each, and the workload does not say what \
         its tasks share (read-shared and write-shared of a task, shared of the model barrier)",
    ),
    ("CALC_DELTA_DIVIDES", When::Slight, "arithmetic of the scheduler"),
    ("PARANOID_AVG", When::Slight, "arithmetic of the scheduler"),
    ("UTIL_EST", When::Clocks, "clocks that follow utilisation: they follow the time that CPUs are busy"),
    (
        "UTIL_EST_FASTUP",
        When::Clocks,
        "clocks that follow utilisation: they follow the time that CPUs are busy",
    ),
    (
        "FREQ_INVARIANCE",
        When::Clocks,
        "clocks that follow utilisation: they follow the time that CPUs are busy",
    ),
    ("TICK_STOP_PREDICTED", When::NoIdleStates, "ways back from idle: this machine has no idle states"),
    ("IDLE_SHORTCUT", When::NoIdleStates, "ways back from idle: this machine has no idle states"),
];

/// A difference without a price.
struct Unpriced {
    /// It cannot matter.
    slight: bool,
    line: String,
}

/// A line for each rule in which a column's kernel differs from the first and whose effect has no price.
pub fn unpriced(experiment: &Experiment) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for Unpriced { line, .. } in by_column(experiment).into_iter().flatten() {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Whether each column has such a difference that can matter, so that equal figures do not say that there is no
/// difference.
pub fn hides_a_difference(experiment: &Experiment) -> Vec<bool> {
    by_column(experiment).iter().map(|lines| lines.iter().any(|unpriced| !unpriced.slight)).collect()
}

fn by_column(experiment: &Experiment) -> Vec<Vec<Unpriced>> {
    let base = experiment.columns.first().expect("there is a column");
    let of = |other: &Column| {
        let shares = other.scenario.rows.iter().any(|row| row.workload.shares_memory());
        of_kernels(base.kernel(), other.kernel(), &other.scenario.machine, shares)
    };
    experiment.columns.iter().map(of).collect()
}

fn of_kernels(base: &Kernel, other: &Kernel, machine: &Machine, shares: bool) -> Vec<Unpriced> {
    if is_tree(base) || is_tree(other) {
        return match base.name == other.name {
            true => Vec::new(),
            false => vec![Unpriced {
                slight: false,
                line: "the code of a tree: instructions that a patch adds, and lines of plain data; locks, atomics and what it \
                       decides and examines are priced"
                    .to_string(),
            }],
        };
    }
    let differ = differences(base, other);
    let has_none = |when: When| match when {
        When::Slight => true,
        When::NothingShared => !shares,
        When::NoIdleStates => !machine.has(Mechanism::IdleStates) || machine.idle.states().is_empty(),
        When::Clocks => machine.has(Mechanism::Frequency) && machine.law != Law::Fixed,
    };
    let rules =
        RULES.iter().filter(|(name, when, _)| differ.iter().any(|d| d.name == *name) && has_none(*when));
    rules
        .map(|(name, when, what)| Unpriced { slight: *when == When::Slight, line: format!("{name}: {what}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find_machine;
    use crate::scenario::NoFiles;

    #[test]
    fn what_has_no_price_is_said_where_kernels_differ_in_it() {
        let kernel = |name: &str| Kernel::parse(name).unwrap();
        let machine = find_machine("2x2", &NoFiles).unwrap();
        let of = |base: &str, other: &str| of_kernels(&kernel(base), &kernel(other), &machine, false);
        let lines =
            |base: &str, other: &str| of(base, other).into_iter().map(|of| of.line).collect::<Vec<_>>();
        assert!(
            lines("v7.2", "v7.2+NO_SCHED_CACHE")[0]
                .starts_with("SCHED_CACHE: what threads of a process gain")
        );
        assert!(of_kernels(&kernel("v7.2"), &kernel("v7.2+NO_SCHED_CACHE"), &machine, true).is_empty());
        assert!(lines("v6.12", "v6.12+NO_IDLE_SHORTCUT")[0].contains("no idle states"));
        assert_eq!(lines("v6.12", "v6.12+NO_SIS_UTIL"), Vec::<String>::new());
        let with_states = find_machine("2x2:class=zen3", &NoFiles).unwrap();
        assert!(
            of_kernels(&kernel("v6.12"), &kernel("v6.12+NO_IDLE_SHORTCUT"), &with_states, false).is_empty()
        );
        let slight = |base: &str, other: &str| of(base, other).iter().all(|of| of.slight);
        assert!(slight("v6.12", "v6.12+CALC_DELTA_DIVIDES") && !slight("v7.2", "v7.2+NO_SCHED_CACHE"));
        for (name, ..) in RULES {
            assert!(
                crate::Rulebook::of(&kernel("v7.2")).entries.iter().any(|entry| entry.name == *name),
                "{name}"
            );
        }
    }
}
