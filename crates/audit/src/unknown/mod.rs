//! Facts that no event shows, a file for each: its name, its sentence, the values that it may have, how a recording teaches it, and
//! how it is asked beyond its bounds. `list.rs` is the list of them.

pub mod about;
pub mod balance_time;
pub mod beyond;
pub mod cache_home;
pub mod cpu_rotation;
pub mod deadlines;
pub mod delayed_dequeue;
pub mod fate;
pub mod groups;
pub mod idle_cores;
pub mod idle_scan_limit;
pub mod idle_stamp;
pub mod imbalance_mark;
pub mod in_motion;
pub mod learned;
pub mod list;
pub mod loads;
pub mod lost_turn;
pub mod otherwise;
pub mod quota;
pub mod recent_cpu;
pub mod request;
pub mod slice_end;
pub mod sync_flag;
pub mod task_order;
pub mod unmet;
pub mod unseen_move;
pub mod unseen_switch;
pub mod virtual_time;
pub mod wakee_flips;
pub mod worker_pool;
pub mod yields;

/// The shadow, and what is learned beside it.
pub type Shadow = crate::follow::shadow::Shadow<learned::Learned>;
