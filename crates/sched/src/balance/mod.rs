//! Moving tasks between CPUs: periodic, newly idle, nohz and active balancing.

mod group_type;

pub use group_type::{GroupType, SgLbStats};
