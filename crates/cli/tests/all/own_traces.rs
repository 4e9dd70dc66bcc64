//! The audit by our rules must agree with what the simulator does under the same rules: simulated traces, audited.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The kinds of decisions.
const KINDS: [&str; 6] = ["wakeup", "fork", "pick", "preempt", "balance", "push"];

/// Runs the command and returns its output.
fn schedlab(args: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab")).args(args).output().expect("the command runs");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// How much the audit of a scenario of the project agrees.
fn agreement(scenario: &str, machine: &str, kernel: &str) -> [(&'static str, u64); KINDS.len()] {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    agreement_of(&scenarios.join(scenario), machine, kernel)
}

/// The trace of a scenario under a kernel, in a file.
fn trace_of(scenario: &Path, kernel: &str) -> String {
    trace_with(scenario, kernel, &[])
}

/// The same if each call on a channel takes the same time: differences in such traces were examined one by
/// one.
fn even_trace_of(scenario: &Path, kernel: &str) -> String {
    trace_with(scenario, kernel, &["--set", "machine.cost.call_spread_permille=0"])
}

fn trace_with(scenario: &Path, kernel: &str, more: &[&str]) -> String {
    let name = scenario.file_stem().expect("a file").display();
    let trace = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{kernel}.txt"));
    let scenario = scenario.display().to_string();
    let args = ["trace", &scenario, "--kernel", kernel];
    std::fs::write(&trace, schedlab(&[&args, more].concat())).unwrap();
    trace.display().to_string()
}

/// The audit of a trace by the rules of a kernel.
fn audited(trace: &str, machine: &str, kernel: &str, more: &[&str]) -> Value {
    let args = ["audit", trace, "--machine", machine, "--kernel", kernel, "--format", "json"];
    serde_json::from_slice(&schedlab(&[&args, more].concat())).unwrap()
}

/// How much the audit of a simulated scenario agrees, of a thousand, by kind of decision.
fn agreement_of(scenario: &Path, machine: &str, kernel: &str) -> [(&'static str, u64); KINDS.len()] {
    let trace = trace_of(scenario, kernel);
    let audit = audited(&trace, machine, kernel, &[]);
    assert_eq!(audit["unseen_switches"], 0, "{}", scenario.display());
    let part = |kind: &'static str| {
        let count = |answer: &str| audit[kind][answer].as_u64().unwrap();
        let agrees = count("agrees") + count("agrees_in_set");
        (kind, (agrees * 1000).checked_div(agrees + count("differs")).unwrap_or(1000))
    };
    KINDS.map(part)
}

/// A scenario of one workload model, written to a file.
fn scenario_of(machine: &str, model: &str, parameters: &str) -> PathBuf {
    seeded_scenario_of(&format!("{machine}-{model}"), machine, model, parameters, 3)
}

fn seeded_scenario_of(name: &str, machine: &str, model: &str, parameters: &str, seed: u32) -> PathBuf {
    let text = format!(
        "machine = \"{machine}\"\nkernels = [\"v6.12\"]\nseed = {seed}\n\n[workload]\nmodel = \"{model}\"\n{parameters}\n"
    );
    written(name, &text)
}

/// A scenario, written to a file of this name.
fn written(name: &str, text: &str) -> PathBuf {
    let scenario = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.toml"));
    std::fs::write(&scenario, text).unwrap();
    scenario
}

#[test]
fn own_traces_agree_with_the_rules_that_made_them() {
    for (kind, agrees) in agreement("kthread-stack-uma.toml", "uma-8c", "v5.18") {
        assert_eq!(agrees, 1000, "{kind}");
    }
    // A kernel where wakers set their own recently used CPU.
    let before = agreement("kthread-stack-uma.toml", "uma-8c", "v5.5");
    assert_eq!(before[0], ("wakeup", 1000));
    // Bound threads, which only their masks explain, moved by passes for CPUs that they may not use. Virtual times of
    // some are off by two milliseconds.
    for (kind, agrees) in agreement("stream-pinned-numa.toml", "zen3-2s", "v5.18") {
        let least = if matches!(kind, "pick" | "preempt") { 990 } else { 1000 };
        assert!(agrees >= least, "{kind}: {agrees}");
    }
}

#[test]
fn a_trace_is_written_as_its_file_is_named_and_audited_alike() {
    // In groups, which events show.
    let parameters = "hogs = 6\ngroups = 2\nwall = \"200ms\"";
    let scenario = seeded_scenario_of("named-formats", "1x4", "hogs", parameters, 3);
    let scenario = scenario.display().to_string();
    let of = |ending: &str, begins: &[u8]| {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("named-format.{ending}"));
        let path = file.display().to_string();
        schedlab(&["trace", &scenario, "--kernel", "v6.12", "--output", &path]);
        assert!(std::fs::read(&file).unwrap().starts_with(begins), "{path}");
        let audit = audited(&path, "1x4", "v6.12", &[]);
        KINDS.map(|kind| {
            ["agrees", "agrees_in_set", "differs", "undecided"].map(|count| audit[kind][count].clone())
        })
    };
    let text = of("txt", b"# tracer: nop");
    assert!(text[2][0].as_u64() > Some(100), "{text:?}");
    let others: [(&str, &[u8]); 4] =
        [("dat", b"\x17\x08\x44tracing6"), ("data", b"PERFILE2"), ("pftrace", b"\x0a"), ("json", b"{")];
    for (ending, begins) in others {
        assert_eq!(of(ending, begins), text, "{ending}");
    }
}

#[test]
fn a_replay_shows_where_tasks_went_under_the_last_kernel() {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/6.12/2x2x4/stream-perllc-1");
    let trace = Path::new(env!("CARGO_TARGET_TMPDIR")).join("replayed.txt");
    let (recording, path) = (recording.display().to_string(), trace.display().to_string());
    let kernels = ["--kernel", "v6.12", "--vs", "v6.12+NO_SIS_UTIL"];
    schedlab(&[&["replay", &recording, "--runs", "1", "--trace", &path][..], &kernels].concat());
    let written = std::fs::read_to_string(&trace).unwrap();
    assert!(
        written.contains("schedlab_placement: ") && written.contains(" how=fork "),
        "decisions are in it"
    );
    let latency = String::from_utf8(schedlab(&["sched", "latency", &path])).unwrap();
    assert!(latency.contains("stream"), "{latency}");
}

/// Senders and receivers on many CPUs. Their wake-ups find tasks that are still queued, or not yet off their CPU, and
/// CPUs that pull.
#[test]
fn messages_agree_with_the_rules_that_made_them() {
    let machine = "2x4x4x2";
    let parameters = "groups = 3\nloops = 100\ntransport = \"pipe\"";
    let scenarios = [3, 4].map(|seed| {
        seeded_scenario_of(&format!("{machine}-messages-{seed}"), machine, "hackbench", parameters, seed)
    });
    for kernel in ["v5.10", "v5.18", "v6.1", "v6.12", "v6.18", "v7.2"] {
        // Seeds differ by two hundredths. The mean of 28 is 988 under v5.10.
        let [one, other] = scenarios.each_ref().map(|scenario| agreement_of(scenario, machine, kernel));
        for ((kind, one), (_, other)) in one.into_iter().zip(other) {
            let agrees = (one + other) / 2;
            let least = match kind {
                "wakeup" if kernel == "v5.10" => 980,
                "wakeup" => 985,
                "preempt" | "balance" => 997,
                // Recorded times count as exact here, and some are off by a few microseconds.
                "pick" => 999,
                _ => 1000,
            };
            assert!(agrees >= least, "{kernel} {kind}: {agrees}");
        }
    }
}

/// More real-time tasks than CPUs, which push and pull them.
const REAL_TIME: &str = r#"
machine = "1x1x4"
kernels = ["v6.12"]
seed = 3

[[workload.task]]
name = "hog"
count = 4
program = "loop 40; run 3ms; end"

[[workload.task]]
name = "low"
count = 4
policy = "fifo"
priority = 10
program = "loop 40; run 700us; sleep 900us; end"

[[workload.task]]
name = "high"
count = 3
policy = "fifo"
priority = 20
program = "loop 40; run 500us; sleep 800us; end"
"#;

#[test]
fn pushes_and_pulls_agree_with_the_rules_that_made_them_and_say_why() {
    let scenario = written("real-time", REAL_TIME);
    for kernel in ["v4.13", "v5.5", "v5.18", "v6.1", "v6.12", "v7.2"] {
        for (kind, agrees) in agreement_of(&scenario, "1x1x4", kernel) {
            assert_eq!(agrees, 1000, "{kernel} {kind}");
        }
    }
    let scenario = scenario.display().to_string();
    let told = |kernel: &str, kind: &str, reason: &str| {
        let of = ["why", &scenario, "--kernel", kernel, "--kind", kind, "--most", "1000", "--format", "json"];
        let told = schedlab(&of);
        let told: Value = serde_json::from_slice(&told).unwrap();
        let told = told.as_array().or_else(|| told["decisions"].as_array()).expect("decisions").clone();
        assert!(told.iter().all(|one| one["reason"] == reason), "{kernel} {kind}");
        told.len()
    };
    let [pushes, pulls] =
        [("push", "PUSH_LOWER"), ("pull", "PULL_HIGHER")].map(|(kind, reason)| told("v7.2", kind, reason));
    assert!(pushes > 10 && pulls > 10, "{pushes} pushes, {pulls} pulls");
    // A CPU with room sends interrupts to the CPUs that have tasks to push.
    assert_eq!(told("v6.12", "pull", ""), 0);
    let by_interrupt = told("v6.12", "push", "PUSH_LOWER");
    assert!(by_interrupt > pushes + pulls / 2, "{by_interrupt} pushes; {pushes} and {pulls} pulls");
}

/// More real-time tasks than CPUs, in several LLCs, so that some tasks woken over wake lists are pushed at once.
const OVER_WAKE_LISTS: &str = r#"
machine = "2x2x4"
kernels = ["v6.12"]
seed = 1

[[workload.task]]
name = "hog"
count = 20
program = "loop 50; run 2ms; sleep 1ms; end"

[[workload.task]]
name = "fifo"
count = 20
policy = "fifo"
priority = 10
program = "loop 50; run 700us; sleep 900us; end"
"#;

#[test]
fn a_wake_up_is_reported_before_its_task_is_pushed() {
    let scenario = written("over-wake-lists", OVER_WAKE_LISTS);
    for kernel in ["v5.5", "v6.1", "v6.12", "v7.2"] {
        for (kind, agrees) in agreement_of(&scenario, "2x2x4", kernel) {
            let least = match kind {
                "balance" => 950,
                // A real-time task has left its queue before its CPU looks for work and switches.
                "wakeup" | "pick" => 999,
                _ => 1000,
            };
            assert!(agrees >= least, "{kernel} {kind}: {agrees}");
        }
    }
}

/// Tasks on all CPUs, and some that were placed on isolated ones.
const ISOLATED: &str = r#"
machine = "2x4:isolcpus=2-3,isolcpus=7"
kernels = ["v6.12"]
seed = 3

[[workload.task]]
name = "any"
count = 12
program = "loop 60; run 700us; sleep 500us; end"

[[workload.task]]
name = "sent"
count = 3
cpus = "2-3"
program = "loop 60; run 700us; sleep 500us; end"
"#;

#[test]
fn isolated_cpus_run_the_tasks_sent_there_and_spread_none() {
    let machine = "2x4:isolcpus=2-3,isolcpus=7";
    let scenario = written("isolated", ISOLATED);
    for kernel in ["v5.5", "v6.1", "v6.12", "v7.2"] {
        for (kind, agrees) in agreement_of(&scenario, machine, kernel) {
            assert!(agrees >= if kind == "balance" { 950 } else { 995 }, "{kernel} {kind}: {agrees}");
        }
        let trace = std::fs::read_to_string(trace_of(&scenario, kernel)).unwrap();
        let switches: Vec<&str> = trace.lines().filter(|line| line.contains(" sched_switch: ")).collect();
        let ran = |name: &str, cpu: u16| {
            let (cpu, name) = (format!("[{cpu:03}]"), format!("next_comm={name}"));
            switches.iter().filter(|line| line.contains(&cpu) && line.contains(&name)).count()
        };
        for cpu in 0..8 {
            let isolated = [2, 3, 7].contains(&cpu);
            assert_eq!(ran("any", cpu) == 0, isolated, "{kernel}: CPU {cpu}");
            // All were placed on the first of two, and no pass spreads them over both.
            assert_eq!(ran("sent", cpu) > 0, cpu == 2, "{kernel}: CPU {cpu}");
        }
    }
}

/// Deadline tasks that overrun their budgets, with other tasks.
const OVER_BUDGET: &str = r#"
machine = "1x1x2"
kernels = ["v6.12"]
seed = 3

[[workload.task]]
name = "hog"
count = 3
program = "loop 100; run 3ms; end"

[[workload.task]]
name = "over"
count = 2
policy = "deadline"
runtime = "1ms"
deadline = "5ms"
period = "5ms"
program = "loop 200; run uniform(500us, 2ms); sleep uniform(100us, 3ms); end"

[[workload.task]]
name = "waker"
count = 3
program = "loop 400; run 100us; sleep 400us; end"
"#;

#[test]
fn a_task_out_of_budget_is_known_by_what_runs_without_it() {
    let scenario = written("over-budget", OVER_BUDGET);
    // If a task with a new budget is not pushed, only a pick shows the budget.
    for (kernel, most) in [("v5.18", 130), ("v6.1", 130), ("v6.12", 20), ("v7.2", 20), ("v7.2+NO_HRTICK", 20)]
    {
        let audit = audited(&trace_of(&scenario, kernel), "1x1x2", kernel, &[]);
        for kind in KINDS {
            // 7 picks and 8 answers differ since shared lines take time; the cause is unknown.
            let most = if kernel == "v7.2+NO_HRTICK" { 8 } else { 0 };
            assert!(
                audit[kind]["differs"].as_u64() <= Some(most),
                "{kernel} {kind}: {}",
                audit[kind]["differs"]
            );
        }
        let count = |answer: &str| audit["pick"][answer].as_u64().unwrap();
        let all = count("agrees") + count("agrees_in_set") + count("undecided");
        assert!(count("undecided") * 1000 <= most * all, "{kernel}: {} of {all}", count("undecided"));
    }
}

/// Tasks that change their class while they run, with more tasks than CPUs.
const CLASSES: &str = r#"
machine = "1x2x4"
kernels = ["v6.12"]
seed = 3

[[workload.task]]
name = "changes"
count = 3
program = "loop 60; sched fifo priority=4; run 300us; sleep 1ms; sched other; run 1ms; sleep 200us; end"

[[workload.task]]
name = "hog"
count = 12
program = "loop 60; run 2ms; end"
"#;

#[test]
fn a_task_that_changes_its_class_agrees_with_the_rules_that_made_it() {
    let scenario = written("classes", CLASSES);
    for kernel in ["v6.1", "v6.12", "v7.2"] {
        for (kind, agrees) in agreement_of(&scenario, "1x2x4", kernel) {
            // There are only a few moves.
            let least = if kind == "balance" { 850 } else { 1000 };
            assert!(agrees >= least, "{kernel} {kind}: {agrees}");
        }
    }
}

/// Parents of several policies, whose children end soon.
const FORKS: &str = r#"
machine = "1x2x4"
kernels = ["v6.12"]
seed = 3

[[workload.task]]
name = "sh"
count = 3
nice = 5
program = "loop 700; fork kid; run 300us; fork kid; wait-children; run 100us; end"

[[workload.task]]
name = "batch"
count = 2
policy = "batch"
program = "loop 700; fork kid; run 300us; fork kid; wait-children; sleep 100us; end"

[[workload.task]]
name = "fifo"
policy = "fifo"
priority = 5
program = "loop 700; fork kid; run 100us; fork kid; wait-children; sleep 500us; end"

[[workload.task]]
name = "kid"
forked = true
program = "run uniform(200us, 1ms); sleep 100us; run 100us"

[[workload.task]]
name = "hog"
count = 5
program = "loop 500; run 3ms; end"
"#;

/// A child gets a share of its queue's utilisation, so the remainder of ended tasks there affects later ones.
#[test]
fn averages_do_not_go_astray_where_many_end() {
    let scenario = written("forks", FORKS);
    // No event shows that policy.
    let facts = Path::new(env!("CARGO_TARGET_TMPDIR")).join("forks-facts");
    std::fs::create_dir_all(&facts).unwrap();
    let tasks = "1003 1003 BATCH 0 0 0-7 / batch-0\n1004 1004 BATCH 0 0 0-7 / batch-1\n";
    std::fs::write(facts.join("tasks.txt"), tasks).unwrap();
    let facts = facts.display().to_string();
    // Of 8411 forks 125 (v6.12) and 85 (v7.2) differed when ends of tasks did not reduce the rounded sums.
    for (kernel, most) in [("v6.1", 5), ("v6.12", 40), ("v7.2", 40)] {
        let audit = audited(&trace_of(&scenario, kernel), "1x2x4", kernel, &["--facts", &facts]);
        let count = |kind: &str, answer: &str| audit[kind][answer].as_u64().unwrap();
        assert!(count("fork", "agrees") > 5000, "{kernel}");
        assert!(count("fork", "differs") <= most, "{kernel}: {}", count("fork", "differs"));
        assert!(count("wakeup", "differs") <= 20, "{kernel}: {}", count("wakeup", "differs"));
        // 125 of v7.2, when an ended task was assumed to continue its old turn, and a request to belong to a task that
        // had left.
        assert!(count("preempt", "differs") <= 25, "{kernel}: {}", count("preempt", "differs"));
    }
}

/// A kernel was met that records no switch by some tasks, the idle task of a CPU among them.
#[test]
fn what_a_switch_that_is_not_in_the_trace_leaves_open_does_not_differ() {
    let machine = "1x1x2";
    let scenario = scenario_of(machine, "hackbench", "groups = 3\nloops = 60\ntransport = \"pipe\"");
    let trace = even_trace_of(&scenario, "v6.12");
    let whole = std::fs::read_to_string(&trace).unwrap();
    let busiest = (1001..1120).map(|pid| format!("prev_pid={pid} "));
    let busiest = busiest.max_by_key(|by| whole.matches(by.as_str()).count()).unwrap();
    for by in [busiest.as_str(), "prev_comm=swapper/1 "] {
        let kept = whole.lines().filter(|line| !(line.contains("sched_switch") && line.contains(by)));
        let kept: Vec<&str> = kept.collect();
        let missing = whole.lines().count() - kept.len();
        assert!(missing > 30, "{by}: {missing}");
        std::fs::write(&trace, kept.join("\n") + "\n").unwrap();
        let audit = audited(&trace, machine, "v6.12", &[]);
        assert!(audit["unseen_switches"].as_u64() > Some(0), "{by}");
        for kind in KINDS {
            assert_eq!(audit[kind]["differs"], 0, "{by} {kind}");
        }
    }
}

#[test]
fn why_decisions_differ_is_asked_without_a_trace_in_the_audit() {
    let machine = "2x2x2";
    let scenario = scenario_of(machine, "hackbench", "groups = 2\nloops = 60\ntransport = \"socket\"");
    let trace = trace_of(&scenario, "v6.12");
    // With rules other than those that made it, so that many differ.
    let counts = |more: &[&str]| {
        let audit = audited(&trace, machine, "v6.10", more);
        KINDS.map(|kind| audit[kind].clone())
    };
    let counted = counts(&[]);
    assert!(counted.iter().any(|kind| kind["differs"].as_u64() > Some(10)), "{counted:?}");
    assert_eq!(counted, counts(&["--verdicts"]));
}

/// More tasks than CPUs: they renice themselves, are moved while others run, and ticks and slice timers end their
/// turns.
#[test]
fn full_queues_agree_with_the_rules_that_made_them() {
    let machine = "1x2x4";
    let workloads = [
        ("hogs", "hogs = 24\nwall = \"400ms\"\nnice = \"0 0 5 -5\""),
        ("oltp", "users = 30\nwall = \"100ms\""),
    ];
    for (model, parameters) in workloads {
        let scenario = scenario_of(machine, model, parameters);
        for kernel in ["v6.1", "v6.10", "v6.12", "v7.2"] {
            for (kind, agrees) in agreement_of(&scenario, machine, kernel) {
                let least = match kind {
                    // Averages decide which of two CPUs with equally many tasks is the busiest.
                    "balance" => 900,
                    "pick" | "preempt" => 998,
                    // The audit assumes that servers started without a fork are children of the task that runs there.
                    "wakeup" => 999,
                    _ => 1000,
                };
                assert!(agrees >= least, "{model} {kernel} {kind}: {agrees}");
            }
        }
    }
}

/// A CPU that goes offline and comes back, with tasks that run on it, are placed there, or are created
/// meanwhile.
const PLUGGED: &str = r#"
machine = "1x1x4"
kernels = ["v6.12"]
seed = 3

[[workload.task]]
name = "plug"
cpus = "0"
program = "loop 4; sleep 15ms; hotplug 2 offline; sleep 25ms; hotplug 2 active; end"

[[workload.task]]
name = "worker"
count = 6
program = "loop 150; run 700us; sleep 500us; end"

[[workload.task]]
name = "forker"
program = "loop 100; run 300us; fork child; sleep 1ms; end; wait-children"

[[workload.task]]
name = "child"
forked = true
program = "run 400us"

[[workload.task]]
name = "hog"
count = 2
program = "loop 50; run 3ms; sleep 200us; end"
"#;

/// Without what the events show about it, half of the forks agree, and 72 % of the wake-ups under v5.18.
#[test]
fn a_cpu_that_leaves_and_comes_back_is_followed_as_the_trace_shows() {
    let scenario = written("plugged", PLUGGED);
    for kernel in ["v5.18", "v6.1", "v6.12", "v7.2"] {
        for (kind, agrees) in agreement_of(&scenario, "1x1x4", kernel) {
            assert!(agrees >= 999, "{kernel} {kind}: {agrees}");
        }
    }
}

/// Groups of several weights and levels, an idle one, and tasks that move between groups.
const GROUPS: &str = r#"
machine = "1x1x4"
kernels = ["v6.12"]
seed = 3

[workload.group]
"/light" = { weight = 50 }
"/heavy" = { weight = 300 }
"/heavy/inner" = { shares = 2048 }
"/idle" = { idle = true }

[[workload.task]]
name = "light"
count = 4
group = "/light"
program = "loop 60; run 1ms; sleep 300us; end"

[[workload.task]]
name = "heavy"
count = 3
group = "/heavy"
program = "loop 60; run 2ms; sleep 700us; end"

[[workload.task]]
name = "inner"
count = 3
group = "/heavy/inner"
program = "loop 60; run 1500us; sleep 100us; end"

[[workload.task]]
name = "low"
count = 3
group = "/idle"
program = "loop 60; run 1ms; end"

[[workload.task]]
name = "mover"
count = 3
program = "loop 20; run 1ms; group /light; run 1ms; sleep 1ms; group /heavy; run 2ms; group /; sleep 500us; end"

[[workload.task]]
name = "free"
count = 3
program = "loop 60; run 1ms; sleep 1ms; end"
"#;

/// Groups, one of which has a quota and is throttled most of the time.
const QUOTA: &str = r#"
machine = "1x1x4"
kernels = ["v6.12"]
seed = 3

[workload.group]
"/limited" = { quota = "30ms", period = "50ms" }
"/free" = { weight = 200 }

[[workload.task]]
name = "limited"
count = 4
group = "/limited"
program = "loop 100; run 3ms; sleep 200us; end"

[[workload.task]]
name = "free"
count = 3
group = "/free"
program = "loop 100; run 2ms; sleep 1ms; end"

[[workload.task]]
name = "root"
count = 2
program = "loop 100; run 1ms; sleep 2ms; end"
"#;

/// Without what events show about groups, half to three quarters of the forks of these agree, 40 to 99 % of the picks
/// of the second, and 40 to 73 % of the answers of both.
#[test]
fn groups_are_followed_as_the_trace_shows_them() {
    let sysbench = scenario_of("1x2x4", "sysbench", "clients = 30\nwall = \"100ms\"");
    let scenarios = [
        (sysbench, "1x2x4", [999, 1000, 1000, 1000]),
        (written("groups", GROUPS), "1x1x4", [997, 1000, 985, 980]),
        (written("quota", QUOTA), "1x1x4", [995, 1000, 995, 940]),
    ];
    for (scenario, machine, least) in scenarios {
        for kernel in ["v5.18", "v6.1", "v6.12", "v7.2"] {
            let agreement = agreement_of(&scenario, machine, kernel);
            for ((kind, agrees), least) in agreement.into_iter().zip(least) {
                let (what, eevdf) = (scenario.display(), !matches!(kernel, "v5.18" | "v6.1"));
                // The sums behind virtual times of groups are not known exactly.
                let least = if eevdf || kind == "wakeup" { least } else { 998 };
                assert!(agrees >= least, "{what} {kernel} {kind}: {agrees}");
            }
        }
    }
}

/// Runs on which virtual times of the audit once drifted for the given reason; few decisions differ there now.
#[test]
fn virtual_times_do_not_go_astray() {
    let hogs = "hogs = 24\nwall = \"400ms\"\nnice = \"0 0 5 -5\"";
    let rows = [
        // A task with a request from a task that was then taken away called the scheduler (5 and 7 differed).
        ("1x2x4", "oltp", "users = 30\nwall = \"100ms\"", "v6.18", 3, [0, 0]),
        // A task that was moved before it ran has not shown its priority yet (4 and 0).
        ("1x2x4", "hogs", hogs, "v6.18", 3, [0, 0]),
        // An idle CPU that takes a task has dropped its delayed sleepers (5 and 5). The rest are sleepers that a CPU pulls
        // while its own last task, a sleeper too, is not yet switched out.
        ("2x4x4x2", "hackbench", "groups = 3\nloops = 100\ntransport = \"pipe\"", "v6.12", 3, [2, 2]),
        // A pick within the rounding of an average contradicts nothing (178 and 562).
        ("1x1x2", "hackbench", "groups = 3\nloops = 200\ntransport = \"pipe\"", "v7.2", 4, [0, 3]),
    ];
    for (machine, model, parameters, kernel, seed, most) in rows {
        let name = format!("astray-{machine}-{model}");
        let scenario = seeded_scenario_of(&name, machine, model, parameters, seed);
        let trace = even_trace_of(&scenario, kernel);
        let audit = audited(&trace, machine, kernel, &[]);
        let differ = ["pick", "preempt"].map(|kind| audit[kind]["differs"].as_u64().unwrap());
        assert!(differ[0] <= most[0] && differ[1] <= most[1], "{machine} {model} {kernel}: {differ:?}");
    }
}
