//! Whether a simulated change matches the published one: its sign, its size, its star.

use schedlab_stats::{Direction, Paired};

/// The published result of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    /// A change, as the ratio of after to before.
    Change(f64),
    /// That a change has no effect.
    Null(f64),
    /// A figure of a kernel, without a change.
    State(f64),
}

/// A smaller change counts as none, however certain it is: such changes are not published.
const LEAST: f64 = 0.01;

/// How far a simulated null may be from zero to count as within two.
const NULL_WITHIN: f64 = 0.05;

/// A prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Foretold {
    pub before: f64,
    pub after: f64,
    /// Change as a part of `before`, and the bounds of its 95 % interval if there were at least two runs.
    pub change: f64,
    pub interval: Option<[f64; 2]>,
}

/// The result of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// As published; for a null, that there is no certain change.
    Right,
    /// Certainly the other way; for a null, that there is a certain change.
    Wrong,
    /// A change was published, and none is certain.
    None,
    /// It is certain as simulated, but goes the other way without idle states or with constant clocks.
    Coin,
}

impl Sign {
    pub fn word(self) -> &'static str {
        match self {
            Sign::Right => "right",
            Sign::Wrong => "wrong",
            Sign::None => "none",
            Sign::Coin => "coin",
        }
    }
}

impl Published {
    /// Reads `A -> B`, `+12.5 %` or a number, depending on the kind of the row.
    pub fn parse(kind: &str, text: &str) -> Result<Published, String> {
        let number = |word: &str| {
            word.trim()
                .parse::<f64>()
                .map_err(|_| format!("\"{text}\" is neither A -> B, +12.5 % nor a number"))
        };
        if kind == "state" {
            return Ok(Published::State(number(text)?));
        }
        let ratio = match (text.split_once("->"), text.strip_suffix('%')) {
            (Some((before, after)), _) => number(after)? / number(before)?,
            (None, Some(percent)) => 1.0 + number(percent)? / 100.0,
            (None, None) => return Err(format!("\"{text}\" is no change; write A -> B or +12.5 %")),
        };
        match kind {
            "change" => Ok(Published::Change(ratio)),
            "null" => Ok(Published::Null(ratio)),
            other => Err(format!("\"{other}\" is none of change, null, state")),
        }
    }

    pub fn sign(self, foretold: &Foretold) -> Sign {
        let sure = foretold.is_sure();
        match self {
            Published::State(_) => {
                if self.within_two(foretold) {
                    Sign::Right
                } else {
                    Sign::Wrong
                }
            }
            Published::Null(_) => {
                if sure {
                    Sign::Wrong
                } else {
                    Sign::Right
                }
            }
            Published::Change(_) if !sure => Sign::None,
            Published::Change(ratio) if (ratio > 1.0) == (foretold.change > 0.0) => Sign::Right,
            Published::Change(_) => Sign::Wrong,
        }
    }

    /// Whether the size is within a factor of two of what was published.
    ///
    /// Changes are compared as ratios: doubling and halving are equally large.
    pub fn within_two(self, foretold: &Foretold) -> bool {
        let excess = |ratio: f64| ratio.max(1.0 / ratio) - 1.0;
        match self {
            Published::Change(ratio) => {
                let same_side = (ratio > 1.0) == (foretold.change > 0.0);
                let of = excess(1.0 + foretold.change) / excess(ratio);
                same_side && (0.5..=2.0).contains(&of)
            }
            Published::Null(_) => foretold.change.abs() <= NULL_WITHIN,
            Published::State(0.0) => foretold.after == 0.0,
            Published::State(value) => (0.5..=2.0).contains(&(foretold.after / value)),
        }
    }
}

impl Foretold {
    /// The prediction from pairs of runs with one seed each.
    pub fn of(pairs: &[(f64, f64)], direction: Direction) -> Foretold {
        let paired = Paired::new(pairs, direction, 0.95);
        let change = paired.change.unwrap_or(if paired.value == paired.base { 0.0 } else { f64::INFINITY });
        // With a baseline that does not differ from zero a ratio has no bounds, but the difference does.
        let of_difference = || {
            let difference = paired.difference?.interval;
            let bound = |x: f64| match paired.base {
                0.0 if x == 0.0 => 0.0,
                base => x / base,
            };
            Some([difference.low, difference.high].map(bound))
        };
        let interval = paired.interval.map(|i| [i.low, i.high]).or_else(of_difference);
        Foretold { before: paired.base, after: paired.value, change, interval }
    }

    /// Whether another run of the same shows a clear change in the opposite direction.
    pub fn is_contradicted(&self, other: &Foretold) -> bool {
        other.change.abs() >= LEAST && (other.change > 0.0) != (self.change > 0.0)
    }

    /// Whether the change is certain, and large enough to matter.
    pub fn is_sure(&self) -> bool {
        let apart = self.interval.is_some_and(|[low, high]| low > 0.0 || high < 0.0);
        apart && self.change.abs() >= LEAST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foretold(change: f64, half: f64) -> Foretold {
        Foretold {
            before: 100.0,
            after: 100.0 * (1.0 + change),
            change,
            interval: Some([change - half, change + half]),
        }
    }

    #[test]
    fn published_numbers_are_read() {
        assert_eq!(Published::parse("change", "50 -> 75"), Ok(Published::Change(1.5)));
        assert_eq!(Published::parse("change", "-25 %"), Ok(Published::Change(0.75)));
        assert_eq!(Published::parse("null", "+0 %"), Ok(Published::Null(1.0)));
        assert_eq!(Published::parse("state", "2.5"), Ok(Published::State(2.5)));
        for (kind, text) in [("change", "12"), ("change", "much"), ("effect", "+1 %"), ("state", "+1 %")] {
            assert!(Published::parse(kind, text).is_err(), "{kind} {text}");
        }
    }

    #[test]
    fn a_sign_is_right_wrong_or_not_sure() {
        let doubled = Published::Change(2.0);
        assert_eq!(doubled.sign(&foretold(0.1, 0.05)), Sign::Right);
        assert_eq!(doubled.sign(&foretold(0.1, 0.2)), Sign::None, "its interval holds no change");
        assert_eq!(doubled.sign(&foretold(0.005, 0.001)), Sign::None, "too small to speak of");
        assert_eq!(doubled.sign(&foretold(-0.1, 0.05)), Sign::Wrong);
        let nothing = Published::Null(1.01);
        assert_eq!(nothing.sign(&foretold(0.03, 0.04)), Sign::Right);
        assert_eq!(nothing.sign(&foretold(0.03, 0.01)), Sign::Wrong);
    }

    #[test]
    fn a_half_is_as_far_as_a_double() {
        for (published, change, within) in [
            (2.0, 0.5, true),
            (2.0, 2.0, true),
            (2.0, 0.4, false),
            (2.0, 2.1, false),
            (0.5, -0.34, true),
            (0.5, -0.66, true),
            (0.5, -0.7, false),
            (0.5, 0.5, false),
        ] {
            assert_eq!(
                Published::Change(published).within_two(&foretold(change, 0.1)),
                within,
                "{published} {change}"
            );
        }
        assert!(Published::State(100.0).within_two(&foretold(0.9, 0.0)));
        assert!(!Published::State(10.0).within_two(&foretold(0.0, 0.0)));
        assert!(Published::Null(1.0).within_two(&foretold(-0.04, 0.1)));
    }

    #[test]
    fn pairs_make_a_change_with_an_interval() {
        let found = Foretold::of(&[(10.0, 20.0), (11.0, 22.0), (9.0, 18.0)], Direction::Lower);
        assert!((found.change - 1.0).abs() < 1e-9 && found.is_sure());
        assert!(!Foretold::of(&[(10.0, 20.0)], Direction::Lower).is_sure(), "one pair has no interval");
        let near_nothing = Foretold::of(&[(0.0, 20.0), (0.5, 22.0), (0.0, 18.0)], Direction::Lower);
        assert!(near_nothing.is_sure(), "the difference has bounds where the ratio has none");
        assert!(Foretold::of(&[(0.0, 20.0), (0.0, 22.0), (0.0, 18.0)], Direction::Lower).is_sure());
        assert!(!Foretold::of(&[(0.0, 0.0), (0.0, 9.0), (0.0, 0.0)], Direction::Lower).is_sure());
        assert!(!Foretold::of(&[(0.0, 0.0), (0.0, 0.0)], Direction::Lower).is_sure());
    }
}
