//! Short drawn traces and the choices that each leaves open: hidden facts add choices, visible facts remove them.

mod common;

use std::fmt::Write;

use common::judged;
use expect_test::expect;
use schedlab_audit::{Answer, Decision, Unknown};

/// Verdicts of one kind in a trace on two caches of two CPUs: the kernel's choice and the choices that our rules lead
/// to.
fn verdicts(kernel: &str, of: Decision, trace: &str) -> String {
    verdicts_on("1x2x2", kernel, of, trace)
}

/// The same on another machine.
fn verdicts_on(shape: &str, kernel: &str, of: Decision, trace: &str) -> String {
    let mut told = String::new();
    for verdict in judged(shape, kernel, trace).iter().filter(|verdict| verdict.decision == of) {
        let ours = verdict.ours.iter().map(|possible| match possible.hidden {
            None => possible.choice.to_string(),
            Some(hidden) => format!("{} by {hidden:?}", possible.choice),
        });
        let ours: Vec<String> = ours.collect();
        writeln!(told, "{}: {}, ours {}", verdict.comm, verdict.kernel, ours.join(", ")).unwrap();
    }
    told
}

/// `b` goes to sleep in a state, and `a` on another CPU wakes it.
fn wakes(state: char, context: char) -> String {
    format!(
        "\
   <idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
   <idle>-0 [002] d..2. 1.000000: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120
        b-11 [002] d..2. 1.001000: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state={state} ==> next_comm=swapper/2 next_pid=0 next_prio=120
        a-10 [000] d.{context}2. 1.002000: sched_waking: comm=b pid=11 prio=120 target_cpu=002
   <idle>-0 [002] dNh2. 1.002005: sched_wakeup: comm=b pid=11 prio=120 target_cpu=002
   <idle>-0 [002] d..2. 1.002006: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120
"
    )
}

#[test]
fn sync_wakeups_are_for_interruptible_sleepers_and_not_from_hard_interrupts() {
    let mut told = String::new();
    for (state, context) in [('S', '.'), ('S', 's'), ('S', 'h'), ('D', '.'), ('I', '.')] {
        let of = verdicts("v6.1", Decision::Wakeup, &wakes(state, context));
        write!(told, "{state} {context} {of}").unwrap();
    }
    expect![[r#"
        S . b: CPU 2, ours CPU 2, CPU 0 by SyncFlag, CPU 1 by RecentCpu
        S s b: CPU 2, ours CPU 2, CPU 0 by SyncFlag, CPU 1 by RecentCpu
        S h b: CPU 2, ours CPU 2
        D . b: CPU 2, ours CPU 2
        I . b: CPU 2, ours CPU 2
    "#]]
    .assert_eq(&told);
}

/// A wake-up on an idle CPU takes a millisecond, so CPUs may be held up for long. `a` and `b` have each run alone on
/// CPU 0. Then they take turns, and CPU 1 acts or does not act while `a` goes to sleep.
fn takes_turns(other: &str) -> String {
    format!(
        "\
   <idle>-0 [000] d.h2. 0.990000: sched_waking: comm=d pid=13 prio=120 target_cpu=003
   <idle>-0 [003] dNh2. 0.991000: sched_wakeup: comm=d pid=13 prio=120 target_cpu=003
   <idle>-0 [000] d..2. 0.999000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120
        b-11 [000] d..2. 0.999500: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
   <idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
        a-10 [000] d..3. 1.000010: sched_waking: comm=b pid=11 prio=120 target_cpu=000
        a-10 [000] d..4. 1.000012: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000
{other}        a-10 [000] d..2. 1.000200: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=b next_pid=11 next_prio=120
        b-11 [000] d..3. 1.000205: sched_waking: comm=a pid=10 prio=120 target_cpu=000
        b-11 [000] d..4. 1.000207: sched_wakeup: comm=a pid=10 prio=120 target_cpu=000
        b-11 [000] d..2. 1.000210: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
"
    )
}

#[test]
fn a_cpu_that_was_held_up_may_have_charged_the_next_task() {
    let other = "   <idle>-0 [001] d..2. 1.000100: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=c next_pid=12 next_prio=120\n";
    let mut told = String::new();
    for other in ["", other] {
        told += &verdicts("v6.12", Decision::Pick, &takes_turns(other));
        told += "\n";
    }
    expect![[r#"
        swapper/0: task 11, ours idle
        b: idle, ours idle
        swapper/0: task 10, ours idle
        a: task 11, ours task 11
        b: task 10, ours task 11

        swapper/0: task 11, ours idle
        b: idle, ours idle
        swapper/0: task 10, ours idle
        swapper/1: task 12, ours idle
        a: task 11, ours task 11
        b: task 10, ours task 11, task 10 by VirtualTime

    "#]]
    .assert_eq(&told);
}

/// `b` sleeps beside `a`, which is owed more or less, and `c` of another cache queues it where it was.
fn queues_where_it_slept(meanwhile: &str) -> String {
    format!(
        "\
   <idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
   <idle>-0 [002] d..2. 1.000001: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=c next_pid=12 next_prio=120
        a-10 [000] d..3. 1.000010: sched_waking: comm=b pid=11 prio=120 target_cpu=000
        a-10 [000] d..4. 1.000012: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000
        a-10 [000] d..2. 1.003000: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120
        b-11 [000] d..2. 1.004000: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=a next_pid=10 next_prio=120
{meanwhile}        c-12 [002] d..3. 1.006000: sched_waking: comm=b pid=11 prio=120 target_cpu=000
        c-12 [002] d..4. 1.006002: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000
"
    )
}

#[test]
fn a_sleeper_may_be_queued_still_unless_its_cpu_idled() {
    let idled = "\
        a-10 [000] d..2. 1.004500: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
   <idle>-0 [000] d..2. 1.004900: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=e next_pid=14 next_prio=120
";
    let mut told = String::new();
    for meanwhile in ["", idled] {
        let all = verdicts("v6.12+NO_SIS_UTIL", Decision::Wakeup, &queues_where_it_slept(meanwhile));
        writeln!(told, "{}", all.lines().last().unwrap()).unwrap();
    }
    expect![[r#"
        b: CPU 0, ours CPU 1, CPU 3 by Loads, CPU 0 by DelayedDequeue
        b: CPU 0, ours CPU 1, CPU 3 by Loads
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_buddy_is_possible_if_it_may_be_within_the_granularity_of_the_first() {
    // `c` ran so long that it is 3 ms and some microseconds after `b`, where the granularity is 3 ms.
    let trace = "\
   <idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
        a-10 [000] d.h2. 1.010000: sched_waking: comm=c pid=12 prio=120 target_cpu=000
        a-10 [000] dNh3. 1.010001: sched_wakeup: comm=c pid=12 prio=120 target_cpu=000
        a-10 [000] d..2. 1.010002: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=c next_pid=12 next_prio=120
        c-12 [000] d..2. 1.014030: sched_switch: prev_comm=c prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=a next_pid=10 next_prio=120
        a-10 [000] d.h2. 1.015030: sched_waking: comm=c pid=12 prio=120 target_cpu=000
        a-10 [000] dNh3. 1.015031: sched_wakeup: comm=c pid=12 prio=120 target_cpu=000
        a-10 [000] dNh2. 1.015032: sched_waking: comm=b pid=11 prio=120 target_cpu=000
        a-10 [000] dNh3. 1.015033: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000
        a-10 [000] d..2. 1.015034: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=c next_pid=12 next_prio=120
";
    expect![[r#"
        swapper/0: task 10, ours idle
        a: task 12, ours task 12
        c: task 10, ours task 10
        a: task 12, ours task 11, task 12 by VirtualTime
    "#]]
    .assert_eq(&verdicts("v6.1", Decision::Pick, trace));
}

/// `b` sleeps in one cache, and `a` of another wakes it, to its own.
fn leaves_its_cache(b: &str) -> String {
    format!(
        "\
   <idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
   <idle>-0 [002] d..2. 1.000001: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm={b} next_pid=11 next_prio=120
        {b}-11 [002] d..2. 1.001000: sched_switch: prev_comm={b} prev_pid=11 prev_prio=120 prev_state=I ==> next_comm=swapper/2 next_pid=0 next_prio=120
        a-10 [000] d..2. 1.002000: sched_waking: comm={b} pid=11 prio=120 target_cpu=002
        a-10 [000] d..2. 1.002001: sched_migrate_task: comm={b} pid=11 prio=120 orig_cpu=2 dest_cpu=1
   <idle>-0 [001] dNh2. 1.002005: sched_wakeup: comm={b} pid=11 prio=120 target_cpu=001
"
    )
}

#[test]
fn a_worker_of_an_unbound_pool_may_be_sent_back_since_v6_6() {
    let mut told = String::new();
    for (kernel, b) in
        [("v6.12", "kworker/u9:1"), ("v6.12", "kworker/2:1"), ("v6.12", "b"), ("v6.1", "kworker/u9:1")]
    {
        let of = verdicts(kernel, Decision::Wakeup, &leaves_its_cache(b));
        write!(told, "{kernel} {of}").unwrap();
    }
    expect![[r#"
        v6.12 kworker/u9:1: CPU 1, ours CPU 2, CPU 1 by WorkerPool
        v6.12 kworker/2:1: CPU 1, ours CPU 2
        v6.12 b: CPU 1, ours CPU 2
        v6.1 kworker/u9:1: CPU 1, ours CPU 2
    "#]]
    .assert_eq(&told);
}

/// `b` has just gone to sleep beside `a`, which is owed more, and another CPU of the cache, newly idle, takes it.
fn takes_a_sleeper() -> String {
    let asleep = queues_where_it_slept("");
    let asleep: Vec<&str> = asleep.lines().take(6).filter(|line| !line.contains("c-12")).collect();
    format!(
        "\
   <idle>-0 [001] d..2. 0.999000: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=e next_pid=14 next_prio=120
{}
        e-14 [001] d..2. 1.004010: sched_migrate_task: comm=b pid=11 prio=120 orig_cpu=0 dest_cpu=1
        e-14 [001] d..2. 1.004015: sched_switch: prev_comm=e prev_pid=14 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
",
        asleep.join("\n")
    )
}

#[test]
fn a_sleeper_whose_dequeue_was_delayed_may_be_moved_by_balancing() {
    let mut told = String::new();
    for kernel in ["v6.12", "v6.12+NO_DELAY_DEQUEUE", "v7.2"] {
        write!(told, "{kernel} {}", verdicts(kernel, Decision::Balance, &takes_a_sleeper())).unwrap();
    }
    expect![[r#"
        v6.12 b: task 11 from CPU 0 to CPU 1, ours nothing, task 11 from CPU 0 to CPU 1 by DelayedDequeue
        v6.12+NO_DELAY_DEQUEUE b: task 11 from CPU 0 to CPU 1, ours nothing
        v7.2 b: task 11 from CPU 0 to CPU 1, ours nothing
    "#]]
    .assert_eq(&told);
}

/// A kworker waits while `a` runs, `a` is switched out 100 us later, and `then` follows.
fn makes_way(then: &str) -> String {
    format!(
        "\
   <idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=kworker/0:1 next_pid=11 next_prio=120
   kworker/0:1-11 [000] d..2. 1.000500: sched_switch: prev_comm=kworker/0:1 prev_pid=11 prev_prio=120 prev_state=I ==> next_comm=a next_pid=10 next_prio=120
        a-10 [000] d..3. 1.000540: sched_waking: comm=kworker/0:1 pid=11 prio=120 target_cpu=000
        a-10 [000] d..4. 1.000545: sched_wakeup: comm=kworker/0:1 pid=11 prio=120 target_cpu=000
        a-10 [000] d..2. 1.000640: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R+ ==> next_comm=kworker/0:1 next_pid=11 next_prio=120
   kworker/0:1-11 [000] d..2. 1.000650: sched_switch: prev_comm=kworker/0:1 prev_pid=11 prev_prio=120 prev_state=I ==> next_comm=a next_pid=10 next_prio=120
{then}"
    )
}

#[test]
fn a_task_that_joins_a_control_group_asks_itself_to_make_way() {
    let mut told = String::new();
    for pid in [10, 12] {
        let joins = format!(
            "        a-10 [000] d..1. 1.000660: cgroup_attach_task: dst_root=0 dst_id=2 dst_level=1 dst_path=/g pid={pid} comm=a\n"
        );
        told += &verdicts("v6.12", Decision::Preempt, &makes_way(&joins));
    }
    expect![[r#"
        a: let run, ours let run, preempt by VirtualTime
        a: preempt, ours preempt
        a: let run, ours let run, preempt by VirtualTime
        a: preempt, ours let run
    "#]]
    .assert_eq(&told);
}

/// `a` and `b` are new and take turns of these lengths (us) on CPU 0, without reschedule requests.
fn take_turns_of(spans: &[u32], state: &str) -> String {
    let mut trace = String::from(
        "\
   m-9 [000] d..2. 1.000100: sched_process_fork: comm=m pid=9 child_comm=a child_pid=10
   m-9 [000] d..2. 1.000110: sched_wakeup_new: comm=a pid=10 prio=120 target_cpu=000
   m-9 [000] d..2. 1.000200: sched_process_fork: comm=m pid=9 child_comm=b child_pid=11
   m-9 [000] d..2. 1.000210: sched_wakeup_new: comm=b pid=11 prio=120 target_cpu=000
   m-9 [000] d..2. 1.000300: sched_switch: prev_comm=m prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=a next_pid=10 next_prio=120
",
    );
    let mut time = 300;
    for (turn, span) in spans.iter().enumerate() {
        let (prev, next) = if turn % 2 == 0 { ("a", "b") } else { ("b", "a") };
        let (p, n) = (10 + u32::from(prev == "b"), 10 + u32::from(next == "b"));
        time += span;
        writeln!(
            trace,
            "   {prev}-{p} [000] d..2. 1.{time:06}: sched_switch: prev_comm={prev} prev_pid={p} prev_prio=120 \
             prev_state={state} ==> next_comm={next} next_pid={n} next_prio=120"
        )
        .unwrap();
    }
    trace
}

#[test]
fn a_task_that_makes_way_early_again_and_again_yields() {
    let mut told = String::new();
    for (kernel, span, state) in
        [("v6.1", 100, "R"), ("v6.1", 100, "R+"), ("v6.12", 100, "R"), ("v6.12", 2_800, "R")]
    {
        let verdicts = judged("1x2x2", kernel, &take_turns_of(&[span; 7], state));
        let turns = verdicts.iter().filter(|verdict| verdict.decision == Decision::Preempt).skip(2);
        let answers = turns.map(|turn| match (turn.answer, turn.hidden) {
            (Answer::Differs, _) => "differs",
            (Answer::Undecided, Some(Unknown::Yield)) => "may yield",
            (Answer::Undecided, _) => "open",
            _ => "agrees",
        });
        writeln!(told, "{kernel}, {span} us, {state}: {}", answers.collect::<Vec<_>>().join(", ")).unwrap();
    }
    expect![[r#"
        v6.1, 100 us, R: may yield, may yield, may yield, may yield, may yield, may yield, may yield
        v6.1, 100 us, R+: differs, differs, differs, differs, differs, differs, differs
        v6.12, 100 us, R: may yield, may yield, may yield, may yield, may yield, may yield, may yield
        v6.12, 2800 us, R: agrees, agrees, agrees, agrees, agrees, agrees, agrees
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_task_picked_against_all_errors_has_an_error_as_large() {
    let mut told = String::new();
    for spans in [[4000, 3800, 1000, 700], [4000, 1000, 1000, 700]] {
        let verdicts = judged("1x2x2", "v6.12", &take_turns_of(&spans, "R"));
        let picks = verdicts.iter().filter(|verdict| verdict.decision == Decision::Pick).skip(1);
        let answers: Vec<_> = picks.map(|pick| format!("{:?}", pick.answer)).collect();
        writeln!(told, "{spans:?} us: {}", answers.join(", ")).unwrap();
    }
    expect![[r#"
        [4000, 3800, 1000, 700] us: Agrees, Differs, Agrees, Differs
        [4000, 1000, 1000, 700] us: Agrees, Differs, AgreesInSet, AgreesInSet
    "#]]
    .assert_eq(&told);
}

/// `r`, a real-time task, runs for a second and a half in total, and `a` in between.
fn runs_long() -> String {
    let mut trace = String::new();
    for turn in 0..15 {
        let (at, end) = (1 + turn / 5, turn % 5 * 200_000);
        write!(
            trace,
            "\
   a-10 [000] d.h3. {at}.{:06}: sched_waking: comm=r pid=11 prio=49 target_cpu=000
   a-10 [000] dNh4. {at}.{:06}: sched_wakeup: comm=r pid=11 prio=49 target_cpu=000
   a-10 [000] d..2. {at}.{:06}: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=r next_pid=11 next_prio=49
   r-11 [000] d..2. {at}.{:06}: sched_switch: prev_comm=r prev_pid=11 prev_prio=49 prev_state=S ==> next_comm=a next_pid=10 next_prio=120
",
            end + 10,
            end + 12,
            end + 14,
            end + 100_000
        )
        .unwrap();
    }
    trace
}

#[test]
fn real_time_tasks_are_not_throttled_in_the_shadow() {
    for kernel in ["v6.1", "v6.12"] {
        let verdicts = judged("1x1x2", kernel, &runs_long());
        let picks = verdicts.iter().filter(|verdict| verdict.decision == Decision::Pick);
        assert!(picks.skip(2).all(|pick| pick.answer == Answer::Agrees), "{kernel}");
    }
}

#[test]
fn a_task_asleep_at_the_start_on_a_busy_cpu_may_have_slept_shortly() {
    let wakes = "\
   a-10 [000] d..3. 1.001000: sched_waking: comm=b pid=11 prio=120 target_cpu=000
   a-10 [000] d..4. 1.001002: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000
   a-10 [000] d.h3. 1.001010: sched_waking: comm=c pid=12 prio=120 target_cpu=001
";
    let begins = "\
   <idle>-0 [000] d..2. 1.000900: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
";
    let mut answers = Vec::new();
    for trace in [wakes.to_owned(), begins.to_owned() + wakes] {
        let verdicts = judged("1x1x2", "v6.1", &trace);
        answers.extend(
            verdicts.iter().find(|verdict| verdict.decision == Decision::Preempt).map(|of| of.answer),
        );
    }
    assert_eq!(answers, [Answer::Undecided, Answer::Agrees]);
}

/// `b` leaves CPU 0, where `a` went to sleep before it and stayed in the queue, and is woken beside `c`. That `a` can
/// be sent to another CPU, `meanwhile`, shows that `b` had left by then.
fn leaves_a_sleeper(meanwhile: &str) -> String {
    format!(
        "\
        m-9 [000] d..2. 1.000100: sched_process_fork: comm=m pid=9 child_comm=a child_pid=10
        m-9 [000] d..2. 1.000110: sched_wakeup_new: comm=a pid=10 prio=120 target_cpu=000
        m-9 [000] d..2. 1.000200: sched_process_fork: comm=m pid=9 child_comm=b child_pid=11
        m-9 [000] d..2. 1.000210: sched_wakeup_new: comm=b pid=11 prio=120 target_cpu=000
        m-9 [000] d..2. 1.000300: sched_process_fork: comm=m pid=9 child_comm=c child_pid=12
   <idle>-0 [001] d..2. 1.000310: sched_wakeup_new: comm=c pid=12 prio=120 target_cpu=001
   <idle>-0 [001] d..2. 1.000312: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=c next_pid=12 next_prio=120
        m-9 [000] d..2. 1.000399: sched_stat_runtime: comm=m pid=9 runtime=300000 [ns]
        m-9 [000] d..2. 1.000400: sched_switch: prev_comm=m prev_pid=9 prev_prio=120 prev_state=X ==> next_comm=a next_pid=10 next_prio=120
        a-10 [000] d..2. 1.001399: sched_stat_runtime: comm=a pid=10 runtime=1000000 [ns]
        a-10 [000] d..2. 1.001400: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=b next_pid=11 next_prio=120
        b-11 [000] d..2. 1.002000: sched_stat_runtime: comm=b pid=11 runtime=600000 [ns]
{meanwhile}\
        b-11 [000] d..2. 1.002200: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
        c-12 [001] d..2. 1.002500: sched_waking: comm=b pid=11 prio=120 target_cpu=000
        c-12 [001] d..2. 1.002501: sched_migrate_task: comm=b pid=11 prio=120 orig_cpu=0 dest_cpu=1
        c-12 [001] d..3. 1.002502: sched_stat_runtime: comm=c pid=12 runtime=2190000 [ns]
        c-12 [001] dN.3. 1.002503: sched_wakeup: comm=b pid=11 prio=120 target_cpu=001
"
    )
}

#[test]
fn a_task_that_ran_beside_a_sleeper_that_is_gone_has_left_before() {
    let woken = "\
        c-12 [001] d..2. 1.002100: sched_waking: comm=a pid=10 prio=120 target_cpu=000
        c-12 [001] d..2. 1.002101: sched_migrate_task: comm=a pid=10 prio=120 orig_cpu=0 dest_cpu=2
   <idle>-0 [002] dNh2. 1.002103: sched_wakeup: comm=a pid=10 prio=120 target_cpu=002
";
    let charged = "        b-11 [000] d.h2. 1.002150: sched_stat_runtime: comm=b pid=11 runtime=100 [ns]\n";
    let mut told = String::new();
    for meanwhile in ["", woken, &format!("{woken}{charged}")] {
        let found = verdicts_on("1x1x4", "v6.12", Decision::Preempt, &leaves_a_sleeper(meanwhile));
        told += found.lines().last().unwrap();
        told += "\n";
    }
    expect![[r#"
        c: preempt, ours preempt
        c: preempt, ours preempt
        c: preempt, ours preempt, let run by VirtualTime
    "#]]
    .assert_eq(&told);
}
