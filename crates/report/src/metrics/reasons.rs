//! How often each rule decided.

use std::collections::BTreeMap;

use schedlab_trace::{Decided, Event, Kind, Sink, What};

/// Counts of reasons, for wake-ups, forks, balancing, preemption. Needs decisions, or their annotations in a
/// recorded trace.
#[derive(Clone, Debug, Default)]
pub struct Reasons {
    /// By kind of decision and number of the rule, with its name.
    counts: [Vec<(&'static str, u64)>; What::COUNT],
    /// Those that were read from a file.
    read: BTreeMap<(&'static str, String), u64>,
}

impl Reasons {
    /// Each reason of a kind of decision (`wakeup`, `fork`, `exec`, `balance`, `newidle`, `preemption`),
    /// most frequent first.
    pub fn of(&self, kind: &str) -> Vec<(&str, u64)> {
        let mut all: BTreeMap<&str, u64> = BTreeMap::new();
        for ((_, reason), n) in self.read.iter().filter(|((of, _), _)| *of == kind) {
            *all.entry(reason).or_default() += n;
        }
        for what in What::ALL.iter().filter(|what| what.as_str() == kind) {
            for &(reason, n) in self.counts[what.index()].iter().filter(|&&(_, n)| n > 0) {
                *all.entry(reason).or_default() += n;
            }
        }
        let mut found: Vec<(&str, u64)> = all.into_iter().collect();
        found.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        found
    }

    fn read(&mut self, kind: What, reason: &str) {
        let kind = kind.as_str();
        let known = self.read.iter_mut().find(|((k, r), _)| *k == kind && r == reason);
        match known {
            Some((_, n)) => *n += 1,
            None => _ = self.read.insert((kind, reason.to_owned()), 1),
        }
    }
}

impl Sink for Reasons {
    fn event(&mut self, event: &Event) {
        match &event.kind {
            Kind::Placement(p) => self.read(What::Placement(p.how), &p.reason),
            Kind::Balance(b) => self.read(What::Balance, &b.reason),
            Kind::Newidle(n) => self.read(What::Newidle, &n.reason),
            Kind::Preemption(p) => self.read(What::Preemption, &p.reason),
            _ => {}
        }
    }

    #[inline]
    fn decided(&mut self, decided: &Decided) {
        let counts = &mut self.counts[decided.what.index()];
        let number = decided.reason as usize;
        if number >= counts.len() {
            counts.resize(number + 1, ("", 0));
        }
        let count = &mut counts[number];
        *count = (decided.reason.name(), count.1 + 1);
    }

    fn wants_reasons(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_topology::CpuId;
    use schedlab_trace::{Comm, Flags, How, Preemption, Reason};
    use schedlab_units::{Pid, Time};

    const REASON: Reason = Reason::KeepProtected;

    /// A rule's name occurs once, whether it was heard or read.
    #[test]
    fn what_is_heard_and_what_is_read_count_alike() {
        let mut reasons = Reasons::default();
        let decided = |what| Decided { time: Time(5), what, reason: REASON };
        for what in [What::Preemption, What::Preemption, What::Placement(How::Fork)] {
            reasons.decided(&decided(what));
        }
        for reason in [REASON.name(), "A_RULE_OF_LATER"] {
            let preemption = Preemption { reason: reason.into(), ..Preemption::default() };
            reasons.event(&Event {
                time: Time(7),
                cpu: CpuId(0),
                pid: Pid(1),
                tgid: None,
                comm: Comm::default(),
                flags: Flags::NONE,
                kind: Kind::Preemption(Box::new(preemption)),
            });
        }
        assert_eq!(reasons.of("preemption"), [(REASON.name(), 3), ("A_RULE_OF_LATER", 1)]);
        assert_eq!(reasons.of("fork"), [(REASON.name(), 1)]);
        assert_eq!(reasons.of("wakeup"), []);
    }
}
