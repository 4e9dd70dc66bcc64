#![no_main]

mod text;

use libfuzzer_sys::fuzz_target;
use schedlab::report::detect::{Detect, Options, Thresholds};
use schedlab::report::perf_sched::{Latency, Map, Reading, Timehist, TimehistOptions};
use schedlab::trace::Sink;

// Detectors and the reports of perf sched read whatever was recorded.
fuzz_target!(|bytes: &[u8]| {
    let Some((topology, _, events)) = text::recording(bytes) else { return };
    let options =
        Options { topology: Some(topology.clone()), affinity: Vec::new(), thresholds: Thresholds::default() };
    let (mut detect, mut latency) = (Detect::new(options), Latency::default());
    let mut map = Map::new(topology.nr_cpus() as u16, |row| drop(row.line()));
    let shown = TimehistOptions::default();
    let mut timehist = Timehist::new(shown.clone(), |row| drop(shown.line(row)));
    for event in &events {
        detect.event(event);
        latency.event(event);
        map.event(event);
        timehist.event(event);
    }
    drop(detect.finish().text());
    drop(latency.text(Reading::Auto, true, &[]));
    drop(timehist.summary().text());
});
