//! Histograms as cumulative curves.

use schedlab_html::Curve;
use schedlab_stats::Histogram;

/// Each bucket's upper end with the share of all values up to it, percent.
pub(super) fn cumulative(name: &str, histogram: &Histogram) -> Curve {
    let n = histogram.n();
    let mut seen = 0;
    let points = histogram.buckets().map(|(low, width, count)| {
        seen += count;
        // A logarithmic axis has no zero.
        ((low + width - 1).max(1) as f64, 100.0 * seen as f64 / n as f64)
    });
    Curve { name: name.to_owned(), points: points.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_rises_to_all() {
        let curve = cumulative("a", &[0, 10, 10, 5000].into_iter().collect());
        assert_eq!(curve.points[0], (1.0, 25.0));
        assert_eq!(curve.points[1], (10.0, 75.0));
        assert_eq!(curve.points.last().unwrap().1, 100.0);
    }
}
