//! Whether wake-ups carry the sync flag, judged by the outcome of earlier ones.
//!
//! No event shows the flag, but a task is mostly woken at the same place of the same programs: of 24,051 wake-ups by
//! tasks in the white-box recordings, whose probes show it, 38 carry another flag than most wake-ups of the same wakee.
//! If only one value of the flag explains the outcome, it was probably that value. This is not certain: the flag may
//! also have no effect for a hidden reason.

/// A value is assumed if it has been seen this many times more than the other.
const SURE: i8 = 3;

/// The count is limited, so that a change in how a task is woken is noticed soon.
const MOST: i8 = 4;

/// How many more wake-ups of a task seem to have had the flag than not: by interrupts, and by tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncFlags([i8; 2]);

impl SyncFlags {
    /// The flag, if it is known.
    pub fn of(self, by_task: bool) -> Option<bool> {
        let more = self.0[usize::from(by_task)];
        (more.abs() >= SURE).then_some(more > 0)
    }

    /// How many more wake-ups have had it than not.
    pub fn more(self, by_task: bool) -> i8 {
        self.0[usize::from(by_task)]
    }

    /// One more wake-up seems to have had the flag, or not.
    pub fn learn(&mut self, by_task: bool, sync: bool) {
        let more = &mut self.0[usize::from(by_task)];
        *more = (*more + if sync { 1 } else { -1 }).clamp(-MOST, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_known_while_most_wakeups_seem_to_have_it() {
        let mut flags = SyncFlags::default();
        let mut after = |wakeups: &[bool]| {
            wakeups.iter().for_each(|&sync| flags.learn(true, sync));
            flags.of(true)
        };
        assert_eq!(after(&[true, true]), None, "too few");
        assert_eq!(after(&[true, true, true]), Some(true));
        assert_eq!(after(&[false]), Some(true), "one may have been without effect");
        assert_eq!(after(&[false, true, false]), None);
        assert_eq!(after(&[false; 5]), Some(false));
        assert_eq!(flags.of(false), None, "interrupts are another matter");
    }
}
