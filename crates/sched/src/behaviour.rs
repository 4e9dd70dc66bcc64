//! What a user sees of the queueing half, in plain words, on every preset.

use alloc::string::ToString;
use alloc::vec::Vec;

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::lab::{ALL, Lab, MS};
use crate::{NICE_0_LOAD, NewTask, Policy, TgId};

/// Asserts parts of a thousand.
#[track_caller]
fn check_shares(kernel: &str, shares: &[u64], expected: &[u64], within: u64) {
    let close = |(share, expected): (&u64, &u64)| share.abs_diff(*expected) <= within;
    assert!(shares.iter().zip(expected).all(close), "{kernel}: {shares:?}, expected {expected:?}");
}

#[test]
fn two_equal_tasks_share_evenly() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let tasks = [lab.hog("a", 0), lab.hog("b", 0)];
        let shares = lab.shares(&tasks, 2_000 * MS);
        check_shares(kernel, &shares, &[500, 500], 10);
    }
}

#[test]
fn nice_0_and_nice_5_share_three_to_one() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let tasks = [lab.hog("a", 0), lab.nice_hog("b", 0, 5)];
        let shares = lab.shares(&tasks, 4_000 * MS);
        check_shares(kernel, &shares, &[753, 246], 10);
    }
}

#[test]
fn every_nice_level_gets_its_weight_among_many() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let nices = [-5, -1, 0, 3, 10];
        let tasks: Vec<TaskId> = nices.iter().map(|&nice| lab.nice_hog("t", 0, nice)).collect();
        lab.run(500 * MS);
        let shares = lab.shares(&tasks, 8_000 * MS);
        let weights = nices.map(crate::prio_to_weight);
        let expected = weights.map(|weight| 1000 * weight / weights.iter().sum::<u64>());
        check_shares(kernel, &shares, &expected, 15);
    }
}

#[test]
fn a_sched_idle_task_gets_what_is_left() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let spec = NewTask { policy: Policy::Idle, ..lab.spec() };
        let tasks = [lab.hog("a", 0), lab.fork("i", 0, spec)];
        let shares = lab.shares(&tasks, 20_000 * MS);
        assert!(shares[0] >= 990 && shares[1] > 0, "{kernel}: {shares:?}");
    }
}

#[test]
fn a_short_sleeper_preempts_a_hog_within_a_slice() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let sleeper = lab.hog("s", 0);
        lab.run(MS);
        lab.sleep(sleeper);
        lab.hog("h", 0);
        lab.run(100 * MS);
        lab.wake(sleeper);
        let before = lab.now;
        while lab.running(0) != "s" {
            lab.run(MS / 10);
            assert!(lab.now - before < 8 * MS, "{kernel}: the sleeper still waits");
        }
    }
}

/// Tasks of a new group below `parent`, on CPU 0.
fn group_of(lab: &mut Lab, parent: TgId, shares: u64, nr: usize) -> (TgId, Vec<TaskId>) {
    let tg = lab.sched.new_group(parent, shares, CpuId(0), lab.time());
    let spec = NewTask { tg, ..lab.spec() };
    (tg, (0..nr).map(|_| lab.fork("t", 0, spec.clone())).collect())
}

#[test]
fn a_group_of_one_and_a_group_of_nine_share_evenly() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let (_, one) = group_of(&mut lab, TgId::ROOT, NICE_0_LOAD, 1);
        let (_, nine) = group_of(&mut lab, TgId::ROOT, NICE_0_LOAD, 9);
        lab.run(500 * MS);
        let tasks: Vec<TaskId> = one.into_iter().chain(nine).collect();
        let shares = lab.shares(&tasks, 4_000 * MS);
        let groups = [shares[0], shares[1..].iter().sum()];
        check_shares(kernel, &groups, &[500, 500], 20);
        check_shares(kernel, &shares[1..], &[55; 9], 6);
    }
}

#[test]
fn the_weights_of_nested_groups_multiply() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        // A group of three quarters holds two that share it two to one.
        let (outer, _) = group_of(&mut lab, TgId::ROOT, 3 * NICE_0_LOAD, 0);
        let (_, a) = group_of(&mut lab, outer, 2 * NICE_0_LOAD, 2);
        let (_, b) = group_of(&mut lab, outer, NICE_0_LOAD, 1);
        let beside = lab.hog("t", 0);
        lab.run(500 * MS);
        let shares = lab.shares(&[a[0], a[1], b[0], beside], 6_000 * MS);
        check_shares(kernel, &shares, &[250, 250, 250, 250], 20);
    }
}

#[test]
fn new_shares_take_effect_at_once() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let (a, first) = group_of(&mut lab, TgId::ROOT, NICE_0_LOAD, 1);
        let (_, second) = group_of(&mut lab, TgId::ROOT, NICE_0_LOAD, 1);
        lab.run(500 * MS);
        let now = lab.time();
        lab.sched.set_shares(a, 4 * NICE_0_LOAD, now);
        let shares = lab.shares(&[first[0], second[0]], 4_000 * MS);
        check_shares(kernel, &shares, &[800, 200], 20);
    }
}

#[test]
fn an_idle_group_gets_what_is_left_where_groups_can_be_idle() {
    let since = ALL[2..].iter().map(|kernel| (kernel.to_string(), true));
    let before = ALL[..2].iter().map(|kernel| (kernel.to_string(), false));
    let without = ALL[2..].iter().map(|kernel| (alloc::format!("{kernel}+NO_IDLE_GROUPS"), false));
    for (kernel, can_be_idle) in before.chain(since).chain(without) {
        let mut lab = Lab::new(&kernel, "1x1x1");
        let (tg, idle) = group_of(&mut lab, TgId::ROOT, NICE_0_LOAD, 1);
        let now = lab.time();
        lab.sched.set_idle_group(tg, true, now);
        let hog = lab.hog("t", 0);
        let shares = lab.shares(&[hog, idle[0]], 10_000 * MS);
        if can_be_idle {
            assert!(shares[0] >= 990, "{kernel}: {shares:?}");
        } else {
            // There is no cpu.idle: it is a group like any other.
            check_shares(&kernel, &shares, &[500, 500], 20);
        }
    }
}

#[test]
fn a_quota_is_honoured_within_each_period() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let (tg, tasks) = group_of(&mut lab, TgId::ROOT, NICE_0_LOAD, 2);
        let now = lab.time();
        lab.sched.set_bandwidth(tg, Some(30 * MS), 100 * MS, 0, now);
        lab.run(200 * MS);
        for _ in 0..10 {
            let shares = lab.shares(&tasks, 100 * MS);
            let used = shares[0] + shares[1];
            // What a tick is late is paid back in the next period.
            assert!(used.abs_diff(300) <= 42, "{kernel}: {shares:?}");
        }
        let shares = lab.shares(&tasks, 5_000 * MS);
        check_shares(kernel, &[shares[0] + shares[1]], &[300], 6);
        assert!(lab.sched.tg(tg).bandwidth.nr_throttled >= 50, "{kernel}");
    }
}

#[test]
fn a_quota_bounds_a_group_on_all_cpus_together() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x2");
        let tg = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), lab.time());
        let spec = NewTask { tg, ..lab.spec() };
        let tasks = [lab.fork("a", 0, spec.clone()), lab.fork("b", 1, spec)];
        let now = lab.time();
        lab.sched.set_bandwidth(tg, Some(80 * MS), 100 * MS, 0, now);
        lab.run(200 * MS);
        let shares = lab.shares(&tasks, 5_000 * MS);
        check_shares(kernel, &[shares[0] + shares[1]], &[800], 10);
    }
}

#[test]
fn without_a_quota_a_throttled_group_runs_again() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let (tg, tasks) = group_of(&mut lab, TgId::ROOT, NICE_0_LOAD, 1);
        let now = lab.time();
        lab.sched.set_bandwidth(tg, Some(5 * MS), 100 * MS, 0, now);
        lab.run(250 * MS);
        let now = lab.time();
        lab.sched.set_bandwidth(tg, None, 100 * MS, 0, now);
        lab.settle();
        assert_eq!(lab.shares(&tasks, 100 * MS), [1000], "{kernel}");
    }
}

#[test]
fn a_group_is_throttled_and_let_go_on_by_the_driver() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let (tg, tasks) = group_of(&mut lab, TgId::ROOT, NICE_0_LOAD, 2);
        let other = lab.hog("o", 0);
        lab.run(20 * MS);
        for &task in &tasks {
            let now = lab.time();
            lab.sched.apply_throttle(task, tg, now);
            lab.sched.check();
        }
        assert!(tasks.iter().all(|&task| lab.sched.throttled_hierarchy_of(task)), "{kernel}");
        lab.sched.resched_now(CpuId(0));
        lab.settle();
        assert_eq!(lab.shares(&[tasks[0], tasks[1], other], 100 * MS), [0, 0, 1000], "{kernel}");
        let now = lab.time();
        lab.sched.apply_unthrottle(tasks[1], now);
        lab.sched.check();
        let shares = lab.shares(&[tasks[0], tasks[1], other], 5_000 * MS);
        check_shares(kernel, &shares, &[250, 250, 500], 10);
    }
}

#[test]
fn a_fifo_task_leaves_the_fair_class_a_twentieth() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let fair = lab.hog("f", 0);
        let spec = NewTask { policy: Policy::Fifo(10), ..lab.spec() };
        let fifo = lab.fork("r", 0, spec);
        assert_eq!(lab.running(0), "r", "{kernel}: a higher class preempts at once");
        let shares = lab.shares(&[fair, fifo], 10_000 * MS);
        check_shares(kernel, &shares, &[50, 950], 6);
    }
}

#[test]
fn round_robin_takes_turns_of_a_tenth_of_a_second() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let spec = NewTask { policy: Policy::Rr(10), ..lab.spec() };
        let tasks = [lab.fork("a", 0, spec.clone()), lab.fork("b", 0, spec)];
        let switches = lab.switches.len();
        let shares = lab.shares(&tasks, 900 * MS);
        check_shares(kernel, &shares, &[500, 500], 60);
        let turns = lab.switches[switches..].iter().filter(|(.., s)| s.prev != s.next).count();
        assert!((8..=10).contains(&turns), "{kernel}: {turns} turns");
    }
}

#[test]
fn an_rt_task_that_would_wait_runs_elsewhere() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x3");
        let fifo = |lab: &Lab, priority| NewTask { policy: Policy::Fifo(priority), ..lab.spec() };
        lab.hog("f", 1);
        let (high, low) = (fifo(&lab, 20), fifo(&lab, 10));
        lab.fork("a", 0, high.clone());
        // To RT an idle CPU and one with a fair task are alike: the first is taken.
        lab.fork("b", 0, low.clone());
        assert_eq!([0, 1, 2].map(|cpu| lab.running(cpu)), ["a", "b", "idle"], "{kernel}");
        // All CPUs run RT then; the next one waits and is pulled when a CPU is free of RT.
        let c = lab.fork("c", 0, low);
        assert_eq!([0, 1, 2].map(|cpu| lab.running(cpu)), ["a", "b", "c"], "{kernel}");
        let d = lab.fork("d", 0, fifo(&lab, 5));
        lab.run(MS);
        assert!(!lab.sched.task(d).on_cpu, "{kernel}: there is no CPU for it");
        lab.sleep(c);
        assert_eq!(lab.running(2), "d", "{kernel}");
        // One bound to its CPU stays.
        let bound =
            NewTask { allowed: alloc::sync::Arc::new(schedlab_topology::CpuMask::one(3, CpuId(0))), ..high };
        let e = lab.fork("e", 0, bound);
        lab.run(MS);
        assert_eq!(lab.sched.task(e).cpu, CpuId(0), "{kernel}");
    }
}

#[test]
fn a_deadline_task_gets_its_budget_per_period_and_no_more() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let fair = lab.hog("f", 0);
        let policy = Policy::Deadline { runtime: 20 * MS, deadline: 80 * MS, period: 100 * MS };
        let spec = NewTask { policy, ..lab.spec() };
        let deadline = lab.fork("d", 0, spec);
        let shares = lab.shares(&[fair, deadline], 5_000 * MS);
        check_shares(kernel, &shares, &[790, 205], 20);
    }
}

#[test]
fn a_task_changes_its_nice_level_while_it_runs() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let tasks = [lab.hog("a", 0), lab.hog("b", 0)];
        lab.run(100 * MS);
        let now = lab.time();
        lab.sched.set_nice(tasks[1], 5, now);
        lab.settle();
        let shares = lab.shares(&tasks, 4_000 * MS);
        check_shares(kernel, &shares, &[753, 246], 10);
    }
}

#[test]
fn a_yielding_task_lets_the_other_run() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        lab.hog("a", 0);
        lab.hog("b", 0);
        lab.run(400 * MS);
        let mut others = 0;
        for _ in 0..20 {
            let before = lab.running(0).as_bytes()[0];
            let now = lab.time();
            lab.sched.yield_task(CpuId(0), now);
            lab.sched.resched_curr(CpuId(0), false);
            lab.settle();
            others += (lab.running(0).as_bytes()[0] != before) as u32;
            lab.run(MS / 2);
        }
        assert!(others >= 8, "{kernel}: {others} of 20 yields let the other run");
    }
}
