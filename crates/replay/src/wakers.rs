//! What a replayed task does that wakes another.
//!
//! A recording shows when each came to a wake-up and that the wakee slept. What the waker would have done had it
//! come first, and what it told the kernel of its own plans, are in no event.

use serde::Serialize;

/// What a task does that wakes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wakers {
    /// It sleeps until the wakee comes, if it is first.
    Wait,
    /// It goes on and owes the wake-up, if it is first.
    Owe,
    /// The same, and wakes as one that will sleep soon (`WF_SYNC`), so that a wakee may come to its CPU.
    OweSync,
}

impl Wakers {
    /// Whether they go on.
    pub fn owe(self) -> bool {
        self != Wakers::Wait
    }
}
