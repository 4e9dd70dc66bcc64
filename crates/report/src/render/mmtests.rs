//! The table of mmtests, to the column.
//!
//! A stat name, the row, then per kernel a field of 12 and `(   9.23%)`, with asterisks instead of the
//! parentheses if the rule finds the mean significant. The first column is as wide as the widest statistic of
//! the full table even if mail dropped that row, as in published tables. Columns grow if a name or a number
//! needs more room; in mmtests such a line sticks out instead.

use schedlab_stats::{Direction, Stat};

use super::header::{header, header_width};
use super::paired::known;
use crate::{MetricComparison, RowComparison};

/// Width and precision of a value's field.
const FIELD: usize = 12;
/// Width of a percentage or a distance.
const COMPARE: usize = 7;

/// The rows of `stats` for every row of the metric, one statistic after the other.
pub fn mmtests(metric: &MetricComparison, kernels: &[String], stats: &[Stat]) -> String {
    let all: Vec<usize> = (0..kernels.len()).collect();
    of_columns(metric, kernels, stats, &all)
}

/// The same in tables that are no wider than `width` columns if possible: each has the baseline and as many of the
/// others as fit.
pub fn mmtests_within(metric: &MetricComparison, kernels: &[String], stats: &[Stat], width: usize) -> String {
    let is_too_wide = |text: &str| text.lines().any(|line| line.chars().count() > width);
    let mut tables = Vec::new();
    let mut columns = vec![0];
    for kernel in 1..kernels.len() {
        columns.push(kernel);
        if columns.len() > 2 && is_too_wide(&of_columns(metric, kernels, stats, &columns)) {
            columns.pop();
            tables.push(of_columns(metric, kernels, stats, &columns));
            columns = vec![0, kernel];
        }
    }
    tables.push(of_columns(metric, kernels, stats, &columns));
    tables.join("\n")
}

fn of_columns(metric: &MetricComparison, kernels: &[String], stats: &[Stat], columns: &[usize]) -> String {
    let mut lines = Vec::new();
    for &stat in stats {
        for row in &metric.rows {
            let cells = columns.iter().map(|&kernel| compared_cell(metric, row, stat, kernel));
            lines.push(Line { label: metric.label(stat), key: row.key.clone(), cells: cells.collect() });
        }
    }
    let kernels: Vec<String> = columns.iter().map(|&kernel| kernels[kernel].clone()).collect();
    layout(metric, &kernels, &lines)
}

/// Means in units of the baseline's, as `--print-ratio` prints them, with the distance in units of the
/// spread, and the totals of all rows in the last four lines.
pub fn ratios(metric: &MetricComparison, kernels: &[String]) -> String {
    let mut lines = Vec::new();
    for row in &metric.rows {
        let cells = (0..kernels.len()).map(|kernel| ratio_cell(metric, row, kernel)).collect();
        lines.push(Line { label: metric.label(Stat::Mean), key: row.key.clone(), cells });
    }
    let preferred = match metric.direction {
        Direction::Lower => "Lower",
        Direction::Higher => "Higher",
    };
    let closing = metric.ratios();
    let mut close = |label, value: fn(&crate::Ratios) -> f64| {
        let cells =
            closing.iter().map(|r| Field { value: format!("{:.2}", value(r)), comparisons: Vec::new() });
        lines.push(Line { label, key: preferred.to_owned(), cells: cells.collect() });
    };
    close("Dmean", |r| r.distance_mean);
    close("Dmin", |r| r.distance_min);
    close("Dmax", |r| r.distance_max);
    close("Gmean", |r| r.gmean);
    layout(metric, kernels, &lines)
}

/// A line before it is padded.
struct Line {
    label: &'static str,
    key: String,
    cells: Vec<Field>,
}

/// A value, and its bracket.
struct Field {
    value: String,
    comparisons: Vec<Bracket>,
}

/// `(   9.23%)`, `*   9.23%*` or `(  +1.35s)`, unpadded.
struct Bracket {
    text: String,
    starred: bool,
}

fn compared_cell(metric: &MetricComparison, row: &RowComparison, stat: Stat, kernel: usize) -> Field {
    let cell = &row.cells[kernel];
    let percent = metric.percent(stat, cell, row.base());
    let starred = stat == Stat::Mean && metric.is_starred(cell);
    let percent = if percent.is_nan() { "-".to_owned() } else { format!("{percent:.2}%") };
    Field {
        value: known(metric.value(stat, cell), metric.digits()),
        comparisons: vec![Bracket { text: percent, starred }],
    }
}

fn ratio_cell(metric: &MetricComparison, row: &RowComparison, kernel: usize) -> Field {
    let cell = &row.cells[kernel];
    let percent = metric.percent(Stat::Mean, cell, row.base());
    let comparisons = [format!("{percent:.2}%"), format!("{:+.2}s", cell.distance)];
    Field {
        value: format!("{:.2}", row.ratio(kernel)),
        comparisons: comparisons.map(|text| Bracket { text, starred: false }).into(),
    }
}

fn layout(metric: &MetricComparison, kernels: &[String], lines: &[Line]) -> String {
    let shown = lines.iter().map(|line| line.label.len());
    let label_width = shown.chain(Stat::ALL.map(|s| metric.label(s).len())).max().unwrap_or(0);
    let key_width = lines.iter().map(|line| line.key.chars().count()).max().unwrap_or(0);
    let columns: Vec<Column> =
        kernels.iter().enumerate().map(|(kernel, name)| Column::fit(name, kernel, lines)).collect();

    let widths: Vec<usize> = columns.iter().map(Column::width).collect();
    let mut out = header(label_width + 1 + key_width, kernels, &widths);
    for line in lines {
        let mut text = format!("{:<label_width$} {:<key_width$}", line.label, line.key);
        for (column, field) in columns.iter().zip(&line.cells) {
            column.print(field, &mut text);
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

/// How wide one kernel's numbers are.
struct Column {
    field: usize,
    compare: usize,
    brackets: usize,
}

impl Column {
    fn fit(name: &str, kernel: usize, lines: &[Line]) -> Column {
        let fields = || lines.iter().map(|line| &line.cells[kernel]);
        let comparisons = || fields().flat_map(|field| &field.comparisons);
        let mut column = Column {
            field: fields().map(|f| f.value.len() + 1).fold(FIELD, usize::max),
            compare: comparisons().map(|b| b.text.len()).fold(COMPARE + 1, usize::max),
            brackets: fields().map(|f| f.comparisons.len()).max().unwrap_or(0),
        };
        let header = header_width(name) + 1;
        column.field += header.saturating_sub(column.width());
        column
    }

    /// Each comparison adds ` (` and `)`.
    fn width(&self) -> usize {
        self.field + self.brackets * (self.compare + 3)
    }

    fn print(&self, field: &Field, out: &mut String) {
        *out += &format!("{:>1$}", field.value, self.field);
        for bracket in &field.comparisons {
            let (open, close) = if bracket.starred { ('*', '*') } else { ('(', ')') };
            *out += &format!(" {open}{:>1$}{close}", bracket.text, self.compare);
        }
        let missing = self.brackets - field.comparisons.len();
        *out += &" ".repeat(missing * (self.compare + 3));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testdata::{dbench, stream, table};
    use crate::{Comparison, Direction, Options, Rule, Table};
    use expect_test::{Expect, expect};

    fn compare(table: &Table, rule: &str) -> Comparison {
        Comparison::new(table, Options { rule: rule.parse().unwrap(), ..Options::default() })
    }

    fn check(table: &Table, rule: &str, stats: &[Stat], expected: Expect) {
        let comparison = compare(table, rule);
        expected.assert_eq(&mmtests(&comparison.metrics[0], &comparison.kernels, stats));
    }

    #[test]
    fn a_mean_has_no_star_while_its_verdict_is_not_known() {
        let starred = |runs: u64| {
            let mut table = Table::new("", ["a", "b"]);
            let time = table.metric("time", "s", Direction::Lower);
            for seed in 1..=runs {
                time.record("4", 0, seed, 20.0 + 0.01 * seed as f64);
                time.record("4", 1, seed, 10.0 + 0.01 * seed as f64);
            }
            let comparison = compare(&table, "ci-2024");
            assert!(comparison.metrics[0].rows[0].cells[1].star.significant);
            mmtests(&comparison.metrics[0], &comparison.kernels, &[Stat::Mean]).contains('*')
        };
        assert!(!starred(2) && starred(3));
    }

    #[test]
    fn the_published_dbench_table_comes_out_to_the_column() {
        check(
            &dbench(),
            "t-2020",
            &Stat::MAIL,
            expect![[r#"
                                      5.5.0-rc7              5.5.0-rc7
                              tipsched-20200124           kworkerstack
            Amean     1        22.63 (   0.00%)       20.54 *   9.23%*
            Amean     2        25.56 (   0.00%)       23.40 *   8.44%*
            Amean     4        28.63 (   0.00%)       27.85 *   2.70%*
            Amean     8        37.66 (   0.00%)       37.68 (  -0.05%)
            Amean     64      469.47 (   0.00%)      468.26 (   0.26%)
            Stddev    1         1.00 (   0.00%)        0.72 (  28.12%)
            Stddev    2         1.62 (   0.00%)        1.97 ( -21.54%)
            Stddev    4         2.53 (   0.00%)        3.58 ( -41.19%)
            Stddev    8         5.30 (   0.00%)        5.20 (   1.92%)
            Stddev    64       86.36 (   0.00%)       94.53 (  -9.46%)
        "#]],
        );
    }

    #[test]
    fn the_published_throughput_table_comes_out_to_the_column() {
        let throughput = table(
            &["5.5.0-rc7-tipsched-20200124", "5.5.0-rc7-kworkerstack-v1r2"],
            "throughput",
            "MB/s",
            Direction::Higher,
            &[
                ("1", &[(321.41, 9.0), (617.82, 9.0)]),
                ("2", &[(622.87, 9.0), (1066.80, 9.0)]),
                ("4", &[(1134.56, 9.0), (1623.74, 9.0)]),
                ("8", &[(1869.96, 9.0), (2212.67, 9.0)]),
                ("16", &[(2673.11, 9.0), (2806.13, 9.0)]),
                ("32", &[(3032.74, 300.0), (3039.54, 300.0)]),
                ("64", &[(2514.25, 30.0), (2498.96, 30.0)]),
                ("128", &[(1778.49, 30.0), (1746.05, 30.0)]),
            ],
        );
        check(
            &throughput,
            "t-2020",
            &[Stat::Mean],
            expect![[r#"
                                       5.5.0-rc7              5.5.0-rc7
                               tipsched-20200124      kworkerstack-v1r2
            Hmean     1        321.41 (   0.00%)      617.82 *  92.22%*
            Hmean     2        622.87 (   0.00%)     1066.80 *  71.27%*
            Hmean     4       1134.56 (   0.00%)     1623.74 *  43.12%*
            Hmean     8       1869.96 (   0.00%)     2212.67 *  18.33%*
            Hmean     16      2673.11 (   0.00%)     2806.13 *   4.98%*
            Hmean     32      3032.74 (   0.00%)     3039.54 (   0.22%)
            Hmean     64      2514.25 (   0.00%)     2498.96 *  -0.61%*
            Hmean     128     1778.49 (   0.00%)     1746.05 *  -1.82%*
        "#]],
        );
    }

    #[test]
    fn the_rule_of_2024_takes_the_stars_away() {
        check(
            &dbench(),
            "ci-2024",
            &[Stat::Mean],
            expect![[r#"
                                      5.5.0-rc7              5.5.0-rc7
                              tipsched-20200124           kworkerstack
            Amean     1        22.63 (   0.00%)       20.54 (   9.23%)
            Amean     2        25.56 (   0.00%)       23.40 (   8.44%)
            Amean     4        28.63 (   0.00%)       27.85 (   2.70%)
            Amean     8        37.66 (   0.00%)       37.68 (  -0.05%)
            Amean     64      469.47 (   0.00%)      468.26 (   0.26%)
        "#]],
        );
    }

    #[test]
    fn a_full_table_groups_by_statistic() {
        check(
            &stream(),
            "ci-2024",
            &Stat::ALL,
            expect![[r#"
                                        5.18.0-rc1             5.18.0-rc1             5.18.0-rc1
                                        no-pinning                pinning             this-patch
            Min       Copy    108472.31 (   0.00%)    90384.32 ( -16.68%)   157604.54 (  45.29%)
            Min       Scale   108777.81 (   0.00%)    86381.34 ( -20.59%)   148829.08 (  36.82%)
            Min       Add     128135.47 (   0.00%)    98058.00 ( -23.47%)   185960.96 (  45.13%)
            Min       Triad   126366.59 (   0.00%)   102197.68 ( -19.13%)   183630.12 (  45.32%)
            Hmean     Copy    109364.74 (   0.00%)    94220.50 * -13.85%*   158301.28 *  44.75%*
            Hmean     Scale   109670.26 (   0.00%)    90210.59 * -17.74%*   149525.64 *  36.34%*
            Hmean     Add     129029.01 (   0.00%)   101906.00 * -21.02%*   186658.17 *  44.66%*
            Hmean     Triad   127260.05 (   0.00%)   106051.36 * -16.67%*   184327.30 *  44.84%*
            HStddev   Copy       899.77 (   0.00%)     3999.00 (-344.44%)      699.82 (  22.22%)
            HStddev   Scale      899.77 (   0.00%)     3999.00 (-344.44%)      699.82 (  22.22%)
            HStddev   Add        899.77 (   0.00%)     3999.00 (-344.44%)      699.82 (  22.22%)
            HStddev   Triad      899.77 (   0.00%)     3999.00 (-344.44%)      699.82 (  22.22%)
            HCoeffVar Copy         0.82 (   0.00%)        4.24 (-415.88%)        0.44 (  46.27%)
            HCoeffVar Scale        0.82 (   0.00%)        4.43 (-440.32%)        0.47 (  42.95%)
            HCoeffVar Add          0.70 (   0.00%)        3.92 (-462.74%)        0.37 (  46.24%)
            HCoeffVar Triad        0.71 (   0.00%)        3.77 (-433.33%)        0.38 (  46.30%)
            Max       Copy    110271.98 (   0.00%)    98396.75 ( -10.77%)   159004.21 (  44.19%)
            Max       Scale   110577.48 (   0.00%)    94395.09 ( -14.63%)   150228.76 (  35.86%)
            Max       Add     129935.10 (   0.00%)   106068.34 ( -18.37%)   187360.63 (  44.20%)
            Max       Triad   128166.23 (   0.00%)   110207.06 ( -14.01%)   185029.79 (  44.37%)
            BHmean-95 Copy    109412.12 (   0.00%)    94431.44 ( -13.69%)   158338.12 (  44.72%)
            BHmean-95 Scale   109717.64 (   0.00%)    90421.56 ( -17.59%)   149562.48 (  36.32%)
            BHmean-95 Add     129076.38 (   0.00%)   102116.91 ( -20.89%)   186695.01 (  44.64%)
            BHmean-95 Triad   127307.42 (   0.00%)   106262.25 ( -16.53%)   184364.14 (  44.82%)
        "#]],
        );
    }

    #[test]
    fn columns_grow_for_long_names_and_huge_values() {
        let mut table = Table::new(
            "",
            ["v6.10", "v6.10+preempt=auto/none+NO_SIS_UTIL+NUMA_IMB_AFFINITY", "v6.12", "v7.2"],
        );
        let metric = table.metric("cycles", "", Direction::Lower);
        for seed in 0..3 {
            for (kernel, value) in [700_281_729_230_103.0, 3.0, 5e17, 0.0].into_iter().enumerate() {
                metric.record("P10-320, 60 groups", kernel, seed, value);
                metric.record("none", kernel, seed, value / 1e15);
            }
        }
        check(
            &table,
            "t-2020",
            &Stat::MAIL,
            expect![[r#"
                                                                     v6.10                                            v6.10                              v6.12                   v7.2
                                                                           +preempt=auto/none+NO_SIS_UTIL+NUMA_IMB_AFFINITY
                Amean     P10-320, 60 groups 700281729230103.00 (   0.00%)                                  3.00 * 100.00%* 500000000000000000.00 *-71299.84%*        0.00 * 100.00%*
                Amean     none                             0.70 (   0.00%)                                  0.00 * 100.00%*                500.00 *-71299.84%*        0.00 * 100.00%*
                Stddev    P10-320, 60 groups               0.00 (   0.00%)                                  0.00 (   0.00%)                  0.00 (     0.00%)        0.00 (   0.00%)
                Stddev    none                             0.00 (   0.00%)                                  0.00 (   0.00%)                  0.00 (     0.00%)        0.00 (   0.00%)
            "#]],
        );
    }

    #[test]
    fn lone_and_missing_runs_print_what_is_known() {
        let mut table = Table::new("", ["v6.1", "v6.12"]);
        let metric = table.metric("time", "s", Direction::Lower);
        metric.record("one each", 0, 1, 5.0);
        metric.record("one each", 1, 1, 4.0);
        metric.record("base only", 0, 1, 5.0);
        metric.record("zero base", 0, 1, 0.0);
        metric.record("zero base", 1, 1, 4.0);
        check(
            &table,
            "t-2020",
            &Stat::ALL,
            expect![[r#"
                                                      v6.1                  v6.12
                Min       one each         5.00 (   0.00%)        4.00 (  20.00%)
                Min       base only        5.00 (   0.00%)           - (       -)
                Min       zero base        0.00 (   0.00%)        4.00 ( -99.00%)
                Amean     one each         5.00 (   0.00%)        4.00 (  20.00%)
                Amean     base only        5.00 (   0.00%)           - (       -)
                Amean     zero base        0.00 (   0.00%)        4.00 ( -99.00%)
                Stddev    one each            - (       -)           - (       -)
                Stddev    base only           - (       -)           - (       -)
                Stddev    zero base           - (       -)           - (       -)
                CoeffVar  one each         0.00 (   0.00%)        0.00 (   0.00%)
                CoeffVar  base only        0.00 (   0.00%)        0.00 (   0.00%)
                CoeffVar  zero base        0.00 (   0.00%)        0.00 (   0.00%)
                Max       one each         5.00 (   0.00%)        4.00 (  20.00%)
                Max       base only        5.00 (   0.00%)           - (       -)
                Max       zero base        0.00 (   0.00%)        4.00 ( -99.00%)
                BAmean-95 one each         5.00 (   0.00%)        4.00 (  20.00%)
                BAmean-95 base only        5.00 (   0.00%)           - (       -)
                BAmean-95 zero base        0.00 (   0.00%)        4.00 ( -99.00%)
            "#]],
        );
    }

    #[test]
    fn ratio_tables_close_with_what_all_rows_come_to() {
        for (rule, expected) in [
            (
                "t-2020",
                expect![[r#"
                                                    5.5.0-rc7                         5.5.0-rc7
                                            tipsched-20200124                      kworkerstack
            Amean     1            1.00 (   0.00%) (  +0.00s)        0.91 (   9.23%) (  -2.39s)
            Amean     2            1.00 (   0.00%) (  +0.00s)        0.92 (   8.44%) (  -1.20s)
            Amean     4            1.00 (   0.00%) (  +0.00s)        0.97 (   2.70%) (  -0.25s)
            Amean     8            1.00 (   0.00%) (  +0.00s)        1.00 (  -0.05%) (  +0.00s)
            Amean     64           1.00 (   0.00%) (  +0.00s)        1.00 (   0.26%) (  -0.01s)
            Dmean     Lower        0.00                             -0.77
            Dmin      Lower        0.00                             -2.39
            Dmax      Lower        0.00                              0.00
            Gmean     Lower        1.00                              0.96
        "#]],
            ),
            (
                "ci-2024",
                expect![[r#"
                                                    5.5.0-rc7                         5.5.0-rc7
                                            tipsched-20200124                      kworkerstack
            Amean     1            1.00 (   0.00%) (  +0.00s)        0.91 (   9.23%) (  +0.62s)
            Amean     2            1.00 (   0.00%) (  +0.00s)        0.92 (   8.44%) (  +0.31s)
            Amean     4            1.00 (   0.00%) (  +0.00s)        0.97 (   2.70%) (  +0.06s)
            Amean     8            1.00 (   0.00%) (  +0.00s)        1.00 (  -0.05%) (  -0.00s)
            Amean     64           1.00 (   0.00%) (  +0.00s)        1.00 (   0.26%) (  +0.00s)
            Dmean     Lower        0.00                              0.20
            Dmin      Lower        0.00                             -0.00
            Dmax      Lower        0.00                              0.62
            Gmean     Lower        1.00                              0.96
        "#]],
            ),
        ] {
            let comparison = compare(&dbench(), rule);
            expected.assert_eq(&ratios(&comparison.metrics[0], &comparison.kernels));
        }
    }

    #[test]
    fn rules_with_seeds_print_the_same_stars_again() {
        let table = crate::render::testdata::paired_runs();
        for rule in Rule::ALL {
            assert_eq!(compare(&table, rule.name()), compare(&table, rule.name()));
        }
    }
}
