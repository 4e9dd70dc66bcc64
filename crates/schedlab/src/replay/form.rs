//! What no event of a recording shows, fitted to its counts.
//!
//! Some of what decides where tasks go leaves no trace in the events: how late idle CPUs hear of work, what the
//! kernel holds a pass of newly idle balancing to cost, whether a waker waits and what it says of its plans. These things are few, have a meaning, and take few values each.
//! A recording is replayed on its own machine in one form after the other, and the one is kept whose
//! counts come nearest. The seeds that choose are not those whose figures are printed.

use std::fmt;

use schedlab_replay::{Learned, Wakers};
use schedlab_sched::Kernel;
use schedlab_topology::Topology;
use schedlab_units::Duration;
use serde::Serialize;

use super::{Fidelity, Recorded};
use crate::error::Error;

/// One form of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Form {
    /// What wakers do that come before their wakee sleeps; of the programs.
    pub wakers: Wakers,
    /// When idle CPUs hear of work; of the recorded machine.
    pub hears: Hears,
    /// What the kernel holds a pass of newly idle balancing to cost when the recording begins, us; of the recorded machine.
    pub newidle_us: u64,
}

/// When an idle CPU of the recorded machine hears of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hears {
    /// Of each wake-up as late as in the recording.
    Each,
    /// Of all in the time that half of them took.
    Median,
    /// Of all in the time that a tenth of them took.
    Quick,
    /// At once.
    AtOnce,
}

/// Seeds that choose are those of the replays whose figures are printed, and so many more.
const CHOOSING: u64 = 1 << 32;

/// Replays of each form tried.
const RUNS: u32 = 2;

/// A form whose counts are all off by less than this part of what they may be is near enough.
const NEAR: f64 = 0.5;

impl Hears {
    /// How late it is where nothing is known of the very wake-up.
    pub(super) fn latency(self, learned: &Learned) -> Duration {
        match self {
            Hears::Each | Hears::Quick => learned.idle_wakeup.unwrap_or_default(),
            Hears::Median => learned.idle_wakeup_median.unwrap_or_default(),
            Hears::AtOnce => Duration::ZERO,
        }
    }
}

impl Form {
    /// What is taken if nothing is fitted.
    pub const USUAL: Form = Form { wakers: Wakers::Wait, hears: Hears::Each, newidle_us: 0 };

    /// The forms that differ from this one in one thing, each thing in turn.
    fn others(self) -> [Vec<Form>; 3] {
        let wakers = [Wakers::Wait, Wakers::Owe, Wakers::OweSync].map(|wakers| Form { wakers, ..self });
        let newidle = [0, 500, 1000, 2000, 5000].map(|newidle_us| Form { newidle_us, ..self });
        let hears =
            [Hears::Each, Hears::Median, Hears::Quick, Hears::AtOnce].map(|hears| Form { hears, ..self });
        [wakers.to_vec(), newidle.to_vec(), hears.to_vec()]
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.hears {
            Hears::Each => "each wake-up heard of as late as recorded",
            Hears::Median => "all wake-ups heard of in the median time",
            Hears::Quick => "all wake-ups heard of in the time of the quickest tenth",
            Hears::AtOnce => "wake-ups heard of at once",
        })?;
        if self.newidle_us > 0 {
            write!(f, ", newly idle balancing held to cost {} us", self.newidle_us)?;
        }
        f.write_str(match self.wakers {
            Wakers::Wait => "",
            Wakers::Owe => ", wakers that come first go on and owe the wake-up",
            Wakers::OweSync => {
                ", wakers that come first go on and owe the wake-up, and wake as if they would sleep"
            }
        })
    }
}

impl Recorded {
    /// The form whose counts come nearest to the recorded ones on the recording's own machine. Of those that are
    /// equally near the first is taken, and the usual one if it is near enough.
    ///
    /// # Errors
    /// A replay that cannot be made.
    pub fn fit(
        &self,
        topology: &Topology,
        kernel: &Kernel,
        seed: u64,
        threads: usize,
    ) -> Result<Form, Error> {
        let mut tried: Vec<(Form, f64)> = Vec::new();
        let mut try_form = |form: Form| -> Result<f64, Error> {
            if let Some((_, misfit)) = tried.iter().find(|(known, _)| *known == form) {
                return Ok(*misfit);
            }
            let seed = seed.wrapping_add(CHOOSING);
            let misfit = self.fidelity(topology, form, kernel, seed, RUNS, threads, |_, _| {})?.misfit();
            tried.push((form, misfit));
            Ok(misfit)
        };
        let mut best = (Form::USUAL, try_form(Form::USUAL)?);
        loop {
            let before = best.0;
            for thing in 0..before.others().len() {
                for form in best.0.others()[thing].clone() {
                    if best.1 <= NEAR {
                        return Ok(best.0);
                    }
                    let misfit = try_form(form)?;
                    if misfit < best.1 {
                        best = (form, misfit);
                    }
                }
            }
            if best.0 == before {
                return Ok(best.0);
            }
        }
    }
}

impl Fidelity {
    /// How far the figure that is farthest off is from its recorded value; up to 1 is within the goals.
    pub fn misfit(&self) -> f64 {
        self.counts.iter().chain(&self.busy).map(|line| line.strays).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_differs_from_its_neighbours_in_one_thing() {
        let form = Form { wakers: Wakers::OweSync, hears: Hears::Median, newidle_us: 1000 };
        let [wakers, newidle, hears] = form.others();
        assert!(wakers.len() == 3 && wakers.contains(&form));
        assert!(newidle.iter().all(|other| other.hears == form.hears) && newidle.contains(&form));
        assert!(hears.iter().all(|other| other.newidle_us == form.newidle_us) && hears.contains(&form));
        assert_eq!(
            form.to_string(),
            "all wake-ups heard of in the median time, newly idle balancing held to cost 1000 us, \
             wakers that come first go on and owe the wake-up, and wake as if they would sleep"
        );
    }

    #[test]
    fn what_is_farthest_off_in_units_of_its_goal_is_the_misfit() {
        let strays = |off: f64, strays: f64| crate::replay::Line {
            what: String::new(),
            recorded: 100.0,
            replayed: 100.0 * (1.0 + off),
            spread: (0.0, 0.0),
            off,
            strays,
            within: strays <= 1.0,
        };
        let fidelity = Fidelity {
            machine: String::new(),
            nr_cpus: 1,
            kernel: String::new(),
            form: Form::USUAL,
            runs: 1,
            counts: vec![strays(0.05, 0.5), strays(-0.2, 2.0)],
            busy: vec![strays(0.05, 2.5)],
            others: vec![strays(9.0, 90.0)],
        };
        assert_eq!(fidelity.misfit(), 2.5);
    }
}
