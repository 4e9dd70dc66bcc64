//! One file per verb.

pub mod explain;
pub mod features;
pub mod shell;
pub mod topo;
