//! Kernel strings that name a tree. Tests that need a tree run if `SCHEDLAB_TREE` names one; otherwise they say that they
//! were skipped. They pass with Linux 6.12, and the one of lazy preemption needs 7.2 or 7.3.

use schedlab::kernels::{followed, kernel, release, rules, take_warnings};
use schedlab::machine::Without;
use schedlab::parting::parting;
use schedlab::sched::Kernel;
use schedlab::trace::{Event, Kind};
use schedlab::{NoFiles, Scenario};

/// The tree of these tests, or a line that says why a test is skipped.
fn tree_dir() -> Option<String> {
    let dir = std::env::var("SCHEDLAB_TREE").ok();
    if dir.is_none() {
        eprintln!("skipped: SCHEDLAB_TREE names no kernel tree");
    }
    dir
}

fn scenario() -> Scenario {
    without_costs(with_costs("1x1x4"))
}

/// The cost of searches and passes is counted differently, so it is left out to make times equal.
fn without_costs(mut scenario: Scenario) -> Scenario {
    scenario.machine =
        scenario.machine.without(Without::parse("search-costs,cache-lines,kernel-costs").unwrap());
    scenario
}

/// Two tasks share a CPU for 27 ticks. Every second stretch of work is in the kernel, where a lazy request waits for the
/// next tick.
fn hogs() -> Scenario {
    let text = r#"
        machine = "1x1x1"
        kernels = ["v7.2"]
        [[workload.task]]
        name = "hog"
        count = 2
        program = ["loop 3", "run 5ms", "run-kernel 13ms", "end"]
    "#;
    without_costs(Scenario::parse("test", text, &NoFiles).unwrap())
}

fn with_costs(machine: &str) -> Scenario {
    hackbench(machine, 1, 4)
}

fn hackbench(machine: &str, groups: u32, pairs: u32) -> Scenario {
    let text = format!(
        r#"
        machine = "{machine}"
        kernels = ["v6.12"]
        [workload]
        model = "hackbench"
        groups = {groups}
        pairs = {pairs}
        loops = {}
    "#,
        200 / groups
    );
    Scenario::parse("test", &text, &NoFiles).unwrap()
}

/// The events of a run, without the explanations of decisions.
fn events(scenario: &Scenario, kernel: &Kernel) -> Vec<Event> {
    let mut events: Vec<Event> = scenario.run_row(kernel, &scenario.rows[0], |_| Vec::new()).unwrap().1;
    events.retain(|event| {
        let kind = &event.kind;
        !matches!(
            kind,
            Kind::Placement(_) | Kind::Balance(_) | Kind::Newidle(_) | Kind::Preemption(_) | Kind::Pick(_)
        )
    });
    events
}

#[test]
fn what_is_no_tree_is_an_error() {
    let error = |text: &str| kernel(text, &mut |_| {}).unwrap_err().to_string();
    assert_eq!(error("tree:/nowhere"), "/nowhere: cannot open it: No such file or directory (os error 2)");
    assert!(error("tree:/").starts_with("/ is not a kernel tree: "));
}

#[test]
fn our_rules_follow_a_tree_and_say_where_it_differs() {
    let Some(dir) = tree_dir() else { return };
    let scenario = scenario();
    let numbers = release(&kernel(&format!("tree:{dir}"), &mut |_| {}).unwrap());
    assert!(numbers.is_some_and(|(version, _)| version >= 5), "{numbers:?}");
    let trees = ["", "+NO_TTWU_QUEUE"].map(|part| kernel(&format!("tree:{dir}{part}"), &mut |_| {}).unwrap());
    let found = parting(&scenario, &scenario.rows[0], [&trees[0], &trees[1]]).unwrap().unwrap();
    assert!(found.same > 0 && !found.state.is_empty(), "{found:?}");
    // The switch is also one of our rules.
    for tree in &trees {
        let all = followed(tree).unwrap();
        assert!(all.placements > 10 && all.elsewhere == 0, "{all:?}");
    }
    assert_eq!(parting(&scenario, &scenario.rows[0], [&trees[0], &trees[0]]).unwrap(), None);
    // Rules that the tree does not have, run beside it: they would decide otherwise, and follow its choices.
    let scenario = with_costs("1x2x4");
    let beside = kernel(&format!("tree:{dir}+rules=NO_WA_IDLE"), &mut |_| {}).unwrap();
    assert_eq!(parting(&scenario, &scenario.rows[0], [&trees[0], &beside]).unwrap(), None);
    let followed = followed(&beside).unwrap();
    assert!(followed.elsewhere > 0 && followed.placements > followed.elsewhere, "{followed:?}");
    let error = rules(&trees[0].name, "--as-recorded").unwrap_err().to_string();
    assert!(
        error.contains("--as-recorded needs rules of ours") && error.contains("nearest are v"),
        "{error}"
    );
}

#[test]
fn a_tree_runs_as_the_rules_next_to_it() {
    let Some(dir) = tree_dir() else { return };
    let scenario = scenario();
    let tree = kernel(&format!("tree:{dir}"), &mut |step| eprintln!("{step}")).unwrap();
    let runs = [events(&scenario, &tree), events(&scenario, &tree)];
    assert!(runs[0] == runs[1], "the same run twice");
    let rules = Kernel { name: "rules".into(), ..tree.clone() };
    let ours = events(&scenario, &rules);
    let same = ours.iter().zip(&runs[0]).take_while(|(ours, tree)| ours == tree).count();
    assert_eq!((same, ours.len()), (ours.len(), runs[0].len()), "{:?}", ours.get(same));
    let scenario = with_costs("1x2x4");
    let switched = kernel(&format!("tree:{dir}+NO_WA_IDLE"), &mut |_| {}).unwrap();
    assert!(events(&scenario, &switched) != events(&scenario, &tree), "a switch of the tree's own acts");
}

#[test]
fn a_tree_with_lazy_preemption_runs_as_the_rules_next_to_it() {
    let Some(dir) = tree_dir() else { return };
    let with = |part: &str| kernel(&format!("tree:{dir}{part}"), &mut |step| eprintln!("{step}"));
    let lazy = match with("+preempt=lazy") {
        Ok(lazy) => lazy,
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("only preempt=none, voluntary or full; our rules can: v"), "{error}");
            return eprintln!("skipped: {error}");
        }
    };
    assert_eq!(with("").unwrap().preempt, lazy.preempt, "as the nearest preset");
    let error = with("+preempt=none").unwrap_err().to_string();
    assert!(
        error.contains("cannot run preempt=none, only preempt=full or lazy; our rules can: v7."),
        "{error}"
    );
    let full = with("+preempt=full").unwrap();
    for scenario in [hogs(), scenario()] {
        let all = [&lazy, &full].map(|tree| {
            let of_tree = events(&scenario, tree);
            let ours = events(&scenario, &Kernel { name: "rules".into(), ..tree.clone() });
            let same = ours.iter().zip(&of_tree).take_while(|(ours, tree)| ours == tree).count();
            assert_eq!(
                (same, ours.len()),
                (ours.len(), of_tree.len()),
                "{}: {:?}",
                tree.name,
                ours.get(same)
            );
            of_tree
        });
        assert!(all[0] != all[1], "the model changes {} events", all[0].len());
    }
}

/// A patch of `fair.c` that adds declarations where a wake-up or a fork chooses a CPU.
fn patch(dir: &str, added: &[&str]) -> String {
    let path = "kernel/sched/fair.c";
    let source = std::fs::read_to_string(format!("{dir}/{path}")).unwrap();
    let lines: Vec<&str> = source.lines().collect();
    let at = lines.windows(2).position(|two| two[0].starts_with("select_task_rq_fair(") && two[1] == "{");
    let at = at.expect("the tree has select_task_rq_fair()") + 2;
    let context = |from: usize| format!(" {}\n {}\n {}\n", lines[from], lines[from + 1], lines[from + 2]);
    format!(
        "--- a/{path}\n+++ b/{path}\n@@ -{},6 +{},{} @@\n{}{}{}",
        at - 2,
        at - 2,
        6 + added.len(),
        context(at - 3),
        added.iter().map(|line| format!("+\t{line}\n")).collect::<String>(),
        context(at)
    )
}

/// The same as a file, which is removed when it is dropped.
struct PatchFile(std::path::PathBuf);

impl PatchFile {
    fn new(dir: &str, name: &str, added: &[&str]) -> PatchFile {
        let file = std::env::temp_dir().join(format!("schedlab-{name}-{}.patch", std::process::id()));
        std::fs::write(&file, patch(dir, added)).unwrap();
        PatchFile(file)
    }
}

impl Drop for PatchFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_patch_pays_for_the_line_of_an_atomic_that_it_adds() {
    let Some(dir) = tree_dir() else { return };
    // It counts wake-ups and forks.
    let counts = ["static atomic_t placed;", "int nr_placed __maybe_unused = atomic_inc_return(&placed);"];
    let file = PatchFile::new(&dir, "atomic", &counts);
    let tree = |part: &str| kernel(&format!("tree:{dir}{part}"), &mut |step| eprintln!("{step}")).unwrap();
    let trees = [tree(""), tree(&format!("+{}", file.0.display()))];
    let run = |scenario: &Scenario| trees.each_ref().map(|tree| events(scenario, tree));
    let [plain, patched] = run(&without_costs(with_costs("1x2x4")));
    let same = plain.iter().zip(&patched).take_while(|(plain, patched)| plain == patched).count();
    assert_eq!(same, plain.len(), "{:?} and {:?}", plain.get(same), patched.get(same));
    let [plain, patched] = run(&with_costs("1x2x4"));
    assert!(plain != patched, "each wake-up from another CPU brings the line");
}

/// Two wakers at work on CPUs 0 and 1 wake tasks that slept on CPU 2, at the same time.
const MEET: &str = r#"
    machine = "1x1x4"
    kernels = ["v6.12"]
    [workload]
    duration = "20ms"
    [[workload.task]]
    name = "first"
    cpus = "0"
    program = "run 600ns; loop forever; run 150us; post first; end"
    [[workload.task]]
    name = "second"
    cpus = "1"
    program = "loop forever; run 150us; post second; end"
    [[workload.task]]
    name = "hog"
    cpus = "3"
    program = "loop forever; run 1ms; end"
    [[workload.task]]
    name = "sleeps-1"
    start_cpu = 2
    program = "loop forever; take first; run 20us; end"
    [[workload.task]]
    name = "sleeps-2"
    start_cpu = 2
    program = "loop forever; take second; run 20us; end"
"#;

#[test]
fn two_wakers_meet_on_an_idle_cpu_under_a_tree_as_under_our_rules() {
    let Some(dir) = tree_dir() else { return };
    let mut scenario = Scenario::parse("meet", MEET, &NoFiles).unwrap();
    scenario.machine = scenario.machine.without(Without::parse("search-costs,cache-lines").unwrap());
    // Without a wake list the waker queues the task itself, which takes a while. The other switch is for a name of its
    // own: what followed is kept by name.
    let tree = kernel(&format!("tree:{dir}+NO_TTWU_QUEUE+NO_WA_BIAS"), &mut |_| {}).unwrap();
    let rules = kernel("v6.12+NO_TTWU_QUEUE+NO_WA_BIAS", &mut |_| {}).unwrap();
    let queued = |kernel: &Kernel| -> Vec<_> {
        let queued = |event: Event| match event.kind {
            Kind::SchedWakeup { comm, target_cpu, .. } if comm.as_bytes().starts_with(b"sleeps") => {
                Some((event.time, comm, target_cpu))
            }
            _ => None,
        };
        events(&scenario, kernel).into_iter().filter_map(queued).collect()
    };
    let [under_tree, under_rules] = [&tree, &rules].map(queued);
    assert_eq!(under_tree, under_rules);
    assert!(under_rules.len() > 200 && under_rules.iter().all(|(.., cpu)| cpu.0 == 2), "{under_rules:?}");
}

#[test]
fn a_warning_of_the_kernel_is_reported_and_an_unchanged_tree_has_none() {
    let Some(dir) = tree_dir() else { return };
    let file = PatchFile::new(&dir, "warns", &["int warned __maybe_unused = WARN_ON_ONCE(1);"]);
    // A task is on its CPU until that has looked for work and switched: with many CPUs and all costs, wakers often meet it there.
    let scenario = hackbench("1x8x8x2", 4, 20);
    let warnings = |part: &str| {
        // The switch changes nothing. It is for a name of its own: warnings are kept by name.
        let name = format!("tree:{dir}{part}+WAKEUP_PREEMPTION");
        let tree = kernel(&name, &mut |step| eprintln!("{step}")).unwrap();
        events(&scenario, &tree);
        let all = take_warnings().into_iter();
        all.filter_map(|warning| Some(warning.strip_prefix(&name)?.to_string())).collect::<Vec<_>>()
    };
    assert_eq!(warnings(""), [""; 0]);
    let [warning] = &warnings(&format!("+{}", file.0.display()))[..] else { panic!("one warning") };
    assert!(warning.starts_with(": a WARN() of the kernel at kernel/sched/fair.c:"), "{warning}");
    assert!(warning.ends_with(", the first in one run"), "{warning}");
}

/// A task takes CPU 3 offline after 3 ms and brings it back 5 ms later. Another's group has a quota, whose timer moves with it.
const PLUG: &str = r#"
    machine = "1x1x4"
    kernels = ["v6.12"]
    [workload]
    duration = "20ms"
    [workload.group.limited]
    quota = "1ms"
    period = "2ms"
    [[workload.task]]
    name = "limited"
    group = "limited"
    start_cpu = 3
    program = "loop forever; run 1ms; end"
    [[workload.task]]
    name = "works"
    count = 6
    program = "loop forever; run 300us; sleep 200us; end"
    [[workload.task]]
    name = "deadline"
    policy = "deadline"
    runtime = "2ms"
    deadline = "10ms"
    period = "10ms"
    program = "loop forever; run 1ms; sleep 4ms; end"
    [[workload.task]]
    name = "plugs"
    cpus = "0-2"
    program = "sleep 3ms; hotplug 3 offline; sleep 5ms; hotplug 3 active"
"#;

#[test]
fn a_cpu_of_a_tree_goes_offline_and_comes_back() {
    let Some(dir) = tree_dir() else { return };
    let scenario = Scenario::parse("plug", PLUG, &NoFiles).unwrap();
    // The switch is for a name of its own.
    let name = format!("tree:{dir}+CACHE_HOT_BUDDY+WAKEUP_PREEMPTION");
    let tree = kernel(&name, &mut |_| {}).unwrap();
    let (mut left, mut back, mut last_limited) = (None, None, None);
    let (mut meanwhile, mut later) = (0, 0);
    for Event { time, cpu, kind, .. } in events(&scenario, &tree) {
        match kind {
            Kind::CpuhpEnter { fun, .. } if fun == "sched_cpu_dying" => left = Some(time),
            Kind::CpuhpExit { idx: 235, .. } if left.is_some() => back = Some(time),
            Kind::SchedSwitch { next_pid, next_comm, .. } if next_pid.0 != 0 => {
                if cpu.0 == 3 {
                    meanwhile += u32::from(left.is_some() && back.is_none());
                    later += u32::from(back.is_some());
                }
                if next_comm.as_bytes() == b"limited" {
                    last_limited = Some(time);
                }
            }
            _ => {}
        }
    }
    let took = back.unwrap().since(left.unwrap());
    assert!((5_000_000..5_100_000).contains(&took.0), "{took}");
    assert_eq!(meanwhile, 0, "tasks on CPU 3 while it was offline");
    assert!(later > 5, "tasks run on CPU 3 again: {later}");
    assert!(last_limited.unwrap() > back.unwrap(), "the group gets its time: {last_limited:?}");
    assert_eq!(take_warnings().into_iter().filter(|warning| warning.starts_with(&name)).count(), 0);
}
