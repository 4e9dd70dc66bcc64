//! Virtual times that are closer than event times can distinguish.

mod answer;
mod first;
mod learn;
mod order;

use schedlab_sched::{FairPolicy, SeId, calc_delta_fair};
use schedlab_units::TaskId;

pub use self::answer::answer_is_open;
pub use self::first::{Waiting, may_come_first};
pub use self::learn::{Pick, learn_from_answer, learn_from_pick};
pub use self::order::nearest;
use super::Shadow;
use super::about::{About, Reading};
use super::beyond::{Candidate, Case, Of};
use super::otherwise::Otherwise;

const VRUNTIME: &str = "VRUNTIME";
const DEADLINE: &str = "DEADLINE";
const PLACED: &str = "PLACED";
const AVERAGE: &str = "AVERAGE";
const PROTECTION: &str = "PROTECTION";

/// Widens the errors of emulated CPUs.
pub const HELD_UP: Reading = Reading::new("HELD_UP", "a CPU read its clock and was held up before its event");

pub(super) const ABOUT: About = About {
    readings: &[HELD_UP],
    further: &[
        (VRUNTIME, "the virtual time of a task"),
        (DEADLINE, "the deadline of a task's request (EEVDF)"),
        (PLACED, "where a task was placed: its virtual time and its deadline together"),
        (AVERAGE, "the virtual times of the waiting tasks apart from the two that are compared"),
        (PROTECTION, "the running task had no longer been protected"),
    ],
    beyond,
    ..About::new("VIRTUAL_TIME", "virtual times that are closer than event times can distinguish")
};

/// Error of virtual times under EEVDF where the recording contains all charges, ns. An average is rounded relative to a
/// base that moves at updates which leave no event, and each task placed by that average keeps the error.
const ROUNDING: u64 = 64;

impl Shadow {
    /// How far the virtual time of an entity is likely to be off. The upper bound of its errors grows with each switch,
    /// but picks and preemption answers correct a time that is off by more than they allow, so a CPU that loses its
    /// turn at a bad moment is noticed before that happens often. A task's charges are therefore likely to be off by
    /// one turn at most. The error from before the recording is added, and so is the one left by a change of weight.
    pub fn likely_error(&self, se: SeId) -> u64 {
        let most = self.error_of(se);
        if self.sched.se(se).parent.is_some() || !se.is_task() || self.runtime_told {
            return most;
        }
        let turn = calc_delta_fair(self.slack.time().0, &self.sched.se(se).load);
        most.min(turn + self.known(TaskId(se.0)).lag_error)
    }

    /// The error that is assumed for an entity's virtual time: the likely one, or the largest one where nothing is
    /// inferred from it.
    pub fn trusted_error(&self, se: SeId) -> u64 {
        if self.learned.trusts {
            return self.likely_error(se);
        }
        let rounds = self.runtime_told && self.sched.kernel.rules.policy == FairPolicy::Eevdf;
        self.error_of(se) + if rounds { ROUNDING } else { 0 }
    }
}

/// The running task had no longer been protected. Virtual times themselves are moved by [`nearest`].
fn beyond(case: &Case<'_>, candidates: &mut Vec<Candidate>) {
    let Of::Order { cfs, two: [one, _] } = case.of else { return };
    let sched = &case.shadow.sched;
    if sched.kernel.rules.policy == FairPolicy::Cfs || sched.cfs(cfs).curr != Some(one) {
        return;
    }
    let had = Otherwise::plain(PROTECTION, "the running task had not been protected");
    candidates.push(Candidate::new(had, move |shadow, look| {
        let (rules, before) = (shadow.sched.kernel.rules, shadow.sched.se(one).clone());
        shadow.sched.se_mut(one).cancel_protection(&rules);
        let leads = look(shadow);
        *shadow.sched.se_mut(one) = before;
        leads
    }));
}
