//! What a user sees of the queueing half, in plain words, on every preset.

use alloc::vec::Vec;

use crate::lab::{ALL, Lab, MS};
use crate::{NewTask, Policy};

fn close(share: f64, expected: f64, within: f64) -> bool {
    (share - expected).abs() <= within
}

#[test]
fn two_equal_tasks_share_evenly() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let tasks = [lab.hog("a", 0), lab.hog("b", 0)];
        let shares = lab.shares(&tasks, 2_000 * MS);
        assert!(shares.iter().all(|&share| close(share, 50.0, 1.0)), "{kernel}: {shares:?}");
    }
}

#[test]
fn nice_0_and_nice_5_share_three_to_one() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let tasks = [lab.hog("a", 0), lab.nice_hog("b", 0, 5)];
        let shares = lab.shares(&tasks, 4_000 * MS);
        let expected = 100.0 * 1024.0 / (1024.0 + 335.0);
        assert!(close(shares[0], expected, 1.0), "{kernel}: {shares:?}, expected {expected}");
    }
}

#[test]
fn every_nice_level_gets_its_weight_among_many() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let nices = [-5, -1, 0, 3, 10];
        let tasks: Vec<_> = nices.iter().map(|&nice| lab.nice_hog("t", 0, nice)).collect();
        lab.run(500 * MS);
        let shares = lab.shares(&tasks, 8_000 * MS);
        let weights = nices.map(|nice| crate::prio_to_weight(nice) as f64);
        let sum: f64 = weights.iter().sum();
        for ((nice, share), weight) in nices.iter().zip(&shares).zip(weights) {
            assert!(close(*share, 100.0 * weight / sum, 1.5), "{kernel}: nice {nice} of {shares:?}");
        }
    }
}

#[test]
fn a_sched_idle_task_gets_what_is_left() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let spec = NewTask { policy: Policy::Idle, ..lab.spec() };
        let tasks = [lab.hog("a", 0), lab.fork("i", 0, spec)];
        let shares = lab.shares(&tasks, 20_000 * MS);
        assert!(shares[0] > 99.0 && shares[1] > 0.05, "{kernel}: {shares:?}");
    }
}

#[test]
fn a_short_sleeper_preempts_a_hog_within_a_slice() {
    for kernel in ALL {
        let mut lab = Lab::new(kernel, "1x1x1");
        let sleeper = lab.hog("s", 0);
        lab.run(MS);
        lab.sleep(sleeper);
        let hog = lab.hog("h", 0);
        lab.run(100 * MS);
        let _ = hog;
        lab.wake(sleeper);
        let before = lab.now;
        while lab.running(0) != "s" {
            lab.run(MS / 10);
            assert!(lab.now - before < 8 * MS, "{kernel}: the sleeper still waits");
        }
    }
}
