//! Influences from outside during a run: interrupts, noise, CPUs that go offline.

use schedlab_machine::{Machine, Without};
use schedlab_sched::{Kernel, PRESETS};
use schedlab_sim::checker::Checkers;
use schedlab_sim::{Change, Noise, Outcome, Past, Simulation, Timed};
use schedlab_topology::CpuId;
use schedlab_trace::{Each, Event, Kind, NullSink, Tee};
use schedlab_units::{Duration, Pid, Time};
use schedlab_workload::models::{Hogs, Ping};
use schedlab_workload::{
    CpuList, Dist, Op, Placed, Plug, ProgramBuilder, Quota, SourceSpec, SpecId, TaskSpec, Trigger, Workload,
    WorkloadBuilder,
};

fn ms(n: u64) -> Duration {
    Duration::millis(n)
}

/// Runs and gives each event to `see`.
fn run(simulation: &Simulation, mut see: impl FnMut(&Event)) -> Outcome {
    let mut sink = Tee(Each(|event: &Event| see(event)), Checkers::new(Duration::secs(5)));
    let outcome = simulation.run_checked(100, &mut sink);
    sink.1.assert_quiet(outcome.time);
    assert!(outcome.is_ok(), "{}", outcome.end);
    outcome
}

/// Bound hogs, each with this much work.
fn bound_hogs(cpus: &[u16], work: Duration) -> Workload {
    let mut w = WorkloadBuilder::new("hogs");
    let program = w.program("hog", |p| _ = p.run(work));
    for &cpu in cpus {
        let cpus = w.cpus(CpuList::new([CpuId(cpu)]).unwrap());
        w.task(TaskSpec { cpus: Some(cpus), ..TaskSpec::root("hog", program) });
    }
    w.finish().unwrap()
}

#[test]
fn tasks_leave_a_cpu_that_goes_and_come_back_to_it() {
    let machine = Machine::preset("1x4").unwrap();
    // Long enough for the longest interval between two passes.
    let workload = Hogs { wall: ms(600), ..Hogs::default() }.workload().unwrap();
    for kernel in PRESETS {
        let kernel = Kernel::parse(kernel).unwrap();
        let cpu = CpuId(2);
        let changes = vec![
            Timed { at: ms(100), change: Change::Offline(cpu) },
            Timed { at: ms(200), change: Change::Online(cpu) },
        ];
        let simulation = Simulation::new(&machine, &kernel, &workload).unwrap();
        let simulation = simulation.limit(ms(600)).changes(changes).unwrap();
        let mut times = Vec::new();
        let outcome = run(&simulation, |event| {
            if let Kind::SchedSwitch { next_pid, .. } = event.kind
                && event.cpu == cpu
                && next_pid.0 >= 1000
            {
                times.push(event.time);
            }
        });
        let from = |n: u64| outcome.began + ms(n);
        assert!(times.iter().any(|&t| t < from(100)), "{}: used at first", kernel.name);
        let while_gone = times.iter().filter(|&&t| from(101) < t && t < from(200)).count();
        assert_eq!(while_gone, 0, "{}: not used while it is gone", kernel.name);
        assert!(times.iter().any(|&t| t > from(200)), "{}: used again", kernel.name);
    }
}

#[test]
fn a_bound_task_may_run_elsewhere_when_its_cpu_is_gone() {
    let machine = Machine::preset("1x2").unwrap();
    let kernel = Kernel::parse("v6.12").unwrap();
    let workload = bound_hogs(&[1], ms(50));
    let changes = vec![Timed { at: ms(10), change: Change::Offline(CpuId(1)) }];
    let simulation = Simulation::new(&machine, &kernel, &workload).unwrap().changes(changes).unwrap();
    let mut last = None;
    run(&simulation, |event| {
        if let Kind::SchedSwitch { next_pid: Pid(1000), .. } = event.kind {
            last = Some(event.cpu);
        }
    });
    assert_eq!(last, Some(CpuId(0)));
}

/// It binds itself to a CPU whose stopper is already on the way to take that out of use.
#[test]
fn nobody_is_moved_to_a_cpu_that_left_meanwhile() {
    let machine = Machine::preset("1x2").unwrap();
    for kernel in PRESETS {
        let mut w = WorkloadBuilder::new("test");
        let cpus = w.cpus(CpuList::new([CpuId(1)]).unwrap());
        let program = w.program("leaves", |p| {
            p.op(Op::Hotplug { cpu: CpuId(1), to: Plug::Offline });
            p.op(Op::SetCpus { cpus: Some(cpus) });
            p.run(ms(5));
        });
        w.task(TaskSpec { start_cpu: Some(CpuId(0)), ..TaskSpec::root("leaves", program) });
        let workload = w.finish().unwrap();
        let parsed = Kernel::parse(kernel).unwrap();
        let mut last = None;
        run(&Simulation::new(&machine, &parsed, &workload).unwrap(), |event| {
            if let Kind::SchedSwitch { next_pid: Pid(1000), .. } = event.kind {
                last = Some(event.cpu);
            }
        });
        assert_eq!(last, Some(CpuId(0)), "{kernel}");
    }
}

/// Two hogs, a kernel thread bound to CPU 1, and a task that takes that CPU offline for 100 ms, and then its own, the
/// last one.
#[test]
fn a_task_takes_cpus_out_of_use_and_brings_them_back() {
    let machine = Machine::preset("1x2").unwrap();
    for kernel in PRESETS {
        let kernel = Kernel::parse(kernel).unwrap();
        let mut w = WorkloadBuilder::new("test");
        let hog = w.program("hog", |p| _ = p.run(ms(400)));
        w.task(TaskSpec::root("hog", hog));
        w.task(TaskSpec::root("hog", hog));
        let one = w.cpus(CpuList::new([CpuId(1)]).unwrap());
        let bound =
            w.program("bound/1", |p| _ = p.repeat(40, |p| _ = p.run(Duration::micros(10)).sleep(ms(7))));
        w.task(TaskSpec { cpus: Some(one), kthread: true, ..TaskSpec::root("bound/1", bound) });
        let plug = |cpu, to| Op::Hotplug { cpu: CpuId(cpu), to };
        let plugs = w.program("plugs", |p| {
            p.sleep(ms(50)).op(plug(1, Plug::Offline)).sleep(ms(100)).op(plug(0, Plug::Offline));
            p.sleep(ms(20)).op(plug(1, Plug::Active));
        });
        w.task(TaskSpec::root("plugs", plugs));
        let workload = w.finish().unwrap();
        let simulation = Simulation::new(&machine, &kernel, &workload).unwrap();
        let (mut hogs, mut bound) = (Vec::new(), Vec::new());
        let outcome = run(&simulation, |event| {
            let Kind::SchedSwitch { next_comm, .. } = event.kind else { return };
            match next_comm.as_bytes() {
                b"hog" => hogs.push((event.time, event.cpu)),
                b"bound/1" => bound.push((event.time, event.cpu)),
                _ => {}
            }
        });
        let on = |runs: &[(Time, CpuId)], cpu, from, to| {
            let (from, to) = (outcome.began + ms(from), outcome.began + ms(to));
            runs.iter().filter(|&&(time, on)| on == CpuId(cpu) && from < time && time < to).count()
        };
        let name = &kernel.name;
        assert!(
            on(&hogs, 1, 0, 50) > 0 && on(&hogs, 1, 55, 170) == 0 && on(&hogs, 1, 170, 800) > 0,
            "{name}"
        );
        assert!(on(&hogs, 0, 152, 170) > 0, "{name}: the last CPU stays");
        assert!(on(&bound, 1, 0, 50) > 0 && on(&bound, 1, 175, 800) > 0, "{name}");
        assert!(on(&bound, 0, 55, 170) > 0 && on(&bound, 1, 55, 170) == 0, "{name}: woken, it falls back");
    }
}

#[test]
fn changes_that_cannot_be_are_refused() {
    let machine = Machine::preset("1x2").unwrap();
    let kernel = Kernel::parse("v6.12").unwrap();
    let workload = bound_hogs(&[0], ms(1));
    let simulation = Simulation::new(&machine, &kernel, &workload).unwrap();
    for (changes, said) in [
        (vec![Change::Offline(CpuId(7))], "CPU 7 is not one of 2"),
        (
            vec![Change::Offline(CpuId(0)), Change::Offline(CpuId(1))],
            "no CPU is left online at 5ms; leave at least one",
        ),
        (
            vec![Change::Switch("preempt=half".into())],
            "preempt is one of none, voluntary, full, lazy, static/none, static/voluntary, static/full, auto/none, auto/voluntary, auto/full, not \"half\"",
        ),
    ] {
        let changes = changes.into_iter().map(|change| Timed { at: ms(5), change }).collect();
        assert_eq!(simulation.clone().changes(changes).unwrap_err().to_string(), said);
    }
}

/// A fair kernel hog with a fair waker: preempted late before the switch, at once behind it.
#[test]
fn the_preemption_model_can_be_switched_while_it_runs() {
    let machine = Machine::preset("1").unwrap();
    let kernel = Kernel::parse("v6.12+preempt=none").unwrap();
    let mut w = WorkloadBuilder::new("test");
    let hog = w.program("hog", |p| _ = p.repeat(20, |p| _ = p.run_kernel(ms(10))));
    w.task(TaskSpec::root("hog", hog));
    let waker = w.program("waker", |p| _ = p.repeat(30, |p| _ = p.run(Duration::micros(10)).sleep(ms(3))));
    w.task(TaskSpec::root("waker", waker));
    let workload = w.finish().unwrap();
    let changes = vec![Timed { at: ms(100), change: Change::Switch("preempt=full".into()) }];
    let simulation = Simulation::new(&machine, &kernel, &workload).unwrap().changes(changes).unwrap();
    let mut woken = Time::ZERO;
    let mut waits = Vec::new();
    let outcome = run(&simulation, |event| match event.kind {
        Kind::SchedWakeup { pid: Pid(1001), .. } => woken = event.time,
        Kind::SchedSwitch { next_pid: Pid(1001), .. } => waits.push((event.time, event.time.since(woken))),
        _ => {}
    });
    let longest = |from: u64, to: u64| {
        let inside = |t: &&(Time, Duration)| t.0 > outcome.began + ms(from) && t.0 < outcome.began + ms(to);
        waits.iter().filter(inside).map(|w| w.1).max().unwrap()
    };
    assert!(longest(20, 100) > ms(4), "{}", longest(20, 100));
    assert!(longest(115, 180) < ms(1), "{}", longest(115, 180));
}

/// Three hogs of 100 ms that may have half a CPU together.
#[test]
fn a_group_has_no_more_than_its_quota_under_any_kernel() {
    let machine = Machine::preset("1x4").unwrap();
    let mut w = WorkloadBuilder::new("test");
    let group = w.group("/q").unwrap();
    w.group_mut(group).quota = Some(Quota { quota: ms(50), period: ms(100), burst: Duration::ZERO });
    let program = w.program("hog", |p| _ = p.run(ms(100)));
    for _ in 0..3 {
        w.task(TaskSpec { group: Some(group), ..TaskSpec::root("hog", program) });
    }
    let workload = w.finish().unwrap();
    for kernel in PRESETS.iter().chain(&["v6.18"]) {
        let parsed = Kernel::parse(kernel).unwrap();
        let took = run(&Simulation::new(&machine, &parsed, &workload).unwrap(), |_| {}).elapsed();
        assert!(took > ms(480) && took < ms(620), "{kernel}: {took}");
    }
}

/// How long a bound hog of 100 ms takes with a source of interrupts on its CPU.
fn beside_interrupts(every_us: u64, hard_us: u64, soft_us: u64, machine: &Machine) -> Duration {
    let kernel = Kernel::parse("v6.12").unwrap();
    let mut w = WorkloadBuilder::new("test");
    let every = w.dist(Dist::Constant(Duration::micros(every_us)));
    w.source(SourceSpec {
        name: "net".into(),
        cpu: CpuId(0),
        trigger: Trigger::Every(every),
        hard: Duration::micros(hard_us),
        soft: Duration::micros(soft_us),
        posts: None,
    });
    let cpus = w.cpus(CpuList::new([CpuId(0)]).unwrap());
    let program = w.program("hog", |p| _ = p.run(ms(100)));
    w.task(TaskSpec { cpus: Some(cpus), ..TaskSpec::root("hog", program) });
    let workload = w.finish().unwrap();
    run(&Simulation::new(machine, &kernel, &workload).unwrap(), |_| {}).elapsed()
}

/// A machine on which only the sources' own time counts.
fn bare(without: &str) -> Machine {
    let mut machine = Machine::preset("1x2").unwrap();
    for name in Machine::constant_names().filter(|name| name.starts_with("cost.") || name.starts_with("ipi."))
    {
        machine.set(&name, 0).unwrap();
    }
    machine.set("softirq.entry_ns", 0).unwrap();
    machine.without(Without::parse(without).unwrap())
}

/// 5 of each 20 us are stolen: 100 ms of work take 133.
#[test]
fn interrupts_steal_time() {
    let took = beside_interrupts(20, 1, 4, &bare(""));
    assert!(took > Duration::micros(133_300) && took < Duration::micros(133_600), "{took}");
    let took = beside_interrupts(20, 1, 4, &bare("interrupts"));
    assert!(took < Duration::micros(100_100), "{took}");
}

/// The trace shows when handlers begin and end: 1 us hard and 4 us soft of each 20.
#[test]
fn interrupts_take_in_the_trace_what_they_take_from_the_cpu() {
    let machine = bare("");
    let kernel = Kernel::parse("v6.1").unwrap();
    let mut w = WorkloadBuilder::new("irq");
    let every = w.dist(Dist::Constant(Duration::micros(20)));
    w.source(SourceSpec {
        name: "a card".to_string(),
        cpu: CpuId(0),
        trigger: Trigger::Every(every),
        hard: Duration::micros(1),
        soft: Duration::micros(4),
        posts: None,
    });
    let cpus = w.cpus(CpuList::new([CpuId(0)]).unwrap());
    let program = w.program("hog", |p| _ = p.run(ms(10)));
    w.task(TaskSpec { cpus: Some(cpus), ..TaskSpec::root("hog", program) });
    let workload = w.finish().unwrap();

    let (mut began, mut taken, mut handlers) = (None, [0, 0], 0u64);
    let mut last = Time::ZERO;
    let simulation = Simulation::new(&machine, &kernel, &workload).unwrap();
    run(&simulation, |event| {
        assert!(event.time >= last, "time never goes back");
        last = event.time;
        match &event.kind {
            Kind::IrqHandlerEntry { irq: 0, name } => {
                assert_eq!(name, "a_card");
                handlers += 1;
                began = Some(event.time);
            }
            Kind::SoftirqEntry { .. } => began = Some(event.time),
            Kind::IrqHandlerExit { irq: 0, handled: true } => {
                taken[0] += event.time.since(began.take().expect("it began")).0;
            }
            Kind::SoftirqExit { .. } => taken[1] += event.time.since(began.take().expect("it began")).0,
            _ => {}
        }
    });
    assert!(handlers > 600, "13.3 ms hold 666: {handlers}");
    let whole = |part: u64, each: u64| (part + each) / each;
    assert!(whole(taken[0], 1_000).abs_diff(handlers) <= 1, "{taken:?} ns in {handlers} handlers");
    assert!(whole(taken[1], 4_000).abs_diff(handlers) <= 1, "{taken:?} ns in {handlers} handlers");
}

/// Softirqs want 18 of each 20 us: beyond 2 ms without a gap they become a fair task
/// that shares the CPU with the hog, which so gets half of what is left.
#[test]
fn too_many_soft_interrupts_become_a_task() {
    let took = beside_interrupts(20, 1, 30, &bare(""));
    assert!(took > ms(190) && took < ms(230), "{took}");
}

#[test]
fn ksoftirqd_appears_in_a_flood_of_ping() {
    let machine = Machine::preset("1x4").unwrap();
    let kernel = Kernel::parse("v6.1").unwrap();
    let ping = Ping { interval: Duration::nanos(1_500), ..Ping::default() };
    let workload = ping.workload().unwrap();
    let simulation = Simulation::new(&machine, &kernel, &workload).unwrap().limit(ms(60));
    let mut seen = false;
    run(&simulation, |event| {
        if let Kind::SchedSwitch { next_comm, .. } = event.kind {
            seen |= next_comm == "ksoftirqd/0";
        }
    });
    assert!(seen);
}

#[test]
fn noise_wakes_each_cpu_about_once_a_second() {
    let machine = Machine::preset("2x4").unwrap();
    let kernel = Kernel::parse("v6.12").unwrap();
    let workload = bound_hogs(&[0], Duration::secs(4));
    let simulation = Simulation::new(&machine, &kernel, &workload).unwrap();
    let count = |noise: Noise| {
        let (mut workers, mut daemons) = (0, 0);
        run(&simulation.clone().noise(noise), |event| {
            if let Kind::SchedSwitch { next_comm, .. } = event.kind {
                workers += u32::from(next_comm.to_string().starts_with("kworker/"));
                daemons += u32::from(next_comm.to_string().starts_with("daemon"));
            }
        });
        (workers, daemons)
    };
    assert_eq!(count(Noise::QUIET), (0, 0));
    let (workers, daemons) = count(Noise::IDLE_SERVER);
    assert!((16..60).contains(&workers), "32 expected of 8 CPUs in 4 s: {workers}");
    assert!((80..170).contains(&daemons), "120 expected of 6 daemons in 4 s: {daemons}");
}

/// Each hop as `CPU-CPU`, with the time since the run began in ms.
fn moves(workload: &Workload, changes: Vec<Timed>) -> Vec<String> {
    let machine = Machine::preset("1x4").unwrap();
    let kernel = Kernel::parse("v6.12").unwrap();
    let simulation = Simulation::new(&machine, &kernel, workload).unwrap().changes(changes).unwrap();
    let mut moves = Vec::new();
    run(&simulation, |event| {
        if let Kind::SchedMigrateTask { comm, orig_cpu, dest_cpu, .. } = event.kind {
            moves.push((event.time, format!("{comm} {orig_cpu}-{dest_cpu}")));
        }
    });
    let began = simulation.run(&mut NullSink).began;
    moves.into_iter().map(|(time, hop)| format!("{} {hop}", time.since(began).0 / 1_000_000)).collect()
}

/// One that runs is moved by the stopper, one that waits at once, one that sleeps when it wakes.
#[test]
fn a_task_is_bound_from_outside_whatever_it_does() {
    let mut w = WorkloadBuilder::new("test");
    let cpus = w.cpus(CpuList::new([CpuId(0)]).unwrap());
    let all = |p: &mut ProgramBuilder| _ = p.run(ms(50));
    let hog = w.program("hog", all);
    let sleeper = w.program("sleeper", |p| _ = p.sleep(ms(40)).run(ms(5)));
    let first = w.task(TaskSpec { cpus: Some(cpus), ..TaskSpec::root("first", hog) });
    let second = w.task(TaskSpec { cpus: Some(cpus), ..TaskSpec::root("second", hog) });
    let third = w.task(TaskSpec { cpus: Some(cpus), ..TaskSpec::root("third", sleeper) });
    let workload = w.finish().unwrap();
    let bind = |at, task, cpu| Timed { at: ms(at), change: Change::Bind { task, cpu: CpuId(cpu) } };
    let changes = vec![
        bind(10, first, 1),
        bind(10, second, 2),
        bind(11, third, 3),
        bind(20, first, 2),
        // It has ended: nothing happens.
        bind(200, first, 3),
    ];
    let moves = moves(&workload, changes);
    assert_eq!(moves, ["10 first 0-1", "10 second 0-2", "20 first 1-2", "48 third 0-3"]);
}

/// Nothing else moves it: the idle CPUs leave two hogs together.
#[test]
fn a_fork_from_outside_puts_the_child_where_it_is_set_and_balancing_can_be_off() {
    let mut w = WorkloadBuilder::new("test");
    let hog = w.program("hog", |p| _ = p.run(ms(50)));
    let parent = w.task(TaskSpec { start_cpu: Some(CpuId(1)), ..TaskSpec::root("parent", hog) });
    let child = w.task(TaskSpec::forked("child", hog));
    let unbound = w.task(TaskSpec { start_cpu: Some(CpuId(1)), ..TaskSpec::root("unbound", hog) });
    let workload = w.finish().unwrap();
    let fork = Timed { at: ms(5), change: Change::Fork { parent, child, cpu: CpuId(1) } };
    let off = Timed { at: ms(0), change: Change::NoDomains };
    assert_eq!(moves(&workload, vec![off, fork]), [] as [&str; 0]);
    let error = Change::Bind { task: SpecId(3), cpu: CpuId(0) };
    let machine = Machine::preset("1x4").unwrap();
    let kernel = Kernel::parse("v6.12").unwrap();
    let changes = vec![Timed { at: ms(0), change: error }];
    let simulation = Simulation::new(&machine, &kernel, &workload).unwrap();
    assert_eq!(simulation.changes(changes).unwrap_err().to_string(), "task 3 is not one of 3");
    assert_eq!(unbound, SpecId(2));
}

#[test]
fn a_new_task_goes_where_it_is_known_to_go_if_all_is_as_it_was() {
    let target = |from: u16, was_idle: bool, cpus: &[u16]| {
        let mut w = WorkloadBuilder::new("test");
        let hog = w.program("hog", |p| _ = p.run(ms(5)));
        let allowed = w.cpus(CpuList::new(cpus.iter().map(|&cpu| CpuId(cpu)).collect::<Vec<_>>()).unwrap());
        let placed = Some(Placed { from: CpuId(from), to: CpuId(3), was_idle, heard: None });
        let child = w.task(TaskSpec { placed, cpus: Some(allowed), ..TaskSpec::forked("child", hog) });
        let parent = w.program("parent", |p| _ = p.fork(child).run(ms(1)));
        w.task(TaskSpec { start_cpu: Some(CpuId(1)), ..TaskSpec::root("parent", parent) });
        let workload = w.finish().unwrap();
        let (machine, kernel) = (Machine::preset("1x4").unwrap(), Kernel::parse("v6.12").unwrap());
        let mut targets = Vec::new();
        run(&Simulation::new(&machine, &kernel, &workload).unwrap(), |event| {
            if let Kind::SchedWakeupNew { target_cpu, .. } = event.kind {
                targets.push(target_cpu.0);
            }
        });
        assert_eq!(targets[0], 1, "the parent");
        targets[1]
    };
    assert_eq!(target(1, true, &[0, 1, 2, 3]), 3);
    for (from, was_idle, cpus) in
        [(0, true, &[0, 1, 2, 3][..]), (1, false, &[0, 1, 2, 3]), (1, true, &[0, 2])]
    {
        assert_ne!(target(from, was_idle, cpus), 3, "{from} {was_idle} {cpus:?}");
    }
}

#[test]
fn a_run_begins_as_long_after_a_tick_as_it_is_set() {
    let (machine, workload) = (Machine::preset("1").unwrap(), bound_hogs(&[0], ms(1)));
    let kernel = Kernel::parse("v6.1").unwrap();
    let period = 1_000_000_000 / kernel.tunables.hz;
    let simulation = Simulation::new(&machine, &kernel, &workload).unwrap();
    for seed in 1..=3 {
        let since = |simulation: &Simulation| (simulation.run(&mut NullSink).began + ms(3)).0 % period;
        let seeded = simulation.clone().seed(seed);
        assert_ne!(since(&seeded), 700_000);
        assert_eq!(
            since(&seeded.past(Past {
                at: ms(3),
                since_tick: Some(Duration::micros(700)),
                ..Past::default()
            })),
            700_000
        );
    }
}

/// Two hogs of v6.1 share a CPU by ticks alone: without a tick no task is preempted.
#[test]
fn ticks_can_come_from_outside() {
    let machine = Machine::preset("1").unwrap();
    let kernel = Kernel::parse("v6.1").unwrap();
    let workload = bound_hogs(&[0, 0], ms(50));
    let tick = |at| Timed { at: ms(at), change: Change::Tick(CpuId(0)) };
    let simulation = Simulation::new(&machine, &kernel, &workload).unwrap();
    let simulation = simulation.changes(vec![tick(1), tick(33)]).unwrap();
    let mut times = Vec::new();
    let outcome = run(&simulation, |event| {
        if let Kind::SchedSwitch { prev_pid, .. } = event.kind
            && prev_pid != Pid::IDLE
        {
            times.push(event.time);
        }
    });
    let times: Vec<u64> = times.iter().map(|time| time.since(outcome.began).0 / 1_000_000).collect();
    assert_eq!(times, [33, 83, 100]);
}
