//! Recordings with holes: what can be learned from them can be run.

use std::io::Cursor;
use std::path::Path;

use schedlab::replay::{Form, Listener, Runs};
use schedlab::sched::Kernel;
use schedlab::topology::Topology;
use schedlab::trace::read::{Record, open};
use schedlab::trace::{Event, Sink};

fn events(recording: &str) -> Vec<Event> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(recording).join("trace.txt.gz");
    let spool = || -> std::io::Result<Cursor<Vec<u8>>> { Ok(Cursor::default()) };
    let records = open(Cursor::new(std::fs::read(file).unwrap()), spool).unwrap();
    let event = |record| if let Record::Event(event) = record { Some(event) } else { None };
    records.filter_map(|record| event(record.unwrap())).collect()
}

#[test]
fn a_recording_with_holes_still_runs_to_its_end() {
    let kernel = Kernel::parse("v6.12").unwrap();
    for recording in ["pipes", "fork", "io-loop"] {
        let all = events(&format!("6.12/1x1x8/{recording}"));
        for (seed, lost_of_thousand) in [(1, 5), (2, 50), (3, 300), (4, 700)] {
            let mut dice: u64 = seed;
            let mut listener = Listener::new();
            for event in &all {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if (dice >> 33) % 1000 >= lost_of_thousand {
                    listener.event(event);
                }
            }
            let recorded = listener.finish(recording).unwrap();
            let topology = Topology::regular("1x8").unwrap();
            let home = recorded.at_home(&topology, &kernel, 1, 1).unwrap();
            let fidelity = home.fidelity(Form::USUAL, Runs::Exactly(1), |_, _| {});
            let fidelity =
                fidelity.unwrap_or_else(|e| panic!("{recording}, {lost_of_thousand} of 1000 lost: {e}"));
            assert!(fidelity.busy_off() <= 0.02, "{recording}, {lost_of_thousand}: {}", fidelity.text());
        }
    }
}

#[test]
fn events_out_of_order_are_learned_at_the_time_of_those_before_them() {
    let mut all = events("6.12/1x1x8/pipes");
    all.truncate(600);
    for at in (0..600).step_by(7) {
        let other = (at * 31) % 600;
        all.swap(at, other);
    }
    let mut listener = Listener::new();
    all.iter().for_each(|event| listener.event(event));
    let recorded = listener.finish("pipes").unwrap();
    assert!(recorded.learned.first <= recorded.learned.last);
}

#[test]
fn the_greatest_seed_is_one_of_many() {
    let mut listener = Listener::new();
    events("6.12/1x1x8/pipes").iter().take(600).for_each(|event| listener.event(event));
    let recorded = listener.finish("pipes").unwrap();
    let (topology, kernel) = (Topology::regular("1x8").unwrap(), Kernel::parse("v6.12").unwrap());
    let at_home = |seed| recorded.at_home(&topology, &kernel, seed, 1).unwrap();
    let fidelity = at_home(u64::MAX).fidelity(Form::USUAL, Runs::Exactly(3), |_, _| {}).unwrap();
    assert_eq!(fidelity.runs, 3);
    assert!(at_home(u64::MAX - (2 << 32) - 5).state(Form::USUAL).is_ok());
}
