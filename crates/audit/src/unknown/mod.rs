//! Facts that no event shows: their list, the assumptions about them, and how far off they would have to be.

pub mod in_motion;
pub mod list;
pub mod lost_turn;
pub mod otherwise;
pub mod sync_flag;
