//! The result of a CPU that looked for work, cited if it stays idle.

use schedlab_topology::CpuId;
use schedlab_trace::{Balance, Newidle, Reason};
use schedlab_units::Time;

use super::finding::at;

/// The result of a CPU that looked for work.
#[derive(Clone, Debug)]
pub(super) struct Looked {
    /// When.
    pub time: Time,
    /// The rule that ended it.
    pub reason: Box<str>,
    /// On which occasion and where, in words.
    how: Box<str>,
}

impl Looked {
    /// A pass over a domain.
    pub fn balance(time: Time, balance: &Balance) -> Looked {
        let groups = match (balance.local.is_empty(), balance.busiest.is_empty()) {
            (true, _) => String::new(),
            (false, true) => format!(" (its group {})", balance.local),
            (false, false) => format!(" (its group {}, the busiest {})", balance.local, balance.busiest),
        };
        let how = format!("{}, in {}{groups}", balance.idle.as_str().replace('_', " "), balance.domain);
        Looked { time, reason: balance.reason.as_ref().into(), how: how.into() }
    }

    /// What a CPU did before it went idle.
    pub fn newidle(time: Time, newidle: &Newidle) -> Looked {
        Looked { time, reason: newidle.reason.as_ref().into(), how: "about to go idle".into() }
    }

    /// The decision that left a CPU idle, as a line.
    pub fn cited(&self, cpu: CpuId) -> String {
        let reason = Reason::ALL.iter().find(|reason| reason.name() == &*self.reason);
        let sentence = reason.map_or(String::new(), |reason| format!(" {}", reason.sentence()));
        format!("{} CPU {cpu}, {}, takes nothing.{sentence} [{}]", at(self.time), self.how, self.reason)
    }
}
