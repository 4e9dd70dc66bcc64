//! A scenario file: one experiment that a reader can copy and change.
//!
//! It begins with its story in comments, then names machine, kernels, runs and seed, describes the load in
//! `[workload]`, and ends with its expectations.

use std::collections::BTreeSet;

use schedlab_machine::Machine;
use schedlab_sched::Kernel;
use schedlab_sim::Noise;
use schedlab_units::Duration;
use serde::Deserialize;
use toml::Spanned;

use crate::error::Error;
use crate::experiment::ENDLESS;
use crate::setting::Setting;

/// Returns the text of a file that a scenario names.
pub trait Files {
    /// The text.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn text(&self, name: &str) -> Result<String, String>;
}

/// No files: for scenarios that name none.
pub struct NoFiles;

impl Files for NoFiles {
    fn text(&self, name: &str) -> Result<String, String> {
        Err(format!("{name}: no files can be read here"))
    }
}

/// One experiment.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// File it came from, for messages.
    pub file: String,
    /// The comment it opens with, without the `#`.
    pub story: String,
    /// The machine.
    pub machine: Machine,
    /// The kernels compared; the first is the baseline.
    pub kernels: Vec<Kernel>,
    /// Runs of each kernel and row, with paired seeds.
    pub runs: u32,
    /// Seed of the first run; the others follow.
    pub seed: u64,
    /// Virtual time after which a run is stopped if it has not ended by itself.
    pub limit: Option<Duration>,
    /// Whether a run whose workload has a duration first runs until its figures have settled (`warmup = "auto"`).
    pub settles: bool,
    /// Virtual time within which a run without a limit must have ended.
    pub endless: Duration,
    /// What runs: one row each.
    pub rows: Vec<Row>,
    /// The expectations.
    pub expect: Vec<Expect>,
    /// What else runs on the machine.
    pub noise: Noise,
    /// A real program that the workload models.
    pub reference: Option<crate::Reference>,
    /// The machine constants that were set, to be set again on another machine.
    pub(crate) settings: Vec<Setting>,
}

/// Parameters that override those of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Each is set, in order.
    pub settings: Vec<Setting>,
    /// One additional dimension of rows per element, with all its values.
    pub rows: Vec<Vec<Setting>>,
}

/// One row of the tables.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its key in tables, as `8` for eight clients; empty when there is one row.
    pub key: String,
    /// What runs.
    pub workload: schedlab_workload::Workload,
    /// Keys that were read but have no effect, with the reason.
    pub notes: Vec<String>,
    /// Time at the beginning that establishes a state and is not measured.
    pub prologue: Duration,
    /// What differs in this row besides the workload.
    pub over: Option<Box<Over>>,
}

/// What a row changes besides the workload.
#[derive(Clone, Debug)]
pub struct Over {
    /// What it sets of machine, kernel and limit.
    pub(crate) settings: Vec<Setting>,
    /// Its machine.
    pub(crate) machine: Machine,
    /// The parts added to the name of each kernel: `+base_slice_ns=3ms`.
    pub(crate) parts: String,
    /// Its limit.
    pub(crate) limit: Option<Duration>,
}

/// What a scenario expects to find.
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    /// Line in the file.
    pub line: usize,
    /// Kernel it is about; the last one if not given.
    pub kernel: Option<String>,
    /// Row it is about; all if not given.
    pub row: Option<String>,
    /// The expected figure.
    pub what: What,
}

/// The expectation itself.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Relative change of a metric against the first kernel, between two bounds.
    Change {
        /// Metric.
        metric: String,
        /// Bounds, as fractions.
        change: [f64; 2],
    },
    /// A measure itself, in its unit (ns, s, /s), as the mean of the runs, between two bounds.
    Value {
        /// Measure.
        metric: String,
        /// Bounds.
        value: [f64; 2],
    },
    /// CPUs of the first new tasks, in order, in every run.
    Forks(Vec<u16>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    machine: Spanned<String>,
    kernels: Spanned<Vec<Spanned<String>>>,
    #[serde(default = "one")]
    runs: Spanned<u32>,
    #[serde(default = "seed_one")]
    seed: u64,
    limit: Option<Spanned<toml::Value>>,
    warmup: Option<Spanned<toml::Value>>,
    noise: Option<Spanned<toml::Value>>,
    reference: Option<crate::Reference>,
    /// Parsed separately, with its own positions.
    #[serde(rename = "workload")]
    _workload: toml::Table,
    #[serde(default)]
    expect: Vec<Spanned<FileExpect>>,
    /// Parsed separately: other columns.
    #[serde(rename = "variant")]
    _variant: Option<Vec<toml::Table>>,
    /// Parsed separately: rows over any parameter.
    #[serde(rename = "rows")]
    _rows: Option<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileExpect {
    kernel: Option<String>,
    row: Option<toml::Value>,
    metric: Option<String>,
    change: Option<[f64; 2]>,
    value: Option<[f64; 2]>,
    forks: Option<Vec<u16>>,
}

fn one() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

fn seed_one() -> u64 {
    1
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// A sentence with file and line for the first part that cannot be parsed.
    pub fn parse(file: &str, text: &str, files: &dyn Files) -> Result<Scenario, Error> {
        Scenario::parse_with(file, text, files, &Overrides::default())
    }

    /// Reads the text of a scenario as it is, without rows over other parameters.
    pub(crate) fn parse_text(file: &str, text: &str, files: &dyn Files) -> Result<Scenario, Error> {
        let at = Place { file, text };
        let raw: File = toml::from_str(text)
            .map_err(|e| Error::toml(file, text, e.span().map(|span| span.start), e.message()))?;
        let machine = crate::find_machine::find_machine(raw.machine.get_ref(), files)
            .map_err(|e| at.error(Some(raw.machine.span()), &e.to_string()))?;
        let mut kernels = Vec::new();
        for name in raw.kernels.get_ref() {
            let kernel = crate::kernels::kernel(name.get_ref(), &mut |_| {});
            kernels.push(kernel.map_err(|e| at.error(Some(name.span()), &e.to_string()))?);
        }
        if kernels.is_empty() {
            return Err(at.error(Some(raw.kernels.span()), "name at least one kernel, as in [\"v6.12\"]"));
        }
        check_runs(*raw.runs.get_ref())
            .map_err(|e| at.error(Some(raw.runs.span()), &format!("runs is {e}")))?;
        let limit = raw.limit.as_ref().map(|value| {
            let limit = match value.get_ref() {
                toml::Value::String(text) => parse_limit(text),
                other => Err(format!("limit is text with a unit, as in \"10s\", not {other}")),
            };
            limit.map_err(|e| at.error(Some(value.span()), &e))
        });
        let limit = limit.transpose()?;
        let settles = match raw.warmup.as_ref().map(|value| (value, value.get_ref().as_str())) {
            None => false,
            Some((_, Some("auto"))) => true,
            Some((value, _)) => {
                let problem = format!(
                    "warmup is \"auto\", or left out, not {}; some models have a warmup of their own under [workload], as in \
                     \"5ms\"",
                    value.get_ref()
                );
                return Err(at.error(Some(value.span()), &problem));
            }
        };
        let noise = match raw.noise.as_ref().map(|value| (value, value.get_ref().as_str())) {
            None | Some((_, Some("quiet"))) => Noise::QUIET,
            Some((_, Some("idle-server"))) => Noise::IDLE_SERVER,
            Some((value, _)) => {
                return Err(at.error(Some(value.span()), "noise is \"idle-server\" or \"quiet\""));
            }
        };
        let rows = crate::rows::of(file, text, &machine, files)?;
        for row in &rows {
            crate::rows::check_parts(file, text, &row.workload, &kernels)?;
        }
        let expect = raw.expect.iter().map(|e| at.expect(e)).collect::<Result<Vec<_>, _>>()?;
        Ok(Scenario {
            file: file.to_string(),
            story: story(text),
            machine,
            kernels,
            runs: raw.runs.into_inner(),
            seed: raw.seed,
            limit,
            settles,
            endless: ENDLESS,
            rows,
            expect,
            noise,
            reference: raw.reference,
            settings: Vec::new(),
        })
    }

    /// One rt-app file on a machine under the newest kernel.
    ///
    /// # Errors
    /// As [`Scenario::parse`].
    pub fn from_rt_app(file: &str, text: &str, machine: Machine) -> Result<Scenario, Error> {
        let row = crate::rows::rt_app(file, text, &machine)?;
        Ok(Scenario {
            file: file.to_string(),
            story: String::new(),
            machine,
            kernels: vec![Kernel::preset(schedlab_sched::PRESETS.len() - 1)],
            runs: 1,
            seed: 1,
            limit: None,
            settles: false,
            endless: ENDLESS,
            rows: vec![row],
            expect: Vec::new(),
            noise: Noise::QUIET,
            reference: None,
            settings: Vec::new(),
        })
    }

    /// The same under other kernels.
    pub fn under(&self, kernels: Vec<Kernel>) -> Scenario {
        Scenario { kernels, ..self.clone() }
    }

    /// A placeholder for a recorded side: nothing runs.
    pub fn recorded(file: &str, kernel: Kernel, workload: schedlab_workload::Workload) -> Scenario {
        let (key, notes, prologue) = (String::new(), Vec::new(), Duration::ZERO);
        Scenario {
            file: file.to_string(),
            story: String::new(),
            machine: Machine::preset("1").expect("a machine of one CPU"),
            kernels: vec![kernel],
            runs: 1,
            seed: 0,
            limit: None,
            settles: false,
            endless: ENDLESS,
            rows: vec![Row { key, workload, notes, prologue, over: None }],
            expect: Vec::new(),
            noise: Noise::QUIET,
            reference: None,
            settings: Vec::new(),
        }
    }

    /// The names of figures in the tables: their measures, and the rows and title of a table that joins them.
    fn metrics(&self) -> BTreeSet<&str> {
        let measures = self.rows.iter().flat_map(|row| &row.workload.measures).map(|m| m.name.as_str());
        let rows = self.rows.iter().flat_map(|row| [row.workload.name.as_str(), row.key.as_str()]);
        measures.chain(rows).filter(|name| !name.is_empty()).collect()
    }

    /// Every expectation must refer to an existing kernel and row.
    pub(crate) fn check_expectations(&self) -> Result<(), Error> {
        for expect in &self.expect {
            let say = |message: String| Err(Error::at(&self.file, expect.line, &message));
            if let Some(kernel) = &expect.kernel
                && !self.kernels.iter().any(|k| &k.name == kernel)
            {
                return say(format!("kernel \"{kernel}\" is not among the kernels of this scenario"));
            }
            if let Some(row) = &expect.row
                && !self.rows.iter().any(|r| &r.key == row)
            {
                let rows: Vec<&str> =
                    self.rows.iter().map(|r| r.key.as_str()).filter(|key| !key.is_empty()).collect();
                return say(match rows.as_slice() {
                    [] => format!(
                        "there is no row \"{row}\", as the workload has one value, not a list: leave out `row`, or keep a \
                         list: `--rows PATH=VALUE,..` sets one, and `run --row` runs one of its rows"
                    ),
                    rows => format!("there is no row \"{row}\"; the rows are {}", rows.join(", ")),
                });
            }
            if let What::Change { metric, .. } | What::Value { metric, .. } = &expect.what {
                let known = self.metrics();
                if !known.contains(metric.as_str()) {
                    let known: Vec<&str> = known.into_iter().collect();
                    return say(format!("no table has \"{metric}\"; there are {}", known.join(", ")));
                }
            }
        }
        Ok(())
    }
}

/// A file's name and text, to turn an offset into a line.
pub(crate) struct Place<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Place<'_> {
    pub fn line(&self, offset: usize) -> usize {
        1 + self.text.as_bytes()[..offset.min(self.text.len())].iter().filter(|&&b| b == b'\n').count()
    }

    pub fn error(&self, span: Option<std::ops::Range<usize>>, message: &str) -> Error {
        let message = message.trim_end().replace('\n', "; ");
        Error::at(self.file, span.map_or(1, |s| self.line(s.start)), &message)
    }

    fn expect(&self, raw: &Spanned<FileExpect>) -> Result<Expect, Error> {
        let expect = raw.get_ref();
        for (name, bounds) in [("change", expect.change), ("value", expect.value)] {
            if let Some([low, high]) = bounds.filter(|[low, high]| high < low) {
                let message = format!("the bounds of {name} are reversed; write [{high:?}, {low:?}]");
                return Err(self.error(Some(raw.span()), &message));
            }
        }
        let what = match (&expect.metric, expect.change, expect.value, &expect.forks) {
            (Some(metric), Some(change), None, None) => What::Change { metric: metric.clone(), change },
            (Some(metric), None, Some(value), None) => What::Value { metric: metric.clone(), value },
            (None, None, None, Some(forks)) => What::Forks(forks.clone()),
            _ => {
                let message = "an expectation has either metric and change, or metric and value, or forks";
                return Err(self.error(Some(raw.span()), message));
            }
        };
        let row = expect.row.as_ref().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_string));
        Ok(Expect { line: self.line(raw.span().start), kernel: expect.kernel.clone(), row, what })
    }
}

/// The comment block at the top.
fn story(text: &str) -> String {
    let lines: Vec<&str> =
        text.lines().take_while(|l| l.starts_with('#')).map(|l| l.trim_start_matches('#').trim()).collect();
    lines.join("\n")
}

/// The maximum number of runs; the data kept for more would fill the memory.
pub const RUNS_MAX: u32 = 100_000;

/// Checks that the number of runs is allowed.
///
/// # Errors
/// The maximum.
pub fn check_runs(runs: u32) -> Result<(), String> {
    match runs {
        0 => Err("at least 1".to_string()),
        1..=RUNS_MAX => Ok(()),
        _ => Err(format!("at most {RUNS_MAX}, not {runs}")),
    }
}

/// Parses the virtual time after which a run is stopped.
///
/// # Errors
/// As [`parse_duration`], and zero.
pub fn parse_limit(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("the time is zero; give a limit like 10s".to_string()),
        limit => Ok(limit),
    }
}

/// Reads `250us`, `4ms`, `1.5s`.
///
/// # Errors
/// What is wrong with it and how it is written.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale: u64 = match &text[digits.len()..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(format!("\"{text}\" is not a time; write it like 250us, 4ms or 1.5s")),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let number = |s: &str| s.parse::<u64>().map_err(|_| format!("\"{text}\" has no number before its unit"));
    let mut ns = number(whole)?.checked_mul(scale);
    if !part.is_empty() {
        let fraction = number(part)?.saturating_mul(scale) / 10u64.saturating_pow(part.len() as u32);
        ns = ns.and_then(|n| n.checked_add(fraction));
    }
    ns.map(Duration).ok_or_else(|| format!("\"{text}\" is longer than 584 years"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_read_with_their_unit() {
        for (text, ns) in [("250us", 250_000), ("1.5s", 1_500_000_000), ("0.25ms", 250_000)] {
            assert_eq!(parse_duration(text), Ok(Duration(ns)));
        }
        assert!(parse_duration("10").unwrap_err().contains("250us"));
        assert!(parse_limit("0s").unwrap_err().contains("the time is zero"));
        assert_eq!([1, RUNS_MAX].map(check_runs), [Ok(()), Ok(())]);
        assert_eq!(check_runs(u32::MAX).unwrap_err(), "at most 100000, not 4294967295");
    }

    #[test]
    fn a_key_of_the_wrong_type_and_a_part_that_does_not_exist_name_their_line() {
        let of = |key: &str, op: &str| {
            let text = format!(
                "machine = \"2\"\nkernels = [\"v6.12\"]\n{key}\n[workload]\nduration = \"1ms\"\n[[workload.task]]\nname = \"w\"\n\
                 program = [\"run 1us; {op}\"]\n"
            );
            Scenario::parse("f", &text, &NoFiles).map(|_| ()).map_err(|e| e.to_string())
        };
        let told = |key, op, starts: &str, has: &str| {
            let error = of(key, op).unwrap_err();
            assert!(error.starts_with(starts) && error.contains(has), "{error}");
        };
        told(
            "warmup = 5",
            "yield",
            "f:3: warmup is \"auto\"",
            "not 5; some models have a warmup of their own",
        );
        told("warmup = \"5ms\"", "yield", "f:3: warmup is \"auto\"", "as in \"5ms\"");
        told("limit = 5", "yield", "f:3: limit is text with a unit, as in \"10s\"", "not 5");
        told("noise = 5", "yield", "f:3: noise is", "quiet");
        told("", "switch NO_SUCH", "f:8: switch NO_SUCH: there is no rule", "schedlab features");
        assert_eq!(of("limit = \"1ms\"", "switch NO_SIS_UTIL"), Ok(()));
        let expect = "[[expect]]\nmetric = \"x\"\nvalue = [2, 1]";
        let text =
            format!("machine = \"2\"\nkernels = [\"v6.12\"]\n[workload]\nmodel = \"token\"\n{expect}\n");
        let error = Scenario::parse("f", &text, &NoFiles).unwrap_err().to_string();
        assert_eq!(error, "f:5: the bounds of value are reversed; write [1.0, 2.0]");
    }

    #[test]
    fn the_story_is_the_comment_on_top() {
        assert_eq!(story("# a\n# b\nmachine = 1\n# c\n"), "a\nb");
    }
}
