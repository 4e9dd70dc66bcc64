//! Where two kernels part that run the same: the first decision that is not the same in both.
//!
//! Up to there both had the same state, whatever came before; what comes after follows from it too.

use schedlab_sched::Kernel;

use crate::why::{Answer, Question, Why};
use crate::{Error, Row, Scenario};

/// Decisions that are looked through, at most.
const MOST: usize = 2_000_000;

/// Where two kernels part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parting {
    /// Decisions before it, which are the same.
    pub same: usize,
    /// What each decided then; none if its run was over.
    pub first: [Option<Answer>; 2],
    /// Decisions of each after it.
    pub later: [usize; 2],
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
    let same = a.iter().zip(&b).take_while(|(a, b)| decides_as(a, b)).count();
    if same == a.len() && same == b.len() {
        return Ok(None);
    }
    let later = [a.len() - same + more[0], b.len() - same + more[1]];
    Ok(Some(Parting {
        same,
        first: [a.get(same).cloned(), b.get(same).cloned()],
        later: later.map(|n| n.saturating_sub(1)),
    }))
}

/// Whether two decisions are the same, whatever is given as their reason.
fn decides_as(a: &Answer, b: &Answer) -> bool {
    let what = |answer: &Answer| answer.sentence.split(". ").next().map(str::len).unwrap_or_default();
    (a.time_ns, a.cpu, a.kind) == (b.time_ns, b.cpu, b.kind) && a.sentence[..what(a)] == b.sentence[..what(b)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoFiles;

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
        assert!(!decides_as(&a, &b), "{a:?} {b:?}");
    }
}
