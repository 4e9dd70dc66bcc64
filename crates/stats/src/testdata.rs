//! Samples that several tests share; the expected numbers beside them were computed
//! with scipy 1.17.1.

/// Ten times under one kernel.
pub(crate) const A: [f64; 10] = [22.1, 23.4, 21.9, 22.8, 24.0, 22.5, 21.7, 23.1, 22.2, 22.6];
/// The same seeds under a better one.
pub(crate) const B: [f64; 10] = [20.3, 21.5, 20.8, 20.1, 21.9, 20.6, 19.8, 21.0, 20.4, 20.7];
/// The same seeds under one that makes no difference.
pub(crate) const C: [f64; 10] = [22.4, 23.1, 22.0, 22.9, 23.6, 22.8, 21.6, 23.3, 22.1, 22.7];
/// Few, and skewed to one side.
pub(crate) const D: [f64; 5] = [20.0, 35.0, 21.0, 50.0, 19.0];
/// Skewed: two of twelve dominate the mean.
pub(crate) const X: [f64; 12] = [3.2, 1.1, 0.4, 7.9, 2.5, 1.8, 0.9, 12.3, 2.2, 1.4, 0.7, 4.4];
/// Before and after, without ties.
pub(crate) const EF: [(f64, f64); 9] = [
    (1.83, 0.878),
    (0.50, 0.647),
    (1.62, 0.598),
    (2.48, 2.05),
    (1.68, 1.06),
    (1.88, 1.29),
    (1.55, 1.06001),
    (3.06, 3.13),
    (1.30, 1.29001),
];

/// Pairs of two equally long lists.
pub(crate) fn zip(base: &[f64], value: &[f64]) -> Vec<(f64, f64)> {
    base.iter().copied().zip(value.iter().copied()).collect()
}

/// Panics unless `found` is `expected` within a relative `tolerance`.
#[track_caller]
pub(crate) fn close(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance * expected.abs().max(1e-300),
        "{found} instead of {expected}"
    );
}
