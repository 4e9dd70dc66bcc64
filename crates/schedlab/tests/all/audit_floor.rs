//! How well the rules explain what recorded kernels did, as a minimum.
//!
//! A sample of the recordings in `traces/`; `cargo xtask fidelity` prints all of them. The floors are the
//! goals of an audit. If a recording misses a goal for a reason given in `docs/fidelity.md`, its floor is
//! slightly below its value.

use std::fs::{self, File};
use std::path::Path;

use schedlab::audit::{AuditReport, Counts, Decision, Options};
use schedlab::audited::audit_recording;
use schedlab::recording::{FactTexts, Facts, Groups};

fn audit(kernel: &str, machine: &str, load: &str) -> AuditReport {
    audit_as(kernel, machine, load, true)
}

fn audit_as(kernel: &str, machine: &str, load: &str, with_groups: bool) -> AuditReport {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let folder = traces.join(kernel).join(machine).join(load);
    let texts = FactTexts::beside(&folder, |path| fs::read_to_string(path)).expect("the facts are there");
    let facts = Facts::of_trace(&folder, &texts).expect("the facts make a machine and a kernel");
    let groups = if with_groups { facts.groups.clone() } else { Groups::default() };
    let trace = File::open(folder.join("trace.txt.gz")).expect("the trace is there");
    let options = Options { groups, stories: 0, ..Options::of(&facts) };
    audit_recording(trace, &facts, options).expect("the recording can be audited")
}

/// Agreement in tenths of a percent: wake-ups, forks, execs, picks, preemption, moves by balancing,
/// pushes and pulls.
type Floor = [u64; 7];

const GOAL: Floor = [990, 990, 990, 980, 850, 900, 990];

/// Agreement reaches a floor, and little is undecided.
#[track_caller]
fn check(kernel: &str, load: &str, machines: &[&str], floor: Floor) {
    for (sum, decision) in check_agreement(kernel, load, machines, floor).iter().zip(Decision::ALL) {
        // The first forks of a recording depend on averages that have not settled, so a few can be a large share;
        // and preemption depends on virtual times that are closer than events can distinguish.
        let few = sum.all() < 100 || decision == Decision::Preempt;
        let kind = decision.name();
        assert!(few || sum.undecided * 20 <= sum.all(), "{kernel} {load} {kind}: {sum:?}");
    }
}

#[track_caller]
fn check_agreement(
    kernel: &str,
    load: &str,
    machines: &[&str],
    floor: Floor,
) -> [Counts; Decision::ALL.len()] {
    let mut sums = [Counts::default(); Decision::ALL.len()];
    for machine in machines {
        let report = audit(kernel, machine, load);
        for (sum, kind) in sums.iter_mut().zip(Decision::ALL) {
            sum.add(&report.of(kind).counts);
        }
    }
    for ((sum, floor), decision) in sums.iter().zip(floor).zip(Decision::ALL) {
        let (agree, kind) = (sum.agrees + sum.agrees_in_set, decision.name());
        assert!(agree * 1000 >= floor * sum.decided(), "{kernel} {load} {kind}: {sum:?}, floor {floor}");
    }
    sums
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
        check(kernel, "fork", &["2x2x4"], [990, 990, 990, 980, 550, 0, 990]);
        check(kernel, "io-disk", &["1x1x8"], [990, 990, 990, 980, 0, 0, 990]);
    }
}

#[test]
fn pipes_and_hogs() {
    for kernel in ["6.1", "6.12", "7.2"] {
        check(kernel, "pipes", &["1x1x8", "2x1x8-cluster"], GOAL);
        check(kernel, "hogs-runtime", &["1x1x8", "2x2x4"], [990, 990, 990, 990, 970, 950, 990]);
    }
}

#[test]
fn tasks_in_groups_share_a_cpu_by_the_weights_of_their_groups() {
    let machine = "1x1x4-groups";
    for kernel in ["6.1", "6.12", "7.2"] {
        check(kernel, "hogs", &[machine], [970, 990, 0, 990, 980, 900, 990]);
        check(kernel, "mixed", &[machine], [990, 990, 0, 980, 900, 900, 990]);
        check(kernel, "moves", &[machine], [970, 990, 0, 980, 850, 0, 990]);
        // Without the recorded groups a CPU is shared differently.
        let pick = |with_groups| audit_as(kernel, machine, "hogs", with_groups).pick.counts;
        let (known, unknown) = (pick(true), pick(false));
        assert!(known.differs * 10 < unknown.differs, "{kernel}: {known:?}, without groups {unknown:?}");
    }
}

#[test]
fn programs_of_one_idea_each() {
    let machine = "1x1x4-programs";
    let floors: [(&str, Floor); 9] = [
        ("affinity", [990, 1000, 0, 990, 940, 700, 990]),
        ("hotplug", [990, 900, 0, 990, 960, 1000, 990]),
        ("make", [1000, 1000, 960, 1000, 950, 0, 990]),
        ("nice", [1000, 1000, 0, 990, 930, 650, 990]),
        ("policies", [990, 1000, 0, 990, 980, 300, 990]),
        ("pool", [1000, 850, 0, 990, 1000, 1000, 990]),
        ("quota", [970, 900, 0, 1000, 1000, 1000, 990]),
        ("rt", [1000, 1000, 0, 1000, 900, 1000, 990]),
        ("server", [990, 1000, 0, 1000, 1000, 1000, 990]),
    ];
    for (load, floor) in floors {
        for kernel in ["6.1", "6.12", "7.2"] {
            check(kernel, load, &[machine], floor);
        }
    }
    for kernel in ["6.1", "6.12", "7.2"] {
        // Picks beside a task that is out of budget are undecided.
        check_agreement(kernel, "deadline", &[machine], [1000, 1000, 0, 1000, 950, 1000, 990]);
        check(kernel, "signals", &[machine], [1000, 1000, 0, 990, 900, 1000, 990]);
        check(kernel, "yield", &[machine], [1000, 1000, 0, 980, 400, 1000, 990]);
    }
}
