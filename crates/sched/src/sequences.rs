//! Small scripted sequences under every kernel: what one rule does over time.

use alloc::format;
use alloc::string::String;

use expect_test::expect;
use schedlab_topology::CpuId;
use schedlab_units::{Duration, TaskId};

use crate::drawing::by_kernel;
use crate::lab::{Lab, MS};
use crate::{CfsRqId, NICE_0_LOAD, NewTask, SeId, TgId};

const CPU: CpuId = CpuId(0);
const ROOT: CfsRqId = CfsRqId(0);
const US: u64 = 1_000;

/// Eight CPUs, so that slices are as long as on most machines.
fn lab(kernel: &str) -> Lab {
    Lab::new(kernel, "1x1x8")
}

#[test]
fn hogs_take_turns_at_ticks_or_at_the_slice_timer() {
    let turns = |kernel: &str| {
        let mut lab = lab(kernel);
        lab.hog("a", 0);
        lab.hog("b", 0);
        lab.log();
        lab.run(40 * MS);
        lab.log()
    };
    expect![[r#"
        v4.13..v6.3:
            12.000 cpu 0 b PICK_LEFTMOST
            24.000 cpu 0 a PICK_LEFTMOST
            36.000 cpu 0 b PICK_LEFTMOST
        v6.10..v6.12:
            4.000 cpu 0 b PICK_DEADLINE
            8.000 cpu 0 a PICK_DEADLINE
            12.000 cpu 0 b PICK_DEADLINE
            16.000 cpu 0 a PICK_DEADLINE
            20.000 cpu 0 b PICK_DEADLINE
            24.000 cpu 0 a PICK_DEADLINE
            28.000 cpu 0 b PICK_DEADLINE
            32.000 cpu 0 a PICK_DEADLINE
            36.000 cpu 0 b PICK_DEADLINE
            40.000 cpu 0 a PICK_DEADLINE
        v7.2..v7.3:
            1.400 cpu 0 b PICK_DEADLINE
            2.800 cpu 0 a PICK_DEADLINE
            5.600 cpu 0 b PICK_DEADLINE
            8.400 cpu 0 a PICK_DEADLINE
            11.200 cpu 0 b PICK_DEADLINE
            14.000 cpu 0 a PICK_DEADLINE
            16.800 cpu 0 b PICK_DEADLINE
            19.600 cpu 0 a PICK_DEADLINE
            22.400 cpu 0 b PICK_DEADLINE
            25.200 cpu 0 a PICK_DEADLINE
            28.000 cpu 0 b PICK_DEADLINE
            30.800 cpu 0 a PICK_DEADLINE
            33.600 cpu 0 b PICK_DEADLINE
            36.400 cpu 0 a PICK_DEADLINE
            39.200 cpu 0 b PICK_DEADLINE"#]]
    .assert_eq(&by_kernel("", turns));
    expect![[r#"
        v4.13..v6.3:
            11.999 cpu 0 b PICK_LEFTMOST
            23.999 cpu 0 a PICK_LEFTMOST
            35.999 cpu 0 b PICK_LEFTMOST
        v6.10:
            3.000 cpu 0 b PICK_DEADLINE
            6.000 cpu 0 a PICK_DEADLINE
            9.000 cpu 0 b PICK_DEADLINE
            12.000 cpu 0 a PICK_DEADLINE
            15.000 cpu 0 b PICK_DEADLINE
            18.000 cpu 0 a PICK_DEADLINE
            21.000 cpu 0 b PICK_DEADLINE
            24.000 cpu 0 a PICK_DEADLINE
            27.000 cpu 0 b PICK_DEADLINE
            30.000 cpu 0 a PICK_DEADLINE
            33.000 cpu 0 b PICK_DEADLINE
            36.000 cpu 0 a PICK_DEADLINE
            39.000 cpu 0 b PICK_DEADLINE
        v6.12:
            2.800 cpu 0 b PICK_DEADLINE
            5.600 cpu 0 a PICK_DEADLINE
            8.400 cpu 0 b PICK_DEADLINE
            11.200 cpu 0 a PICK_DEADLINE
            14.000 cpu 0 b PICK_DEADLINE
            16.800 cpu 0 a PICK_DEADLINE
            19.600 cpu 0 b PICK_DEADLINE
            22.400 cpu 0 a PICK_DEADLINE
            25.200 cpu 0 b PICK_DEADLINE
            28.000 cpu 0 a PICK_DEADLINE
            30.800 cpu 0 b PICK_DEADLINE
            33.600 cpu 0 a PICK_DEADLINE
            36.400 cpu 0 b PICK_DEADLINE
            39.200 cpu 0 a PICK_DEADLINE
        v7.2..v7.3:
            1.400 cpu 0 b PICK_DEADLINE
            2.800 cpu 0 a PICK_DEADLINE
            5.600 cpu 0 b PICK_DEADLINE
            8.400 cpu 0 a PICK_DEADLINE
            11.200 cpu 0 b PICK_DEADLINE
            14.000 cpu 0 a PICK_DEADLINE
            16.800 cpu 0 b PICK_DEADLINE
            19.600 cpu 0 a PICK_DEADLINE
            22.400 cpu 0 b PICK_DEADLINE
            25.200 cpu 0 a PICK_DEADLINE
            28.000 cpu 0 b PICK_DEADLINE
            30.800 cpu 0 a PICK_DEADLINE
            33.600 cpu 0 b PICK_DEADLINE
            36.400 cpu 0 a PICK_DEADLINE
            39.200 cpu 0 b PICK_DEADLINE"#]]
    .assert_eq(&by_kernel("+HRTICK", turns));
    expect![[r#"
        v4.13..v6.3:
            12.000 cpu 0 b PICK_LEFTMOST
            24.000 cpu 0 a PICK_LEFTMOST
            36.000 cpu 0 b PICK_LEFTMOST
        v6.10..v7.3:
            4.000 cpu 0 b PICK_DEADLINE
            8.000 cpu 0 a PICK_DEADLINE
            12.000 cpu 0 b PICK_DEADLINE
            16.000 cpu 0 a PICK_DEADLINE
            20.000 cpu 0 b PICK_DEADLINE
            24.000 cpu 0 a PICK_DEADLINE
            28.000 cpu 0 b PICK_DEADLINE
            32.000 cpu 0 a PICK_DEADLINE
            36.000 cpu 0 b PICK_DEADLINE
            40.000 cpu 0 a PICK_DEADLINE"#]]
    .assert_eq(&by_kernel("+NO_HRTICK", turns));
}

#[test]
fn a_short_slice_means_short_turns() {
    expect![[r#"
        v4.13..v6.3:
            11.999 cpu 0 a PICK_LEFTMOST
        v6.10:
            3.000 cpu 0 a PICK_DEADLINE
            6.000 cpu 0 s PICK_DEADLINE
            9.000 cpu 0 a PICK_DEADLINE
            12.000 cpu 0 s PICK_DEADLINE
        v6.12:
            1.000 cpu 0 a PICK_DEADLINE
            3.800 cpu 0 s PICK_DEADLINE
            8.000 cpu 0 a PICK_DEADLINE
            10.800 cpu 0 s PICK_DEADLINE
            11.800 cpu 0 a PICK_DEADLINE
        v7.2..v7.3:
            0.500 cpu 0 a PICK_DEADLINE
            1.900 cpu 0 s PICK_DEADLINE
            2.900 cpu 0 a PICK_DEADLINE
            4.000 cpu 0 s PICK_DEADLINE
            8.000 cpu 0 a PICK_DEADLINE
            12.000 cpu 0 s PICK_DEADLINE"#]]
    .assert_eq(&by_kernel("+HRTICK", |kernel| {
        let mut lab = lab(kernel);
        let spec = NewTask { slice: Some(MS), ..lab.spec() };
        lab.fork("s", 0, spec);
        lab.hog("a", 0);
        lab.log();
        lab.run(12 * MS);
        lab.log()
    }));
}

/// A hog that ran for 2 ms sleeps while `b` waits.
fn overdrawn_sleeper(kernel: &str) -> (Lab, TaskId, TaskId) {
    let mut lab = lab(kernel).without_ticks();
    let a = lab.hog("a", 0);
    let b = lab.hog("b", 0);
    lab.run(2 * MS);
    if lab.running(0) != "a" {
        lab.run(2 * MS);
    }
    let first = if lab.running(0) == "a" { a } else { b };
    let second = if first == a { b } else { a };
    lab.sleep(first);
    (lab, first, second)
}

fn state(lab: &mut Lab, task: TaskId) -> String {
    let queue = lab.sched.cfs(ROOT);
    let counts = format!("queued {} runnable {}", queue.h_nr_queued, queue.h_nr_runnable);
    let se = &lab.sched.task(task).se;
    let lag = if se.on_rq { String::from("-") } else { format!("{} us", se.vlag / US as i64) };
    format!("delayed {} lag {lag} {counts}", se.sched_delayed)
}

#[test]
fn a_sleeper_that_ran_too_much_stays_queued_until_it_is_paid() {
    let story = |kernel: &str| {
        let (mut lab, sleeper, _) = overdrawn_sleeper(kernel);
        let asleep = state(&mut lab, sleeper);
        lab.run(4 * MS);
        lab.sched.tick(CPU, lab.time());
        lab.settle();
        let later = state(&mut lab, sleeper);
        format!("\n    asleep: {asleep}\n    later: {later}")
    };
    expect![[r#"
        v4.13..v6.3:
        v6.10:
            asleep: delayed false lag -1000 us queued 1 runnable 1
            later: delayed false lag -1000 us queued 1 runnable 1
        v6.12..v7.3:
            asleep: delayed true lag - queued 2 runnable 1
            later: delayed false lag 0 us queued 1 runnable 1"#]]
    .assert_eq(&eevdf_only("", story));
    expect![[r#"
        v4.13..v6.3:
        v6.10..v6.12:
            asleep: delayed false lag -1000 us queued 1 runnable 1
            later: delayed false lag -1000 us queued 1 runnable 1
        v7.2..v7.3:
            asleep: delayed false lag -600 us queued 1 runnable 1
            later: delayed false lag -600 us queued 1 runnable 1"#]]
    .assert_eq(&eevdf_only("+NO_DELAY_DEQUEUE", story));
    expect![[r#"
        v4.13..v6.3:
        v6.10:
            asleep: delayed false lag -1000 us queued 1 runnable 1
            later: delayed false lag -1000 us queued 1 runnable 1
        v6.12:
            asleep: delayed true lag - queued 2 runnable 1
            later: delayed false lag 1000 us queued 1 runnable 1
        v7.2..v7.3:
            asleep: delayed true lag - queued 2 runnable 1
            later: delayed false lag 800 us queued 1 runnable 1"#]]
    .assert_eq(&eevdf_only("+NO_DELAY_ZERO", story));
}

/// Runs a test on the kernels with EEVDF only.
fn eevdf_only(with: &str, story: impl Fn(&str) -> String) -> String {
    by_kernel(with, |kernel| if lab(kernel).sched.is_eevdf() { story(kernel) } else { String::new() })
}

#[test]
fn a_sleeper_woken_while_still_queued_gains_no_lag() {
    // Woken after a while: still in debt, or owed service by now.
    let story = |kernel: &str, sleeps: u64| {
        let (mut lab, sleeper, _) = overdrawn_sleeper(kernel);
        let lag = |lab: &mut Lab| {
            lab.sched.update_rq_clock(CPU, lab.time());
            lab.sched.update_curr(ROOT);
            let average = lab.sched.avg_vruntime(ROOT);
            average.wrapping_sub(lab.sched.task(sleeper).se.vruntime) as i64 / 1000
        };
        lab.run(sleeps);
        let before = lag(&mut lab);
        let delayed = lab.sched.task(sleeper).se.sched_delayed;
        lab.wake(sleeper);
        format!("delayed {delayed} lag {before} us -> {} us", lag(&mut lab))
    };
    expect![[r#"
        v4.13..v6.3:
        v6.10: delayed false lag -1500 us -> -1000 us
        v6.12: delayed true lag -750 us -> -750 us
        v7.2..v7.3: delayed true lag -350 us -> -350 us"#]]
    .assert_eq(&eevdf_only("", |kernel| story(kernel, MS / 2)));
    expect![[r#"
        v4.13..v6.3:
        v6.10: delayed false lag 2000 us -> -1000 us
        v6.12: delayed true lag 1000 us -> 0 us
        v7.2..v7.3: delayed false lag 2800 us -> 0 us"#]]
    .assert_eq(&eevdf_only("", |kernel| story(kernel, 4 * MS)));
    expect![[r#"
        v4.13..v6.3:
        v6.10: delayed false lag 2000 us -> -1000 us
        v6.12: delayed true lag 1000 us -> 1000 us
        v7.2..v7.3: delayed false lag 2800 us -> 800 us"#]]
    .assert_eq(&eevdf_only("+NO_DELAY_ZERO", |kernel| story(kernel, 4 * MS)));
}

#[test]
fn lag_survives_sleep_and_migration() {
    let story = |kernel: &str| {
        let mut lab = lab(kernel).without_ticks();
        let a = lab.hog("a", 0);
        lab.hog("b", 0);
        lab.hog("c", 1);
        lab.run(MS);
        // b waits and is owed; moved to the other queue it is still owed.
        let waiting = if lab.running(0) == "a" { TaskId(1) } else { a };
        let lag = |lab: &mut Lab, cpu: u16| {
            let cfs = CfsRqId(cpu.into());
            lab.sched.update_rq_clock(CpuId(cpu), lab.time());
            lab.sched.update_curr(cfs);
            let average = lab.sched.avg_vruntime(cfs);
            average.wrapping_sub(lab.sched.task(waiting).se.vruntime) as i64 / 1000
        };
        let before = lag(&mut lab, 0);
        let now = lab.time();
        lab.sched.move_queued_task(waiting, CpuId(1), crate::MigrationCause::Periodic, now);
        format!("{before} us -> {} us", lag(&mut lab, 1))
    };
    expect![[r#"
        v4.13..v6.3:
        v6.10..v7.3: 500 us -> 500 us"#]]
    .assert_eq(&eevdf_only("", story));
    expect![[r#"
        v4.13..v6.3:
        v6.10..v7.3: 500 us -> 0 us"#]]
    .assert_eq(&eevdf_only("+NO_PLACE_LAG", story));
}

#[test]
fn what_a_yield_gives_up() {
    let story = |kernel: &str, runs: u64| {
        let mut lab = lab(kernel).without_ticks();
        lab.hog("a", 0);
        lab.hog("b", 0);
        lab.run(runs);
        let curr = lab.sched.rqs[CPU].curr.task().unwrap();
        lab.ran(curr);
        let before = lab.sched.task(curr).se.clone();
        let now = lab.time();
        lab.sched.yield_task(CPU, now);
        let se = &lab.sched.task(curr).se;
        let change = |a: u64, b: u64| (a.wrapping_sub(b) as i64) / 1000;
        let skip = lab.sched.cfs(ROOT).skip == Some(SeId(curr.0));
        let (v, d) = (change(se.vruntime, before.vruntime), change(se.deadline, before.deadline));
        format!("vruntime +{v} us, deadline +{d} us, skip {skip}")
    };
    // Owed service, and not.
    expect![[r#"
        v4.13..v6.3: vruntime +0 us, deadline +0 us, skip true
        v6.10: vruntime +0 us, deadline +3000 us, skip false
        v6.12..v7.3: vruntime +1400 us, deadline +2800 us, skip false"#]]
    .assert_eq(&by_kernel("", |kernel| story(kernel, 0)));
    expect![[r#"
        v4.13..v6.3: vruntime +0 us, deadline +0 us, skip true
        v6.10: vruntime +0 us, deadline +3000 us, skip false
        v6.12..v7.3: vruntime +0 us, deadline +0 us, skip false"#]]
    .assert_eq(&by_kernel("", |kernel| story(kernel, MS)));
}

#[test]
fn a_group_of_which_a_task_sleeps_is_preferred_next() {
    expect![[r#"
        v4.13..v7.2: marked true
        v7.3: marked false"#]]
    .assert_eq(&by_kernel("+NO_DELAY_DEQUEUE", |kernel| {
        let mut lab = lab(kernel).without_ticks();
        let tg = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CPU, lab.time());
        let spec = NewTask { tg, ..lab.spec() };
        lab.fork("a", 0, spec.clone());
        lab.fork("b", 0, spec);
        lab.hog("c", 0);
        while lab.running(0) == "c" {
            let now = lab.time();
            lab.sched.yield_task(CPU, now);
            lab.sched.resched_curr(CPU, false);
            lab.settle();
            lab.run(MS);
        }
        lab.run(100 * US);
        let curr = lab.sched.rqs[CPU].curr.task().unwrap();
        let now = lab.time();
        lab.sched.update_rq_clock(CPU, now);
        let flags = crate::DequeueFlags { sleep: true, ..Default::default() };
        lab.sched.deactivate(curr, flags, now);
        let next = lab.sched.cfs(ROOT).next;
        format!("marked {}", next == Some(lab.sched.tg(tg).se[0]))
    }));
}

#[test]
fn a_groups_slice_is_the_shortest_below_it() {
    expect![[r#"
        v4.13..v6.3: 0 us, with a short one 0 us, without 0 us
        v6.10: 3000 us, with a short one 3000 us, without 3000 us
        v6.12..v7.2: 2800 us, with a short one 1000 us, without 2800 us
        v7.3: 0 us, with a short one 0 us, without 0 us"#]]
    .assert_eq(&by_kernel("", |kernel| {
        let mut lab = lab(kernel).without_ticks();
        let tg = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CPU, lab.time());
        let spec = NewTask { tg, ..lab.spec() };
        lab.hog("x", 0);
        lab.fork("a", 0, spec.clone());
        let slice = |lab: &Lab| lab.sched.se(lab.sched.tg(tg).se[0]).slice / 1000;
        let alone = slice(&lab);
        let short = lab.fork("b", 0, NewTask { slice: Some(MS), ..spec });
        let with_short = slice(&lab);
        let now = lab.time();
        // In v7.3 it preempts, and therefore stays.
        if lab.sched.rqs[CPU].curr.task() != Some(short) {
            lab.sched.move_queued_task(short, CpuId(1), crate::MigrationCause::Periodic, now);
        }
        format!("{alone} us, with a short one {with_short} us, without {} us", slice(&lab))
    }));
}

#[test]
fn a_lazy_request_becomes_a_full_one_at_the_tick() {
    // Under PREEMPT_AUTO only if the tick makes a request too: not while the running task is alone.
    for (model, others, expected) in [
        (
            "",
            0,
            expect![[r#"
            v4.13..v6.12: lazy true full false
            v7.2..v7.3: lazy true full true"#]],
        ),
        ("+preempt=full", 0, expect!["v4.13..v7.3: lazy true full false"]),
        ("+preempt=auto/none", 0, expect!["v4.13..v7.3: lazy true full false"]),
        ("+preempt=auto/none", 1, expect!["v4.13..v7.3: lazy true full true"]),
    ] {
        expected.assert_eq(&by_kernel(model, |kernel| {
            let mut lab = lab(kernel).without_ticks();
            for name in ["a", "b"].iter().take(1 + others) {
                lab.hog(name, 0);
            }
            lab.sched.resched_curr(CPU, true);
            let now = lab.time() + Duration(40 * MS);
            lab.sched.tick(CPU, now);
            let bits = lab.sched.rqs[CPU].need_resched;
            format!("lazy {} full {}", bits.lazy, bits.full)
        }));
    }
}

#[test]
fn the_balancers_list_is_in_order_of_last_use() {
    expect![[r#"
        v4.13: cba, later 3 first false
        v5.5..v7.3: cba, later 3 first true"#]]
    .assert_eq(&by_kernel("", |kernel| {
        let mut lab = lab(kernel);
        for name in ["a", "b", "c"] {
            lab.hog(name, 0);
        }
        let names = |lab: &Lab| -> String {
            lab.sched.cfs_tasks(CPU).map(|task| ["a", "b", "c"][task.index()]).collect()
        };
        let fresh = names(&lab);
        lab.run(200 * MS);
        format!("{fresh}, later {} first {}", names(&lab).len(), names(&lab).starts_with(lab.running(0)))
    }));
}

#[test]
fn a_migrated_task_is_cold_from_its_enqueue_or_from_its_leaving_on() {
    expect![[r#"
        v4.13..v5.18: left true, enqueued true
        v6.1..v7.3: left false, enqueued true"#]]
    .assert_eq(&by_kernel("", |kernel| {
        let mut lab = lab(kernel).without_ticks();
        let a = lab.hog("a", 0);
        lab.hog("b", 0);
        lab.run(2 * MS);
        let now = lab.time();
        lab.sched.yield_task(CPU, now);
        lab.sched.resched_curr(CPU, false);
        lab.settle();
        let waits = if lab.running(0) == "a" { TaskId(1) } else { a };
        let now = lab.time();
        let flags = crate::DequeueFlags { migrate: true, ..Default::default() };
        lab.sched.deactivate(waits, flags, now);
        lab.sched.set_task_cpu(waits, CpuId(1), crate::MigrationCause::Periodic, now);
        let left = lab.sched.task(waits).se.exec_start == 0;
        let flags = crate::EnqueueFlags { migrated: true, ..Default::default() };
        lab.sched.activate(waits, CpuId(1), flags, now);
        format!("left {left}, enqueued {}", lab.sched.task(waits).se.exec_start == 0)
    }));
}

#[test]
fn a_throttled_task_does_not_preempt() {
    expect!["v4.13..v7.3: h runs, KEEP_THROTTLED"].assert_eq(&by_kernel("", |kernel| {
        let mut lab = lab(kernel);
        let tg = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CPU, lab.time());
        let now = lab.time();
        lab.sched.set_bandwidth(tg, Some(2 * MS), 100 * MS, 0, now);
        let spec = NewTask { tg, ..lab.spec() };
        let tasks = [lab.fork("a", 0, spec.clone()), lab.fork("b", 0, spec)];
        lab.hog("h", 0);
        lab.run(60 * MS);
        let waits = tasks.into_iter().find(|&task| lab.sched.rqs[CPU].curr.task() != Some(task)).unwrap();
        format!(
            "{} runs, {}",
            lab.running(0),
            lab.sched.check_preempt(CPU, waits, crate::wf::TTWU).reason.name()
        )
    }));
}

#[test]
fn guarded_sums_shrink_their_weights_instead_of_overflowing() {
    let story = |kernel: &str| {
        let mut lab = lab(kernel).without_ticks();
        for _ in 0..3 {
            lab.nice_hog("h", 0, -20);
        }
        // An entity far from the zero point leaves and returns.
        let far = SeId(2);
        lab.sched.timeline_remove(ROOT, far);
        let away = 1 << 37;
        lab.sched.se_mut(far).vruntime = lab.sched.cfs(ROOT).zero_vruntime.wrapping_add(away);
        lab.sched.timeline_add(ROOT, far);
        lab.sched.check();
        let queue = lab.sched.cfs(ROOT);
        // Half of the weight on the timeline is that far away.
        let right = queue.avg_vruntime as i128 > i128::from(away / 4) * i128::from(queue.avg_load);
        format!("shift {}, sum {}", queue.sum_shift, if right { "right" } else { "overflown" })
    };
    let v7 = |with| {
        by_kernel(with, |kernel| if kernel.starts_with("v7.") { story(kernel) } else { String::new() })
    };
    expect![[r#"
        v4.13..v6.12:
        v7.2..v7.3: shift 0, sum overflown"#]]
    .assert_eq(&v7(""));
    expect![[r#"
        v4.13..v6.12:
        v7.2..v7.3: shift 1, sum right"#]]
    .assert_eq(&v7("+PARANOID_AVG"));
}
