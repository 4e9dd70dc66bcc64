//! Drawn queues with slices of different length: which task preempts, and how long the running task is
//! protected.

use alloc::format;
use alloc::string::String;

use expect_test::{Expect, expect};

use crate::drawing::by_kernel;
use crate::pick::drawn::{CFS, Drawn, draw};
use crate::{SeId, wf};

/// `b` was just woken.
fn check_wake(with: &str, flags: u32, drawing: &str, expected: Expect) {
    expected.assert_eq(&by_kernel(with, |kernel| draw(kernel, drawing).wake("b", flags)));
}

/// The woken task is owed service, but another has an earlier deadline: v7.3 requests a reschedule, as the switch comes
/// soon enough.
#[test]
fn a_shorter_slice_that_is_owed_service_preempts_though_another_would_be_picked() {
    check_wake(
        "+PREEMPT_SHORT+NO_DELAY_DEQUEUE",
        wf::TTWU,
        "a* v=1 d=6 protected | b v=1 d=2 slice=1 | c v=1 d=1.5",
        expect![[r#"
            v4.13..v6.3: keep, KEEP_GRANULARITY
            v6.10: keep, KEEP_PROTECTED
            v6.12: keep, KEEP_DEADLINE, unprotect a
            v7.2: keep, KEEP_DEADLINE, protect less a
            v7.3: preempt lazily, PREEMPT_SHORT, unprotect a, prefer if shorter b"#]],
    );
    // It is owed no service.
    check_wake(
        "",
        wf::TTWU,
        "a* v=1 d=6 protected | b v=3 d=4 slice=1 | c v=1 d=7",
        expect![[r#"
        v4.13..v6.3: keep, KEEP_GRANULARITY
        v6.10..v6.12: keep, KEEP_PROTECTED
        v7.2..v7.3: keep, KEEP_DEADLINE, protect less a"#]],
    );
    check_wake(
        "",
        wf::FORK,
        "a* v=1 d=6 protected | b v=1 d=2 slice=1",
        expect![[r#"
        v4.13..v6.3: keep, KEEP_GRANULARITY
        v6.10: keep, KEEP_PROTECTED
        v6.12: preempt, PREEMPT_SHORT, unprotect a
        v7.2: preempt lazily, PREEMPT_SHORT, unprotect a
        v7.3: preempt lazily, PREEMPT_SHORT, unprotect a, prefer if shorter b"#]],
    );
    check_wake(
        "",
        wf::FORK,
        "a* v=1 d=6 protected | b v=1 d=2",
        expect![[r#"
        v4.13..v6.3: keep, KEEP_GRANULARITY
        v6.10..v6.12: keep, KEEP_PROTECTED
        v7.2: keep, KEEP_FORK_OR_DELAYED
        v7.3: keep, KEEP_FORK_OR_DELAYED, protect less a"#]],
    );
}

/// a is ahead of the others when it is chosen, with the longer slice, and when one of the others wakes.
#[test]
fn a_protection_ends_where_service_is_no_longer_owed() {
    let protected = |kernel: &str| {
        let mut drawn = draw(kernel, "a v=0 d=6 slice=6 | b v=1 d=2 slice=1 | c v=2 d=9 slice=6");
        if !drawn.sched.is_eevdf() {
            return String::new();
        }
        let a = SeId(drawn.task("a").0);
        let us = |drawn: &Drawn| {
            let se = drawn.sched.se(a);
            se.vprot.wrapping_sub(se.vruntime) as i64 / 1000
        };
        drawn.sched.set_next_entity(CFS, a, true);
        let first = us(&drawn);
        let entity = drawn.sched.se_mut(a);
        entity.vprot = entity.deadline;
        entity.vruntime += 3_000_000;
        drawn.sched.update_protect_slice(CFS, a);
        format!("for {first} us, then for {} us", us(&drawn))
    };
    expect![[r#"
        v4.13..v6.3:
        v6.10: for -1000000 us, then for 3000 us
        v6.12: for -1000000 us, then for 1000 us
        v7.2: for 1000 us, then for 1000 us
        v7.3: for 1500 us, then for 0 us"#]]
    .assert_eq(&by_kernel("", protected));
    expect![[r#"
        v4.13..v6.3:
        v6.10: for -1000000 us, then for 3000 us
        v6.12: for -1000000 us, then for 1000 us
        v7.2: for 1000 us, then for 1000 us
        v7.3: for 1000 us, then for 0 us"#]]
    .assert_eq(&by_kernel("+NO_PREEMPT_SHORT", protected));
}
