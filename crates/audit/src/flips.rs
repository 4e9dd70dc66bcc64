//! Wakee flips that began before the recording.
//!
//! A task is born with the flips of its parent, so one number that no event shows, how
//! often the ancestor had changed its wakee by the start, is part of the flips of all its
//! descendants; and when the ancestor's flips were halved last says when theirs will be.
//! Both are carried as a small family of guesses. Each wake-up whose outcome depends on
//! them speaks for some guesses and against others, and those that were contradicted most
//! are no longer asked.

use schedlab_sched::Wakees;
use schedlab_sched::wakeup::flips_spread;
use schedlab_units::TaskId;

/// Guesses of the flips at the start: 0 to 63.
const BASES: usize = 64;

/// Guesses of the next halving: at the first wake-up, or so many quarters of a second after
/// the start.
const HALVINGS: usize = 5;

/// Contradictions that a guess may have more than the best one: the shadow errs as well.
const TOLERANCE: u32 = 2;

/// Something for each guess.
type ByGuess<T> = [[T; BASES]; HALVINGS];

/// One task's flips under each guess.
#[derive(Clone, Debug)]
pub struct Flips {
    counts: ByGuess<u16>,
    decay: [u64; HALVINGS],
    last: Option<TaskId>,
}

/// The guesses and what spoke against them.
#[derive(Clone, Debug)]
pub struct Guesses {
    hz: u64,
    start: u64,
    contradicted: ByGuess<u32>,
    /// How much each guess is asked: not at all if it was contradicted too often.
    weights: ByGuess<u8>,
}

impl Guesses {
    /// Nothing is known; the recording starts at this jiffy.
    pub fn new(hz: u64, start: u64) -> Guesses {
        Guesses { hz, start, contradicted: [[0; BASES]; HALVINGS], weights: [[1; BASES]; HALVINGS] }
    }

    /// The flips of a task that lived before.
    pub fn ancestor(&self) -> Flips {
        let counts = std::array::from_fn(|_| std::array::from_fn(|base| base as u16));
        let decay = std::array::from_fn(|halving| match halving as u64 {
            0 => 0,
            quarters => (self.start + quarters * self.hz / 4).saturating_sub(self.hz),
        });
        Flips { counts, decay, last: None }
    }

    /// A task wakes another.
    pub fn record(&self, flips: &mut Flips, wakee: TaskId, jiffies: u64) {
        let changes = flips.last != Some(wakee);
        for (counts, decay) in flips.counts.iter_mut().zip(&mut flips.decay) {
            if jiffies > *decay + self.hz {
                *decay = jiffies;
                counts.iter_mut().for_each(|count| *count >>= 1);
            }
            if changes {
                counts.iter_mut().for_each(|count| *count = count.saturating_add(1));
            }
        }
        flips.last = Some(wakee);
    }

    /// Whether a wake-up spreads under the guesses that are still asked: likeliest answer,
    /// and whether all of them give it.
    pub fn spread(
        &self,
        waker: &Flips,
        wakee_id: TaskId,
        wakee: &Flips,
        factor: u32,
        jiffies: u64,
    ) -> Spread {
        // As if the wake-up had been recorded already.
        let change = u16::from(waker.last != Some(wakee_id));
        let halves = waker.decay.map(|decay| u32::from(jiffies > decay + self.hz));
        let mut spread: ByGuess<bool> = [[false; BASES]; HALVINGS];
        let (mut yes, mut no, mut wides) = (0, 0, 0);
        for (halving, wide) in spread.iter_mut().enumerate() {
            let (a, b) = (&waker.counts[halving], &wakee.counts[halving]);
            let weights = &self.weights[halving];
            for base in 0..BASES {
                let a = (a[base] >> halves[halving]).saturating_add(change);
                wide[base] = flips_spread(a.into(), b[base].into(), factor);
                let weight = u32::from(weights[base]);
                yes += weight * u32::from(wide[base]);
                no += weight * u32::from(!wide[base]);
                wides += usize::from(wide[base]);
            }
        }
        let tells = wides > 0 && wides < BASES * HALVINGS;
        Spread { wide: yes > no, open: yes > 0 && no > 0, tells, by_guess: spread }
    }

    /// The kernel spread (or did not): counts against the guesses that say otherwise.
    pub fn learn(&mut self, spread: &Spread, wide: bool) {
        for (contradicted, by_guess) in self.contradicted.iter_mut().zip(&spread.by_guess) {
            for (contradicted, &guess) in contradicted.iter_mut().zip(by_guess) {
                *contradicted += u32::from(guess != wide);
            }
        }
        let least = self.contradicted.iter().flatten().copied().min().unwrap_or(0);
        let weight = |contradicted: u32| match contradicted - least {
            against @ 0..=TOLERANCE => 1 << (2 * (TOLERANCE - against)),
            _ => 0,
        };
        self.weights = self.contradicted.map(|by_base| by_base.map(weight));
    }

    /// The likeliest flips of a task, for its state in the scheduler.
    pub fn likeliest(&self, flips: &Flips) -> Wakees {
        let best = (0..HALVINGS * BASES)
            .min_by_key(|&guess| self.contradicted[guess / BASES][guess % BASES])
            .unwrap_or(0);
        let (halving, base) = (best / BASES, best % BASES);
        Wakees {
            flips: flips.counts[halving][base].into(),
            flip_decay: flips.decay[halving],
            last: flips.last,
        }
    }
}

/// Whether a wake-up spreads.
#[derive(Clone, Debug)]
pub struct Spread {
    /// The likeliest answer.
    pub wide: bool,
    /// Guesses that are still asked give both answers.
    pub open: bool,
    /// Some guess gives another answer than others, so that the outcome may tell them apart.
    pub tells: bool,
    by_guess: ByGuess<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_that_are_contradicted_are_no_longer_asked() {
        let mut guesses = Guesses::new(250, 1000);
        let (mut server, client) = (guesses.ancestor(), guesses.ancestor());
        for wakee in 1..=30 {
            guesses.record(&mut server, TaskId(wakee), 1001);
        }
        let ask = |guesses: &Guesses| guesses.spread(&server, TaskId(1), &client, 4, 1002);
        assert!(ask(&guesses).open, "30 flips spread over 4 of the client, not over 8 or 0");
        for _ in 0..=TOLERANCE {
            let spread = ask(&guesses);
            guesses.learn(&spread, true);
        }
        let spread = ask(&guesses);
        assert!(spread.wide && !spread.open);
    }
}
