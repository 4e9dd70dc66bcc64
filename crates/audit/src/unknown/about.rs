//! What the file of a hidden fact says about it.

use super::beyond::{Candidate, Case};

/// A fact that no event shows.
pub struct About {
    /// Its name.
    pub name: &'static str,
    /// What it is, after "a recording does not show".
    pub sentence: &'static str,
    /// The assumptions about it that an audit can do without.
    pub readings: &'static [Reading],
    /// Further names of what would have had to be different beyond its bounds, and what that was.
    pub further: &'static [(&'static str, &'static str)],
    /// Adds what would have had to be different beyond its bounds.
    pub beyond: fn(&Case<'_>, &mut Vec<Candidate>),
}

impl About {
    /// A fact without readings that is not asked beyond its bounds.
    pub const fn new(name: &'static str, sentence: &'static str) -> About {
        About { name, sentence, readings: &[], further: &[], beyond: |_, _| {} }
    }
}

/// An assumption about a hidden fact. It is made where the likeliest state does not lead to what happened, or it is kept from
/// what earlier verdicts show. It costs code and may explain what our rules get wrong, so it must earn its place:
/// [`Options::without`](crate::Options::without) switches one off, and the difference in verdicts is what it buys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    name: &'static str,
    sentence: &'static str,
}

impl Reading {
    pub(super) const fn new(name: &'static str, sentence: &'static str) -> Reading {
        Reading { name, sentence }
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// What it supposes or keeps.
    pub fn sentence(self) -> &'static str {
        self.sentence
    }
}
