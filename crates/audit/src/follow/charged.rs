//! What charge events have shown about the run time of a task.

use schedlab_units::Time;

/// Charges so far, by two clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Charged {
    /// Run time of the task here at its last charge event.
    pub(super) at: Option<u64>,
    /// Clock of its CPU at that time, or when it began to run.
    pub(super) when: u64,
    /// Only events charge it.
    pub(super) pinned: bool,
    /// Time of an event that was processed ahead of its turn.
    pub(super) heeded: Option<Time>,
}

impl Charged {
    /// Whether charge events exist for the task.
    pub fn is_told(self) -> bool {
        self.at.is_some()
    }
}
