//! How often each rule decided.

use std::collections::BTreeMap;

use schedlab_trace::{Event, Kind, Sink};

/// Counts of reasons, for wake-ups, forks, balancing, preemption. Needs the
/// annotations of decisions.
#[derive(Clone, Debug, Default)]
pub struct Reasons {
    counts: BTreeMap<(&'static str, String), u64>,
}

impl Reasons {
    /// Each reason of a kind of decision (`wakeup`, `fork`, `exec`, `balance`, `preemption`),
    /// most frequent first.
    pub fn of(&self, kind: &str) -> Vec<(&str, u64)> {
        let mut found: Vec<(&str, u64)> =
            self.counts.iter().filter(|((k, _), _)| *k == kind).map(|((_, r), n)| (r.as_str(), *n)).collect();
        found.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        found
    }

    fn count(&mut self, kind: &'static str, reason: &str) {
        if let Some(n) = self.counts.iter_mut().find(|((k, r), _)| *k == kind && r == reason).map(|(_, n)| n)
        {
            *n += 1;
        } else {
            self.counts.insert((kind, reason.to_owned()), 1);
        }
    }
}

impl Sink for Reasons {
    fn event(&mut self, event: &Event) {
        match &event.kind {
            Kind::Placement(p) => self.count(p.how.as_str(), &p.reason),
            Kind::Balance(b) => self.count("balance", &b.reason),
            Kind::Preemption(p) => self.count("preemption", &p.reason),
            _ => {}
        }
    }

    fn wants_decisions(&self) -> bool {
        true
    }
}
