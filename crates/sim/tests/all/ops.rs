//! What each op does, as short traces that a person can read: time in us, CPU, what.
//!
//! The machine has no idle states and every price of the kernel is a round number, so
//! the times can be worked out by hand: a system call 1 us, a wake-up 2, a switch 10,
//! going to sleep 1, an interrupt between CPUs 5 (or 5 until an idle CPU that watches
//! its flags continues), a timer's interrupt 1, no timer slack.

use expect_test::{Expect, expect};
use schedlab_machine::Machine;
use schedlab_sched::Kernel;
use schedlab_sim::checker::Checkers;
use schedlab_sim::{End, Outcome, Simulation};
use schedlab_topology::CpuId;
use schedlab_trace::{Each, Event, Kind, Tee};
use schedlab_units::{Duration, Pid, Time};
use schedlab_workload::{
    ChannelKind, Completion, CpuList, DeviceSpec, Dist, Miss, Op, Plug, ProgramBuilder, QueueKind, SpecId,
    TaskSpec, Timer, WorkloadBuilder,
};

fn us(n: u64) -> Duration {
    Duration::micros(n)
}

fn machine(shape: &str) -> Machine {
    let mut machine = Machine::preset(shape).unwrap();
    for name in Machine::constant_names().filter(|name| name.starts_with("cost.") || name.starts_with("ipi."))
    {
        machine.set(&name, 0).unwrap();
    }
    for (name, ns) in [
        ("cost.syscall_ns", 1_000),
        ("cost.wakeup_ns", 2_000),
        ("cost.context_switch_ns", 10_000),
        ("cost.sleep_ns", 1_000),
        ("cost.timer_irq_ns", 1_000),
        ("cost.clone_thread_ns", 20_000),
        ("cost.fork_ns", 30_000),
        ("cost.clear_mbps", 4_000),
        ("cost.pipe_write_ns", 500),
        ("ipi.deliver_ns", 5_000),
        ("ipi.polling_ns", 5_000),
    ] {
        machine.set(name, ns).unwrap();
    }
    machine
}

/// An event in a short line, with the time since the run began.
fn line(event: &Event, begin: Time) -> Option<String> {
    let ns = event.time.since(begin).0;
    let at = |what: String| Some(format!("{}.{:03} [{}] {what}", ns / 1_000, ns % 1_000, event.cpu));
    match &event.kind {
        Kind::SchedSwitch { prev_comm, prev_pid, prev_state, next_comm, next_pid, .. } => {
            let name = |comm: String, pid: Pid| if pid == Pid::IDLE { "idle".to_string() } else { comm };
            let prev = name(prev_comm.to_string(), *prev_pid);
            let next = name(next_comm.to_string(), *next_pid);
            at(format!("{prev} {prev_state} -> {next}"))
        }
        Kind::SchedWakeup { comm, target_cpu, .. } => at(format!("wakeup {comm} on {target_cpu}")),
        Kind::SchedWakeupNew { comm, target_cpu, .. } => at(format!("new {comm} on {target_cpu}")),
        Kind::SchedMigrateTask { comm, orig_cpu, dest_cpu, .. } => {
            at(format!("migrate {comm} {orig_cpu} -> {dest_cpu}"))
        }
        Kind::SchedProcessExit { comm, .. } => at(format!("exit {comm}")),
        Kind::Mark { label, value } => at(format!("mark {label} {value}")),
        _ => None,
    }
}

/// Runs what `write` puts into a workload; tasks are bound to CPUs by their specs.
fn run(shape: &str, kernel: &str, write: impl FnOnce(&mut WorkloadBuilder)) -> (String, Outcome) {
    let machine = machine(shape);
    let kernel = Kernel::parse(kernel).unwrap();
    let mut w = WorkloadBuilder::new("test");
    write(&mut w);
    let workload = w.finish().unwrap();
    let mut lines = Vec::new();
    // The first thing that happens is that a task begins.
    let mut begin = None;
    let tell = Each(|event: &Event| {
        if matches!(event.kind, Kind::SchedWakeupNew { .. }) || begin.is_some() {
            lines.extend(line(event, *begin.get_or_insert(event.time)));
        }
    });
    let mut sink = Tee(tell, Checkers::new(Duration::secs(5)));
    let simulation = Simulation::new(&machine, &kernel, &workload).unwrap().limit(Duration::secs(1));
    let outcome = simulation.run_checked(1, &mut sink);
    sink.1.assert_quiet(outcome.time);
    (lines.join("\n") + "\n", outcome)
}

fn check(shape: &str, kernel: &str, write: impl FnOnce(&mut WorkloadBuilder), expected: Expect) {
    let (trace, outcome) = run(shape, kernel, write);
    expected.assert_eq(&trace);
    assert!(outcome.is_ok(), "{}", outcome.end);
}

/// A task bound to a CPU.
fn bound(w: &mut WorkloadBuilder, name: &str, cpu: u16, body: impl FnOnce(&mut ProgramBuilder)) -> SpecId {
    let program = w.program(name, body);
    let cpus = w.cpus(CpuList::new([CpuId(cpu)]).unwrap());
    w.task(TaskSpec { cpus: Some(cpus), start_cpu: Some(CpuId(cpu)), ..TaskSpec::root(name, program) })
}

#[test]
fn run_and_sleep() {
    check(
        "1",
        "v6.1",
        |w| _ = bound(w, "a", 0, |p| _ = p.run(us(100)).sleep(us(200)).run(us(50))),
        expect![[r#"
            0.000 [0] new a on 0
            7.000 [0] idle R -> a
            117.000 [0] a S -> idle
            317.000 [0] wakeup a on 0
            317.000 [0] idle R -> a
            380.000 [0] exit a
            380.000 [0] a Z -> idle
        "#]],
    );
}

/// Two tasks that run by the clock share a CPU: each still ends when its time is over, at
/// the end of a block.
#[test]
fn a_task_that_runs_by_the_clock_ends_by_the_clock() {
    let (trace, outcome) = run("1", "v6.1", |w| {
        for name in ["a", "b"] {
            bound(w, name, 0, |p| _ = p.run_wall(Duration::millis(40), us(300)));
        }
    });
    let ends: Vec<f64> = trace
        .lines()
        .filter(|line| line.contains(" exit "))
        .map(|line| line.split(' ').next().unwrap().parse::<f64>().unwrap() / 1_000.0)
        .collect();
    assert!(outcome.is_ok());
    // The first ends within a block of its 40 ms, the second when it then gets the CPU
    // for the rest of its own; it had begun as much as a slice later.
    assert!(ends[0] >= 40.0 && ends[0] < 40.4, "{ends:?}");
    assert!(ends[1] > ends[0] && ends[1] < 53.0, "{ends:?}");
}

#[test]
fn a_wake_up_of_a_sleeper_on_another_cpu() {
    check(
        "2",
        "v6.1",
        |w| {
            let sem = w.sem("sem", 0);
            bound(w, "waiter", 1, |p| _ = p.sem_wait(sem).run(us(30)));
            bound(w, "poster", 0, |p| _ = p.run(us(100)).sem_post(sem).run(us(100)));
        },
        expect![[r#"
            0.000 [1] new waiter on 1
            0.000 [0] new poster on 0
            7.100 [0] idle R -> poster
            7.150 [1] idle R -> waiter
            17.300 [1] waiter S -> idle
            125.351 [1] wakeup waiter on 1
            125.351 [1] idle R -> waiter
            165.602 [1] exit waiter
            165.602 [1] waiter Z -> idle
            220.351 [0] exit poster
            220.351 [0] poster Z -> idle
        "#]],
    );
}

#[test]
fn a_mutex_is_handed_on() {
    check(
        "2",
        "v6.1",
        |w| {
            let mutex = w.mutex("m");
            bound(w, "first", 0, |p| _ = p.lock(mutex).run(us(100)).unlock(mutex));
            bound(w, "second", 1, |p| _ = p.run(us(20)).lock(mutex).run(us(50)).unlock(mutex));
        },
        expect![[r#"
            0.000 [0] new first on 0
            0.000 [1] new second on 1
            7.100 [0] idle R -> first
            7.150 [1] idle R -> second
            37.300 [1] second S -> idle
            120.452 [0] exit first
            120.452 [0] first Z -> idle
            125.452 [1] wakeup second on 1
            125.452 [1] idle R -> second
            185.704 [1] exit second
            185.704 [1] second Z -> idle
        "#]],
    );
}

#[test]
fn a_condition_wakes_all_and_each_takes_the_mutex() {
    check(
        "3",
        "v6.1",
        |w| {
            let (mutex, cond) = (w.mutex("m"), w.cond("c"));
            for (name, cpu) in [("a", 0), ("b", 1)] {
                bound(w, name, cpu, |p| {
                    p.lock(mutex).cond_wait(cond, mutex).run(us(20)).unlock(mutex);
                });
            }
            bound(w, "c", 2, |p| _ = p.run(us(100)).broadcast(cond));
        },
        expect![[r#"
            0.000 [0] new a on 0
            0.000 [1] new b on 1
            0.000 [2] new c on 2
            7.100 [0] idle R -> a
            7.150 [1] idle R -> b
            7.200 [2] idle R -> c
            17.201 [0] a S -> idle
            17.351 [1] b S -> idle
            122.801 [2] exit c
            122.801 [2] c Z -> idle
            125.601 [0] wakeup a on 0
            125.601 [0] idle R -> a
            127.801 [1] wakeup b on 1
            127.801 [1] idle R -> b
            138.001 [1] b S -> idle
            159.103 [0] exit a
            159.103 [0] a Z -> idle
            164.103 [1] wakeup b on 1
            164.103 [1] idle R -> b
            194.355 [1] exit b
            194.355 [1] b Z -> idle
        "#]],
    );
}

#[test]
fn a_barrier_is_spun_at_and_then_slept_on() {
    check(
        "3",
        "v6.1",
        |w| {
            let barrier = w.barrier("b", 3, us(100));
            for (name, cpu, work) in [("long", 0, 300), ("short", 1, 50), ("middle", 2, 250)] {
                bound(w, name, cpu, |p| _ = p.run(us(work)).barrier(barrier).run(us(10)));
            }
        },
        expect![[r#"
            0.000 [0] new long on 0
            0.000 [1] new short on 1
            0.000 [2] new middle on 2
            7.100 [0] idle R -> long
            7.150 [1] idle R -> short
            7.200 [2] idle R -> middle
            167.401 [1] short S -> idle
            325.351 [1] wakeup short on 1
            325.351 [1] idle R -> short
            327.100 [2] exit middle
            327.100 [2] middle Z -> idle
            330.351 [0] exit long
            330.351 [0] long Z -> idle
            345.551 [1] exit short
            345.551 [1] short Z -> idle
        "#]],
    );
}

#[test]
fn what_tasks_share_comes_from_where_it_was_written() {
    // 3840 bytes are 60 lines, six at a time: ten times the latency. The cache gives a second reader its neighbour's
    // copy, a copy that is still valid takes no time, and the next write invalidates all of them.
    let body = |w: &mut WorkloadBuilder| {
        let (shared, read) = (w.region("shared", 1 << 20), w.label("read"));
        bound(w, "writer", 0, |p| {
            p.write_shared(shared, 3_840)
                .sleep(us(500))
                .mark(read, 0)
                .write_shared(shared, 3_840)
                .mark(read, 1);
        });
        for (name, cpu, at) in [("near", 1, 100), ("far", 2, 200), ("beside", 3, 300)] {
            bound(w, name, cpu, |p| {
                p.sleep(us(at)).mark(read, 0).read_shared(shared, 3_840).mark(read, 1);
                p.read_shared(shared, 3_840).mark(read, 2);
            });
        }
    };
    check(
        "1x2x2x1",
        "v6.12",
        body,
        expect![[r#"
        0.000 [0] new writer on 0
        0.000 [1] new near on 1
        0.000 [2] new far on 2
        0.000 [3] new beside on 3
        7.100 [0] idle R -> writer
        7.150 [1] idle R -> near
        7.250 [2] idle R -> far
        7.300 [3] idle R -> beside
        17.300 [1] near S -> idle
        17.550 [2] far S -> idle
        17.600 [3] beside S -> idle
        18.101 [0] writer S -> idle
        117.300 [1] wakeup near on 1
        117.300 [1] idle R -> near
        130.300 [1] mark read 0
        130.801 [1] mark read 1
        130.802 [1] mark read 2
        130.802 [1] exit near
        130.802 [1] near Z -> idle
        217.550 [2] wakeup far on 2
        217.550 [2] idle R -> far
        230.550 [2] mark read 0
        231.551 [2] mark read 1
        231.552 [2] mark read 2
        231.552 [2] exit far
        231.552 [2] far Z -> idle
        317.600 [3] wakeup beside on 3
        317.600 [3] idle R -> beside
        330.600 [3] mark read 0
        330.801 [3] mark read 1
        330.802 [3] mark read 2
        330.802 [3] exit beside
        330.802 [3] beside Z -> idle
        518.101 [0] wakeup writer on 0
        518.101 [0] idle R -> writer
        531.101 [0] mark read 0
        532.102 [0] mark read 1
        532.102 [0] exit writer
        532.102 [0] writer Z -> idle
    "#]],
    );
}

#[test]
fn a_pipe_wakes_its_reader_once() {
    check(
        "2",
        "v6.1",
        |w| {
            let pipe = w.pipe("p");
            bound(w, "reader", 1, |p| _ = p.repeat(3, |p| _ = p.read(pipe, 100).run(us(5))));
            bound(w, "writer", 0, |p| {
                p.run(us(50)).repeat(3, |p| _ = p.write(pipe, 100)).run(us(100));
            });
        },
        expect![[r#"
            0.000 [1] new reader on 1
            0.000 [0] new writer on 0
            7.100 [0] idle R -> writer
            7.150 [1] idle R -> reader
            17.300 [1] reader S -> idle
            74.900 [1] wakeup reader on 1
            74.900 [1] idle R -> reader
            103.116 [1] exit reader
            103.116 [1] reader Z -> idle
            173.900 [0] exit writer
            173.900 [0] writer Z -> idle
        "#]],
    );
}

/// A full pipe of two pages and three writers that wait. The reader takes a little, which
/// frees no page, then the rest of the page.
#[test]
fn whom_a_read_wakes_of_three_that_wait_to_write() {
    let woken = |kernel: &str| -> String {
        let (trace, outcome) = run("4", kernel, |w| {
            let (pipe, mark) = (w.channel("pipe", ChannelKind::Pipe, 8_192), w.label("read"));
            for cpu in 1..4 {
                bound(w, "writer", cpu, |p| _ = p.run(us(50)).write(pipe, 4_096));
            }
            bound(w, "reader", 0, |p| {
                p.write(pipe, 8_192).run(us(200)).mark(mark, 1).read(pipe, 100).run(us(200));
                p.mark(mark, 2).read(pipe, 3_996).run(us(200)).mark(mark, 3);
                p.repeat(4, |p| _ = p.read(pipe, 4_096).run(us(200)));
            });
        });
        assert!(outcome.is_ok(), "{}", outcome.end);
        let reads: Vec<&str> = trace.split(" mark ").collect();
        format!("{} {}", reads[1].matches("wakeup writer").count(), reads[2].matches("wakeup writer").count())
    };
    // After a little, after the page.
    for (kernel, counts) in [
        ("v4.13", "0 3"),
        ("v5.5", "3 3"),
        ("v6.12", "1 1"),
        ("v7.2", "0 1"),
        ("v7.2+PIPE_WAKE=all", "0 3"),
        ("v4.13+PIPE_WAKE=one_if_freed", "0 1"),
    ] {
        assert_eq!(woken(kernel), counts, "{kernel}");
    }
}

#[test]
fn a_thread_is_made_and_joined() {
    check(
        "2",
        "v6.1",
        |w| {
            let process = w.process();
            let program = w.program("child", |p| _ = p.own_comm().run(us(100)));
            let child = w.task(TaskSpec::forked("child", program).thread_of(process));
            let main =
                w.program("main", |p| _ = p.run(us(10)).fork(child).run(us(20)).join(child).run(us(5)));
            w.task(TaskSpec::root("main", main).thread_of(process));
        },
        expect![[r#"
            0.000 [0] new main on 0
            7.200 [0] idle R -> main
            47.200 [0] new main on 1
            55.200 [1] idle R -> main
            70.200 [0] main S -> idle
            166.450 [1] exit child
            166.450 [1] child X -> idle
            173.650 [0] wakeup main on 0
            173.650 [0] idle R -> main
            188.850 [0] exit main
            188.850 [0] main Z -> idle
        "#]],
    );
}

#[test]
fn a_missed_timer_keeps_to_its_grid() {
    check(
        "1",
        "v6.1",
        |w| {
            let label = w.label("round {0}");
            bound(w, "periodic", 0, |p| {
                p.repeat(4, |p| {
                    p.timer_wait(Timer::Own(0), us(100), Miss::KeepGrid).mark(label, 0);
                    p.run(us(130));
                });
            });
        },
        expect![[r#"
            0.000 [0] new periodic on 0
            7.000 [0] idle R -> periodic
            17.000 [0] periodic S -> idle
            100.000 [0] wakeup periodic on 0
            100.000 [0] idle R -> periodic
            113.000 [0] mark round 0 0
            244.000 [0] mark round 1 0
            375.000 [0] mark round 2 0
            506.000 [0] mark round 3 0
            636.000 [0] exit periodic
            636.000 [0] periodic Z -> idle
        "#]],
    );
}

#[test]
fn a_device_interrupts_and_the_next_request_follows() {
    check(
        "2",
        "v6.1",
        |w| {
            let service = w.dist(Dist::Constant(us(100)));
            let spec =
                DeviceSpec { name: "disk".into(), service, depth: 1, completion: Completion::IrqSubmitter };
            let disk = w.device(spec);
            for (name, cpu) in [("a", 0), ("b", 1)] {
                bound(w, name, cpu, |p| _ = p.block_read(disk, 4096).run(us(5)));
            }
        },
        expect![[r#"
            0.000 [0] new a on 0
            0.000 [1] new b on 1
            7.100 [0] idle R -> a
            7.150 [1] idle R -> b
            17.100 [0] a D -> idle
            17.300 [1] b D -> idle
            117.100 [0] wakeup a on 0
            117.100 [0] idle R -> a
            134.101 [0] exit a
            134.101 [0] a Z -> idle
            217.100 [1] wakeup b on 1
            217.100 [1] idle R -> b
            234.101 [1] exit b
            234.101 [1] b Z -> idle
        "#]],
    );
}

#[test]
fn a_bound_worker_runs_on_the_cpu_that_queued() {
    check(
        "2",
        "v6.1",
        |w| {
            let queue = w.queue("events", QueueKind::PerCpu);
            let item = w.program("item", |p| _ = p.run_kernel(us(20)));
            bound(w, "a", 1, |p| _ = p.run(us(10)).queue_work(queue, item).run(us(10)).sleep(us(50)));
        },
        expect![[r#"
            0.000 [1] new a on 1
            7.150 [1] idle R -> a
            27.300 [1] wakeup kworker/1:1 on 1
            30.451 [1] a R -> kworker/1:1
            62.451 [1] kworker/1:1 I -> a
            83.451 [1] a S -> idle
            133.451 [1] wakeup a on 1
            133.451 [1] idle R -> a
            146.451 [1] exit a
            146.451 [1] a Z -> idle
        "#]],
    );
}

#[test]
fn a_running_task_that_loses_its_cpu_is_moved_by_the_stopper() {
    check(
        "2",
        "v6.1",
        |w| {
            let cpus = w.cpus(CpuList::new([CpuId(1)]).unwrap());
            let program = w.program("a", |p| _ = p.run(us(10)).set_cpus(Some(cpus)).run(us(10)));
            w.task(TaskSpec { start_cpu: Some(CpuId(0)), ..TaskSpec::root("a", program) });
        },
        expect![[r#"
            0.000 [0] new a on 0
            7.100 [0] idle R -> a
            27.100 [0] wakeup migration/0 on 0
            27.100 [0] a R+ -> migration/0
            40.101 [0] migrate a 0 -> 1
            41.352 [0] migration/0 S -> idle
            45.102 [1] idle R -> a
            65.502 [1] exit a
            65.502 [1] a Z -> idle
        "#]],
    );
}

#[test]
fn tasks_that_wait_for_each_other_are_named() {
    let (_, outcome) = run("2", "v6.1", |w| {
        let (m, n) = (w.mutex("m"), w.mutex("n"));
        bound(w, "a", 0, |p| _ = p.lock(m).run(us(50)).lock(n).unlock(n).unlock(m));
        bound(w, "b", 1, |p| _ = p.lock(n).run(us(50)).lock(m).unlock(m).unlock(n));
    });
    let End::Deadlock(_) = outcome.end else { panic!("{}", outcome.end) };
    expect![[r#"nothing can happen any more: a (1000) waits for mutex "n", which b (1001) holds; b (1001) waits for mutex "m", which a (1000) holds"#]].assert_eq(&outcome.end.to_string());
}

#[test]
fn a_run_without_end_is_given_up() {
    let machine = machine("1");
    let kernel = Kernel::parse("v6.1").unwrap();
    let mut w = WorkloadBuilder::new("test");
    let program = w.program("hog", |p| _ = p.forever(|p| _ = p.run(us(1))));
    w.task(TaskSpec::root("hog", program));
    let workload = w.finish().unwrap();
    let simulation = Simulation::new(&machine, &kernel, &workload).unwrap();
    let outcome = simulation.limit_events(1_000).run(&mut schedlab_trace::NullSink);
    assert_eq!(outcome.end, End::Events(1_000));
}

#[test]
fn a_run_that_forks_without_end_is_given_up() {
    let machine = machine("4");
    let kernel = Kernel::parse("v6.1").unwrap();
    let mut w = WorkloadBuilder::new("test");
    let child = w.program("child", |p| _ = p.run(us(1)));
    let child = w.task(TaskSpec::forked("child", child));
    let program = w.program("bomb", |p| _ = p.forever(|p| _ = p.fork(child)));
    w.task(TaskSpec::root("bomb", program));
    let workload = w.finish().unwrap();
    let simulation = Simulation::new(&machine, &kernel, &workload).unwrap();
    let outcome = simulation.limit_tasks(200).run(&mut schedlab_trace::NullSink);
    assert!(outcome.counts.forks <= 202, "{}", outcome.counts.forks);
    expect!["given up after 200 tasks (ended ones are kept too); bomb (1000) forked the last: does it fork without end? make fewer, or give the workload a duration that ends before"].assert_eq(&outcome.end.to_string());
}

#[test]
fn what_does_not_fit_the_machine_is_refused() {
    let machine = machine("2");
    let kernel = Kernel::parse("v6.1").unwrap();
    let refused = |build: &dyn Fn(&mut WorkloadBuilder)| {
        let mut w = WorkloadBuilder::new("test");
        build(&mut w);
        let workload = w.finish().unwrap();
        Simulation::new(&machine, &kernel, &workload).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&|w| _ = bound(w, "far", 9, |p| _ = p.run(us(1)))),
        "CPU 9 of the list 9 is not in machine \"2\" (2 CPUs)"
    );
    assert_eq!(
        refused(&|w| _ = bound(w, "woken", 1, |p| _ = p.op(Op::InterruptOn { cpu: CpuId(9) }))),
        "an interrupt comes to CPU 9, which is not in machine \"2\" (2 CPUs)"
    );
    let plug = Op::Hotplug { cpu: CpuId(2), to: Plug::Offline };
    assert_eq!(
        refused(&|w| _ = bound(w, "plugs", 1, |p| _ = p.op(plug))),
        "a task plugs CPU 2, which is not in machine \"2\" (2 CPUs)"
    );
}
