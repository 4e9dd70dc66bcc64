//! Locks of user space that are spun for: what they cost by how many spin, and that none is lost.

use schedlab_machine::{Machine, Mechanism, Without};
use schedlab_sched::Kernel;
use schedlab_sim::checker::Checkers;
use schedlab_sim::{End, Outcome, Simulation};
use schedlab_topology::CpuId;
use schedlab_trace::{Each, Event, Kind, Tee};
use schedlab_units::Duration;
use schedlab_workload::{CpuList, MutexId, MutexKind, MutexSpec, ProgramBuilder, TaskSpec, WorkloadBuilder};

fn us(n: u64) -> Duration {
    Duration::micros(n)
}

/// Runs `tasks` on CPUs `0..cpus` of a machine, each doing `body`; gives how it ended and how often a task slept.
fn run(
    machine: &Machine,
    (tasks, cpus): (u16, u16),
    (spin, sleep): (Duration, Duration),
    body: impl Fn(&mut ProgramBuilder, MutexId),
) -> (Outcome, u64) {
    let mut w = WorkloadBuilder::new("locks");
    let lock = w.mutex_of(MutexSpec { name: "l".into(), kind: MutexKind::Spin { spin, sleep }, pi: false });
    for task in 0..tasks {
        let program = w.program("p", |p| body(p, lock));
        let cpus = w.cpus(CpuList::new([CpuId(task % cpus)]).unwrap());
        w.task(TaskSpec { cpus: Some(cpus), ..TaskSpec::root("t", program) });
    }
    let (workload, kernel) = (w.finish().unwrap(), Kernel::parse("v6.12").unwrap());
    let mut slept = 0;
    let count = Each(|event: &Event| {
        let sleeps = |kind: &Kind| {
            matches!(kind, Kind::SchedSwitch { prev_state, prev_pid, .. }
            if !prev_state.is_runnable() && prev_pid.0 != 0 && prev_state.to_string() == "S")
        };
        slept += u64::from(sleeps(&event.kind));
    });
    let mut sink = Tee(count, Checkers::new(Duration::secs(5)));
    let simulation = Simulation::new(machine, &kernel, &workload).unwrap().limit(Duration::secs(5)).seed(3);
    let outcome = simulation.run_checked(20, &mut sink);
    sink.1.assert_quiet(outcome.time);
    (outcome, slept)
}

const FOREVER: Duration = Duration(u64::MAX);

fn hammer(p: &mut ProgramBuilder, lock: MutexId) {
    p.repeat(200, |p| _ = p.lock(lock).run(us(1)).unlock(lock));
}

/// Time from one owner to the next, ns.
fn each(machine: &Machine, tasks: u16) -> u64 {
    let (outcome, slept) = run(machine, (tasks, tasks), (FOREVER, Duration::ZERO), hammer);
    assert_eq!((outcome.end.clone(), slept), (End::Done, 0));
    outcome.elapsed().0 / (200 * u64::from(tasks))
}

#[test]
fn handing_on_takes_longer_the_more_spin() {
    let machine = Machine::preset("1x1x16").unwrap();
    let [few, some, many] = [2, 4, 12].map(|tasks| each(&machine, tasks));
    assert!(few < some && 2 * some < many + some, "{few} {some} {many}");
    assert!(many > few + 8 * machine.line.llc_ns.get() / 2, "{few} {many}");
    // Without lines that move between caches it does not.
    let without = machine.without(Without::one(Mechanism::CacheLines));
    let [few, many] = [2, 12].map(|tasks| each(&without, tasks));
    assert!(many < few + few / 4, "{few} {many}");
}

#[test]
fn a_task_that_has_spun_enough_sleeps() {
    let machine = Machine::preset("1x1x2").unwrap();
    let held = |p: &mut ProgramBuilder, lock: MutexId| _ = p.lock(lock).run(us(500)).unlock(lock);
    let (outcome, slept) = run(&machine, (2, 2), (us(50), Duration::ZERO), held);
    assert_eq!((outcome.end, slept), (End::Done, 1), "until it is given back");
    let (outcome, slept) = run(&machine, (2, 2), (us(50), us(100)), held);
    assert_eq!(outcome.end, End::Done);
    assert!((2..5).contains(&slept), "it tries again each 150 us: {slept}");
    let (outcome, slept) = run(&machine, (2, 2), (FOREVER, Duration::ZERO), held);
    assert_eq!((outcome.end, slept), (End::Done, 0));
}

#[test]
fn while_the_holder_is_preempted_others_spin_in_vain_and_no_lock_is_lost() {
    let machine = Machine::preset("1x1x4").unwrap();
    let long = |p: &mut ProgramBuilder, lock: MutexId| {
        p.repeat(20, |p| _ = p.lock(lock).run(us(300)).unlock(lock).run(us(50)));
    };
    let time = |tasks| {
        let (outcome, _) = run(&machine, (tasks, 4), (FOREVER, Duration::ZERO), long);
        assert_eq!(outcome.end, End::Done);
        outcome.elapsed().0 / u64::from(tasks)
    };
    let (alone, crowded) = (time(4), time(12));
    assert!(crowded > alone + alone / 10, "each section {alone} -> {crowded} ns");
}
