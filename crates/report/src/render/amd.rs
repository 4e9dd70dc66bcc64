//! The table in AMD's mails to the scheduler list: `Copy:  158301.28 (44.74 pct)`.
//!
//! One line per row, means only, and a percentage that is positive for an improvement, without a plus sign.
//! Its digits are truncated, not rounded: the published 109364.74 to 158301.28 is 44.746 % and was printed as
//! 44.74. The kernels are above their columns.

use schedlab_stats::Stat;

use super::columns::{Lean, columns};
use super::header::split_name;
use crate::MetricComparison;

/// All rows of the metric.
pub fn amd(metric: &MetricComparison, kernels: &[String]) -> String {
    let part = |part: fn(&str) -> &str| -> Vec<String> {
        let names = kernels.iter().flat_map(|name| [part(name).to_owned(), String::new()]);
        std::iter::once(String::new()).chain(names).collect()
    };
    let mut lines = vec![part(|name| split_name(name).0)];
    if kernels.iter().any(|name| !split_name(name).1.is_empty()) {
        lines.push(part(|name| split_name(name).1));
    }
    for row in &metric.rows {
        let mut line = vec![format!("{}:", row.key)];
        for cell in &row.cells {
            let percent = metric.percent(Stat::Mean, cell, row.base());
            line.push(format!("{:.2}", metric.value(Stat::Mean, cell)));
            line.push(format!("({:.2} pct)", cut(percent)));
        }
        lines.push(line);
    }
    let mut leans = vec![Lean::Left];
    leans.extend(kernels.iter().flat_map(|_| [Lean::Right, Lean::Left]));
    columns(&lines, &leans, " ")
}

/// The number truncated to two decimals.
fn cut(percent: f64) -> f64 {
    (percent * 100.0).trunc() / 100.0
}

#[cfg(test)]
mod tests {
    use crate::render::testdata::stream;
    use crate::{Comparison, Options, render};
    use expect_test::expect;

    #[test]
    fn the_published_stream_table_comes_out() {
        let comparison = Comparison::new(&stream(), Options::default());
        let found = render::amd(&comparison.metrics[0], &comparison.kernels);
        // As mailed, except for blanks that the archive lost.
        let published = [
            "Copy: 109364.74 (0.00 pct) 94220.50 (-13.84 pct) 158301.28 (44.74 pct)",
            "Scale: 109670.26 (0.00 pct) 90210.59 (-17.74 pct) 149525.64 (36.34 pct)",
            "Add: 129029.01 (0.00 pct) 101906.00 (-21.02 pct) 186658.17 (44.66 pct)",
            "Triad: 127260.05 (0.00 pct) 106051.36 (-16.66 pct) 184327.30 (44.84 pct)",
        ];
        let lines = found.lines().skip(2).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(lines.collect::<Vec<_>>(), published);
        expect![[r#"
                   5.18.0-rc1            5.18.0-rc1              5.18.0-rc1
                   no-pinning               pinning              this-patch
            Copy:   109364.74 (0.00 pct)   94220.50 (-13.84 pct)  158301.28 (44.74 pct)
            Scale:  109670.26 (0.00 pct)   90210.59 (-17.74 pct)  149525.64 (36.34 pct)
            Add:    129029.01 (0.00 pct)  101906.00 (-21.02 pct)  186658.17 (44.66 pct)
            Triad:  127260.05 (0.00 pct)  106051.36 (-16.66 pct)  184327.30 (44.84 pct)
        "#]]
        .assert_eq(&found);
    }
}
