//! A kernel tree's own scheduler and our rules side by side: both receive the same operations, and their whole states
//! are compared after each one.
//!
//! [`Operation`] is the language. [`Pair`] applies one to both sides and compares; [`run`] draws a random run; a run
//! that ends in a difference is reduced by [`shrink`] and described by [`Story`].

mod compare;
mod generate;
mod hotplug;
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
mod timers;

pub use compare::Difference;
pub use identify::{CannotIdentify, Identified, Length, identify};
pub use load::{LOADS, Loads};
pub use nearest::{nearest, prepared};
pub use operation::{Operation, Operations};
pub use pair::{Counts, Pair, policy_number};
pub use run::{Ended, Plan, run};
pub use shrink::shrink;
pub use story::Story;
