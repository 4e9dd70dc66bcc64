//! Matches the tasks of one trace with those of another.
//!
//! Pids differ between runs. Two tasks match if they have the same name, their parents match or have the same name, and
//! they have the same rank in the order of creation among such tasks. The remaining tasks are matched by name and order
//! only.

use std::collections::BTreeMap;

use schedlab_trace::Comm;

use crate::side::{Side, TaskOfSide};

/// A task that is in both traces, by its index in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// In the first.
    pub a: usize,
    /// In the second.
    pub b: usize,
}

/// The tasks that both traces have, in the order of the first.
pub fn matched(a: &Side, b: &Side) -> Vec<Match> {
    let mut taken_a = vec![false; a.tasks.len()];
    let mut taken_b = vec![false; b.tasks.len()];
    let mut found = Vec::new();
    pair(a, b, &mut taken_a, &mut taken_b, &mut found, with_parent);
    pair(a, b, &mut taken_a, &mut taken_b, &mut found, |_, task| Some((task.comm, Comm::default())));
    found.sort_by_key(|pair| pair.a);
    found
}

type Key = (Comm, Comm);

fn with_parent(side: &Side, task: &TaskOfSide) -> Option<Key> {
    Some((task.comm, side.tasks[task.parent?].comm))
}

/// Pairs tasks of equal key in order.
fn pair(
    a: &Side,
    b: &Side,
    taken_a: &mut [bool],
    taken_b: &mut [bool],
    found: &mut Vec<Match>,
    key: impl Fn(&Side, &TaskOfSide) -> Option<Key>,
) {
    let mut waiting: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for (index, task) in b.tasks.iter().enumerate().rev() {
        if !taken_b[index]
            && !task.comm.is_empty()
            && let Some(key) = key(b, task)
        {
            waiting.entry(key).or_default().push(index);
        }
    }
    for (index, task) in a.tasks.iter().enumerate() {
        if taken_a[index] || task.comm.is_empty() {
            continue;
        }
        if let Some(other) = key(a, task).and_then(|key| waiting.get_mut(&key)?.pop()) {
            (taken_a[index], taken_b[other]) = (true, true);
            found.push(Match { a: index, b: other });
        }
    }
}
