//! Where events go: one at a time, as they happen.
//!
//! A run has one sink and keeps nothing else, so its memory does not grow with its length. Reports, checkers and
//! writers are sinks; [`Tee`] joins two and [`Filter`] passes events with the requested names.

use crate::decision::Decided;
use crate::event::Event;
use crate::kernel_state::State;
use crate::read::Lost;
use schedlab_units::Time;

/// Takes events in the order in which they happen.
pub trait Sink {
    /// Takes one event. Times never go back.
    fn event(&mut self, event: &Event);

    /// Takes one event that nothing else uses, so a sink that keeps it need not copy it.
    fn take(&mut self, event: Event) {
        self.event(&event);
    }

    /// Called when the recorder lost events before the next one.
    fn lost(&mut self, _: &Lost) {}

    /// Whether to create the annotations that explain decisions, which takes time.
    fn wants_decisions(&self) -> bool {
        false
    }

    /// Called with the rule of each decision if the sink wants reasons; in order with the events around it.
    fn decided(&mut self, _: &Decided) {}

    /// Whether to report the rules of decisions, which is cheap; annotations contain them too.
    fn wants_reasons(&self) -> bool {
        false
    }

    /// Whether it wants events other than those that show which tasks run and wait: charged times
    /// (`sched_stat_runtime`) and what idle CPUs do (`cpu_idle`, `sched_wake_idle_without_ipi`).
    fn wants_details(&self) -> bool {
        true
    }

    /// Called with the number of details that were left out since the last call, and the time of the last one.
    fn omitted(&mut self, _number: u64, _last: Time) {}

    /// Whether to report the scheduler's state as it changes, which takes much time.
    fn wants_state(&self) -> bool {
        false
    }

    /// Whether any event is wanted at all.
    fn enabled(&self) -> bool {
        true
    }
}

/// Discards everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl Sink for NullSink {
    fn event(&mut self, _: &Event) {}

    fn enabled(&self) -> bool {
        false
    }
}

/// Keeps everything: for tests and short runs.
impl Sink for Vec<Event> {
    fn event(&mut self, event: &Event) {
        self.push(event.clone());
    }

    fn take(&mut self, event: Event) {
        self.push(event);
    }

    fn wants_decisions(&self) -> bool {
        true
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn event(&mut self, event: &Event) {
        (**self).event(event);
    }

    fn take(&mut self, event: Event) {
        (**self).take(event);
    }

    fn lost(&mut self, lost: &Lost) {
        (**self).lost(lost);
    }

    fn wants_decisions(&self) -> bool {
        (**self).wants_decisions()
    }

    fn decided(&mut self, decided: &Decided) {
        (**self).decided(decided);
    }

    fn wants_reasons(&self) -> bool {
        (**self).wants_reasons()
    }

    fn wants_details(&self) -> bool {
        (**self).wants_details()
    }

    fn omitted(&mut self, number: u64, last: Time) {
        (**self).omitted(number, last);
    }

    fn wants_state(&self) -> bool {
        (**self).wants_state()
    }

    fn enabled(&self) -> bool {
        (**self).enabled()
    }
}

impl<S: Sink + ?Sized> Sink for Box<S> {
    fn event(&mut self, event: &Event) {
        (**self).event(event);
    }

    fn take(&mut self, event: Event) {
        (**self).take(event);
    }

    fn lost(&mut self, lost: &Lost) {
        (**self).lost(lost);
    }

    fn wants_decisions(&self) -> bool {
        (**self).wants_decisions()
    }

    fn decided(&mut self, decided: &Decided) {
        (**self).decided(decided);
    }

    fn wants_reasons(&self) -> bool {
        (**self).wants_reasons()
    }

    fn wants_details(&self) -> bool {
        (**self).wants_details()
    }

    fn omitted(&mut self, number: u64, last: Time) {
        (**self).omitted(number, last);
    }

    fn wants_state(&self) -> bool {
        (**self).wants_state()
    }

    fn enabled(&self) -> bool {
        (**self).enabled()
    }
}

/// A sink that is optional.
impl<S: Sink> Sink for Option<S> {
    fn event(&mut self, event: &Event) {
        if let Some(sink) = self {
            sink.event(event);
        }
    }

    fn lost(&mut self, lost: &Lost) {
        if let Some(sink) = self {
            sink.lost(lost);
        }
    }

    fn wants_decisions(&self) -> bool {
        self.as_ref().is_some_and(S::wants_decisions)
    }

    fn decided(&mut self, decided: &Decided) {
        if let Some(sink) = self {
            sink.decided(decided);
        }
    }

    fn wants_reasons(&self) -> bool {
        self.as_ref().is_some_and(S::wants_reasons)
    }

    fn wants_details(&self) -> bool {
        self.as_ref().is_some_and(S::wants_details)
    }

    fn omitted(&mut self, number: u64, last: Time) {
        if let Some(sink) = self {
            sink.omitted(number, last);
        }
    }

    fn wants_state(&self) -> bool {
        self.as_ref().is_some_and(S::wants_state)
    }

    fn enabled(&self) -> bool {
        self.as_ref().is_some_and(S::enabled)
    }
}

/// Calls a function with each event.
#[derive(Debug)]
pub struct Each<F>(pub F);

impl<F: FnMut(&Event)> Sink for Each<F> {
    fn event(&mut self, event: &Event) {
        (self.0)(event);
    }
}

/// Two sinks that receive the same events.
#[derive(Debug, Default)]
pub struct Tee<A, B>(pub A, pub B);

impl<A: Sink, B: Sink> Sink for Tee<A, B> {
    fn event(&mut self, event: &Event) {
        offer(&mut self.0, event);
        offer(&mut self.1, event);
    }

    fn lost(&mut self, lost: &Lost) {
        self.0.lost(lost);
        self.1.lost(lost);
    }

    fn wants_decisions(&self) -> bool {
        self.0.wants_decisions() || self.1.wants_decisions()
    }

    fn decided(&mut self, decided: &Decided) {
        self.0.decided(decided);
        self.1.decided(decided);
    }

    fn wants_reasons(&self) -> bool {
        self.0.wants_reasons() || self.1.wants_reasons()
    }

    fn wants_details(&self) -> bool {
        self.0.enabled() && self.0.wants_details() || self.1.enabled() && self.1.wants_details()
    }

    fn omitted(&mut self, number: u64, last: Time) {
        self.0.omitted(number, last);
        self.1.omitted(number, last);
    }

    fn wants_state(&self) -> bool {
        self.0.wants_state() || self.1.wants_state()
    }

    fn enabled(&self) -> bool {
        self.0.enabled() || self.1.enabled()
    }
}

/// Passes a decision only to the sink that wants it, whatever the other one wants.
#[inline]
fn offer(sink: &mut impl Sink, event: &Event) {
    let wanted = (!event.kind.is_decision() || sink.wants_decisions())
        && (!event.kind.is_state() || sink.wants_state());
    if sink.enabled() && wanted {
        sink.event(event);
    }
}

/// Passes events with some names.
#[derive(Debug)]
pub struct Filter<S> {
    patterns: Vec<String>,
    inner: S,
}

impl<S: Sink> Filter<S> {
    /// Passes events that match one of the names: `sched_switch`, `sched:sched_switch`, or `sched_stat_*`. An empty
    /// list passes everything.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>, inner: S) -> Filter<S> {
        let patterns = names.into_iter().map(|name| match name.split_once(':') {
            Some((_, event)) => event.to_owned(),
            None => name.to_owned(),
        });
        Filter { patterns: patterns.collect(), inner }
    }

    /// The sink behind the filter.
    pub fn into_inner(self) -> S {
        self.inner
    }

    fn passes(&self, name: &str) -> bool {
        self.patterns.is_empty() || self.patterns.iter().any(|pattern| matches(pattern, name))
    }
}

/// Whether a name matches a pattern, which may end in `*`.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

impl<S: Sink> Sink for Filter<S> {
    fn event(&mut self, event: &Event) {
        if self.passes(event.kind.name()) {
            self.inner.event(event);
        }
    }

    fn lost(&mut self, lost: &Lost) {
        self.inner.lost(lost);
    }

    fn wants_decisions(&self) -> bool {
        let decisions =
            ["placement", "balance", "newidle", "preemption", "pick"].map(|kind| format!("schedlab_{kind}"));
        self.inner.wants_decisions() && decisions.iter().any(|name| self.passes(name))
    }

    /// State is passed only if it is named.
    fn wants_state(&self) -> bool {
        !self.patterns.is_empty() && State::NAMES.iter().any(|name| self.passes(name))
    }

    fn enabled(&self) -> bool {
        self.inner.enabled()
    }
}

#[cfg(test)]
mod tests {
    use schedlab_topology::CpuId;
    use schedlab_units::{Pid, Time};

    use super::*;
    use crate::{Comm, Flags, Kind, Name, Pick};

    fn event(kind: Kind) -> Event {
        Event {
            time: Time::ZERO,
            cpu: CpuId(0),
            pid: Pid::IDLE,
            tgid: None,
            comm: Comm::default(),
            flags: Flags::NONE,
            kind,
        }
    }

    fn feed(sink: &mut impl Sink) {
        let pick = Pick { pid: Pid(1), reason: Name::from("ONLY_TASK"), numbers: vec![] };
        sink.event(&event(Kind::Pick(Box::new(pick))));
        sink.event(&event(Kind::CpuIdle { state: 1, cpu: CpuId(0) }));
        sink.event(&event(Kind::SchedWakeIdleWithoutIpi { cpu: CpuId(1) }));
    }

    fn names(events: &[Event]) -> Vec<&str> {
        events.iter().map(|event| event.kind.name()).collect()
    }

    #[test]
    fn a_filter_knows_names_systems_and_beginnings() {
        for (patterns, expected) in [
            (vec!["cpu_idle"], vec!["cpu_idle"]),
            (vec!["power:cpu_idle", "schedlab_*"], vec!["schedlab_pick", "cpu_idle"]),
            (vec!["sched_*"], vec!["sched_wake_idle_without_ipi"]),
            (vec![], vec!["schedlab_pick", "cpu_idle", "sched_wake_idle_without_ipi"]),
            (vec!["nothing"], vec![]),
        ] {
            let mut filter = Filter::new(patterns.iter().copied(), Vec::new());
            feed(&mut filter);
            assert_eq!(names(&filter.into_inner()), expected, "{patterns:?}");
        }
    }

    #[test]
    fn decisions_are_made_only_for_a_filter_that_passes_them() {
        assert!(Filter::new(["schedlab_pick"], Vec::new()).wants_decisions());
        assert!(!Filter::new(["sched_switch"], Vec::new()).wants_decisions());
        assert!(!Filter::new([], NullSink).wants_decisions());
    }

    #[test]
    fn a_tee_gives_decisions_to_the_side_that_wants_them() {
        let mut seen = Vec::new();
        let mut tee = Tee(Vec::new(), Each(|event: &Event| seen.push(event.kind.name().to_owned())));
        assert!(tee.wants_decisions());
        feed(&mut tee);
        assert_eq!(tee.0.len(), 3);
        assert_eq!(seen, ["cpu_idle", "sched_wake_idle_without_ipi"]);
    }

    #[test]
    fn state_is_written_only_to_sinks_that_ask_for_it() {
        assert!(Filter::new(["sched_switch", "pelt_*"], Vec::new()).wants_state());
        assert!(!Filter::new(["sched_switch"], Vec::new()).wants_state());
        assert!(!Filter::new([], Vec::new()).wants_state());
        assert!(!Tee(Vec::new(), Vec::new()).wants_state());
    }

    #[test]
    fn nothing_listens_to_the_null_sink() {
        assert!(!Tee(NullSink, None::<NullSink>).enabled());
        assert!(Tee(NullSink, Vec::new()).enabled());
    }
}
