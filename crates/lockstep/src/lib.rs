//! A kernel tree's own scheduler and our rules side by side: both are given the same operations, and their whole states are
//! compared after each.
//!
//! [`Operation`] is the language. [`Pair`] applies one to both sides and compares; [`run`] draws a run at random;
//! a run that ends in a difference is made small by [`shrink`] and told by [`Story`].

mod compare;
mod generate;
mod identify;
mod load;
mod nearest;
mod operation;
mod pair;
mod random;
mod run;
mod settle;
mod shrink;
mod story;

pub use compare::Difference;
pub use identify::{CannotIdentify, Identified, Length, identify};
pub use load::{LOADS, Loads};
pub use nearest::{nearest, prepared};
pub use operation::{Operation, Operations};
pub use pair::{Counts, Pair};
pub use run::{Ended, Plan, run};
pub use shrink::shrink;
pub use story::Story;
