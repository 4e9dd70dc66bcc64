//! Small recordings and the programs learned from them.

use expect_test::{Expect, expect};
use schedlab_trace::read::{feed, ftrace};
use schedlab_units::Duration;

use crate::{Known, Learned, Learner, Missing, Step};

mod kernel_threads;
mod small_cpu;

/// A recording in short form: `CPU US TASK VERB ..`, where a task is `comm-pid`, and the idle task `<idle>-0`.
///
/// ```text
///   0 100 a-10 out S b-11     CPU 0, 100 us: a leaves in state S, b runs
///   0 100 a-10 wakes b-11     in a's own context
///   0 100 a-10 irq b-11       an interrupt that hits a wakes b
///   0 100 a-10 softirq b-11   a soft interrupt does
///   0 100 a-10 queues b-11    sched_wakeup on the same CPU
///   0 100 a-10 clones 10000 b-11  task_newtask with these flags, in hexadecimal
///   0 100 a-10 forks b-11     sched_process_fork
///   0 100 a-10 starts b-11    sched_wakeup_new
///   0 100 a-10 execs /bin/c
///   0 100 a-10 attaches 0 /g b-11  cgroup_attach_task to a group of hierarchy 0
///   0 100 a-10 makes 7 /g     cgroup_mkdir of a group with that number; `gives 7 300` its shares
///   0 100 a-10 allows 0-3 b-11   schedlab_affinity of b
///   0 100 a-10 balances 1 b-11   a soft interrupt that hits a moves b here from CPU 1
/// ```
/// A task may carry its priority: `b-11@125`.
fn ftrace_text(short: &str) -> String {
    short.trim().lines().map(|line| ftrace_line(line.trim()) + "\n").collect()
}

fn ftrace_line(short: &str) -> String {
    let words: Vec<&str> = short.split_whitespace().collect();
    let [cpu, us, task, verb, rest @ ..] = &words[..] else { panic!("{short}") };
    let (comm, pid, prio) = task_of(task);
    let us: u64 = us.parse().unwrap();
    let other = || task_of(rest[rest.len() - 1]);
    let flags = match *verb {
        "irq" => "d.h2.",
        "softirq" | "balances" => "d.s2.",
        _ => "d..2.",
    };
    let event = match *verb {
        "out" => {
            let (next, next_pid, next_prio) = other();
            format!(
                "sched_switch: prev_comm={comm} prev_pid={pid} prev_prio={prio} prev_state={} ==> \
                 next_comm={next} next_pid={next_pid} next_prio={next_prio}",
                rest[0]
            )
        }
        "wakes" | "irq" | "softirq" => {
            let (wakee, wakee_pid, wakee_prio) = other();
            format!("sched_waking: comm={wakee} pid={wakee_pid} prio={wakee_prio} target_cpu=003")
        }
        "queues" => {
            let (wakee, wakee_pid, wakee_prio) = other();
            format!("sched_wakeup: comm={wakee} pid={wakee_pid} prio={wakee_prio} target_cpu={cpu:0>3}")
        }
        "forks" => {
            let (child, child_pid, _) = other();
            format!("sched_process_fork: comm={comm} pid={pid} child_comm={child} child_pid={child_pid}")
        }
        "clones" => {
            let (child, child_pid, _) = other();
            format!("task_newtask: pid={child_pid} comm={child} clone_flags={} oom_score_adj=0", rest[0])
        }
        "starts" => {
            let (child, child_pid, child_prio) = other();
            format!("sched_wakeup_new: comm={child} pid={child_pid} prio={child_prio} target_cpu=001")
        }
        "balances" => {
            let (moved, moved_pid, moved_prio) = other();
            format!(
                "sched_migrate_task: comm={moved} pid={moved_pid} prio={moved_prio} orig_cpu={} dest_cpu={cpu}",
                rest[0]
            )
        }
        "sends" => {
            let (moved, moved_pid, moved_prio) = other();
            format!(
                "sched_migrate_task: comm={moved} pid={moved_pid} prio={moved_prio} orig_cpu=3 dest_cpu={}",
                rest[0]
            )
        }
        "attaches" => {
            let (moved, moved_pid, _) = other();
            let [root, path, ..] = rest else { panic!("{short}") };
            format!(
                "cgroup_attach_task: dst_root={root} dst_id=5 dst_level=1 dst_path={path} pid={moved_pid} comm={moved}"
            )
        }
        "allows" => format!("schedlab_affinity: pid={} allowed={}", other().1, rest[0]),
        "makes" => format!("cgroup_mkdir: root=0 id={} level=1 path={}", rest[0], rest[1]),
        "gives" => format!("schedlab_group: id={} shares={} idle=0", rest[0], rest[1]),
        "execs" => format!("sched_process_exec: filename={} pid={pid} old_pid={pid}", rest[0]),
        _ => panic!("{short}"),
    };
    format!("{comm:>16}-{pid:<7} [{cpu:0>3}] {flags} {:>5}.{:06}: {event}", us / 1_000_000, us % 1_000_000)
}

fn task_of(word: &str) -> (&str, &str, &str) {
    let (task, prio) = word.split_once('@').unwrap_or((word, "120"));
    let (comm, pid) = task.rsplit_once('-').unwrap();
    (comm, pid, prio)
}

fn learn(short: &str) -> Result<Learned, Missing> {
    learn_knowing(Known::default(), short)
}

pub(super) fn learn_knowing(known: Known, short: &str) -> Result<Learned, Missing> {
    let mut learner = Learner::knowing(known);
    let text = ftrace_text(short);
    let summary = feed(ftrace::Reader::new(text.as_bytes()), &mut learner).unwrap();
    assert_eq!(summary.gaps, 0, "{:?}", summary.first_gaps);
    learner.finish()
}

pub(super) fn check(short: &str, expected: Expect) {
    expected.assert_eq(&learn(short).unwrap().to_string());
}

#[test]
fn time_preempted_is_no_work() {
    check(
        "0 100 a-10 wakes b-11
         0 150 a-10 out R+ b-11
         0 350 b-11 out S a-10
         0 400 a-10 out S <idle>-0",
        expect![[r#"
            b-11, asleep on 3: wait for 10, run 200us
            a-10, running on 0: wake 11, run 100us
        "#]],
    );
}

#[test]
fn wakeups_keep_their_place_in_the_work_of_waker_and_wakee() {
    check(
        "0 100 a-10 wakes b-11
         1 120 <idle>-0 out R b-11
         1 180 b-11 out S <idle>-0
         0 300 a-10 wakes b-11
         1 310 <idle>-0 out R b-11
         0 350 a-10 out S <idle>-0
         1 400 b-11 wakes a-10
         0 410 <idle>-0 out R a-10
         1 430 b-11 out S <idle>-0
         0 460 a-10 out S <idle>-0",
        expect![[r#"
            b-11, asleep on 3: wait for 10, run 60us, heard 10us after, wait for 10, run 90us, wake 10, run 30us
            a-10, running on 0: wake 11, run 200us, wake 11, run 50us, heard 10us after, wait for 11, run 50us
        "#]],
    );
}

#[test]
fn a_task_that_an_event_shows_running_was_switched_in_unseen() {
    // The recording contains no switch by the idle task, and none to b.
    check(
        "0 0 a-10 out D <idle>-0
         0 100 <idle>-0 irq a-10
         0 160 a-10 out D <idle>-0
         0 200 <idle>-0 irq a-10
         0 230 a-10 wakes b-11
         0 260 a-10 out S <idle>-0
         0 300 b-11 wakes a-10
         0 350 a-10 wakes b-11
         0 380 a-10 out S <idle>-0
         0 410 b-11 wakes a-10",
        expect![[r#"
            a-10, running on 0: interrupt on CPU 0, is served for 100us, run 60us, interrupt on CPU 0, is served for 40us, run 30us, wake 11, run 30us, wait for 11, run 50us, wake 11, run 30us
            b-11, asleep on 3: wait for 10, run 40us, wake 10, wait for 10, run 30us
        "#]],
    );
}

#[test]
fn an_interrupt_is_no_waker_whomever_it_hits() {
    check(
        "0 0 a-10 irq t-20
         0 10 a-10 out R+ t-20
         0 30 t-20 out S a-10
         0 1000 a-10 irq t-20
         0 1010 a-10 out R+ t-20
         0 1050 t-20 out D a-10
         0 1500 a-10 irq t-20
         0 1510 a-10 out R+ t-20
         0 1530 t-20 out S a-10",
        expect![[r#"
            t-20, asleep on 3: interrupt on CPU 0, sleep 0 until 0 after the last, run 20us, interrupt on CPU 0, sleep 970us until 1ms after the last, run 40us, interrupt on CPU 0, is served for 450us, run 20us
            a-10, running on 0: run 1450us
        "#]],
    );
}

#[test]
fn a_timer_sends_its_task_to_an_idle_cpu_that_hears_of_it_later() {
    // The second time it would be too late for the third; the third is on the CPU of the timer.
    check(
        "1 0 b-11 out S <idle>-0
         0 100 a-10 softirq t-20
         1 300 <idle>-0 out R t-20
         1 310 t-20 out S <idle>-0
         0 1100 a-10 softirq t-20
         1 1300 <idle>-0 out R t-20
         1 1320 t-20 out S <idle>-0
         1 1400 <idle>-0 softirq t-20
         1 1401 <idle>-0 out R t-20
         1 1430 t-20 out S <idle>-0
         0 1500 a-10 out S <idle>-0",
        expect![[r#"
            b-11, running on 1:
            t-20, asleep on 3: heard 200us after, interrupt on CPU 0, sleep 100us until 100us after the last, run 10us, interrupt on CPU 0, sleep 790us until 1ms after the last, run 20us, interrupt on CPU 1, sleep 80us until 300us after the last, run 29us
            a-10, running on 0: run 1500us
        "#]],
    );
}

#[test]
fn soft_interrupts_that_ksoftirqd_runs_are_its_work() {
    check(
        "0 100 a-10 softirq b-11
         0 110 a-10 out R+ b-11
         0 150 b-11 out D ksoftirqd/0-16
         0 160 ksoftirqd/0-16 softirq b-11
         0 170 ksoftirqd/0-16 out S b-11
         0 180 b-11 out S a-10",
        expect![[r#"
            b-11, asleep on 3: interrupt on CPU 0, sleep 0 until 0 after the last, run 40us, wait for 16, run 10us
            a-10, running on 0: run 10us
            ksoftirqd/0-16, runnable on 0: run 10us, wake 11, run 10us
        "#]],
    );
}

#[test]
fn a_wakeup_may_come_just_before_the_switch() {
    check(
        "0 100 a-10 out R+ a-10
         1 100 b-11 out R b-11
         1 150 b-11 wakes a-10
         0 152 a-10 out S <idle>-0
         0 160 <idle>-0 out R a-10
         0 200 a-10 out S <idle>-0
         1 200 b-11 out S <idle>-0",
        expect![[r#"
            a-10, running on 0: run 52us, wait for 11, run 40us
            b-11, running on 1: run 50us, wake 10, run 50us
        "#]],
    );
}

#[test]
fn a_wakeup_of_a_task_that_never_slept_is_nothing() {
    check(
        "0 100 a-10 out R+ c-12
         1 150 b-11 wakes a-10
         0 160 c-12 out S a-10
         0 200 a-10 out S <idle>-0
         1 200 b-11 out S <idle>-0",
        expect![[r#"
            a-10, running on 0: run 40us
            c-12, runnable on 0: run 60us
            b-11, running on 1: run 100us
        "#]],
    );
}

#[test]
fn a_task_that_acts_after_a_wakeup_was_awake() {
    check(
        "0 100 a-10 out R+ a-10
         1 100 b-11 out R+ b-11
         1 150 b-11 wakes a-10
         0 160 a-10 wakes c-12
         0 170 a-10 out S <idle>-0
         0 190 <idle>-0 out R a-10
         0 200 a-10 out S <idle>-0
         1 200 b-11 out S <idle>-0",
        expect![[r#"
            a-10, running on 0: run 70us, sleep 20us until 90us after the last, run 10us
            b-11, running on 1: run 100us
            c-12, asleep on 3:
        "#]],
    );
}

#[test]
fn a_child_is_forked_where_it_can_first_run_and_ends_as_thread_or_process() {
    check(
        "0 100 a-10 out S sh-5
         0 200 sh-5 forks sh-6
         0 210 sh-5 starts sh-6
         1 220 <idle>-0 out R sh-6
         1 250 sh-6 execs /usr/bin/make
         1 260 make-6 forks make-7
         1 270 make-6 starts make-7
         2 280 <idle>-0 out R make-7
         1 290 make-6 out S <idle>-0
         2 300 make-7 wakes make-6
         2 310 make-7 out X <idle>-0
         1 320 <idle>-0 out R make-6
         1 330 make-6 wakes sh-5
         1 340 make-6 out Z <idle>-0
         0 350 sh-5 out S <idle>-0",
        expect![[r#"
            a-10, running on 0:
            sh-5, runnable on 0: run 110us, fork 6, run 140us
            sh-6, child of 5: run 30us, exec make, run 20us, fork 7, run 20us, heard 20us after, wait for 7, run 20us
            make-7, thread of 6: run 20us, wake 6, run 10us
        "#]],
    );
}

#[test]
fn whether_a_task_is_a_thread_is_reported_at_its_birth_or_seen_at_its_end() {
    let is_thread = |clones: &str, end: &str| {
        let short = format!(
            "0 100 sh-5 out S make-6
             {clones}
             0 200 make-6 forks make-7
             0 210 make-6 starts make-7
             1 220 <idle>-0 out R make-7
             1 230 make-7 wakes make-6
             1 240 make-7 out {end} <idle>-0"
        );
        learn(&short).unwrap().tasks.iter().find(|task| task.pid.0 == 7).unwrap().is_thread
    };
    for (clones, [lives, autoreaped, reaped, before_4_14]) in [
        ("0 190 make-6 clones 3d0f00 make-9", [false, true, false, false]),
        ("0 190 make-6 clones 3d0f00 make-7", [true, true, true, true]),
        ("0 190 make-6 clones 1200000 make-7", [false, false, false, false]),
    ] {
        assert_eq!(
            ["S", "X", "Z", "x"].map(|end| is_thread(clones, end)),
            [lives, autoreaped, reaped, before_4_14],
            "{clones}"
        );
    }
}

#[test]
fn where_a_new_task_went_and_whether_that_cpu_was_idle() {
    let placed = |short| {
        let learned = learn(short).unwrap();
        let child = learned.tasks.iter().find(|task| task.pid.0 == 11).unwrap();
        let (at, placed) = child.placed.unwrap();
        (at.0 / 1000, placed.from.0, placed.to.0, placed.was_idle)
    };
    let from_idle = "0 100 a-10 starts b-11
                     1 110 <idle>-0 out R b-11
                     0 200 a-10 wakes c-12";
    assert_eq!(placed(from_idle), (100, 0, 1, true));
    let behind_another = "1 90 d-13 wakes c-12
                          0 100 a-10 starts b-11
                          1 110 d-13 out R b-11
                          1 120 b-11 out R d-13
                          1 130 d-13 out S <idle>-0
                          1 140 <idle>-0 out R b-11";
    assert_eq!(placed(behind_another), (100, 0, 1, false));
    let elsewhere = "0 100 a-10 starts b-11
                     2 110 <idle>-0 out R b-11
                     0 200 a-10 wakes c-12";
    assert_eq!(placed(elsewhere), (100, 0, 1, false));
}

#[test]
fn when_a_cpu_hears_of_a_new_task_it_runs_it_or_if_it_was_busy_does_anything() {
    let heard = |short: &str| {
        let learned = learn(short).unwrap();
        let child = learned.tasks.iter().find(|task| task.pid.0 == 11).unwrap();
        child.placed.unwrap().1.heard.map(|heard| heard.0 / 1000)
    };
    let ends = "\n0 990 a-10 wakes c-12";
    let idle = "1 50 d-13 out S <idle>-0
                0 100 a-10 starts b-11
                1 110 <idle>-0 irq e-14
                1 140 <idle>-0 out R b-11";
    assert_eq!(heard(&format!("{idle}{ends}")), Some(40));
    let busy = "1 50 <idle>-0 out R d-13
                0 100 a-10 starts b-11
                1 170 d-13 irq e-14
                1 240 d-13 out R b-11";
    assert_eq!(heard(&format!("{busy}{ends}")), Some(70));
    let its_own = "1 50 <idle>-0 out R d-13
                   0 100 a-10 starts b-11";
    assert_eq!(heard(&format!("{}{ends}", its_own.replace("1 50", "0 50"))), None);
}

#[test]
fn where_interrupts_came_is_kept_if_many_come_elsewhere_than_to_the_task() {
    let slept = |elsewhere: [bool; 4]| {
        let turn = |(nth, elsewhere): (u64, bool)| {
            let (at, cpu) = (100 + 100 * nth, if elsewhere { 2 } else { 3 });
            format!(
                "{cpu} {at} b-{cpu} irq t-20\n3 {} b-3 out R+ t-20\n3 {} t-20 out S b-3\n",
                at + 10,
                at + 30
            )
        };
        let turns: String = (0..).zip(elsewhere).map(turn).collect();
        let learned = learn(&(turns + "0 900 b-10 wakes c-4\n")).unwrap();
        let task = learned.tasks.iter().find(|task| task.pid.0 == 20).unwrap();
        let interrupts = task.steps.iter().filter_map(|step| match step {
            Step::InterruptOn { cpu, .. } => Some(cpu.0),
            _ => None,
        });
        interrupts.collect::<Vec<_>>()
    };
    assert!(slept([false; 4]).is_empty());
    assert_eq!(
        slept([false, true, false, false]),
        [3, 2, 3, 3],
        "one in four comes without regard to the task"
    );
}

#[test]
fn a_task_awake_when_the_recording_begins_is_no_new_task() {
    let learned = learn("0 0 a-10 out S b-11\n0 10 b-11 wakes c-12\n0 20 b-11 out S c-12").unwrap();
    let did = learned.tasks.iter().map(|task| (task.pid.0, task.did.map(|did| (did.runnable, did.awake))));
    assert_eq!(did.collect::<Vec<_>>(), [(10, Some((0, true))), (11, Some((0, true))), (12, None)]);
}

#[test]
fn whose_sleeps_all_end_in_softirqs_has_its_timers_on_the_wheel() {
    let wheel = |short: &str| {
        let learned = learn(short).unwrap();
        learned.tasks.iter().find(|task| task.pid.0 == 11).unwrap().wheel
    };
    let sleeps = |how: &str, us: u64| {
        format!("0 {us} a-10 {how} b-11\n0 {} a-10 out R b-11\n0 {} b-11 out S a-10\n", us + 10, us + 20)
    };
    assert!(wheel(&(sleeps("softirq", 100) + &sleeps("softirq", 200))));
    assert!(!wheel(&(sleeps("softirq", 100) + &sleeps("irq", 200))));
    assert!(wheel(&(sleeps("softirq", 100) + &sleeps("wakes", 200))));
}

#[test]
fn a_new_task_that_makes_way_between_two_ticks_gave_itself_a_priority_then() {
    // Ticks come at 1200 us, 5200 us and so on, on CPU 0.
    let turns = |us: u64| format!("0 {us} a-10 out R b-11\n0 {} b-11 out R a-10\n", us + 4000);
    let ticks: String = [1200, 9200, 17200, 25200, 33200].map(turns).concat();
    let child = |born: u64, until: u64| {
        let learned = learn(&format!(
            "{ticks}0 {born} b-11 wakes e-14
             1 {born} d-13 starts c-12
             1 {born} d-13 out S c-12
             1 {until} c-12@125 out R d-13
             1 {} d-13 out S c-12@125
             1 {} c-12@125 out S <idle>-0",
            until + 30,
            until + 50
        ));
        learned.unwrap().to_string().lines().find(|line| line.starts_with("c-12")).unwrap().to_string()
    };
    let between = child(42_000, 43_500);
    assert!(between.ends_with("run 1500us, prio 125, run 20us"), "{between}");
    let at_a_tick = child(43_000, 45_200);
    assert!(at_a_tick.ends_with("prio 125, run 2220us"), "{at_a_tick}");
}

#[test]
fn what_comes_at_ticks_shows_how_long_after_a_tick_a_recording_begins() {
    let turns = |us: u64| format!("0 {us} a-10 out R b-11\n0 {} b-11 out R a-10\n", us + 4000);
    let short: String = [1200, 9200, 17200].map(turns).concat();
    let since = |short: &str, ms| {
        let learned = learn(short).unwrap();
        learned.ticks.since_tick(learned.first, Duration::millis(ms)).map(|since| since.0 / 1000)
    };
    let begun = format!("0 700 a-10 wakes c-12\n{short}");
    assert_eq!(since(&begun, 4), Some(3500));
    // A woken task preempts at any time.
    let woken = begun.replace("a-10 out R b-11", "a-10 wakes b-11").replace("b-11 out R", "b-11 out S");
    assert_eq!(since(&woken, 4), None);
}

#[test]
fn the_first_moves_to_a_busy_cpu_tell_when_it_balances() {
    let waits = "1 100 a-10 out R b-11
                 0 120 c-12 wakes d-13
                 0 150 c-12 out S d-13";
    let passes = |then: &str| {
        let learned = learn(&format!("{waits}\n{then}")).unwrap();
        let passes = learned.passes.firsts();
        passes.map(|pass| (pass.cpu.0, pass.from.0, pass.at.0 / 1000)).collect::<Vec<_>>()
    };
    let then = "0 900 d-13 balances 1 a-10
                2 950 e-14 balances 0 a-10
                0 990 d-13 balances 1 a-10
                0 999 d-13 balances 2 a-10";
    assert_eq!(passes(then), [(0, 1, 900), (2, 0, 950), (0, 2, 999)]);
    // An idle CPU balances more often, and a sleeping task is moved by its waker.
    assert_eq!(passes("0 900 <idle>-0 balances 1 a-10\n0 950 d-13 balances 1 c-12"), []);
}

#[test]
fn a_name_and_a_nice_value_hold_from_when_the_task_was_switched_in() {
    check(
        "0 100 a-10 starts b-11
         1 110 <idle>-0 out R b-11
         1 150 b-11 out R+ <idle>-0
         1 160 <idle>-0 out R b-11
         1 200 hog-11@125 out R+ <idle>-0
         0 250 a-10 wakes c-12
         0 300 a-10 out S <idle>-0",
        expect![[r#"
            a-10, running on 0: fork 11, run 200us
            b-11, child of 10: run 40us, prio 125, rename hog, run 40us
            c-12, asleep on 3:
        "#]],
    );
}

#[test]
fn a_wakeup_moves_with_what_is_put_before_it() {
    check(
        "0 100 a-10 out R+ b-11
         1 110 <idle>-0 out R a-10
         1 120 a-10 wakes c-12
         1 130 a-10 wakes d-13
         1 150 hog-10@125 out R+ d-13
         1 160 d-13 out S c-12
         1 170 c-12 out S hog-10@125",
        expect![[r#"
            a-10, running on 0: prio 125, rename hog, run 10us, wake 12, run 10us, wake 13, run 20us
            b-11, runnable on 0: run 70us
            c-12, asleep on 3: wait for 10, run 10us
            d-13, asleep on 3: wait for 10, run 10us
        "#]],
    );
}

#[test]
fn stoppers_are_left_out_and_tasks_that_wait_for_them_are_served() {
    check(
        "0 100 a-10 wakes migration/0-15@0
         0 110 a-10 out D migration/0-15@0
         0 130 migration/0-15@0 wakes a-10
         0 140 migration/0-15@0 out S a-10
         0 200 a-10 out S <idle>-0",
        expect![[r#"
            migration/0-15, asleep on 3: left out wait for 10, run 20us, wake 10, run 10us
            a-10, running on 0: wake 15, run 10us, is served for 20us, run 60us
        "#]],
    );
}

#[test]
fn a_recording_that_lacks_what_is_needed_says_how_to_record_it() {
    let missing = |short| learn(short).unwrap_err().to_string();
    let no_switch = missing("0 100 a-10 wakes b-11");
    assert!(
        no_switch.contains("no sched_switch") && no_switch.contains("trace-cmd record -e"),
        "{no_switch}"
    );
    let no_waking = missing("0 100 a-10 out S b-11");
    assert!(no_waking.contains("neither sched_waking nor sched_wakeup"), "{no_waking}");
}

#[test]
fn the_quickest_tenth_shows_how_long_an_idle_cpu_takes() {
    let mut short = String::new();
    for (n, latency) in (0..20).map(|n| (n, if n < 3 { 7 } else { 90 })) {
        let at = 1000 * n;
        short += &format!("0 {at} a-10 wakes b-11\n1 {} <idle>-0 out R b-11\n", at + latency);
        short += &format!("1 {} b-11 out S <idle>-0\n", at + 500);
    }
    assert_eq!(learn(&short).unwrap().idle_wakeup(10), Some(schedlab_units::Duration::micros(7)));
}

#[test]
fn a_task_that_first_takes_the_cpu_from_its_waker_was_owed_half_of_what_it_ran() {
    check(
        "0 100 w-10 wakes k-11
         0 100 w-10 queues k-11
         0 110 w-10 out R+ k-11
         0 130 k-11 out S w-10
         0 200 w-10 wakes k-11
         0 200 w-10 queues k-11
         0 300 w-10 out S k-11
         0 340 k-11 out S <idle>-0",
        expect![[r#"
            k-11, asleep on 3: owed 10us, wait for 10, run 20us, wait for 10, run 40us
            w-10, running on 0: wake 11, run 80us, wake 11, run 100us
        "#]],
    );
}

#[test]
fn a_task_running_when_first_woken_ran_from_the_beginning() {
    check(
        "0   0 w-10 wakes a-11
         3 100 a-11 forks b-12
         3 100 a-11 starts b-12
         3 150 a-11 out S <idle>-0
         0 200 w-10 wakes a-11
         3 210 <idle>-0 out R a-11
         3 300 a-11 out S <idle>-0",
        expect![[r#"
            a-11, running on 3: run 100us, fork 12, run 50us, heard 10us after, wait for 10, run 90us
            w-10, running on 0: run 200us, wake 11, run 100us
            b-12, child of 11:
        "#]],
    );
}

#[test]
fn a_task_that_mostly_makes_way_early_by_itself_yields() {
    check(
        "0    0 <idle>-0 out R a-10
         0  100 a-10 out R b-11
         0  200 b-11 out R+ a-10
         0  300 a-10 out R b-11
         0  350 b-11 queues c-12
         0  400 b-11 out R a-10
         0  500 a-10 out R b-11
         0 5000 b-11 out R a-10
         0 9000 a-10 out S b-11",
        expect![[r#"
            a-10, runnable on 0: run 100us, yield, run 100us, yield, run 100us, yield, run 4ms
            b-11, runnable on 0: run 4700us
            c-12, asleep on 0:
        "#]],
    );
}

#[test]
fn a_deadline_task_out_of_its_budget_waits_until_it_has_a_new_one() {
    check(
        "0     0 <idle>-0 out R d-10@-1
         0  1000 d-10@-1 out R a-11
         0 10000 a-11 out R d-10@-1
         0 10500 d-10@-1 out R migration/0-12@0
         0 10600 migration/0-12@0 out S d-10@-1
         0 12000 d-10@-1 out S a-11
         0 12500 a-11 wakes d-10@-1",
        expect![[r#"
            d-10, runnable on 0: run 1ms, out of budget, run 1900us
            a-11, runnable on 0: run 9500us
            migration/0-12, runnable on 0: left out run 100us
        "#]],
    );
}

#[test]
fn the_first_cpu_that_a_wakeup_sends_a_task_to_was_used_by_it_before() {
    // Not the waker's own CPU, which is chosen for another reason; and a new task has used none.
    check(
        "0 100 a-10 wakes b-11
         0 101 a-10 sends 0 b-11
         0 150 a-10 out S b-11
         0 250 b-11 out S <idle>-0
         1 300 c-12 wakes b-11
         1 301 c-12 sends 2 b-11
         2 350 <idle>-0 out R b-11
         2 400 b-11 out S <idle>-0
         1 500 c-12 wakes b-11
         1 501 c-12 sends 0 b-11
         0 550 <idle>-0 out R b-11
         0 600 b-11 forks d-13
         0 601 b-11 starts d-13
         1 620 <idle>-0 out R d-13
         1 630 d-13 out S <idle>-0
         0 650 b-11 wakes d-13
         0 651 b-11 sends 2 d-13
         2 660 <idle>-0 out R d-13
         2 670 d-13 out S <idle>-0",
        expect![[r#"
            b-11, asleep on 3: used 2 before, wait for 10, run 100us, wait for 12, run 50us, heard 50us after, wait for 12, run 51us, fork 13, run 49us, wake 13, run 20us
            a-10, running on 0: wake 11, run 50us
            c-12, running on 1: run 200us, wake 11, run 200us, wake 11, run 1us
            d-13, child of 11: run 10us, heard 10us after, wait for 11, run 10us
        "#]],
    );
}
