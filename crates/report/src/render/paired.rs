//! The paired differences: the change of each mean, its interval, and the word.
//!
//! ```text
//! v5.5+SIS_KTHREAD_STACK against v5.5: 20 pairs by seed, 95 % intervals, * by t-2020 at 0.1
//! Amean  1      22.58   20.61   -8.7 % [-9.9, -7.5]  better *
//! ```
//!
//! Here a change keeps its sign: a time that falls is negative, and the word says that this is good. The
//! stars are those of the table above it.

use schedlab_stats::{Interval, Mean};

use super::columns::{Lean, columns};
use crate::{CellComparison, Comparison, MetricComparison};

/// One block per kernel other than the baseline.
pub fn paired(comparison: &Comparison, metric: &MetricComparison) -> String {
    let blocks: Vec<String> = (1..comparison.kernels.len()).map(|k| block(comparison, metric, k)).collect();
    blocks.join("\n")
}

fn block(comparison: &Comparison, metric: &MetricComparison, kernel: usize) -> String {
    let pairs = metric.rows.iter().map(|row| row.cells[kernel].paired.n);
    let (least, most) = (pairs.clone().min().unwrap_or(0), pairs.max().unwrap_or(0));
    let count = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    let first_line = format!(
        "{} against {}: {count} pair{} by seed, {} % intervals, * by {}\n",
        comparison.kernels[kernel],
        comparison.baseline(),
        if most == 1 { "" } else { "s" },
        comparison.options.confidence * 100.0,
        comparison.options.rule,
    );
    let cells = || metric.rows.iter().map(|row| &row.cells[kernel]);
    let width = cells().map(|cell| change(cell).0.len()).max().unwrap_or(0);
    let lines: Vec<Vec<String>> =
        metric.rows.iter().zip(cells()).map(|(row, cell)| line(metric, &row.key, cell, width)).collect();
    let leans = [Lean::Left, Lean::Left, Lean::Right, Lean::Right, Lean::Left, Lean::Left];
    first_line + &columns(&lines, &leans, "  ")
}

fn line(metric: &MetricComparison, key: &str, cell: &CellComparison, change_width: usize) -> Vec<String> {
    let mean = match cell.paired.mean {
        Mean::Arithmetic => "Amean",
        Mean::Harmonic => "Hmean",
    };
    let (change, interval) = change(cell);
    let star = if metric.is_starred(cell) && cell.span.is_none() { " *" } else { "" };
    let digits = metric.digits();
    vec![
        mean.to_owned(),
        key.to_owned(),
        known(cell.paired.base, digits),
        known(cell.paired.value, digits),
        format!("{change:>change_width$} {interval}"),
        format!("{}{star}", metric.word(cell)),
    ]
}

/// A number, or a dash if there is none.
pub(super) fn known(x: f64, digits: usize) -> String {
    if x.is_finite() { format!("{x:.digits$}") } else { "-".to_owned() }
}

/// The change in percent, or in the metric's own unit if the baseline is zero. An unknown interval is
/// `[?, ?]`. A span stands in place of both.
pub(super) fn change(cell: &CellComparison) -> (String, String) {
    let unknown = || "[?, ?]".to_owned();
    let paired = &cell.paired;
    if let Some(span) = cell.span {
        let Interval { low, high } = span.scaled(100.0);
        return (format!("{} to {} %", signed(low, 1), signed(high, 1)), String::new());
    }
    if let Some(change) = paired.change.filter(|change| change.is_finite()) {
        let (change, interval) = (change * 100.0, paired.interval.map(|i| i.scaled(100.0)));
        let digits = digits(change, interval);
        let interval = interval.map_or_else(unknown, |i| signed_interval(i, digits));
        (format!("{} %", signed(change, digits)), interval)
    } else if let Some(difference) = paired.difference {
        (signed(difference.value, 2), signed_interval(difference.interval, 2))
    } else if paired.n == 0 {
        ("-".to_owned(), String::new())
    } else {
        ("?".to_owned(), unknown())
    }
}

/// One decimal, or more if a real change or a whole interval would print as zero.
fn digits(change: f64, interval: Option<Interval>) -> usize {
    let size = match interval {
        None => change.abs(),
        Some(i) if i.contains(0.0) => i.low.abs().max(i.high.abs()),
        Some(i) => i.low.abs().min(i.high.abs()),
    };
    if size >= 0.05 || size == 0.0 {
        1
    } else if size >= 0.005 {
        2
    } else {
        3
    }
}

/// With its sign, but no sign on what is printed as zero.
fn signed(x: f64, digits: usize) -> String {
    let text = format!("{x:+.digits$}");
    if text.contains(|c: char| ('1'..='9').contains(&c)) { text } else { text[1..].to_owned() }
}

fn signed_interval(interval: Interval, digits: usize) -> String {
    format!("[{}, {}]", signed(interval.low, digits), signed(interval.high, digits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testdata::{paired_runs, stream};
    use crate::{Options, Table};
    use expect_test::{Expect, expect};
    use schedlab_stats::Direction;

    fn check(table: &Table, rule: &str, metric: usize, expected: Expect) {
        let options = Options { rule: rule.parse().unwrap(), ..Options::default() };
        let comparison = Comparison::new(table, options);
        expected.assert_eq(&paired(&comparison, &comparison.metrics[metric]));
    }

    #[test]
    fn every_verdict_has_its_line() {
        check(
            &paired_runs(),
            "t-2020",
            0,
            expect![[r#"
                v5.5+SIS_KTHREAD_STACK against v5.5: 1 to 6 pairs by seed, 95 % intervals, * by t-2020 at 0.1
                Amean  1      22.58    20.57  -8.9 % [-9.1, -8.6]    better *
                Amean  8      37.70    37.62  -0.2 % [-0.3, -0.1]    better
                Amean  64    469.00   468.00  -0.2 % [-24.9, +32.5]  too few (~130)
                Amean  128  1345.26  1372.64  +2.0 % [?, ?]          too few runs
            "#]],
        );
    }

    #[test]
    fn a_span_stands_in_place_of_a_figure_with_a_star() {
        let options = Options { rule: "t-2020".parse().unwrap(), ..Options::default() };
        let mut comparison = Comparison::new(&paired_runs(), options);
        comparison.metrics[0].rows[0].cells[1].span = Some(Interval { low: -0.31, high: -0.02 });
        let text = paired(&comparison, &comparison.metrics[0]);
        let line = text.lines().nth(1).unwrap();
        assert!(line.contains("-31.0 to -2.0 %") && line.trim_end().ends_with("better"), "{line}");
        assert!(!line.contains("-8.9 %") && !line.contains('*'), "{line}");
    }

    #[test]
    fn from_nothing_a_change_has_no_percentage() {
        check(
            &paired_runs(),
            "welch",
            1,
            expect![[r#"
            v5.5+SIS_KTHREAD_STACK against v5.5: 6 pairs by seed, 95 % intervals, * by welch at 0.05
            Amean  1   18423.50  240.00  -98.7 % [-98.7, -98.7]  better *
            Amean  64      0.00    5.35    +5.35 [+5.15, +5.55]  worse *
        "#]],
        );
    }

    #[test]
    fn each_kernel_has_its_block() {
        check(
            &stream(),
            "ci-2024",
            0,
            expect![[r#"
            5.18.0-rc1-pinning against 5.18.0-rc1-no-pinning: 20 pairs by seed, 95 % intervals, * by ci-2024 at 0.05
            Hmean  Copy   109364.74   94220.50  -13.8 % [-15.2, -12.4]  worse *
            Hmean  Scale  109670.26   90210.59  -17.7 % [-19.1, -16.3]  worse *
            Hmean  Add    129029.01  101906.00  -21.0 % [-22.2, -19.8]  worse *
            Hmean  Triad  127260.05  106051.36  -16.7 % [-17.9, -15.4]  worse *

            5.18.0-rc1-this-patch against 5.18.0-rc1-no-pinning: 20 pairs by seed, 95 % intervals, * by ci-2024 at 0.05
            Hmean  Copy   109364.74  158301.28  +44.7 % [+44.5, +45.0]  better *
            Hmean  Scale  109670.26  149525.64  +36.3 % [+36.1, +36.6]  better *
            Hmean  Add    129029.01  186658.17  +44.7 % [+44.4, +44.9]  better *
            Hmean  Triad  127260.05  184327.30  +44.8 % [+44.6, +45.1]  better *
        "#]],
        );
    }

    #[test]
    fn small_changes_get_the_digits_they_need() {
        let mut table = Table::new("", ["a", "b"]);
        let metric = table.metric("time", "s", Direction::Lower);
        for (seed, noise) in [-1.0, 0.0, 1.0, 0.5].into_iter().enumerate() {
            for (key, change, width) in
                [("10 %", -10.0, 1.0), ("1 %", -1.0, 0.6), ("0.01 %", -0.01, 0.001), ("noise", 0.001, 0.01)]
            {
                metric.record(key, 0, seed as u64, 1000.0);
                metric.record(key, 1, seed as u64, 1000.0 + 10.0 * (change + width * noise));
            }
            metric.record("exact", 0, seed as u64, 1000.0);
            metric.record("exact", 1, seed as u64, 999.9);
            metric.record("same", 0, seed as u64, 1000.0);
            metric.record("same", 1, seed as u64, 1000.0);
        }
        check(
            &table,
            "welch",
            0,
            expect![[r#"
            b against a: 4 pairs by seed, 95 % intervals, * by welch at 0.05
            Amean  10 %    1000.00   901.25   -9.9 % [-11.2, -8.5]   better *
            Amean  1 %     1000.00   990.75   -0.9 % [-1.7, -0.1]    better *
            Amean  0.01 %  1000.00   999.90  -0.01 % [-0.01, -0.01]  no difference
            Amean  noise   1000.00  1000.02   0.00 % [-0.01, +0.02]  no difference
            Amean  exact   1000.00   999.90  -0.01 % [-0.01, -0.01]  no difference
            Amean  same    1000.00  1000.00    0.0 % [0.0, 0.0]      no difference
        "#]],
        );
    }

    #[test]
    fn a_single_kernel_has_no_block() {
        let mut table = Table::new("", ["a"]);
        table.metric("time", "s", Direction::Lower).record("1", 0, 1, 5.0);
        check(&table, "welch", 0, expect![[""]]);
    }
}
