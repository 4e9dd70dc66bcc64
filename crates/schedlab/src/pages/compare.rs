//! Kernels compared on a scenario, as a page: the answer first, then every run, then why, then the pictures.

use schedlab_html::{Block, Cumulative, Dots, Matrix, Packed, Page, Shares, Table};
use schedlab_report::{
    CellComparison, Comparison, MetricComparison, PerfStat, RowComparison, Table as Samples, fitting_time,
};
use schedlab_sim::{OfCpu, Part};
use schedlab_stats::Histogram;

use super::curves::cumulative;
use crate::because::busy_share;
use crate::experiment::Run;
use crate::judge::Judgement;

/// Rows whose runs are drawn one by one.
const DOTS: usize = 24;

/// Reasons in a picture.
const REASONS: usize = 14;

/// Percent of decisions below which a reason is not drawn.
const LEAST_SHARE: f64 = 0.5;

/// One run of a row under a kernel, for viewing.
pub struct Picture {
    /// The timeline.
    pub timeline: Packed,
    /// Moves between LLCs, or between CPUs if there is only one LLC.
    pub moves: Matrix,
}

/// The content of the page of a comparison.
pub struct Compared<'a> {
    /// The scenario's story; empty if it has none.
    pub story: &'a str,
    /// The comparison.
    pub comparison: &'a Comparison,
    /// The samples behind it.
    pub samples: &'a Samples,
    /// What the scenario expected.
    pub judgements: &'a [Judgement],
    /// Why the columns differ, a line each.
    pub because: Vec<String>,
    /// The row that is explained and shown; empty if there is only one.
    pub row: &'a str,
    /// Its runs by column.
    pub runs: &'a [Vec<Run>],
    /// Its counts by column.
    pub counts: &'a [PerfStat],
    /// Runs of that row for viewing.
    pub pictures: Vec<Picture>,
}

/// The row whose figures change most, which is the one to show.
pub fn telling_row<'a>(rows: impl Iterator<Item = &'a str>, comparison: &Comparison) -> usize {
    let change = |row: &RowComparison| {
        let changes = row.cells.iter().filter_map(|cell| cell.paired.change).map(f64::abs);
        changes.fold(0.0, f64::max)
    };
    let compared = || comparison.metrics.iter().flat_map(|metric| &metric.rows);
    let changes = rows.map(|key| compared().filter(|row| row.key == key).map(change).fold(0.0, f64::max));
    let mut most = (0.0, 0);
    for (at, change) in changes.enumerate() {
        if change > most.0 {
            most = (change, at);
        }
    }
    most.1
}

/// The page of a comparison.
pub fn compare(compared: Compared<'_>) -> Page {
    let Compared { story, comparison, samples, judgements, because, row, runs, counts, pictures } = compared;
    let mut page = Page::new(&comparison.title);
    page.reasons = super::reasons();
    for column in 1..comparison.kernels.len() {
        page.push(Block::Verdict(verdict(comparison, column)));
    }
    if !story.trim().is_empty() {
        page.push(Block::Text(story.trim().to_owned()));
    }
    for judgement in judgements {
        let word = if judgement.met { "Holds" } else { "Missed" };
        page.push(Block::Note(format!("{word}: {}", judgement.sentence)));
    }
    for metric in &comparison.metrics {
        page.push(Block::Heading(metric.heading()));
        page.push(Block::Table(table(comparison, metric)));
    }
    page.push(Block::Note(format!(
        "Change is value over baseline by pairs of runs with the same seed, with {} % intervals; the star is by {}.",
        comparison.options.confidence * 100.0,
        comparison.options.rule
    )));
    page.push(Block::Heading("Every run".to_owned()));
    dots(&mut page, samples);
    let of_row = if row.is_empty() { String::new() } else { format!(", row {row}") };
    why(&mut page, because, &of_row, &comparison.kernels, runs);
    if !counts.is_empty() {
        page.push(Block::Heading(format!("Counts and time{of_row}, mean of a run")));
        page.push(Block::Table(counts_table(counts, &comparison.kernels)));
    }
    for picture in &pictures {
        if picture.moves.counts.iter().any(|&count| count > 0) {
            page.push(Block::Matrix(picture.moves.clone()));
        }
    }
    if !pictures.is_empty() {
        page.push(Block::Heading(format!("The first run{of_row}, side by side")));
        page.push(Block::Timelines(pictures.into_iter().map(|picture| picture.timeline).collect()));
    }
    page
}

/// Puts the fidelity of a replay before its comparison: how closely it matches the recording on its own
/// machine.
pub fn with_fidelity(page: &mut Page, text: &str) {
    let verdicts = page.blocks.iter().take_while(|block| matches!(block, Block::Verdict(_))).count();
    let heading = Block::Heading("How closely the replay comes back where it was recorded".to_owned());
    // Each line is a word and a statement about it; the lines are far longer than a page is wide.
    let lines = text.lines().map(|line| match line.split_once(' ') {
        Some((word, rest)) => Block::Text(format!("{word}: {}", rest.trim_start())),
        None => Block::Text(line.to_owned()),
    });
    let head: Vec<Block> = std::iter::once(heading).chain(lines).collect();
    page.blocks.splice(verdicts..verdicts, head);
}

/// The smallest change that does not print as zero.
const SHOWN: f64 = 5e-6;

/// The answer about a kernel in a sentence.
fn verdict(comparison: &Comparison, kernel: usize) -> String {
    let cells =
        || comparison.metrics.iter().flat_map(|metric| metric.rows.iter().map(|row| &row.cells[kernel]));
    let mut words: Vec<(String, usize)> = Vec::new();
    for cell in cells() {
        let word = cell.verdict.to_string();
        match words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => words.push((word, 1)),
        }
    }
    let total = cells().count();
    let parts: Vec<String> =
        words.iter().map(|(word, count)| format!("{word} in {count} of {total} figures")).collect();
    let changes =
        || comparison.metrics.iter().flat_map(|metric| metric.rows.iter().map(move |row| (metric, row)));
    let most =
        changes().filter_map(|(metric, row)| Some((row.cells[kernel].paired.change?.abs(), metric, row)));
    let most = most.filter(|(change, ..)| *change >= SHOWN).max_by(|x, y| x.0.total_cmp(&y.0));
    let most = most.map_or(String::new(), |(_, metric, row)| {
        let key = if row.key.is_empty() { String::new() } else { format!(" {}", row.key) };
        format!(" Most: {}{key}, {}.", metric.name, change(&row.cells[kernel]))
    });
    format!("{} against {}: {}.{most}", comparison.kernels[kernel], comparison.baseline(), parts.join(", "))
}

/// `+60.5 % [+52.4, +68.6]`, or a span
pub(super) fn change(cell: &CellComparison) -> String {
    if let Some(span) = cell.span {
        return format!("{:+.1} to {:+.1} %", 100.0 * span.low, 100.0 * span.high);
    }
    let Some(change) = cell.paired.change else { return "?".to_owned() };
    let interval = cell.paired.interval.map(|interval| (100.0 * interval.low, 100.0 * interval.high));
    // More digits if a change would print as zero.
    let least = interval.map_or(change.abs() * 100.0, |(low, high)| low.abs().min(high.abs()));
    let digits = if least >= 0.05 || least == 0.0 { 1 } else { 3 };
    let interval =
        interval.map_or("[?, ?]".to_owned(), |(low, high)| format!("[{low:+.digits$}, {high:+.digits$}]"));
    format!("{:+.digits$} % {interval}", change * 100.0)
}

/// A readable unit for values of this size, and the divisor.
fn scaled(unit: &str, largest: f64) -> (&str, f64) {
    if unit == "ns" { fitting_time(largest) } else { (unit, 1.0) }
}

pub(super) fn table(comparison: &Comparison, metric: &MetricComparison) -> Table {
    let means = metric.rows.iter().flat_map(|row| row.cells.iter().map(|cell| cell.summary.mean()));
    let (unit, by) = scaled(&metric.unit, means.fold(0.0, f64::max));
    let comma = if unit.is_empty() { "" } else { ", " };
    let mut columns = vec!["".to_owned(), format!("{}{comma}{unit}", comparison.baseline())];
    for kernel in &comparison.kernels[1..] {
        columns.extend([kernel.clone(), "change".to_owned(), "verdict".to_owned()]);
    }
    let verdicts: Vec<usize> = (1..comparison.kernels.len()).map(|kernel| 1 + 3 * kernel).collect();
    let mut table = Table { columns, ..Table::default() }.with_text_in(&verdicts);
    for row in &metric.rows {
        let mut cells = vec![row.key.clone(), number(row.base().summary.mean() / by)];
        for cell in &row.cells[1..] {
            let star = if metric.is_starred(cell) { " *" } else { "" };
            cells.extend([
                number(cell.paired.value / by),
                change(cell),
                format!("{}{star}", metric.word(cell)),
            ]);
        }
        table.row(cells);
    }
    table
}

pub(super) fn number(value: f64) -> String {
    if value.is_nan() { "-".to_owned() } else { format!("{value:.2}") }
}

pub(super) fn dots(page: &mut Page, samples: &Samples) {
    let rows = samples.metrics().iter().flat_map(|metric| metric.rows().iter().map(move |row| (metric, row)));
    for (metric, row) in rows.take(DOTS) {
        let key = if row.key.is_empty() { String::new() } else { format!(" {}", row.key) };
        let largest =
            row.cells().iter().flat_map(|cell| cell.samples()).flatten().copied().fold(0.0, f64::max);
        let (unit, by) = scaled(&metric.unit, largest);
        let comma = if unit.is_empty() { "" } else { ", " };
        let mean = |samples: &[f64]| samples.iter().sum::<f64>() / samples.len() as f64 / by;
        let sides = samples.kernels().iter().zip(row.cells()).map(|(kernel, cell)| {
            (kernel.clone(), cell.runs().iter().map(|run| mean(run.samples())).collect())
        });
        page.push(Block::Dots(Dots {
            name: format!("{}{key}{comma}{unit}; {} is better", metric.name, metric.direction),
            sides: sides.collect(),
        }));
    }
}

/// Latencies and reasons of one row.
fn why(page: &mut Page, because: Vec<String>, of_row: &str, names: &[String], by_kernel: &[Vec<Run>]) {
    page.push(Block::Heading(format!("Why{of_row}")));
    because.into_iter().for_each(|line| page.push(Block::Text(line)));
    let waits: Vec<Histogram> = by_kernel
        .iter()
        .map(|runs| {
            runs.iter().fold(Histogram::new(), |mut sum, run| {
                sum.merge(&run.folds.latency.histogram);
                sum
            })
        })
        .collect();
    if waits.iter().all(|waits| waits.n() > 0) {
        page.push(Block::Heading(format!("From wake-up to run{of_row}, all runs")));
        let curves = names.iter().zip(&waits).map(|(name, waits)| cumulative(name, waits)).collect();
        page.push(Block::Cumulative(Cumulative { unit: "ns".to_owned(), curves }));
    }
    for (kind, plural) in [
        ("wakeup", "wake-ups"),
        ("fork", "forks"),
        ("balance", "rounds of balancing"),
        ("preemption", "questions of preemption"),
    ] {
        if let Some(shares) = reasons(names, by_kernel, kind, plural) {
            page.push(Block::Shares(shares));
        }
    }
    page.push(Block::Shares(account(names, by_kernel)));
}

/// Where the time of busy CPUs went. Exits from idle are not busy time, so they are not among the parts.
fn account(names: &[String], by_kernel: &[Vec<Run>]) -> Shares {
    let shares = |of: &dyn Fn(&OfCpu) -> u64| by_kernel.iter().map(|runs| busy_share(runs, of)).collect();
    let parts = Part::ALL.iter().filter(|part| **part != Part::IdleExit);
    let parts = parts.map(|&part| (part.name().to_owned(), shares(&|total| total.part(part))));
    let own = ("the programs' own work".to_owned(), shares(&OfCpu::own_work));
    let mut parts: Vec<(String, Vec<f64>)> = std::iter::once(own).chain(parts).collect();
    parts.retain(|(_, sides)| sides.iter().any(|&side| side > 0.0));
    Shares { name: "account of time, share of what CPUs were busy".to_owned(), sides: names.to_vec(), parts }
}

/// Shares of the reasons of one kind of decision, for the reasons that are largest in any column.
fn reasons(names: &[String], by_kernel: &[Vec<Run>], kind: &str, plural: &str) -> Option<Shares> {
    let sums: Vec<Vec<(String, u64)>> = by_kernel
        .iter()
        .map(|runs| {
            let mut sums: Vec<(String, u64)> = Vec::new();
            for (reason, count) in runs.iter().flat_map(|run| run.folds.reasons.of(kind)) {
                match sums.iter_mut().find(|(known, _)| known == reason) {
                    Some((_, sum)) => *sum += count,
                    None => sums.push((reason.to_owned(), count)),
                }
            }
            sums
        })
        .collect();
    let share = |sums: &[(String, u64)], reason: &str| {
        let total: u64 = sums.iter().map(|(_, count)| count).sum();
        let count = sums.iter().find(|(known, _)| known == reason).map_or(0, |(_, count)| *count);
        100.0 * count as f64 / total.max(1) as f64
    };
    let mut words: Vec<&String> = sums.iter().flatten().map(|(reason, _)| reason).collect();
    words.sort();
    words.dedup();
    let mut parts: Vec<(String, Vec<f64>)> = words
        .into_iter()
        .map(|reason| (reason.clone(), sums.iter().map(|sums| share(sums, reason)).collect()))
        .collect();
    let largest = |part: &(String, Vec<f64>)| part.1.iter().copied().fold(0.0, f64::max);
    parts.sort_by(|x, y| largest(y).total_cmp(&largest(x)));
    parts.retain(|part| largest(part) >= LEAST_SHARE);
    parts.truncate(REASONS);
    (!parts.is_empty()).then(|| Shares {
        name: format!("reasons, share of {plural}"),
        sides: names.to_vec(),
        parts,
    })
}

/// The blocks of perf stat side by side.
fn counts_table(blocks: &[PerfStat], names: &[String]) -> Table {
    let mut table = Table::new([""]);
    table.columns.extend(names.iter().cloned());
    for first in &blocks[0].rows {
        let of = |block: &PerfStat| {
            block.rows.iter().find(|row| row.event == first.event).map_or("-".to_owned(), |row| {
                let error = row.error_percent.map_or(String::new(), |error| format!(" ±{error:.1} %"));
                format!("{:.2}{error}", row.mean)
            })
        };
        let unit = if first.unit.is_empty() { String::new() } else { format!(", {}", first.unit) };
        table.row(std::iter::once(format!("{}{unit}", first.event)).chain(blocks.iter().map(of)));
    }
    table
}
