//! Identity of a task: a dense index within a run, and its visible pid.

use core::fmt;

/// A task of a run, numbered from 0 in order of creation; never reused in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// A process id as traces show it. 0 is the idle task of any CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(pub i32);

impl TaskId {
    /// The index into a dense table of tasks.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Pid {
    /// The idle task.
    pub const IDLE: Pid = Pid(0);
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
