//! Facts that no event shows: their list, the assumptions about them, and how far off they would have to be.

pub mod deadlines;
pub mod delayed_dequeue;
pub mod idle_scan_limit;
pub mod idle_stamp;
pub mod in_motion;
pub mod learned;
pub mod list;
pub mod loads;
pub mod lost_turn;
pub mod otherwise;
pub mod quota;
pub mod sync_flag;
pub mod unmet;
pub mod virtual_time;
pub mod wakee_flips;
pub mod yields;

/// The shadow, and what is learned beside it.
pub type Shadow = crate::follow::shadow::Shadow<learned::Learned>;
