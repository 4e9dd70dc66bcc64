//! All tests of the crate's public interface in one program: separate ones would be linked one by one.

mod changes;
mod clocks;
mod groups;
mod hearing;
mod models;
mod ops;
mod others;
mod pids;
mod pipes;
mod preemption;
mod properties;
mod stream_pinned;
mod user_locks;
