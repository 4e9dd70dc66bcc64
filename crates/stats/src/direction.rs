//! Which direction of a metric is better.

use std::fmt;

/// Whether a lower or a higher value is better.
///
/// mmtests calls this the preferred value, and lets it also decide the mean: times are averaged
/// arithmetically, rates harmonically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Times, latencies, migrations.
    Lower,
    /// Throughputs.
    Higher,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::Lower => "lower",
            Direction::Higher => "higher",
        })
    }
}
