//! Many metrics in one table: one line each, with the change, its interval, and the word.
//!
//! ```text
//! v6.12+NO_SIS_UTIL against v6.12: 10 pairs by seed, 95 % intervals
//! latency-p99 hackbench   132 us   141 us   +6.8 % [+5.1, +8.4]  worse
//! switches/s              1.25 M   1.24 M   -0.4 % [-1.0, +0.2]  no difference
//! ```
//!
//! Each value has a suitable unit.

use schedlab_stats::Summary;

use super::columns::{Lean, columns};
use super::paired::change;
use crate::{CellComparison, Comparison, MetricComparison};

/// All metrics of a comparison, one block per kernel other than the baseline; the means if there is only one kernel.
/// Lines are no wider than `width` if possible.
pub fn changes(comparison: &Comparison, width: usize) -> String {
    if comparison.kernels.len() == 1 {
        return alone(comparison);
    }
    let blocks: Vec<String> =
        (1..comparison.kernels.len()).map(|kernel| block(comparison, kernel, width)).collect();
    blocks.join("\n")
}

fn block(comparison: &Comparison, kernel: usize, width: usize) -> String {
    let cells =
        || comparison.metrics.iter().flat_map(|m| m.rows.iter().map(move |row| (m, row, &row.cells[kernel])));
    let pairs = || cells().map(|(_, _, cell)| cell.paired.n);
    let (least, most) = (pairs().min().unwrap_or(0), pairs().max().unwrap_or(0));
    let count = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    let head = format!(
        "{} against {}: {count} pair{} by seed, {} % intervals\n",
        comparison.kernels[kernel],
        comparison.baseline(),
        if most == 1 { "" } else { "s" },
        comparison.options.confidence * 100.0,
    );
    let change_width = cells().map(|(_, _, cell)| change(cell).0.len()).max().unwrap_or(0);
    let line = |(metric, row, cell): (&MetricComparison, &crate::RowComparison, &CellComparison)| {
        let (change, interval) = change(cell);
        // If there are no pairs, each side still shows its own value.
        let side = |paired: f64, cell: &CellComparison| if paired.is_finite() { paired } else { mean(cell) };
        vec![
            name(metric, &row.key),
            quantity(side(cell.paired.base, row.base()), &metric.unit),
            quantity(side(cell.paired.value, cell), &metric.unit),
            format!("{change:>change_width$} {interval}").trim_end().to_owned(),
            metric.word(cell),
        ]
    };
    let lines: Vec<Vec<String>> = cells().map(line).collect();
    let leans = [Lean::Left, Lean::Right, Lean::Right, Lean::Left, Lean::Left];
    let fits = |text: &String| text.lines().all(|line| line.chars().count() <= width);
    let wide = columns(&lines, &leans, "  ");
    if fits(&wide) {
        return head + &wide;
    }
    let narrow = columns(&lines, &leans, " ");
    if fits(&narrow) {
        return head + &narrow;
    }
    // Names on separate lines.
    let rest: Vec<Vec<String>> = lines
        .iter()
        .map(|line| std::iter::once(String::new()).chain(line[1..].iter().cloned()).collect())
        .collect();
    let rest = columns(&rest, &leans, "  ");
    let pairs = lines.iter().zip(rest.lines());
    head + &pairs.map(|(line, rest)| format!("{}\n{rest}\n", line[0])).collect::<String>()
}

fn alone(comparison: &Comparison) -> String {
    let cells = comparison.metrics.iter().flat_map(|m| m.rows.iter().map(move |row| (m, row, row.base())));
    let line = |(metric, row, cell): (&MetricComparison, &crate::RowComparison, &CellComparison)| {
        let spread = cell.summary.stddev();
        let spread = match cell.runs {
            0 => "no figure".to_owned(),
            1 => String::new(),
            _ => format!("sd {}", quantity(spread, &metric.unit)),
        };
        vec![name(metric, &row.key), quantity(mean(cell), &metric.unit), spread]
    };
    let lines: Vec<Vec<String>> = cells.map(line).collect();
    columns(&lines, &[Lean::Left, Lean::Right, Lean::Left], "  ")
}

fn mean(cell: &CellComparison) -> f64 {
    let summary: &Summary = &cell.summary;
    if summary.mean().is_finite() { summary.mean() } else { summary.amean() }
}

fn name(metric: &MetricComparison, key: &str) -> String {
    if key.is_empty() { metric.name.clone() } else { format!("{} {key}", metric.name) }
}

/// A value with a suitable unit, to four digits: `132.5 us`, `1.25 M/s`, `12,345`. A dash if there is none.
pub fn quantity(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let size = value.abs();
    let times = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    if let Some(&(_, own)) = times.iter().find(|(name, _)| *name == unit) {
        let ns = size * own;
        // A value that rounds to a thousand of one unit is one of the next.
        let (name, scale) = times.iter().rfind(|(_, scale)| ns >= 0.999_95 * scale).unwrap_or(&times[0]);
        return format!("{} {name}", digits(value * own / scale));
    }
    let (letter, scale) = match size {
        s if s >= 1e9 => ("G", 1e9),
        s if s >= 1e6 => ("M", 1e6),
        _ => ("", 1.0),
    };
    match (digits(value / scale), letter, unit) {
        (number, "", "") => number,
        (number, "", unit) => format!("{number} {unit}"),
        (number, letter, unit) => format!("{number} {letter}{unit}"),
    }
}

/// Four significant digits, with thousands separators.
fn digits(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if size >= 999.95 {
        let whole = format!("{value:.0}");
        let (sign, whole) = whole.strip_prefix('-').map_or(("", whole.as_str()), |rest| ("-", rest));
        let mut out = String::new();
        for (at, c) in whole.chars().enumerate() {
            if at > 0 && (whole.len() - at).is_multiple_of(3) {
                out.push(',');
            }
            out.push(c);
        }
        return format!("{sign}{out}");
    }
    let behind = if size >= 99.995 {
        1
    } else if size >= 9.9995 {
        2
    } else if size >= 0.1 {
        3
    } else {
        (3.0 - size.log10().floor()).min(9.0) as usize
    };
    // 12.00 says no more than 12.
    let text = format!("{value:.behind$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Direction, Options, Table};
    use expect_test::expect;

    #[test]
    fn values_have_units_that_suit_them() {
        for (value, unit, text) in [
            (3_210.0, "ns", "3.21 us"),
            (1_234_567_890.0, "ns", "1.235 s"),
            (999_998_000.0, "ns", "1 s"),
            (0.0034, "s", "3.4 ms"),
            (0.5, "ns", "0.5 ns"),
            (0.0, "ns", "0 ns"),
            (1_250_000.0, "/s", "1.25 M/s"),
            (12_345.0, "", "12,345"),
            (999.96, "", "1,000"),
            (0.00034, "", "0.00034"),
            (12.0, "%", "12 %"),
            (-1_234.5, "", "-1,234"),
            (f64::NAN, "ns", "-"),
        ] {
            assert_eq!(quantity(value, unit), text, "{value} {unit}");
        }
    }

    fn table() -> Table {
        let mut table = Table::new("", ["v6.12", "v6.12+NO_SIS_UTIL"]);
        for seed in 0..5 {
            let noise = seed as f64;
            let latency = table.metric("latency-p99", "ns", Direction::Lower);
            latency.record("w", 0, seed, 132_000.0 + noise);
            latency.record("w", 1, seed, 141_000.0 + 3.0 * noise);
            let share = table.metric("cpu-share", "%", Direction::Lower);
            share.neither_is_better();
            share.record("w", 0, seed, 50.0);
            share.record("w", 1, seed, 40.0);
            let spans = table.metric("spans", "s", Direction::Lower);
            spans.row("1");
            spans.record("2", 0, seed, 1.5);
        }
        table
    }

    #[test]
    fn a_line_each_and_none_is_dropped() {
        let comparison = Comparison::new(&table(), Options::default());
        expect![[r#"
            v6.12+NO_SIS_UTIL against v6.12: 0 to 5 pairs by seed, 95 % intervals
            latency-p99 w  132 us  141 us   +6.8 % [+6.8, +6.8]    worse
            cpu-share w      50 %    40 %  -20.0 % [-20.0, -20.0]  less
            spans 1             -       -        -                 no figure
            spans 2         1.5 s       -        -                 no figure
        "#]]
        .assert_eq(&changes(&comparison, 80));
    }

    #[test]
    fn where_there_is_little_room_names_have_lines_of_their_own() {
        let comparison = Comparison::new(&table(), Options::default());
        let text = changes(&comparison, 56);
        assert!(text.lines().skip(1).all(|line| line.chars().count() <= 56), "{text}");
        assert!(text.contains("\nlatency-p99 w\n"), "{text}");
    }

    #[test]
    fn one_kernel_has_its_means() {
        let comparison = Comparison::new(&table().columns(&[0]), Options::default());
        expect![[r#"
            latency-p99 w  132 us  sd 1.581 ns
            cpu-share w      50 %  sd 0 %
            spans 1             -  no figure
            spans 2         1.5 s  sd 0 ns
        "#]]
        .assert_eq(&changes(&comparison, 80));
    }
}
