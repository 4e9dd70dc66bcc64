//! Rank tests: they ask only which value is larger, so one wild outlier weighs no
//! more than any other.
//!
//! Exact by counting when there are no ties and few enough values, otherwise by the normal approximation with
//! corrections for ties and for continuity.

use std::cmp::Ordering;

use crate::normal_sf;

/// Up to here the exact counts fit in 64 bits with room to spare.
const EXACT_LIMIT: usize = 60;

/// Two-sided p of the rank-sum test (Wilcoxon, Mann, Whitney) of two independent samples.
///
/// 1 when either is empty.
pub fn rank_sum(a: &[f64], b: &[f64]) -> f64 {
    let (na, nb) = (a.len(), b.len());
    if na == 0 || nb == 0 {
        return 1.0;
    }
    let ranks = Ranks::of(a.iter().chain(b).copied());
    let (fa, fb, n) = (na as f64, nb as f64, (na + nb) as f64);
    let u = ranks.ranks[..na].iter().sum::<f64>() - fa * (fa + 1.0) / 2.0;
    let u = u.max(fa * fb - u);
    if !ranks.ties() && na + nb <= EXACT_LIMIT {
        return two_sided_from(&rank_sum_counts(na, nb), u as usize);
    }
    let variance = fa * fb / 12.0 * (n + 1.0 - ranks.tie_term / (n * (n - 1.0)));
    normal_two_sided(u - fa * fb / 2.0, variance)
}

/// Two-sided p of Wilcoxon's signed-rank test on (baseline, value). Equal pairs are left out.
///
/// 1 when no pair differs.
pub fn signed_rank(pairs: &[(f64, f64)]) -> f64 {
    let differences: Vec<f64> = pairs.iter().map(|(b, v)| v - b).filter(|&d| d != 0.0).collect();
    let n = differences.len();
    if n == 0 {
        return 1.0;
    }
    let ranks = Ranks::of(differences.iter().map(|d| d.abs()));
    let total = (n * (n + 1) / 2) as f64;
    let positive: f64 = differences.iter().zip(&ranks.ranks).filter(|(d, _)| **d > 0.0).map(|(_, r)| r).sum();
    let w = positive.max(total - positive);
    if !ranks.ties() && n <= EXACT_LIMIT {
        return two_sided_from(&signed_rank_counts(n), w as usize);
    }
    let f = n as f64;
    let variance = f * (f + 1.0) * (2.0 * f + 1.0) / 24.0 - ranks.tie_term / 48.0;
    normal_two_sided(w - total / 2.0, variance)
}

/// Ranks from 1, tied values sharing the mean of theirs.
struct Ranks {
    ranks: Vec<f64>,
    /// Sum of t^3 - t over groups of t equal values.
    tie_term: f64,
}

impl Ranks {
    fn of(values: impl Iterator<Item = f64>) -> Ranks {
        let values: Vec<f64> = values.collect();
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&i, &j| values[i].partial_cmp(&values[j]).unwrap_or(Ordering::Equal));
        let mut ranks = vec![0.0; values.len()];
        let mut tie_term = 0.0;
        let mut start = 0;
        for group in order.chunk_by(|&i, &j| values[i] == values[j]) {
            let t = group.len() as f64;
            for &i in group {
                ranks[i] = start as f64 + (t + 1.0) / 2.0;
            }
            tie_term += t * t * t - t;
            start += group.len();
        }
        Ranks { ranks, tie_term }
    }

    fn ties(&self) -> bool {
        self.tie_term > 0.0
    }
}

/// How many of the orders of `a` + `b` values give each U from 0 to a * b.
///
/// The coefficients of the Gaussian binomial: a product of (1 - q^(b + i)) / (1 - q^i).
fn rank_sum_counts(a: usize, b: usize) -> Vec<i128> {
    let mut counts = vec![0i128; a * b + 1];
    counts[0] = 1;
    for i in 1..=a {
        for u in (b + i..counts.len()).rev() {
            counts[u] -= counts[u - b - i];
        }
        for u in i..counts.len() {
            counts[u] += counts[u - i];
        }
    }
    counts
}

/// How many of the 2^n choices of signs give each sum of positive ranks.
fn signed_rank_counts(n: usize) -> Vec<i128> {
    let mut counts = vec![0i128; n * (n + 1) / 2 + 1];
    counts[0] = 1;
    for rank in 1..=n {
        for sum in (rank..counts.len()).rev() {
            counts[sum] += counts[sum - rank];
        }
    }
    counts
}

/// Twice the share of outcomes at `from` or beyond, one at most.
fn two_sided_from(counts: &[i128], from: usize) -> f64 {
    let share = counts[from..].iter().sum::<i128>() as f64 / counts.iter().sum::<i128>() as f64;
    (2.0 * share).min(1.0)
}

/// Two-sided p of a rank statistic `above` its mean, moved half a step back.
fn normal_two_sided(above: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    (2.0 * normal_sf((above - 0.5) / variance.sqrt())).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{B, D, EF, close, zip};

    fn sides(pairs: &[(f64, f64)]) -> (Vec<f64>, Vec<f64>) {
        pairs.iter().copied().unzip()
    }

    // Expected values: scipy 1.17.1, mannwhitneyu and wilcoxon(correction=True).

    #[test]
    fn the_rank_sum_without_ties_is_exact() {
        let (e, f) = sides(&EF);
        close(rank_sum(&e, &f), 0.13591114767585355, 1e-12);
        close(rank_sum(&f, &e), 0.13591114767585355, 1e-12);
    }

    #[test]
    fn the_rank_sum_with_ties_or_many_values_is_approximate() {
        let tied = rank_sum(&[1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 4.0, 6.0], &[2.0, 3.0, 5.0, 5.0, 7.0, 8.0]);
        close(tied, 0.15101333751800983, 1e-10);
        close(rank_sum(&B, &D), 0.7130581942622842, 1e-10);
        let many: Vec<f64> = (0..40).map(|i| f64::from(i) * 1.37 % 11.0).collect();
        let more: Vec<f64> = many[..35].iter().map(|x| x + 0.8).collect();
        close(rank_sum(&many, &more), 0.4866778253554618, 1e-10);
    }

    #[test]
    fn the_signed_rank_without_ties_is_exact() {
        close(signed_rank(&EF), 0.0390625, 1e-12);
    }

    #[test]
    fn the_signed_rank_leaves_out_equal_pairs_and_corrects_for_ties() {
        let differences = [0.0, 1.0, 2.0, 2.0, -3.0, 4.0, 5.0, 5.0, 6.0, -1.0, 7.0];
        close(signed_rank(&zip(&[0.0; 11], &differences)), 0.03629242015146564, 1e-10);
    }

    #[test]
    fn nothing_to_rank_is_no_evidence() {
        assert_eq!(rank_sum(&[], &[1.0]), 1.0);
        assert_eq!(rank_sum(&[2.0, 2.0], &[2.0]), 1.0);
        assert_eq!(signed_rank(&[(1.0, 1.0); 5]), 1.0);
    }
}
