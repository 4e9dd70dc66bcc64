//! Whether some core of a cache is known to be idle.
//!
//! Failed searches clear the mark, and it is unknown which of them were made.

use schedlab_sched::{SharedDomain, Supposed};

use super::about::About;
use super::beyond::{Candidate, Case, Of};
use super::idle_scan_limit::with_caches;
use super::otherwise::Otherwise;

const NAME: &str = "IDLE_CORES";

pub(super) const ABOUT: About = About { beyond, ..About::new(NAME, "whether an idle core is known") };

/// The opposite of the mark of a cache.
pub fn other_mark(llc: &SharedDomain) -> Supposed<'static> {
    Supposed { has_idle_cores: Some(!llc.has_idle_cores), ..Supposed::NOTHING }
}

fn beyond(case: &Case<'_>, candidates: &mut Vec<Candidate>) {
    if matches!(case.of, Of::Wakeup { .. }) && case.shadow.sched.domains.smt_active {
        let had = Otherwise::plain(NAME, "the mark of idle cores had been the opposite");
        candidates.push(Candidate::new(had, |shadow, look| {
            with_caches(shadow, |llc| llc.has_idle_cores = !llc.has_idle_cores, look)
        }));
    }
}
