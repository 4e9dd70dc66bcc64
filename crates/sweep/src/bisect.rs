//! Which rules between two kernels change a figure?
//!
//! The rules and tunables in which two kernels differ are *parts*; each changes one setting of the good kernel to
//! that of the bad one. A kernel between them is a set of parts. The search works from both ends, with the same
//! seeds throughout:
//!
//! ```text
//!   good, bad                  do they differ at all?                          no: nothing to find
//!   good + part, bad - part    is any figure of a run another, to the bit?     no: the part plays no role here
//!   good + part, bad - part    how large is its effect alone, how large is
//!                              what its absence undoes?                        main effects
//!   delta debugging            the smallest set that makes good bad, and
//!                              the smallest whose absence makes bad good       parts that matter together
//!   fresh seeds                every part named, again                         what is confirmed
//! ```
//!
//! Named parts are confirmed on seeds that the search has not used, by simultaneous intervals: the chance that any part
//! is named without an effect is the error rate, 5 %.

mod ddmin;
mod parting;
mod parts;
mod simulated;
mod table;
mod trees;

use schedlab::sched::Kernel;
use schedlab_stats::{Interval, mean_t};
use serde::Serialize;

use crate::error::Error;

pub use parting::first_parting;
pub use parts::{Part, between, parts};
pub use simulated::Simulated;
pub use table::text;

/// Chance that any of the named parts has no effect.
pub const ERROR_RATE: f64 = 0.05;
/// Minimum share of the whole change for a set to count as the cause.
const HALF: f64 = 0.5;
/// Share from which on the remainder is not examined.
const ENOUGH: f64 = 0.8;
/// Minimum share of the whole change for a single part to count as a cause.
const QUARTER: f64 = 0.25;
/// Maximum number of sets to search for.
const SETS_MAX: usize = 4;
/// Effects below this share of the whole change are not reported.
const SHARE_MIN: f64 = 0.1;

/// What runs kernels.
pub trait Probe {
    /// The figure under a kernel with a seed, and a fingerprint of all other figures, which identifies equal
    /// runs.
    ///
    /// # Errors
    /// A run that fails.
    fn measure(&mut self, kernel: &[usize], seed: u64) -> Result<(f64, String), Error>;

    /// Measures many at once, for callers with several threads.
    ///
    /// # Errors
    /// As [`Probe::measure`].
    fn all(&mut self, asked: &[(Vec<usize>, u64)]) -> Result<Vec<(f64, String)>, Error> {
        asked.iter().map(|(kernel, seed)| self.measure(kernel, *seed)).collect()
    }
}

/// A change of the figure, relative to the good kernel's mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// Mean of the paired differences, as a fraction.
    pub change: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Effect {
    /// Whether the interval excludes zero.
    pub fn is_real(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// How a part matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It makes the good kernel bad by itself.
    Alone,
    /// It is needed together with others.
    Together,
    /// It has its own effect, but the change does not depend on it.
    Beside,
}

/// A part that matters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Culprit {
    /// Its index among the parts.
    pub part: usize,
    /// How it matters.
    pub role: Role,
    /// Its effect alone, added to the good kernel.
    pub alone: Effect,
    /// Its effect in the bad kernel: that of removing it, with the opposite sign.
    pub in_bad: Effect,
    /// Parts that are needed with it.
    pub with: Vec<usize>,
    /// Whether fresh seeds confirm it.
    pub confirmed: bool,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Change from good to bad.
    pub whole: Effect,
    /// The good kernel's mean.
    pub good: f64,
    /// Number of seeds of the search, and of fresh ones for the confirmation.
    pub seeds: u64,
    /// Parts that have any effect.
    pub at_work: Vec<usize>,
    /// Parts that matter, the largest effect first; empty if the kernels do not differ in this figure.
    pub culprits: Vec<Culprit>,
    /// Share of the change that the set as a whole explains, on fresh seeds.
    pub share: f64,
    /// Number of runs.
    pub runs: usize,
}

/// Options of the search.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seeds to begin with; more are used if the figure varies.
    pub seeds: u64,
    /// Maximum number of seeds.
    pub seeds_max: u64,
    /// The first seed.
    pub first_seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { seeds: 8, seeds_max: 64, first_seed: 1 }
    }
}

/// Finds what changes a figure among `nr` parts.
///
/// # Errors
/// A run that fails.
pub fn bisect(probe: &mut dyn Probe, nr: usize, options: Options) -> Result<Answer, Error> {
    let mut lab = Lab { probe, first: options.first_seed, seeds: options.seeds.max(2), runs: 0 };
    let none: Vec<usize> = Vec::new();
    let all: Vec<usize> = (0..nr).collect();
    let mut whole;
    loop {
        let (good, bad) = (lab.figures(&none)?, lab.figures(&all)?);
        whole = effect(&good, &bad, ERROR_RATE);
        // Half of the change must be significant, or sets cannot be distinguished.
        let clear = whole.is_real() && whole.high - whole.low <= whole.change.abs() * HALF;
        if clear || lab.seeds >= options.seeds_max {
            break;
        }
        lab.seeds = (lab.seeds * 2).min(options.seeds_max);
    }
    let good = lab.figures(&none)?;
    let mean = good.iter().sum::<f64>() / good.len() as f64;
    let mut answer = Answer {
        whole,
        good: mean,
        seeds: lab.seeds,
        at_work: Vec::new(),
        culprits: Vec::new(),
        share: 0.0,
        runs: lab.runs,
    };
    if !whole.is_real() {
        return Ok(answer);
    }
    answer.at_work = lab.at_work(&all)?;
    let found = lab.search(&answer.at_work, &all, whole)?;
    lab.confirm(&found, &all, whole, &mut answer)?;
    answer.runs = lab.runs;
    Ok(answer)
}

/// A probe with seeds.
struct Lab<'a> {
    probe: &'a mut dyn Probe,
    first: u64,
    seeds: u64,
    runs: usize,
}

/// Result of the search.
struct Found {
    /// Smallest sets that make the good kernel bad; each makes half of the change left by the previous ones.
    forward: Vec<Vec<usize>>,
    /// Smallest set without which the bad kernel is good.
    backward: Vec<usize>,
    /// Parts with a clear effect on their own.
    beside: Vec<usize>,
}

impl Lab<'_> {
    /// The figure of a kernel with every seed.
    fn figures(&mut self, kernel: &[usize]) -> Result<Vec<f64>, Error> {
        self.figures_from(kernel, self.first)
    }

    fn figures_from(&mut self, kernel: &[usize], first: u64) -> Result<Vec<f64>, Error> {
        let asked: Vec<_> = (0..self.seeds).map(|nth| (kernel.to_vec(), first.wrapping_add(nth))).collect();
        self.runs += asked.len();
        Ok(self.probe.all(&asked)?.into_iter().map(|(figure, _)| figure).collect())
    }

    /// Parts that change any figure of a run, at either end. Two seeds are used.
    fn at_work(&mut self, all: &[usize]) -> Result<Vec<usize>, Error> {
        let seeds = [self.first, self.first.wrapping_add(1)];
        let mut asked: Vec<(Vec<usize>, u64)> = Vec::new();
        for seed in seeds {
            asked.push((Vec::new(), seed));
            asked.push((all.to_vec(), seed));
            for &part in all {
                asked.push((vec![part], seed));
                asked.push((without(all, &[part]), seed));
            }
        }
        self.runs += asked.len();
        let prints = self.probe.all(&asked)?;
        let each = 2 + 2 * all.len();
        let differs = |part: &usize| {
            (0..seeds.len()).any(|nth| {
                let of = &prints[nth * each..];
                of[2 + 2 * part] != of[0] || of[3 + 2 * part] != of[1]
            })
        };
        Ok(all.iter().copied().filter(differs).collect())
    }

    fn search(&mut self, at_work: &[usize], all: &[usize], whole: Effect) -> Result<Found, Error> {
        let none = self.figures(&[])?;
        let bad = self.figures(all)?;
        // Simultaneous intervals of all parts at both ends.
        let rate = ERROR_RATE / (2 * at_work.len().max(1)) as f64;
        let mut effects = Vec::new();
        for &part in at_work {
            let alone = effect(&none, &self.figures(&[part])?, rate);
            let undone = effect(&none, &against(&none, &self.figures(&without(all, &[part]))?, &bad), rate);
            effects.push((part, alone, undone));
        }
        let size = |e: &(usize, Effect, Effect)| e.1.change.abs().max(e.2.change.abs());
        effects.sort_by(|a, b| size(b).total_cmp(&size(a)).then(a.0.cmp(&b.0)));
        let order: Vec<usize> = effects.iter().map(|(part, ..)| *part).collect();
        let beside = effects
            .iter()
            .filter(|(_, alone, undone)| {
                let tells = |e: &Effect| e.is_real() && e.change.abs() >= SHARE_MIN * whole.change.abs();
                tells(alone) || tells(undone)
            })
            .map(|(part, ..)| *part)
            .collect();
        let share = |lab: &mut Self, set: &[usize]| -> Result<f64, Error> {
            Ok(effect(&none, &lab.figures(set)?, ERROR_RATE).change / whole.change)
        };
        let mut forward: Vec<Vec<usize>> = Vec::new();
        let mut base: Vec<usize> = Vec::new();
        let mut explained = 0.0;
        while explained < ENOUGH && forward.len() < SETS_MAX {
            let rest: Vec<usize> = without(&order, &base);
            let set = ddmin::smallest(&rest, &mut |set| {
                let together: Vec<usize> = sorted(base.iter().chain(set));
                Ok(share(self, &together)? - explained >= HALF * (1.0 - explained))
            })?;
            if set.is_empty() {
                break;
            }
            base = sorted(base.iter().chain(&set));
            explained = share(self, &base)?;
            forward.push(set);
        }
        let backward =
            ddmin::smallest(&order, &mut |set| Ok(share(self, &without(all, set))? <= 1.0 - HALF))?;
        Ok(Found { forward, backward, beside })
    }

    /// Everything found, on seeds that the search has not used.
    fn confirm(
        &mut self,
        found: &Found,
        all: &[usize],
        whole: Effect,
        answer: &mut Answer,
    ) -> Result<(), Error> {
        let fresh = self.first.wrapping_add(1 << 20);
        let forward: Vec<usize> = sorted(found.forward.iter().flatten());
        let mut named: Vec<usize> = found.forward.concat();
        for part in found.backward.iter().chain(&found.beside) {
            if !named.contains(part) {
                named.push(*part);
            }
        }
        let rate = ERROR_RATE / (3 * named.len().max(1)) as f64;
        let none = self.figures_from(&[], fresh)?;
        let bad = self.figures_from(all, fresh)?;
        let set = self.figures_from(&forward, fresh)?;
        answer.share = effect(&none, &set, ERROR_RATE).change / effect(&none, &bad, ERROR_RATE).change;
        for part in named {
            let alone = effect(&none, &self.figures_from(&[part], fresh)?, rate);
            let lost = self.figures_from(&without(all, &[part]), fresh)?;
            let in_bad = effect(&none, &against(&none, &lost, &bad), rate);
            // Its effect in addition to the sets found.
            let rest = self.figures_from(&without(&forward, &[part]), fresh)?;
            let in_set = effect(&none, &against(&none, &rest, &set), rate);
            let own = found.forward.iter().find(|set| set.contains(&part));
            let enough = alone.is_real() && alone.change / whole.change >= QUARTER;
            let (role, with) = match own {
                Some(own) if own.len() > 1 => (Role::Together, without(own, &[part])),
                Some(_) => (Role::Alone, Vec::new()),
                None if !found.backward.contains(&part) => (Role::Beside, Vec::new()),
                None if enough => (Role::Alone, Vec::new()),
                None => (Role::Together, without(&found.backward, &[part])),
            };
            let confirmed = alone.is_real() || in_bad.is_real() || in_set.is_real();
            answer.culprits.push(Culprit { part, role, alone, in_bad, with, confirmed });
        }
        // An effect that fresh seeds do not show is noise, unless the change depends on it.
        answer.culprits.retain(|culprit| culprit.confirmed || culprit.role != Role::Beside);
        Ok(())
    }
}

/// Figures that exceed the first as far as the third exceeds the second.
fn against(base: &[f64], from: &[f64], to: &[f64]) -> Vec<f64> {
    base.iter().zip(from.iter().zip(to)).map(|(base, (from, to))| base + to - from).collect()
}

fn sorted<'a>(parts: impl Iterator<Item = &'a usize>) -> Vec<usize> {
    let mut parts: Vec<usize> = parts.copied().collect();
    parts.sort_unstable();
    parts
}

fn without(all: &[usize], parts: &[usize]) -> Vec<usize> {
    all.iter().copied().filter(|part| !parts.contains(part)).collect()
}

/// Mean difference of pairs relative to the mean of the first, with an interval that errs at this rate.
fn effect(base: &[f64], value: &[f64], rate: f64) -> Effect {
    let mean = base.iter().sum::<f64>() / base.len() as f64;
    let scale = if mean == 0.0 { 1.0 } else { mean.abs() };
    let differences: Vec<f64> = base.iter().zip(value).map(|(base, value)| (value - base) / scale).collect();
    let estimate = mean_t(&differences, 1.0 - rate);
    let center = differences.iter().sum::<f64>() / differences.len() as f64;
    let interval = estimate.map_or(Interval::around(center, f64::INFINITY), |estimate| estimate.interval);
    Effect { change: center, low: interval.low, high: interval.high }
}

/// The kernel with a set of parts.
///
/// # Errors
/// A part that does not belong to this kernel.
pub fn kernel_with(good: &Kernel, parts: &[Part], set: &[usize]) -> Result<Kernel, Error> {
    if trees::is(&good.name) {
        let name = trees::with(&good.name, set.iter().map(|&part| &parts[part]));
        return Ok(schedlab::kernels::kernel(&name, &mut |_| {})?);
    }
    let mut kernel = good.clone();
    for &part in set {
        let part = &parts[part];
        match part.preempt {
            Some(preempt) => kernel.preempt = preempt,
            None => kernel.switch(&part.text).map_err(|error| Error::new(error.to_string()))?,
        }
        kernel.name = format!("{}+{}", kernel.name, part.text);
    }
    Ok(kernel)
}

#[cfg(test)]
mod tests;
