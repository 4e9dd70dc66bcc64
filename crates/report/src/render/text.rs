//! What `compare` prints: for each metric the table known from scheduler mail, then the paired differences.

use schedlab_stats::Stat;

use super::{mmtests_within, paired};
use crate::Comparison;

/// The whole comparison, with the rows of `stats`.
pub fn text(comparison: &Comparison, stats: &[Stat]) -> String {
    text_within(comparison, stats, usize::MAX)
}

/// The same in tables no wider than `width` columns.
pub fn text_within(comparison: &Comparison, stats: &[Stat], width: usize) -> String {
    let mut out = String::new();
    if !comparison.title.is_empty() {
        out += &format!("{}\n\n", comparison.title);
    }
    let blocks = comparison.metrics.iter().map(|metric| {
        let table = mmtests_within(metric, &comparison.kernels, stats, width);
        let differences = paired(comparison, metric);
        let gap = if differences.is_empty() { "" } else { "\n" };
        format!("{}\n{table}{gap}{differences}", metric.heading())
    });
    out + &blocks.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::render::testdata::paired_runs;
    use expect_test::expect;

    #[test]
    fn the_mail_table_comes_first_then_the_differences() {
        let options = Options { rule: "t-2020".parse().unwrap(), ..Options::default() };
        let text = text(&Comparison::new(&paired_runs(), options), &Stat::MAIL);
        expect![[r#"
            dbench on uma-8c, 6 paired runs, seed 1

            loadfile time, ms: lower is better
                                            v5.5                   v5.5
                                                     +SIS_KTHREAD_STACK
            Amean     1         22.58 (   0.00%)       20.57 *   8.89%*
            Amean     8         37.70 (   0.00%)       37.62 (   0.20%)
            Amean     64       469.00 (   0.00%)      468.00 (   0.21%)
            Amean     128     1345.26 (   0.00%)     1372.64 (  -2.04%)
            Stddev    1          0.70 (   0.00%)        0.68 (   2.52%)
            Stddev    8          0.70 (   0.00%)        0.68 (   2.52%)
            Stddev    64        62.87 (   0.00%)       62.87 (   0.00%)
            Stddev    128           - (       -)           - (       -)

            v5.5+SIS_KTHREAD_STACK against v5.5: 1 to 6 pairs by seed, 95 % intervals, * by t-2020 at 0.1
            Amean  1      22.58    20.57  -8.9 % [-9.1, -8.6]    better *
            Amean  8      37.70    37.62  -0.2 % [-0.3, -0.1]    better
            Amean  64    469.00   468.00  -0.2 % [-24.9, +32.5]  too few (~130)
            Amean  128  1345.26  1372.64  +2.0 % [?, ?]          too few runs

            migrations: lower is better
                                           v5.5                   v5.5
                                                    +SIS_KTHREAD_STACK
            Amean     1     18423.50 (   0.00%)      240.00 *  98.70%*
            Amean     64        0.00 (   0.00%)        5.35 * -99.00%*
            Stddev    1         1.87 (   0.00%)        0.00 ( 100.00%)
            Stddev    64        0.00 (   0.00%)        0.19 ( -99.00%)

            v5.5+SIS_KTHREAD_STACK against v5.5: 6 pairs by seed, 95 % intervals, * by t-2020 at 0.1
            Amean  1   18423.50  240.00  -98.7 % [-98.7, -98.7]  better *
            Amean  64      0.00    5.35    +5.35 [+5.15, +5.55]  worse *
        "#]]
        .assert_eq(&text);
        assert!(text.is_ascii() && text.lines().all(|line| line == line.trim_end()));
    }
}
