//! Exec placement and preemption in short drawn traces: which events show the kernel's answer, and when none
//! does.

use std::fmt::Write;

use expect_test::expect;
use schedlab_audit::{Audit, Decision, Options};
use schedlab_sched::Kernel;
use schedlab_topology::Topology;
use schedlab_trace::Sink;
use schedlab_trace::read::{Record, ftrace};

/// `a` runs on CPU 0 and `c` on CPU 1, of four in a cache.
const RUN: &str = "\
   <idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
   <idle>-0 [001] d..2. 1.000001: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=c next_pid=12 next_prio=120
";

fn verdicts(kernel: &str, of: Decision, trace: &str) -> String {
    verdicts_on("1x1x4", kernel, of, trace)
}

fn verdicts_on(machine: &str, kernel: &str, of: Decision, trace: &str) -> String {
    let topology = Topology::regular(machine).unwrap();
    let options = Options { keep_verdicts: true, ..Options::default() };
    let mut audit = Audit::new(&topology, &Kernel::parse(kernel).unwrap(), options);
    for record in ftrace::Reader::new(format!("{RUN}{trace}").as_bytes()) {
        if let Record::Event(event) = record.unwrap() {
            audit.event(&event);
        }
    }
    let mut told = String::new();
    for verdict in audit.finish().0.verdicts.iter().filter(|verdict| verdict.decision == of) {
        let (comm, answer, kernel) = (verdict.comm, verdict.answer.name(), verdict.kernel);
        writeln!(told, "{comm}: {answer}, {kernel}, {}", verdict.reason()).unwrap();
    }
    told
}

/// The verdict on `b`, which slept for long and so comes first, when it is queued beside `a`.
fn asked(rest: &str) -> String {
    verdicts("v6.1", Decision::Preempt, rest)
}

#[test]
fn the_flag_of_the_wake_up_shows_whether_the_running_task_makes_way() {
    let wakes = |flags: &str| {
        format!(
            "\
        a-10 [000] d..2. 1.010000: sched_waking: comm=b pid=11 prio=120 target_cpu=000
        a-10 [000] {flags} 1.010002: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000
"
        )
    };
    expect![[r#"
        a: agrees, preempt, PREEMPT_VRUNTIME
    "#]]
    .assert_eq(&asked(&wakes("dN.3.")));
    expect![[r#"
        a: differs, let run, PREEMPT_VRUNTIME
    "#]]
    .assert_eq(&asked(&wakes("d..3.")));
}

/// What a wake-up does to other tasks comes between its two events and does not end it.
#[test]
fn a_charge_within_the_wake_up_does_not_hide_what_it_asks() {
    let trace = "\
        a-10 [000] d..2. 1.010000: sched_waking: comm=b pid=11 prio=120 target_cpu=000
        a-10 [000] d..3. 1.010001: sched_stat_runtime: comm=a pid=10 runtime=10000000 [ns]
        a-10 [000] dN.3. 1.010002: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000
        a-10 [000] d..2. 1.010004: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120
";
    expect![[r#"
        a: agrees, preempt, PREEMPT_VRUNTIME
    "#]]
    .assert_eq(&asked(trace));
}

#[test]
fn a_task_that_arrived_unseen_may_have_asked() {
    let switch = "a-10 [000] d..2. 1.010004: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120\n";
    let woken = "a-10 [000] dN.3. 1.010002: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000\n";
    expect![""].assert_eq(&asked(switch));
    expect![""].assert_eq(&asked(&format!("{woken}{switch}")));
}

#[test]
fn a_task_that_is_woken_while_it_runs_meant_to_sleep_and_makes_way_by_itself() {
    let trace = |woken: &str| {
        format!(
            "\
        a-10 [000] d..2. 1.010000: sched_waking: comm=b pid=11 prio=120 target_cpu=000
        a-10 [000] dN.3. 1.010002: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000
        a-10 [000] d..2. 1.010004: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120
        c-12 [001] d..2. 1.011000: sched_waking: comm={woken} prio=120 target_cpu=000
        c-12 [001] d..3. 1.011002: sched_wakeup: comm={woken} prio=120 target_cpu=000
        b-11 [000] d..2. 1.011010: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
"
        )
    };
    expect![[r#"
        a: agrees, preempt, PREEMPT_VRUNTIME
    "#]]
    .assert_eq(&asked(&trace("b pid=11")));
    expect![[r#"
        a: agrees, preempt, PREEMPT_VRUNTIME
        b: differs, preempt, KEEP_GRANULARITY
    "#]]
    .assert_eq(&asked(&trace("a pid=10")));
}

#[test]
fn where_arriving_tasks_ask_lazily_a_full_request_comes_from_elsewhere() {
    let wakes = |flags: &str| {
        let trace = format!(
            "\
        a-10 [000] d..2. 1.010000: sched_waking: comm=b pid=11 prio=120 target_cpu=000
        a-10 [000] {flags} 1.010002: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000
"
        );
        verdicts("v7.2+preempt=lazy", Decision::Preempt, &trace)
    };
    expect![[r#"
        a: undecided, let run, KEEP_DEADLINE
        a: undecided, preempt, KEEP_DEADLINE
        a: undecided, nothing, KEEP_DEADLINE
        a: undecided, preempt, KEEP_DEADLINE
    "#]]
    .assert_eq(&["d..3.", "dl.3.", "dN.3.", "dB.3."].map(wakes).concat());
}

/// A clock may start at zero, and start again.
#[test]
fn a_clock_may_begin_at_nothing_and_go_back() {
    let lines = |from: u64| -> String {
        (0..40)
            .map(|n| {
                let (time, cpu) = (from + 250 * n, n % 4);
                let (prev, next) = if n / 4 % 2 == 0 { ("swapper", "b") } else { ("b", "swapper") };
                let (out, into) = if prev == "b" { (20 + cpu, 0) } else { (0, 20 + cpu) };
                format!("{prev}-{out} [00{cpu}] d..2. 0.{time:06}: sched_switch: prev_comm={prev} prev_pid={out} prev_prio=120 prev_state=S ==> next_comm={next} next_pid={into} next_prio=120\n")
            })
            .collect()
    };
    let topology = Topology::regular("1x1x4").unwrap();
    for trace in [lines(0), lines(5000) + &lines(0), lines(900_000) + &lines(0)] {
        let mut audit = Audit::new(&topology, &Kernel::parse("v6.12").unwrap(), Options::default());
        for record in ftrace::Reader::new(trace.as_bytes()) {
            if let Record::Event(event) = record.unwrap() {
                audit.event(&event);
            }
        }
        assert!(audit.finish().0.events >= 40);
    }
}

#[test]
fn an_impossible_priority_is_ignored() {
    let woken = "a-10 [000] d..3. 1.010002: sched_wakeup: comm=b pid=11 prio=1200 target_cpu=001\n";
    expect![""].assert_eq(&asked(woken));
}

#[test]
fn of_another_cpu_the_next_event_shows_it() {
    let wakes = |then: &str| {
        format!(
            "\
        c-12 [001] d..2. 1.010000: sched_waking: comm=b pid=11 prio=120 target_cpu=000
        c-12 [001] d..3. 1.010002: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000
        a-10 [000] d..2. 1.010010: {then}
"
        )
    };
    let switch = |state: &str| {
        format!(
            "sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state={state} ==> next_comm=b next_pid=11 next_prio=120"
        )
    };
    expect![[r#"
        a: agrees, preempt, PREEMPT_VRUNTIME
    "#]]
    .assert_eq(&asked(&wakes(&switch("R"))));
    expect![[r#"
        a: undecided, nothing, PREEMPT_VRUNTIME
    "#]]
    .assert_eq(&asked(&wakes(&switch("S"))));
    expect![[r#"
        a: differs, let run, PREEMPT_VRUNTIME
    "#]]
    .assert_eq(&asked(&wakes("sched_waking: comm=d pid=13 prio=120 target_cpu=003")));
    // It is moved to another CPU before: with or without a request, its CPU continues with the same task.
    let other = "sched_waking: comm=d pid=13 prio=120 target_cpu=003";
    let taken = "1.010006: sched_migrate_task: comm=b pid=11 prio=120 orig_cpu=0 dest_cpu=2";
    let taken =
        wakes(other).replace("        a-10", &format!("   <idle>-0 [002] d..2. {taken}\n        a-10"));
    expect![[r#"
        a: undecided, nothing, PREEMPT_VRUNTIME
    "#]]
    .assert_eq(&asked(&taken));
}

#[test]
fn a_program_is_executed_where_the_stopper_moves_it_or_where_it_stays() {
    let stays = "        a-10 [000] ..... 1.010000: sched_process_exec: filename=/bin/x pid=10 old_pid=10\n";
    expect![[r#"
        a: agrees, CPU 0, STAY_LOCAL
    "#]]
    .assert_eq(&verdicts("v6.12", Decision::Exec, stays));
    let moves = "\
        a-10 [000] d..3. 1.010000: sched_waking: comm=migration/0 pid=20 prio=0 target_cpu=000
        a-10 [000] dN.4. 1.010001: sched_wakeup: comm=migration/0 pid=20 prio=0 target_cpu=000
        a-10 [000] d..2. 1.010003: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R+ ==> next_comm=migration/0 next_pid=20 next_prio=0
  migration/0-20 [000] d..3. 1.010006: sched_migrate_task: comm=a pid=10 prio=120 orig_cpu=0 dest_cpu=3
  migration/0-20 [000] d..2. 1.010009: sched_switch: prev_comm=migration/0 prev_pid=20 prev_prio=0 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
   <idle>-0 [003] d..2. 1.010040: sched_switch: prev_comm=swapper/3 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
        a-10 [003] ..... 1.010400: sched_process_exec: filename=/bin/x pid=10 old_pid=10
";
    expect![[r#"
        a: differs, CPU 3, STAY_LOCAL
    "#]]
    .assert_eq(&verdicts("v6.12", Decision::Exec, moves));
}

/// A FIFO task of priority 10 runs on CPU 0; another of the same priority slept there and is woken.
#[test]
fn a_real_time_task_goes_where_nothing_outranks_it_each_cpu_in_turn() {
    let trace = |to: u32| {
        format!(
            "\
        a-10 [000] d..2. 1.010000: sched_switch: prev_comm=a prev_pid=10 prev_prio=89 prev_state=S ==> next_comm=r next_pid=20 next_prio=89
        r-20 [000] d..2. 1.010010: sched_switch: prev_comm=r prev_pid=20 prev_prio=89 prev_state=S ==> next_comm=b next_pid=11 next_prio=120
        b-11 [000] dNh2. 1.020000: sched_waking: comm=a pid=10 prio=89 target_cpu=000
        b-11 [000] dNh2. 1.020002: sched_wakeup: comm=a pid=10 prio=89 target_cpu=000
        b-11 [000] d..2. 1.020010: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=89
        a-10 [000] d.h2. 1.021000: sched_waking: comm=r pid=20 prio=89 target_cpu=000
        a-10 [000] d.h2. 1.021001: sched_migrate_task: comm=r pid=20 prio=89 orig_cpu=0 dest_cpu={to}
        a-10 [000] d.h3. 1.021002: sched_wakeup: comm=r pid=20 prio=89 target_cpu=00{to}
"
        )
    };
    let of = |to| verdicts("v6.12", Decision::Wakeup, &trace(to));
    expect![[r#"
        a: agrees, CPU 0, KEEP_CPU
        r: agrees_in_set, CPU 1, LOWEST_RT
    "#]]
    .assert_eq(&of(1));
    expect![[r#"
        a: agrees, CPU 0, KEEP_CPU
        r: agrees_in_set, CPU 3, LOWEST_RT
    "#]]
    .assert_eq(&of(3));
}

/// `z` is first seen when a softirq on CPU 0 moves it there from the queue of CPU 1.
#[test]
fn tasks_that_waited_since_before_the_recording_are_unknown() {
    let trace = "\
        a-10 [000] d.s1. 1.040000: sched_migrate_task: comm=z pid=30 prio=120 orig_cpu=1 dest_cpu=0
        a-10 [000] d..2. 1.044000: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=z next_pid=30 next_prio=120
";
    expect![[r#"
        z: undecided, task 30 from CPU 1 to CPU 0, LB_NOT_IDLE
    "#]]
    .assert_eq(&verdicts("v6.12", Decision::Balance, trace));
}

/// A higher real-time task preempts the one running on CPU 0, which is pushed to another CPU.
fn pushed(at: &str, comm: &str, pid: u32, to: u32) -> String {
    format!(
        "\
        a-10 [000] d.h2. {at}0000: sched_waking: comm={comm} pid={pid} prio=89 target_cpu=000
        a-10 [000] dNh3. {at}0002: sched_wakeup: comm={comm} pid={pid} prio=89 target_cpu=000
        a-10 [000] d..2. {at}0010: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm={comm} next_pid={pid} next_prio=89
        {comm}-{pid} [000] d.h2. {at}1000: sched_waking: comm=q pid=20 prio=88 target_cpu=000
        {comm}-{pid} [000] dNh3. {at}1002: sched_wakeup: comm=q pid=20 prio=88 target_cpu=000
        {comm}-{pid} [000] d..2. {at}1010: sched_switch: prev_comm={comm} prev_pid={pid} prev_prio=89 prev_state=R ==> next_comm=q next_pid=20 next_prio=88
        q-20 [000] d..3. {at}1012: sched_migrate_task: comm={comm} pid={pid} prio=89 orig_cpu=0 dest_cpu={to}
        q-20 [000] d..2. {at}2000: sched_switch: prev_comm=q prev_pid=20 prev_prio=88 prev_state=S ==> next_comm=a next_pid=10 next_prio=120
"
    )
}

#[test]
fn each_cpu_has_its_turn_once_one_was_seen_to_have_it() {
    let trace = |to| pushed("1.01", "r", 21, 2) + &pushed("1.02", "s", 22, to);
    let of = |kernel, to| verdicts(kernel, Decision::Push, &trace(to));
    expect![[r#"
        r: agrees_in_set, task 21 from CPU 0 to CPU 2, PUSH_LOWER
        s: agrees, task 22 from CPU 0 to CPU 3, PUSH_LOWER
    "#]]
    .assert_eq(&of("v6.12", 3));
    expect![[r#"
        r: agrees_in_set, task 21 from CPU 0 to CPU 2, PUSH_LOWER
        s: differs, task 22 from CPU 0 to CPU 1, PUSH_LOWER
    "#]]
    .assert_eq(&of("v6.12", 1));
    // Before v5.11 it was always the first.
    expect![[r#"
        r: differs, task 21 from CPU 0 to CPU 2, PUSH_LOWER
        s: agrees, task 22 from CPU 0 to CPU 1, PUSH_LOWER
    "#]]
    .assert_eq(&of("v5.5", 1));
}

#[test]
fn one_that_waits_elsewhere_is_pulled_if_it_outranks_what_is_left() {
    let waits = "\
        c-12 [001] d.h2. 1.010000: sched_waking: comm=q pid=20 prio=88 target_cpu=001
        c-12 [001] dNh3. 1.010002: sched_wakeup: comm=q pid=20 prio=88 target_cpu=001
        c-12 [001] d..2. 1.010010: sched_switch: prev_comm=c prev_pid=12 prev_prio=120 prev_state=R ==> next_comm=q next_pid=20 next_prio=88
        a-10 [000] d.h2. 1.011000: sched_waking: comm=h pid=21 prio=80 target_cpu=000
        a-10 [000] dNh3. 1.011002: sched_wakeup: comm=h pid=21 prio=80 target_cpu=000
        a-10 [000] d..2. 1.011010: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=h next_pid=21 next_prio=80
        h-21 [000] d..2. 1.012000: sched_waking: comm=r pid=22 prio=89 target_cpu=000
        h-21 [000] d..3. 1.012002: sched_wakeup: comm=r pid=22 prio=89 target_cpu=000
        q-20 [001] d..3. 1.013000: sched_migrate_task: comm=r pid=22 prio=89 orig_cpu=0 dest_cpu=1
        q-20 [001] d..2. 1.013002: sched_switch: prev_comm=q prev_pid=20 prev_prio=88 prev_state=S ==> next_comm=r next_pid=22 next_prio=89
";
    expect![[r#"
        r: agrees, task 22 from CPU 0 to CPU 1, PULL_HIGHER
    "#]]
    .assert_eq(&verdicts("v6.12", Decision::Push, waits));
}

/// A deadline task that has a new budget, while a fair task runs on its CPU.
#[test]
fn a_deadline_task_with_a_new_budget_is_pushed_since_v6_7() {
    let trace = "\
        a-10 [000] d.h2. 1.010000: sched_waking: comm=d pid=20 prio=-1 target_cpu=000
        a-10 [000] dNh3. 1.010002: sched_wakeup: comm=d pid=20 prio=-1 target_cpu=000
        a-10 [000] d..2. 1.010010: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=d next_pid=20 next_prio=-1
        d-20 [000] d..2. 1.012000: sched_switch: prev_comm=d prev_pid=20 prev_prio=-1 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
        a-10 [000] dNh3. 1.020000: sched_migrate_task: comm=d pid=20 prio=-1 orig_cpu=0 dest_cpu=3
";
    let of = |kernel| verdicts(kernel, Decision::Push, trace);
    expect![[r#"
        d: agrees_in_set, task 20 from CPU 0 to CPU 3, PUSH_LOWER
    "#]]
    .assert_eq(&of("v6.12"));
    expect![[r#"
        d: differs, task 20 from CPU 0 to CPU 3, PUSH_NOTHING
    "#]]
    .assert_eq(&of("v6.1"));
}

/// CPUs 0 to 2 of the first node are busy, those of the second went idle one after the other; a new task is placed on
/// `target`.
fn new_task(states: [u32; 3], target: u32) -> String {
    let mut trace = String::from(
        "   <idle>-0 [002] d..2. 1.000001: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=d next_pid=13 next_prio=120\n",
    );
    for (cpu, state) in (3..).zip(states) {
        let us = 10 * cpu;
        writeln!(trace, "   x-2{cpu} [00{cpu}] d..2. 1.0001{us}: sched_switch: prev_comm=x prev_pid=2{cpu} prev_prio=120 prev_state=S ==> next_comm=swapper/{cpu} next_pid=0 next_prio=120").unwrap();
        writeln!(trace, "   <idle>-0 [00{cpu}] d..1. 1.0002{us}: cpu_idle: state={state} cpu_id={cpu}")
            .unwrap();
    }
    trace
        + &format!(
            "   a-10 [000] ..... 1.020000: sched_process_fork: comm=a pid=10 child_comm=a child_pid=30
   a-10 [000] d..2. 1.020010: sched_wakeup_new: comm=a pid=30 prio=120 target_cpu=00{target}
"
        )
}

#[test]
fn a_new_task_goes_to_the_cpu_that_wakes_soonest_where_a_trace_shows_it() {
    let forks = |states, target| verdicts_on("2x1x3", "v6.12", Decision::Fork, &new_task(states, target));
    // CPU 4 sleeps less deeply than those that went idle before and after it.
    expect![[r#"
        a: agrees, CPU 4, IDLEST_SHALLOW
    "#]]
    .assert_eq(&forks([2, 1, 2], 4));
    expect![[r#"
        a: differs, CPU 5, IDLEST_SHALLOW
    "#]]
    .assert_eq(&forks([2, 1, 2], 5));
    // Without a driver one state is reported for all, and the last to go idle is taken.
    expect![[r#"
        a: agrees, CPU 5, IDLEST_RECENT
    "#]]
    .assert_eq(&forks([1, 1, 1], 5));
    expect![[r#"
        a: agrees_in_set, CPU 4, IDLEST_RECENT
    "#]]
    .assert_eq(&forks([1, 1, 1], 4));
}
