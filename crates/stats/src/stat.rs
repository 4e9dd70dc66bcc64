//! The rows of an mmtests table.
//!
//! The full table has these six, grouped: all operations of one statistic, then the next
//! statistic. Mail usually keeps the mean and the standard deviation and drops the rest,
//! but the width of the first column still shows what was dropped.

use crate::{Direction, Era, Summary, pdiff, pndiff};

/// One statistic of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stat {
    /// The lowest sample.
    Min,
    /// The arithmetic mean of times, the harmonic mean of rates.
    Mean,
    /// The spread around the mean.
    Stddev,
    /// The standard deviation in percent of the mean.
    CoeffVar,
    /// The highest sample.
    Max,
    /// The mean of the best 95 %.
    BestMean95,
}

impl Stat {
    /// All of them, in the order of a full table.
    pub const ALL: [Stat; 6] =
        [Stat::Min, Stat::Mean, Stat::Stddev, Stat::CoeffVar, Stat::Max, Stat::BestMean95];

    /// Those that mail keeps.
    pub const MAIL: [Stat; 2] = [Stat::Mean, Stat::Stddev];

    /// As printed. The newer mmtests says when a deviation is around a harmonic mean.
    pub fn label(self, era: Era, direction: Direction) -> &'static str {
        let harmonic = direction == Direction::Higher;
        match self {
            Stat::Min => "Min",
            Stat::Mean if harmonic => "Hmean",
            Stat::Mean => "Amean",
            Stat::Stddev if harmonic && era == Era::Since2024 => "HStddev",
            Stat::Stddev => "Stddev",
            Stat::CoeffVar if harmonic && era == Era::Since2024 => "HCoeffVar",
            Stat::CoeffVar => "CoeffVar",
            Stat::Max => "Max",
            Stat::BestMean95 if harmonic => "BHmean-95",
            Stat::BestMean95 => "BAmean-95",
        }
    }

    /// Its value, NaN where it has none.
    pub fn value(self, era: Era, summary: &Summary) -> f64 {
        match self {
            Stat::Min => summary.min(),
            Stat::Mean => summary.mean(),
            Stat::Stddev => stddev(era, summary).1,
            Stat::CoeffVar => {
                let (mean, stddev) = stddev(era, summary);
                // A lone sample has a coefficient of zero in mmtests, not NaN.
                if mean == 0.0 || mean.is_nan() || stddev.is_nan() { 0.0 } else { stddev * 100.0 / mean }
            }
            Stat::Max => summary.max(),
            Stat::BestMean95 => summary.best_mean(95.0),
        }
    }

    /// Percent by which `value` improves on `base`: positive is good.
    pub fn percent(self, direction: Direction, value: f64, base: f64) -> f64 {
        match (self, direction) {
            (Stat::Stddev | Stat::CoeffVar, _) | (_, Direction::Lower) => pndiff(value, base),
            (_, Direction::Higher) => pdiff(value, base),
        }
    }
}

/// The deviation with the mean it is around: until 2024 always the arithmetic one.
fn stddev(era: Era, summary: &Summary) -> (f64, f64) {
    match (era, summary.direction()) {
        (Era::Since2024, Direction::Higher) => (summary.hmean(), summary.hstddev()),
        _ => (summary.amean(), summary.stddev()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{A, close};

    fn labels(era: Era, direction: Direction) -> String {
        Stat::ALL.map(|stat| stat.label(era, direction)).join(" ")
    }

    #[test]
    fn labels_follow_the_direction_and_the_era() {
        let (lower, higher) = (Direction::Lower, Direction::Higher);
        assert_eq!(labels(Era::Until2024, lower), "Min Amean Stddev CoeffVar Max BAmean-95");
        assert_eq!(labels(Era::Since2024, lower), "Min Amean Stddev CoeffVar Max BAmean-95");
        assert_eq!(labels(Era::Until2024, higher), "Min Hmean Stddev CoeffVar Max BHmean-95");
        assert_eq!(labels(Era::Since2024, higher), "Min Hmean HStddev HCoeffVar Max BHmean-95");
    }

    #[test]
    fn the_deviation_of_rates_changed_in_2024() {
        let rates = Summary::new(A, Direction::Higher);
        close(Stat::Stddev.value(Era::Until2024, &rates), 0.714998057495419, 1e-12);
        close(Stat::Stddev.value(Era::Since2024, &rates), 0.6676983054821048, 1e-12);
        close(Stat::CoeffVar.value(Era::Until2024, &rates), 71.4998057495419 / 22.63, 1e-12);
        close(Stat::CoeffVar.value(Era::Since2024, &rates), 66.76983054821048 / 22.60997845600798, 1e-12);
    }

    #[test]
    fn more_deviation_is_worse_even_when_more_is_better() {
        // Published: Stddev 1.00 -> 0.72 prints 28 %; a Max of rates that doubles prints 100 %.
        assert!((Stat::Stddev.percent(Direction::Higher, 0.72, 1.00) - 28.0).abs() < 1e-9);
        assert_eq!(Stat::Max.percent(Direction::Higher, 2.0, 1.0), 100.0);
        assert_eq!(Stat::Max.percent(Direction::Lower, 2.0, 1.0), -100.0);
    }

    #[test]
    fn a_lone_sample_has_no_deviation_and_a_coefficient_of_zero() {
        let one = Summary::new([3.0], Direction::Lower);
        assert!(Stat::Stddev.value(Era::Until2024, &one).is_nan());
        assert_eq!(Stat::CoeffVar.value(Era::Until2024, &one), 0.0);
    }
}
