//! Which tasks are threads, if a recording shows it.

use schedlab_trace::CLONE_THREAD;
use schedlab_units::Pid;

/// Which tasks are threads of their parent's process, as `task_newtask` reports just before a fork.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clones {
    /// The last cloned task, and whether as a thread.
    last: Option<(Pid, bool)>,
}

impl Clones {
    /// A task is cloned.
    pub fn cloned(&mut self, pid: Pid, clone_flags: u64) {
        self.last = Some((pid, clone_flags & CLONE_THREAD != 0));
    }

    /// Whether a task that is created now is a thread; `None` if no event showed it.
    pub fn is_thread(&self, child: Pid) -> Option<bool> {
        self.last.filter(|&(pid, _)| pid == child).map(|(_, is_thread)| is_thread)
    }

    /// Whether any event shows threads.
    pub fn tell(&self) -> bool {
        self.last.is_some()
    }
}
