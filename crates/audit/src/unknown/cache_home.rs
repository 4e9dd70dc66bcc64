//! In which cache the threads of a process ran most at the kernel's last evaluation.
//!
//! The kernel evaluates this at the first tick of an epoch in one of the process's threads, from the charges up to then.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use super::Shadow;
use super::about::{About, Reading};

/// Tried where nothing else explains a move.
pub const MOVE_TO_HOME: Reading =
    Reading::new("MOVE_TO_HOME", "a process ran most in the destination's cache");

pub(super) const ABOUT: About = About {
    readings: &[MOVE_TO_HOME],
    ..About::new(
        "CACHE_HOME",
        "in which cache the threads of a process ran most at the kernel's last evaluation",
    )
};

/// Looks for the home of a task's process that explains its move: the destination's cache, or no cache more than others.
/// What explains the move is kept until the next evaluation.
pub fn find(shadow: &mut Shadow, task: TaskId, to: CpuId, mut is_so: impl FnMut(&mut Shadow) -> bool) {
    let process = shadow.sched.task(task).process;
    let Some(before) = shadow.sched.preference(process) else { return };
    for home in [Some(to), None] {
        let other = shadow.sched.preferring(&before, home);
        shadow.sched.set_preference(process, &other);
        if is_so(shadow) {
            return;
        }
    }
    shadow.sched.set_preference(process, &before);
}
