//! Wakee flips that began before the recording.
//!
//! A task is born with the flips of its parent, so one number that no event shows, how
//! often the ancestor had changed its wakee by the start, is part of the flips of all its
//! descendants; and when the ancestor's flips were halved last says when theirs will be.
//! Both are carried as a small family of guesses. Each wake-up whose outcome depends on
//! them speaks for some guesses and against others, and those that were contradicted most
//! are no longer asked.

use schedlab_sched::Wakees;
use schedlab_units::{Duration, TaskId};

/// Guesses of the flips at the start: 0 to 63, one bit each.
const BASES: usize = u64::BITS as usize;

/// Guesses of the next halving: at the first wake-up, or so many quarters of a second after
/// the start.
const HALVINGS: usize = 5;

/// Contradictions that a guess may have more than the best one: the shadow errs as well.
const TOLERANCE: u32 = 2;

/// Contradictions that a guess may have more than the best one to be looked at ever again.
const PATIENCE: u32 = 100;

/// Something for each guess.
type ByGuess<T> = [[T; BASES]; HALVINGS];

/// What a task had inherited when it was born, as far as wake-ups told since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inherited {
    /// Changes of the wakee.
    pub flips: u32,
    /// How long before its birth they were halved last.
    pub halved: Duration,
}

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
    /// How much the live guesses of each halving are asked together.
    asked: [u32; HALVINGS],
    /// Guesses that may still turn out right.
    live: [u64; HALVINGS],
    /// The guess that was contradicted least.
    best: (usize, usize),
}

impl Guesses {
    /// Nothing is known; the recording starts at this jiffy.
    pub fn new(hz: u64, start: u64) -> Guesses {
        Guesses {
            hz,
            start,
            contradicted: [[0; BASES]; HALVINGS],
            weights: [[1; BASES]; HALVINGS],
            asked: [BASES as u32; HALVINGS],
            live: [u64::MAX; HALVINGS],
            best: (0, 0),
        }
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
        let mut spread = [0u64; HALVINGS];
        let (mut yes, mut no) = (0, 0);
        for (halving, wide) in spread.iter_mut().enumerate() {
            let live = self.live[halving];
            if live == 0 {
                continue;
            }
            let halved =
                |base: usize| (waker.counts[halving][base] >> halves[halving]).saturating_add(change);
            let counts = |base: usize| (halved(base), wakee.counts[halving][base]);
            let all = self.asked[halving];
            let asked;
            (*wide, asked) = match same_for_all(counts, live, factor) {
                Some(none @ 0) => (none, 0),
                Some(every) => (every, all),
                None => {
                    let (wide, asked) = each(counts, factor, &self.weights[halving]);
                    (wide & live, asked)
                }
            };
            yes += asked;
            no += all - asked;
        }
        let tells = spread.iter().any(|&wide| wide != 0) && spread != self.live;
        Spread { wide: yes > no, open: yes > 0 && no > 0, tells, by_guess: spread }
    }

    /// The kernel spread (or did not): counts against the guesses that say otherwise.
    pub fn learn(&mut self, spread: &Spread, wide: bool) {
        for (halving, contradicted) in self.contradicted.iter_mut().enumerate() {
            let wrong = if wide { !spread.by_guess[halving] } else { spread.by_guess[halving] };
            bits(self.live[halving] & wrong).for_each(|base| contradicted[base] += 1);
        }
        // Of those that are live alone: others are no longer counted against, so they may have the least.
        let counts = self.contradicted;
        let least_of: [u32; HALVINGS] = std::array::from_fn(|halving| {
            bits(self.live[halving]).map(|base| counts[halving][base]).min().unwrap_or(u32::MAX)
        });
        let least = least_of.into_iter().fold(u32::MAX, u32::min);
        for (halving, live) in self.live.iter_mut().enumerate() {
            bits(*live)
                .filter(|&base| counts[halving][base] > least + PATIENCE)
                .for_each(|base| *live &= !(1 << base));
            for (base, asked) in self.weights[halving].iter_mut().enumerate() {
                *asked = if *live >> base & 1 == 1 { weight(counts[halving][base] - least) } else { 0 };
            }
        }
        let halving = least_of.iter().position(|&count| count == least).unwrap_or_default();
        let first = bits(self.live[halving]).find(|&base| counts[halving][base] == least);
        self.best = (halving, first.unwrap_or_default());
        for (halving, asked) in self.asked.iter_mut().enumerate() {
            *asked = bits(self.live[halving]).map(|base| u32::from(self.weights[halving][base])).sum();
        }
    }

    /// What a task that was born at a jiffy with these flips inherited.
    pub fn inherited(&self, flips: &Flips, jiffies: u64) -> Inherited {
        let Wakees { flips, flip_decay, .. } = self.likeliest(flips);
        Inherited { flips, halved: Duration((jiffies - flip_decay) * (1_000_000_000 / self.hz)) }
    }

    /// The likeliest flips of a task, for its state in the scheduler.
    pub fn likeliest(&self, flips: &Flips) -> Wakees {
        let (halving, base) = self.best;
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
    /// Guesses by which it spreads.
    by_guess: [u64; HALVINGS],
}

/// How much a guess is asked that has so many contradictions more than the best one.
fn weight(against: u32) -> u8 {
    // Without a shift by it, so that many are found at once.
    (0..=TOLERANCE).map(|few| if against == few { 1 << (2 * (TOLERANCE - few)) } else { 0 }).sum()
}

/// The live guesses of one halving under which a wake-up spreads, if it is all or none of them. Flips
/// grow with the guess, whatever is added to them and however often they are halved, so those
/// of the first and the last live guess are bounds.
#[inline]
fn same_for_all(counts: impl Fn(usize) -> (u16, u16), live: u64, factor: u32) -> Option<u64> {
    let both = |base: u32| {
        let (a, b) = counts(base as usize);
        (u64::from(a.min(b)), u64::from(a.max(b)))
    };
    let (less, more) = both(live.trailing_zeros());
    let (less_last, more_last) = both(u64::BITS - 1 - live.leading_zeros());
    let factor = u64::from(factor);
    if less_last < factor || more_last < less * factor {
        return Some(0);
    }
    (less >= factor && more >= less_last * factor).then_some(live)
}

/// The guesses of one halving under which a wake-up spreads, live or not, and how much they are
/// asked together. Those that are not live are not asked.
#[inline]
fn each(counts: impl Fn(usize) -> (u16, u16), factor: u32, weights: &[u8; BASES]) -> (u64, u32) {
    let mut wide = [0u8; BASES];
    let mut asked = 0;
    // Flips have 16 bits, and so have products that they can reach: eight are compared at once.
    let Ok(factor) = u16::try_from(factor) else { return (0, 0) };
    let fits = u16::MAX.checked_div(factor).unwrap_or(u16::MAX);
    for ((base, wide), &weight) in wide.iter_mut().enumerate().zip(weights) {
        let (a, b) = counts(base);
        let (less, more) = (a.min(b), a.max(b));
        let spreads = (less >= factor) & (less <= fits) & (more >= less.wrapping_mul(factor));
        *wide = u8::from(spreads);
        asked += u16::from(*wide) * u16::from(weight);
    }
    // Eight bytes of 0 or 1 at a time: each is moved to its place in the highest byte.
    let (eights, _) = wide.as_chunks::<8>();
    let bits =
        eights.iter().map(|&eight| u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080) >> 56);
    (bits.enumerate().map(|(place, bits)| bits << (8 * place)).sum(), asked.into())
}

/// The places of the bits that are set.
fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lowest < u64::BITS).then_some(lowest as usize)
    })
}

#[cfg(test)]
mod tests {
    use schedlab_sched::wakeup::flips_spread;

    use super::*;

    #[test]
    fn the_bounds_say_what_all_guesses_say() {
        for (wakee, step) in (0..40).flat_map(|wakee| [1, 4, 16].map(|step| (wakee, step))) {
            let counts = |base: usize| (20 + base as u16 / 4, wakee + base as u16 / step);
            for (live, factor) in
                [(u64::MAX, 1), (u64::MAX, 4), (0xf0, 2), (u64::MAX, 3000), (u64::MAX, 1 << 20), (1 << 63, 4)]
            {
                let spreads = |(a, b): (u16, u16)| flips_spread(a.into(), b.into(), factor);
                let wide: Vec<usize> = (0..BASES).filter(|&base| spreads(counts(base))).collect();
                let (found, asked) = each(counts, factor, &[2; BASES]);
                assert_eq!(asked as usize, 2 * wide.len());
                assert_eq!(bits(found).collect::<Vec<_>>(), wide, "{wakee} {step} {factor}");
                let same = same_for_all(counts, live, factor);
                assert!(same.is_none_or(|same| same == found & live), "{wakee} {step} {live:x} {factor}");
                assert!(same.is_some() || live != 1 << 63, "one guess leaves nothing open");
            }
        }
    }

    /// What is learned of one waker may be wrong of another, and a guess that was given up
    /// does not come back because all others are contradicted as often later.
    #[test]
    fn a_guess_that_was_given_up_stays_so_whatever_comes() {
        let mut guesses = Guesses::new(250, 1000);
        let told =
            |by_guess: u64| Spread { wide: true, open: true, tells: true, by_guess: [by_guess; HALVINGS] };
        for _ in 0..=PATIENCE {
            guesses.learn(&told(!0xff), true);
        }
        assert_eq!(guesses.live[0], !0xff);
        for _ in 0..3 * PATIENCE {
            guesses.learn(&told(u64::MAX), false);
        }
        let (waker, wakee) = (guesses.ancestor(), guesses.ancestor());
        assert_eq!(guesses.live[0], !0xff);
        assert!(guesses.best.1 >= 8 && guesses.weights[0][..8] == [0; 8]);
        let spread = guesses.spread(&waker, TaskId(1), &wakee, 4, 1000);
        assert!(!spread.by_guess.iter().any(|&wide| wide & 0xff != 0), "{spread:?}");
    }

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
        let Inherited { flips, halved } = guesses.inherited(&client, 1010);
        assert_eq!(flips, 4, "the first that lets it spread over the four");
        assert_eq!(halved, Duration::millis(4040), "never seen, so before jiffy 0");
    }
}
