//! No task is lost: a woken task gets a CPU, and a sleeping one runs only after a wake-up.

use std::collections::BTreeMap;

use schedlab_trace::{Event, Kind, Sink};
use schedlab_units::{Duration, Pid, Time};

use super::Findings;

/// The checker.
#[derive(Clone, Debug)]
pub struct LostTask {
    patience: Duration,
    tasks: BTreeMap<Pid, State>,
    /// The findings.
    pub findings: Findings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Runs,
    Waits { since: Time },
    Sleeps,
    Gone,
}

impl LostTask {
    /// A task that waits longer than this for a CPU counts as lost.
    pub fn new(patience: Duration) -> LostTask {
        LostTask { patience, tasks: BTreeMap::new(), findings: Findings::default() }
    }

    /// The trace ends: tasks that have waited too long are lost.
    pub fn finish(&mut self, time: Time) {
        for (&pid, &state) in &self.tasks {
            if let State::Waits { since } = state
                && time.since(since) > self.patience
            {
                self.findings.add(time, Default::default(), || {
                    format!("task {pid} waits for a CPU since {since} and never gets one")
                });
            }
        }
    }

    fn runs(&mut self, event: &Event, pid: Pid) {
        match self.tasks.insert(pid, State::Runs) {
            Some(State::Sleeps) => {
                self.findings.add(event.time, event.cpu, || format!("task {pid} runs, but was not woken"));
            }
            Some(State::Gone) => {
                self.findings.add(event.time, event.cpu, || format!("task {pid} runs after its end"));
            }
            Some(State::Waits { since }) if event.time.since(since) > self.patience => {
                self.findings.add(event.time, event.cpu, || {
                    format!("task {pid} got a CPU only {} after it was woken", event.time.since(since))
                });
            }
            _ => {}
        }
    }
}

impl Sink for LostTask {
    fn event(&mut self, event: &Event) {
        match event.kind {
            Kind::SchedWakeup { pid, .. } | Kind::SchedWakeupNew { pid, .. } => {
                let state = self.tasks.entry(pid).or_insert(State::Sleeps);
                if matches!(state, State::Sleeps | State::Gone) {
                    *state = State::Waits { since: event.time };
                }
            }
            Kind::SchedSwitch { prev_pid, prev_state, next_pid, .. } => {
                if prev_pid != Pid::IDLE {
                    let state = if prev_state.is_dead() {
                        State::Gone
                    } else if prev_state.is_runnable() {
                        State::Waits { since: event.time }
                    } else {
                        State::Sleeps
                    };
                    self.tasks.insert(prev_pid, state);
                }
                if next_pid != Pid::IDLE {
                    self.runs(event, next_pid);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{switch, wakeup};
    use super::*;

    #[test]
    fn waiting_too_long_and_running_unwoken_are_found() {
        let mut checker = LostTask::new(Duration(100));
        for event in [
            wakeup(0, 0, 5, 0),
            switch(50, 0, 0, "R", 5),
            switch(60, 0, 5, "S", 6),
            switch(70, 0, 6, "R+", 0),
            wakeup(75, 0, 5, 1),
            switch(80, 1, 0, "R", 5),
        ] {
            checker.event(&event);
        }
        assert!(checker.findings.is_empty());
        checker.event(&switch(90, 1, 5, "D", 0));
        checker.event(&switch(95, 1, 0, "R", 5));
        checker.finish(Time(171));
        let found: Vec<_> = checker.findings.first().iter().map(|f| f.what.as_str()).collect();
        assert_eq!(
            found,
            ["task 5 runs, but was not woken", "task 6 waits for a CPU since 0.000000070 and never gets one"]
        );
    }
}
