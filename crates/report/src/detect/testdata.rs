//! A shorthand for traces, so that a test shows which task does what, where and when.
//!
//! ```text
//! us   cpu  task    what happens
//! 100  0    make-1  waking cc1-2 3         the CPU it slept on
//! 101  0    make-1  migrate cc1-2 3 1
//! 102  0    make-1  wakeup cc1-2 1         the CPU chosen
//! 150  1    idle    switch R cc1-2         the task leaves in state R, cc1-2 comes
//! 200  1    cc1-2!  irq                    `!`: in an interrupt over that task
//! ```
//!
//! It is written out as the text of tracefs and read by its reader.

use expect_test::Expect;
use schedlab_topology::Topology;
use schedlab_trace::Event;
use schedlab_trace::read::{Record, ftrace};

use super::{Detect, Finding, Findings, Options, Sink};

/// The events of a script.
pub fn events(script: &str) -> Vec<Event> {
    let text: String = script.lines().filter(|line| !line.trim().is_empty()).map(line).collect();
    ftrace::Reader::new(text.as_bytes())
        .map(|record| match record.expect("memory can be read") {
            Record::Event(event) => event,
            other => panic!("{other:?} in\n{text}"),
        })
        .collect()
}

/// What a detector finds in a script, on a machine if one is named.
pub fn findings(detector: &str, machine: &str, script: &str) -> Findings {
    let topology = (!machine.is_empty()).then(|| Topology::regular(machine).expect("a machine"));
    let mut detect = Detect::new(Options { topology, ..Options::default() });
    events(script).iter().for_each(|event| detect.event(event));
    let all = detect.finish().detectors;
    all.into_iter().find(|findings| findings.detector == detector).expect("there is such a detector")
}

/// Shows what a detector finds, without its first lines.
pub fn check(detector: &str, machine: &str, script: &str, expected: Expect) {
    let findings = findings(detector, machine, script);
    let text: String = findings.worst.iter().map(Finding::text).collect();
    let shown: String =
        text.lines().skip(1).map(|line| format!("{}\n", line.strip_prefix("  ").unwrap_or(line))).collect();
    expected.assert_eq(&shown);
    assert_eq!(findings.count, findings.worst.iter().map(|found| 1 + found.alike).sum::<u64>());
}

fn line(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [us, cpu, task, verb, args @ ..] = &words[..] else { panic!("not a line of a script: {line}") };
    let us: u64 = us.parse().expect("microseconds");
    let (task, flags) = match task.strip_suffix('!') {
        Some(task) => (task, "d.h2."),
        None => (*task, "d..2."),
    };
    let (comm, pid) = name(task, cpu);
    let event = event(verb, args, (&comm, pid), cpu);
    let front = if task == "idle" { "<idle>" } else { &comm };
    format!("{front:>16}-{pid:<7} [{cpu:0>3}] {flags} {}.{:06}: {event}\n", us / 1_000_000, us % 1_000_000)
}

/// Name and number of a task: `make-1`, or `idle`.
fn name<'a>(task: &'a str, cpu: &str) -> (String, &'a str) {
    match task.rsplit_once('-') {
        Some((comm, pid)) => (comm.to_owned(), pid),
        None => (format!("swapper/{cpu}"), "0"),
    }
}

/// A task called `fifo` is a real-time task.
fn prio(comm: &str) -> i32 {
    if comm == "fifo" { 49 } else { 120 }
}

fn event(verb: &str, args: &[&str], current: (&str, &str), cpu: &str) -> String {
    let task = |task: &str| {
        let (comm, pid) = name(task, cpu);
        format!("comm={comm} pid={pid} prio={}", prio(&comm))
    };
    let number = |task: &str| name(task, cpu).1.to_owned();
    match (verb, args) {
        ("switch", [state, next]) => {
            let (comm, pid) = name(next, cpu);
            format!(
                "sched_switch: prev_comm={} prev_pid={} prev_prio={} prev_state={state} ==> next_comm={comm} \
                 next_pid={pid} next_prio={}",
                current.0,
                current.1,
                prio(current.0),
                prio(&comm)
            )
        }
        ("waking", [woken, cpu]) => format!("sched_waking: {} target_cpu={cpu:0>3}", task(woken)),
        ("wakeup", [woken, cpu]) => format!("sched_wakeup: {} target_cpu={cpu:0>3}", task(woken)),
        ("new", [born, cpu]) => format!("sched_wakeup_new: {} target_cpu={cpu:0>3}", task(born)),
        ("migrate", [moved, from, to]) => {
            format!("sched_migrate_task: {} orig_cpu={from} dest_cpu={to}", task(moved))
        }
        ("fork", [child]) => {
            let (comm, pid) = name(child, cpu);
            format!(
                "sched_process_fork: comm={} pid={} child_comm={comm} child_pid={pid}",
                current.0, current.1
            )
        }
        ("irq", []) => "irq_handler_entry: irq=24 name=eth0".to_owned(),
        ("irqend", []) => "irq_handler_exit: irq=24 ret=handled".to_owned(),
        ("softirq", []) => "softirq_entry: vec=3 [action=NET_RX]".to_owned(),
        ("softirqend", []) => "softirq_exit: vec=3 [action=NET_RX]".to_owned(),
        ("affinity", [task, list]) => format!("schedlab_affinity: pid={} allowed={list}", number(task)),
        ("placed", [task, how, cpu, reason]) => format!(
            "schedlab_placement: pid={} how={how} prev_cpu=0 target=0 cpu={cpu} remote=0 reason={reason}",
            number(task)
        ),
        ("balanced", [cpu, reason]) => format!(
            "schedlab_balance: dst_cpu={cpu} idle=newly_idle domain=MC reason={reason} migration=task imbalance=0"
        ),
        ("newidle", [cpu, reason]) => format!("schedlab_newidle: dst_cpu={cpu} reason={reason} pulled=0"),
        ("asked", [task, reason]) => format!(
            "schedlab_preemption: pid={} curr={} at=wakeup reason={reason} resched=none",
            number(task),
            current.1
        ),
        _ => panic!("a script has no {verb} with {} words", args.len()),
    }
}
