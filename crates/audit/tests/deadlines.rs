//! Deadline tasks in short drawn traces: no event shows their budgets, but the behaviour without a budget
//! does.

mod common;

use std::fmt::Write;

use common::judged;
use expect_test::expect;
use schedlab_audit::Decision;

/// Verdicts of one kind, each with its answer and the fact it depends on.
fn verdicts(kernel: &str, of: Decision, trace: &str) -> String {
    let mut told = String::new();
    for verdict in judged("1x1x4", kernel, trace).iter().filter(|verdict| verdict.decision == of) {
        let ours: Vec<String> = verdict.ours.iter().map(|possible| possible.choice.to_string()).collect();
        let hidden = verdict.hidden.map_or(String::new(), |hidden| format!(" by {}", hidden.name()));
        let (comm, kernel, ours) = (verdict.comm, verdict.kernel, ours.join(", "));
        writeln!(told, "{comm}: {kernel}, ours {ours}: {}{hidden}", verdict.answer.name()).unwrap();
    }
    told
}

/// `d`, a deadline task, leaves CPU 0 to `a` and comes back without a wake-up. Meanwhile `a` sleeps.
const OUT_OF_BUDGET: &str = "\
   d-10 [000] d..2. 1.000000: sched_switch: prev_comm=d prev_pid=10 prev_prio=-1 prev_state=R ==> next_comm=a next_pid=11 next_prio=120
   a-11 [000] d..2. 1.003000: sched_switch: prev_comm=a prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
   <idle>-0 [000] d..2. 1.008000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=d next_pid=10 next_prio=-1
   d-10 [000] d.h3. 1.009000: sched_waking: comm=a pid=11 prio=120 target_cpu=000
   d-10 [000] d.h4. 1.009002: sched_wakeup: comm=a pid=11 prio=120 target_cpu=000
   d-10 [000] d..2. 1.009500: sched_switch: prev_comm=d prev_pid=10 prev_prio=-1 prev_state=R ==> next_comm=migration/0 next_pid=12 next_prio=0
";

#[test]
fn a_task_that_is_out_of_budget_waits_in_no_queue() {
    expect![[r#"
        d: task 11, ours idle: undecided by UNMET
        a: idle, ours idle: agrees
        swapper/0: task 10, ours task 10: undecided by DEADLINES
        d: task 12, ours task 10: undecided by UNMET
    "#]]
    .assert_eq(&verdicts("v6.12", Decision::Pick, OUT_OF_BUDGET));
}

/// `d` sleeps with no budget left, is woken and passed over, first for `a`, which continues, then for `b`. Then `e`
/// is woken to wait beside it, and either may run first.
const WOKEN_WITHOUT: &str = "\
   <idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=d next_pid=10 next_prio=-1
   d-10 [000] d..2. 1.002000: sched_switch: prev_comm=d prev_pid=10 prev_prio=-1 prev_state=S ==> next_comm=a next_pid=11 next_prio=120
   a-11 [000] d.h3. 1.003000: sched_waking: comm=d pid=10 prio=-1 target_cpu=000
   a-11 [000] dNh4. 1.003002: sched_wakeup: comm=d pid=10 prio=-1 target_cpu=000
   a-11 [000] d.h3. 1.004000: sched_waking: comm=b pid=12 prio=120 target_cpu=000
   a-11 [000] d.h4. 1.004002: sched_wakeup: comm=b pid=12 prio=120 target_cpu=000
   a-11 [000] d..2. 1.004100: sched_switch: prev_comm=a prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=b next_pid=12 next_prio=120
   b-12 [000] d..2. 1.005000: sched_switch: prev_comm=b prev_pid=12 prev_prio=120 prev_state=R ==> next_comm=d next_pid=10 next_prio=-1
   d-10 [000] d.h3. 1.006000: sched_waking: comm=e pid=13 prio=-1 target_cpu=000
   d-10 [000] d.h4. 1.006002: sched_wakeup: comm=e pid=13 prio=-1 target_cpu=000
   d-10 [000] d..2. 1.006010: sched_switch: prev_comm=d prev_pid=10 prev_prio=-1 prev_state=R ==> next_comm=e next_pid=13 next_prio=-1
   e-13 [000] d..2. 1.006500: sched_switch: prev_comm=e prev_pid=13 prev_prio=-1 prev_state=S ==> next_comm=d next_pid=10 next_prio=-1
   d-10 [000] d..2. 1.007000: sched_switch: prev_comm=d prev_pid=10 prev_prio=-1 prev_state=S ==> next_comm=b next_pid=12 next_prio=120
";

#[test]
fn a_task_that_wakes_without_a_budget_is_passed_over_until_it_runs() {
    expect![[r#"
        swapper/0: task 10, ours idle: undecided by UNMET
        d: task 11, ours idle: undecided by UNMET
        a: task 12, ours task 12: agrees
        b: task 10, ours task 10: undecided by DEADLINES
        d: task 13, ours task 10, task 13: agrees_in_set by DEADLINES
        e: task 10, ours task 10: agrees
        d: task 12, ours task 12: agrees
    "#]]
    .assert_eq(&verdicts("v6.12", Decision::Pick, WOKEN_WITHOUT));
    // If `b` is woken before, nothing shows that `a` continues.
    let lines: Vec<String> =
        WOKEN_WITHOUT.lines().map(|line| line.replace("1.00400", "1.00250") + "\n").collect();
    let sooner = [&lines[..2], &lines[4..6], &lines[2..4], &lines[6..]].concat().concat();
    expect![[r#"
        swapper/0: task 10, ours idle: undecided by UNMET
        d: task 11, ours idle: undecided by UNMET
        a: task 12, ours task 12, task 10: agrees_in_set by DEADLINES
        b: task 10, ours task 10: undecided by DEADLINES
        d: task 13, ours task 10, task 13: agrees_in_set by DEADLINES
        e: task 10, ours task 10: agrees
        d: task 12, ours task 12: agrees
    "#]]
    .assert_eq(&verdicts("v6.12", Decision::Pick, &sooner));
}

/// The timer that was set for the end of `d`'s budget fires in the turn of `a`, for which `b` waits.
const STALE_TIMER: &str = "\
   <idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=d next_pid=10 next_prio=-1
   d-10 [000] d..2. 1.000500: sched_switch: prev_comm=d prev_pid=10 prev_prio=-1 prev_state=S ==> next_comm=a next_pid=11 next_prio=120
   a-11 [000] d.h3. 1.001000: sched_waking: comm=b pid=12 prio=120 target_cpu=000
   a-11 [000] d.h4. 1.001002: sched_wakeup: comm=b pid=12 prio=120 target_cpu=000
   a-11 [000] d..2. 1.001400: sched_switch: prev_comm=a prev_pid=11 prev_prio=120 prev_state=R ==> next_comm=b next_pid=12 next_prio=120
   b-12 [000] d..2. 1.001600: sched_switch: prev_comm=b prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=a next_pid=11 next_prio=120
";

#[test]
fn a_timer_that_was_set_for_a_budget_may_end_the_turn_of_another() {
    let mut told = String::new();
    for kernel in ["v6.12", "v6.12+HRTICK+HRTICK_DL", "v7.2", "v7.2+NO_HRTICK_DL"] {
        let verdicts = verdicts(kernel, Decision::Preempt, STALE_TIMER);
        writeln!(told, "{kernel} {}", verdicts.lines().nth(1).unwrap()).unwrap();
    }
    expect![[r#"
        v6.12 a: preempt, ours let run: differs
        v6.12+HRTICK+HRTICK_DL a: preempt, ours let run: differs
        v7.2 a: preempt, ours let run: undecided by DEADLINES
        v7.2+NO_HRTICK_DL a: preempt, ours let run: differs
    "#]]
    .assert_eq(&told);
}
