//! What tasks do to each other and to groups while they run: where a hog is, and its share of a CPU, before and after.

use schedlab_machine::Machine;
use schedlab_sched::Kernel;
use schedlab_sim::checker::Checkers;
use schedlab_sim::{End, Simulation};
use schedlab_topology::CpuId;
use schedlab_trace::{Each, Event, Kind, Tee};
use schedlab_units::{Duration, Time};
use schedlab_workload::{WorkloadRead, WorkloadRow};

/// What a task did in a stretch of time.
#[derive(Clone, Debug, Default)]
struct Did {
    /// Its 1 ms steps.
    steps: usize,
    /// How often it came back after others.
    turns: usize,
    cpus: Vec<u16>,
}

/// Runs `tasks` on two CPUs for 100 ms, with a task on CPU 1 that does `act` after 50 ms; returns what "a" did before
/// and after.
fn halves(kernel: &str, tasks: &str, act: &str) -> [Did; 2] {
    let text = format!(
        "[workload]\nduration = \"100ms\"\n{tasks}\n[[workload.task]]\nname = \"root\"\ncpus = \"1\"\nstart_cpu = 1\n\
         program = [\"run 1us\", \"sleep 50ms\", \"{act}\", \"mark act\", \"sleep 1s\"]\n"
    );
    let WorkloadRead::Rows(rows) = WorkloadRead::parse(&text, "others.toml").unwrap() else { panic!() };
    let [WorkloadRow { workload, .. }] = &rows[..] else { panic!() };
    let (machine, kernel) = (Machine::preset("1x1x2").unwrap(), Kernel::parse(kernel).unwrap());
    let mut did: [Did; 2] = Default::default();
    let (mut last, mut half) = (Time::ZERO, 0);
    let each = |event: &Event| {
        let Kind::Mark { label, .. } = &event.kind else { return };
        if label.to_string() == "act" {
            half = 1;
        } else {
            let did = &mut did[half];
            did.steps += 1;
            did.turns += usize::from(event.time.since(last) > Duration::micros(1_500));
            last = event.time;
            let CpuId(cpu) = event.cpu;
            if !did.cpus.contains(&cpu) {
                did.cpus.push(cpu);
            }
        }
    };
    let mut sink = Tee(Each(each), Checkers::new(Duration::secs(5)));
    let outcome = Simulation::new(&machine, &kernel, workload).unwrap().run_checked(50, &mut sink);
    sink.1.assert_quiet(outcome.time);
    assert_eq!(outcome.end, End::Duration);
    did
}

const HOG: &str = "program = [\"loop forever\", \"run 1ms\", \"mark a 1\", \"end\"]";
const OTHER: &str = "[[workload.task]]\nname = \"b\"\ncpus = \"0\"\nstart_cpu = 0\nprogram = [\"loop forever\", \"run 1ms\", \"end\"]";

fn hog(keys: &str) -> String {
    format!("[[workload.task]]\nname = \"a\"\nstart_cpu = 0\n{keys}\n{HOG}\n")
}

#[test]
fn a_frozen_task_stops_and_goes_on_where_it_was() {
    for kernel in ["v5.5", "v6.12", "v7.2"] {
        let [before, after] = halves(kernel, &hog("cpus = \"0\""), "freeze a; mark act; sleep 20ms; thaw a");
        assert!(before.steps >= 45, "{kernel}: {before:?}");
        assert!((25..=30).contains(&after.steps), "{kernel}: it runs for 30 of 50 ms: {after:?}");
        // A sleeper stays asleep, and stops when it is woken.
        let sleeper = hog("cpus = \"0\"").replace("run 1ms", "sleep 1ms");
        let [_, after] = halves(kernel, &sleeper, "freeze a; mark act; sleep 20ms; thaw a");
        assert!((20..=30).contains(&after.steps), "{kernel}: {after:?}");
        let [_, never] = halves(kernel, &hog("cpus = \"0\""), "freeze a");
        assert!(never.steps <= 1, "{kernel}: {never:?}");
    }
}

#[test]
fn the_cpus_of_another_task_are_changed_wherever_it_is() {
    for kernel in ["v4.13", "v6.12"] {
        let sleeper = hog("cpus = \"0\"").replace("run 1ms", "sleep 30ms; run 1ms");
        for (tasks, how) in [(hog("cpus = \"0\""), "while it runs"), (sleeper, "while it sleeps")] {
            let [before, after] = halves(kernel, &tasks, "cpus-of a 1; sleep 2ms");
            assert_eq!((&before.cpus[..1], &after.cpus[..]), (&[0][..], &[1][..]), "{kernel}: {how}");
        }
    }
}

#[test]
fn policy_group_weight_and_quota_of_others_change_what_a_task_has() {
    for kernel in ["v5.5", "v6.12", "v7.2"] {
        let two = format!("{}{OTHER}", hog("cpus = \"0\""));
        let [before, after] = halves(kernel, &two, "sched-of a other nice=19");
        assert!(
            (18..=32).contains(&before.steps) && after.steps <= 8,
            "{kernel}: nice: {before:?} {after:?}"
        );
        let [_, after] = halves(kernel, &two, "sched-of a fifo priority=1");
        assert!(after.steps >= 44, "{kernel}: fifo: {after:?}");
        let of_group = |weight: u32, group: &str| {
            let hog = hog(&format!("cpus = \"0\"\n{group}"));
            format!("[workload.group]\n\"/g\" = {{ weight = {weight} }}\n{hog}{OTHER}")
        };
        let grouped = of_group(100, "group = \"/g\"");
        let [before, after] = halves(kernel, &grouped, "weight /g 1000");
        assert!(
            (18..=32).contains(&before.steps) && after.steps >= 38,
            "{kernel}: weight: {before:?} {after:?}"
        );
        let [_, after] = halves(kernel, &grouped, "quota /g 2ms period=20ms");
        assert!((3..=12).contains(&after.steps), "{kernel}: quota: {after:?}");
        let [_, after] = halves(kernel, &of_group(10, ""), "group-of a /g");
        assert!(after.steps <= 14, "{kernel}: group: {after:?}");
    }
}

#[test]
fn a_kernel_that_is_switched_decides_otherwise_from_then_on() {
    let two = format!("{}{OTHER}", hog("cpus = \"0\""));
    let [_, plain] = halves("v6.12", &two, "yield");
    let [before, long] = halves("v6.12", &two, "switch base_slice_ns=20000000");
    assert!(before.turns >= 6 && plain.turns >= 6, "{before:?} {plain:?}");
    assert!(long.turns <= 3, "slices are 20 ms: {long:?}");
    let text = "[workload]\n[[workload.task]]\nname = \"a\"\nprogram = \"switch NO_SUCH_RULE\"\n";
    let WorkloadRead::Rows(rows) = WorkloadRead::parse(text, "x.toml").unwrap() else { panic!() };
    let (machine, kernel) = (Machine::preset("2").unwrap(), Kernel::parse("v6.12").unwrap());
    let error = Simulation::new(&machine, &kernel, &rows[0].workload).unwrap_err();
    assert!(error.to_string().contains("SUCH_RULE"), "{error}");
}
