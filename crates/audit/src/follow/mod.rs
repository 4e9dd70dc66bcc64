//! The shadow: a scheduler that is kept in step with a recording. It knows no verdict and supposes nothing.

pub mod averages;
pub mod charged;
pub mod clocks;
pub mod dead;
pub mod due_ticks;
pub mod errors;
pub mod floors;
pub mod grouping;
pub mod hotplug;
pub mod in_groups;
pub mod leaving;
pub mod meeting;
pub mod pairing;
pub mod pids;
pub mod queues;
pub mod running;
pub mod runtime;
pub mod shadow;
pub mod slack;
pub(crate) mod unmoved;
pub mod unseen;
pub mod watch;
