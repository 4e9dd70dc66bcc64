//! A plan: one scenario, the parameters that vary, and how many seeds each combination has.
//!
//! Points are numbered. Combinations of values vary slowest, then the rows of the scenario, then the kernels, then
//! the seeds, so that points to compare are adjacent. A sampled plan samples combinations; each is run in every
//! row, under every kernel and with every seed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use schedlab::{Files, Scenario};

use crate::axis::{Axis, Spread};
use crate::draw;
use crate::error::Error;
use crate::id::Hash;
use crate::point::{Point, Settings};
use crate::resolve::Resolver;
use crate::value::Value;

/// More points would number their chunk files with more than six digits.
const POINTS_MAX: u64 = 100_000_000;

/// Maximum number of values of an axis that are checked before anything runs.
const TRIED_MAX: usize = 200;

/// How combinations of values are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// All of them.
    Grid,
    /// This many at random.
    Random(u64),
    /// This many, each strip of each axis once.
    Latin(u64),
}

impl Sample {
    /// Reads `grid`, `random:100`, `latin:100`.
    ///
    /// # Errors
    /// What is valid.
    pub fn parse(text: &str) -> Result<Sample, Error> {
        let number = |text: &str| text.parse().ok().filter(|n| (1..=POINTS_MAX).contains(n));
        match text.split_once(':') {
            None if text == "grid" => Ok(Sample::Grid),
            Some(("random", n)) if number(n).is_some() => Ok(Sample::Random(number(n).expect("just seen"))),
            Some(("latin", n)) if number(n).is_some() => Ok(Sample::Latin(number(n).expect("just seen"))),
            _ => Err(Error::new(format!("sample is grid, random:N or latin:N, not \"{text}\""))),
        }
    }
}

impl std::fmt::Display for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Sample::Grid => f.write_str("grid"),
            Sample::Random(n) => write!(f, "random:{n}"),
            Sample::Latin(n) => write!(f, "latin:{n}"),
        }
    }
}

/// What a plan is made from.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Name of the scenario's file, for messages.
    pub file: String,
    /// Its text.
    pub text: String,
    /// What varies.
    pub axes: Vec<Axis>,
    /// How combinations are chosen.
    pub sample: Sample,
    /// Seeds of each combination; the scenario's `runs` if not given.
    pub seeds: Option<u32>,
    /// Seed of all seeds and samples; the scenario's seed if not given.
    pub seed: Option<u64>,
    /// Points per chunk; by default 64 chunks, but at most 256 points each.
    pub chunk: Option<u32>,
}

/// A complete plan: its text contains everything needed to run its points.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Version of the engine that runs it.
    pub engine: String,
    /// Name of the scenario's file, for messages.
    pub file: String,
    /// The scenario's text.
    pub text: String,
    /// The files it names, by name.
    pub files: BTreeMap<String, String>,
    /// What varies, without kernels, rows and seeds.
    pub axes: Vec<Axis>,
    /// How combinations are chosen.
    pub sample: Sample,
    /// Keys of the rows; one empty key if the scenario has one row.
    pub rows: Vec<String>,
    /// Kernels, the baseline first.
    pub kernels: Vec<String>,
    /// Seeds of each combination.
    pub seeds: u32,
    /// Seeds given by number instead.
    pub given_seeds: Vec<u64>,
    /// Seed of all seeds and samples.
    pub seed: u64,
    /// Points of a chunk.
    pub chunk: u32,
}

impl Plan {
    /// Checks a draft and completes it. Each value is tried with the first values of all others, or the last
    /// ones.
    ///
    /// # Errors
    /// What is wrong with the scenario or a value.
    pub fn new(draft: Draft, files: &dyn Files) -> Result<Plan, Error> {
        let recorder = Recorder { files, seen: RefCell::default() };
        let scenario = Scenario::parse(&draft.file, &draft.text, &recorder)?;
        let mut plan = Plan {
            engine: crate::ENGINE.to_owned(),
            file: draft.file,
            text: draft.text,
            files: BTreeMap::new(),
            axes: Vec::new(),
            sample: draft.sample,
            rows: Vec::new(),
            kernels: scenario.kernels.iter().map(|kernel| kernel.name.clone()).collect(),
            seeds: draft.seeds.unwrap_or(scenario.runs),
            given_seeds: Vec::new(),
            seed: draft.seed.unwrap_or(scenario.seed),
            chunk: 0,
        };
        let mut rows = None;
        for axis in draft.axes {
            if plan.axes.iter().any(|known| known.path == axis.path) {
                return Err(Error::new(format!(
                    "{} is varied twice; name all its values at once",
                    axis.path
                )));
            }
            match axis.path.as_str() {
                "kernel" => plan.kernels = axis.grid()?.iter().map(Value::to_string).collect(),
                "row" => rows = Some(axis.grid()?.iter().map(Value::to_string).collect::<Vec<_>>()),
                "seed" => plan.given_seeds = seeds(&axis)?,
                "runs" | "kernels" | "expect" => {
                    return Err(Error::new(format!(
                        "{} is not a parameter of a run; vary kernel, and give the number of seeds with --seeds",
                        axis.path
                    )));
                }
                _ => plan.axes.push(axis),
            }
        }
        if plan.seeds == 0 {
            return Err(Error::new("at least one seed is needed; give --seeds 10"));
        }
        let too_many = || {
            Error::new(format!(
                "this plan has more than {POINTS_MAX} points; draw some of them with --sample latin:1000"
            ))
        };
        if plan.combinations().is_none_or(|combinations| combinations > POINTS_MAX) {
            return Err(too_many());
        }
        plan.check(&recorder)?;
        let first = Resolver::new(&plan).scenario_with(&plan.settings(0), &recorder)?;
        let keys: Vec<String> = first.rows.iter().map(|row| row.key.clone()).collect();
        if let Some(unknown) = rows.iter().flatten().find(|row| !keys.contains(row)) {
            return Err(Error::new(format!(
                "{} has no row \"{unknown}\"; it has {}",
                plan.file,
                keys.join(", ")
            )));
        }
        plan.rows = rows.unwrap_or(keys);
        plan.files = recorder.seen.into_inner();
        // From here on its folder does not matter: a plan is the same from any folder.
        let name = Path::new(&plan.file).file_name();
        plan.file = name.map_or_else(|| plan.file.clone(), |name| name.to_string_lossy().into_owned());
        let points = plan.size().filter(|points| *points <= POINTS_MAX).ok_or_else(too_many)?;
        plan.chunk = draft.chunk.unwrap_or(points.div_ceil(64).min(256) as u32).max(1);
        Ok(plan)
    }

    /// Tries each value of each axis once.
    fn check(&self, files: &dyn Files) -> Result<(), Error> {
        let resolver = Resolver::new(self);
        let ends = |last: bool| -> Result<Settings, Error> {
            let end = |axis: &Axis| Ok((axis.path.clone(), values_to_try(self, axis, last)?.swap_remove(0)));
            self.axes.iter().map(end).collect()
        };
        let (first, last) = (ends(false)?, ends(true)?);
        for (nth, axis) in self.axes.iter().enumerate() {
            for value in values_to_try(self, axis, false)? {
                let with = |settings: &[(String, Value)]| {
                    let mut settings = settings.to_vec();
                    settings[nth].1 = value.clone();
                    resolver.kernel(&self.kernels[0], &settings)?;
                    resolver.scenario_with(&settings, files).map(drop)
                };
                let (path, tried) = (&axis.path, with(&first));
                if let Err(error) = tried.or_else(|error| with(&last).map_err(|_| error)) {
                    return Err(Error::new(format!("{path}={value}: {error}")));
                }
            }
        }
        for kernel in &self.kernels {
            resolver.kernel(kernel, &first)?;
        }
        Ok(())
    }

    /// Combinations of values.
    pub fn combinations(&self) -> Option<u64> {
        match self.sample {
            Sample::Random(n) | Sample::Latin(n) => Some(n),
            Sample::Grid => self.axes.iter().try_fold(1u64, |n, axis| n.checked_mul(axis.len() as u64)),
        }
    }

    fn size(&self) -> Option<u64> {
        let each = (self.rows.len() * self.kernels.len()) as u64;
        self.combinations()?.checked_mul(each)?.checked_mul(self.repeats())
    }

    fn repeats(&self) -> u64 {
        if self.given_seeds.is_empty() { u64::from(self.seeds) } else { self.given_seeds.len() as u64 }
    }

    /// How many points there are.
    pub fn points(&self) -> u64 {
        self.size().expect("checked when it was made")
    }

    /// How many chunks there are.
    pub fn chunks(&self) -> u64 {
        self.points().div_ceil(u64::from(self.chunk))
    }

    /// The points of a chunk.
    pub fn points_of(&self, chunk: u64) -> std::ops::Range<u64> {
        let each = u64::from(self.chunk);
        chunk * each..((chunk + 1) * each).min(self.points())
    }

    /// A point by its number.
    pub fn point(&self, index: u64) -> Point {
        let (rest, repeat) = (index / self.repeats(), index % self.repeats());
        let (rest, kernel) = (rest / self.kernels.len() as u64, rest % self.kernels.len() as u64);
        let (combination, row) = (rest / self.rows.len() as u64, rest % self.rows.len() as u64);
        Point {
            index,
            settings: self.settings(combination),
            row: self.rows[row as usize].clone(),
            kernel: self.kernels[kernel as usize].clone(),
            repeat,
            seed: self.given_seeds.get(repeat as usize).copied(),
        }
    }

    /// What a combination sets.
    fn settings(&self, combination: u64) -> Settings {
        let mut rest = combination;
        let mut settings: Settings = Vec::with_capacity(self.axes.len());
        // In a grid the last axis varies fastest.
        for axis in self.axes.iter().rev() {
            let value = match (self.sample, &axis.spread) {
                (Sample::Grid, Spread::List(values)) => {
                    let value = values[(rest % values.len() as u64) as usize].clone();
                    rest /= values.len() as u64;
                    value
                }
                (Sample::Grid, Spread::Between { low, .. }) => {
                    let value = Value::Int(*low as i64 + (rest % axis.len() as u64) as i64);
                    rest /= axis.len() as u64;
                    value
                }
                (Sample::Random(n) | Sample::Latin(n), _) => {
                    let latin = matches!(self.sample, Sample::Latin(_));
                    draw::value(axis, draw::place(self.seed, axis, combination, n, latin))
                }
            };
            settings.push((axis.path.clone(), value));
        }
        settings.reverse();
        settings
    }

    /// Identifies the plan, with the engine's version: 16 hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        let mut hash = Hash::new();
        hash.part("plan", &self.to_toml());
        hash.hex()[..16].to_owned()
    }
}

impl Axis {
    /// Values in a grid.
    fn len(&self) -> usize {
        match &self.spread {
            Spread::List(values) => values.len(),
            Spread::Between { low, high, .. } => (high - low) as usize + 1,
        }
    }
}

/// All values of a list, or both ends of a range.
fn values_to_try(plan: &Plan, axis: &Axis, last_first: bool) -> Result<Vec<Value>, Error> {
    let mut values = match (&axis.spread, plan.sample) {
        (Spread::List(values), _) => values.clone(),
        (_, Sample::Grid) => axis.grid()?,
        _ => vec![draw::value(axis, 0.0), draw::value(axis, 1.0)],
    };
    if values.len() > TRIED_MAX {
        // Values in the middle of a long list are assumed to be like those at its ends; otherwise their
        // points fail.
        values.drain(TRIED_MAX / 2..values.len() - TRIED_MAX / 2);
    }
    if last_first {
        values.reverse();
    }
    Ok(values)
}

fn seeds(axis: &Axis) -> Result<Vec<u64>, Error> {
    let number = |value: &Value| match value {
        Value::Int(int) => u64::try_from(*int).ok(),
        _ => None,
    };
    let wrong = || Error::new("a seed is a whole number from 0 on: --vary seed=1..10");
    axis.grid()?.iter().map(|value| number(value).ok_or_else(wrong)).collect()
}

/// Keeps the files that were read.
struct Recorder<'a> {
    files: &'a dyn Files,
    seen: RefCell<BTreeMap<String, String>>,
}

impl Files for Recorder<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        let text = self.files.text(name)?;
        self.seen.borrow_mut().insert(name.to_owned(), text.clone());
        Ok(text)
    }
}
