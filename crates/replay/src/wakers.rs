//! What wakers do that come before their wakee sleeps.
//!
//! In a recording the wakee was asleep when it was woken. In a replay the waker may be first: what a waker would have done had it
//! come first, and what it told the kernel of its own plans, are in no event.

use serde::Serialize;

/// What tasks do that wake others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wakers {
    /// Two tasks meet: who is first sleeps until the other comes.
    Wait,
    /// A waker that is first goes on and owes the wake-up. The wakee does not mind which of those that owe it one gives it,
    /// as a reader does not mind whose message it reads.
    Owe {
        /// So many of a hundred tasks are woken as by one that will sleep soon (`WF_SYNC`), so that they may come to its CPU.
        sync: u8,
    },
}

/// Hands out something to a share of all who come, spread evenly over them in the order in which they come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    percent: u64,
    seen: u64,
}

impl Share {
    /// To so many of a hundred.
    pub fn new(percent: u8) -> Share {
        Share { percent: percent.into(), seen: 0 }
    }

    /// Whether the next one has it.
    pub fn next(&mut self) -> bool {
        self.seen += 1;
        self.seen * self.percent / 100 > (self.seen - 1) * self.percent / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_spread_evenly() {
        let told = |percent| {
            let mut share = Share::new(percent);
            (0..8).map(|_| if share.next() { 'x' } else { '.' }).collect::<String>()
        };
        assert_eq!(
            [0, 25, 50, 75, 100].map(told),
            ["........", "...x...x", ".x.x.x.x", ".xxx.xxx", "xxxxxxxx"]
        );
    }
}
