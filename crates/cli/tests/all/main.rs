//! All tests of the crate's public face in one program: each of its own would be linked alone.

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
