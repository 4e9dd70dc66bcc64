//! The probe that runs a scenario.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use schedlab::machine::Machine;
use schedlab::sched::Kernel;
use schedlab::{Limits, Row};

use super::{Part, Probe, kernel_with};
use crate::error::Error;
use crate::figures::{self, Figure};
use schedlab_columns::Cell;

/// One row of a scenario on a machine, under kernels between two.
pub struct Simulated<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// What runs.
    pub row: &'a Row,
    /// Limits of the runs.
    pub limits: Limits,
    /// The good kernel.
    pub good: &'a Kernel,
    /// The parts that make it the bad one.
    pub parts: &'a [Part],
    /// The figure: a measure of the workload, or a count such as `migrations`.
    pub metric: &'a str,
    /// Threads to run on; 0 is one per processor.
    pub threads: usize,
    /// Called after each run with the number of runs so far.
    pub progress: &'a (dyn Fn(usize) + Sync),
    known: BTreeMap<(Vec<usize>, u64), (f64, String)>,
}

impl<'a> Simulated<'a> {
    /// A probe without runs.
    pub fn new(
        machine: &'a Machine,
        row: &'a Row,
        limits: Limits,
        good: &'a Kernel,
        parts: &'a [Part],
        metric: &'a str,
        threads: usize,
        progress: &'a (dyn Fn(usize) + Sync),
    ) -> Simulated<'a> {
        Simulated { machine, row, limits, good, parts, metric, threads, progress, known: BTreeMap::new() }
    }

    fn run(&self, set: &[usize], seed: u64) -> Result<(f64, String), Error> {
        let kernel = kernel_with(self.good, self.parts, set)?;
        let limits = Limits { seed, ..self.limits };
        let figures = figures::measure(self.machine, &kernel, self.row, limits)
            .map_err(|error| Error::new(format!("{}, seed {seed}: {error}", kernel.name)))?;
        Ok((self.figure(&figures)?, format!("{figures:?}")))
    }

    fn figure(&self, figures: &[Figure]) -> Result<f64, Error> {
        let found = figures.iter().find(|figure| figure.name == self.metric);
        match found.map(|figure| &figure.cell) {
            Some(Cell::Int(int)) => Ok(*int as f64),
            Some(Cell::Float(float)) => Ok(*float),
            Some(_) => Err(Error::new(format!(
                "{} has no figure: the run did not reach the marks it is computed from; a longer limit may help",
                self.metric
            ))),
            None => {
                let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
                Err(Error::new(format!(
                    "there is no figure \"{}\"; there are {}",
                    self.metric,
                    names.join(", ")
                )))
            }
        }
    }
}

impl Probe for Simulated<'_> {
    fn measure(&mut self, kernel: &[usize], seed: u64) -> Result<(f64, String), Error> {
        Ok(self.all(&[(kernel.to_vec(), seed)])?.remove(0))
    }

    fn all(&mut self, asked: &[(Vec<usize>, u64)]) -> Result<Vec<(f64, String)>, Error> {
        let mut missing: Vec<&(Vec<usize>, u64)> =
            asked.iter().filter(|key| !self.known.contains_key(*key)).collect();
        missing.sort();
        missing.dedup();
        // Trees are built one after the other; a tree that cannot be built is reported by the run that needs
        // it.
        for (set, _) in &missing {
            let _ = kernel_with(self.good, self.parts, set);
        }
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::new());
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        let threads = if self.threads == 0 { cores } else { self.threads }.min(missing.len());
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(key) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let result = self.run(&key.0, key.1);
                        let stop = result.is_err();
                        let mut found = found.lock().expect("no holder panics");
                        found.push(((*key).clone(), result));
                        (self.progress)(self.known.len() + found.len());
                        if stop {
                            next.store(missing.len(), Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let mut found = found.into_inner().expect("no holder panics");
        found.sort_by(|a, b| a.0.cmp(&b.0));
        for (key, result) in found {
            self.known.insert(key, result?);
        }
        Ok(asked.iter().map(|key| self.known[key].clone()).collect())
    }
}
