//! Leaves out the beginning of a run that only establishes the initial state.

use schedlab_trace::{Decided, Event, Kind, Sink};
use schedlab_units::{Duration, Pid, Time};

/// Passes on the events after a prologue. Tasks that start by themselves at its end existed before, so their creation
/// is not reported.
#[derive(Clone, Debug)]
pub(crate) struct Measured<S> {
    prologue: Duration,
    begins: Option<Time>,
    inner: S,
}

impl<S: Sink> Measured<S> {
    /// The prologue begins with the first event.
    pub fn new(prologue: Duration, inner: S) -> Measured<S> {
        Measured { prologue, begins: None, inner }
    }

    /// The inner sink.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S: Sink> Sink for Measured<S> {
    fn event(&mut self, event: &Event) {
        if self.prologue == Duration::ZERO {
            return self.inner.event(event);
        }
        let begins = *self.begins.get_or_insert(event.time + self.prologue);
        let was_there = event.pid == Pid::IDLE && matches!(event.kind, Kind::SchedWakeupNew { .. });
        if event.time >= begins && !was_there {
            self.inner.event(event);
        }
    }

    fn wants_decisions(&self) -> bool {
        self.inner.wants_decisions()
    }

    fn decided(&mut self, decided: &Decided) {
        if decided.time >= *self.begins.get_or_insert(decided.time + self.prologue) {
            self.inner.decided(decided);
        }
    }

    fn wants_reasons(&self) -> bool {
        self.inner.wants_reasons()
    }

    fn wants_details(&self) -> bool {
        // It would be unknown how many of them belong to the prologue.
        self.prologue != Duration::ZERO || self.inner.wants_details()
    }

    fn omitted(&mut self, number: u64, last: Time) {
        self.inner.omitted(number, last);
    }

    fn wants_state(&self) -> bool {
        self.inner.wants_state()
    }
}
