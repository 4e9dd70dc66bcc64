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
use crate::{CellComparison, MetricComparison, RowComparison};

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
///
/// If that is wider than `width`, the name of a benchmark has a line of its own; if it is still wider, each kernel has a
/// table of its own.
pub fn schedtests(cases: &[Case], kernels: &[String], width: usize) -> String {
    let compared: Vec<usize> = (1..kernels.len()).collect();
    let fits = |text: &String| text.lines().all(|line| line.chars().count() <= width);
    let whole = table(cases, kernels, &compared, false);
    if fits(&whole) {
        return whole;
    }
    let folded = table(cases, kernels, &compared, true);
    if compared.len() < 2 || fits(&folded) {
        return folded;
    }
    let apart: Vec<String> = compared.iter().map(|&at| table(cases, kernels, &[at], true)).collect();
    apart.join("\n")
}

/// The table of some of the kernels. If `folded`, a case has its name in a line above its loads.
fn table(cases: &[Case], kernels: &[String], compared: &[usize], folded: bool) -> String {
    let mut head = vec!["load".to_owned(), "baseline(std%)".to_owned()];
    for &at in compared {
        let title = if kernels.len() == 2 { "compare%( std%)" } else { &kernels[at] };
        head.extend([title.to_owned(), String::new()]);
    }
    let mut leans = vec![Lean::Left, Lean::Right];
    leans.extend(compared.iter().flat_map(|_| [Lean::Right, Lean::Left]));
    let rows: Vec<Vec<Vec<String>>> = cases.iter().map(|case| rows(case, compared)).collect();
    if !folded {
        let named = |name: &str, line: Vec<String>| [vec![name.to_owned()], line].concat();
        let mut lines = vec![named("case", head)];
        for (case, rows) in cases.iter().zip(rows) {
            lines.extend(rows.into_iter().map(|row| named(case.name, row)));
        }
        leans.insert(0, Lean::Left);
        return columns(&lines, &leans, "  ");
    }
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows.iter().flatten().cloned()).collect();
    let text = columns(&lines, &leans, "  ");
    let mut padded = text.lines();
    let mut out = format!("case\n  {}\n", padded.next().unwrap_or_default());
    for (case, rows) in cases.iter().zip(&rows) {
        out += &format!("{}\n", case.name);
        for line in padded.by_ref().take(rows.len()) {
            out += &format!("  {line}\n");
        }
    }
    out
}

/// The loads of a benchmark.
fn rows(case: &Case, compared: &[usize]) -> Vec<Vec<String>> {
    let spread = |cell: &CellComparison| {
        let percent = case.metric.value(Stat::CoeffVar, cell);
        if percent.is_finite() { format!("({percent:6.2})") } else { "(     -)".to_owned() }
    };
    let row = |row: &RowComparison| {
        let base = row.base();
        let one = if base.runs > 0 { "1.00" } else { "   -" };
        // After it the key of a latency names the tasks, like the case.
        let load = row.key.split(' ').next().unwrap_or_default();
        let key = if load.is_empty() { "-".to_owned() } else { format!("{load}-{}", case.load) };
        let mut line = vec![key, format!("{one} {}", spread(base))];
        for &at in compared {
            let cell = &row.cells[at];
            let percent = case.metric.percent(Stat::Mean, cell, base);
            let percent = if percent.is_finite() { format!("{percent:+8.2}") } else { "       -".to_owned() };
            line.extend([format!("{percent} {}", spread(cell)), case.metric.word(cell)]);
        }
        line
    };
    case.metric.rows.iter().map(row).collect()
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
            time.record("6", 1, seed, 1.99999);
        }
        time.row("8");
        let comparison = Comparison::new(&table, Options::default());
        let case = Case { name: "hackbench", load: "groups", metric: &comparison.metrics[0] };
        let text = schedtests(&[case], &comparison.kernels, 200);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "case       load      baseline(std%)    compare%( std%)");
        assert!(lines[1].ends_with("1.00 (  0.00)    +10.00 (  0.00)  better"), "{text}");
        assert!(lines[2].ends_with("1.00 (  0.00)     +0.00 (  0.00)  no difference"), "{text}");
        assert!(lines[3].contains("8-groups") && lines[3].ends_with("no figure"), "{text}");
    }
    #[test]
    fn a_narrow_terminal_has_a_name_per_line_and_then_a_table_per_kernel() {
        let mut table = Table::new("", ["a", "b", "c"]);
        let time = table.metric("time", "s", Direction::Lower);
        for (at, value) in [2.0, 1.8, 1.6].into_iter().enumerate() {
            (1..=3).for_each(|seed| time.record("4", at, seed, value));
        }
        let comparison = Comparison::new(&table, Options::default());
        let case = || Case { name: "hackbench", load: "groups", metric: &comparison.metrics[0] };
        let of = |width| schedtests(&[case()], &comparison.kernels, width);
        let widest = |text: &str| text.lines().map(|line| line.chars().count()).max();
        assert_eq!(of(200).lines().count(), 2);
        let folded = of(widest(&of(200)).unwrap() - 1);
        assert_eq!(folded.lines().count(), 4, "{folded}");
        assert_eq!(folded.lines().nth(2), Some("hackbench"));
        let apart = of(widest(&folded).unwrap() - 1);
        assert_eq!(apart.lines().filter(|&line| line == "hackbench").count(), 2, "{apart}");
        assert!(apart.contains("+10.00") && apart.contains("+20.00"), "{apart}");
    }
}
