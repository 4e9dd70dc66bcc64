//! Where two kernels diverge on the same workload: the first decision that differs.
//!
//! Up to there both had the same state, so the difference is due to this decision; later differences may
//! follow from it.

mod queues;

use std::cell::RefCell;
use std::collections::BTreeMap;

use schedlab_sched::Kernel;
use schedlab_trace::{Each, Event, Tee};
use serde::Serialize;

pub use queues::OfCpu;
use queues::Queues;

use crate::kernels::is_tree;
use crate::why::{Answer, Question, Why};
use crate::{Error, Row, Scenario};

/// Maximum number of decisions that are examined.
const MOST: usize = 2_000_000;

/// Where two kernels diverge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parting {
    /// Number of equal decisions before it.
    pub same: usize,
    /// What each decided then; `None` if its run was over.
    pub first: [Option<Answer>; 2],
    /// The state of the CPUs that these decisions name: which tasks ran there and which waited.
    pub state: Vec<OfCpu>,
    /// Decisions of each after it.
    pub later: [usize; 2],
    /// The placements from there on, by kind: `wakeup`, `fork`, `exec`.
    pub placements: Vec<Placed>,
}

/// Placements of a kind that both made: the n-th fork, wake-up or exec of a task is paired with the n-th on the other
/// side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// The kind.
    pub kind: &'static str,
    /// How many there are.
    pub paired: usize,
    /// How many of them chose different CPUs.
    pub elsewhere: usize,
}

/// Finds where two kernels diverge in the first run of a row; `None` if they never do.
///
/// The code of a kernel tree and our rules are compared by where tasks are placed and which are picked: a tree does not
/// report everything else as our rules do, and its searches are priced by what its code examines, so times may differ.
///
/// # Errors
/// A run that cannot be finished.
pub fn parting(scenario: &Scenario, row: &Row, kernels: [&Kernel; 2]) -> Result<Option<Parting>, Error> {
    let mixed = is_tree(kernels[0]) != is_tree(kernels[1]);
    let counts = |answer: &Answer| !mixed || matches!(answer.kind, "wakeup" | "fork" | "exec" | "pick");
    let as_other = |a: &Answer, b: &Answer| match mixed {
        true => Answer { time_ns: b.time_ns, ..a.clone() }.decides_as(b),
        false => a.decides_as(b),
    };
    let mut answers = [Vec::new(), Vec::new()];
    let mut more = [0; 2];
    let mut state = Vec::new();
    for (side, kernel) in kernels.into_iter().enumerate() {
        let (first, second) = answers.split_at_mut(1);
        let (answers, other) =
            if side == 0 { (&mut first[0], None) } else { (&mut second[0], Some(&first[0])) };
        let more = &mut more[side];
        let queues = RefCell::new(Queues::default());
        scenario.run_row(kernel, row, |_| {
            let why = Why::new(Question::default(), |answer: Answer| {
                if !counts(&answer) {
                    return;
                }
                // Both had the same state up to here; it is read before the decision takes effect.
                let nth = answers.len();
                if let Some(other) = other
                    && state.is_empty()
                    && other.get(nth).is_none_or(|other: &Answer| !as_other(other, &answer))
                {
                    let of = other.get(nth).into_iter().chain([&answer]);
                    state = queues.borrow().of(&of.flat_map(cpus_of).collect());
                }
                if answers.len() < MOST { answers.push(answer) } else { *more += 1 }
            });
            Tee(why, Each(|event: &Event| queues.borrow_mut().event(event)))
        })?;
    }
    let [a, b] = answers;
    let same = a.iter().zip(&b).take_while(|(a, b)| as_other(a, b)).count();
    if same == a.len() && same == b.len() {
        return Ok(None);
    }
    let later = [a.len() - same + more[0], b.len() - same + more[1]];
    Ok(Some(Parting {
        same,
        placements: placed_elsewhere(&a[same..], &b[same..]),
        state,
        first: [a.get(same).cloned(), b.get(same).cloned()],
        later: later.map(|n| n.saturating_sub(1)),
    }))
}

/// CPUs that a decision names, and the one that made it.
fn cpus_of(answer: &Answer) -> Vec<u16> {
    // The list of rejected CPUs may be a whole machine.
    let said = answer.sentence.split(" Passed over").next().unwrap_or_default();
    let named = said.split("CPU ").skip(1).filter_map(|rest| {
        rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|number| number.parse().ok())
    });
    named.chain([answer.cpu]).collect()
}

/// Number of placements that both sides made, and of those that chose different CPUs.
fn placed_elsewhere(a: &[Answer], b: &[Answer]) -> Vec<Placed> {
    let [a, b] = [a, b].map(|answers| {
        let mut placed: BTreeMap<(&'static str, &str), Vec<&str>> = BTreeMap::new();
        for answer in answers.iter().filter(|answer| ["wakeup", "fork", "exec"].contains(&answer.kind)) {
            let Some((who, to)) = answer.sentence.split_once(": it goes to CPU ") else { continue };
            // Where the task was before is in brackets.
            let who = who.split(" (").next().unwrap_or(who);
            placed.entry((answer.kind, who)).or_default().push(to.split('.').next().unwrap_or(to));
        }
        placed
    });
    let mut kinds: Vec<Placed> = Vec::new();
    for ((kind, who), a) in &a {
        let Some(b) = b.get(&(*kind, *who)) else { continue };
        let elsewhere = a.iter().zip(b).filter(|(a, b)| a != b).count();
        if kinds.last().is_none_or(|last| last.kind != *kind) {
            kinds.push(Placed { kind, paired: 0, elsewhere: 0 });
        }
        let of = kinds.last_mut().expect("one was pushed");
        of.paired += a.len().min(b.len());
        of.elsewhere += elsewhere;
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoFiles;

    #[test]
    fn later_placements_of_the_same_task_are_set_side_by_side() {
        let answer = |kind, sentence: &str| Answer {
            time_ns: 0,
            cpu: 0,
            kind,
            reason: String::new(),
            sentence: sentence.into(),
        };
        let here = [
            answer("wakeup", "a-1 wakes b-2 (previous CPU 3): it goes to CPU 3. Idle."),
            answer("wakeup", "a-1 wakes b-2 (previous CPU 3): it goes to CPU 4. Idle."),
            answer("wakeup", "a-1 wakes c-3 (previous CPU 3): it goes to CPU 4. Idle."),
            answer("pick", "b-2 runs."),
        ];
        let there = [
            answer("wakeup", "a-1 wakes b-2 (previous CPU 5): it goes to CPU 3. Another reason."),
            answer("wakeup", "a-1 wakes b-2 (previous CPU 3): it goes to CPU 5. Idle."),
            answer("wakeup", "a-1 wakes b-2 (previous CPU 3): it goes to CPU 6. Idle."),
        ];
        let wakeups = Placed { kind: "wakeup", paired: 2, elsewhere: 1 };
        assert_eq!(placed_elsewhere(&here, &there), [wakeups]);
    }

    #[test]
    fn kernels_part_at_the_first_decision_that_differs() {
        let text = r#"
            machine = "1x1x4"
            kernels = ["v6.12"]
            [workload]
            model = "hackbench"
            groups = 1
            pairs = 2
            loops = 20
        "#;
        let scenario = Scenario::parse("test", text, &NoFiles).unwrap();
        let kernels = ["v6.12", "v6.10"].map(|name| Kernel::parse(name).unwrap());
        let row = &scenario.rows[0];
        assert_eq!(parting(&scenario, row, [&kernels[0], &kernels[0]]).unwrap(), None);
        let found = parting(&scenario, row, [&kernels[0], &kernels[1]]).unwrap().unwrap();
        let [Some(a), Some(b)] = found.first else { panic!("both go on") };
        assert!(found.state.iter().any(|of| of.cpu == a.cpu && of.runs.is_some()), "{:?}", found.state);
        assert!(found.same > 0);
        assert!(!a.decides_as(&b), "{a:?} {b:?}");
    }
}
