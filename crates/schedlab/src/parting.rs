//! Where two kernels part that run the same: the first decision that is not the same in both.
//!
//! Up to there both had the same state, whatever came before; what comes after follows from it too.

use std::collections::BTreeMap;

use schedlab_sched::Kernel;
use serde::Serialize;

use crate::why::{Answer, Question, Why};
use crate::{Error, Row, Scenario};

/// Decisions that are looked through, at most.
const MOST: usize = 2_000_000;

/// Where two kernels part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parting {
    /// Decisions before it, which are the same.
    pub same: usize,
    /// What each decided then; none if its run was over.
    pub first: [Option<Answer>; 2],
    /// Decisions of each after it.
    pub later: [usize; 2],
    /// Placements from there on that both made, the n-th of a task that forks, wakes or executes a program beside the n-th
    /// of the other side.
    pub paired: usize,
    /// Those of them that chose different CPUs.
    pub elsewhere: usize,
}

/// Finds where two kernels part in the first run of a row; none if they never do.
///
/// # Errors
/// A run that cannot be finished.
pub fn parting(scenario: &Scenario, row: &Row, kernels: [&Kernel; 2]) -> Result<Option<Parting>, Error> {
    let mut answers = [Vec::new(), Vec::new()];
    let mut more = [0; 2];
    for ((kernel, answers), more) in kernels.iter().zip(&mut answers).zip(&mut more) {
        scenario.run_row(kernel, row, |_| {
            Why::new(Question::default(), |answer: Answer| {
                if answers.len() < MOST { answers.push(answer) } else { *more += 1 }
            })
        })?;
    }
    let [a, b] = answers;
    let same = a.iter().zip(&b).take_while(|(a, b)| a.decides_as(b)).count();
    if same == a.len() && same == b.len() {
        return Ok(None);
    }
    let later = [a.len() - same + more[0], b.len() - same + more[1]];
    let (paired, elsewhere) = placed_elsewhere(&a[same..], &b[same..]);
    Ok(Some(Parting {
        same,
        paired,
        elsewhere,
        first: [a.get(same).cloned(), b.get(same).cloned()],
        later: later.map(|n| n.saturating_sub(1)),
    }))
}

/// Number of placements that both sides made, and of those that chose different CPUs.
fn placed_elsewhere(a: &[Answer], b: &[Answer]) -> (usize, usize) {
    let [a, b] = [a, b].map(|answers| {
        let mut placed: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for answer in answers.iter().filter(|answer| ["wakeup", "fork", "exec"].contains(&answer.kind)) {
            let Some((who, to)) = answer.sentence.split_once(": it goes to CPU ") else { continue };
            // Where the task was before is in brackets.
            let who = who.split(" (").next().unwrap_or(who);
            placed.entry((answer.kind, who)).or_default().push(to.split('.').next().unwrap_or(to));
        }
        placed
    });
    let pairs = a.iter().filter_map(|(key, a)| Some(a.iter().zip(b.get(key)?))).flatten();
    pairs.fold((0, 0), |(paired, elsewhere), (a, b)| (paired + 1, elsewhere + usize::from(a != b)))
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
        assert_eq!(placed_elsewhere(&here, &there), (2, 1));
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
        assert!(found.same > 0);
        assert!(!a.decides_as(&b), "{a:?} {b:?}");
    }
}
