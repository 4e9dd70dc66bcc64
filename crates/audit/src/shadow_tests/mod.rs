//! Tests of the shadow that need an audit to drive it.

mod dead;
mod groups;
mod tasks;
