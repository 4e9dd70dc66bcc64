//! Wakee flips from before the recording.
//!
//! A new task inherits the flips of its parent. So one hidden number, the ancestor's flips at the start of the
//! recording, is part of the flips of all its descendants; and the time of the ancestor's last halving determines
//! theirs. Both are represented as a small family of guesses. Each wake-up whose outcome depends on them supports some
//! guesses and contradicts others, and the guesses that were contradicted most are no longer used. The time of the
//! first halving shows only in what follows it: if the best guesses expect it later and are contradicted, and a
//! halving at just that moment would explain the wake-up, that moment becomes a guess.

use schedlab_sched::Wakees;
use schedlab_units::{Duration, TaskId};

/// Guesses of the flips at the start: 0 to 63, one bit each.
const BASES: usize = u64::BITS as usize;

/// Guesses of the next halving: at the first wake-up, or some quarters of a second after the start. The ones in between
/// are replaced by what wake-ups show.
const HALVINGS: usize = 5;

/// The guess with the latest halving.
const LATEST: usize = HALVINGS - 1;

/// How many more contradictions than the best guess a guess may have and still be used: the shadow makes errors too.
const TOLERANCE: usize = 2;

/// How many more contradictions than the best guess a guess may have before it is dropped for good.
const PATIENCE: u32 = 100;

/// A task's flips under each guess of the flips at the start. All are halved and grow together, so each is `least +
/// ((guess + part) >> shift)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    least: u32,
    /// Invariant: less than `1 << shift`.
    part: u16,
    /// Invariant: at most [`SHIFT_MAX`].
    shift: u16,
}

/// After this many halvings at most two neighbouring values remain, and further halvings keep or merge them.
const SHIFT_MAX: u16 = 7;

impl Counts {
    const START: Counts = Counts { least: 0, part: 0, shift: 0 };

    fn at(self, base: usize) -> u32 {
        self.least + ((base as u32 + u32::from(self.part)) >> self.shift)
    }

    fn halve(&mut self) {
        let odd = (self.least & 1) as u16;
        self.least >>= 1;
        if self.shift < SHIFT_MAX {
            self.part += odd << self.shift;
            self.shift += 1;
        } else if odd == 0 {
            self.part = 0;
        }
    }

    /// The flips after a wake-up.
    fn recorded(mut self, changes: bool, halves: bool) -> Counts {
        if halves {
            self.halve();
        }
        self.least += u32::from(changes);
        self
    }

    /// The first guess that adds `added` to the least.
    fn adding(self, added: u32) -> usize {
        (u64::from(added) << self.shift).saturating_sub(u64::from(self.part)) as usize
    }

    /// The first guess whose flips reach `flips`.
    fn reaches(self, flips: u32) -> usize {
        self.adding(flips.saturating_sub(self.least))
    }
}

/// What a task had inherited at birth, as far as later wake-ups show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inherited {
    /// Number of changes of the wakee.
    pub flips: u32,
    /// How long before its birth they were last halved.
    pub halved: Duration,
}

/// One task's flips under each guess.
#[derive(Clone, Copy, Debug)]
pub struct Flips {
    counts: [Counts; HALVINGS],
    decay: [u64; HALVINGS],
    last: Option<TaskId>,
}

/// How often the guesses that share one halving time were contradicted.
#[derive(Clone, Debug)]
struct Record {
    contradicted: [u32; BASES],
    /// Guesses that may still be right.
    live: u64,
    /// Those of them with this many more contradictions than the best one.
    asked: [u64; TOLERANCE + 1],
    /// All guesses that are used.
    any: u64,
    /// Total weight of the guesses below each guess; the last entry is the weight of all.
    below: [u32; BASES + 1],
}

impl Record {
    const NEW: Record = {
        let mut asked = [0; TOLERANCE + 1];
        asked[0] = u64::MAX;
        let mut record =
            Record { contradicted: [0; BASES], live: u64::MAX, asked, any: 0, below: [0; BASES + 1] };
        record.sum_up();
        record
    };

    /// Total weight of these guesses; a guess that was contradicted too often has none. The guesses are usually
    /// adjacent.
    fn weight(&self, mut guesses: u64) -> u32 {
        let mut sum = 0;
        while guesses != 0 {
            let first = guesses.trailing_zeros() as usize;
            let end = first + (!(guesses >> first)).trailing_zeros() as usize;
            sum += self.below[end.min(BASES)] - self.below[first];
            guesses &= !below(end);
        }
        sum
    }

    const fn sum_up(&mut self) {
        self.any = 0;
        let mut rank = 0;
        while rank <= TOLERANCE {
            self.any |= self.asked[rank];
            rank += 1;
        }
        let mut base = 0;
        while base < BASES {
            self.below[base + 1] = self.below[base];
            let mut rank = 0;
            while rank <= TOLERANCE {
                let asked = (self.asked[rank] >> base) as u32 & 1;
                self.below[base + 1] += asked << (2 * (TOLERANCE - rank));
                rank += 1;
            }
            base += 1;
        }
    }
}

/// The guesses and the evidence against them.
#[derive(Clone, Debug)]
pub struct Guesses {
    hz: u64,
    /// For each halving guess, when flips from before the recording were last halved; 0 if long ago.
    halved: [u64; HALVINGS],
    by_halving: [Record; HALVINGS],
    /// Number of contradictions of the best guess.
    least: u32,
}

impl Guesses {
    /// Creates guesses when nothing is known yet; the recording starts at jiffy `start`.
    pub fn new(hz: u64, start: u64) -> Guesses {
        let halved = std::array::from_fn(|halving| match halving as u64 {
            0 => 0,
            quarters => (start + quarters * hz / 4).saturating_sub(hz),
        });
        Guesses { hz, halved, by_halving: [Record::NEW; HALVINGS], least: 0 }
    }

    /// The flips of a task that existed before the recording.
    pub fn ancestor(&self) -> Flips {
        Flips { counts: [Counts::START; HALVINGS], decay: self.halved, last: None }
    }

    /// A task wakes another.
    pub fn record(&self, flips: &mut Flips, wakee: TaskId, jiffies: u64) {
        let changes = flips.last != Some(wakee);
        for (counts, decay) in flips.counts.iter_mut().zip(&mut flips.decay) {
            let halves = jiffies > *decay + self.hz;
            *counts = counts.recorded(changes, halves);
            *decay = if halves { jiffies } else { *decay };
        }
        flips.last = Some(wakee);
    }

    /// Whether a wake-up spreads, according to the guesses still in use: the likeliest answer, and whether all of them
    /// agree.
    pub fn spread(
        &self,
        waker: &Flips,
        wakee_id: TaskId,
        wakee: &Flips,
        factor: u32,
        jiffies: u64,
    ) -> Spread {
        let changes = waker.last != Some(wakee_id);
        let mut by_guess = [0u64; HALVINGS];
        // Weight of the guesses by which it spreads and of the others; then masks of all live guesses.
        let (mut some, mut others, mut spreads, mut stays) = (0, 0, 0, 0);
        let mut before = None;
        for (halving, (record, wide)) in self.by_halving.iter().zip(&mut by_guess).enumerate() {
            if record.live == 0 {
                continue;
            }
            // Until the first halving all halving guesses give the same flips.
            let halves = jiffies > waker.decay[halving] + self.hz;
            let asked = (waker.counts[halving], wakee.counts[halving], halves);
            let all = match before {
                Some((same, all)) if same == asked => all,
                _ => {
                    // Evaluated as if the wake-up had been recorded already.
                    spreading(asked.0.recorded(changes, halves), asked.1, u64::MAX, factor)
                }
            };
            before = Some((asked, all));
            *wide = all & record.live;
            some |= *wide & record.any;
            others |= !*wide & record.any;
            spreads |= *wide;
            stays |= *wide ^ record.live;
        }
        let (some, others, tells) = (some != 0, others != 0, spreads != 0 && stays != 0);
        let open = some && others;
        let wide = if open { self.mostly(&by_guess) } else { some };
        let now = Now { waker: waker.counts[LATEST], changes, wakee: wakee.counts[LATEST], factor, jiffies };
        Spread { wide, open, tells, by_guess, now }
    }

    /// Whether the guesses by which it spreads outweigh the others.
    fn mostly(&self, by_guess: &[u64; HALVINGS]) -> bool {
        let (mut yes, mut all) = (0, 0);
        for (record, wide) in self.by_halving.iter().zip(by_guess) {
            yes += record.weight(*wide);
            all += record.below[BASES];
        }
        2 * yes > all
    }

    /// Learns whether the kernel spread: counts against the guesses that predict otherwise. Returns a halving guess
    /// that was replaced; the caller must then update the flips of each task.
    #[must_use]
    pub fn learn(&mut self, spread: &Spread, wide: bool) -> Option<Halving> {
        let best = self.by_halving[LATEST].asked[0];
        self.count(spread, wide);
        let now = &spread.now;
        let contradicts = best != 0 && best & !against(spread.by_guess[LATEST], wide) == 0;
        if !contradicts || now.jiffies > self.halved[LATEST] + self.hz {
            return None;
        }
        let record = &self.by_halving[LATEST];
        let mut waker = now.waker;
        waker.halve();
        waker.least += u32::from(now.changes);
        let by_guess = spreading(waker, now.wakee, record.live, now.factor);
        let right = best & record.live & !against(by_guess, wide);
        if right == 0 {
            return None;
        }
        let mut record = record.clone();
        for base in bits(right) {
            record.contradicted[base] -= 1;
        }
        let halving = self.least_of_use(now.jiffies);
        self.by_halving[halving] = record;
        self.halved[halving] = now.jiffies.saturating_sub(1 + self.hz);
        self.rank();
        Some(Halving(halving))
    }

    /// The halving guess to be replaced: one that still lies ahead, since the latest guess gives the same result as
    /// those, or the one that was contradicted most.
    fn least_of_use(&self, jiffies: u64) -> usize {
        let use_of = |&halving: &usize| {
            let record = &self.by_halving[halving];
            let comes = jiffies <= self.halved[halving] + self.hz;
            let least = bits(record.live).map(|base| record.contradicted[base]).min();
            (!comes, std::cmp::Reverse(least.unwrap_or(u32::MAX)))
        };
        (0..LATEST).min_by_key(use_of).expect("there are several")
    }

    /// Updates a task's flips after a halving guess was replaced.
    pub fn adopt(&self, flips: &mut Flips, Halving(halving): Halving) {
        let before = flips.decay[LATEST];
        flips.counts[halving] = flips.counts[LATEST];
        flips.decay[halving] = if before == self.halved[LATEST] { self.halved[halving] } else { before };
    }

    fn count(&mut self, spread: &Spread, wide: bool) {
        for (record, by_guess) in self.by_halving.iter_mut().zip(spread.by_guess) {
            let wrong = record.live & against(by_guess, wide);
            for base in bits(wrong) {
                record.contradicted[base] += 1;
                if record.contradicted[base] > self.least + PATIENCE {
                    record.live &= !(1 << base);
                }
            }
            if record.any & wrong == 0 {
                continue;
            }
            for rank in (0..=TOLERANCE).rev() {
                let fallen = record.asked[rank] & wrong;
                record.asked[rank] &= !wrong;
                if let Some(next) = record.asked.get_mut(rank + 1) {
                    *next |= fallen;
                }
            }
            record.sum_up();
        }
        if self.by_halving.iter().all(|record| record.asked[0] == 0) {
            self.rank();
        }
    }

    /// Ranks the guesses again after the best ones were contradicted. Considers only live guesses: others are no longer
    /// counted against, so they may have the fewest contradictions.
    fn rank(&mut self) {
        let live = |record: &Record| bits(record.live).map(|base| record.contradicted[base]).min();
        let Some(least) = self.by_halving.iter().filter_map(live).min() else { return };
        self.least = least;
        for record in &mut self.by_halving {
            record.asked = [0; TOLERANCE + 1];
            for base in bits(record.live) {
                let rank = (record.contradicted[base] - least) as usize;
                if let Some(asked) = record.asked.get_mut(rank) {
                    *asked |= 1 << base;
                }
            }
            record.sum_up();
        }
    }

    /// What a task that was born at a jiffy with these flips inherited.
    pub fn inherited(&self, flips: &Flips, jiffies: u64) -> Inherited {
        let Wakees { flips, flip_decay, .. } = self.likeliest(flips);
        Inherited { flips, halved: Duration((jiffies - flip_decay) * (1_000_000_000 / self.hz)) }
    }

    /// The likeliest flips of a task, for its state in the scheduler: those of the first guess with the fewest
    /// contradictions.
    pub fn likeliest(&self, flips: &Flips) -> Wakees {
        let halving = self.by_halving.iter().position(|record| record.asked[0] != 0).unwrap_or_default();
        let base = self.by_halving[halving].asked[0].trailing_zeros() % u64::BITS;
        Wakees {
            flips: flips.counts[halving].at(base as usize),
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
    /// Guesses that are still used disagree.
    pub open: bool,
    /// Some live guesses disagree, so the outcome may rule some out.
    pub tells: bool,
    /// For each halving guess, the guesses by which it spreads.
    by_guess: [u64; HALVINGS],
    now: Now,
}

/// The guesses that contradict the kernel, given those by which a wake-up spreads.
fn against(by_guess: u64, wide: bool) -> u64 {
    if wide { !by_guess } else { by_guess }
}

/// What a wake-up needs to know if the latest halving happens just now.
#[derive(Clone, Debug)]
struct Now {
    /// The waker's flips before the wake-up.
    waker: Counts,
    /// Whether the wake-up adds to the waker's flips.
    changes: bool,
    wakee: Counts,
    factor: u32,
    jiffies: u64,
}

/// A guess of when flips were halved.
#[derive(Clone, Copy, Debug)]
pub struct Halving(usize);

/// The live guesses, of which there is at least one, under which a wake-up spreads for one halving guess.
fn spreading(waker: Counts, wakee: Counts, live: u64, factor: u32) -> u64 {
    if (waker.part, waker.shift) == (wakee.part, wakee.shift) {
        return spreading_alike(waker, wakee, factor) & live;
    }
    // Flips grow with the guess, so from some guess on both sides reach the factor.
    let mut base = waker.reaches(factor).max(wakee.reaches(factor)).max(live.trailing_zeros() as usize);
    let last = live.ilog2() as usize;
    let mut wide = 0;
    while base <= last {
        let (a, b) = (waker.at(base), wakee.at(base));
        let ((lesser, less), (greater, more)) =
            if a < b { ((waker, a), (wakee, b)) } else { ((wakee, b), (waker, a)) };
        let next = if u64::from(more) >= u64::from(less) * u64::from(factor) {
            // The answer stays the same until the smaller side becomes too large.
            let next = lesser.reaches(more / factor + 1);
            wide |= below(next) & !below(base);
            next
        } else {
            // The answer stays the same until one side is large enough for the other's current value.
            greater.reaches(less.saturating_mul(factor)).min(lesser.reaches(more.saturating_mul(factor)))
        };
        base = next;
    }
    wide & live
}

/// The guesses under which a wake-up spreads if both sides were halved alike, as most are. Each guess adds the same to
/// both flips. So the addition must be large enough for the smaller side to reach the factor, and small enough for the
/// larger side to remain that many times larger.
fn spreading_alike(waker: Counts, wakee: Counts, factor: u32) -> u64 {
    let (less, more) = (waker.least.min(wakee.least), waker.least.max(wakee.least));
    let enough = waker.adding(factor.saturating_sub(less));
    if factor < 2 {
        return !below(enough);
    }
    let Some(ahead) = u64::from(more).checked_sub(u64::from(less) * u64::from(factor)) else { return 0 };
    below(waker.adding(ahead as u32 / (factor - 1) + 1)) & !below(enough)
}

/// The guesses below one.
fn below(base: usize) -> u64 {
    if base < BASES { (1 << base) - 1 } else { u64::MAX }
}

/// Positions of the bits that are set.
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

    /// The flips under each guess, evaluated one by one.
    fn each(counts: Counts) -> Vec<u32> {
        (0..BASES).map(|base| counts.at(base)).collect()
    }

    #[test]
    fn flips_of_all_guesses_are_halved_and_grow_together() {
        let mut random = 1u64;
        for _ in 0..50 {
            let mut counts = Counts::START;
            let mut by_guess: Vec<u32> = (0..BASES as u32).collect();
            for _ in 0..60 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if random >> 61 == 0 {
                    counts.halve();
                    by_guess.iter_mut().for_each(|count| *count >>= 1);
                } else {
                    counts.least += 1;
                    by_guess.iter_mut().for_each(|count| *count += 1);
                }
                assert_eq!(each(counts), by_guess, "{counts:?}");
                let next = by_guess.iter().position(|&count| count > by_guess[0]);
                assert_eq!(counts.reaches(by_guess[0] + 1).min(BASES), next.unwrap_or(BASES), "{counts:?}");
            }
        }
    }

    #[test]
    fn guesses_that_are_taken_together_spread_like_each_alone() {
        let halved = |times: u32, least: u32| {
            let mut counts = Counts { least: 23, ..Counts::START };
            (0..times).for_each(|_| counts.halve());
            Counts { least, ..counts }
        };
        for (times, least) in (0..9).flat_map(|times| (0..40).map(move |least| (times, least))) {
            for (waker, wakee) in [
                (halved(0, 20), halved(times, least)),
                (halved(times, 12), halved(3, least)),
                (halved(times, 90), halved(times, least)),
            ] {
                for (live, factor) in
                    [(u64::MAX, 1), (u64::MAX, 4), (0xf0, 2), (u64::MAX, 3000), (1 << 63, 4)]
                {
                    let spreads = |base| flips_spread(waker.at(base), wakee.at(base), factor);
                    let wide: Vec<usize> = bits(live).filter(|&base| spreads(base)).collect();
                    let found = spreading(waker, wakee, live, factor);
                    assert_eq!(
                        bits(found).collect::<Vec<_>>(),
                        wide,
                        "{waker:?} {wakee:?} {live:x} {factor}"
                    );
                }
            }
        }
    }

    /// The evidence of one waker may be wrong for another, and a dropped guess does not come back when all
    /// others are later contradicted as often.
    #[test]
    fn a_guess_that_was_given_up_stays_so_whatever_comes() {
        let mut guesses = Guesses::new(250, 1000);
        let (waker, wakee) = (Counts::START, Counts::START);
        let now = Now { waker, changes: false, wakee, factor: 4, jiffies: 2000 };
        let learn = |guesses: &mut Guesses, by_guess: u64, wide| {
            let by_guess = [by_guess; HALVINGS];
            let spread = Spread { wide: true, open: true, tells: true, by_guess, now: now.clone() };
            assert!(guesses.learn(&spread, wide).is_none(), "all were halved by jiffy 1250");
        };
        for _ in 0..=PATIENCE {
            learn(&mut guesses, !0xff, true);
        }
        assert_eq!(guesses.by_halving[0].live, !0xff);
        for _ in 0..3 * PATIENCE {
            learn(&mut guesses, u64::MAX, false);
        }
        let (waker, wakee) = (guesses.ancestor(), guesses.ancestor());
        let record = &guesses.by_halving[0];
        assert_eq!(record.live, !0xff);
        assert_eq!((record.asked[0], record.weight(0xff)), (!0xff, 0));
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
            assert!(guesses.learn(&spread, true).is_none());
        }
        let spread = ask(&guesses);
        assert!(spread.wide && !spread.open);
        let Inherited { flips, halved } = guesses.inherited(&client, 1010);
        assert_eq!(flips, 4, "the first that lets it spread over the four");
        assert_eq!(halved, Duration::millis(4040), "never seen, so before jiffy 0");
    }
    /// 30 flips plus 5 to 10 inherited ones spread until they are halved, within less than a quarter of a second.
    #[test]
    fn a_halving_that_explains_what_the_best_guesses_do_not_is_guessed() {
        let mut guesses = Guesses::new(250, 1000);
        let (mut server, mut client) = (guesses.ancestor(), guesses.ancestor());
        for wakee in 1..=30 {
            guesses.record(&mut server, TaskId(wakee), 1001);
        }
        let mut told = |jiffies, wide| {
            let spread = guesses.spread(&server, TaskId(1), &client, 4, jiffies);
            let found = guesses.learn(&spread, wide);
            for flips in [&mut server, &mut client] {
                found.iter().for_each(|halving| guesses.adopt(flips, *halving));
            }
            guesses.record(&mut server, TaskId(1), jiffies);
            (spread.wide, spread.open, found.is_some())
        };
        for _ in 0..=TOLERANCE {
            told(1002, true);
        }
        assert_eq!(told(1040, false), (true, false, true), "no guess has a halving by then");
        assert!(told(1041, false).1, "whether it was is open");
        for _ in 0..=TOLERANCE {
            told(1042, false);
        }
        assert_eq!(told(1042, false), (false, false, false));
        assert_eq!(guesses.inherited(&server, 1040).halved, Duration::ZERO);
        assert_eq!(guesses.inherited(&client, 1040).halved, Duration::millis(4 * 251));
    }
}
