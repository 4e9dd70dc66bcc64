//! What wakers do that come before their wakee sleeps.
//!
//! In a recording the wakee was asleep when it was woken. In a replay the waker may be first: what a waker would have done had it
//! come first, and what it told the kernel of its own plans, are in no event. Not all need do the same: a share of the pairs of
//! tasks, spread evenly over them in the order in which they are met.

use serde::Serialize;

/// What tasks do that wake others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Wakers {
    /// In so many of a hundred pairs of tasks a waker that is first goes on and owes the wake-up; in the others it sleeps until the
    /// wakee comes.
    pub owe: u8,
    /// In so many of a hundred of those that owe it wakes as one that will sleep soon (`WF_SYNC`), so that a wakee may come to its CPU.
    pub sync: u8,
}

impl Wakers {
    /// All sleep that are first.
    pub const WAIT: Wakers = Wakers { owe: 0, sync: 0 };
}

/// Hands out something to a share of all who come, evenly.
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
