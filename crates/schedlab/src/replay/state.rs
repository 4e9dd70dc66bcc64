//! Which of many states the kernel was in when the recording began.
//!
//! A recording is one run from one state of the kernel that no event shows: the phase of its ticks and of the balancing
//! of each domain, and since when each CPU was idle. In a replay a seed represents that state. If the outcome depends
//! on it, the mean over states differs from any single run, including the recorded one. So the best-fitting state is
//! shown beside the mean. It is chosen by the same counts by which it is judged, so it is never shown alone.

use serde::Serialize;

use super::trial::Trial;
use super::{Fidelity, Form, Home};
use crate::error::Error;
use crate::experiment::nth_seed;

/// Offset of the seeds of states from those of the replays whose figures are printed.
const STATES: u64 = 2 << 32;

/// States tried.
const TRIED: u64 = 32;

/// The state that suits a recording best.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct State {
    /// Its number, from 1.
    pub number: u64,
    /// How many were tried.
    pub tried: u64,
    /// Its seed.
    pub seed: u64,
    /// The fidelity in this state.
    pub fidelity: Fidelity,
    /// The deviation of the second half, in units of the allowed one, in the state that suits the first half
    /// best.
    pub foretold: f64,
    /// The share of states in which the second half is within its goals.
    pub blindly: f64,
}

impl Home<'_> {
    /// The state with the counts closest to the recorded ones.
    ///
    /// # Errors
    /// A replay that cannot be made.
    pub fn state(&self, form: Form) -> Result<State, Error> {
        let trial = Trial::new(self, form)?;
        let first = nth_seed(self.seed, STATES);
        let replays = trial.runs((0..TRIED).map(|nth| nth_seed(first, nth)), || ())?;
        let one = |replay| self.compare(form, std::slice::from_ref(replay));
        let states: Vec<Fidelity> = replays.iter().map(one).collect();
        let halves = || states.iter().map(Fidelity::halves);
        let [_, foretold] = halves().min_by(|a, b| a[0].total_cmp(&b[0])).expect("there are states");
        let blindly = halves().filter(|[_, second]| *second <= 1.0).count() as f64 / states.len() as f64;
        let numbered = states.into_iter().zip(1..);
        let nearest = numbered.min_by(|(a, _), (b, _)| a.misfit().total_cmp(&b.misfit()));
        let (fidelity, number) = nearest.expect("there are states");
        Ok(State { number, tried: TRIED, seed: nth_seed(first, number - 1), fidelity, foretold, blindly })
    }
}

impl State {
    /// The state in words, and the figures outside the goals in it.
    pub fn text(&self) -> String {
        let mut text = format!(
            "state     what the kernel did before the recording is in no event; of {} states tried number {} suits best: {}\n",
            self.tried,
            self.number,
            self.fidelity.goals()
        );
        let outside = self.fidelity.outside();
        if !outside.is_empty() {
            text += &format!("outside   in this state: {}\n", self.fidelity.outside_text());
        }
        text
    }
}
