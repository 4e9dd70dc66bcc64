//! What wakers do if they come before their wakee sleeps.
//!
//! In a recording the wakee was asleep when it was woken. In a replay the waker may come first. No event shows what a
//! waker would have done then, or what it hinted to the kernel about its own plans.

use serde::Serialize;

/// What a waker does if its wakee is not asleep yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wakers {
    /// Two tasks meet: the first one sleeps until the other comes.
    Wait,
    /// A waker that comes first continues and owes the wake-up. The wakee accepts it from any task that owes it one, as
    /// a reader accepts a message from any writer.
    Owe {
        /// Percentage of tasks that are woken as by a waker about to sleep (`WF_SYNC`), so that they may come to its
        /// CPU.
        sync: u8,
    },
}

/// Selects a share of items, spread evenly in the order in which they come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    percent: u64,
    seen: u64,
}

impl Share {
    /// Selects this percentage.
    pub fn new(percent: u8) -> Share {
        Share { percent: percent.into(), seen: 0 }
    }

    /// Whether the next item is selected.
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
