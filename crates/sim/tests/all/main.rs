//! All tests of the crate's public face in one program: each of its own would be linked alone.

mod changes;
mod clocks;
mod groups;
mod hearing;
mod models;
mod ops;
mod others;
mod pids;
mod preemption;
mod properties;
mod stream_pinned;
mod user_locks;
