//! What `compare` and `run` print for any workload, and that they print it for every one.

use std::path::PathBuf;
use std::process::{Command, Output};

/// A separate folder for each test, removed when it ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("schedlab-compare-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn with(name: &str, file: &str, text: &str) -> Folder {
        let folder = Folder::new(name);
        std::fs::write(folder.0.join(file), text).unwrap();
        folder
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_schedlab")).args(args).current_dir(&self.0).output().unwrap()
    }

    /// Standard output of a command that succeeds.
    fn printed(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn error(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A scenario of custom tasks under two kernels.
fn own(tasks: &str) -> String {
    format!(
        "machine = \"2\"\nkernels = [\"v6.12\", \"v6.12+NO_RUN_TO_PARITY\"]\nruns = 3\n[workload]\nname = \"own\"\n\
         duration = \"40ms\"\n{tasks}"
    )
}

const HOG: &str =
    "[[workload.task]]\nname = \"hog\"\ncount = 3\nprogram = \"loop forever; run 1ms; mark done; end\"\n";

/// The line of a figure: its words.
fn line<'a>(text: &'a str, figure: &str) -> Vec<&'a str> {
    let found = text
        .lines()
        .find(|line| line.starts_with(figure) && line.as_bytes().get(figure.len()) == Some(&b' '));
    found.unwrap_or_else(|| panic!("no {figure} in\n{text}")).split_whitespace().collect()
}

#[test]
fn a_task_that_never_leaves_its_cpu_has_used_it() {
    let task = "[[workload.task]]\nname = \"a\"\nprogram = \"loop forever; run 1ms; end\"\n";
    let folder = Folder::with("taskclock", "s.toml", &own(task));
    let text = folder.printed(&["run", "s.toml", "--stat", "--metric", "task-clock,run-max"]);
    assert_eq!(line(&text, "task-clock")[1..3], ["40", "ms"], "{text}");
    let stat = text.lines().find(|line| line.contains("msec task-clock")).unwrap();
    assert!(stat.trim_start().starts_with("40.00 msec"), "{stat}");
}

#[test]
fn a_rate_over_bare_marks_counts_them() {
    let measure = "[[workload.measure]]\nname = \"xs\"\nrule = \"rate\"\nlabel = \"done\"\n";
    let folder = Folder::with("mark", "s.toml", &own(&format!("{HOG}{measure}")));
    let output = folder.run(&["compare", "s.toml"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("xs, /s: higher is better"), "{text}");
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(!notes.contains("no run came"), "{notes}");
    assert!(notes.contains("2:class="), "a regular machine says what it lacks: {notes}");
}

#[test]
fn a_row_without_a_figure_is_there_and_says_why() {
    let text = "machine = \"1x1x8\"\nkernels = [\"v6.12\", \"v6.10\"]\nruns = 2\nseed = 1\n[workload]\nmodel = \"hackbench\"\n\
                groups = [1, 4]\nloops = 4\ntransport = \"pipe\"\nwarmup = \"10ms\"\nsample = \"10ms\"\n";
    let folder = Folder::with("row", "s.toml", text);
    let output = folder.run(&["compare", "s.toml"]);
    let (text, notes) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    for format in ["csv", "md"] {
        let other = folder.printed(&["compare", "s.toml", "--format", format]);
        assert!(!other.contains("NaN"), "{other}");
    }
    assert!(!text.contains("NaN"), "{text}");
    assert!(notes.contains("time"), "{notes}");
    for key in ["1", "4"] {
        assert!(
            text.lines().any(|line| line.split_whitespace().take(2).eq(["Amean", key]))
                || notes.contains("no figure"),
            "{text}{notes}"
        );
    }
}

#[test]
fn every_workload_has_figures_with_pairs_and_words() {
    let folder = Folder::with("figures", "s.toml", &own(HOG));
    let text = folder.printed(&["compare", "s.toml"]);
    assert!(text.contains("v6.12+NO_RUN_TO_PARITY against v6.12: 3 pairs by seed, 95 % intervals"), "{text}");
    for figure in
        ["cpu-jain hog", "run-mean hog", "wait-mean hog", "switches/s", "involuntary/s", "marks/s done"]
    {
        line(&text, figure);
    }
    assert!(!text.contains("NaN") && !text.contains("Performance counter stats"), "{text}");
    for model in ["sleepers", "periodic", "hogs", "spinners"] {
        let text = format!(
            "machine = \"2\"\nkernels = [\"v6.1\", \"v6.12\"]\nruns = 2\nlimit = \"20ms\"\n[workload]\nmodel = \"{model}\"\n"
        );
        let folder = Folder::with(model, "s.toml", &text);
        assert!(folder.printed(&["compare", "s.toml"]).contains("switches/s"), "{model}");
    }
}

#[test]
fn columns_and_rows_turn_over_any_parameter() {
    let folder = Folder::with("vary", "s.toml", &own(HOG));
    let args = ["compare", "s.toml", "--kernel", "v6.12", "--vary", "workload.task.hog.nice=0,5,10"];
    let text = folder
        .printed(&[&args[..], &["--rows", "workload.task.hog.count=3,5", "--metric", "cpu-time"]].concat());
    assert!(text.contains("nice=5 against nice=0") && text.contains("nice=10 against nice=0"), "{text}");
    for key in ["cpu-time 3 hog", "cpu-time 5 hog"] {
        line(&text, key);
    }
    let pairs = folder.printed(&[&args[..], &["--pairwise", "--metric", "cpu-time"]].concat());
    assert!(pairs.contains("nice=10 against nice=5"), "{pairs}");
    let variants = own(HOG).replace(", \"v6.12+NO_RUN_TO_PARITY\"", "")
        + "[[variant]]\nname = \"three\"\n[[variant]]\nname = \"one\"\nworkload.task.hog.count = 1\n";
    std::fs::write(folder.0.join("v.toml"), variants).unwrap();
    let text = folder.printed(&["compare", "v.toml", "--metric", "switches"]);
    assert!(text.contains("one against three"), "{text}");
    std::fs::write(folder.0.join("t.toml"), own(HOG).replace("count = 3", "count = 4")).unwrap();
    let text = folder.printed(&["compare", "s.toml", "t.toml", "--kernel", "v6.12", "--metric", "switches"]);
    assert!(text.contains("t against s"), "{text}");
}

#[test]
fn what_compares_nothing_or_sets_nothing_is_refused() {
    let folder = Folder::with("nothing", "s.toml", &own(HOG));
    for (args, part) in [
        (&["--kernel", "v6.12,v6.12+RUN_TO_PARITY"][..], "does the same as v6.12"),
        (&["--set", "workload.task.pig.count=3"], "there is no \"pig\"; there are hog"),
        (&["--metric", "latencyp99"], "did you mean latency-p99?"),
        (&["--vary", "workload.name"], "has no values"),
        (&["--runs", "0"], "--runs is at least 1"),
    ] {
        let error = folder.error(&[&["compare", "s.toml"], args].concat());
        assert!(error.contains(part), "{error}");
    }
    let output = folder.run(&["compare", "s.toml", "--kernel", "v5.5,v5.5+NO_RUN_TO_PARITY,v6.12"]);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(notes.contains("RUN_TO_PARITY changes nothing in v5.5"), "{notes}");
}

#[test]
fn metrics_are_listed_and_lines_are_no_wider_than_the_terminal() {
    let folder = Folder::with("width", "s.toml", &own(HOG));
    let list = folder.printed(&["compare", "s.toml", "--metric", "list"]);
    assert!(list.lines().count() > 40 && list.contains("latency-p99.9"), "{list}");
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(["compare", "s.toml", "--kernel", "v6.12,v6.10,v6.1,v5.18"])
        .env("COLUMNS", "80")
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let wide: Vec<&str> = text.lines().filter(|line| line.len() > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
}

#[test]
fn runs_are_made_until_it_is_sure_within_a_limit() {
    let folder = Folder::with("sure", "s.toml", &own(HOG).replace("runs = 3", "runs = 1"));
    let text = folder.printed(&["compare", "s.toml", "--until-sure", "6", "--metric", "switches"]);
    let runs: Vec<u32> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(text.contains("paired runs") && runs.iter().any(|&n| (3..=6).contains(&n)), "{text}");
}

#[test]
fn an_account_says_what_carries_the_difference() {
    let folder = Folder::with("account", "s.toml", &own(HOG));
    let args = ["compare", "s.toml", "--kernel", "v6.12,v6.12+hz=1000+NO_SIS_UTIL", "--attribute"];
    let text = folder.printed(&[&args[..], &["--metric", "switches"]].concat());
    let slice =
        text.lines().find(|line| line.starts_with("  hz 250 -> 1000")).unwrap_or_else(|| panic!("{text}"));
    assert!(slice.ends_with("100 %"), "{text}");
    assert!(!text.contains("SIS_UTIL on -> off"), "it carries nothing here: {text}");
}

#[test]
fn a_change_has_a_span_where_constants_of_the_machine_may_be_wrong() {
    // The switches of two hogs depend only on the tick; how much they work depends on the cost of a switch.
    let folder = Folder::with("ends", "s.toml", &own(HOG));
    let args = ["compare", "s.toml", "--kernel", "v6.12,v6.12+hz=1000", "--ends", "--format", "json"];
    let text = folder.printed(&[&args[..], &["--metric", "switches,wakeups"]].concat());
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    let of = |name: &str| told.as_array().unwrap().iter().find(|one| one["metric"] == name).unwrap().clone();
    let switches = of("switches");
    let ends = switches["ends"].as_array().unwrap();
    assert!(ends.iter().any(|end| end["constant"] == "cost.context_switch_ns"), "{switches}");
    assert!(ends.iter().all(|end| end["constant"] != "cost.pipe_ns"), "no pipe is there: {switches}");
    let [low, change, high] = ["low", "change", "high"].map(|key| switches[key].as_f64().unwrap());
    assert!(low <= change && change <= high && low > 0.5, "{switches}");
    assert_eq!(switches["keeps_sign"], true);
}

#[test]
fn a_model_is_in_a_group_and_has_a_policy() {
    let text = "machine = \"2\"\nkernels = [\"v6.12\"]\nlimit = \"5s\"\n[workload]\nmodel = \"hogs\"\nhogs = 4\nwall = \"50ms\"\n\
                policy = \"batch\"\ncpus = \"0\"\n[workload.group]\n\"/a\" = { quota = \"10ms\", period = \"100ms\" }\n";
    let folder = Folder::with("group", "s.toml", text);
    let text =
        folder.printed(&["run", "s.toml", "--metric", "throttled-periods,throttled-time,cpus-utilized"]);
    assert_ne!(line(&text, "throttled-periods")[1], "0", "{text}");
}

#[test]
fn one_of_several_has_channels_of_its_own() {
    let tasks = "[[workload.task]]\nname = \"w\"\ncount = 3\nprogram = \"loop 5; write p{n} 1; read q{n} 1; end\"\n\
                 [[workload.task]]\nname = \"r\"\ncount = 3\nprogram = \"loop 5; read p{n} 1; write q{n} 1; mark got; end\"\n";
    let folder = Folder::with("channels", "s.toml", &own(tasks));
    let text = folder.printed(&["run", "s.toml", "--metric", "marks/s", "--format", "json"]);
    assert!(text.contains("\"got\""), "{text}");
}

#[test]
fn scenarios_are_listed_and_run_by_their_names() {
    let folder = Folder::new("names");
    let list = folder.printed(&["scenarios"]);
    assert!(list.contains("stream-pinned-numa  ") && list.lines().count() > 20, "{list}");
    let error = folder.error(&["compare", "sis-utill"]);
    assert!(error.contains("did you mean the scenario sis-util?"), "{error}");
    folder.printed(&["new", "mine.toml"]);
    assert!(folder.error(&["new", "mine.toml"]).contains("is there already"));
    let text = folder.printed(&["compare", "mine.toml", "--set", "workload.duration=20ms", "--runs", "2"]);
    assert!(text.contains("answer p99"), "{text}");
}

/// An idle CPU, three tasks that are bound to its neighbour, and three that could use it.
#[test]
fn findings_of_one_cause_are_one_and_ways_out_are_run() {
    let text = "machine = \"1x1x4x1:cluster=2\"\nkernels = [\"v7.1\"]\n[workload]\nname = \"beside\"\nduration = \"200ms\"\n\
                [[workload.task]]\nname = \"p\"\ncount = 3\ncpus = \"3\"\nprogram = \"loop forever; run 1ms; end\"\n\
                [[workload.task]]\nname = \"w\"\ncount = 3\ncpus = \"0-1\"\n\
                program = \"run-wall 10ms; cpus 0-3; loop forever; run 1ms; end\"\n";
    let folder = Folder::with("beside", "s.toml", text);
    let text = folder.printed(&["detect", "s.toml"]);
    let found = text.lines().filter(|line| line.contains(" waited ") && line.contains(" .. ")).count();
    assert!((1..=2).contains(&found), "{text}");
    assert!(text.contains("more of the same cause") && text.contains("takes nothing. Balance:"), "{text}");
    assert!(!text.contains("not in the trace"), "the trace has the decisions: {text}");
    let tried =
        text.lines().find(|line| line.contains("flipped, one at a time")).unwrap_or_else(|| panic!("{text}"));
    let tried: u32 = tried.split(' ').next().unwrap().parse().unwrap();
    assert!(tried > 50, "{text}");
}

#[test]
fn what_a_newly_idle_cpu_did_is_reported() {
    let task = "[[workload.task]]\nname = \"s\"\nprogram = \"loop forever; run 1ms; sleep 1ms; end\"\n";
    let folder =
        Folder::with("newidle", "s.toml", &own(&format!("{HOG}{task}").replace("count = 3", "count = 1")));
    let text = folder.printed(&["why", "s.toml", "--kernel", "v6.12", "--kind", "newidle"]);
    assert!(text.contains("is about to go idle and looks for work: it finds nothing. Newly idle:"), "{text}");
    let trace = folder.printed(&["trace", "s.toml", "--kernel", "v6.12", "--events", "schedlab_newidle"]);
    assert!(trace.contains("schedlab_newidle: dst_cpu=") && trace.contains("reason=NI_"), "{trace}");
    let text =
        folder.printed(&["run", "s.toml", "--kernel", "v6.12", "--metric", "newidle-by,wakeups-by,busy-on"]);
    assert!(text.contains("newidle-by NI_") && text.contains("busy-on CPU 1"), "{text}");
}

#[test]
fn a_lock_that_is_spun_for_is_an_operation() {
    let task = "[workload.mutex]\nl = { spin = \"20us\", sleep = \"200us\" }\n[[workload.task]]\nname = \"w\"\ncount = 4\n\
                program = \"loop forever; lock l; run 30us; unlock l; run 10us; mark got; end\"\n";
    let folder = Folder::with("spin", "s.toml", &own(task));
    let rate = |spin: &str| -> f64 {
        let set = format!("workload.mutex.l.spin={spin}");
        let text = folder.printed(&["run", "s.toml", "--set", &set, "--metric", "voluntary"]);
        line(&text, "voluntary")[1].replace(',', "").parse().unwrap()
    };
    assert!(rate("20us") > 4.0 * rate("5ms"), "a task that spins longer sleeps less often");
    let wrong = own(task).replace("spin = \"20us\", ", "");
    std::fs::write(folder.0.join("w.toml"), wrong).unwrap();
    let error = folder.error(&["run", "w.toml"]);
    assert!(error.contains("w.toml:8") && error.contains("spin"), "{error}");
}

#[test]
fn state_is_written_for_those_that_name_it() {
    let folder = Folder::with("state", "s.toml", &own(HOG));
    let args = ["trace", "s.toml", "--kernel", "v6.12"];
    let points = ["pelt_cfs", "sched_update_nr_running", "schedlab_se", "schedlab_next_balance"];
    let text = folder.printed(&[&args[..], &["--events", &points.join(",")]].concat());
    for point in points {
        assert!(text.contains(&format!(" {point}: ")), "{point}\n{text}");
    }
    assert!(!folder.printed(&args).contains("pelt_"), "nobody asked");
    folder.printed(&[&args[..], &["--events", "pelt_*", "--output", "s.pftrace"]].concat());
    let bytes = std::fs::read(folder.0.join("s.pftrace")).unwrap();
    assert!(bytes.windows(8).any(|name| name == b"pelt_cfs"));
    let error = folder.error(&[&args[..], &["--output", "s.png"]].concat());
    assert!(error.contains("no trace is written as .png"), "{error}");
}

#[test]
fn counters_of_the_kernel_are_printed_read_and_compared() {
    let folder = Folder::with("schedstat", "s.toml", &own(HOG));
    for version in ["15", "16", "17"] {
        let args = ["sched", "stats", "s.toml", "--kernel", "v6.12", "--schedstat", "--version", version];
        let text = folder.printed(&args);
        assert!(text.starts_with(&format!("version {version}\ntimestamp ")), "{text}");
        std::fs::write(folder.0.join("machine.txt"), text).unwrap();
        let diff = folder.printed(&["sched", "stats", "diff", "machine.txt", "s.toml", "--kernel", "v6.12"]);
        let line = line(&diff, "calls of schedule()");
        assert_eq!(line[3], line[4], "read as it was written: {diff}");
    }
    assert!(folder.printed(&["sched", "stats", "s.toml"]).contains("newly idle"));
}

#[test]
fn folders_of_recordings_are_sides() {
    let folder = Folder::with("recorded", "s.toml", &own(HOG));
    for (side, kernel) in [("before", "v6.12"), ("after", "v6.1")] {
        std::fs::create_dir(folder.0.join(side)).unwrap();
        for run in ["1", "2"] {
            let output = format!("{side}/{run}.txt");
            folder.printed(&["trace", "s.toml", "--kernel", kernel, "--seed", run, "--output", &output]);
        }
    }
    let text = folder.printed(&["compare", "before", "after", "--metric", "switches,run-mean:hog"]);
    assert!(text.contains("after against before: 2 pairs") && text.contains("run-mean hog"), "{text}");
    std::fs::create_dir(folder.0.join("empty")).unwrap();
    let error = folder.error(&["compare", "before", "empty"]);
    assert!(error.contains("empty: there is no recording in it"), "{error}");
}

#[test]
fn what_parts_two_kernels_is_reported() {
    let folder = Folder::with("parts", "s.toml", &own(HOG));
    let text = folder.printed(&["why", "s.toml", "--diff", "v6.12", "v6.12+hz=1000"]);
    let first = text.lines().find(|line| line.contains("decisions are the same, then")).unwrap();
    assert!(!first.contains(" 0 decisions"), "the clock alone parts nothing: {text}");
    assert!(text.contains("reasons whose share changed"), "{text}");
    let text = folder.printed(&["explain", "e496132ebedd"]);
    assert!(text.contains("It is 3 rules here; switching only one of them is not this commit."), "{text}");
    assert!(folder.printed(&["explain", "sched_balance_newidle"]).contains("newidle_balance.rs"));
    assert!(folder.printed(&["explain", "throttle"]).contains("throttled-time (metric)"));
}

#[test]
fn a_task_that_waits_for_ever_does_not_end_a_workload_with_a_duration() {
    let task = "[[workload.task]]\nname = \"a\"\nprogram = \"take never\"\n";
    let folder = Folder::with("forever", "s.toml", &own(&format!("{task}{HOG}")));
    assert_eq!(
        line(&folder.printed(&["run", "s.toml", "--metric", "elapsed"]), "elapsed")[1..3],
        ["40", "ms"]
    );
    for (kernel, part) in
        [("v6.12+base_slice=3", "did you mean base_slice_ns?"), ("v6.12+SIS_UTILL", "did you mean SIS_UTIL")]
    {
        let error = folder.error(&["run", "s.toml", "--kernel", kernel]);
        assert!(error.contains(part), "{error}");
    }
    folder.printed(&["run", "s.toml", "--kernel", "v6.12+base_slice_ns=3ms"]);
}

#[test]
fn every_model_is_put_into_a_group_and_gets_a_policy() {
    let models =
        ["hackbench", "sleepers", "periodic", "hogs", "spinners", "schbench", "netperf", "token", "sysbench"];
    for model in models {
        let text = format!(
            "machine = \"2x2\"\nkernels = [\"v6.12\"]\nlimit = \"30ms\"\n[workload]\nmodel = \"{model}\"\npolicy = \"batch\"\n\
             nice = 3\nslice = \"2ms\"\ncpus = \"0-1\"\ncgroup = \"/a\"\n"
        );
        let folder = Folder::with(&format!("model-{model}"), "s.toml", &text);
        let text = folder.printed(&["run", "s.toml", "--metric", "busy-on"]);
        let used = folder.printed(&["run", "s.toml", "--metric", "cpus-utilized"]);
        let used: f64 = line(&used, "cpus-utilized")[1].parse().unwrap();
        assert!(used <= 2.1, "{model} uses {used} of 2 CPUs");
        for cpu in ["busy-on CPU 2", "busy-on CPU 3"] {
            assert!(!text.contains(cpu) || line(&text, cpu)[3].starts_with('0'), "{model}: {text}");
        }
    }
}

#[test]
fn benchmarks_stand_in_one_table() {
    let folder = Folder::new("bench");
    let args = ["bench", "1x2x2", "--kernel", "v6.12,v6.12+NO_RUN_TO_PARITY", "--runs", "2"];
    let text = folder.printed(&[&args[..], &["--only", "perf-bench-pipe,spawn,cyclictest"]].concat());
    assert!(text.contains("baseline(std%)") && text.contains("1-parents"), "{text}");
    assert!(
        folder
            .error(&["bench", "2", "--kernel", "v6.1,v6.12", "--only", "hackbenches"])
            .contains("there are hackbench-")
    );
}

/// A group, RT and deadline tasks, interrupts and a small CPU that is too small for its task.
const STATEFUL: &str = r#"
machine = "1x1x4:capacity=0-1/500"
kernels = ["v6.12"]
[workload]
duration = "60ms"
[workload.group]
"/g" = { weight = 50 }
[workload.interrupt]
nic = { cpu = 0, every = "exponential(100us)", hard = "5us", soft = "20us" }
[[workload.task]]
name = "fair"
count = 3
group = "/g"
program = "loop forever; run 3ms; sleep 1ms; end"
[[workload.task]]
name = "rt"
policy = "fifo"
priority = 5
program = "loop forever; run 100us; sleep 2ms; end"
[[workload.task]]
name = "dl"
policy = "deadline"
runtime = "1ms"
deadline = "5ms"
period = "5ms"
program = "loop forever; run 500us; sleep 2ms; end"
[[workload.task]]
name = "hog"
cpus = "1"
program = "run 60ms"
"#;

#[test]
fn every_state_that_is_asked_for_is_in_the_trace_with_its_fields() {
    let folder = Folder::with("state", "s.toml", STATEFUL);
    for kernel in ["v5.18", "v6.12", "v7.2"] {
        for (point, fields) in [
            ("pelt_cfs", "cpu path load runnable util"),
            ("pelt_se", "cpu comm pid load runnable util"),
            ("pelt_rt", "cpu util"),
            ("pelt_dl", "cpu util"),
            ("pelt_irq", "cpu util"),
            ("sched_util_est_cfs", "cpu path enqueued util"),
            ("sched_util_est_se", "cpu comm pid enqueued util"),
            ("sched_update_nr_running", "cpu change nr_running"),
            ("sched_overutilized", "overutilized"),
            ("schedlab_se", "cpu comm pid vruntime deadline lag slice_left"),
            ("schedlab_next_balance", "cpu domain last interval_ms"),
        ] {
            let text = folder.printed(&["trace", "s.toml", "--kernel", kernel, "--events", point]);
            let of_point = format!(": {point}: ");
            let line = text.lines().find(|line| line.contains(&of_point));
            let line = line.unwrap_or_else(|| panic!("{kernel} has no {point}: {text}"));
            let (_, values) = line.split_once(&of_point).unwrap();
            let names: Vec<&str> = values.split(' ').filter_map(|value| value.split('=').next()).collect();
            assert_eq!(names.join(" "), fields, "{kernel} {point}");
            assert_eq!(
                text.lines().filter(|line| line.contains(": sched_switch")).count(),
                0,
                "only what is asked for"
            );
        }
    }
}
