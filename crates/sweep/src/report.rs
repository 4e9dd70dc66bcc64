//! Where does a change help, and where does it hurt? One figure of all combinations, kernel against kernel.

use std::collections::BTreeMap;
use std::fmt::Write;

use schedlab::report::fitting_time;
use schedlab::report::render::Lean::{Left, Right};
use schedlab::report::render::columns;
use schedlab_stats::{Direction, Judge, Paired, Verdict, mean_t};
use serde::Serialize;

use crate::chunk::measures;
use crate::error::Error;
use crate::plan::Plan;
use crate::store::Store;
use schedlab_columns::{Cell, Table};

/// Confidence of all intervals.
const CONFIDENCE: f64 = 0.95;

/// The content of a report.
#[derive(Clone, Debug, Default)]
pub struct ReportOptions {
    /// The figure: a measure of the workload, or another column; the first measure if not given. Without measures, the
    /// time of a run, or wake-up latency if all runs take the same time.
    pub metric: Option<String>,
    /// The kernel that the others are compared with; the plan's first if not given.
    pub against: Option<String>,
}

/// One figure of all combinations.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The figure.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Whether less is better.
    pub lower_is_better: bool,
    /// The kernel that the others are compared with.
    pub against: String,
    /// Points with this figure.
    pub points: u64,
    /// Points that failed.
    pub failed: u64,
    /// Points without a result yet.
    pub missing: u64,
    /// Names of what varies besides kernels and seeds.
    pub axes: Vec<String>,
    /// A line for each combination and kernel, in the order of the plan.
    pub lines: Vec<Line>,
}

/// One combination under one kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Its values, in the order of the axes.
    pub values: Vec<String>,
    /// The kernel.
    pub kernel: String,
    /// Runs, or pairs of runs.
    pub n: usize,
    /// Mean.
    pub mean: f64,
    /// Interval of the mean.
    pub mean_interval: Option<[f64; 2]>,
    /// The change against the other kernel; `None` for that kernel itself.
    pub change: Option<Change>,
}

/// A kernel against another, pair by pair.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Mean of the other over these pairs.
    pub base: f64,
    /// Relative change, as a fraction.
    pub change: Option<f64>,
    /// Its interval.
    pub interval: Option<[f64; 2]>,
    /// `better`, `worse`, `no difference`, `too few runs`.
    pub verdict: String,
}

/// Values by kernel, then repeat.
type Group = Vec<BTreeMap<u64, f64>>;

/// The default figure of a workload without measures: the time of its runs, or the wake-up latency if all take the same
/// time.
fn default_metric(store: &Store) -> Result<&'static str, Error> {
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    store.each(|table| {
        for (_, elapsed) in (0..table.rows).filter_map(|row| value(&table, "elapsed_ns", row)) {
            (least, most) = (least.min(elapsed), most.max(elapsed));
        }
        Ok(())
    })?;
    Ok(if most <= least * 1.01 { "wakeup_latency_p99_ns" } else { "elapsed_ns" })
}

/// Reads a store and reports one figure.
///
/// # Errors
/// A figure or kernel that does not exist, and a damaged file.
pub fn report(store: &Store, options: &ReportOptions) -> Result<Report, Error> {
    let plan = store.plan();
    let all = store.columns();
    let known = measures(&all);
    let metric = match &options.metric {
        Some(metric) => metric.clone(),
        None => match known.first() {
            Some((name, ..)) => name.clone(),
            None => default_metric(store)?.to_owned(),
        },
    };
    if all.column(&metric).is_none() {
        let mut names: Vec<&str> = known.iter().map(|(name, ..)| name.as_str()).collect();
        let figures =
            all.columns.iter().map(|column| column.name.as_str()).skip_while(|name| *name != "error");
        names.extend(figures.skip(1).filter(|name| !known.iter().any(|(known, ..)| known == name)));
        let names = if names.is_empty() { "none: no point is done".to_owned() } else { names.join(", ") };
        return Err(Error::new(format!("this sweep has no figure \"{metric}\"; it has {names}")));
    }
    let (unit, lower) = known
        .iter()
        .find(|(name, ..)| *name == metric)
        .map_or((String::new(), true), |(_, unit, lower)| (unit.clone(), *lower));
    let against = match &options.against {
        None => 0,
        Some(name) => plan.kernels.iter().position(|kernel| kernel == name).ok_or_else(|| {
            Error::new(format!("this sweep has no kernel \"{name}\"; it has {}", plan.kernels.join(", ")))
        })?,
    };
    let mut groups: BTreeMap<u64, Group> = BTreeMap::new();
    let (mut points, mut failed, mut done) = (0, 0, 0);
    store.each(|table| {
        for row in 0..table.rows {
            done += 1;
            match value(&table, &metric, row) {
                Some((point, value)) => {
                    points += 1;
                    let place = place(plan, point);
                    let group =
                        groups.entry(place.0).or_insert_with(|| vec![BTreeMap::new(); plan.kernels.len()]);
                    group[place.1].insert(place.2, value);
                }
                None if is_failed(&table, row) => failed += 1,
                None => {}
            }
        }
        Ok(())
    })?;
    let direction = if lower { Direction::Lower } else { Direction::Higher };
    let mut lines = Vec::new();
    for (combination, group) in &groups {
        for (kernel, values) in group.iter().enumerate().filter(|(_, values)| !values.is_empty()) {
            let change = (kernel != against).then(|| change(&group[against], values, direction));
            let all: Vec<f64> = values.values().copied().collect();
            lines.push(Line {
                values: values_of(plan, *combination),
                kernel: plan.kernels[kernel].clone(),
                n: all.len(),
                mean: all.iter().sum::<f64>() / all.len() as f64,
                mean_interval: mean_t(&all, CONFIDENCE).map(|e| [e.interval.low, e.interval.high]),
                change: change.flatten(),
            });
        }
    }
    let mut axes: Vec<String> = plan.axes.iter().map(|axis| axis.path.clone()).collect();
    if plan.rows.len() > 1 {
        axes.push("row".into());
    }
    let against = plan.kernels[against].clone();
    let missing = plan.points() - done;
    Ok(Report { metric, unit, lower_is_better: lower, against, points, failed, missing, axes, lines })
}

fn value(table: &Table, metric: &str, row: usize) -> Option<(u64, f64)> {
    let Cell::Int(point) = table.column("point")?.cell(row) else { return None };
    match table.column(metric)?.cell(row) {
        Cell::Int(int) => Some((point as u64, int as f64)),
        Cell::Float(float) => Some((point as u64, float)),
        _ => None,
    }
}

fn is_failed(table: &Table, row: usize) -> bool {
    table.column("error").is_some_and(|column| column.cell(row) != Cell::Nothing)
}

/// Combination and row, kernel, and repeat of a point.
fn place(plan: &Plan, point: u64) -> (u64, usize, u64) {
    let each =
        plan.points() / plan.combinations().unwrap_or(1) / (plan.rows.len() * plan.kernels.len()) as u64;
    let (rest, repeat) = (point / each, point % each);
    let kernels = plan.kernels.len() as u64;
    (rest / kernels, (rest % kernels) as usize, repeat)
}

fn values_of(plan: &Plan, group: u64) -> Vec<String> {
    let each = plan.points() / plan.combinations().unwrap_or(1) / plan.rows.len() as u64;
    let point = plan.point(group * each);
    let mut values: Vec<String> = point.settings.iter().map(|(_, value)| value.to_string()).collect();
    if plan.rows.len() > 1 {
        values.push(point.row);
    }
    values
}

fn change(base: &BTreeMap<u64, f64>, values: &BTreeMap<u64, f64>, direction: Direction) -> Option<Change> {
    let pairs: Vec<(f64, f64)> =
        values.iter().filter_map(|(repeat, value)| Some((*base.get(repeat)?, *value))).collect();
    if pairs.is_empty() {
        return None;
    }
    let paired = Paired::new(&pairs, direction, CONFIDENCE);
    Some(Change {
        base: paired.base,
        change: paired.change,
        interval: paired.interval.map(|interval| [interval.low, interval.high]),
        verdict: Judge::default().verdict(&paired, direction).to_string(),
    })
}

/// The words of a verdict, in the order in which they are counted.
const WORDS: [Verdict; 4] = [Verdict::Better, Verdict::Worse, Verdict::NoDifference, Verdict::TooFewRuns];

impl Report {
    /// The text: counts by the values of each axis, and the `most` largest changes in either direction.
    pub fn text(&self, most: usize) -> String {
        let mut text = String::new();
        let better = if self.lower_is_better { "lower" } else { "higher" };
        let (name, _) = self.heading();
        let _ = writeln!(text, "{name}: {better} is better; {} points", self.points);
        for (count, what) in [(self.failed, "failed"), (self.missing, "are not done")] {
            if count > 0 {
                let _ = writeln!(text, "{count} points {what}; `schedlab sweep status` says more");
            }
        }
        let kernels = self.kernels();
        if kernels.is_empty() {
            self.means(&mut text, most);
        }
        for kernel in &kernels {
            self.against(&mut text, kernel, most);
        }
        text
    }

    /// The kernels that are compared with another.
    pub(crate) fn kernels(&self) -> Vec<String> {
        let mut kernels: Vec<String> = Vec::new();
        for line in self.lines.iter().filter(|line| line.change.is_some()) {
            if !kernels.contains(&line.kernel) {
                kernels.push(line.kernel.clone());
            }
        }
        kernels
    }

    /// The lines of a kernel that are compared with another's.
    pub(crate) fn compared<'a>(&'a self, kernel: &str) -> impl Iterator<Item = (&'a Line, &'a Change)> {
        let kernel = kernel.to_owned();
        let of = self.lines.iter().filter(move |line| line.kernel == kernel);
        of.filter_map(|line| Some((line, line.change.as_ref()?)))
    }

    /// The figure with a readable unit, and the divisor.
    pub(crate) fn heading(&self) -> (String, f64) {
        let largest = self.lines.iter().map(|line| line.mean).fold(0.0, f64::max);
        if let Some(name) = self.metric.strip_suffix("_ns").filter(|_| self.unit.is_empty()) {
            let (unit, by) = fitting_time(largest);
            return (format!("{name}, {unit}"), by);
        }
        let comma = if self.unit.is_empty() { "" } else { ", " };
        (format!("{}{comma}{}", self.metric, self.unit), 1.0)
    }

    fn means(&self, text: &mut String, most: usize) {
        let (_, by) = self.heading();
        for line in self.lines.iter().take(most.max(1) * 4) {
            let interval = line
                .mean_interval
                .map_or(String::new(), |[low, high]| format!(" [{:.2}, {:.2}]", low / by, high / by));
            let _ = writeln!(text, "{:>14.2}{interval}  n {}  {}", line.mean / by, line.n, self.name(line));
        }
        let left = self.lines.len().saturating_sub(most.max(1) * 4);
        if left > 0 {
            let _ = writeln!(text, "and {left} more; --format csv has all");
        }
    }

    fn against(&self, text: &mut String, kernel: &str, most: usize) {
        let lines: Vec<(&Line, &Change)> = self.compared(kernel).collect();
        let _ = writeln!(text, "\n{kernel} against {}: pairs by seed, 95 % intervals", self.against);
        let all: Vec<&Change> = lines.iter().map(|(_, change)| *change).collect();
        let mut rows = vec![heads(), counts("all combinations".to_owned(), &all)];
        for (nth, axis) in self.axes.iter().enumerate() {
            let mut values: Vec<&str> = Vec::new();
            for (line, _) in &lines {
                if !values.contains(&line.values[nth].as_str()) {
                    values.push(&line.values[nth]);
                }
            }
            // Sampled whole numbers are in any order.
            if values.iter().all(|value| value.parse::<f64>().is_ok()) {
                values.sort_by(|a, b| a.parse::<f64>().ok().partial_cmp(&b.parse().ok()).expect("numbers"));
            }
            // On a sampled axis all values are different.
            if values.len() < 2 || values.len() * 2 > lines.len() && values.len() > 24 {
                continue;
            }
            for value in values {
                let of: Vec<&Change> = lines
                    .iter()
                    .filter(|(line, _)| line.values[nth] == value)
                    .map(|(_, change)| *change)
                    .collect();
                rows.push(counts(format!("{axis}={value}"), &of));
            }
        }
        text.push_str(&columns(&rows, &[Left, Right, Right, Right, Right, Right], "  "));
        let (_, by) = self.heading();
        let by_chance = lines.len() as f64 * (1.0 - CONFIDENCE);
        if lines.len() > 1 {
            let _ = writeln!(
                text,
                "if nothing differed, about {by_chance:.1} of {} combinations would still be called better or worse",
                lines.len()
            );
        }
        let sign = if self.lower_is_better { 1.0 } else { -1.0 };
        let mut ordered: Vec<_> = lines.iter().filter(|(_, change)| change.change.is_some()).collect();
        let key = |change: &Change| sign * change.change.unwrap_or(0.0);
        ordered.sort_by(|a, b| key(a.1).total_cmp(&key(b.1)));
        for (word, found) in [
            ("better", ordered.iter().take(most).collect::<Vec<_>>()),
            ("worse", ordered.iter().rev().take(most).collect()),
        ] {
            let found: Vec<_> = found.into_iter().filter(|(_, change)| change.verdict == word).collect();
            if !found.is_empty() {
                let _ = writeln!(text, "most {word}");
            }
            for (line, change) in found {
                let _ = writeln!(
                    text,
                    "  {} {} -> {}  {}",
                    percent(change),
                    short(change.base / by),
                    short(line.mean / by),
                    self.name(line)
                );
            }
        }
    }

    fn name(&self, line: &Line) -> String {
        let values = self.axes.iter().zip(&line.values).map(|(axis, value)| format!("{axis}={value} "));
        format!("{}{}", values.collect::<String>(), line.kernel)
    }

    /// A line for each combination and kernel.
    pub fn csv(&self) -> String {
        let mut text = String::new();
        let quoted = |text: &str| match text.contains([',', '"', '\n']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.to_owned(),
        };
        let heads = self.axes.iter().map(|axis| quoted(axis) + ",").collect::<String>();
        let _ = writeln!(
            text,
            "{heads}kernel,metric,n,mean,mean_low,mean_high,base,change,change_low,change_high,verdict"
        );
        let number = |number: Option<f64>| number.map_or(String::new(), |number| format!("{number}"));
        for line in &self.lines {
            let values = line.values.iter().map(|value| quoted(value) + ",").collect::<String>();
            let change = line.change.as_ref();
            let of =
                |pair: Option<[f64; 2]>| [number(pair.map(|p| p[0])), number(pair.map(|p| p[1]))].join(",");
            let _ = writeln!(
                text,
                "{values}{},{},{},{},{},{},{},{},{}",
                quoted(&line.kernel),
                quoted(&self.metric),
                line.n,
                line.mean,
                of(line.mean_interval),
                number(change.map(|change| change.base)),
                number(change.and_then(|change| change.change)),
                of(change.and_then(|change| change.interval)),
                change.map_or("", |change| change.verdict.as_str())
            );
        }
        text
    }
}

fn heads() -> Vec<String> {
    let words = WORDS.iter().map(Verdict::to_string);
    std::iter::once(String::new()).chain(words).chain(["median change".to_owned()]).collect()
}

fn counts(name: String, changes: &[&Change]) -> Vec<String> {
    let count = |word: &Verdict| changes.iter().filter(|change| change.verdict == word.to_string()).count();
    let mut all: Vec<f64> = changes.iter().filter_map(|change| change.change).collect();
    all.sort_by(f64::total_cmp);
    let median = match all.len() {
        0 => String::new(),
        n if n % 2 == 1 => format!("{:+.1} %", all[n / 2] * 100.0),
        n => format!("{:+.1} %", (all[n / 2 - 1] + all[n / 2]) * 50.0),
    };
    let counts = WORDS.iter().map(|word| count(word).to_string());
    std::iter::once(name).chain(counts).chain([median]).collect()
}

fn percent(change: &Change) -> String {
    let of = |fraction: f64| fraction * 100.0;
    let interval =
        change.interval.map_or(String::new(), |[low, high]| format!(" [{:+.1}, {:+.1}]", of(low), of(high)));
    format!("{:+.1} %{interval}", of(change.change.unwrap_or(0.0)))
}

fn short(number: f64) -> String {
    if number.abs() >= 100.0 { format!("{number:.0}") } else { format!("{number:.3}") }
}
