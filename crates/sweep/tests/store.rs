//! A sweep as users experience it: interrupted, sharded, damaged, resumed, with failing points.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use schedlab::NoFiles;
use schedlab_sweep::{
    Axis, Cache, Cell, Cluster, Draft, Plan, ReportOptions, Resolver, RunOptions, Sample, Shard, Store,
    Summary, report, run, run_chunk, submit,
};

const TEXT: &str = r#"machine = "1x1x2x1"
kernels = ["v6.1", "v6.1+NO_SIS_UTIL"]
runs = 2
[workload]
model = "hackbench"
groups = 1
loops = 2
"#;

fn plan(vary: &[&str]) -> Plan {
    try_plan(vary, Sample::Grid).unwrap()
}

fn try_plan(vary: &[&str], sample: Sample) -> Result<Plan, schedlab_sweep::Error> {
    let axes = vary.iter().map(|text| Axis::parse(text)).collect::<Result<_, _>>()?;
    let (file, text) = ("small.toml".to_owned(), TEXT.to_owned());
    Plan::new(Draft { file, text, axes, sample, seeds: None, seed: None, chunk: Some(3) }, &NoFiles)
}

#[test]
fn any_parameter_can_vary_and_rows_keep_what_they_set() {
    let text = "machine = \"2x2\"\nkernels = [\"v6.12\"]\nlimit = \"5ms\"\n[rows]\nkernel.base_slice_ns = [1000000, 4000000]\n\
                machine.cost.syscall_ns = [100]\n[workload]\n[[workload.task]]\nname = \"w\"\ncount = 1\n\
                program = \"loop forever; run 1ms; end\"\n";
    let axes = ["workload.task.w.count=1,3", "workload.task.0.nice=0,5"];
    let axes = axes.iter().map(|text| Axis::parse(text)).collect::<Result<_, _>>().unwrap();
    let (file, text, sample) = ("small.toml".to_owned(), text.to_owned(), Sample::Grid);
    let plan =
        Plan::new(Draft { file, text, axes, sample, seeds: None, seed: Some(7), chunk: None }, &NoFiles);
    let plan = plan.unwrap();
    assert_eq!(plan.points(), 8);
    let mut ids = BTreeSet::new();
    for index in 0..plan.points() {
        let point = plan.point(index);
        let resolved = Resolver::new(&plan).resolve(&point).unwrap();
        let slice = if point.row.starts_with('1') { 1_000_000 } else { 4_000_000 };
        assert_eq!(resolved.kernel.tunables.base_slice_ns, slice);
        assert_eq!(resolved.machine().cost.syscall_ns.get(), 100);
        ids.insert(resolved.id);
    }
    assert_eq!(ids.len(), 8);
}

fn options() -> RunOptions {
    RunOptions { threads: 2, shard: Shard::ALL, retry: false, cache: None }
}

fn go(store: &Store, options: RunOptions) -> Summary {
    run(store, options, &mut |_| true).unwrap()
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder.join("chunks")).unwrap().map(Result::unwrap);
    entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap())).collect()
}

const VARY: [&str; 2] = ["workload.loops=1,2", "kernel.base_slice_ns=1000000,3000000"];

#[test]
fn any_number_of_workers_makes_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&VARY);
    assert_eq!((plan.points(), plan.chunks()), (16, 6));
    let make = |name: &str| Store::create(&folder.path().join(name), plan.clone()).unwrap();
    let (alone, shared, cut) = (make("alone"), make("shared"), make("cut"));

    let summary = go(&alone, RunOptions { threads: 1, ..options() });
    assert_eq!((summary.done, summary.failed, summary.stopped), (16, 0, false));
    let expected = files(alone.folder());
    assert_eq!(expected.len(), 6);

    for nth in [2, 0, 1] {
        go(&shared, RunOptions { shard: Shard { nth, of: 3 }, ..options() });
    }
    assert_eq!(files(shared.folder()), expected, "in three shares");

    // If stopped at every beat, it still finishes, a few points at a time.
    let mut rounds = 0;
    while run(&cut, options(), &mut |at| at.done == 0).unwrap().stopped {
        rounds += 1;
        assert!(rounds < 100);
    }
    assert_eq!(files(cut.folder()), expected, "interrupted");
    let parts = fs::read_dir(cut.folder().join("parts")).map_or(0, |entries| entries.count());
    assert_eq!(parts, 0, "what was left of interruptions is gone");

    for chunk in 0..plan.chunks() {
        assert_eq!(run_chunk(&plan, chunk).unwrap().0, expected[&format!("{chunk:06}.parquet")]);
    }
    let again = go(&alone, options());
    assert_eq!((again.done, again.skipped), (0, 16), "finished points are skipped");
}

#[test]
fn gathered_rows_are_the_points_in_order_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(&folder.path().join("s"), plan(&VARY)).unwrap();
    go(&store, options());
    let file = folder.path().join("all.parquet");
    assert_eq!(store.gather(&file).unwrap(), 16);
    let (mut points, mut ids) = (Vec::new(), BTreeSet::new());
    store
        .each(|table| {
            for row in 0..table.rows {
                let Cell::Int(point) = table.column("point").unwrap().cell(row) else { panic!() };
                let Cell::Text(id) = table.column("id").unwrap().cell(row) else { panic!() };
                points.push(point);
                ids.insert(id);
                assert!(matches!(table.column("time").unwrap().cell(row), Cell::Float(time) if time > 0.0));
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(points, (0..16).collect::<Vec<_>>());
    assert_eq!(ids.len(), 16, "no two points are alike");
}

#[test]
fn a_damaged_file_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(&folder.path().join("s"), plan(&VARY)).unwrap();
    go(&store, options());
    let expected = files(store.folder());
    let path = store.folder().join("chunks/000001.parquet");
    fs::write(&path, &expected["000001.parquet"][..200]).unwrap();
    assert_eq!(store.status().damaged, [path]);
    assert_eq!(go(&store, options()).done, 3);
    assert_eq!(files(store.folder()), expected);
}

#[test]
fn what_determines_a_point_is_in_its_id_and_nothing_else() {
    let id = |vary: &[&str], index: u64| {
        let plan = plan(vary);
        let resolved = Resolver::new(&plan).resolve(&plan.point(index)).unwrap();
        (resolved.id, resolved.seed)
    };
    let base = id(&["workload.loops=2"], 0);
    assert_eq!(base, id(&["workload.loops=1,2"], 4), "another plan has the same point");
    assert_eq!(base, id(&["kernel=v6.1+SIS_UTIL"], 0), "a switch that is on already");
    assert_eq!(base.1, id(&["workload.loops=2"], 2).1, "kernels are paired by seed");
    for (vary, index) in [
        (&["workload.loops=2"][..], 1),
        (&["workload.loops=2"], 2),
        (&["workload.loops=3"], 0),
        (&["machine=1x1x4x1"], 0),
        (&["machine.cost.syscall_ns=500"], 0),
        (&["limit=1s"], 0),
        (&["kernel.hz=100"], 0),
        (&["seed=7"], 0),
    ] {
        assert_ne!(base.0, id(vary, index).0, "{vary:?}");
    }
    assert_eq!(id(&["seed=7"], 0).1, 7);
}

#[test]
fn a_point_that_fails_is_listed_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    // Nothing ends within 1 us of virtual time, which is not a failure; naming CPU 3 of two is one.
    let plan =
        try_plan(&["machine=1x1x4x1,1x1x2x1", "workload.cpus=0-1,0-3", "kernel=v6.1"], Sample::Grid).unwrap();
    let store = Store::create(&folder.path().join("s"), plan).unwrap();
    let summary = go(&store, options());
    assert_eq!((summary.done, summary.failed), (8, 2));
    assert!(summary.failures[0].point.contains("machine=1x1x2x1 workload.cpus=0-3"), "{summary:?}");
    assert!(summary.failures[0].error.contains("is not in machine"), "{summary:?}");
    assert_eq!((store.status().failed, store.failures(9).unwrap().len()), (2, 2));

    let again = go(&store, options());
    assert_eq!((again.done, again.failed_before), (0, 2));
    let expected = files(store.folder());
    let retried = go(&store, RunOptions { retry: true, ..options() });
    assert_eq!(retried.failed, 2);
    assert_eq!(files(store.folder()), expected);
}

#[test]
fn plans_share_finished_points() {
    let folder = tempfile::tempdir().unwrap();
    let cached =
        || RunOptions { cache: Some(Cache::new(&folder.path().join("cache"), 1 << 24)), ..options() };
    let sweep = |name: &str, vary: &[&str]| {
        let store = Store::create(&folder.path().join(name), plan(vary)).unwrap();
        (go(&store, cached()), files(store.folder()))
    };
    let (first, _) = sweep("a", &["workload.loops=1,2"]);
    assert_eq!((first.done, first.found), (8, 0));
    let (second, with_cache) = sweep("b", &["workload.loops=2,3"]);
    assert_eq!((second.done, second.found), (8, 4));
    let store = Store::create(&folder.path().join("c"), plan(&["workload.loops=2,3"])).unwrap();
    go(&store, options());
    assert_eq!(files(store.folder()), with_cache, "with a cache and without");
}

#[test]
fn a_folder_has_one_plan() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    Store::create(&path, plan(&["workload.loops=1,2"])).unwrap();
    let error = Store::create(&path, plan(&["workload.loops=1,3"])).unwrap_err().to_string();
    assert!(error.contains("another plan"), "{error}");
    assert_eq!(Store::open(&path).unwrap().plan(), &plan(&["workload.loops=1,2"]));
    let error = Store::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("no plan.toml"), "{error}");
}

#[test]
fn a_plan_refuses_what_no_point_could_run() {
    for (vary, says) in [
        ("workload.loopz=1", "loopz"),
        ("kernel=v6.1,nonsense", "nonsense"),
        ("kernel.SIS_UTLI=on", "SIS_UTLI"),
        ("machine=zen9", "zen9"),
        ("machine.cost.nothing=1", "nothing"),
        ("row=5", "no row"),
        ("runs=3", "--seeds"),
        ("seed=x", "seed"),
    ] {
        let error = try_plan(&[vary], Sample::Grid).unwrap_err().to_string();
        assert!(error.contains(says), "{vary}: {error}");
    }
    let many = ["workload.loops=1..20000:+1", "workload.groups=1..20000:+1"];
    let error = try_plan(&many, Sample::Grid).unwrap_err();
    assert!(error.to_string().contains("--sample latin"), "{error}");
}

#[test]
fn a_drawn_plan_pairs_its_kernels_and_reads_back() {
    let plan =
        try_plan(&["workload.loops=1..20", "kernel.base_slice_ns=100000..9000000:log"], Sample::Latin(5))
            .unwrap();
    assert_eq!(plan.points(), 20);
    assert_eq!(plan.point(0).settings, plan.point(3).settings);
    assert_ne!(plan.point(0).settings, plan.point(4).settings);
    assert_eq!(Plan::from_toml("plan.toml", &plan.to_toml()).unwrap(), plan);
}

#[test]
fn a_report_says_where_a_kernel_is_better() {
    let folder = tempfile::tempdir().unwrap();
    let plan =
        try_plan(&["workload.loops=2,8", "kernel=v6.1,v6.1+hz=100", "seed=1..4"], Sample::Grid).unwrap();
    let store = Store::create(&folder.path().join("s"), plan).unwrap();
    go(&store, options());
    let found = report(&store, &ReportOptions::default()).unwrap();
    assert_eq!((found.metric.as_str(), found.points, found.lines.len()), ("time", 16, 4));
    assert!(found.lines[0].change.is_none() && found.lines[1].change.is_some());
    let text = found.text(3);
    assert!(text.contains("v6.1+hz=100 against v6.1") && text.contains("workload.loops=8"), "{text}");
    assert_eq!(found.csv().lines().count(), 5);
    // A mean consists only of the figures of its seeds.
    let mean = report(&store, &ReportOptions { metric: Some("switches".into()), against: None }).unwrap();
    assert!(mean.lines[0].mean < mean.lines[2].mean, "more loops, more switches");
    let error = report(&store, &ReportOptions { metric: Some("speed".into()), against: None }).unwrap_err();
    assert!(error.to_string().contains("it has time"), "{error}");
}

#[test]
fn files_for_clusters_start_each_share_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(&folder.path().join("My Sweep"), plan(&VARY)).unwrap();
    let slurm = submit(&store, Cluster::Slurm, 4, 2, "/usr/bin/schedlab", "").unwrap();
    assert!(slurm.contains("--array=0-3") && slurm.contains("--shard 4 --threads 2"), "{slurm}");
    let k8s = submit(&store, Cluster::Kubernetes, 6, 1, "schedlab", "lab:1").unwrap();
    for line in ["completionMode: Indexed", "completions: 6", "name: schedlab-my-sweep", "image: lab:1"] {
        assert!(k8s.contains(line), "{line}");
    }
    assert!(
        submit(&store, Cluster::Slurm, 7, 1, "schedlab", "").unwrap_err().to_string().contains("6 chunks")
    );
}
