//! A set of benchmarks under several kernels, as a page: the answer first, then one table, then every figure.

use schedlab_html::{Block, Page, Table};
use schedlab_report::{Comparison, MetricComparison, Table as Samples};
use schedlab_stats::Verdict;

use super::compare::{change, dots, number, table};

/// One benchmark of the set.
pub struct Benched<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What it models, in a sentence.
    pub about: &'a str,
    /// The parameter that its rows vary.
    pub load: &'a str,
    /// What it is judged by.
    pub metric: &'a MetricComparison,
    /// All its figures.
    pub comparison: &'a Comparison,
    /// The samples behind them.
    pub samples: &'a Samples,
}

/// The page of a set of benchmarks on one machine.
pub fn bench(title: &str, benches: &[Benched<'_>]) -> Page {
    let mut page = Page::new(title);
    let Some(first) = benches.first() else { return page };
    let kernels = &first.comparison.kernels;
    for kernel in 1..kernels.len() {
        page.push(Block::Verdict(verdict(kernels, benches, kernel)));
    }
    page.push(Block::Table(overview(kernels, benches)));
    page.push(Block::Note(format!(
        "Change is value over baseline by pairs of runs with the same seed, with {} % intervals; the star is by {}.",
        first.comparison.options.confidence * 100.0,
        first.comparison.options.rule
    )));
    for bench in benches {
        page.push(Block::Heading(bench.name.to_owned()));
        page.push(Block::Text(bench.about.to_owned()));
        for metric in &bench.comparison.metrics {
            // The unit is in the table, where it fits the values.
            page.push(Block::Note(format!("{}: {} is better", metric.name, metric.direction)));
            page.push(Block::Table(table(bench.comparison, metric)));
        }
        dots(&mut page, bench.samples);
    }
    page
}

/// The answer about a kernel in a sentence.
fn verdict(kernels: &[String], benches: &[Benched<'_>], kernel: usize) -> String {
    let cells = || benches.iter().flat_map(|bench| bench.metric.rows.iter().map(move |row| (bench, row)));
    let count = |verdict: Verdict| cells().filter(|(_, row)| row.cells[kernel].verdict == verdict).count();
    let most = cells()
        .filter(|(_, row)| matches!(row.cells[kernel].verdict, Verdict::Better | Verdict::Worse))
        .filter_map(|(bench, row)| Some((row.cells[kernel].paired.change?.abs(), bench, row)))
        .max_by(|x, y| x.0.total_cmp(&y.0))
        .map_or(String::new(), |(_, bench, row)| {
            format!(" Most: {} {}, {}.", bench.name, row.key, change(&row.cells[kernel]))
        });
    let few = if count(Verdict::TooFewRuns) > 0 { "; some have too few runs to say" } else { "" };
    format!(
        "{} against {}: better in {} and worse in {} of {} loads{few}.{most}",
        kernels[kernel],
        kernels[0],
        count(Verdict::Better),
        count(Verdict::Worse),
        cells().count()
    )
}

/// One line for each benchmark.
fn overview(kernels: &[String], benches: &[Benched<'_>]) -> Table {
    let mut columns =
        vec!["benchmark".to_owned(), "load".to_owned(), "figure".to_owned(), kernels[0].clone()];
    for kernel in &kernels[1..] {
        columns.extend([kernel.clone(), "change".to_owned(), "verdict".to_owned()]);
    }
    let texts: Vec<usize> =
        [1, 2].into_iter().chain((1..kernels.len()).map(|kernel| 3 + 3 * kernel)).collect();
    let mut all = Table { columns, ..Table::default() }.with_text_in(&texts);
    for bench in benches {
        for row in &bench.metric.rows {
            let mut cells = vec![
                bench.name.to_owned(),
                format!("{} {}", bench.load, row.key),
                bench.metric.heading(),
                number(row.base().summary.mean()),
            ];
            for cell in &row.cells[1..] {
                let star = if bench.metric.is_starred(cell) { " *" } else { "" };
                cells.extend([
                    number(cell.paired.value),
                    change(cell),
                    format!("{}{star}", bench.metric.word(cell)),
                ]);
            }
            all.row(cells);
        }
    }
    all
}
