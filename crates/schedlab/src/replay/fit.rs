//! Finds the form of a replay that suits a recording best.
//!
//! Many forms are replayed with few seeds, the closest of them with more, and the closest of those with still more.
//! Counts of single runs are noisy, and the best of many noisy forms is seldom the best. Starting from the usual form,
//! one property is varied at a time and the best is kept, until nothing is better. The same is repeated from a form
//! that differs from the usual one in every property.

use super::form::Has;
use super::trial::{Replayed, Trial};
use super::{Fidelity, Form, Home, Runs};
use crate::error::Error;
use crate::experiment::nth_seed;

/// Offset of the seeds used for choosing from those of the replays whose figures are printed.
const CHOOSING: u64 = 1 << 32;

/// Seeds of each form tried.
const FIRST: u64 = 3;

/// How many of the closest forms are replayed with how many seeds.
const ROUNDS: [(usize, u64); 2] = [(10, 6), (5, 12)];

/// How many of the closest forms are then replayed until their means have settled, and the number of seeds
/// per step.
const LAST: (usize, u64) = (3, 24);

/// A form is close enough if all counts are off by less than this fraction of the allowed deviation.
const NEAR: f64 = 0.5;

impl Home<'_> {
    /// The form whose counts are closest to the recorded ones on the recording's own machine. Among equally
    /// close forms the first is taken, and the usual one if it is close enough.
    ///
    /// # Errors
    /// A replay that cannot be made.
    pub fn fit(&self) -> Result<Form, Error> {
        let mut fit = Fit { home: self, seed: nth_seed(self.seed, CHOOSING), tried: Vec::new() };
        let usual = fit.candidate(Form::USUAL)?;
        if fit.is_near(usual)? {
            return Ok(Form::USUAL);
        }
        for start in [Form::USUAL, Form::UNUSUAL] {
            let start = fit.candidate(start)?;
            fit.descend(start)?;
        }
        for (count, runs) in ROUNDS {
            for candidate in fit.nearest(count) {
                fit.replay(candidate, runs)?;
            }
        }
        let (count, runs) = LAST;
        let last = fit.nearest(count);
        for &candidate in &last {
            fit.settle(candidate, runs)?;
        }
        let settled = last.iter().map(|&candidate| &fit.tried[candidate]);
        Ok(settled.min_by(|a, b| a.misfit.total_cmp(&b.misfit)).expect("some were tried").trial.form)
    }
}

/// A search for the best form.
struct Fit<'a> {
    home: &'a Home<'a>,
    seed: u64,
    tried: Vec<Candidate<'a>>,
}

/// A form that was tried.
struct Candidate<'a> {
    trial: Trial<'a>,
    replays: Vec<Replayed>,
    misfit: f64,
    /// More replays would hardly change it.
    is_settled: bool,
}

impl Candidate<'_> {
    /// Whether the replays that both have made are the same.
    fn is_like(&self, other: &Candidate) -> bool {
        self.replays.iter().zip(&other.replays).all(|(a, b)| a == b)
    }
}

impl Fit<'_> {
    /// The index of a form among those tried.
    fn candidate(&mut self, form: Form) -> Result<usize, Error> {
        if let Some(known) = self.tried.iter().position(|candidate| candidate.trial.form == form) {
            return Ok(known);
        }
        let trial = Trial::new(self.home, form)?;
        self.tried.push(Candidate { trial, replays: Vec::new(), misfit: f64::INFINITY, is_settled: false });
        self.replay(self.tried.len() - 1, FIRST)?;
        Ok(self.tried.len() - 1)
    }

    /// Replays a candidate with more seeds, up to `runs`.
    fn replay(&mut self, candidate: usize, runs: u64) -> Result<(), Error> {
        let Candidate { trial, replays, misfit, is_settled } = &mut self.tried[candidate];
        let new = replays.len() as u64..runs;
        if new.is_empty() {
            return Ok(());
        }
        replays.extend(trial.runs(new.map(|nth| nth_seed(self.seed, nth)), || ())?);
        let fidelity = self.home.compare(trial.form, replays);
        (*misfit, *is_settled) = (fidelity.misfit(), Runs::Enough.are_enough(&fidelity));
        Ok(())
    }

    /// Replays a candidate until its mean has settled, `by` seeds at a time.
    fn settle(&mut self, candidate: usize, by: u64) -> Result<(), Error> {
        let mut runs = by;
        loop {
            self.replay(candidate, runs)?;
            if self.tried[candidate].is_settled {
                return Ok(());
            }
            runs = (runs + by).min(Runs::MOST.into());
        }
    }

    /// Starting from a form, varies one property at a time and keeps improvements.
    fn descend(&mut self, from: usize) -> Result<(), Error> {
        let mut best = from;
        let has = Has::of(&self.home.recorded.learned);
        let nr_things = Form::USUAL.others(has).len();
        loop {
            let before = best;
            for thing in 0..nr_things {
                let nearest = self.nearest(1)[0];
                if self.is_near(nearest)? {
                    return Ok(());
                }
                for form in self.tried[best].trial.form.others(has).swap_remove(thing) {
                    let other = self.candidate(form)?;
                    if self.tried[other].misfit < self.tried[best].misfit {
                        best = other;
                    }
                }
            }
            if best == before {
                return Ok(());
            }
        }
    }

    /// Whether a candidate is close enough, also with more seeds.
    fn is_near(&mut self, candidate: usize) -> Result<bool, Error> {
        if self.tried[candidate].misfit <= NEAR {
            self.replay(candidate, ROUNDS[0].1)?;
        }
        Ok(self.tried[candidate].misfit <= NEAR)
    }

    /// The closest so far. Of candidates with equal replays, because their differences have no effect there, only the
    /// first.
    fn nearest(&self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.tried.len()).collect();
        order.sort_by(|&a, &b| self.tried[a].misfit.total_cmp(&self.tried[b].misfit));
        let mut nearest: Vec<usize> = Vec::new();
        for candidate in order {
            if nearest.len() == count {
                break;
            }
            if !nearest.iter().any(|&other| self.tried[candidate].is_like(&self.tried[other])) {
                nearest.push(candidate);
            }
        }
        nearest
    }
}

impl Fidelity {
    /// The deviation of the worst figure; up to 1 is within the goals.
    pub fn misfit(&self) -> f64 {
        self.counts.iter().chain(&self.busy).map(|line| line.misfit).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_farthest_off_in_units_of_its_goal_is_the_misfit() {
        let line = |off: f64, misfit: f64| crate::replay::Line {
            what: String::new(),
            recorded: 100.0,
            replayed: 100.0 * (1.0 + off),
            spread: (0.0, 0.0),
            unsure: 0.0,
            off,
            misfit,
            within: misfit <= 1.0,
        };
        let fidelity = Fidelity {
            machine: String::new(),
            nr_cpus: 1,
            kernel: String::new(),
            sched_ext: None,
            form: Form::USUAL,
            runs: 1,
            counts: vec![line(0.05, 0.5), line(-0.2, 2.0)],
            busy: vec![line(0.05, 2.5)],
            others: vec![line(9.0, 90.0)],
        };
        assert_eq!(fidelity.misfit(), 2.5);
    }
}
