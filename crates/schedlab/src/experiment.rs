//! One run of a row under a kernel, and how runs are spread over threads.
//!
//! Runs are independent and are spread over threads; results are put back in order, so the output does not
//! depend on the number of threads.

use rayon::prelude::*;
use schedlab_machine::Machine;
use schedlab_sched::Kernel;
use schedlab_sim::{Account, Counts, End, Noise, Profile, Settled, Simulation, SlowClock};
use schedlab_trace::{Sink, Tee};
use schedlab_units::Duration;

use crate::columns::Experiment;
use crate::error::Error;
use crate::folds::Folds;
use crate::measured::Measured;
use crate::scenario::{Row, Scenario};

/// Virtual time after which a run without a limit is considered endless.
pub(crate) const ENDLESS: Duration = Duration::secs(3600);

/// The results of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Runs by row, then column, then seed.
    pub runs: Vec<Vec<Vec<Run>>>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Seed.
    pub seed: u64,
    /// Virtual time it took, counted from the end of its warm-up if it marks that.
    pub elapsed: Duration,
    /// Virtual time of all of it, including warm-up.
    pub simulated: Duration,
    /// Interrupts from CPU to CPU, of the whole run.
    pub ipis: u64,
    /// What a profile of the kernel would show.
    pub profile: Profile,
    /// The engine's counts, including warm-up.
    pub engine: Counts,
    /// Where the time of each CPU went.
    pub account: Account,
    /// Slow mechanisms that had not completed a period by its end.
    pub slower: Vec<SlowClock>,
    /// How its figures settled, if it waited for that.
    pub settled: Option<Settled>,
    /// The figures read from it.
    pub folds: Folds,
}

impl Run {
    /// The figures of a recording, the `nth` of its side.
    pub fn recorded(nth: u64, mut folds: Folds) -> Run {
        let elapsed = folds.busy.span();
        folds.end(schedlab_units::Time::ZERO);
        Run {
            seed: nth,
            elapsed,
            simulated: elapsed,
            ipis: 0,
            profile: Profile::default(),
            engine: Counts::default(),
            account: Account::default(),
            slower: Vec::new(),
            settled: None,
            folds,
        }
    }
}

/// How a run is limited and seeded.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Seed of every random stream.
    pub seed: u64,
    /// Longest virtual time; `None` is as long as it takes, up to `endless`.
    pub limit: Option<Duration>,
    /// Virtual time within which a run without a limit must have ended.
    pub endless: Duration,
    /// Whether it first runs until its figures have settled.
    pub settles: bool,
    /// What else runs on the machine.
    pub noise: Noise,
}

/// The seed of the `nth` run, counted from 0. Seeds are consecutive from the first and wrap around to 0.
pub(crate) fn nth_seed(first: u64, nth: u64) -> u64 {
    first.wrapping_add(nth)
}

impl Scenario {
    /// Runs everything on `threads` threads (0: one per processor). `progress` is called after each run with
    /// the number of finished runs and the total.
    ///
    /// # Errors
    /// The error of the first run, in order of seeds, rows and kernels, that could not be finished: a
    /// deadlock, or the limit of virtual time.
    pub fn run(&self, threads: usize, progress: impl Fn(usize, usize) + Sync) -> Result<Results, Error> {
        let experiment = Experiment::of(self);
        let mut results = experiment.nothing();
        experiment.extend(&mut results, self.runs, threads, false, || true, progress)?;
        Ok(results)
    }

    /// The limits and the seed of its first run.
    pub fn limits(&self) -> Limits {
        Limits {
            seed: self.seed,
            limit: self.limit,
            endless: self.endless,
            settles: self.settles,
            noise: self.noise,
        }
    }

    /// One run, for a sink that takes everything except the prologue of the row.
    ///
    /// # Errors
    /// As [`run_one`], with the file, the row and the kernel.
    pub fn run_row<S: Sink>(
        &self,
        kernel: &Kernel,
        row: &Row,
        sink: impl FnOnce(&Row) -> S,
    ) -> Result<(Run, S), Error> {
        let kernel = self.kernel_of(kernel, row)?;
        run_one(self.machine_of(row), &kernel, row, self.limits_of(row), |row| {
            Measured::new(row.prologue, sink(row))
        })
        .map(|(run, sink)| (run, sink.into_inner()))
        .map_err(|e| Error::new(format!("{}: {}: {e}", self.file, self.name_of(row, &kernel))))
    }

    pub(crate) fn name_of(&self, row: &Row, kernel: &Kernel) -> String {
        if row.key.is_empty() { kernel.name.clone() } else { format!("row {}, {}", row.key, kernel.name) }
    }
}

/// Runs jobs on `threads` threads (0: one per processor); results come in order.
///
/// # Errors
/// Threads that cannot be started.
pub(crate) fn spread<T: Send>(
    jobs: usize,
    threads: usize,
    job: impl Fn(usize) -> T + Sync + Send,
) -> Result<Vec<T>, Error> {
    // A thread of a pool that waits for another pool of one thread would steal other jobs meanwhile, nesting ever
    // deeper.
    let threads = if threads == 0 { 0 } else { threads.min(jobs) };
    if threads == 1 || jobs < 2 {
        return Ok((0..jobs).map(job).collect());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| Error::new(format!("cannot start threads: {e}")))?;
    Ok(pool.install(|| (0..jobs).into_par_iter().map(job).collect()))
}

/// Runs one row under one kernel, feeding a second sink in addition to the folds.
///
/// # Errors
/// A deadlock, or the limit of virtual time.
pub fn run_one<S: Sink>(
    machine: &Machine,
    kernel: &Kernel,
    row: &Row,
    limits: Limits,
    sink: impl FnOnce(&Row) -> S,
) -> Result<(Run, S), Error> {
    run_folding(machine, kernel, row, limits, Folds::new(&row.workload), sink)
}

/// The same with the caller's own folds.
///
/// # Errors
/// As [`run_one`].
pub fn run_folding<S: Sink>(
    machine: &Machine,
    kernel: &Kernel,
    row: &Row,
    limits: Limits,
    folds: Folds,
    sink: impl FnOnce(&Row) -> S,
) -> Result<(Run, S), Error> {
    let mut sinks = Tee(Measured::new(row.prologue, folds), sink(row));
    let simulation =
        Simulation::new(machine, kernel, &row.workload).map_err(|e| Error::new(e.to_string()))?;
    let simulation =
        simulation.seed(limits.seed).limit(limits.limit.unwrap_or(limits.endless)).noise(limits.noise);
    let simulation = if limits.settles { simulation.settle() } else { simulation };
    let outcome = crate::kernels::run(&simulation, machine, kernel, limits.seed, &mut sinks)?;
    let endless = limits.limit.is_none() && row.workload.duration.is_none() && outcome.end == End::Duration;
    if endless {
        return Err(Error::new(format!(
            "the run did not end within {} of virtual time; give it a limit, as in --limit 10s, or limit = \"10s\" in the scenario",
            limits.endless
        )));
    }
    if !outcome.is_ok() {
        return Err(Error::new(outcome.end.to_string()));
    }
    let Tee(folds, sink) = sinks;
    let mut folds = folds.into_inner();
    folds.end(outcome.time);
    let elapsed = match folds.steady_at {
        Some(steady) => outcome.time.since(steady),
        None => outcome.elapsed().saturating_sub(row.prologue),
    };
    let run = Run {
        seed: limits.seed,
        elapsed,
        simulated: outcome.elapsed().saturating_sub(row.prologue),
        ipis: outcome.counts.ipis,
        profile: outcome.profile,
        engine: outcome.counts,
        account: outcome.account,
        slower: outcome.slower,
        settled: outcome.settled,
        folds,
    };
    Ok((run, sink))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_follow_each_other_from_any_on() {
        let seeds = |first: u64| [0, 1, 2].map(|nth| nth_seed(first, nth));
        assert_eq!(seeds(7), [7, 8, 9]);
        assert_eq!(seeds(u64::MAX), [u64::MAX, 0, 1]);
    }
}
