//! Perfetto traces, written and read back, and parsed with Perfetto's own schema.

mod common;

use std::io::Cursor;
use std::process::Command;

use expect_test::expect;
use proptest::prelude::*;
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::read::{Record, ftrace, perfetto};
use schedlab_trace::write::{Extras, Perfetto};
use schedlab_trace::{
    Balance, Candidate, Comm, Event, Flags, How, IdleType, Kind, Name, Pick, Placement, Preemption, Resched,
    Sink,
};
use schedlab_units::{Pid, Time};

fn write(events: &[Event], extras: Extras) -> Vec<u8> {
    let mut writer = Perfetto::new(Vec::new(), extras);
    events.iter().for_each(|event| writer.event(event));
    writer.finish().expect("memory can be written")
}

fn read(file: &[u8]) -> Vec<Event> {
    let records = perfetto::Reader::new(Cursor::new(file)).expect("a trace");
    records
        .map(|record| match record.expect("memory can be read") {
            Record::Event(event) => event,
            other => panic!("{other:?}"),
        })
        .collect()
}

/// Drops what a Perfetto trace cannot contain: depths, a name and a process per event, decisions.
fn as_held(events: &[Event]) -> Vec<Event> {
    let mut events: Vec<Event> = events.iter().filter(|event| !event.kind.is_decision()).cloned().collect();
    for event in &mut events {
        let (flags, _) = event.flags.to_record();
        event.flags = Flags::new(flags, 0, 0);
        event.comm = Comm::default();
        event.tgid = None;
        if let Kind::SchedProcessExit { group_dead, .. } = &mut event.kind {
            *group_dead = None;
        }
    }
    events.sort_by_key(|event| (event.time, event.cpu));
    events
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(trace in common::trace()) {
        let file = write(&trace, Extras::ALL);
        prop_assert_eq!(as_held(&read(&file)), as_held(&trace));
    }
}

#[test]
fn a_recording_keeps_its_events_and_names() {
    let text = include_bytes!("data/tracefs-6.1.txt");
    let events: Vec<Event> = ftrace::Reader::new(&text[..])
        .map(|record| match record.unwrap() {
            Record::Event(event) => event,
            other => panic!("{other:?}"),
        })
        .collect();
    let file = write(&events, Extras::NONE);
    let found = read(&file);
    assert_eq!(found.len(), events.len());
    let mut sorted = events.clone();
    sorted.sort_by_key(|event| (event.time, event.cpu));
    for (found, event) in found.iter().zip(&sorted) {
        assert_eq!((&found.kind, found.pid, found.time), (&event.kind, event.pid, event.time));
    }
    // The name of a task is known from the first event that contains it.
    assert!(found.iter().filter(|event| event.comm.is_empty()).count() <= 1);
    let named = |name: &str| found.iter().filter(|event| event.comm == name).count();
    assert!(named("<idle>") > 10 && named("pp-main") > 0, "{found:?}");
}

/// A wake-up with everything that is drawn for it, then a round of balancing.
fn story() -> Vec<Event> {
    let event = |time, cpu, pid, kind| Event {
        time: Time(time),
        cpu: CpuId(cpu),
        pid: Pid(pid),
        tgid: (pid == 7).then_some(Pid(5)),
        comm: Comm::from(if pid == 7 { "make" } else { "<idle>" }),
        flags: Flags::new(Flags::IRQS_OFF, 2, 0),
        kind,
    };
    let (comm, pid, prio) = (Comm::from("cc1"), Pid(8), 120);
    let candidate = |cpu, refused: &'static str| Candidate { cpu: CpuId(cpu), refused: Name::from(refused) };
    vec![
        event(100, 0, 7, Kind::SchedWaking { comm, pid, prio, target_cpu: CpuId(1) }),
        event(
            110,
            0,
            7,
            Kind::Placement(Box::new(Placement {
                pid,
                how: How::Wakeup,
                prev_cpu: CpuId(1),
                target: CpuId(0),
                cpu: CpuId(2),
                reason: Name::from("IDLE_CPU"),
                numbers: vec![(Name::from("nr_idle_scan"), 4)],
                examined: vec![candidate(1, "BUSY"), candidate(2, "")],
                remote: true,
            })),
        ),
        event(120, 2, 0, Kind::SchedWakeup { comm, pid, prio, target_cpu: CpuId(2) }),
        event(
            125,
            2,
            0,
            Kind::Preemption(Box::new(Preemption {
                pid,
                curr: Pid::IDLE,
                at: Name::from("wakeup"),
                reason: Name::from("CURR_IDLE"),
                resched: Resched::Full,
                numbers: vec![],
            })),
        ),
        event(
            130,
            2,
            0,
            Kind::Pick(Box::new(Pick { pid, reason: Name::from("ONLY_TASK"), numbers: vec![] })),
        ),
        event(
            131,
            2,
            0,
            Kind::SchedSwitch {
                prev_comm: Comm::from("swapper/2"),
                prev_pid: Pid::IDLE,
                prev_prio: 120,
                prev_state: schedlab_trace::TaskState::RUNNING,
                next_comm: comm,
                next_pid: pid,
                next_prio: prio,
            },
        ),
        event(
            140,
            0,
            7,
            Kind::Balance(Box::new(Balance {
                dst_cpu: CpuId(0),
                src_cpu: Some(CpuId(2)),
                domain: Name::from("MC"),
                idle: IdleType::NewlyIdle,
                local: CpuMask::of(4, [CpuId(0), CpuId(1)]),
                busiest: CpuMask::of(4, [CpuId(2), CpuId(3)]),
                reason: Name::from("MOVED"),
                migration: Name::from("task"),
                imbalance: 1,
                numbers: vec![],
                moved: vec![pid],
            })),
        ),
        event(141, 0, 7, Kind::SchedMigrateTask { comm, pid, prio, orig_cpu: CpuId(2), dest_cpu: CpuId(0) }),
        event(
            150,
            0,
            7,
            Kind::SchedStatRuntime { comm: Comm::from("make"), pid: Pid(7), runtime: 50, vruntime: None },
        ),
        event(160, 0, 7, Kind::Mark { label: "ops".into(), value: -3 }),
    ]
}

#[test]
fn the_schema_of_perfetto_reads_what_is_written() {
    let Some(python) = std::env::var_os("SCHEDLAB_PYTHON") else {
        println!("skipped: SCHEDLAB_PYTHON names no Python that has the package `perfetto`");
        return;
    };
    let file = std::env::temp_dir().join(format!("schedlab-perfetto-{}", std::process::id()));
    std::fs::write(&file, write(&story(), Extras::ALL)).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/perfetto_schema.py");
    let output = Command::new(python).arg(script).arg(&file).output().expect("python runs");
    std::fs::remove_file(&file).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    expect![[r#"
        thread 7 of 5: make
        100 task 7 of 5: wakeup wakes cc1 ->1
        110 task 8 of 8: placement IDLE_CPU ->1 pid=8 how=wakeup prev_cpu=1 target=0 cpu=2 remote=True reason=IDLE_CPU numbers={nr_idle_scan: 4} examined=[{cpu: 1, refused: BUSY}, {cpu: 2}]
        120 task 8 of 8: wakeup woken on CPU 2 ->1
        120 CPU 2 nr_running: 1
        125 task 8 of 8: preemption CURR_IDLE pid=8 curr=0 at=wakeup reason=CURR_IDLE resched=full
        130 task 8 of 8: pick ONLY_TASK pid=8 reason=ONLY_TASK
        131 task 8 of 8: wakeup runs 1->
        140 CPU 0 scheduler: balance MOVED dst_cpu=0 idle=newly_idle domain=MC src_cpu=2 local=0-1 busiest=2-3 reason=MOVED migration=task imbalance=1 moved=[8]
        141 CPU 2 nr_running: 0
        141 CPU 0 nr_running: 1
        100 [0] 7 sched_waking: comm: "cc1" pid: 8 prio: 120 target_cpu: 1
        141 [0] 7 sched_migrate_task: comm: "cc1" pid: 8 prio: 120 orig_cpu: 2 dest_cpu: 0
        150 [0] 7 generic sched_stat_runtime: event_name: "sched_stat_runtime" field {   name: "comm"   str_value: "make" } field {   name: "pid"   int_value: 7 } field {   name: "runtime"   uint_value: 50 }
        160 [0] 7 print: buf: "C|5|ops|-3\n"
        120 [2] 0 sched_wakeup: comm: "cc1" pid: 8 prio: 120 target_cpu: 2
        131 [2] 0 sched_switch: prev_comm: "swapper/2" prev_pid: 0 prev_prio: 120 prev_state: 0 next_comm: "cc1" next_pid: 8 next_prio: 120
    "#]].assert_eq(&String::from_utf8(output.stdout).unwrap());
}
