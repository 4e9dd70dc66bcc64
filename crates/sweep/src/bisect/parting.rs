//! The first decision in which two runs differ.

use std::cell::RefCell;

use schedlab::machine::Machine;
use schedlab::sched::Kernel;
use schedlab::why::{Answer, Question, Why};
use schedlab::{Limits, Row, run_one};

use crate::error::Error;

/// Maximum number of compared decisions; runs that differ later are reported as such.
const MOST: usize = 200_000;

/// The first decision of each kernel that differs. If all are the same, the first with another reason or other numbers.
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
    let pairs = || one.iter().zip(&other);
    let parted = pairs().find(|(a, b)| !a.decides_as(b)).or_else(|| pairs().find(|(a, b)| a != b));
    Ok(parted.map(|(one, other)| [one.clone(), other.clone()]))
}

#[cfg(test)]
mod tests {
    use schedlab::{NoFiles, Scenario};

    use super::*;

    #[test]
    fn a_decision_that_falls_alike_is_passed_over() {
        // Both kernels place the first threads on the same CPUs, one with a lower limit of imbalance.
        let text = "machine = \"zen3-2s\"\nkernels = [\"v5.18\"]\nlimit = \"6ms\"\n[workload]\nmodel = \"stream\"\n\
                    threads = 8\ncpus = \"0,16,32,48,64,80,96,112\"\nstart_cpu = 16\n";
        let scenario = Scenario::parse("stream.toml", text, &NoFiles).unwrap();
        let kernels = ["v5.18", "v5.18+NUMA_IMB_AFFINITY"].map(|name| Kernel::parse(name).unwrap());
        let found = first_parting(
            &scenario.machine,
            &scenario.rows[0],
            scenario.limits(),
            [&kernels[0], &kernels[1]],
        );
        let [before, after] = found.unwrap().unwrap();
        assert!(!before.decides_as(&after), "{before:?} {after:?}");
        let same = first_parting(
            &scenario.machine,
            &scenario.rows[0],
            scenario.limits(),
            [&kernels[0], &kernels[0]],
        );
        assert!(same.unwrap().is_none());
    }
}
