//! Tests of the shadow that need an audit to drive it.

mod groups;
mod tasks;
