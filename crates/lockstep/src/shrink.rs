//! Reduces a failing run.

use crate::run::repeat;
use crate::{Ended, Operation, Operations, Plan};

/// Removes operations that are not needed for the first differing field to differ, in halves, quarters and so on. At
/// most `tries` runs are made.
pub fn shrink(plan: &Plan, ended: &Ended, tries: usize) -> Operations {
    let Some(first) = ended.differ.first() else { return ended.operations.clone() };
    let fails = |operations: &[Operation]| {
        let ended = repeat(plan, operations, false).ok()?.0;
        ended.differ.iter().any(|difference| difference.field == first.field).then_some(ended.operations)
    };
    let mut best = ended.operations.clone();
    let mut part = best.len() / 2;
    let mut left = tries;
    while part > 0 {
        let mut from = 0;
        while from < best.len() {
            if left == 0 {
                return best;
            }
            left -= 1;
            let to = (from + part).min(best.len());
            let without = joined(best[..from].iter().chain(&best[to..]));
            match fails(&without) {
                Some(operations) if operations.len() < best.len() => best = operations,
                _ => from = to,
            }
        }
        part /= 2;
    }
    best
}

/// Merges consecutive pauses.
fn joined<'a>(operations: impl Iterator<Item = &'a Operation>) -> Operations {
    let mut all = Operations::new();
    for operation in operations {
        match (all.last_mut(), operation) {
            (Some(Operation::Pass(before)), Operation::Pass(ns)) => *before += ns,
            _ => all.push(operation.clone()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_topology::CpuId;

    #[test]
    fn pauses_are_joined() {
        let sleep = Operation::Sleep { cpu: CpuId(0) };
        let operations = [Operation::Pass(1), Operation::Pass(2), sleep.clone(), Operation::Pass(3)];
        assert_eq!(joined(operations.iter()), [Operation::Pass(3), sleep, Operation::Pass(3)]);
    }
}
