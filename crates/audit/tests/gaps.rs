//! Recordings with holes: kinds of events that were not recorded, and events that were lost. An audit may leave
//! decisions undecided, but it follows such recordings to their end.

use std::io::Read;
use std::path::Path;

use schedlab_audit::{Audit, AuditReport, Options};
use schedlab_sched::Kernel;
use schedlab_topology::Topology;
use schedlab_trace::read::{Record, ftrace};
use schedlab_trace::{Event, Sink};

/// Short recordings of tasks that sleep, fork, are moved and bound.
const RECORDINGS: [(&str, &str); 4] = [
    ("6.1/1x1x8", "fork"),
    ("6.12/2x2x2x2-smt", "barrier-nospin"),
    ("6.12/2x2x4", "hogs-runtime"),
    ("7.2/2x1x8-cluster", "stream-half"),
];

/// Maximum number of events of one recording to audit.
const EVENTS_MAX: usize = 300;

fn events(folder: &Path) -> Vec<Event> {
    let packed = std::fs::read(folder.join("trace.txt.gz")).expect("the recording is in the tree");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut text).expect("it is whole");
    let event = |record| match record {
        Ok(Record::Event(event)) => Some(event),
        _ => None,
    };
    ftrace::Reader::new(&text[..]).filter_map(event).take(EVENTS_MAX).collect()
}

/// Which events remain, by number and content.
type Keep<'a> = &'a dyn Fn(usize, &Event) -> bool;

/// The audit of the events that remain.
fn audited(topology: &Topology, kernel: &str, events: &[Event], keep: Keep<'_>) -> AuditReport {
    let mut audit = Audit::new(topology, &Kernel::parse(kernel).unwrap(), Options::default());
    let kept = events.iter().enumerate().filter(|(number, event)| keep(*number, event));
    kept.for_each(|(_, event)| audit.event(event));
    audit.finish().0
}

#[test]
fn recordings_with_holes_are_followed_to_their_end() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    for (machine, load) in RECORDINGS {
        let facts = std::fs::read_to_string(traces.join(machine).join("facts/topology.txt")).unwrap();
        let topology = Topology::from_sysfs_lines(machine, &facts).unwrap();
        let events = events(&traces.join(machine).join(load));
        let is = |event: &Event, name: &str| event.kind.name() == name;
        let holes: [(&str, Keep<'_>); 7] = [
            ("switches alone", &|_, event| is(event, "sched_switch")),
            ("no switches", &|_, event| !is(event, "sched_switch")),
            ("no migrations", &|_, event| !is(event, "sched_migrate_task")),
            ("no ends of wake-ups", &|_, event| !is(event, "sched_wakeup") && !is(event, "sched_wakeup_new")),
            ("one in three lost", &|number, _| number % 3 != 1),
            ("spans lost", &|number, _| number / 50 % 2 == 0),
            ("a CPU not recorded", &|_, event| event.cpu.index() != 1),
        ];
        let own = format!("v{}", machine.split('/').next().unwrap());
        for kernel in [own.as_str(), "v6.1"] {
            for (what, keep) in &holes {
                let kept = events.iter().enumerate().filter(|(number, event)| keep(*number, event)).count();
                let followed = audited(&topology, kernel, &events, keep).events;
                assert_eq!(followed, kept as u64, "{machine}/{load} as {kernel}, {what}");
            }
        }
    }
}

#[test]
fn a_task_that_ran_on_may_turn_up_elsewhere() {
    let text = "\
            a-7 [000] d..2. 1.000001: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=R ==> next_comm=b next_pid=8 next_prio=120\n\
            c-9 [001] d..2. 1.000009: sched_switch: prev_comm=c prev_pid=9 prev_prio=120 prev_state=R ==> next_comm=b next_pid=8 next_prio=120\n";
    let topology = Topology::preset_or_regular("1x2").unwrap();
    let events = read(text);
    for kernel in schedlab_sched::PRESETS {
        assert_eq!(audited(&topology, kernel, &events, &|_, _| true).events, 2, "{kernel}");
    }
}

/// One recorded kernel left out switches of some tasks, including idle ones: b runs and sleeps unseen.
#[test]
fn a_task_that_ran_unseen_does_not_seem_to_wait() {
    let text = "\
        <idle>-0 [000] d.h2. 1.000001: sched_waking: comm=b pid=8 prio=120 target_cpu=000\n\
        <idle>-0 [000] dNh3. 1.000002: sched_wakeup: comm=b pid=8 prio=120 target_cpu=000\n\
        <idle>-0 [000] d.h2. 1.010000: sched_waking: comm=a pid=7 prio=120 target_cpu=000\n\
        <idle>-0 [000] dNh3. 1.010001: sched_wakeup: comm=a pid=7 prio=120 target_cpu=000\n\
        <idle>-0 [000] d..2. 1.010002: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=7 next_prio=120\n\
             a-7 [000] d..2. 1.010100: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";
    let topology = Topology::preset_or_regular("1x2").unwrap();
    for kernel in schedlab_sched::PRESETS {
        let report = audited(&topology, kernel, &read(text), &|_, _| true);
        let picks = report.pick.counts;
        assert_eq!((report.unseen_switches, picks.agrees, picks.differs), (1, 2, 0), "{kernel}");
    }
}

/// Both are in a group without quota left, which the trace does not show: a is switched out for the idle task while b
/// waits.
#[test]
fn a_task_that_is_out_of_quota_was_not_switched_unseen() {
    let text = "\
             a-7 [000] d..2. 1.000001: sched_waking: comm=b pid=8 prio=120 target_cpu=000\n\
             a-7 [000] d..2. 1.000002: sched_wakeup: comm=b pid=8 prio=120 target_cpu=000\n\
             a-7 [000] d..2. 1.010100: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=R ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";
    let topology = Topology::preset_or_regular("1x2").unwrap();
    let unseen = |text: &str| audited(&topology, "v6.12", &read(text), &|_, _| true).unseen_switches;
    assert_eq!(unseen(text), 0);
    assert_eq!(unseen(&text.replace("prev_state=R", "prev_state=S")), 1);
}

/// The running task is the one that an event names, and the task it replaced may wait or sleep: until the CPU is idle,
/// the tasks waiting there are unknown.
#[test]
fn decisions_that_depend_on_an_unseen_switch_are_undecided() {
    let text = "\
             a-7 [000] d..2. 1.000001: sched_waking: comm=b pid=8 prio=120 target_cpu=000\n\
             a-7 [000] d..2. 1.000002: sched_wakeup: comm=b pid=8 prio=120 target_cpu=000\n\
             b-8 [000] d..2. 1.010002: sched_waking: comm=c pid=9 prio=120 target_cpu=000\n\
             b-8 [000] d..2. 1.010003: sched_wakeup: comm=c pid=9 prio=120 target_cpu=000\n\
             b-8 [000] d..2. 1.010100: sched_switch: prev_comm=b prev_pid=8 prev_prio=120 prev_state=S ==> next_comm=a next_pid=7 next_prio=120\n\
             a-7 [000] d..2. 1.010200: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";
    let topology = Topology::preset_or_regular("1x2").unwrap();
    let report = audited(&topology, "v6.12", &read(text), &|_, _| true);
    let picks = &report.pick;
    expect_test::expect![[r#"
        (
            2,
            Counts {
                agrees: 0,
                agrees_in_set: 0,
                differs: 0,
                undecided: 2,
            },
            {
                "UNMET": 1,
                "UNSEEN_SWITCH": 1,
            },
        )
    "#]]
    .assert_debug_eq(&(report.unseen_switches, picks.counts, &picks.undecided_by_fact));
}

/// While events are missing b ran on CPU 0 and fell asleep.
#[test]
fn decisions_on_a_cpu_that_lost_events_are_undecided() {
    let wakeups = |told: &str| {
        let text = format!(
            "\
             a-7 [000] d..2. 1.000001: sched_waking: comm=b pid=8 prio=120 target_cpu=000\n\
             a-7 [000] d..2. 1.000002: sched_wakeup: comm=b pid=8 prio=120 target_cpu=000\n\
             {told}\
             a-7 [000] d..2. 1.020000: sched_stat_runtime: comm=a pid=7 runtime=1000 [ns]\n\
             c-9 [001] d..2. 1.020002: sched_waking: comm=b pid=8 prio=120 target_cpu=000\n\
             c-9 [001] d..2. 1.020003: sched_wakeup: comm=b pid=8 prio=120 target_cpu=001\n"
        );
        let mut audit = Audit::new(
            &Topology::preset_or_regular("1x3").unwrap(),
            &Kernel::parse("v6.12").unwrap(),
            Options::default(),
        );
        for record in ftrace::Reader::new(text.as_bytes()) {
            match record.unwrap() {
                Record::Event(event) => audit.event(&event),
                Record::Lost(lost) => audit.lost(&lost),
                Record::Gap(gap) => panic!("{gap}"),
            }
        }
        let wakeup = audit.finish().0.wakeup;
        (wakeup.counts.differs, wakeup.undecided_by_fact.get("UNSEEN_SWITCH").copied())
    };
    assert_eq!(wakeups(""), (1, None));
    assert_eq!(wakeups("CPU:0 [LOST 400 EVENTS]\n"), (0, Some(1)));
    assert_eq!(wakeups("CPU:2 [LOST 400 EVENTS]\n"), (1, None));
}

fn read(text: &str) -> Vec<Event> {
    ftrace::Reader::new(text.as_bytes())
        .map(|record| match record.unwrap() {
            Record::Event(event) => event,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_task_is_born_with_the_number_of_one_that_lives() {
    let born = |us: u32, prio: u32, cpu: u32| {
        format!(
            " a-9 [000] d..2. 1.{us:06}: sched_wakeup_new: comm=a pid=7 prio={prio} target_cpu={cpu:03}\n"
        )
    };
    let switch = |us: u32, cpu: u32, prev: &str, next: &str| {
        format!(
            " {prev} [{cpu:03}] d..2. 1.{us:06}: sched_switch: prev_comm=x prev_pid={} prev_prio=120 prev_state=R \
             ==> next_comm=a next_pid={next} next_prio=120\n",
            prev.rsplit('-').next().unwrap()
        )
    };
    let fork = " a-9 [000] d..2. 1.000050: sched_process_fork: comm=a pid=9 child_comm=a child_pid=7\n";
    for kernel in ["v5.10", "v6.1", "v6.12", "v7.2"] {
        for text in [
            // Of another class, and on another CPU, while it waits.
            born(10, 98, 1) + &switch(20, 2, "<idle>-0", "8") + &born(60, 120, 2),
            born(10, 120, 1)
                + &born(60, 98, 2)
                + &switch(80, 1, "a-7", "0")
                + &switch(90, 2, "<idle>-0", "8"),
            // While it runs; its new number is its parent's.
            born(10, 120, 1)
                + &switch(20, 1, "<idle>-0", "7")
                + fork
                + &born(60, 120, 2)
                + &switch(80, 1, "a-7", "9"),
            fork.to_owned() + fork + &born(60, 120, 1) + &fork.replace("pid=9", "pid=7"),
        ] {
            let topology = Topology::regular("1x1x4").unwrap();
            let mut audit = Audit::new(&topology, &Kernel::parse(kernel).unwrap(), Options::default());
            for record in ftrace::Reader::new(text.as_bytes()) {
                let Record::Event(event) = record.unwrap() else { panic!("{text}") };
                audit.event(&event);
            }
            let report = audit.finish().0;
            assert_eq!(report.events as usize, text.lines().count());
        }
    }
}

#[test]
fn a_cpu_has_one_stopper_whatever_their_numbers() {
    let wakes = |us: u32, pid: u32| {
        format!(
            " a-9 [000] d..2. 1.{us:06}: sched_wakeup: comm=migration/1 pid={pid} prio=0 target_cpu=001\n"
        )
    };
    let text = wakes(10, 20) + &wakes(20, 21) + &wakes(30, 20);
    let topology = Topology::regular("1x1x2").unwrap();
    let mut audit = Audit::new(&topology, &Kernel::parse("v6.12").unwrap(), Options::default());
    for record in ftrace::Reader::new(text.as_bytes()) {
        let Record::Event(event) = record.unwrap() else { panic!("{text}") };
        audit.event(&event);
    }
    assert_eq!(audit.finish().0.unseen_switches, 2);
}
