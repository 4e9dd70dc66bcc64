//! The latest switches of a CPU whose clock may have been read long before their events.

use schedlab_units::TaskId;

/// A switch whose clock may have been read long before its event.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The task that stopped, if any; it may have run less.
    pub prev: Option<TaskId>,
    /// The task that ran next; it may have been charged more.
    pub next: Option<TaskId>,
    /// Largest lost time, ns.
    pub most: u64,
    /// Clock of the CPU then.
    pub at: u64,
}

/// The latest switches of a CPU during which others had their turns, the latest last.
pub type Turns = Vec<Turn>;
