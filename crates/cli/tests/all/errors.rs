//! What a user sees when something is wrong: the sentence, exit status 2, nothing half-written.

use std::path::PathBuf;
use std::process::{Command, Output};

use expect_test::{Expect, expect};

/// A separate folder for each test, removed when it ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("schedlab-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_schedlab")).args(args).current_dir(&self.0).output().unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn check(name: &str, file: Option<(&str, &str)>, args: &[&str], expected: Expect) {
    let folder = Folder::new(name);
    if let Some((file, text)) = file {
        folder.write(file, text);
    }
    let output = folder.run(args);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty(), "nothing is printed beside the error");
    expected.assert_eq(&String::from_utf8(output.stderr).unwrap());
}

/// A scenario with one part replaced.
fn scenario(from: &str, to: &str) -> String {
    let text = "machine = \"2x4\"\nkernels = [\"v6.12\"]\nruns = 1\n\n[workload]\nmodel = \"hogs\"\n";
    assert!(text.contains(from), "the scenario has {from}");
    text.replace(from, to)
}

fn check_scenario(name: &str, from: &str, to: &str, expected: Expect) {
    check(name, Some(("s.toml", &scenario(from, to))), &["run", "s.toml"], expected);
}

#[test]
fn an_unknown_machine() {
    check_scenario(
        "machine",
        "\"2x4\"",
        "\"zen3\"",
        expect![[r#"
            schedlab: s.toml:1: there is no machine "zen3"; there are uma-8c, numa-48c, xeon-20c, spr-2s, epyc-guest-380, epyc-guest-380-flat, milan-2s, zen3-2s, icelake-2s, power10-40c, power10-12c, and regular ones such as 2x8x8x2
        "#]],
    );
}

#[test]
fn an_unknown_kernel() {
    check_scenario(
        "kernel",
        "\"v6.12\"",
        "\"v6.x\"",
        expect![[r#"
        schedlab: s.toml:2: there is no kernel "v6.x"; known are v4.13, v5.5, v5.10, v5.18, v6.1, v6.3, v6.10, v6.12, v6.17, v6.18, v6.19, v7.1, v7.2, v7.3
    "#]],
    );
}

#[test]
fn an_unknown_rule() {
    check_scenario(
        "rule",
        "\"v6.12\"",
        "\"v6.12+SIS_UTILL\"",
        expect![[r#"
        schedlab: s.toml:2: there is no rule "SIS_UTILL"; did you mean SIS_UTIL? `schedlab features` lists them all
    "#]],
    );
}

#[test]
fn a_recording_where_a_scenario_is_wanted() {
    let line = "          <idle>-0     [000] d..2.     1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 \
                prev_state=R ==> next_comm=a next_pid=7 next_prio=120\n";
    check(
        "recording",
        Some(("trace.txt", line)),
        &["run", "trace.txt"],
        expect![[r#"
        schedlab: trace.txt:1: "<idle>-0     [000] d..2.     1.000000: sched_switch: prev_co" is not TOML: key with no value, expected `=`; write key = value, text in double quotes. It looks like a recording: `schedlab audit`, `detect`, `sched` and `replay` take those, and `schedlab audit FILE --format perfetto` makes a Perfetto trace of one
    "#]],
    );
    check(
        "folder",
        Some(("trace.txt", line)),
        &["trace", "."],
        expect![[r#"
        schedlab: .: this is a folder; name a file in it. It looks like a recording: `schedlab audit`, `detect`, `sched` and `replay` take those, and `schedlab audit FILE --format perfetto` makes a Perfetto trace of one
    "#]],
    );
}

#[test]
fn an_unknown_key() {
    check_scenario(
        "key",
        "runs = 1",
        "rums = 1",
        expect![[r#"
            schedlab: s.toml:3: unknown field `rums`, expected one of `machine`, `kernels`, `runs`, `seed`, `limit`, `warmup`, `noise`, `reference`, `workload`, `expect`, `variant`, `rows`
        "#]],
    );
}

#[test]
fn an_unknown_key_of_a_model() {
    check_scenario(
        "parameter",
        "model = \"hogs\"",
        "model = \"hogs\"\nhoggs = 3",
        expect![[r#"
            schedlab: s.toml:7:1: unknown key "hoggs" in [workload]; known keys are "hogs", "wall", "overhead", "block", "nice", "groups", "cpus", "start_cpu", "policy", "nice", "priority", "slice", "util_min", "util_max", "cgroup", "cpus", "name", "duration", "with", "group"
        "#]],
    );
}

#[test]
fn an_unknown_model() {
    check_scenario(
        "model",
        "\"hogs\"",
        "\"hoggs\"",
        expect![[r#"
            schedlab: s.toml:6:9: "model": there is no model "hoggs"; there are "barrier", "batch", "copies", "dbench", "events", "fork-storm", "hackbench", "hogs", "io", "kernbench", "oltp", "netperf", "periodic", "ping", "pipes", "schbench", "sleepers", "spawn", "spinners", "stream", "sysbench", "tbench", "token"
        "#]],
    );
}

#[test]
fn a_cpu_outside_the_machine() {
    check_scenario(
        "cpu",
        "model = \"hogs\"",
        "model = \"stream\"\ncpus = \"0-8\"",
        expect![[r#"
            schedlab: s.toml:7: CPU 8 is not in machine "2x4" (0-7)
        "#]],
    );
}

#[test]
fn interrupts_to_a_cpu_outside_the_machine() {
    let program = "[[workload.task]]\nname = \"a\"\nprogram = '''\ninterrupt-on 8\nsleep 1ms\n'''";
    check_scenario(
        "irq",
        "[workload]\nmodel = \"hogs\"",
        program,
        expect![[r#"
        schedlab: s.toml:8: CPU 8 is not in machine "2x4" (0-7)
    "#]],
    );
}

#[test]
fn a_cpu_outside_the_machine_that_is_taken_out_of_use() {
    check_scenario(
        "hotplug",
        "[workload]\nmodel = \"hogs\"",
        "[[workload.task]]\nname = \"a\"\nprogram = \"hotplug 9 offline\"",
        expect![[r#"
            schedlab: s.toml:7: CPU 9 is not in machine "2x4" (0-7)
        "#]],
    );
}

#[test]
fn an_empty_mask() {
    check_scenario(
        "mask",
        "model = \"hogs\"",
        "model = \"stream\"\ncpus = \"\"",
        expect![[r#"
        schedlab: s.toml:7:8: "cpus": the CPU list "" is empty
    "#]],
    );
}

#[test]
fn broken_toml() {
    check_scenario(
        "toml",
        "runs = 1",
        "runs = ",
        expect![[r#"
            schedlab: s.toml:3: "runs =" is not TOML: string values must be quoted, expected literal string; write key = value, text in double quotes
        "#]],
    );
}

#[test]
fn broken_json() {
    let json = "{\n  \"tasks\": {\n    \"a\": { \"run\": 10, \"sleep\" 20 }\n  }\n}\n";
    check(
        "json",
        Some(("a.json", json)),
        &["run", "a.json", "--machine", "2x4"],
        expect![[r#"
        schedlab: a.json:3:31: expected ':', found '2'
    "#]],
    );
}

#[test]
fn a_key_of_rt_app_that_is_refused() {
    let json = "{ \"tasks\": { \"a\": { \"loop\": 1, \"runn\": 10, \"fly\": 3 } } }\n";
    check(
        "rtapp",
        Some(("a.json", json)),
        &["run", "a.json", "--machine", "2x4"],
        expect![[r#"
        schedlab: a.json:1:44: unknown key "fly" in task "a"; known keys are "instance", "delay", "phases", "runtime", "period", "deadline", "thread_of", "uid", "gid", "kthread", "loop", "cpus", "taskgroup", "policy", "priority", "dl-runtime", "dl-deadline", "dl-period", "util_min", "util_max"
    "#]],
    );
}

#[test]
fn broken_xml() {
    check(
        "xml",
        Some(("m.xml", "<topology><object></topology>")),
        &["topo", "m.xml"],
        expect![[r#"
        schedlab: m.xml:1: expected 'object' tag, not 'topology' at 1:19; save the machine with lstopo --of xml
    "#]],
    );
}

#[test]
fn a_check_of_a_machine_without_recorded_domains() {
    check(
        "check",
        None,
        &["topo", "2x4", "--check"],
        expect![[r#"
            schedlab: --check compares with the domains that a kernel built, and 2x4 has none recorded; give the folder of facts in its place, as in --facts recording/facts --check
        "#]],
    );
}

#[test]
fn names_that_are_none() {
    for (name, args, expected) in [
        (
            "row",
            &["trace", "s.toml", "--row", "99"][..],
            expect![[r#"
            schedlab: s.toml has no row "99"; it has one without a name: leave --row out
        "#]],
        ),
        (
            "two",
            &["compare", "s.toml", "--kernel", "v6.12"],
            expect![[r#"
                schedlab: --kernel names one kernel; compare needs two: give --kernel v6.12,v6.12+NO_SIS_UTIL, vary a parameter, as in --vary workload.groups=1,4, or name another scenario
            "#]],
        ),
        (
            "foo",
            &["run", "s.toml", "--kernel", "v6.12+FOO"],
            expect![[r#"
            schedlab: there is no rule "FOO"; `schedlab features` lists them all
        "#]],
        ),
        (
            "event",
            &["trace", "s.toml", "--events", "sched_switch,nosuch"],
            expect![[r#"
                schedlab: --events nosuch: there is no such event; there are sched_switch, sched_waking, sched_wakeup, sched_wakeup_new, sched_migrate_task, sched_process_fork, sched_process_exec, sched_process_exit, sched_process_free, sched_process_wait, sched_stat_runtime, sched_stat_wait, sched_stat_sleep, sched_stat_iowait, sched_stat_blocked, sched_wake_idle_without_ipi, sched_pi_setprio, task_newtask, task_rename, ipi_raise, ipi_send_cpu, ipi_entry, ipi_exit, irq_handler_entry, irq_handler_exit, softirq_raise, softirq_entry, softirq_exit, cpu_idle, cpu_frequency, workqueue_queue_work, workqueue_activate_work, workqueue_execute_start, workqueue_execute_end, cgroup_mkdir, cgroup_attach_task, cpuhp_enter, cpuhp_exit, tracing_mark_write, schedlab_placement, schedlab_balance, schedlab_newidle, schedlab_preemption, schedlab_pick, schedlab_affinity, schedlab_group, pelt_cfs, pelt_se, pelt_rt, pelt_dl, pelt_irq, sched_util_est_cfs, sched_util_est_se, sched_update_nr_running, sched_overutilized, schedlab_se, schedlab_next_balance
            "#]],
        ),
        (
            "explain",
            &["explain", "NO_SIS_UTILL"],
            expect![[r#"
                schedlab: "NO_SIS_UTILL" is not a rule, reason, kernel, function, commit, row of an audit or detector, and none mentions it; did you mean SIS_UTIL? `schedlab features` lists the rules, `schedlab explain v7.2` a kernel
            "#]],
        ),
        (
            "nothing",
            &["explain", "weather"],
            expect![[r#"
                schedlab: "weather" is not a rule, reason, kernel, function, commit, row of an audit or detector, and none mentions it; `schedlab features` lists the rules, `schedlab explain v7.2` a kernel
            "#]],
        ),
    ] {
        check(name, Some(("s.toml", SHORT)), args, expected);
    }
}

#[test]
fn values_that_cannot_be() {
    let head = "machine = \"1x1x4:offline=2\"\nkernels = [\"v6.12\"]\n";
    let task = "[[workload.task]]\nname = \"a\"\nprogram = \"mark x 1; run 1ms\"\n";
    let measure = "[[workload.measure]]\nname = \"s\"\nrule = \"rate\"\nlabel = \"x\"\n";
    let with = |top: &str, end: &str| format!("{head}{top}{task}{measure}{end}");
    for (name, text, args, expected) in [
        (
            "many",
            with("", ""),
            &["run", "s.toml", "--runs", "4294967295"][..],
            expect![[r#"
            schedlab: --runs is at most 100000, not 4294967295
        "#]],
        ),
        (
            "many-runs",
            with("runs = 4294967295\n", ""),
            &["run", "s.toml"],
            expect![[r#"
            schedlab: s.toml:3: runs is at most 100000, not 4294967295
        "#]],
        ),
        (
            "limit",
            with("limit = \"0s\"\n", ""),
            &["run", "s.toml"],
            expect![[r#"
            schedlab: s.toml:3: the time is zero; give a limit like 10s
        "#]],
        ),
        (
            "reversed",
            with("", "[[expect]]\nmetric = \"s\"\nchange = [0.2, 0.1]\n"),
            &["run", "s.toml"],
            expect![[r#"
                schedlab: s.toml:10: the bounds of change are reversed; write [0.1, 0.2]
            "#]],
        ),
        (
            "metric",
            with("", "[[expect]]\nmetric = \"t\"\nchange = [0.1, 0.2]\n"),
            &["run", "s.toml"],
            expect![[r#"
                schedlab: s.toml:10: no table has "t"; there are s, tasks
            "#]],
        ),
        (
            "row",
            with("", "[[expect]]\nrow = 1\nmetric = \"s\"\nchange = [0.1, 0.2]\n"),
            &["run", "s.toml"],
            expect![[r#"
                schedlab: s.toml:10: there is no row "1", as the workload has one value, not a list: leave out `row`, or keep a list: `--rows PATH=VALUE,..` sets one, and `run --row` runs one of its rows
            "#]],
        ),
        (
            "build-switch",
            with("", ""),
            &["kernel", "build", "tree:linux+NO_WA_IDLE"],
            expect![[r#"
                schedlab: +NO_WA_IDLE is not part of a source: only patches (FILE.patch, FILE.diff) can follow the tree here. A switch is set when a simulation runs the tree, as in `schedlab compare FILE.toml --kernel tree:DIR+NO_WA_IDLE`
            "#]],
        ),
        (
            "lockstep-patch",
            with("", ""),
            &["lockstep", "--tree", "linux+my.patch"],
            expect![[r#"
                schedlab: linux: cannot open it: No such file or directory (os error 2)
            "#]],
        ),
        (
            "offline",
            format!("{head}{}", task.replace("program", "start_cpu = 2\nprogram")),
            &["run", "s.toml"],
            expect![[r#"
                schedlab: s.toml:5: CPU 2 of machine "1x1x4:offline=2" is offline; 0-1,3 are online
            "#]],
        ),
        (
            "irq-cpu",
            format!("{head}{task}[workload.interrupt]\nnic = {{ cpu = 77, every = \"1ms\" }}\n"),
            &["run", "s.toml"],
            expect![[r#"
                schedlab: s.toml:7: CPU 77 is not in machine "1x1x4:offline=2" (0-3)
            "#]],
        ),
        (
            "why-task",
            with("", ""),
            &["why", "s.toml", "--task", "nosuch"],
            expect![[r#"
                schedlab: no task "nosuch" runs before 1.004603413; there are a
            "#]],
        ),
        (
            "why-time",
            with("", ""),
            &["why", "s.toml", "--from", "2s", "--to", "1s"],
            expect![[r#"
                schedlab: --from 2.000000000 is after --to 1.000000000
            "#]],
        ),
        (
            "why-none",
            with("", ""),
            &["why", "s.toml", "--most", "0"],
            expect![[r#"
            schedlab: --most must be at least 1
        "#]],
        ),
        (
            "take",
            format!("{head}{}", task.replace("run 1ms", "take s")),
            &["trace", "s.toml", "--output", "t.txt"],
            expect![[r#"
                schedlab: s.toml: v6.12: nothing can happen any more: a (1000) waits for semaphore "s"
            "#]],
        ),
        (
            "tunable",
            with("", ""),
            &["run", "s.toml", "--kernel", "v4.13+sched_time_avg_ms=0"],
            expect![[r#"
            schedlab: sched_time_avg_ms is 1 to 2147483647, not 0
        "#]],
        ),
    ] {
        check(name, Some(("s.toml", &text)), args, expected);
    }
}

#[test]
fn no_more_threads_are_started_than_there_are_runs() {
    let folder = Folder::new("threads");
    folder.write("s.toml", SHORT);
    let output = folder.run(&["run", "s.toml", "--runs", "2", "--threads", "1000000000"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_figure_that_no_run_came_to_is_reported_and_not_printed() {
    let folder = Folder::new("unmeasured");
    let text = SHORT.replace("run 1ms", "run 1ms; mark x 1")
        + "[[workload.measure]]\nname = \"s\"\nrule = \"rate\"\nlabel = \"x\"\n";
    folder.write("s.toml", &text);
    let output = folder.run(&["run", "s.toml", "--limit", "10us"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!String::from_utf8(output.stdout).unwrap().contains("NaN"));
    expect![[r#"
        schedlab: note: s has no figure: no run reached the marks it is computed from; a longer limit may help
        schedlab: note: runs take 10.0 us; slower clocks have not completed a period: balancing of busy CPUs in MC, with the limit of searches (60ms), averages of load (353ms); warmup = "auto" waits for those it can afford and until figures stand still, if the workload has a duration or a window
        schedlab: note: 1x2 is of no class of hardware, so its idle CPUs have no idle states; 1x2:class=zen3 gives it those of one (machines/class has them all)
    "#]]
    .assert_eq(&String::from_utf8(output.stderr).unwrap());
}

#[test]
fn a_measurement_that_cannot_be_written_does_not_begin() {
    check(
        "measure",
        None,
        &["measure", "--kernel", "v6.12", "--output", "no-such-folder/mine.toml"],
        expect![[r#"
            schedlab: no-such-folder/mine.toml: there is no folder no-such-folder; check its spelling, or create it first
        "#]],
    );
}

#[test]
fn a_barrier_nobody_can_reach() {
    let text = "machine = \"2x4\"\nkernels = [\"v6.12\"]\n\n[[workload.task]]\nname = \"a\"\nprogram = [\"barrier b\"]\n\n[workload.barrier]\nb = { parties = 3 }\n";
    check(
        "barrier",
        Some(("s.toml", text)),
        &["run", "s.toml"],
        expect![[r#"
            schedlab: s.toml:9:1: barrier "b": it waits for 3 parties but only 1 tasks ever reach it
        "#]],
    );
}

#[test]
fn a_deadlock_names_tasks_and_locks() {
    let text = "machine = \"2x4\"\nkernels = [\"v6.12\"]\n\n[[workload.task]]\nname = \"a\"\nprogram = [\"lock m\", \"sleep 1ms\", \"lock n\", \"unlock n\", \"unlock m\"]\n\n[[workload.task]]\nname = \"b\"\nprogram = [\"lock n\", \"sleep 1ms\", \"lock m\", \"unlock m\", \"unlock n\"]\n";
    check(
        "deadlock",
        Some(("s.toml", text)),
        &["run", "s.toml"],
        expect![[r#"
            schedlab: s.toml: v6.12: nothing can happen any more: a (1000) waits for mutex "n", which b (1001) holds; b (1001) waits for mutex "m", which a (1000) holds
        "#]],
    );
}

#[test]
fn a_scenario_that_never_ends() {
    let text = "machine = \"1x1\"\nkernels = [\"v6.12\"]\n\n[[workload.task]]\nname = \"a\"\nprogram = [\"loop forever\", \"sleep 10s\", \"end\"]\n";
    check(
        "endless",
        Some(("s.toml", text)),
        &["run", "s.toml"],
        expect![[r#"
            schedlab: s.toml: v6.12: the run did not end within 3600s of virtual time; give it a limit, as in --limit 10s, or limit = "10s" in the scenario
        "#]],
    );
}

#[test]
fn a_file_that_is_not_there() {
    check(
        "missing",
        None,
        &["run", "nothing.toml"],
        expect![[r#"
        schedlab: nothing.toml: there is no such file; check its spelling and location
    "#]],
    );
}

#[test]
fn one_kernel_to_compare() {
    check(
        "one",
        Some(("s.toml", &scenario("runs", "runs"))),
        &["compare", "s.toml"],
        expect![[r#"
            schedlab: s.toml names one kernel; compare needs two: give --kernel v6.12,v6.12+NO_SIS_UTIL, vary a parameter, as in --vary workload.groups=1,4, or name another scenario
        "#]],
    );
}

#[test]
fn a_failed_run_leaves_the_old_file_alone() {
    let folder = Folder::new("half");
    folder.write("old.txt", "old\n");
    folder.write("s.toml", "machine = \"1x2\"\nkernels = [\"v6.12\"]\n\n[[workload.task]]\nname = \"a\"\nprogram = [\"sem-wait s\"]\n");
    let output = folder.run(&["trace", "s.toml", "--output", "old.txt"]);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_to_string(folder.0.join("old.txt")).unwrap(), "old\n");
    let left: Vec<_> = std::fs::read_dir(&folder.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "no partial file is left: {left:?}");
}

/// A short scenario whose trace is written.
const SHORT: &str =
    "machine = \"1x2\"\nkernels = [\"v6.12\"]\n\n[[workload.task]]\nname = \"a\"\nprogram = [\"run 1ms\"]\n";

#[test]
fn a_pipe_as_output_is_written_to_and_stays() {
    use std::os::unix::fs::FileTypeExt;
    let folder = Folder::new("fifo");
    folder.write("s.toml", SHORT);
    let fifo = folder.0.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::fs::read_to_string(fifo).unwrap()
    });
    let output = folder.run(&["trace", "s.toml", "--output", "fifo"]);
    // Checked first, because a replaced pipe would leave the reader waiting.
    assert!(std::fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo(), "still a pipe");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(reader.join().unwrap().contains("sched_switch"));
}

#[test]
fn a_link_as_output_stays_and_what_it_names_is_replaced() {
    let folder = Folder::new("link");
    folder.write("s.toml", SHORT);
    folder.write("old.txt", "old\n");
    std::os::unix::fs::symlink("old.txt", folder.0.join("link.txt")).unwrap();
    let output = folder.run(&["trace", "s.toml", "--output", "link.txt"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(std::fs::symlink_metadata(folder.0.join("link.txt")).unwrap().is_symlink());
    assert!(std::fs::read_to_string(folder.0.join("old.txt")).unwrap().contains("sched_switch"));
}

#[test]
fn an_interruption_leaves_no_half_written_file() {
    let folder = Folder::new("interrupt");
    folder.write("old.txt", "old\n");
    folder.write(
        "s.toml",
        "machine = \"2x8\"\nkernels = [\"v6.12\"]\nlimit = \"3000s\"\n\n[[workload.task]]\nname = \"a\"\ncount = 32\nprogram = [\"loop forever\", \"run 100us\", \"sleep 100us\", \"end\"]\n",
    );
    let mut child = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(["trace", "s.toml", "--output", "old.txt"])
        .current_dir(&folder.0)
        .spawn()
        .unwrap();
    // The temporary name is fresh each time.
    let partial = || {
        let names = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name());
        names.into_iter().any(|name| name.to_string_lossy().starts_with(".old.txt."))
    };
    while !partial() {
        assert!(child.try_wait().unwrap().is_none(), "the run is long enough to be interrupted");
        std::thread::yield_now();
    }
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!partial());
    assert_eq!(std::fs::read_to_string(folder.0.join("old.txt")).unwrap(), "old\n");
}

#[test]
fn audits_that_cannot_be() {
    let line = "a-7 [009] d..3. 1.000001: sched_waking: comm=b pid=8 prio=120 target_cpu=003\n";
    let check_audit = |name: &str, text: &str, args: &[&str], expected: Expect| {
        check(name, Some(("trace.txt", text)), &[&["audit", "trace.txt"], args].concat(), expected);
    };
    check_audit(
        "audit-kernel",
        line,
        &["--machine", "2x8", "--kernel", "v9"],
        expect![[r#"
            schedlab: there is no kernel "v9"; known are v4.13, v5.5, v5.10, v5.18, v6.1, v6.3, v6.10, v6.12, v6.17, v6.18, v6.19, v7.1, v7.2, v7.3
        "#]],
    );
    check_audit(
        "audit-small",
        &format!("# tracer: nop\n{line}"),
        &["--machine", "1x1x8", "--kernel", "v6.1"],
        expect![[r#"
            schedlab: trace.txt: line 2: CPU 9 is not in machine 1x1x8 (0-7); name the machine that was recorded with --machine, or the folder of its topology.txt with --facts
        "#]],
    );
    check_audit(
        "audit-machine",
        line,
        &["--kernel", "v6.1"],
        expect![[r#"
            schedlab: trace.txt does not say on which machine it was recorded; name it with --machine, or give the folder of its topology.txt with --facts (`schedlab record` makes one)
        "#]],
    );
    check_audit(
        "audit-facts",
        line,
        &["--kernel", "v6.1", "--facts", "."],
        expect![[r#"
            schedlab: .: there is no topology.txt in it; a folder of facts has one (lines of /sys paths with their content), or name the machine with --machine
        "#]],
    );
    check_audit(
        "audit-out",
        line,
        &["--kernel", "v6.1", "--machine", "2x8", "--format", "perfetto", "--output", "no/such"],
        expect![[r#"
            schedlab: no/such: there is no folder no; check its spelling, or create it first
        "#]],
    );
    check_audit(
        "audit-trace",
        "not a trace",
        &["--machine", "1x1x8", "--kernel", "v6.1"],
        expect![[r#"
        schedlab: trace.txt: byte 0x0: the file is in none of the formats that are known: trace text of tracefs, trace-cmd or perf script, JSON lines, trace.dat, perf.data, Perfetto
    "#]],
    );
}
