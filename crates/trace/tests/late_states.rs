//! Tasks that leave a CPU idle while runnable, in recordings of kernels: sleepers that were woken early, and
//! throttled tasks.

use std::io::BufReader;
use std::path::Path;

use schedlab_trace::read::{Record, ftrace};
use schedlab_trace::{Event, Kind, LateStates, TaskState};
use schedlab_units::Pid;

fn events(name: &str) -> Vec<Event> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name).join("trace.txt.gz");
    let file = std::fs::File::open(path).expect("the recording is in the tree");
    ftrace::Reader::new(BufReader::new(flate2::read::GzDecoder::new(file)))
        .filter_map(|record| match record.expect("it is whole") {
            Record::Event(event) => Some(event),
            _ => None,
        })
        .collect()
}

fn leave_idle_as_runnable(events: &[Event]) -> usize {
    let leaves = |event: &&Event| match event.kind {
        Kind::SchedSwitch { prev_pid, prev_state, next_pid, .. } => {
            prev_pid != Pid::IDLE && next_pid == Pid::IDLE && prev_state == TaskState::RUNNING
        }
        _ => false,
    };
    events.iter().filter(leaves).count()
}

#[test]
fn sleepers_are_distinguished_from_tasks_out_of_quota() {
    for (name, recorded, meant) in [
        ("between/5.10/2x2x4/sleepers", 390, 0),
        ("between/5.10/2x2x4/pipes", 53, 0),
        // These kernels record the true state.
        ("6.1/1x1x4-programs/quota", 35, 35),
        ("6.1/1x1x4-programs/quota-hidden", 34, 34),
    ] {
        let events = events(name);
        let mut late = LateStates::default();
        let mut passed = Vec::new();
        for event in events.iter().cloned() {
            late.push(event);
            passed.extend(std::iter::from_fn(|| late.pop(false)));
        }
        passed.extend(std::iter::from_fn(|| late.pop(true)));
        assert_eq!(passed.len(), events.len(), "{name}");
        assert_eq!(
            (leave_idle_as_runnable(&events), leave_idle_as_runnable(&passed)),
            (recorded, meant),
            "{name}"
        );
        assert!(meant == 0 || passed == events, "{name}: a true state is left unchanged");
    }
}
