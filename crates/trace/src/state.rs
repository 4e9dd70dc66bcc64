//! The state in which a task left its CPU, as recorded in `sched_switch`.
//!
//! Kernel: __trace_sched_switch_state(), include/trace/events/sched.h; TASK_REPORT,
//! include/linux/sched.h.

use std::fmt;

/// The `prev_state` of a switch: no bit means runnable, several are printed joined by `
/// `.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskState(u16);

impl TaskState {
    /// Runnable: it gave up its CPU but wants it back.
    pub const RUNNING: TaskState = TaskState(0);
    /// Asleep until an event or a signal.
    pub const INTERRUPTIBLE: TaskState = TaskState(0x01);
    /// Asleep until an event.
    pub const UNINTERRUPTIBLE: TaskState = TaskState(0x02);
    /// Stopped by a signal.
    pub const STOPPED: TaskState = TaskState(0x04);
    /// Stopped by a tracer.
    pub const TRACED: TaskState = TaskState(0x08);
    /// Dead, and its parent does not wait for it.
    pub const DEAD: TaskState = TaskState(0x10);
    /// Dead, and its parent has yet to wait for it.
    pub const ZOMBIE: TaskState = TaskState(0x20);
    /// A kthread that is parked.
    pub const PARKED: TaskState = TaskState(0x40);
    /// Asleep until an event, not counted as load.
    pub const IDLE: TaskState = TaskState(0x80);
    /// Preempted: it did not call schedule() itself. A preempted runnable task is `R+`.
    pub const PREEMPTED: TaskState = TaskState(0x100);

    /// Dead, as recorded by kernels before 4.14.
    const DEAD_BEFORE_4_14: TaskState = TaskState(0x200);
    /// Bits that only kernels before 4.14 record. Of these `K`, `N` and `W` usually occur together with another bit;
    /// `W` is a sleeper whose wake-up has begun.
    const BEFORE_4_14: u16 = 0x1e00;

    /// Letters in the order of their bits; the last four were printed only before 4.14.
    const LETTERS: [(u16, u8); 12] = [
        (0x01, b'S'),
        (0x02, b'D'),
        (0x04, b'T'),
        (0x08, b't'),
        (0x10, b'X'),
        (0x20, b'Z'),
        (0x40, b'P'),
        (0x80, b'I'),
        (0x200, b'x'),
        (0x400, b'K'),
        (0x800, b'W'),
        (0x1000, b'N'),
    ];

    /// The state in binary records of 4.14 and later kernels.
    pub const fn from_bits(bits: u64) -> TaskState {
        TaskState((bits & 0x1ff) as u16)
    }

    /// The bits in binary records of 4.14 and later kernels. Letters of older kernels become the nearest newer ones:
    /// `x` becomes `X`, and a sleeper with nothing but `K`, `N` or `W` becomes `S`.
    pub const fn bits(self) -> u64 {
        let bits = self.0 & 0x1ff;
        let bits = match self.0 & Self::BEFORE_4_14 {
            0 => bits,
            before if before & Self::DEAD_BEFORE_4_14.0 != 0 => bits | Self::DEAD.0,
            _ if bits & 0xff == 0 => bits | Self::INTERRUPTIBLE.0,
            _ => bits,
        };
        bits as u64
    }

    /// The union of two states.
    pub const fn with(self, other: TaskState) -> TaskState {
        TaskState(self.0 | other.0)
    }

    /// Whether the task stays on its run queue: it still runs, or was preempted on its way to sleep. Any other bit
    /// means that it left the queue.
    pub const fn is_runnable(self) -> bool {
        self.0 == 0 || self.is_preempted()
    }

    /// Whether the task sleeps and no signal wakes it.
    pub const fn is_uninterruptible(self) -> bool {
        self.0 & (Self::UNINTERRUPTIBLE.0 | Self::IDLE.0) != 0
    }

    /// Whether the task was preempted.
    pub const fn is_preempted(self) -> bool {
        self.0 & TaskState::PREEMPTED.0 != 0
    }

    /// Whether the task is gone for good.
    pub const fn is_dead(self) -> bool {
        self.0 & (Self::DEAD.0 | Self::ZOMBIE.0 | Self::DEAD_BEFORE_4_14.0) != 0
    }

    /// Reads a single letter.
    #[inline]
    pub(crate) fn letter(letter: u8) -> Option<TaskState> {
        Some(match OF_LETTERS[usize::from(letter)] {
            0 if letter == b'R' => TaskState::RUNNING,
            0 => return None,
            bit => TaskState(bit),
        })
    }

    /// Parses `S`, `R+`, `D
    /// K`. `None` for a letter that no kernel prints.
    pub fn parse(text: &[u8]) -> Option<TaskState> {
        let (letters, preempted) = match text {
            [letters @ .., b'+'] => (letters, TaskState::PREEMPTED.0),
            _ => (text, 0),
        };
        if letters == b"R" {
            return Some(TaskState(preempted));
        }
        let mut bits = preempted;
        for (i, &letter) in letters.iter().enumerate() {
            if i % 2 == 1 {
                if letter != b'|' {
                    return None;
                }
                continue;
            }
            bits |= TaskState::letter(letter).filter(|_| letter != b'R')?.0;
        }
        (letters.len() % 2 == 1).then_some(TaskState(bits))
    }
}

/// The bit of each letter, 0 if there is none.
static OF_LETTERS: [u16; 256] = {
    let mut bits = [0; 256];
    let mut i = 0;
    while i < TaskState::LETTERS.len() {
        let (bit, letter) = TaskState::LETTERS[i];
        bits[letter as usize] = bit;
        i += 1;
    }
    bits
};

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (bit, letter) in TaskState::LETTERS {
            if self.0 & bit != 0 {
                if !first {
                    f.write_str("|")?;
                }
                first = false;
                write!(f, "{}", letter as char)?;
            }
        }
        if first {
            f.write_str("R")?;
        }
        if self.is_preempted() { f.write_str("+") } else { Ok(()) }
    }
}

impl fmt::Debug for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_print_as_the_kernel_prints_them() {
        for text in ["R", "R+", "S", "D", "T", "t", "X", "Z", "P", "I", "S+", "S|D", "D|K"] {
            let state = TaskState::parse(text.as_bytes()).expect(text);
            assert_eq!(state.to_string(), text);
        }
        for text in ["", "+", "Q", "SD", "S|", "|S", "R|S"] {
            assert_eq!(TaskState::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_task_preempted_on_its_way_to_sleep_is_still_runnable() {
        assert!(TaskState::parse(b"S+").unwrap().is_runnable());
        assert!(!TaskState::INTERRUPTIBLE.is_runnable());
        assert!(TaskState::RUNNING.is_runnable() && !TaskState::RUNNING.is_preempted());
    }

    #[test]
    fn letters_of_kernels_before_4_14_mean_what_they_meant() {
        // Whether it stays on its queue, is dead, or sleeps uninterruptibly; and its letters in later kernels.
        for (text, is_runnable, is_dead, is_uninterruptible, later) in [
            ("x", false, true, false, "X"),
            ("W", false, false, false, "S"),
            ("K", false, false, false, "S"),
            ("N", false, false, false, "S"),
            ("D|K", false, false, true, "D"),
            ("D|N", false, false, true, "D"),
            ("T|K", false, false, false, "T"),
            ("R", true, false, false, "R"),
            ("R+", true, false, false, "R+"),
        ] {
            let state = TaskState::parse(text.as_bytes()).expect(text);
            assert_eq!(
                (state.is_runnable(), state.is_dead(), state.is_uninterruptible()),
                (is_runnable, is_dead, is_uninterruptible),
                "{text}"
            );
            assert_eq!(TaskState::from_bits(state.bits()).to_string(), later, "{text}");
        }
    }

    #[test]
    fn binary_records_hold_the_same_bits() {
        let state = TaskState::UNINTERRUPTIBLE.with(TaskState::PREEMPTED);
        assert_eq!(state.bits(), 0x102);
        assert_eq!(TaskState::from_bits(0x102).to_string(), "D+");
    }
}
