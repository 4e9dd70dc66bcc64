//! How often a task changes the task it wakes.
//!
//! A server that wakes many clients flips often, a ping-pong pair never. `wake_wide` compares the flips of
//! both sides with the size of the cache.

use schedlab_units::TaskId;

use crate::Sched;

use super::Wakeup;

/// The wakees of a task: the state that `record_wakee()` updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakees {
    /// Changes of the wakee, halved each second.
    pub flips: u32,
    /// Jiffy of the last halving.
    pub flip_decay: u64,
    /// Task woken last.
    pub last: Option<TaskId>,
}

impl Wakees {
    /// After one more wake-up. However long ago the last one was, there is one halving.
    ///
    /// Kernel: record_wakee(), kernel/sched/fair.c, v6.12.
    pub fn after(self, wakee: TaskId, jiffies: u64, hz: u64) -> Wakees {
        let mut after = self;
        if jiffies > after.flip_decay + hz {
            after.flips >>= 1;
            after.flip_decay = jiffies;
        }
        if after.last != Some(wakee) {
            after.last = Some(wakee);
            after.flips += 1;
        }
        after
    }
}

impl Sched {
    /// The wakee state of the waker; idle tasks have one as well.
    pub fn wakees(&self, wakeup: &Wakeup) -> Wakees {
        match wakeup.waker {
            Some(waker) => {
                let waker = self.task(waker);
                Wakees {
                    flips: waker.wakee_flips,
                    flip_decay: waker.wakee_flip_decay,
                    last: waker.last_wakee,
                }
            }
            None => self.rqs[wakeup.this_cpu].idle_wakees,
        }
    }

    pub(super) fn record_wakee(&mut self, wakeup: &Wakeup, jiffies: u64) {
        let after = self.wakees(wakeup).after(wakeup.task, jiffies, self.kernel.tunables.hz);
        match wakeup.waker {
            Some(waker) => {
                let waker = self.task_mut(waker);
                waker.wakee_flips = after.flips;
                waker.wakee_flip_decay = after.flip_decay;
                waker.last_wakee = after.last;
            }
            None => self.rqs[wakeup.this_cpu].idle_wakees = after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flips_count_changes_and_halve_once_a_second() {
        let mut wakees = Wakees::default();
        let mut flips = |wakee, jiffies| {
            wakees = wakees.after(TaskId(wakee), jiffies, 250);
            wakees.flips
        };
        assert_eq!([flips(1, 10), flips(1, 11), flips(2, 12), flips(1, 13)], [1, 1, 2, 3]);
        assert_eq!(flips(1, 250), 3, "a second is not over before 251");
        assert_eq!(flips(1, 251), 1);
        assert_eq!(flips(2, 90_000), 1, "halved once, then one more");
    }
}
