//! Two short traces and their difference.

use expect_test::expect;
use schedlab_trace::Sink;
use schedlab_trace::read::{Record, ftrace};

use crate::{Difference, Side, matched};

fn side(text: &str) -> Side {
    let mut side = Side::default();
    for record in ftrace::Reader::new(text.as_bytes()) {
        let Ok(Record::Event(event)) = record else { panic!("{record:?}") };
        side.event(&event);
    }
    side
}

fn compare(a: &str, b: &str) -> Difference {
    Difference::of(["a".to_owned(), "b".to_owned()], &side(a), &side(b), None)
}

/// A parent starts two tasks, which go to these CPUs.
fn forks(parent: u32, reason: &str, cpus: [u32; 2]) -> String {
    let mut text = String::new();
    for (nth, cpu) in cpus.into_iter().enumerate() {
        let (child, at) = (parent + 1 + nth as u32, 10 * nth);
        text += &format!(
            "main-{parent} [000] 1.0000{at:02}: sched_process_fork: comm=main pid={parent} child_comm=main child_pid={child}\n\
             main-{parent} [000] 1.0000{at:02}: schedlab_placement: pid={child} how=fork prev_cpu=0 target=0 cpu={cpu} remote=0 reason={reason}\n\
             main-{parent} [000] 1.0000{at:02}: sched_wakeup_new: comm=main pid={child} prio=120 target_cpu={cpu:03}\n\
             swapper-0 [{cpu:03}] 1.0001{at:02}: sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=work next_pid={child} next_prio=120\n\
             work-{child} [{cpu:03}] 1.0005{at:02}: sched_switch: prev_comm=work prev_pid={child} prev_prio=120 prev_state=S ==> next_comm=swapper next_pid=0 next_prio=120\n"
        );
    }
    // Times must not go back.
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_by_key(|line| line.split(']').nth(1).unwrap().trim()[..8].to_owned());
    lines.join("\n") + "\n"
}

#[test]
fn tasks_are_matched_by_order_of_creation_whatever_their_pids() {
    let (a, b) = (side(&forks(100, "X", [1, 2])), side(&forks(500, "X", [1, 2])));
    let pairs: Vec<(i32, i32)> =
        matched(&a, &b).iter().map(|pair| (a.tasks[pair.a].pid.0, b.tasks[pair.b].pid.0)).collect();
    assert!(pairs.contains(&(101, 501)) && pairs.contains(&(102, 502)), "{pairs:?}");
}

#[test]
fn equal_traces_do_not_part() {
    let difference = compare(&forks(100, "X", [1, 2]), &forks(500, "X", [1, 2]));
    assert_eq!((difference.first, difference.parted), (None, 0));
    assert!(difference.reasons.iter().all(|reason| !reason.chance.stands_out()));
    assert!(difference.kinds.iter().all(|kind| kind.elsewhere == 0.0));
}

#[test]
fn the_first_decision_that_parts_is_reported_with_both_reasons() {
    let difference = compare(&forks(100, "IDLEST", [1, 2]), &forks(500, "STAY_LOCAL", [1, 3]));
    let first = difference.first.clone().expect("they part");
    assert_eq!((first.task.as_str(), first.step, first.pids), ("work", 1, [102, 502]));
    assert_eq!(first.what, ["starts on CPU 2 (IDLEST)", "starts on CPU 3 (STAY_LOCAL)"]);
    let work = difference.kinds.iter().find(|kind| kind.name == "work").expect("the tasks");
    assert!((work.elsewhere - 50.0).abs() < 1.0, "{work:?}");
    assert_eq!(difference.reasons[0].chance.difference.abs(), 100.0);
}

#[test]
fn a_task_of_one_side_is_named() {
    let more = forks(100, "X", [1, 2])
        + "late-7 [005] 2.0: sched_switch: prev_comm=late prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper next_pid=0 next_prio=120\n";
    let difference = compare(&more, &forks(100, "X", [1, 2]));
    expect!["3 tasks are matched by name, parent and order of creation. Only in A: late."]
        .assert_eq(&difference.tasks_in_words());
}

#[test]
fn traces_without_a_common_task_are_not_called_alike() {
    let other = forks(100, "X", [1, 2]).replace("main", "chief").replace("work", "labour");
    let words = compare(&forks(100, "X", [1, 2]), &other).first_in_words();
    assert!(words.starts_with("No task is in both traces"), "{words}");
}
