//! Whether a slice ended: the trace does not contain the tick or timer that checked.

use schedlab_sched::{FairPolicy, SeId, calc_delta_fair};
use schedlab_units::TaskId;

use super::Shadow;
use super::about::About;
use super::otherwise::{Nearest, Otherwise};

const TURN_END: &str = "TURN_END";

pub(super) const ABOUT: About = About {
    further: &[(TURN_END, "the slice of the running task had ended sooner, or later")],
    ..About::new("SLICE_END", "when a tick or timer checked the slice")
};

/// The turn of a task had ended sooner or later by `by` ns; `error` is the assumed error of that time.
pub fn had_ended(sooner: bool, by: u64, error: u64) -> Nearest {
    let had = if sooner { "the turn had ended sooner" } else { "the turn had ended later" };
    Nearest::alone(Otherwise::plain(TURN_END, had).by(by, error))
}

impl Shadow {
    /// Whether a task began its request so recently that the kernel may only just have found the previous one to be over.
    pub fn just_renewed(&self, task: TaskId) -> bool {
        let mut levels = std::iter::successors(Some(SeId(task.0)), |&se| self.sched.se(se).parent);
        levels.any(|se| {
            let entity = self.sched.se(se);
            let left = entity.deadline.wrapping_sub(entity.vruntime) as i64;
            let used = calc_delta_fair(entity.slice, &entity.load) as i64 - left;
            let eevdf = self.sched.kernel.rules.policy == FairPolicy::Eevdf;
            eevdf && (0..=self.error_of(se) as i64).contains(&used)
        })
    }
}
