//! Runs the simulations that a table needs. This side takes names of scenarios, rows, kernels and figures,
//! and returns numbers; it never sees the published ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use schedlab_machine::{Machine, Without};
use schedlab_sched::Kernel;
use schedlab_trace::NullSink;

use super::copies::{Copies, Spans, run_copy, warm_up};
use super::figure::{self, Figure};
use crate::error::Error;
use crate::experiment::{Limits, run_folding};
use crate::folds::Folds;
use crate::scenario::{NoFiles, Row, Scenario};

/// A requested value: a figure of one row of a scenario under one of its kernels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// File name of the scenario.
    pub scenario: String,
    /// Key of the row; empty for a scenario of one row.
    pub row: String,
    /// Name of the kernel, as the scenario writes it.
    pub kernel: String,
    /// Name of the figure.
    pub figure: String,
}

/// Which end of a constant's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The lowest value it may have.
    Low,
    /// The highest.
    High,
}

impl End {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            End::Low => "lowest",
            End::High => "highest",
        }
    }
}

/// How it is run.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// Runs instead of the scenario's own number.
    pub runs: Option<u32>,
    /// Mechanisms of the hardware that are off.
    pub without: Without,
    /// A constant of the machine set to an end of its range.
    pub constant: Option<(String, End)>,
}

impl Setting {
    /// The machine under this setting; `None` if its constant has no range there.
    fn apply(&self, machine: &Machine) -> Option<Machine> {
        let mut machine = machine.clone().without(self.without);
        if let Some((name, end)) = &self.constant {
            let constants = machine.constants();
            let (_, cost) = constants.iter().find(|(row, _)| row.path() == *name)?;
            let value = match end {
                End::Low => *cost.range().start(),
                End::High => *cost.range().end(),
            };
            if value == cost.get() {
                return None;
            }
            machine.set(name, value).expect("the constant was found by this name");
        }
        Some(machine)
    }
}

/// The figures of all seeds for each key.
pub type Answers = BTreeMap<Key, Vec<Option<Figure>>>;

/// Results of the runs under one setting.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    /// Figures.
    pub answers: Answers,
    /// The constants that the runs of each key used.
    pub asked: BTreeMap<Key, BTreeSet<String>>,
}

/// Scenarios by file name, read once.
pub struct Scenarios {
    by_file: BTreeMap<String, Scenario>,
    /// Kernels that run instead of those with a given name.
    instead: BTreeMap<String, Kernel>,
}

impl Scenarios {
    /// Reads the scenarios that the keys name and finds every row, kernel and figure in them.
    ///
    /// # Errors
    /// The first unknown name.
    pub fn read(keys: &[Key], text: impl Fn(&str) -> Option<String>) -> Result<Scenarios, Error> {
        let mut scenarios = BTreeMap::new();
        for key in keys {
            if !scenarios.contains_key(&key.scenario) {
                let Some(text) = text(&key.scenario) else {
                    return Err(Error::new(format!("there is no scenario \"{}\"", key.scenario)));
                };
                let file = format!("scenarios/{}", key.scenario);
                scenarios.insert(key.scenario.clone(), Scenario::parse(&file, &text, &NoFiles)?);
            }
        }
        let scenarios = Scenarios { by_file: scenarios, instead: BTreeMap::new() };
        for key in keys {
            let (scenario, row, _) = scenarios.find(key)?;
            if !figure::is_known(&key.figure, &scenario.rows[row].workload) {
                return Err(Error::new(format!("{} gives no figure \"{}\"", scenario.file, key.figure)));
            }
        }
        Ok(scenarios)
    }

    /// Replaces kernels by name; the keys continue to use the old names.
    ///
    /// # Errors
    /// A name that no scenario contains.
    pub fn instead(mut self, kernels: &[(String, Kernel)]) -> Result<Scenarios, Error> {
        let names =
            self.by_file.values().flat_map(|scenario| &scenario.kernels).map(|kernel| kernel.name.as_str());
        let names: BTreeSet<&str> = names.collect();
        if let Some((name, _)) = kernels.iter().find(|(name, _)| !names.contains(name.as_str())) {
            let names: Vec<&str> = names.into_iter().collect();
            return Err(Error::new(format!(
                "no scenario of the table runs {name}; they run {}",
                names.join(", ")
            )));
        }
        self.instead = kernels.iter().cloned().collect();
        Ok(self)
    }

    /// What runs as a kernel of a scenario.
    fn kernel<'a>(&'a self, scenario: &'a Scenario, at: usize) -> &'a Kernel {
        let kernel = &scenario.kernels[at];
        self.instead.get(&kernel.name).unwrap_or(kernel)
    }

    /// The scenario of a key, with the indices of its row and kernel.
    fn find(&self, key: &Key) -> Result<(&Scenario, usize, usize), Error> {
        let scenario = &self.by_file[&key.scenario];
        let kernel = scenario.kernels.iter().position(|k| k.name == key.kernel);
        let row = if key.row.is_empty() && scenario.rows.len() == 1 {
            Some(0)
        } else {
            scenario.rows.iter().position(|r| r.key == key.row)
        };
        match (row, kernel) {
            (Some(row), Some(kernel)) => Ok((scenario, row, kernel)),
            (None, _) => Err(Error::new(format!("{} has no row \"{}\"", scenario.file, key.row))),
            (_, None) => Err(Error::new(format!("{} has no kernel \"{}\"", scenario.file, key.kernel))),
        }
    }

    /// The keys of the first row and kernel of each scenario.
    pub fn first_of_each(&self, keys: &[Key]) -> Vec<Key> {
        let mut first: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let place = |key: &Key| self.find(key).map(|(_, row, kernel)| (row, kernel)).ok();
        for key in keys {
            let Some(place) = place(key) else { continue };
            let least = first.entry(&key.scenario).or_insert(place);
            *least = place.min(*least);
        }
        keys.iter().filter(|key| place(key) == first.get(key.scenario.as_str()).copied()).cloned().collect()
    }

    /// Names of all constants that have a range on some machine, in the order of their tables.
    pub fn constants(&self) -> Vec<String> {
        let mut names = Vec::new();
        for scenario in self.by_file.values() {
            for (row, cost) in scenario.machine.constants() {
                let name = row.path();
                if cost.range().start() < cost.range().end() && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// Figures for the requested keys under each setting. All runs are independent and are spread over
    /// `threads` threads (0: one per processor); the result does not depend on their number. A setting that
    /// changes nothing on a scenario's machine runs nothing of it and has no answers there.
    ///
    /// # Errors
    /// A run that could not be finished.
    pub fn simulate(
        &self,
        copies: &Copies,
        asked: &[(Setting, Vec<Key>)],
        threads: usize,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Vec<Simulated>, Error> {
        let mut jobs = Vec::new();
        for (index, (setting, keys)) in asked.iter().enumerate() {
            let mut places: BTreeMap<(&str, usize, usize), Vec<&Key>> = BTreeMap::new();
            for key in keys {
                let (_, row, kernel) = self.find(key)?;
                let of = places.entry((&key.scenario, row, kernel)).or_default();
                if !of.contains(&key) {
                    of.push(key);
                }
            }
            for ((name, row, kernel), keys) in places {
                let scenario = &self.by_file[name];
                if setting.apply(&scenario.machine).is_none() {
                    continue;
                }
                for run in 0..setting.runs.unwrap_or(scenario.runs) {
                    jobs.push(Job {
                        setting: index,
                        name,
                        scenario,
                        row,
                        at: kernel,
                        kernel: self.kernel(scenario, kernel),
                        seed: scenario.seed + u64::from(run),
                        keys: keys.clone(),
                    });
                }
            }
        }
        let done_jobs = spread(&jobs, threads, progress, |job| job.run(copies, &asked[job.setting].0))?;
        let mut found = vec![Simulated::default(); asked.len()];
        for (job, done) in jobs.iter().zip(done_jobs) {
            let found = &mut found[job.setting];
            for (&key, figure) in job.keys.iter().zip(done.figures) {
                found.answers.entry(key.clone()).or_default().push(figure);
                found.asked.entry(key.clone()).or_default().extend(done.asked.iter().cloned());
            }
        }
        Ok(found)
    }

    /// Warms up rows of the scenarios that have spans, for the given number of seeds.
    ///
    /// # Errors
    /// A run that never becomes warm.
    pub fn warm_up(
        &self,
        keys: &[Key],
        spans: &BTreeMap<String, Spans>,
        runs: u32,
        threads: usize,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Copies<'_>, Error> {
        let mut places = BTreeSet::new();
        for key in keys.iter().filter(|key| spans.contains_key(&key.scenario)) {
            let (name, scenario) = self.by_file.get_key_value(&key.scenario).expect("read before");
            let (_, row, kernel) = self.find(key)?;
            places.extend((0..runs).map(|run| (name.as_str(), row, kernel, scenario.seed + u64::from(run))));
        }
        let places: Vec<_> = places.into_iter().collect();
        let warm = spread(&places, threads, progress, |&(name, row, kernel, seed)| {
            let scenario = &self.by_file[name];
            let (row, kernel) = (&scenario.rows[row], &scenario.kernels[kernel]);
            let warm = warm_up(&scenario.machine, kernel, row, seed);
            warm.map(|warm| (spans[name], Mutex::new(warm))).map_err(|e| of_run(scenario, row, kernel, &e))
        })?;
        Ok(Copies(places.into_iter().zip(warm).collect()))
    }
}

/// Runs jobs on `threads` threads.
fn spread<J: Sync, T: Send>(
    jobs: &[J],
    threads: usize,
    progress: &(dyn Fn(usize, usize) + Sync),
    run: impl Fn(&J) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let done = AtomicUsize::new(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| Error::new(format!("cannot start threads: {e}")))?;
    let results: Vec<Result<T, Error>> = pool.install(|| {
        // One by one, since some take much longer than others.
        let each = jobs.par_iter().with_max_len(1);
        each.map(|job| {
            let result = run(job);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
            result
        })
        .collect()
    });
    results.into_iter().collect()
}

fn of_run(scenario: &Scenario, row: &Row, kernel: &Kernel, e: &Error) -> Error {
    Error::new(format!("{}: row {}, {}: {e}", scenario.file, row.key, kernel.name))
}

/// One run.
struct Job<'a> {
    setting: usize,
    name: &'a str,
    scenario: &'a Scenario,
    row: usize,
    /// The kernel's index in the scenario.
    at: usize,
    kernel: &'a Kernel,
    seed: u64,
    keys: Vec<&'a Key>,
}

/// Its result.
struct Done {
    figures: Vec<Option<Figure>>,
    asked: Vec<String>,
}

impl Job<'_> {
    fn run(&self, copies: &Copies, setting: &Setting) -> Result<Done, Error> {
        let machine =
            setting.apply(&self.scenario.machine).expect("jobs are made where it changes something");
        let (row, kernel) = (&self.scenario.rows[self.row], self.kernel);
        let limits = Limits { seed: self.seed, ..self.scenario.limits() };
        let run = match copies.0.get(&(self.name, self.row, self.at, self.seed)) {
            Some((spans, warm)) => {
                let copy = warm.lock().expect("nobody panics over a copy").on(&machine);
                run_copy(copy, *spans, row, self.seed)
            }
            None => {
                let folds = Folds::new(&row.workload).unexplained();
                run_folding(&machine, kernel, row, limits, folds, |_| NullSink).map(|(run, _)| run)
            }
        };
        let run = run.map_err(|e| of_run(self.scenario, row, kernel, &e))?;
        let figure = |key: &&Key| figure::read(&key.figure, &run, &row.workload);
        let constants = machine.constants().into_iter().filter(|(_, cost)| cost.was_asked());
        Ok(Done {
            figures: self.keys.iter().map(figure).collect(),
            asked: constants.map(|(row, _)| row.path()).collect(),
        })
    }
}
