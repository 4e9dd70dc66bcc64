//! All tests of the crate's public face in one program: each of its own would be linked alone.

mod audit_floor;
mod damaged;
mod detect_simulated;
mod detect_switches;
mod kernel_tree;
mod milestone;
mod recorded_domains;
mod replay;
mod reproduce;
