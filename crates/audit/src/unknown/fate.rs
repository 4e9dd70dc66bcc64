//! The outcome of a wake-up whose end is not in the trace. Such a wake-up is undecided.

use super::about::About;

pub(super) const ABOUT: About = About::new("FATE", "the end of the wake-up, which is not in the trace");
