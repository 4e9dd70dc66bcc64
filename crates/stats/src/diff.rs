//! How mmtests expresses one number relative to another.
//!
//! The argument order here is always (value, baseline). The special cases at zero and
//! NaN are those of mmtests, so that a table agrees with it there too.

/// Percent gained over `base`, for metrics where higher is better.
pub fn pdiff(value: f64, base: f64) -> f64 {
    if value == base || value == 0.0 {
        0.0
    } else if base == 0.0 || base.is_nan() {
        100.0
    } else {
        value * 100.0 / base - 100.0
    }
}

/// Percent saved over `base`, for metrics where lower is better. Positive is good.
pub fn pndiff(value: f64, base: f64) -> f64 {
    if value == base {
        0.0
    } else if value == 0.0 {
        100.0
    } else if base == 0.0 {
        -99.0
    } else {
        100.0 - value * 100.0 / base
    }
}

/// `value` in units of `base`; 0 when there is no baseline, 1 when there is no value.
pub fn rdiff(value: f64, base: f64) -> f64 {
    if base == 0.0 || base.is_nan() {
        0.0
    } else if value == 0.0 || value.is_nan() {
        1.0
    } else {
        value / base
    }
}

/// The difference of two means in units of their pooled standard deviation, or the
/// plain difference when neither side varies.
pub fn sdiff(value: f64, value_stddev: f64, base: f64, base_stddev: f64) -> f64 {
    let pooled = ((value_stddev * value_stddev + base_stddev * base_stddev) / 2.0).sqrt();
    in_units_of(value - base, pooled)
}

/// The difference of two means in units of the halves of their intervals that face
/// each other, or the plain difference when neither interval has a width.
///
/// Beyond 1 in size, the two intervals do not touch:
///
/// ```text
///    |------ base ------|
///                            |---- value ----|
///           ^--- diff -----------------^
///           ^-- half --^     ^-- half -^
/// ```
pub fn cidiff(value: f64, value_interval: (f64, f64), base: f64, base_interval: (f64, f64)) -> f64 {
    let halves = if value < base {
        value_interval.1 - value + base - base_interval.0
    } else {
        value - value_interval.0 + base_interval.1 - base
    };
    in_units_of(value - base, halves)
}

fn in_units_of(diff: f64, unit: f64) -> f64 {
    if unit == 0.0 { diff } else { diff / unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positive_is_good_whichever_way_the_metric_goes() {
        // Published: dbench time 22.63 -> 20.54 prints 9.23 %, throughput 321.41 -> 617.82 prints 92.22 %.
        assert!((pndiff(20.54, 22.63) - 9.23).abs() < 0.01);
        assert!((pdiff(617.82, 321.41) - 92.22).abs() < 0.01);
    }

    #[test]
    fn zeros_and_nans_have_fixed_answers() {
        let nan = f64::NAN;
        // (value, baseline, pdiff, pndiff, rdiff)
        for (value, base, p, pn, r) in [
            (5.0, 5.0, 0.0, 0.0, 1.0),
            (0.0, 0.0, 0.0, 0.0, 0.0),
            (0.0, 5.0, 0.0, 100.0, 1.0),
            (5.0, 0.0, 100.0, -99.0, 0.0),
            (5.0, nan, 100.0, nan, 0.0),
            (nan, 5.0, nan, nan, 1.0),
        ] {
            let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
            assert!(same(pdiff(value, base), p), "pdiff({value}, {base})");
            assert!(same(pndiff(value, base), pn), "pndiff({value}, {base})");
            assert!(same(rdiff(value, base), r), "rdiff({value}, {base})");
        }
    }

    #[test]
    fn intervals_that_touch_are_one_unit_apart() {
        assert_eq!(cidiff(12.0, (11.0, 14.0), 10.0, (8.0, 11.0)), 1.0);
        assert_eq!(cidiff(10.0, (8.0, 11.0), 12.0, (11.0, 14.0)), -1.0);
        assert_eq!(cidiff(12.0, (12.0, 12.0), 10.0, (10.0, 10.0)), 2.0);
    }

    #[test]
    fn a_pooled_deviation_is_the_root_of_the_mean_variance() {
        assert_eq!(sdiff(13.0, 1.0, 10.0, 7.0), 3.0 / 5.0);
        assert_eq!(sdiff(13.0, 0.0, 10.0, 0.0), 3.0);
    }
}
