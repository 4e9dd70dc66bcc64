//! Drawn wake-ups, forks and execs: what each generation of kernels decides. The tests are in the files whose
//! rules they show.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;

use expect_test::Expect;
use schedlab_topology::{CpuId, CpuMask};

use crate::drawing::{Drawn, NOW, by_kernel, draw};
use crate::{Candidate, Placement, Policy, Reason, Wakeup};

/// `wake NAME prev=0 [waker=NAME] [this=0] [sync] [irq] [here] [exiting] [allowed=0-3]
/// [recent=1] [flips=WAKER/WAKEE] [load=..] [util=..] [queued|delayed|leaving] [rt]`,
/// `fork by=NAME [allowed=..]`, `exec NAME [allowed=..]`.
#[track_caller]
fn decide(kernel: &str, drawing: &str, request: &str, passed_over: &RefCell<Vec<Candidate>>) -> String {
    let mut drawn = draw(kernel, drawing);
    let mut words = request.split_whitespace();
    let verb = words.next().unwrap();
    let words: Vec<&str> = words.collect();
    let value = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let has = |name: &str| words.contains(&name);
    let cpu = |name: &str| value(name).map(|cpu| CpuId(cpu.parse().unwrap()));
    match verb {
        "wake" => {
            let prev = cpu("prev").unwrap();
            let task = drawn.make(words[0], prev);
            // A sleeper without load, unless specified.
            drawn.sched.task_mut(task).se.avg.load_avg = 0;
            set(&mut drawn, task, &value);
            drawn.sched.task_mut(task).recent_used_cpu = cpu("recent");
            if has("rt") {
                drawn.sched.task_mut(task).policy = Policy::Fifo(1);
            }
            if has("queued") {
                drawn.queue(task);
            }
            if has("delayed") {
                drawn.queue(task);
                drawn.sched.task_mut(task).se.sched_delayed = true;
            }
            drawn.sched.task_mut(task).on_cpu = has("leaving");
            let waker = value("waker").map(|name| if name == words[0] { task } else { drawn.task(name) });
            let this = cpu("this").unwrap_or_else(|| drawn.cpu_of(value("waker").unwrap()));
            if let Some(waker) = waker {
                drawn.sched.task_mut(waker).exiting = has("exiting");
            }
            let wakeup = Wakeup {
                task,
                waker,
                this_cpu: this,
                sync: has("sync"),
                in_task: !has("irq"),
                current_cpu: has("here"),
            };
            if let Some((of_waker, of_wakee)) = value("flips").and_then(|flips| flips.split_once('/')) {
                if let Some(waker) = waker {
                    let waker = drawn.sched.task_mut(waker);
                    waker.wakee_flips = of_waker.parse().unwrap();
                    waker.last_wakee = Some(task);
                    waker.wakee_flip_decay = NOW.0 / 4_000_000;
                }
                drawn.sched.task_mut(task).wakee_flips = of_wakee.parse().unwrap();
            }
            let decision = drawn.sched.decide_wakeup(&wakeup, NOW, Some(passed_over));
            let mut shown = match &decision.placement {
                Some(placement) => shown(placement),
                None => format!("cpu {}, {}", decision.cpu, decision.reason().name()),
            };
            if decision.remote {
                shown += ", remote";
            }
            shown
        }
        "fork" => {
            let parent = drawn.task(value("by").unwrap());
            let this = drawn.sched.task(parent).cpu;
            let task = drawn.make("child", this);
            set(&mut drawn, task, &value);
            shown(&drawn.sched.decide_fork(task, this, NOW, Some(passed_over)))
        }
        "exec" => {
            let task = drawn.task(words[0]);
            set(&mut drawn, task, &value);
            shown(&drawn.sched.decide_exec(task, NOW, Some(passed_over)))
        }
        _ => panic!("what is {verb}?"),
    }
}

fn set<'a>(drawn: &mut Drawn, task: schedlab_units::TaskId, value: &impl Fn(&str) -> Option<&'a str>) {
    let nr_cpus = drawn.sched.rqs.len();
    if let Some(list) = value("allowed") {
        let allowed = CpuMask::parse_list(list, nr_cpus).unwrap();
        let task = drawn.sched.task_mut(task);
        task.nr_cpus_allowed = allowed.weight() as u32;
        task.allowed = Arc::new(allowed);
    }
    let number = |name: &str| value(name).map(|n| n.parse::<u64>().unwrap());
    let avg = &mut drawn.sched.task_mut(task).se.avg;
    avg.load_avg = number("load").unwrap_or(avg.load_avg);
    avg.util_avg = number("util").unwrap_or(avg.util_avg);
    let util = avg.util_avg as u32;
    drawn.sched.task_mut(task).util_est_ewma = util;
    drawn.sched.task_mut(task).util_est_enqueued = util;
}

/// `cpu 0, KTHREAD_STACK, examined 0`, and the affine step if it took part.
fn shown(placement: &Placement) -> String {
    let mut shown =
        format!("cpu {}, {}, examined {}", placement.cpu, placement.reason.name(), placement.examined);
    if let Some((reason, cpu)) = placement.affine
        && reason != Reason::NoAffine
    {
        shown += &format!(", {} {cpu}", reason.name());
    }
    if placement.clear_idle_cores.is_some() {
        shown += ", no idle core";
    }
    shown
}

/// One kernel.
#[track_caller]
pub(super) fn check_wakeup(kernel: &str, drawing: &str, request: &str, expected: Expect) {
    expected.assert_eq(&decide(kernel, drawing, request, &RefCell::default()));
}

/// All presets, those with the same outcome together.
#[track_caller]
pub(super) fn check_all(drawing: &str, request: &str, expected: Expect) {
    let outcome = by_kernel("", |kernel| decide(kernel, drawing, request, &RefCell::default()));
    expected.assert_eq(&outcome);
}

/// The rejected CPUs and why, in the order of the search.
#[track_caller]
pub(super) fn check_passed_over(kernel: &str, drawing: &str, request: &str, expected: Expect) {
    let list = RefCell::default();
    let decision = decide(kernel, drawing, request, &list);
    let passed: Vec<String> =
        list.into_inner().iter().map(|passed| format!("{} {:?}", passed.cpu, passed.refused)).collect();
    expected.assert_eq(&format!("{decision}; {}", passed.join(", ")));
}
