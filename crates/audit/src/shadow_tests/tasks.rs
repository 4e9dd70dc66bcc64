//! What is known about a task after some events.

use schedlab_sched::Kernel;
use schedlab_topology::Topology;
use schedlab_trace::Sink;
use schedlab_trace::read::{Record, ftrace};

use crate::judge::Audit;
use crate::options::Options;
use schedlab_recording::AffinityHint;
use schedlab_recording::Policies;
use schedlab_recording::hints_of_tasks;
use schedlab_units::Pid;

/// Where a task with this name may run after it ran on these CPUs, of two, and whether it is a kernel thread.
fn known(comm: &str, affinity: Vec<AffinityHint>, ran_on: &[u16]) -> (String, bool) {
    let options = Options { affinity, ..Options::default() };
    let topology = Topology::regular("1x1x2").unwrap();
    let mut audit = Audit::new(&topology, &Kernel::parse("v6.12").unwrap(), options);
    let mut trace =
        format!("  x-9 [000] d..3. 1.000000: sched_waking: comm={comm} pid=7 prio=120 target_cpu=000\n");
    for (turn, cpu) in ran_on.iter().enumerate() {
        trace += &format!(
            "  <idle>-0 [00{cpu}] d..2. 1.{:03}000: sched_switch: prev_comm=swapper/{cpu} prev_pid=0 prev_prio=120 \
             prev_state=R ==> next_comm={comm} next_pid=7 next_prio=120\n",
            turn + 1
        );
    }
    // Events wait for later ones, so a late event releases the others.
    trace += "  x-9 [000] ..... 2.000000: sched_process_wait: comm=x pid=9 prio=120\n";
    for record in ftrace::Reader::new(trace.as_bytes()) {
        let Record::Event(event) = record.unwrap() else { continue };
        audit.event(&event);
    }
    let task = audit.shadow.find(Pid(7)).unwrap();
    let entry = audit.shadow.sched.task(task);
    assert_eq!(entry.nr_cpus_allowed as usize, entry.allowed.weight(), "{comm}");
    (entry.allowed.to_string(), entry.kthread)
}

#[test]
fn where_a_task_ran_and_given_masks_precede_its_name() {
    let tasks = |cpus: &str| hints_of_tasks(&format!("7 7 OTHER 0 0 {cpus} / watchdog/0\n"), 2);
    for (comm, told, ran_on, expected) in [
        ("watchdog/0", vec![], &[0][..], ("0", true)),
        ("watchdog/0", tasks("0"), &[0], ("0", true)),
        ("watchdog/0", tasks("0-1"), &[0], ("0-1", false)),
        ("watchdog/0", tasks("1"), &[0], ("1", false)),
        ("watchdog/0", vec![], &[0, 1], ("0-1", false)),
        ("kworker/0:1", vec![], &[0, 1], ("0", true)),
        ("pool/0", vec![], &[0], ("0-1", false)),
    ] {
        let found = known(comm, told, ran_on);
        assert_eq!((found.0.as_str(), found.1), expected, "{comm} on {ran_on:?}");
    }
}

/// What is known about two tasks after these lines, given a list of tasks.
fn born(kernel: &str, lines: &[&str], tasks: &str, pids: [i32; 2]) -> [String; 2] {
    let options = Options { policies: Policies::of_tasks(tasks), ..Options::default() };
    let topology = Topology::regular("1x1x2").unwrap();
    let mut audit = Audit::new(&topology, &Kernel::parse(kernel).unwrap(), options);
    let end = "  x-9 [000] ..... 4.000000: sched_process_wait: comm=x pid=9 prio=120";
    let text = [lines, &[end]].concat().join("\n");
    for record in ftrace::Reader::new(text.as_bytes()) {
        let Record::Event(event) = record.unwrap() else { continue };
        audit.event(&event);
    }
    pids.map(|pid| {
        let task = audit.shadow.find(Pid(pid)).unwrap();
        let entry = audit.shadow.sched.task(task);
        let se = &entry.se;
        let placed = (se.load.weight, se.avg.load_avg, se.vruntime, &entry.allowed);
        format!("{:?} nice {} {placed:?}", entry.policy, entry.nice)
    })
}

const BEGINS: &str = "  <idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 \
                      prev_state=R ==> next_comm=sh next_pid=7 next_prio=125";
const FORKS: &str =
    "  sh-7 [000] ..... 1.002000: sched_process_fork: comm=sh pid=7 child_comm=sh child_pid=8";
const TASKS: &str = "7 7 BATCH 5 0 0 / sh\n";

#[test]
fn the_waker_of_a_new_task_has_forked_it() {
    let wakes = |prio: i32| {
        format!("  sh-7 [000] d..2. 1.002000: sched_wakeup_new: comm=sh pid=8 prio={prio} target_cpu=000")
    };
    for kernel in ["v5.18", "v6.1", "v6.12", "v7.2"] {
        for prio in [125, 120, 89] {
            let wakes = wakes(prio);
            let told = born(kernel, &[BEGINS, FORKS, &wakes], TASKS, [7, 8]);
            assert_eq!(born(kernel, &[BEGINS, &wakes], TASKS, [7, 8]), told, "{kernel} {prio}");
            let expected = match prio {
                89 => "Fifo(10) nice 5 (343040, ".to_owned(),
                _ => {
                    format!("Batch nice {} ({}, ", prio - 120, if prio == 120 { 1 << 20 } else { 335 << 10 })
                }
            };
            assert!(told[1].starts_with(&expected), "{kernel} {prio}: {}", told[1]);
        }
    }
}

#[test]
fn a_task_that_runs_first_has_the_priority_that_it_shows_later_or_was_listed_with() {
    let waits = "  a-7 [000] d..2. 1.000000: sched_waking: comm=b pid=8 prio=120 target_cpu=000";
    let leaves = "  a-7 [000] d..2. 1.000400: sched_switch: prev_comm=a prev_pid=7 prev_prio=89 prev_state=S ==> \
                  next_comm=swapper/0 next_pid=0 next_prio=120";
    let seen = "7 7 RR 0 20 0-1 / a\n";
    for (lines, tasks, expected) in [
        (&[waits][..], "", "Normal nice 0"),
        (&[waits, leaves], "", "Fifo(10) nice 0"),
        (&[waits], seen, "Rr(20) nice 0"),
        (&[waits, leaves], seen, "Rr(10) nice 0"),
        (&[waits], "7 7 BATCH -5 0 0-1 / a\n", "Batch nice -5"),
        (&[waits], "7 7 BATCH -5 0 0-1 / another\n", "Normal nice 0"),
        (&[waits], "7 7 FIFO 0 100 0-1 / a\n", "Normal nice 0"),
    ] {
        let told = &born("v6.12", lines, tasks, [7, 8])[0];
        assert!(told.starts_with(expected), "{told}, not {expected}");
    }
}
