//! A table, compared with its first column.
//!
//! Everything a renderer prints is computed here once: the statistics of each cell and
//! their percentages as mmtests has them, the star by the chosen rule, and the paired
//! difference by seed with its interval and its verdict.

use schedlab_stats::{
    Direction, Era, Interval, Judge, Paired, Rule, Star, Stat, Summary, Verdict, rdiff, sdiff,
};

use crate::{Cell, Metric, Row, Table};

/// How to compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// What earns a star. It also decides which generation of mmtests the table looks like.
    pub rule: Rule,
    /// Confidence of the paired intervals.
    pub confidence: f64,
    /// What counts as an answer.
    pub judge: Judge,
}

impl Default for Options {
    /// As mmtests does today, with 95 % intervals.
    fn default() -> Options {
        Options { rule: Rule::Ci2024 { alpha: 0.05 }, confidence: 0.95, judge: Judge::default() }
    }
}

/// A compared table.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Of the table.
    pub title: String,
    /// The columns, baseline first.
    pub kernels: Vec<String>,
    /// How it was compared.
    pub options: Options,
    /// In the order of the table.
    pub metrics: Vec<MetricComparison>,
}

/// A compared metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricComparison {
    /// `loadfile time`
    pub name: String,
    /// `ms`
    pub unit: String,
    /// Which direction is better.
    pub direction: Direction,
    /// Whether neither direction is better.
    pub neutral: bool,
    /// Which generation of mmtests its statistics follow.
    pub era: Era,
    /// In the order of the table.
    pub rows: Vec<RowComparison>,
}

/// A compared row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowComparison {
    /// `64`
    pub key: String,
    /// One per kernel; the first is the baseline compared with itself.
    pub cells: Vec<CellComparison>,
}

/// One cell beside its baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct CellComparison {
    /// How many runs it has.
    pub runs: usize,
    /// All its samples, pooled.
    pub summary: Summary,
    /// What the rule says about its mean; never significant for the baseline.
    pub star: Star,
    /// How far its mean lies from the baseline's in units of their spread, as ratio tables print it; 0 when
    /// unknown. Until 2024 value minus baseline in pooled deviations, since then baseline minus value in half
    /// intervals.
    pub distance: f64,
    /// Against the baseline's runs with the same seeds.
    pub paired: Paired,
    /// The verdict on it.
    pub verdict: Verdict,
    /// The changes at the ends of what decides this one, as fractions, if they are far apart: printed in place of it.
    pub span: Option<Interval>,
    /// About how many pairs would be enough if there are too few; `None` if that cannot be estimated, or there are
    /// enough.
    pub pairs_needed: Option<usize>,
}

/// The lines under a ratio table, for one kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratios {
    /// The mean of all distances.
    pub distance_mean: f64,
    /// The smallest of them.
    pub distance_min: f64,
    /// The greatest.
    pub distance_max: f64,
    /// The geometric mean of all ratios.
    pub gmean: f64,
}

impl Comparison {
    /// Compares every column with the first.
    pub fn new(table: &Table, options: Options) -> Comparison {
        Comparison {
            title: table.title.clone(),
            kernels: table.kernels().to_vec(),
            options,
            metrics: table.metrics().iter().map(|metric| compare_metric(metric, options)).collect(),
        }
    }

    /// The kernel all others are compared with.
    pub fn baseline(&self) -> &str {
        &self.kernels[0]
    }
}

impl MetricComparison {
    /// The value of a statistic, NaN where it has none.
    pub fn value(&self, stat: Stat, cell: &CellComparison) -> f64 {
        stat.value(self.era, &cell.summary)
    }

    /// By how many percent the statistic of `cell` improves on that of `base`.
    pub fn percent(&self, stat: Stat, cell: &CellComparison, base: &CellComparison) -> f64 {
        stat.percent(self.direction, self.value(stat, cell), self.value(stat, base))
    }

    /// The line above its table: `loadfile time, ms: lower is better`.
    pub fn heading(&self) -> String {
        let comma = if self.unit.is_empty() { "" } else { ", " };
        let better = if self.neutral { String::new() } else { format!(": {} is better", self.direction) };
        format!("{}{comma}{}{better}", self.name, self.unit)
    }

    /// The verdict of a cell in words: `better`, or `less` if neither direction is better, or `too few (~40)` runs
    /// if about 40 are needed.
    pub fn word(&self, cell: &CellComparison) -> String {
        let lower = self.direction == Direction::Lower;
        match cell.verdict {
            _ if cell.paired.n == 0 => "no figure".to_owned(),
            Verdict::Better | Verdict::Worse if self.neutral => {
                let fell = (cell.verdict == Verdict::Better) == lower;
                if fell { "less" } else { "more" }.to_owned()
            }
            Verdict::TooFewRuns => match cell.pairs_needed {
                Some(pairs) => format!("too few (~{pairs})"),
                None => cell.verdict.to_string(),
            },
            verdict => verdict.to_string(),
        }
    }

    /// Whether a cell's mean has a star beside its word: there is none while the answer is unknown.
    pub fn is_starred(&self, cell: &CellComparison) -> bool {
        cell.star.significant && matches!(cell.verdict, Verdict::Better | Verdict::Worse)
    }

    /// Decimals such that the median of the means has three significant digits; at least two.
    pub fn digits(&self) -> usize {
        let means = self.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.summary.mean().abs());
        let mut means: Vec<f64> = means.filter(|mean| mean.is_finite() && *mean > 0.0).collect();
        means.sort_by(f64::total_cmp);
        let middle = means.get(means.len() / 2).copied().unwrap_or(1.0);
        if middle >= 0.1 { 2 } else { (2.0 - middle.log10().floor()).min(9.0) as usize }
    }

    /// As printed in the first column.
    pub fn label(&self, stat: Stat) -> &'static str {
        stat.label(self.era, self.direction)
    }

    /// The closing lines of a ratio table, one set per kernel.
    pub fn ratios(&self) -> Vec<Ratios> {
        let nr_kernels = self.rows.first().map_or(0, |row| row.cells.len());
        (0..nr_kernels)
            .map(|kernel| {
                let distances = || self.rows.iter().map(|row| row.cells[kernel].distance);
                let distances = Summary::new(distances(), Direction::Lower);
                let ratios = self.rows.iter().map(|row| row.ratio(kernel));
                // A missing ratio counts as no change, a zero as a tiny number, as in mmtests.
                let ratios = ratios.map(|r| {
                    if r.is_nan() {
                        1.0
                    } else if r == 0.0 {
                        0.00001
                    } else {
                        r
                    }
                });
                Ratios {
                    distance_mean: distances.amean(),
                    distance_min: distances.min(),
                    distance_max: distances.max(),
                    gmean: Summary::new(ratios, self.direction).gmean(),
                }
            })
            .collect()
    }
}

impl RowComparison {
    /// The baseline's cell.
    pub fn base(&self) -> &CellComparison {
        &self.cells[0]
    }

    /// The mean of a kernel in units of the baseline's.
    pub fn ratio(&self, kernel: usize) -> f64 {
        rdiff(self.cells[kernel].summary.mean(), self.base().summary.mean())
    }
}

fn compare_metric(metric: &Metric, options: Options) -> MetricComparison {
    MetricComparison {
        name: metric.name.clone(),
        unit: metric.unit.clone(),
        direction: metric.direction,
        neutral: metric.neutral,
        era: options.rule.era(),
        rows: metric.rows().iter().map(|row| compare_row(row, metric.direction, options)).collect(),
    }
}

fn compare_row(row: &Row, direction: Direction, options: Options) -> RowComparison {
    let base = &row.cells()[0];
    let cells = row.cells().iter().enumerate();
    let compare = |(kernel, cell)| compare_cell(cell, base, kernel == 0, direction, options);
    RowComparison { key: row.key.clone(), cells: cells.map(compare).collect() }
}

fn compare_cell(
    cell: &Cell,
    base: &Cell,
    is_base: bool,
    direction: Direction,
    options: Options,
) -> CellComparison {
    let summary = |cell: &Cell| {
        Summary::new(cell.runs().iter().flat_map(|run| run.samples().iter().copied()), direction)
    };
    let (own, bases) = (summary(cell), summary(base));
    let star = |rule: Rule| rule.star(&base.samples(), &cell.samples(), direction);
    let asked = star(options.rule);
    let distance = match options.rule.era() {
        Era::Until2024 => sdiff(own.mean(), own.stddev(), bases.mean(), bases.stddev()),
        Era::Since2024 => {
            asked.distance.or_else(|| star(Rule::Ci2024 { alpha: 0.05 }).distance).unwrap_or(f64::NAN)
        }
    };
    let paired = Paired::new(&cell.pairs(base, direction), direction, options.confidence);
    let verdict = options.judge.verdict(&paired, direction);
    let pairs_needed = match verdict {
        Verdict::TooFewRuns => Some(options.judge.pairs_needed(&paired, options.confidence)),
        _ => None,
    };
    CellComparison {
        runs: cell.runs().len(),
        summary: own,
        star: Star { significant: asked.significant && !is_base, ..asked },
        distance: if distance.is_nan() { 0.0 } else { distance },
        paired,
        verdict,
        span: None,
        pairs_needed: pairs_needed.flatten().map(rounded_up),
    }
}

/// To two digits, because the estimate is no better than that.
fn rounded_up(n: usize) -> usize {
    let step = 10usize.pow(n.max(1).ilog10().saturating_sub(1));
    n.div_ceil(step) * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_grow_with_small_means_and_a_word_says_how_many_runs_would_do() {
        let mut table = Table::new("", ["a", "b"]);
        let metric = table.metric("time", "s", Direction::Lower);
        for seed in 0..4 {
            metric.record("1", 0, seed, 0.0034);
            metric.record("1", 1, seed, [0.0030, 0.0044, 0.0036, 0.0033][seed as usize]);
        }
        let comparison = compare(&table, "welch");
        let metric = &comparison.metrics[0];
        assert_eq!(metric.digits(), 5);
        let word = metric.word(&metric.rows[0].cells[1]);
        assert!(word.starts_with("too few (~"), "{word}");
        assert_eq!([3, 99, 101, 1234].map(rounded_up), [3, 99, 110, 1300]);
    }

    fn compare(table: &Table, rule: &str) -> Comparison {
        Comparison::new(table, Options { rule: rule.parse().unwrap(), ..Options::default() })
    }

    #[test]
    fn the_baseline_is_never_starred_and_never_changed() {
        let mut table = Table::new("", ["a", "b"]);
        let metric = table.metric("time", "s", Direction::Lower);
        for seed in 0..4 {
            metric.record("1", 0, seed, 10.0 + seed as f64);
            metric.record("1", 1, seed, 50.0 + seed as f64);
        }
        for rule in Rule::ALL {
            let comparison = compare(&table, rule.name());
            let [base, value] = &comparison.metrics[0].rows[0].cells[..] else { panic!("two kernels") };
            assert!(!base.star.significant && value.star.significant, "{rule}");
            assert_eq!((base.paired.change, base.distance), (Some(0.0), 0.0), "{rule}");
            assert_eq!(value.verdict, Verdict::Worse, "{rule}");
        }
    }

    #[test]
    fn tables_pool_samples_and_differences_pair_runs() {
        let mut table = Table::new("", ["a", "b"]);
        let metric = table.metric("time", "s", Direction::Lower);
        // The second seed took four samples in the baseline; the third was not run there.
        for (seed, samples) in [(1, &[10.0][..]), (2, &[20.0, 20.0, 20.0, 24.0])] {
            samples.iter().for_each(|&sample| metric.record("1", 0, seed, sample));
        }
        for (seed, sample) in [(1, 11.0), (2, 22.0), (3, 90.0)] {
            metric.record("1", 1, seed, sample);
        }
        let comparison = compare(&table, "welch");
        let [base, value] = &comparison.metrics[0].rows[0].cells[..] else { panic!("two kernels") };
        assert_eq!((base.runs, base.summary.n(), base.summary.mean()), (2, 5, 18.8));
        assert_eq!((value.runs, value.summary.mean()), (3, 41.0));
        assert_eq!((value.paired.n, value.paired.base, value.paired.value), (2, 15.5, 16.5));
    }

    #[test]
    fn a_missing_ratio_counts_as_no_change_and_a_zero_as_next_to_none() {
        let mut table = Table::new("", ["a", "b"]);
        let metric = table.metric("time", "s", Direction::Lower);
        for (key, base, value) in
            [("half", 2.0, Some(1.0)), ("gone", 2.0, None), ("from zero", 0.0, Some(1.0))]
        {
            metric.record(key, 0, 1, base);
            value.into_iter().for_each(|value| metric.record(key, 1, 1, value));
        }
        let comparison = compare(&table, "ci-2024");
        let metric = &comparison.metrics[0];
        assert_eq!([0, 1, 2].map(|row| metric.rows[row].ratio(1)), [0.5, 1.0, 0.0]);
        let gmean = metric.ratios()[1].gmean;
        assert!((gmean - (0.5 * 0.00001_f64).cbrt()).abs() < 1e-12, "{gmean}");
        assert_eq!(metric.ratios()[1].distance_max, 0.0);
    }

    #[test]
    fn the_rule_names_the_generation_of_the_statistics() {
        let mut table = Table::new("", ["a"]);
        let metric = table.metric("rate", "op/s", Direction::Higher);
        [1.0, 2.0, 4.0].into_iter().for_each(|sample| metric.record("1", 0, 1, sample));
        for (rule, label) in [("t-2020", "Stddev"), ("ci-2024", "HStddev"), ("welch", "HStddev")] {
            assert_eq!(compare(&table, rule).metrics[0].label(Stat::Stddev), label);
        }
    }
}
