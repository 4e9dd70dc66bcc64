//! Two traces of one program, side by side.
//!
//! Either may be a recording or a simulated run. [`Side`] folds one trace. [`Difference::of`] matches the tasks of two
//! sides by name, parent and order of creation, finds the first decision that differs, and compares the rest: reasons,
//! places, waits, CPU time, counts. One trace is one run, so each count is shown with the difference that chance alone
//! would cause.

mod chance;
mod difference;
mod matching;
mod side;
#[cfg(test)]
mod tests;
mod text;

pub use chance::Chance;
pub use difference::{Counted, Difference, KindOfTask, Parting, ReasonShare};
pub use matching::{Match, matched};
pub use side::{Counts, Side, Step, TaskOfSide};
