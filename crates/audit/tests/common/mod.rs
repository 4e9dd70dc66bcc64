//! Helpers for tests of drawn traces.

use schedlab_audit::{Audit, Options, Verdict};
use schedlab_sched::Kernel;
use schedlab_topology::Topology;
use schedlab_trace::Sink;
use schedlab_trace::read::{Record, ftrace};

/// All verdicts in a trace on a machine.
pub fn judged(shape: &str, kernel: &str, trace: &str) -> Vec<Verdict> {
    let topology = Topology::regular(shape).unwrap();
    let options = Options { keep_verdicts: true, ..Options::default() };
    let mut audit = Audit::new(&topology, &Kernel::parse(kernel).unwrap(), options);
    for record in ftrace::Reader::new(trace.as_bytes()) {
        if let Record::Event(event) = record.unwrap() {
            audit.event(&event);
        }
    }
    audit.finish().0.verdicts
}
