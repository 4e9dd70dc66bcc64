//! Drawn queues under every kernel: which task is picked, and which preempts.

use alloc::string::ToString;

use expect_test::{Expect, expect};
use schedlab_units::Time;

use crate::drawing::by_kernel;
use crate::lab::Lab;
use crate::pick::drawn::{CFS, CPU, draw};
use crate::{DequeueFlags, NICE_0_LOAD, NewTask, Protection, SeId, TgId, wf};

fn check_pick(with: &str, drawing: &str, expected: Expect) {
    expected.assert_eq(&by_kernel(with, |kernel| draw(kernel, drawing).pick()));
}

/// `b` was just woken.
fn check_wake(with: &str, flags: u32, drawing: &str, expected: Expect) {
    expected.assert_eq(&by_kernel(with, |kernel| draw(kernel, drawing).wake("b", flags)));
}

#[test]
fn cfs_picks_the_least_vruntime_and_eevdf_the_earliest_eligible_deadline() {
    check_pick(
        "",
        "a v=1 d=4 | b v=2 d=3 | c v=6 d=2",
        expect![[r#"
            v4.13..v6.3: a PICK_LEFTMOST
            v6.10..v7.3: b PICK_DEADLINE"#]],
    );
    // The current one is as good as any other, but not better than an equal.
    check_pick("", "a* v=1 d=3 | b v=2 d=4", expect!["v4.13..v7.3: a PICK_CURRENT"]);
    check_pick(
        "",
        "a* v=1 d=3 | b v=1 d=3",
        expect![[r#"
            v4.13..v6.3: b PICK_LEFTMOST
            v6.10..v7.3: b PICK_DEADLINE"#]],
    );
    check_pick(
        "",
        "a* v=4 d=9 | b v=1 d=8",
        expect![[r#"
            v4.13..v6.3: b PICK_LEFTMOST
            v6.10..v7.3: b PICK_DEADLINE"#]],
    );
    check_pick(
        "",
        "a v=5",
        expect![[r#"
            v4.13..v6.3: a PICK_LEFTMOST
            v6.10..v7.3: a PICK_ONLY"#]],
    );
}

#[test]
fn where_the_average_overflows_the_earliest_deadline_comes_first() {
    // Full weights overflow after some hours of lag: V comes out before all.
    check_pick(
        "",
        "a* v=13000000 d=13000003 | b v=0 d=9 | c v=0 d=8",
        expect![[r#"
            v4.13..v6.3: b PICK_LEFTMOST
            v6.10..v7.3: c PICK_DEADLINE"#]],
    );
}

#[test]
fn a_heavy_entity_weighs_in_the_average() {
    // V is 2, so b is just eligible; a heavy a draws V to itself.
    check_pick(
        "",
        "a v=1 d=9 | b v=2 d=3 | c v=3 d=9",
        expect![[r#"
            v4.13..v6.3: a PICK_LEFTMOST
            v6.10..v7.3: b PICK_DEADLINE"#]],
    );
    check_pick(
        "",
        "a v=1 d=9 nice=-10 | b v=2 d=3 | c v=3 d=9",
        expect![[r#"
            v4.13..v6.3: a PICK_LEFTMOST
            v6.10..v7.3: a PICK_DEADLINE"#]],
    );
}

#[test]
fn current_is_protected_until_its_request_is_served() {
    check_pick(
        "",
        "a* v=1 d=4 protected | b v=1 d=3",
        expect![[r#"
            v4.13..v6.3: b PICK_LEFTMOST
            v6.10..v7.3: a PICK_PROTECTED"#]],
    );
    check_pick(
        "",
        "a* v=1 d=4 | b v=1 d=3",
        expect![[r#"
            v4.13..v6.3: b PICK_LEFTMOST
            v6.10..v7.3: b PICK_DEADLINE"#]],
    );
    // Protection does not help an entity that is not eligible.
    check_pick(
        "",
        "a* v=2 d=4 protected | b v=1 d=3",
        expect![[r#"
            v4.13..v6.3: b PICK_LEFTMOST
            v6.10..v7.3: b PICK_DEADLINE"#]],
    );
    check_pick(
        "+NO_RUN_TO_PARITY",
        "a* v=1 d=4 protected | b v=1 d=3",
        expect![[r#"
            v4.13..v6.3: b PICK_LEFTMOST
            v6.10..v6.12: b PICK_DEADLINE
            v7.2..v7.3: a PICK_PROTECTED"#]],
    );
}

#[test]
fn buddies_are_picked_if_they_are_close_or_eligible() {
    check_pick(
        "",
        "a v=1 d=3 | b v=3 d=9 next",
        expect![[r#"
            v4.13..v6.3: b PICK_NEXT_BUDDY
            v6.10..v7.3: a PICK_DEADLINE"#]],
    );
    check_pick(
        "",
        "a v=1 d=3 | b v=1 d=9 next",
        expect![[r#"
            v4.13..v6.3: b PICK_NEXT_BUDDY
            v6.10: a PICK_DEADLINE
            v6.12..v7.3: b PICK_NEXT_BUDDY"#]],
    );
    check_pick("+NEXT_BUDDY", "a v=1 d=3 | b v=1 d=9 next", expect!["v4.13..v7.3: b PICK_NEXT_BUDDY"]);
    check_pick(
        "+NO_PICK_BUDDY",
        "a v=1 d=3 | b v=1 d=9 next",
        expect![[r#"
            v4.13..v6.3: b PICK_NEXT_BUDDY
            v6.10..v7.3: a PICK_DEADLINE"#]],
    );
    check_pick(
        "",
        "a v=1 | b v=3 last",
        expect![[r#"
            v4.13..v6.3: b PICK_LAST_BUDDY
            v6.10..v7.3: a PICK_DEADLINE"#]],
    );
    check_pick(
        "",
        "a v=1 | b v=6 last",
        expect![[r#"
            v4.13..v6.3: a PICK_LEFTMOST
            v6.10..v7.3: a PICK_DEADLINE"#]],
    );
    check_pick(
        "",
        "a v=1 | b v=3 next | c v=3 last",
        expect![[r#"
            v4.13..v6.3: b PICK_NEXT_BUDDY
            v6.10..v7.3: a PICK_DEADLINE"#]],
    );
}

#[test]
fn a_task_that_yielded_is_passed_over_once_if_the_second_is_close() {
    check_pick(
        "",
        "a v=1 skip | b v=3",
        expect![[r#"
            v4.13..v6.3: b PICK_SECOND
            v6.10..v7.3: a PICK_DEADLINE"#]],
    );
    check_pick(
        "",
        "a v=1 skip | b v=6",
        expect![[r#"
            v4.13..v6.3: a PICK_LEFTMOST
            v6.10..v7.3: a PICK_DEADLINE"#]],
    );
    check_pick(
        "",
        "a* v=1 skip | b v=3",
        expect![[r#"
            v4.13..v6.3: b PICK_SECOND
            v6.10..v7.3: a PICK_CURRENT"#]],
    );
}

#[test]
fn a_woken_task_preempts_when_it_is_far_enough_behind_or_would_be_picked() {
    check_wake(
        "",
        wf::TTWU,
        "a* v=6 d=9 protected | b v=1 d=4",
        expect![[r#"
            v4.13..v6.3: preempt, PREEMPT_VRUNTIME, next b
            v6.10..v6.12: preempt, PREEMPT_DEADLINE
            v7.2: preempt lazily, PREEMPT_DEADLINE
            v7.3: preempt lazily, PREEMPT_DEADLINE, unprotect a"#]],
    );
    check_wake(
        "",
        wf::TTWU,
        "a* v=3 d=6 protected | b v=1 d=4",
        expect![[r#"
            v4.13..v6.3: keep, KEEP_GRANULARITY
            v6.10..v6.12: preempt, PREEMPT_DEADLINE
            v7.2: preempt lazily, PREEMPT_DEADLINE
            v7.3: preempt lazily, PREEMPT_DEADLINE, unprotect a"#]],
    );
    check_wake(
        "",
        wf::TTWU,
        "a* v=1 d=6 protected | b v=1 d=4",
        expect![[r#"
            v4.13..v6.3: keep, KEEP_GRANULARITY
            v6.10..v6.12: keep, KEEP_PROTECTED
            v7.2..v7.3: keep, KEEP_PROTECTED, protect less a"#]],
    );
    check_wake(
        "",
        wf::TTWU,
        "a* v=1 d=6 | b v=1 d=4",
        expect![[r#"
            v4.13..v6.3: keep, KEEP_GRANULARITY
            v6.10..v6.12: preempt, PREEMPT_DEADLINE
            v7.2: preempt lazily, PREEMPT_DEADLINE
            v7.3: preempt lazily, PREEMPT_DEADLINE, unprotect a"#]],
    );
    // Another task would be picked.
    check_wake(
        "",
        wf::TTWU,
        "a* v=6 d=9 protected | b v=1 d=4 | c v=1 d=3",
        expect![[r#"
            v4.13..v6.3: preempt, PREEMPT_VRUNTIME, next b
            v6.10..v6.12: keep, KEEP_DEADLINE
            v7.2..v7.3: keep, KEEP_DEADLINE, protect less a"#]],
    );
    check_wake(
        "+NO_WAKEUP_PREEMPTION",
        wf::TTWU,
        "a* v=6 d=9 | b v=1 d=4",
        expect!["v4.13..v7.3: keep, KEEP_POLICY"],
    );
}

#[test]
fn the_granularity_shrinks_with_the_weight_of_the_woken() {
    check_wake(
        "",
        wf::TTWU,
        "a* v=4 d=9 protected | b v=1 d=4 nice=-5",
        expect![[r#"
            v4.13..v6.3: preempt, PREEMPT_VRUNTIME, next b
            v6.10..v6.12: preempt, PREEMPT_DEADLINE
            v7.2: preempt lazily, PREEMPT_DEADLINE
            v7.3: preempt lazily, PREEMPT_DEADLINE, unprotect a"#]],
    );
    check_wake(
        "",
        wf::TTWU,
        "a* v=6 d=9 protected | b v=1 d=4 nice=5",
        expect![[r#"
            v4.13..v6.3: keep, KEEP_GRANULARITY
            v6.10..v6.12: preempt, PREEMPT_DEADLINE
            v7.2: preempt lazily, PREEMPT_DEADLINE
            v7.3: preempt lazily, PREEMPT_DEADLINE, unprotect a"#]],
    );
}

#[test]
fn batch_and_idle_tasks_do_not_preempt_and_idle_ones_are_preempted() {
    check_wake(
        "",
        wf::TTWU,
        "a* v=6 d=9 | b v=1 d=4 batch",
        expect![[r#"
        v4.13..v7.2: keep, KEEP_POLICY
        v7.3: keep, KEEP_POLICY, protect less a"#]],
    );
    check_wake(
        "",
        wf::TTWU,
        "a* v=1 d=9 protected idle | b v=6 d=12",
        expect![[r#"
            v4.13..v6.10: preempt, PREEMPT_SCHED_IDLE
            v6.12: preempt, PREEMPT_SCHED_IDLE, unprotect a
            v7.2..v7.3: preempt lazily, PREEMPT_SCHED_IDLE, unprotect a"#]],
    );
    check_wake(
        "",
        wf::TTWU,
        "a* v=6 d=9 | b v=1 d=4 idle",
        expect![[r#"
            v4.13..v6.10: keep, KEEP_POLICY
            v6.12..v7.2: keep, KEEP_IDLE_GROUP
            v7.3: keep, KEEP_IDLE_GROUP, protect less a"#]],
    );
    check_wake(
        "",
        wf::TTWU,
        "a* v=6 d=9 idle | b v=1 d=4 idle",
        expect![[r#"
        v4.13..v7.2: keep, KEEP_POLICY
        v7.3: keep, KEEP_POLICY, protect less a"#]],
    );
}

#[test]
fn a_shorter_slice_ends_the_protection() {
    check_wake(
        "",
        wf::TTWU,
        "a* v=1 d=6 protected | b v=1 d=2 slice=1",
        expect![[r#"
            v4.13..v6.3: keep, KEEP_GRANULARITY
            v6.10: keep, KEEP_PROTECTED
            v6.12: preempt, PREEMPT_SHORT, unprotect a
            v7.2: preempt lazily, PREEMPT_SHORT, unprotect a
            v7.3: preempt lazily, PREEMPT_SHORT, unprotect a, prefer if shorter b"#]],
    );
    check_wake(
        "+NO_PREEMPT_SHORT",
        wf::TTWU,
        "a* v=1 d=6 protected | b v=1 d=2 slice=1",
        expect![[r#"
            v4.13..v6.3: keep, KEEP_GRANULARITY
            v6.10..v6.12: keep, KEEP_PROTECTED
            v7.2..v7.3: keep, KEEP_PROTECTED, protect less a"#]],
    );
    // Not before a task with an earlier deadline.
    check_wake(
        "",
        wf::TTWU,
        "a* v=1 d=6 protected | b v=1 d=2 slice=1 | c v=1 d=1.5",
        expect![[r#"
            v4.13..v6.3: keep, KEEP_GRANULARITY
            v6.10: keep, KEEP_PROTECTED
            v6.12: keep, KEEP_DEADLINE, unprotect a
            v7.2: keep, KEEP_DEADLINE, protect less a
            v7.3: preempt lazily, PREEMPT_SHORT, unprotect a, prefer if shorter b"#]],
    );
}

#[test]
fn last_buddy_is_for_a_crowd() {
    let crowd = "a* v=6 | b v=1 | c v=9 | d v=9 | e v=9 | f v=9 | g v=9 | h v=9";
    check_wake(
        "",
        wf::TTWU,
        crowd,
        expect![[r#"
            v4.13..v6.3: preempt, PREEMPT_VRUNTIME, next b, last a
            v6.10..v6.12: preempt, PREEMPT_DEADLINE
            v7.2: preempt lazily, PREEMPT_DEADLINE
            v7.3: preempt lazily, PREEMPT_DEADLINE, unprotect a"#]],
    );
    check_wake(
        "+NO_LAST_BUDDY",
        wf::TTWU,
        crowd,
        expect![[r#"
            v4.13..v6.3: preempt, PREEMPT_VRUNTIME, next b
            v6.10..v6.12: preempt, PREEMPT_DEADLINE
            v7.2: preempt lazily, PREEMPT_DEADLINE
            v7.3: preempt lazily, PREEMPT_DEADLINE, unprotect a"#]],
    );
}

#[test]
fn forks_and_sleepers_still_queued_do_not_try_in_v7_2() {
    check_wake(
        "",
        wf::FORK,
        "a* v=1 d=6 | b v=1 d=4",
        expect![[r#"
            v4.13..v6.3: keep, KEEP_GRANULARITY
            v6.10..v6.12: preempt, PREEMPT_DEADLINE
            v7.2: keep, KEEP_FORK_OR_DELAYED
            v7.3: keep, KEEP_FORK_OR_DELAYED, protect less a"#]],
    );
    check_wake(
        "",
        wf::TTWU,
        "a* v=1 d=6 | b v=1 d=4 delayed",
        expect![[r#"
            v4.13..v6.3: keep, KEEP_GRANULARITY
            v6.10..v6.12: preempt, PREEMPT_DEADLINE
            v7.2: keep, KEEP_FORK_OR_DELAYED
            v7.3: keep, KEEP_FORK_OR_DELAYED, protect less a"#]],
    );
    // A sleeper with the earliest deadline is in the way: it leaves first.
    check_wake(
        "",
        wf::TTWU,
        "a* v=1 d=6 | b v=1 d=4 | c v=1 d=3 delayed",
        expect![[r#"
            v4.13..v6.3: keep, KEEP_GRANULARITY
            v6.10..v6.12: keep, KEEP_DEADLINE
            v7.2..v7.3: keep, KEEP_DEADLINE, dequeue c"#]],
    );
}

#[test]
fn a_synchronous_waker_makes_way_only_after_a_while_with_next_buddy() {
    check_wake(
        "+NEXT_BUDDY",
        wf::TTWU | wf::SYNC,
        "a* v=1 d=6 | b v=1 d=4",
        expect![[r#"
            v4.13..v6.3: keep, KEEP_GRANULARITY
            v6.10..v6.12: preempt, PREEMPT_DEADLINE
            v7.2..v7.3: keep, KEEP_SYNC, next b"#]],
    );
    check_wake(
        "+NEXT_BUDDY",
        wf::TTWU,
        "a* v=1 d=6 | b v=1 d=4",
        expect![[r#"
            v4.13..v6.3: keep, KEEP_GRANULARITY
            v6.10..v6.12: preempt, PREEMPT_DEADLINE
            v7.2: preempt lazily, PREEMPT_DEADLINE, next b
            v7.3: preempt lazily, PREEMPT_DEADLINE, next b, unprotect a"#]],
    );
    check_wake(
        "+NEXT_BUDDY+migration_cost_ns=0",
        wf::TTWU | wf::SYNC,
        "a* v=1 d=6 | b v=1 d=4",
        expect![[r#"
            v4.13..v6.3: keep, KEEP_GRANULARITY
            v6.10..v6.12: preempt, PREEMPT_DEADLINE
            v7.2: preempt lazily, PREEMPT_SYNC, next b
            v7.3: preempt lazily, PREEMPT_SYNC, next b, unprotect a"#]],
    );
    // The mark stays with the earlier deadline.
    check_wake(
        "+NEXT_BUDDY",
        wf::TTWU,
        "a* v=1 d=6 | b v=1 d=4 | c v=1 d=2 next",
        expect![[r#"
            v4.13..v6.3: keep, KEEP_GRANULARITY
            v6.10..v6.12: keep, KEEP_DEADLINE
            v7.2..v7.3: keep, KEEP_DEADLINE, protect less a"#]],
    );
}

#[test]
fn classes_preempt_in_their_order() {
    check_wake("", wf::TTWU, "a* | b fifo", expect!["v4.13..v7.3: preempt, PREEMPT_CLASS"]);
    check_wake("", wf::TTWU, "a* fifo | b", expect!["v4.13..v7.3: keep, KEEP_CLASS"]);
    check_wake("", wf::TTWU, "b", expect!["v4.13..v7.3: preempt, PREEMPT_IDLE"]);
}

#[test]
fn a_pending_request_is_enough() {
    expect![[r#"
        v4.13..v7.2: keep, KEEP_PENDING
        v7.3: preempt lazily, PREEMPT_DEADLINE, unprotect a"#]]
    .assert_eq(&by_kernel("", |kernel| {
        let mut drawn = draw(kernel, "a* v=6 d=9 | b v=1 d=4");
        drawn.sched.resched_curr(super::drawn::CPU, false);
        drawn.wake("b", wf::TTWU)
    }));
    // A lazy one is not.
    expect![[r#"
        v4.13..v6.3: preempt, PREEMPT_VRUNTIME, next b
        v6.10..v6.12: preempt, PREEMPT_DEADLINE
        v7.2: preempt lazily, PREEMPT_DEADLINE
        v7.3: preempt lazily, PREEMPT_DEADLINE, unprotect a"#]]
    .assert_eq(&by_kernel("", |kernel| {
        let mut drawn = draw(kernel, "a* v=6 d=9 | b v=1 d=4");
        drawn.sched.resched_curr(super::drawn::CPU, true);
        drawn.wake("b", wf::TTWU)
    }));
}

#[test]
fn each_preemption_model_asks_with_its_bit() {
    for (model, expected) in [
        (
            "+preempt=none",
            expect![[r#"
                v4.13..v6.3: fair preempt, PREEMPT_VRUNTIME, next b; rt preempt, PREEMPT_CLASS
                v6.10..v7.2: fair preempt, PREEMPT_DEADLINE; rt preempt, PREEMPT_CLASS
                v7.3: fair preempt, PREEMPT_DEADLINE, unprotect a; rt preempt, PREEMPT_CLASS"#]],
        ),
        (
            "+preempt=full",
            expect![[r#"
                v4.13..v6.3: fair preempt, PREEMPT_VRUNTIME, next b; rt preempt, PREEMPT_CLASS
                v6.10..v7.2: fair preempt, PREEMPT_DEADLINE; rt preempt, PREEMPT_CLASS
                v7.3: fair preempt, PREEMPT_DEADLINE, unprotect a; rt preempt, PREEMPT_CLASS"#]],
        ),
        (
            "+preempt=lazy",
            expect![[r#"
                v4.13..v6.3: fair preempt lazily, PREEMPT_VRUNTIME, next b; rt preempt, PREEMPT_CLASS
                v6.10..v7.2: fair preempt lazily, PREEMPT_DEADLINE; rt preempt, PREEMPT_CLASS
                v7.3: fair preempt lazily, PREEMPT_DEADLINE, unprotect a; rt preempt, PREEMPT_CLASS"#]],
        ),
        (
            "+preempt=auto/none",
            expect![[r#"
                v4.13..v6.3: fair preempt lazily, PREEMPT_VRUNTIME, next b; rt preempt lazily, PREEMPT_CLASS
                v6.10..v7.2: fair preempt lazily, PREEMPT_DEADLINE; rt preempt lazily, PREEMPT_CLASS
                v7.3: fair preempt lazily, PREEMPT_DEADLINE, unprotect a; rt preempt lazily, PREEMPT_CLASS"#]],
        ),
        (
            "+preempt=auto/voluntary",
            expect![[r#"
                v4.13..v6.3: fair preempt lazily, PREEMPT_VRUNTIME, next b; rt preempt, PREEMPT_CLASS
                v6.10..v7.2: fair preempt lazily, PREEMPT_DEADLINE; rt preempt, PREEMPT_CLASS
                v7.3: fair preempt lazily, PREEMPT_DEADLINE, unprotect a; rt preempt, PREEMPT_CLASS"#]],
        ),
        (
            "+preempt=auto/full",
            expect![[r#"
                v4.13..v6.3: fair preempt, PREEMPT_VRUNTIME, next b; rt preempt, PREEMPT_CLASS
                v6.10..v7.2: fair preempt, PREEMPT_DEADLINE; rt preempt, PREEMPT_CLASS
                v7.3: fair preempt, PREEMPT_DEADLINE, unprotect a; rt preempt, PREEMPT_CLASS"#]],
        ),
    ] {
        expected.assert_eq(&by_kernel(model, |kernel| {
            let fair = draw(kernel, "a* v=6 d=9 | b v=1 d=4").wake("b", wf::TTWU);
            let rt = draw(kernel, "a* | b fifo").wake("b", wf::TTWU);
            alloc::format!("fair {fair}; rt {rt}")
        }));
    }
}

fn cfs_only(with: &str, story: impl Fn(&str) -> alloc::string::String) -> alloc::string::String {
    by_kernel(with, |kernel| match draw(kernel, "a").sched.is_eevdf() {
        true => "-".into(),
        false => story(kernel),
    })
}

#[test]
fn under_cfs_the_tick_ends_a_slice_or_helps_a_task_that_is_a_slice_behind() {
    let tick = |drawing: &'static str| {
        cfs_only("", move |kernel| {
            let drawn = draw(kernel, drawing);
            let curr = crate::SeId(drawn.task("a").0);
            let reason = drawn.sched.check_preempt_tick(super::drawn::CFS, curr);
            reason.map_or("goes on", |reason| reason.name()).into()
        })
    };
    // Two share 24 ms.
    expect![[r#"
        v4.13..v6.3: goes on
        v6.10..v7.3: -"#]]
    .assert_eq(&tick("a* v=1 ran=11.9 | b v=1"));
    expect![[r#"
        v4.13..v6.3: SLICE_END
        v6.10..v7.3: -"#]]
    .assert_eq(&tick("a* v=1 ran=12.1 | b v=1"));
    expect![[r#"
        v4.13..v6.3: goes on
        v6.10..v7.3: -"#]]
    .assert_eq(&tick("a* v=14 ran=2.9 | b v=1"));
    expect![[r#"
        v4.13..v6.3: BEHIND_SLICE
        v6.10..v7.3: -"#]]
    .assert_eq(&tick("a* v=14 ran=3.1 | b v=1"));
    // The lion's share of nine tasks' 27 ms, and the cap of v6.3.
    expect![[r#"
        v4.13..v6.1: goes on
        v6.3: SLICE_END
        v6.10..v7.3: -"#]]
    .assert_eq(&tick(
        "a* v=1 ran=24.3 nice=-20 | b v=1 | c v=1 | d v=1 | e v=1 | f v=1 | g v=1 | h v=1 | i v=1",
    ));
}

#[test]
fn slices_of_cfs_to_the_last_bit() {
    let slices = |with: &'static str, drawing: &'static str| {
        cfs_only(with, move |kernel| {
            let drawn = draw(kernel, drawing);
            let slice = |name| drawn.sched.sched_slice(super::drawn::CFS, crate::SeId(drawn.task(name).0));
            alloc::format!("{} {}", slice("a"), slice("b"))
        })
    };
    expect![[r#"
        v4.13..v6.3: 11999994 11999994
        v6.10..v7.3: -"#]]
    .assert_eq(&slices("", "a | b"));
    expect![[r#"
        v4.13..v6.3: 18083885 5916114
        v6.10..v7.3: -"#]]
    .assert_eq(&slices("", "a | b nice=5"));
    // Nine tasks: nine times the minimum granularity.
    expect![[r#"
        v4.13..v5.5: 2999994 2999994
        v5.18..v6.3: 3000000 3000000
        v6.10..v7.3: -"#]]
    .assert_eq(&slices("", "a | b | c | d | e | f | g | h | i"));
    expect![[r#"
        v4.13..v5.5: 23653512 346487
        v5.18..v6.3: 23653512 3000000
        v6.10..v7.3: -"#]]
    .assert_eq(&slices("", "a | b nice=19"));
    expect![[r#"
        v4.13..v5.5: 23929887 70107
        v5.18..v6.3: 23929887 750000
        v6.10..v7.3: -"#]]
    .assert_eq(&slices("", "a | b idle"));
    expect![[r#"
        v4.13..v6.3: 23929887 70107
        v6.10..v7.3: -"#]]
    .assert_eq(&slices("+NO_BASE_SLICE", "a | b idle"));
    expect![[r#"
        v4.13..v5.5: 23929887 70107
        v5.18..v6.3: 23929887 3000000
        v6.10..v7.3: -"#]]
    .assert_eq(&slices("+NO_IDLE_MIN_GRANULARITY", "a | b idle"));
}

#[test]
fn the_period_counts_the_tasks_below_groups_since_v5_13() {
    let slice = |kernel: &str| {
        let mut lab = Lab::new(kernel, "1x1x8").without_ticks();
        if lab.sched.is_eevdf() {
            return "-".to_string();
        }
        let a = lab.hog("a", 0);
        let tg = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CPU, lab.time());
        for _ in 0..9 {
            let spec = NewTask { tg, ..lab.spec() };
            lab.fork("b", 0, spec);
        }
        lab.sched.sched_slice(CFS, SeId(a.0)).to_string()
    };
    // Half the period: of two entities in one latency of 24 ms, or of ten tasks with 3 ms each.
    expect![[r#"
        v4.13..v5.5: 11999994
        v5.18..v6.3: 14999992
        v6.10..v7.3: -"#]]
    .assert_eq(&by_kernel("", slice));
}

#[test]
fn the_tasks_of_an_idle_group_make_way_since_v5_15() {
    let wakes = |kernel: &str| {
        let mut lab = Lab::new(kernel, "1x1x8").without_ticks();
        let tg = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CPU, lab.time());
        let spec = NewTask { tg, ..lab.spec() };
        lab.fork("background", 0, spec);
        let a = lab.hog("a", 0);
        lab.sched.set_idle_group(tg, true, lab.time());
        assert_eq!(lab.running(0), "background");
        lab.sched.check_preempt(CPU, a, wf::TTWU).reason.name().to_string()
    };
    expect![[r#"
        v4.13..v5.5: KEEP_GRANULARITY
        v5.18..v7.2: PREEMPT_SCHED_IDLE
        v7.3: KEEP_PROTECTED"#]]
    .assert_eq(&by_kernel("", wakes));
}

#[test]
fn a_sleeper_that_is_pulled_alone_leaves_when_it_is_asked_about() {
    // A CPU whose task sleeps pulls a sleeper with a shorter slice, and nothing else is queued.
    let asked = |kernel: &str| {
        let mut drawn = draw(kernel, "a* v=0 d=3 protected | b v=1 d=4 slice=1 delayed");
        if drawn.sched.kernel.rules.protection != Protection::MinSlice {
            return "-".to_string();
        }
        let (a, b) = (drawn.task("a"), drawn.task("b"));
        let sleeps = DequeueFlags { sleep: true, ..DequeueFlags::default() };
        assert!(drawn.sched.deactivate(a, sleeps, Time(0)), "a is owed service, so it leaves");
        let decision = drawn.sched.wakeup_preempt(CPU, b, 0);
        let (queued, a) = (drawn.sched.cfs(CFS).nr_queued, drawn.sched.se(SeId(a.0)));
        let protected = a.vprot.wrapping_sub(a.vruntime) as i64;
        alloc::format!("{}, {queued} queued, a protected for {protected}", decision.reason.name())
    };
    expect![[r#"
        v4.13..v6.12: -
        v7.2: KEEP_FORK_OR_DELAYED, 0 queued, a protected for -1
        v7.3: KEEP_FORK_OR_DELAYED, 1 queued, a protected for 1000000"#]]
    .assert_eq(&by_kernel("", asked));
}
