//! The table in mails about wake-up placement: one line per load of each benchmark.
//!
//! ```text
//! case                    load        baseline(std%)  compare%( std%)
//! hackbench-process-pipe  1-groups     1.00 (  1.12)   -0.29 (  1.41)  no difference
//! ```
//!
//! The baseline is 1; a comparison is positive if it is better, with a word for the verdict.

use schedlab_stats::Stat;

use super::columns::{Lean, columns};
use crate::MetricComparison;

/// A benchmark with its loads.
pub struct Case<'a> {
    /// Its name.
    pub name: &'a str,
    /// What the keys of its rows count: `groups`.
    pub load: &'a str,
    /// What it measures.
    pub metric: &'a MetricComparison,
}

/// All loads of all benchmarks, a pair of columns for each kernel other than the baseline.
pub fn schedtests(cases: &[Case], kernels: &[String]) -> String {
    let mut head = vec!["case".to_owned(), "load".to_owned(), "baseline(std%)".to_owned()];
    for kernel in &kernels[1..] {
        head.extend([
            if kernels.len() == 2 { "compare%( std%)".to_owned() } else { kernel.clone() },
            String::new(),
        ]);
    }
    let mut lines = vec![head];
    for case in cases {
        for row in &case.metric.rows {
            let spread = |cell| {
                let percent = case.metric.value(Stat::CoeffVar, cell);
                if percent.is_finite() { format!("({percent:6.2})") } else { "(     -)".to_owned() }
            };
            let base = row.base();
            let one = if base.runs > 0 { "1.00" } else { "   -" };
            // After it the key of a latency names the tasks, like the case.
            let load = row.key.split(' ').next().unwrap_or_default();
            let key = if load.is_empty() { "-".to_owned() } else { format!("{load}-{}", case.load) };
            let mut line = vec![case.name.to_owned(), key, format!("{one} {}", spread(base))];
            for cell in &row.cells[1..] {
                let percent = case.metric.percent(Stat::Mean, cell, base);
                let percent = match percent.abs() {
                    // A small but certain change must not look like zero.
                    size if size > 0.0 && size < 0.005 => format!("{percent:+8.4}"),
                    size if size.is_finite() => format!("{percent:+8.2}"),
                    _ => "       -".to_owned(),
                };
                line.extend([format!("{percent} {}", spread(cell)), case.metric.word(cell)]);
            }
            lines.push(line);
        }
    }
    let mut leans = vec![Lean::Left, Lean::Left, Lean::Right];
    leans.extend(kernels[1..].iter().flat_map(|_| [Lean::Right, Lean::Left]));
    columns(&lines, &leans, "  ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Comparison, Direction, Options, Table};

    #[test]
    fn a_line_per_load_and_better_is_positive() {
        let mut table = Table::new("", ["a", "b"]);
        let time = table.metric("time", "s", Direction::Lower);
        for seed in 1..=3 {
            time.record("4", 0, seed, 2.0);
            time.record("4", 1, seed, 1.8);
            time.record("6", 0, seed, 2.0);
            time.record("6", 1, seed, 1.99995);
        }
        time.row("8");
        let comparison = Comparison::new(&table, Options::default());
        let case = Case { name: "hackbench", load: "groups", metric: &comparison.metrics[0] };
        let text = schedtests(&[case], &comparison.kernels);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "case       load      baseline(std%)    compare%( std%)");
        assert!(lines[1].ends_with("1.00 (  0.00)    +10.00 (  0.00)  better"), "{text}");
        assert!(lines[2].ends_with("1.00 (  0.00)   +0.0025 (  0.00)  better"), "{text}");
        assert!(lines[3].contains("8-groups") && lines[3].ends_with("no figure"), "{text}");
    }
}
