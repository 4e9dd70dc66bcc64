//! Folds over a trace: each is a sink that keeps a few numbers.
//!
//! They know nothing of a simulator, so a recorded trace gives the same figures
//! as a simulated one. Each says which events it needs.

mod busy;
mod counts;
mod latency;
mod marks;
mod migrations;
mod placements;
mod reasons;

pub use busy::Busy;
pub use counts::Counts;
pub use latency::WakeupLatency;
pub use marks::{MarkRule, Marks};
pub use migrations::{Cause, Causes, Migrations};
pub use placements::{NewTask, Placements};
pub use reasons::Reasons;

use schedlab_units::Pid;

/// A value per task, grown as tasks are seen.
///
/// A trace has dense pids for the most part, so a vector beats a map.
#[derive(Clone, Debug, Default)]
pub struct PidTable<T>(Vec<T>);

impl<T: Clone + Default> PidTable<T> {
    /// The value of a task.
    pub fn get(&self, pid: Pid) -> Option<&T> {
        self.0.get(usize::try_from(pid.0).ok()?)
    }

    /// The value of a task to change, made if need be. Pids are never negative in
    /// a trace; one that is counts as the idle task.
    pub fn entry(&mut self, pid: Pid) -> &mut T {
        let index = usize::try_from(pid.0).unwrap_or(0);
        if index >= self.0.len() {
            self.0.resize(index + 1, T::default());
        }
        &mut self.0[index]
    }

    /// Every task up to the highest seen, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Pid, &T)> {
        self.0.iter().enumerate().map(|(i, v)| (Pid(i as i32), v))
    }
}
