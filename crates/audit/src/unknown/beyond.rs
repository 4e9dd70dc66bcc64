//! Facts beyond their bounds: what would have had to be different for our rules to lead to the kernel's choice.
//!
//! When a decision differs, each fact of the list names its values beyond its bounds, the deciders are asked again under each,
//! and the nearest that leads to the kernel's choice is reported with its size. It is a hint and does not change the verdict.

use std::cell::Cell;
use std::rc::Rc;

use schedlab_sched::{CfsRqId, IdleType, SeId, Wakeup};
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use super::Shadow;
use super::otherwise::{Nearest, Otherwise};
use crate::follow::pairing::{Fate, Pairing};

/// Pairs are tried only among this many nearest facts.
const PAIRED: usize = 40;

/// A decision that differs.
pub struct Case<'a> {
    /// The state in which it was made.
    pub shadow: &'a Shadow,
    /// The events that follow.
    pub pairing: &'a Pairing,
    /// When it was made.
    pub now: Time,
    /// The CPU for which it was made.
    pub this: CpuId,
    /// The task that was placed, moved or chosen.
    pub task: TaskId,
    /// CPUs that may have been in another state.
    pub states: Vec<CpuId>,
    /// CPUs that may have had another number of queued tasks.
    pub queues: Vec<CpuId>,
    /// What was decided.
    pub of: Of,
}

/// What was decided.
pub enum Of {
    /// Where a woken task goes.
    Wakeup {
        /// The wake-up.
        wakeup: Wakeup,
        /// How it ended.
        fate: Fate,
    },
    /// Where a new task goes, or one that executes another program.
    Placement {
        /// The kernel's choice.
        chosen: CpuId,
        /// Our choices.
        ours: Vec<CpuId>,
    },
    /// Which task a pass moves.
    Move {
        /// The CPU from which the task was taken.
        from: CpuId,
        /// The idle type with which the pass is asked.
        idle: Rc<Cell<IdleType>>,
    },
    /// Which of two siblings in a queue comes first.
    Order {
        /// The queue.
        cfs: CfsRqId,
        /// The siblings, ours first.
        two: [SeId; 2],
    },
}

/// The question whether our rules lead to the kernel's choice in a state.
pub type Look<'a> = &'a mut dyn FnMut(&mut Shadow) -> bool;

/// Asks as if a fact had another value.
type AsIf = dyn Fn(&mut Shadow, Look<'_>) -> bool;

/// One value of a fact beyond its bounds.
pub struct Candidate {
    /// What would have had to be different.
    pub otherwise: Otherwise,
    /// Whether it moves tasks and does not only change a number.
    pub moves_tasks: bool,
    /// Whether it is asked after others that are as near.
    pub late: bool,
    as_if: Box<AsIf>,
}

impl Candidate {
    /// A value, and how to ask the shadow as if the fact had it.
    pub fn new(otherwise: Otherwise, as_if: impl Fn(&mut Shadow, Look<'_>) -> bool + 'static) -> Candidate {
        Candidate { otherwise, moves_tasks: false, late: false, as_if: Box::new(as_if) }
    }

    /// The same, moving tasks.
    pub fn moving(
        otherwise: Otherwise,
        as_if: impl Fn(&mut Shadow, Look<'_>) -> bool + 'static,
    ) -> Candidate {
        Candidate { moves_tasks: true, ..Candidate::new(otherwise, as_if) }
    }

    /// The same, asked after others that are as near.
    pub fn late(self) -> Candidate {
        Candidate { late: true, ..self }
    }

    /// Asks the shadow as if the fact had this value.
    pub fn leads(&self, shadow: &mut Shadow, look: Look<'_>) -> bool {
        (self.as_if)(shadow, look)
    }
}

/// Asks with the whole state kept aside and put back, for a change of more than a few numbers.
pub fn with_copy(shadow: &mut Shadow, change: impl FnOnce(&mut Shadow), look: Look<'_>) -> bool {
    let before = shadow.sched.clone();
    change(shadow);
    let leads = look(shadow);
    shadow.sched = before;
    leads
}

/// The nearest value for which `look` is true, or the nearest two if no single one is enough.
pub fn nearest(shadow: &mut Shadow, candidates: Vec<Candidate>, look: Look<'_>) -> Option<Nearest> {
    first(candidates, |values| match values {
        [one] => one.leads(shadow, look),
        [one, other] => one.leads(shadow, &mut |shadow| other.leads(shadow, look)),
        _ => look(shadow),
    })
}

/// The first value for which `leads` is true, or the first two if no single value is enough. Nearer values take precedence.
/// Values that move tasks are tried before the others, because they need correct counts of tasks.
fn first(mut candidates: Vec<Candidate>, mut leads: impl FnMut(&[&Candidate]) -> bool) -> Option<Nearest> {
    candidates.sort_by_key(|candidate| (candidate.otherwise.distance(), candidate.late));
    if let Some(first) = candidates.iter().find(|candidate| leads(&[candidate])) {
        return Some(Nearest::alone(first.otherwise.clone()));
    }
    candidates.truncate(PAIRED);
    let pairs = (0..candidates.len()).flat_map(|far| (0..far).map(move |near| [near, far]));
    let pairs = pairs.map(|pair| pair.map(|at| &candidates[at]));
    let mut pairs = pairs.filter(|[one, other]| !one.otherwise.excludes(&other.otherwise));
    let [first, second] = pairs.find(|pair| {
        let mut pair = *pair;
        pair.sort_by_key(|candidate| !candidate.moves_tasks);
        leads(&pair)
    })?;
    Some(Nearest { first: first.otherwise.clone(), second: Some(second.otherwise.clone()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_value_is_reported_and_two_only_if_no_single_one_is_enough() {
        let cpu = |cpu: u16, times: u64| Otherwise {
            name: "CPU_IDLE",
            had: format!("CPU {cpu} had been idle longer"),
            ns: Some(times * 1000),
            times: Some(times),
        };
        let flag = || Otherwise::plain("SYNC_FLAG", "the flag");
        let all = || {
            let all = [cpu(3, 7), flag(), cpu(1, 2), cpu(2, 9)];
            all.into_iter().map(|otherwise| Candidate::new(otherwise, |shadow, look| look(shadow))).collect()
        };
        let has =
            |values: &[&Candidate], other: &Otherwise| values.iter().any(|value| value.otherwise == *other);
        let alone = first(all(), |values| has(values, &cpu(3, 7)) || has(values, &cpu(2, 9)));
        assert_eq!(alone, Some(Nearest::alone(cpu(3, 7))));
        let without_size = first(all(), |values| has(values, &flag()) || has(values, &cpu(3, 7)));
        assert_eq!(without_size, Some(Nearest::alone(flag())), "before what is far off");
        let both = first(all(), |values| has(values, &cpu(1, 2)) && has(values, &cpu(2, 9)));
        assert_eq!(both, Some(Nearest { first: cpu(1, 2), second: Some(cpu(2, 9)) }));
        assert_eq!(first(all(), |_| false), None);
    }
}
