//! Decisions in a perf.data can be left out.

use std::io::Cursor;

use schedlab_topology::CpuId;
use schedlab_trace::read::{Record, open};
use schedlab_trace::write::PerfData;
use schedlab_trace::{Comm, Event, Flags, Kind, Name, Pick, Sink};
use schedlab_units::{Pid, Time};

fn events() -> Vec<Event> {
    let event = |time, kind| Event {
        time: Time(time),
        cpu: CpuId(1),
        pid: Pid(7),
        tgid: Some(Pid(7)),
        comm: Comm::new(b"a"),
        flags: Flags::NONE,
        kind,
    };
    let pick = Pick { pid: Pid(8), reason: Name::from("ONLY_TASK"), numbers: vec![] };
    let (comm, pid, prio) = (Comm::new(b"b"), Pid(8), 120);
    vec![
        event(1_000, Kind::SchedWaking { comm, pid, prio, target_cpu: CpuId(1) }),
        event(2_000, Kind::Pick(Box::new(pick))),
        event(3_000, Kind::SchedWakeup { comm, pid, prio, target_cpu: CpuId(1) }),
    ]
}

fn read(file: Vec<u8>, without_decisions: bool) -> Vec<Event> {
    let mut reader = open(Cursor::new(file), || Ok(Cursor::new(Vec::new()))).unwrap();
    if without_decisions {
        reader.without_decisions();
    }
    reader
        .map(|record| match record.unwrap() {
            Record::Event(event) => event,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn all_but_decisions_is_read() {
    let mut perf = PerfData::new(Vec::new(), Cursor::new(Vec::new()), 2).with_decisions();
    for event in events() {
        perf.event(&event);
    }
    let file = perf.finish().unwrap();
    let (whole, without) = (read(file.clone(), false), read(file, true));
    assert!(matches!(whole[1].kind, Kind::Pick(_)), "{:?}", whole[1]);
    assert_eq!(without, [whole[0].clone(), whole[2].clone()]);
}
