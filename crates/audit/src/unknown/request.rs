//! Whether the running task was asked to reschedule; it went to sleep before that showed. Such an answer is undecided.

use super::about::About;

pub(super) const ABOUT: About =
    About::new("REQUEST", "whether the running task was asked to reschedule, which no event showed");
