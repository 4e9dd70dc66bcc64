//! Virtual times that are closer than event times can distinguish.

use schedlab_sched::{FairPolicy, SeId, calc_delta_fair};
use schedlab_units::TaskId;

use super::Shadow;

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
