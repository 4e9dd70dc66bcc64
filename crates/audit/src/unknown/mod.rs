//! What no event shows: the facts, what is supposed about them, and how far off they would have to be.

pub mod fact;
pub mod hidden;
pub mod in_motion;
pub mod lost_turn;
pub mod readings;
pub mod sync_flag;
