//! All tests of the crate's public interface in one program, so that only one is linked.

mod audit_floor;
mod damaged;
mod detect_simulated;
mod detect_switches;
mod kernel_tree;
mod kstep;
mod milestone;
mod recorded_domains;
mod replay;
mod reproduce;
