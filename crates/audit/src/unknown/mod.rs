//! What no event shows: the list of the facts, what is supposed about them, and how far off they would have to be.

pub mod in_motion;
pub mod list;
pub mod lost_turn;
pub mod otherwise;
pub mod sync_flag;
