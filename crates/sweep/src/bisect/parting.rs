//! The first decision in which two runs part.

use std::cell::RefCell;

use schedlab::machine::Machine;
use schedlab::sched::Kernel;
use schedlab::why::{Answer, Question, Why};
use schedlab::{Limits, Row, run_one};

use crate::error::Error;

/// Decisions that are compared; runs that part later are said to.
const MOST: usize = 200_000;

/// The first decision that a run under one kernel makes and that under the other does not, of each.
///
/// # Errors
/// A run that fails.
pub fn first_parting(
    machine: &Machine,
    row: &Row,
    limits: Limits,
    kernels: [&Kernel; 2],
) -> Result<Option<[Answer; 2]>, Error> {
    let decisions = |kernel: &Kernel| -> Result<Vec<Answer>, Error> {
        let answers = RefCell::new(Vec::new());
        let tell = |answer| {
            let mut answers = answers.borrow_mut();
            if answers.len() < MOST {
                answers.push(answer);
            }
        };
        run_one(machine, kernel, row, limits, |_| Why::new(Question::default(), tell)).map(drop)?;
        Ok(answers.into_inner())
    };
    let [one, other] = [decisions(kernels[0])?, decisions(kernels[1])?];
    let parted = one.into_iter().zip(other).find(|(one, other)| one != other);
    Ok(parted.map(|(one, other)| [one, other]))
}
