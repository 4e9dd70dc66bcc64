//! When a CPU notices a timer in a tick, or a new task in its queue.

use schedlab_machine::{Machine, Without};
use schedlab_sched::Kernel;
use schedlab_sim::{Past, Simulation};
use schedlab_topology::CpuId;
use schedlab_trace::{Each, Event, Flags, Kind};
use schedlab_units::{Duration, Pid, Time};
use schedlab_workload::{Miss, Placed, Start, TaskSpec, Timer, Workload, WorkloadBuilder};

fn ms(n: u64) -> Duration {
    Duration::millis(n)
}

/// Runs under v6.12 with all kernel costs off; 3 ms after the beginning it is 700 us after a tick. Returns when it
/// began.
fn run(machine: &str, workload: &Workload, see: impl FnMut(&Event)) -> Time {
    let machine = Machine::preset(machine).unwrap().without(Without::parse("kernel-costs").unwrap());
    let past = Past { at: ms(3), since_tick: Some(Duration::micros(700)), ..Past::default() };
    let kernel = Kernel::parse("v6.12").unwrap();
    let outcome = Simulation::new(&machine, &kernel, workload).unwrap().past(past).run(&mut Each(see));
    assert!(outcome.is_ok(), "{}", outcome.end);
    outcome.began
}

/// A task of a busy CPU, a kernel thread or not, sleeps until exactly the time of a tick: what happens then, and who
/// pays for it.
#[test]
fn timers_of_kernel_threads_expire_in_the_softirq_of_a_tick() {
    let at_tick = |kthread: bool| {
        let mut w = WorkloadBuilder::new("test");
        let hog = w.program("hog", |p| _ = p.run(ms(20)));
        w.task(TaskSpec { start: Start::At(ms(1)), ..TaskSpec::root("hog", hog) });
        let sleeper = w.program("sleeper", |p| {
            p.timer_wait(Timer::Own(0), Duration::micros(10_300), Miss::KeepGrid).run(ms(1));
        });
        w.task(TaskSpec { kthread, ..TaskSpec::root("sleeper", sleeper) });
        let workload = w.finish().unwrap();
        let mut seen = Vec::new();
        let began = run("1", &workload, |event| {
            let what = match event.kind {
                Kind::SchedStatRuntime { .. } if event.flags.has(Flags::HARDIRQ) => "charge",
                Kind::SchedWaking { .. } if event.flags.has(Flags::SOFTIRQ) => "softirq wakes",
                Kind::SchedWaking { .. } => "hardirq wakes",
                Kind::SchedSwitch { .. } => "switch",
                _ => return,
            };
            seen.push((event.time, what));
        });
        seen.retain(|(time, _)| time.since(began) == Duration::micros(10_300));
        seen.into_iter().map(|(_, what)| what).collect::<Vec<_>>()
    };
    assert_eq!(at_tick(true), ["charge", "softirq wakes", "switch"]);
    assert_eq!(at_tick(false), ["hardirq wakes", "charge", "switch"]);
}

/// A busy CPU notices a new task after the given delay, and an idle one too.
#[test]
fn a_cpu_hears_of_a_new_task_as_late_as_it_is_known_to() {
    let began = |was_idle: bool, heard: u64| {
        let mut w = WorkloadBuilder::new("test");
        let hog = w.program("hog", |p| _ = p.run(ms(30)));
        if !was_idle {
            w.task(TaskSpec { start_cpu: Some(CpuId(3)), ..TaskSpec::root("hog", hog) });
        }
        let child = w.program("child", |p| _ = p.run(ms(1)));
        let heard = Some(Duration::micros(heard));
        let placed = Some(Placed { from: CpuId(1), to: CpuId(3), was_idle, heard });
        let child = w.task(TaskSpec { placed, ..TaskSpec::forked("child", child) });
        // Between two ticks, after more than a slice.
        let parent = w.program("parent", |p| _ = p.run(Duration::micros(13_000)).fork(child).run(ms(5)));
        w.task(TaskSpec { start_cpu: Some(CpuId(1)), ..TaskSpec::root("parent", parent) });
        let workload = w.finish().unwrap();
        let (mut forked, mut ran) = (None, None);
        run("1x4", &workload, |event| match event.kind {
            Kind::SchedProcessFork { .. } => forked = Some(event.time),
            Kind::SchedSwitch { next_pid, .. }
                if event.cpu == CpuId(3) && next_pid != Pid::IDLE && forked.is_some() =>
            {
                ran = ran.or(Some(event.time));
            }
            _ => {}
        });
        ran.unwrap().since(forked.unwrap()).0 / 1000
    };
    assert_eq!([began(true, 1), began(true, 900), began(false, 1), began(false, 900)], [1, 900, 1, 900]);
}
