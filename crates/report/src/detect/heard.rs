//! What a trace must contain for a detector to run.

/// Which kinds of events a trace has: a detector cannot run without those it needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heard {
    /// Switches.
    pub switches: bool,
    /// Beginnings of wake-ups.
    pub wakings: bool,
    /// Their ends.
    pub wakeups: bool,
    /// First wake-ups of tasks.
    pub births: bool,
}

impl Heard {
    /// What the trace lacks to show which tasks wait, if it contains no event of a task that joins a run queue.
    pub fn no_wakeup(self) -> Option<String> {
        let any = self.wakings || self.wakeups || self.births;
        (!any).then(|| {
            "there is no sched_waking, sched_wakeup or sched_wakeup_new in the trace; record them too"
                .to_owned()
        })
    }

    /// What the trace lacks to show where wake-ups placed tasks.
    pub fn no_placement(self) -> Option<String> {
        let missing = match self {
            Heard { wakings: true, wakeups: true, .. } => return None,
            Heard { wakings: false, wakeups: false, .. } => "sched_waking and no sched_wakeup",
            Heard { wakings: false, .. } => "sched_waking",
            Heard { .. } => "sched_wakeup",
        };
        Some(format!("there is no {missing} in the trace; record both"))
    }

    /// What the trace lacks to show where tasks run.
    pub fn no_switch(self) -> Option<String> {
        (!self.switches).then(|| "there is no sched_switch in the trace; record it too".to_owned())
    }

    /// What the trace lacks to show where new tasks were placed.
    pub fn no_birth(self) -> Option<String> {
        (!self.births).then(|| {
            "there is no sched_wakeup_new in the trace: no task was made, or the event was not recorded"
                .to_owned()
        })
    }
}
