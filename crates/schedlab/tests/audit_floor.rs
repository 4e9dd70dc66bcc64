//! How well the rules explain what recorded kernels did, as a floor that must hold.
//!
//! A sample of the recordings in `traces/`; `cargo xtask fidelity` prints all of them. The
//! floors are the goals of an audit, or, where a recording falls short of a goal for a
//! reason that `docs/fidelity.md` gives, a little below what it has.

use std::fs::{self, File};
use std::path::Path;

use schedlab::audit::{AuditReport, Counts, Decision};
use schedlab::audited::{RecordedFacts, audit_recording};

fn audit(kernel: &str, machine: &str, load: &str) -> AuditReport {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(kernel).join(machine);
    let text = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
    let facts = RecordedFacts {
        machine,
        kernel: &format!("v{kernel}"),
        topology: &text("facts/topology.txt"),
        features: &text("facts/sched_features.txt"),
        debug_sched: &text("facts/debug_sched.txt"),
        command: &text(&format!("{load}/cmd.txt")),
    };
    let trace = File::open(folder.join(load).join("trace.txt.gz")).expect("the trace is there");
    audit_recording(trace, &facts).expect("the recording can be audited")
}

/// Agreement in tenths of a percent: wake-ups, forks, picks, moves by balancing.
type Floor = [u64; 4];

const GOAL: Floor = [990, 990, 980, 900];

#[track_caller]
fn check(kernel: &str, load: &str, machines: &[&str], floor: Floor) {
    let mut sums = [Counts::default(); 4];
    for machine in machines {
        let report = audit(kernel, machine, load);
        let kinds = [Decision::Wakeup, Decision::Fork, Decision::Pick, Decision::Balance];
        for (sum, kind) in sums.iter_mut().zip(kinds) {
            sum.add(&report.of(kind).counts);
        }
    }
    for ((sum, floor), kind) in sums.iter().zip(floor).zip(["wakeup", "fork", "pick", "balance"]) {
        let agree = sum.agrees + sum.agrees_in_set;
        assert!(agree * 1000 >= floor * sum.decided(), "{kernel} {load} {kind}: {sum:?}, floor {floor}");
        // The first forks of a recording meet averages that are not settled, so few can be many.
        let few = sum.all() < 100;
        assert!(few || sum.undecided * 20 <= sum.all(), "{kernel} {load} {kind}: {sum:?}");
    }
}

#[test]
fn sleepers_on_all_machines() {
    for kernel in ["6.1", "6.12", "7.2"] {
        check(kernel, "sleepers", &["1x1x8", "2x2x4", "2x1x8-cluster", "2x2x2x2-smt"], GOAL);
    }
}

#[test]
fn forks_and_readers() {
    for kernel in ["6.1", "6.12", "7.2"] {
        check(kernel, "fork", &["2x2x4"], [990, 990, 980, 0]);
        check(kernel, "io-disk", &["1x1x8"], [990, 990, 980, 0]);
    }
}

#[test]
fn pipes_and_hogs() {
    for kernel in ["6.1", "6.12", "7.2"] {
        check(kernel, "pipes", &["1x1x8", "2x1x8-cluster"], GOAL);
        check(kernel, "hogs-runtime", &["1x1x8", "2x2x4"], [990, 990, 990, 950]);
    }
}
