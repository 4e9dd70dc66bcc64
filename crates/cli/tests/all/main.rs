//! All tests of the crate's public interface in one program, so that only one is linked.

mod browser;
mod compare;
mod errors;
mod facts;
mod inputs;
mod outputs;
mod own_traces;
mod readme;
mod recordings;
mod sweep;
