//! How often a task that existed before the recording changed its wakee.

mod guesses;

use schedlab_sched::Wakeup;
use schedlab_units::{TaskId, Time};

use self::guesses::Guesses;
pub use self::guesses::{Flips, Inherited, Spread};
use super::Shadow;
use super::about::{About, Reading};
use super::beyond::{Candidate, Case, Look, Of};
use super::otherwise::Otherwise;

/// Learned from wake-ups that spread, or do not.
pub const LEARNED: Reading =
    Reading::new("LEARNED_FLIPS", "wake-ups show how often a task changed its wakee");

pub(super) const ABOUT: About = About {
    readings: &[LEARNED],
    beyond,
    ..About::new("WAKEE_FLIPS", "how often tasks changed their wakee before the recording")
};

/// The flips of the tasks that a recording shows.
#[derive(Clone, Debug)]
pub struct Family {
    /// Guesses of flips from before the recording.
    guesses: Guesses,
    /// The flips of some tasks are guessed.
    begun: bool,
    /// The flips that the first new task inherited, and the jiffy of its birth.
    first_born: Option<(Flips, u64)>,
}

impl Family {
    /// A family of which nothing is known; the recording starts at jiffy `start`.
    pub(super) fn new(hz: u64, start: u64) -> Family {
        Family { guesses: Guesses::new(hz, start), begun: false, first_born: None }
    }

    /// What the first task that was born in the recording had inherited.
    pub fn inherited(&self) -> Option<Inherited> {
        self.first_born.as_ref().map(|(flips, born)| self.guesses.inherited(flips, *born))
    }
}

impl Shadow {
    /// A task forks. The first task to fork is the ancestor of the recorded workload; kthreadd never is.
    pub(super) fn founds_family(&mut self, parent: TaskId, now: Time) {
        if !self.learned.family.begun {
            let flips = self.learned.family.guesses.ancestor();
            let family = &mut self.learned.family;
            (family.begun, family.first_born) = (true, Some((flips, self.sched.jiffies(now))));
            self.known_mut(parent).learned.flips = Some(flips);
        }
    }

    /// The likeliest flips of a task, if those of its ancestor are guessed.
    pub fn likeliest_flips(&self, task: TaskId) -> Option<u32> {
        let flips = self.known(task).learned.flips.as_ref()?;
        Some(self.learned.family.guesses.likeliest(flips).flips)
    }

    /// Records a wake-up between two tasks.
    pub fn record_wakee(&mut self, waker: TaskId, wakee: TaskId, now: Time) {
        let jiffies = self.sched.jiffies(now);
        if let Some(flips) = &mut self.known[waker.index()].learned.flips {
            self.learned.family.guesses.record(flips, wakee, jiffies);
        }
    }

    /// Learns whether a wake-up spread.
    pub(crate) fn learn_flips(&mut self, spread: &Spread, wide: bool) {
        let Some(halving) = self.learned.family.guesses.learn(spread, wide) else { return };
        let of_tasks = self.known.iter_mut().filter_map(|known| known.learned.flips.as_mut());
        for flips in of_tasks.chain(self.learned.family.first_born.as_mut().map(|(flips, _)| flips)) {
            self.learned.family.guesses.adopt(flips, halving);
        }
    }

    /// What the guesses of the flips say about whether a wake-up spreads, if both tasks descend from a task whose flips
    /// are guessed.
    pub fn guessed_spread(&self, wakeup: &Wakeup, now: Time) -> Option<Spread> {
        let waker = self.known(wakeup.waker?).learned.flips.as_ref()?;
        let wakee = self.known(wakeup.task).learned.flips.as_ref()?;
        let factor = self.sched.domains.per_cpu[wakeup.this_cpu].llc_size;
        let jiffies = self.sched.jiffies(now);
        Some(self.learned.family.guesses.spread(waker, wakeup.task, wakee, factor, jiffies))
    }

    /// Whether flips from before the recording may matter: those of one side are unknown, and the other side changes its
    /// wakees often enough.
    pub fn flips_are_hidden(&self, wakeup: &Wakeup) -> bool {
        let factor = self.sched.domains.per_cpu[wakeup.this_cpu].llc_size;
        match (wakeup.waker.and_then(|waker| self.likeliest_flips(waker)), self.likeliest_flips(wakeup.task))
        {
            (Some(known), None) | (None, Some(known)) => known >= factor,
            (Some(_), Some(_)) | (None, None) => false,
        }
    }
}

fn beyond(case: &Case<'_>, candidates: &mut Vec<Candidate>) {
    let Of::Wakeup { wakeup, .. } = case.of else { return };
    for (spreads, had) in [
        (true, "there had been enough flips for the wake-up to spread"),
        (false, "there had been too few flips for the wake-up to spread"),
    ] {
        let had = Otherwise::plain("WAKEE_FLIPS", had);
        candidates.push(Candidate::new(had, move |shadow, look| as_if(shadow, &wakeup, spreads, look)));
    }
}

/// Asks with flips for which a wake-up spreads or does not.
fn as_if(shadow: &mut Shadow, wakeup: &Wakeup, spreads: bool, look: Look<'_>) -> bool {
    let Some(waker) = wakeup.waker else { return false };
    let sides = [waker, wakeup.task];
    let factor = shadow.sched.domains.per_cpu[wakeup.this_cpu].llc_size;
    let guessed = sides.map(|task| shadow.known_mut(task).learned.flips.take());
    let known = sides.map(|task| shadow.sched.task(task).wakee_flips);
    for (task, flips) in sides.into_iter().zip([factor * factor + factor, factor]) {
        shadow.sched.task_mut(task).wakee_flips = if spreads { flips } else { 0 };
    }
    let leads = look(shadow);
    for ((task, guessed), known) in sides.into_iter().zip(guessed).zip(known) {
        shadow.known_mut(task).learned.flips = guessed;
        shadow.sched.task_mut(task).wakee_flips = known;
    }
    leads
}
