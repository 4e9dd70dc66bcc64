//! The subcommands that read recordings: any format, text and JSON, and their messages about bad input.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use expect_test::{Expect, expect};
use serde_json::Value;

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name)
}

fn schedlab(args: &[&str], file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedlab")).args(args).arg(file).output().expect("the command runs")
}

fn text(args: &[&str], file: &Path) -> String {
    let output = schedlab(args, file);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("names in the recordings are ASCII")
}

fn json(args: &[&str], file: &Path) -> Value {
    let args = [args, &["--format", "json"]].concat();
    serde_json::from_str(&text(&args, file)).expect("one JSON value")
}

/// The first lines of a report.
fn check(args: &[&str], lines: usize, expected: Expect) {
    let text = text(args, &recording("6.1/1x1x8/hogs-runtime/trace.txt.gz"));
    let lines: String = text.lines().take(lines).map(|line| format!("|{line}|\n")).collect();
    expected.assert_eq(&lines);
}

#[test]
fn reports_have_the_columns_of_perf() {
    check(
        &["sched", "latency", "--sort", "max"],
        6,
        expect![[r#"
        ||
        | -------------------------------------------------------------------------------------------------------------------------------------------|
        |  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    | Max delay start           | Max delay end          ||
        | -------------------------------------------------------------------------------------------------------------------------------------------|
        |  hg-10:1016            |     93.766 ms |       17 | avg:  18.456 ms | max:  44.011 ms | max start:    11.876887 s | max end:    11.920898 s|
        |  hg-6:1012             |     76.571 ms |       19 | avg:  17.119 ms | max:  32.159 ms | max start:    11.600187 s | max end:    11.632346 s|
    "#]],
    );
    check(
        &["sched", "map", "--cpus", "0-3"],
        4,
        expect![[r#"
        |              *A0      11.532498 secs A0 => init:1005|
        |          *.   A0      11.532641 secs .  => swapper:0|
        |           .   A0 |
        |           .   A0 |
    "#]],
    );
    check(
        &["sched", "timehist", "--wakeups", "--next"],
        6,
        expect![[r#"
        |           time    cpu  task name                       wait time  sch delay   run time|
        |                        [tid/pid]                          (msec)     (msec)     (msec)|
        |--------------- ------  ------------------------------  ---------  ---------  ---------|
        |      11.532465 [0002]  init[1]                                                          awakened: init[1005]|
        |      11.532498 [0003]  <idle>                              0.000      0.000      0.000  next: init[1005]              |
        |      11.532641 [0002]  init[1]                             0.000      0.000      0.000  next: swapper/2[0]            |
    "#]],
    );
    check(
        &["sched", "timehist", "--summary", "--tid", "1006"],
        7,
        expect![[r#"
        ||
        |Runtime summary|
        |                          comm  parent   sched-in     run-time    min-run     avg-run     max-run  stddev  migrations|
        |                                          (count)       (msec)     (msec)      (msec)      (msec)       %|
        |---------------------------------------------------------------------------------------------------------------------|
        |<no still running tasks>|
        ||
    "#]],
    );
}

#[test]
fn a_trace_dat_gives_the_same_as_its_text() {
    for name in ["pipes", "hogs", "barrier-nospin"] {
        let folder = recording("6.1/2x1x4-tracedat").join(name);
        let switches = |file: &str| -> Vec<(Value, Value)> {
            let rows = json(&["sched", "latency", "--pids", "--sort", "pid"], &folder.join(file));
            let rows = rows["rows"].as_array().expect("rows").clone();
            rows.into_iter().map(|row| (row["pid"].clone(), row["switches"].clone())).collect()
        };
        let binary = switches("trace.dat.gz");
        assert!(binary.len() > 5 && binary == switches("report.txt.gz"), "{name}: {binary:?}");
    }
}

#[test]
fn ways_out_are_those_of_the_kernel() {
    let file = recording("6.1/2x2x4/pipes/trace.txt.gz");
    let switches = |kernel: &[&str]| {
        let found = text(&[&["detect"][..], kernel].concat(), &file);
        ["NO_NI_RANDOM", "NO_WA_WEIGHT", "RUN_TO_PARITY"]
            .map(|switch| found.contains(&format!("try    {switch}")))
    };
    assert_eq!(switches(&[]), [true, true, false], "as the facts beside the recording say");
    assert_eq!(switches(&["--kernel", "v6.10+NO_RUN_TO_PARITY"]), [false, true, true]);
}

#[test]
fn json_has_what_text_has() {
    let file = recording("6.1/1x1x8/fork/trace.txt.gz");
    for (args, extra) in [(&["sched", "map"][..], 0), (&["sched", "timehist"], 3)] {
        let rows = json(args, &file)["rows"].as_array().expect("rows").len();
        assert_eq!(rows + extra, text(args, &file).lines().count(), "{args:?}");
    }
    let summary = &json(&["sched", "timehist", "--with-summary"], &file)["summary"];
    assert_eq!(summary["totals"]["switches"], 1377);
    let detected = json(&["detect", "--machine", "1x1x8"], &file);
    let names: Vec<&str> =
        detected["detectors"].as_array().unwrap().iter().map(|d| d["detector"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "idle-while-waiting",
            "pile-up",
            "llc-walk",
            "node-ping-pong",
            "stolen-cpu",
            "latency-outlier",
            "preemption-storm"
        ]
    );
}

#[test]
fn standard_input_is_read_and_a_closed_output_is_no_error() {
    let file = std::fs::File::open(recording("6.1/1x1x8/fork/trace.txt.gz")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(["sched", "map", "-"])
        .stdin(file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_pipe_is_read_like_a_file() {
    let text = std::fs::File::open(recording("6.1/1x1x8/fork/trace.txt.gz")).unwrap();
    let mut cat = Command::new("cat").stdin(text).stdout(Stdio::piped()).spawn().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(["audit", "/dev/stdin", "--kernel", "v6.1", "--machine", "1x1x8", "--format", "json"])
        .stdin(cat.stdout.take().unwrap())
        .output()
        .unwrap();
    assert!(cat.wait().unwrap().success() && output.status.success(), "{output:?}");
    let audit: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(audit["recordings"][0]["events"], 3262);
}

fn check_error(args: &[&str], content: &[u8], expected: Expect) {
    let name = format!("schedlab-{}-{}", std::process::id(), args.join("-").replace(['/', ' '], "-"));
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, content).unwrap();
    let output = schedlab(args, &path);
    let _ = std::fs::remove_file(&path);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "nothing is printed beside the error");
    let said = String::from_utf8(output.stderr).unwrap();
    expected.assert_eq(&said.replace(&path.display().to_string(), "FILE"));
}

#[test]
fn bad_input_is_a_sentence() {
    const TRACE: &[u8] = b"a-1 [000] 1.0: sched_wakeup: comm=a pid=1 prio=120 target_cpu=000\n";
    check_error(
        &["sched", "map"],
        b"hello\n",
        expect![[r#"
        schedlab: FILE: byte 0x0: the file is in none of the formats that are known: trace text of tracefs, trace-cmd or perf script, JSON lines, trace.dat, perf.data, Perfetto
    "#]],
    );
    check_error(
        &["detect"],
        b"# tracer: nop\n#\n",
        expect![[r#"
        schedlab: FILE: there is no event of a tracepoint in it; was the recording started, and were events of the scheduler asked for (-e 'sched:*')?
    "#]],
    );
    for args in
        [&["detect"][..], &["sched", "timehist"], &["audit", "--machine", "1x1x2", "--kernel", "v6.1"]]
    {
        check_error(
            args,
            TRACE,
            expect![[r#"
                schedlab: FILE: there is no sched_switch in it, so nothing shows how long tasks ran; record it again with `trace-cmd record -e sched_switch -e sched_waking -e sched_wakeup -e sched_wakeup_new -e sched_migrate_task -e sched_process_fork -e sched_process_exec -e sched_process_exit`
            "#]],
        );
    }
    check_error(
        &["sched", "latency", "--sort", "size"],
        TRACE,
        expect![[r#"
        schedlab: --sort size: a table is sorted by avg, max, switch, runtime or pid
    "#]],
    );
    check_error(
        &["sched", "timehist", "--time", "soon"],
        TRACE,
        expect![[r#"
        schedlab: --time soon: write it like 3.95,4.1 in seconds, either end left out
    "#]],
    );
    check_error(
        &["sched", "timehist", "--time", "4.5,4"],
        TRACE,
        expect![[r#"
        schedlab: --time 4.5,4: it ends before it begins
    "#]],
    );
    check_error(
        &["sched", "timehist", "--cpu", "3-1"],
        TRACE,
        expect![[r#"
        schedlab: --cpu: CPU range 3-1 runs backwards
    "#]],
    );
    check_error(
        &["detect", "--affinity", "make"],
        TRACE,
        expect![[r#"
        schedlab: --affinity make: write it like 812=0-3 or stream=0,16
    "#]],
    );
    check_error(
        &["detect", "--machine", "zen9"],
        TRACE,
        expect![[r#"
        schedlab: there is no machine "zen9"; there are uma-8c, numa-48c, xeon-20c, spr-2s, epyc-guest-380, epyc-guest-380-flat, milan-2s, zen3-2s, icelake-2s, power10-40c, power10-12c, and regular ones such as 2x8x8x2
    "#]],
    );
}

#[test]
fn an_audit_counts_each_kind_of_decision() {
    let audit = json(&["audit", "--kernel", "v6.1", "--verdicts"], &recording("6.1/1x1x8/fork/trace.txt.gz"));
    let mut verdicts = 0;
    for kind in ["wakeup", "fork", "exec", "pick", "preempt", "balance"] {
        let counts: Vec<u64> = ["agrees", "agrees_in_set", "differs", "undecided"]
            .iter()
            .map(|key| audit[kind][key].as_u64().unwrap_or_else(|| panic!("{kind} has {key}")))
            .collect();
        let sum =
            |map: &str| audit[kind][map].as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>();
        assert_eq!([sum("differs_by_reason"), sum("undecided_by_fact")], counts[2..], "{kind}");
        verdicts += counts.iter().sum::<u64>();
    }
    assert!(verdicts > 1500, "{verdicts}");
    assert_eq!(audit["verdicts"].as_array().unwrap().len() as u64, verdicts);
}

/// Kernels between the presets: their own rules explain them better than those of the previous preset.
#[test]
fn kernels_between_the_presets_have_rules_of_their_own() {
    const DECISIONS: [&str; 5] = ["wakeup", "fork", "pick", "preempt", "balance"];
    // For each decision, how many agree and how many differ.
    let audited = |folder: &str, kernel: &[&str]| {
        let report = json(&[&["audit"], kernel].concat(), &recording("between").join(folder));
        DECISIONS.map(|decision| {
            let count = |name: &str| report[decision][name].as_u64().unwrap();
            (count("agrees") + count("agrees_in_set"), count("differs"))
        })
    };
    // The minimum of a thousand that agree: wake-ups, forks, picks, preemption answers, moves.
    for (folder, before, least) in [
        ("5.10/2x2x4", "v5.5", [999, 998, 999, 994, 990]),
        ("6.18/2x2x4", "v6.12", [999, 999, 999, 994, 989]),
    ] {
        let (own, other) = (audited(folder, &[]), audited(folder, &["--kernel", before]));
        for ((decision, (agree, differ)), least) in DECISIONS.iter().zip(own).zip(least) {
            assert!(agree * 1000 >= least * (agree + differ), "{folder}: {differ} of {decision} differ");
        }
        let differ = |all: [(u64, u64); 5]| all.iter().map(|(_, differ)| differ).sum::<u64>();
        assert!(differ(own) < differ(other), "{folder}: {} and {} by {before}", differ(own), differ(other));
    }
}

#[test]
fn a_folder_stands_for_its_recordings_and_a_trace_dat_for_its_text() {
    let folder = recording("6.1/2x1x4-tracedat");
    let all = json(&["audit"], &folder);
    assert_eq!(all["kernel"], "v6.1", "facts/uname.txt says so");
    assert_eq!(all["recordings"].as_array().unwrap().len(), 3);
    let one = json(&["audit"], &folder.join("pipes"));
    let text = json(&["audit"], &folder.join("pipes/report.txt.gz"));
    for kind in ["wakeup", "fork"] {
        assert_eq!(one[kind], text[kind], "the text of trace-cmd gives the same");
    }
    // Its times are rounded, so an exact decision may become one of several.
    let agree = |of: &Value| ["agrees", "agrees_in_set"].map(|answer| of["pick"][answer].as_u64().unwrap());
    assert_eq!(agree(&one).iter().sum::<u64>(), agree(&text).iter().sum::<u64>());
    assert_eq!(one["pick"]["differs"], text["pick"]["differs"]);
}

#[test]
fn verdicts_are_marked_in_a_perfetto_trace() {
    let file = recording("6.1/1x1x8/fork/trace.txt.gz");
    let trace = schedlab(&["audit", "--kernel", "v6.1", "--format", "perfetto"], &file);
    assert!(trace.status.success());
    let has = |text: &str| trace.stdout.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("wakeup agrees TARGET_IDLE") && has("audit.agrees") && has("fork agrees_in_set"));
}

#[test]
fn a_replay_says_first_whether_the_recording_comes_back() {
    let args = |threads| {
        let targets = ["--machine", "2x8x4", "--kernel", "v6.12", "--vs", "v6.12+NO_SIS_UTIL,v6.1"];
        [&["replay", "--runs", "2", "--threads", threads][..], &targets].concat()
    };
    let file = recording("6.12/2x2x4/stream-perllc-1");
    let one = text(&args("1"), &file);
    let first = one.lines().next().unwrap();
    assert!(
        first.starts_with("fidelity  replayed on its own machine (16 CPUs, v6.12), mean of 2 seeds"),
        "{first}"
    );
    let second = one.lines().nth(1).unwrap();
    assert!(second.starts_with("form      "), "{second}");
    assert!(one.contains("\nbeginning learned: it begins ") && one.contains("of 5 new tasks"), "{one}");
    assert!(
        one.contains(
            "\nstate     what the kernel did before the recording is in no event; of 32 states tried number "
        ),
        "{one}"
    );
    for part in [
        "run time, ms",
        "wake-up latency, us",
        "switches and migrations",
        "v6.12+NO_SIS_UTIL",
        "v6.1 against v6.12",
    ] {
        assert!(one.contains(part), "{part} is not in {one}");
    }
    assert!(one == text(&args("3"), &file), "the same on any number of threads");
    let value = json(&args("0"), &file);
    assert_eq!(value["fidelity"]["counts"][0]["what"], "switches");
    assert_eq!(value["comparison"]["kernels"].as_array().map(Vec::len), Some(3), "{}", value["comparison"]);
}

/// Before that, a replay keeps the machine idle until it has the state of the recording's beginning.
#[test]
fn the_trace_of_a_replay_begins_with_the_recording() {
    let (file, folder) = (recording("6.12/2x2x4/stream-perllc-1"), tempfile::tempdir().unwrap());
    let trace = folder.path().join("replay.pftrace");
    text(&["replay", "--runs", "1", "--trace", trace.to_str().unwrap()], &file);
    let difference = json(&["diff", trace.to_str().unwrap()], &file);
    let [replayed, recorded] = [0, 1].map(|side| difference["seconds"][side].as_f64().unwrap());
    assert!((replayed / recorded - 1.0).abs() < 0.1, "{replayed} s of {recorded} s");
}

#[test]
fn a_replay_says_that_a_scheduler_of_sched_ext_made_the_recording() {
    let one = text(&["replay", "--runs", "2"], &recording("7.2/1x1x8-scx-fifo/scx-pipes"));
    let first = one.lines().next().unwrap();
    let told = "fidelity  recorded under a scheduler of sched_ext (lab_fifo), which the fair class is not";
    assert!(first.starts_with(told), "{first}");
}

#[test]
fn a_replay_needs_switches_and_wakeups() {
    check_error(
        &["replay", "--recorded-on", "1x4", "--as-recorded", "v6.12"],
        b"            sh-7       [001] d..2.     1.000001: sched_wakeup: comm=a pid=8 prio=120 target_cpu=001\n",
        expect![[r#"
            schedlab: FILE: there is no sched_switch in it, so nothing shows how long tasks ran; record it again with `trace-cmd record -e sched_switch -e sched_waking -e sched_wakeup -e sched_wakeup_new -e sched_migrate_task -e sched_process_fork -e sched_process_exec -e sched_process_exit`
        "#]],
    );
    check_error(
        &["replay", "--recorded-on", "1x4", "--as-recorded", "v6.x"],
        b"            sh-7       [001] d..2.     1.000001: sched_wakeup: comm=a pid=8 prio=120 target_cpu=001\n",
        expect![[r#"
            schedlab: there is no kernel "v6.x"; known are v4.13, v5.5, v5.10, v5.18, v6.1, v6.3, v6.10, v6.12, v6.17, v6.18, v6.19, v7.1, v7.2, v7.3
        "#]],
    );
    check_error(
        &["replay"],
        b"            sh-7       [001] d..2.     1.000001: sched_wakeup: comm=a pid=8 prio=120 target_cpu=001\n",
        expect![[r#"
            schedlab: FILE does not say on which machine it was recorded; name it with --recorded-on, or give the folder of its topology.txt with --facts (`schedlab record` makes one)
        "#]],
    );
}

/// The machine of a recording according to `audit`.
fn machine_of(file: &Path) -> String {
    let value = json(&["audit", "--kernel", "v6.1"], file);
    value["machine"].as_str().expect("the machine has a name").to_owned()
}

#[test]
fn a_recording_shows_its_machine_itself_or_by_what_lies_beside_it() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/data");
    let folder = std::env::temp_dir().join(format!("schedlab-{}-beside", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // The header of perf.data has the machine.
    let perf = folder.join("perf.data.gz");
    std::fs::copy(data.join("perf-sched.data.gz"), &perf).unwrap();
    assert_eq!(machine_of(&perf), perf.display().to_string());
    assert_eq!(machine_of(&folder), perf.display().to_string(), "the folder stands for the recording in it");
    // Text does not contain it.
    let text = folder.join("one.txt");
    std::fs::copy(data.join("tracefs-6.1.txt"), &text).unwrap();
    let refused = schedlab(&["audit", "--kernel", "v6.1"], &text);
    assert_eq!(refused.status.code(), Some(2));
    let lscpu = |cpus: usize| (0..cpus).map(|cpu| format!("{cpu},{cpu},0,0,0\n")).collect::<String>();
    std::fs::write(folder.join("lscpu.txt"), format!("# CPU,Core,Socket,Node,L3\n{}", lscpu(16))).unwrap();
    assert!(machine_of(&text).ends_with("lscpu.txt"));
    std::fs::write(folder.join("one.txt.lscpu"), format!("# CPU,Core,Socket,Node,L3\n{}", lscpu(32)))
        .unwrap();
    assert!(machine_of(&text).ends_with("one.txt.lscpu"), "what bears its name comes first");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A recording in a folder without other files: its output and its messages.
fn alone(name: &str, content: &[u8], args: &[&str]) -> (String, String) {
    ends_with(0, name, content, args)
}

fn ends_with(status: i32, name: &str, content: &[u8], args: &[&str]) -> (String, String) {
    let path = std::env::temp_dir().join(format!("schedlab-{}-alone-{name}", std::process::id()));
    std::fs::write(&path, content).unwrap();
    let output = schedlab(args, &path);
    let _ = std::fs::remove_file(&path);
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    let told = String::from_utf8(output.stderr).unwrap().replace(&path.display().to_string(), "FILE");
    (String::from_utf8(output.stdout).unwrap(), told)
}

#[test]
fn a_recording_alone_is_taken_to_come_from_where_it_is_replayed() {
    let file = std::fs::read(recording("6.1/2x1x4-tracedat/pipes/trace.dat.gz")).unwrap();
    let args =
        ["replay", "--programs", "--machine", "zen3-2s", "--kernel", "v6.12", "--vs", "v6.12+NO_SIS_UTIL"];
    let (programs, told) = alone("replay", &file, &args);
    assert!(programs.contains("pp-main"), "{programs}");
    expect![[r#"
        schedlab: FILE does not say on which machine it was recorded: zen3-2s is assumed; name another with --recorded-on
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_trace_dat_says_its_kernel() {
    let file = std::fs::read(recording("6.1/2x1x4-tracedat/pipes/trace.dat.gz")).unwrap();
    let (audit, told) = alone("kernel", &file, &["audit", "--machine", "2x1x4", "--format", "json"]);
    let audit: Value = serde_json::from_str(&audit).unwrap();
    assert_eq!((audit["kernel"].as_str(), told.as_str()), (Some("v6.1"), ""));
}

#[test]
fn a_clock_that_goes_back_is_reported() {
    let line = |time: &str| {
        format!(
            "<idle>-0 [000] {time}: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=1 next_prio=120\n"
        )
    };
    let text = line("5.5") + &line("6.25") + &line("1.5") + &line("1.25");
    let (_, told) = alone("clock", text.as_bytes(), &["sched", "map"]);
    expect![[r#"
        schedlab: FILE: the clock goes back in 2 places, first by 4750ms, line 3; times and waits around them are wrong. Are these several recordings in one, or times since the last event?
    "#]]
    .assert_eq(&told);
}

/// Two CPUs; on CPU 1 a task runs and wakes another without any switch to it.
const LACKING: &str = "\
<idle>-0 [000] d..2. 1.0: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=1 next_prio=120
<idle>-0 [001] d..2. 1.1: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=120
c-3 [001] d..2. 1.5: sched_waking: comm=d pid=4 prio=120 target_cpu=001
a-1 [000] d..2. 2.5: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

#[test]
fn missing_switches_are_reported() {
    let (_, told) = alone("lacking", LACKING.as_bytes(), &["sched", "map"]);
    expect![[r#"
        schedlab: FILE: 1 switch is missing, as events show tasks that no switch let run: times and waits around them are wrong. Was one task recorded (perf record without -a), or were events filtered?
    "#]].assert_eq(&told);
    let lost = LACKING.replace("c-3", "CPU:1 [LOST 1 EVENTS]\nc-3");
    for args in [&["detect", "--format", "json"][..], &["sched", "latency", "--format", "json"]] {
        let (out, told) = alone("lost", lost.as_bytes(), args);
        let missing = serde_json::from_str::<Value>(&out).unwrap()["missing"].clone();
        assert_eq!(
            (&missing["unseen_switches"], &missing["lost_events"]),
            (&Value::from(1), &Value::from(1))
        );
        expect![[r#"
            schedlab: FILE: 1 event was lost in recording, in 1 place; counts and times around them are not to be trusted, and a larger buffer loses fewer
            schedlab: FILE: 1 switch is missing, as events show tasks that no switch let run: times and waits around them are wrong; they may be among those that were lost
        "#]].assert_eq(&told);
    }
}

#[test]
fn what_an_idle_task_did_unseen_is_put_back_and_reported() {
    let run = |time: &str| {
        format!(
            "b-2 [001] d..3. {time}1: sched_waking: comm=a pid=1 prio=120 target_cpu=000\n\
             b-2 [001] d..2. {time}2: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120\n\
             a-1 [000] d..3. {time}3: sched_waking: comm=b pid=2 prio=120 target_cpu=001\n"
        )
    };
    let text = run("1.00") + &run("1.01") + &run("1.02");
    let (out, told) = alone("silent", text.as_bytes(), &["sched", "latency", "--format", "json"]);
    let missing = serde_json::from_str::<Value>(&out).unwrap()["missing"].clone();
    assert_eq!(
        ["unseen_switches", "restored_switches", "restored_wakeups"].map(|key| missing[key].as_u64()),
        [Some(1), Some(1), Some(1)]
    );
    expect![[r#"
        schedlab: FILE: an idle task left no events; restored from later events: 1 switch away from it and the end of a wake-up
        schedlab: FILE: 1 switch is missing, as events show tasks that no switch let run: times and waits around them are wrong. Was one task recorded (perf record without -a), or were events filtered?
    "#]].assert_eq(&told);
}

#[test]
fn sched_latency_has_its_total_in_json() {
    let file = recording("6.1/1x1x8/fork/trace.txt.gz");
    let value = json(&["sched", "latency"], &file);
    let sum: u64 =
        value["rows"].as_array().unwrap().iter().map(|row| row["switches"].as_u64().unwrap()).sum();
    assert_eq!(value["total"]["switches"].as_u64(), Some(sum));
    assert!(
        value["total"]["switch_bugs"].is_u64() && value["total"]["wakeups"].as_u64() > Some(0),
        "{value}"
    );
}

#[test]
fn an_empty_answer_says_what_there_is() {
    for (args, expected) in [
        (
            &["sched", "timehist", "--time", "99999,"][..],
            expect![[r#"
            schedlab: FILE: nothing is within --time; there are events from 1.000000 to 2.500000 of CPUs 0-1
        "#]],
        ),
        (
            &["sched", "timehist", "--cpu", "77", "--summary"],
            expect![[r#"
            schedlab: FILE: nothing is within --cpu; there are events from 1.000000 to 2.500000 of CPUs 0-1
        "#]],
        ),
        (
            &["sched", "timehist", "--tid", "99999999"],
            expect![[r#"
            schedlab: FILE: nothing is within --tid; `schedlab sched latency --pids` lists the tasks; there are events from 1.000000 to 2.500000 of CPUs 0-1
        "#]],
        ),
        (
            &["sched", "map", "--cpus", "5"],
            expect![[r#"
            schedlab: FILE: --cpus names no CPU that switches; there are events from 1.000000 to 2.500000 of CPUs 0-1
        "#]],
        ),
    ] {
        let (_, told) = alone("empty", LACKING.replace("c-3", "b-2").as_bytes(), args);
        expected.assert_eq(&told);
    }
}

#[test]
fn an_audit_of_several_names_each_kernel_and_machine() {
    let folder = std::env::temp_dir().join(format!("schedlab-{}-several", std::process::id()));
    for (name, from) in [("a", "6.1/1x1x8"), ("b", "6.12/1x1x8")] {
        std::fs::create_dir_all(folder.join(name).join("facts")).unwrap();
        let from = recording(from);
        std::fs::copy(from.join("fork/trace.txt.gz"), folder.join(name).join("trace.txt.gz")).unwrap();
        for file in std::fs::read_dir(from.join("facts")).unwrap().map(|file| file.unwrap().path()) {
            std::fs::copy(&file, folder.join(name).join("facts").join(file.file_name().unwrap())).unwrap();
        }
    }
    let text = text(&["audit"], &folder);
    let shown = folder.display().to_string();
    let _ = std::fs::remove_dir_all(&folder);
    let head = text.lines().next().unwrap().replace(&shown, "FOLDER");
    expect!["FOLDER as v6.1 and v6.12 on FOLDER/a/facts and FOLDER/b/facts, 6521 events"].assert_eq(&head);
}

#[test]
fn what_a_table_of_cpus_does_not_say_is_reported() {
    let (_, told) = alone("lscpu", b"# CPU,Node\n0,0\n1,0\n", &["topo"]);
    expect![[r#"
        schedlab: FILE does not contain cores (each CPU is taken for one), sockets (one is assumed for all), caches (the CPUs of a package in one node are assumed to share the last one); the whole output of lscpu -p does
    "#]].assert_eq(&told);
    assert_eq!(alone("whole", b"# CPU,Core,Socket,Node,L3\n0,0,0,0,0\n1,1,0,0,0\n", &["topo"]).1, "");
}

#[test]
fn rows_of_an_audit_and_detectors_are_explained() {
    for (name, expected) in [
        (
            "UNSEEN_SWITCH",
            expect![[r#"
            UNSEEN_SWITCH (fact an audit lacks)
            A recording does not show which tasks ran and waited on the CPU after a switch that is not in the trace.
        "#]],
        ),
        (
            "none",
            expect![[r#"
            NONE (row of an audit)
            No rule known here determines the choice: it depends on something hidden.
        "#]],
        ),
        (
            "pile-up",
            expect![[r#"
            pile-up (detector)
            2 or more new tasks are put on a CPU that has others while a CPU that they may use is idle.
        "#]],
        ),
    ] {
        let output = schedlab(&["explain"], Path::new(name));
        expected.assert_eq(&String::from_utf8(output.stdout).unwrap());
    }
    let alone = schedlab(&["topo", "--cpu", "0"], Path::new("1x1"));
    expect![[r#"
        CPU 0 under v7.3
        it has no domains: there is no other CPU to balance with
    "#]]
    .assert_eq(&String::from_utf8(alone.stdout).unwrap());
}

#[test]
fn a_task_that_does_not_run_is_refused() {
    let scenario = b"machine = \"1x2\"\nkernels = [\"v6.12\"]\n\n[[workload.task]]\nname = \"a\"\nprogram = [\"run 1ms\"]\n";
    let (_, told) = ends_with(2, "why", scenario, &["why", "--task", "nosuch"]);
    expect![[r#"
        schedlab: no task "nosuch" runs before 1.003067358; there are a
    "#]]
    .assert_eq(&told);
}
