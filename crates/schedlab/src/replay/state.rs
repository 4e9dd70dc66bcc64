//! In which of many states the kernel was when the recording began.
//!
//! A recording is one run from one state of the kernel that no event shows: the phase of its ticks and of the balancing
//! of each domain, and since when each CPU was idle. In a replay a seed stands for that state. If the outcome depends
//! on it, the mean over states differs from any one run, including the recorded one. So beside the mean the state is
//! shown that fits the recording best. It is chosen by the same counts by which it is judged; that is why it is never
//! shown alone.

use serde::Serialize;

use super::trial::Trial;
use super::{Fidelity, Form, Home};
use crate::error::Error;
use crate::experiment::nth_seed;

/// Seeds of states are those of the replays whose figures are printed, and so many more.
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
    /// The seed that stands for it.
    pub seed: u64,
    /// How the recording comes back in it.
    pub fidelity: Fidelity,
    /// How far the second half is off, in units of what it may be, in the state that suits the first half best.
    pub foretold: f64,
    /// In which part of all states the second half is within its goals.
    pub blindly: f64,
}

impl Home<'_> {
    /// The state in which the counts come nearest to the recorded ones.
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
    /// The state in words, and what falls outside the goals in it too.
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
