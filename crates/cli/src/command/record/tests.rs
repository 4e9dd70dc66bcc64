//! Recording a host that is a folder: its tracefs behaves like the kernel's as far as plain files can.

use std::fs;
use std::io;
use std::path::Path;

use schedlab::topology::CpuId;
use schedlab::topology::{SavedSysfs, Topology};
use schedlab::trace::read::{Record as Read, open};
use schedlab::trace::write::TraceDat;
use schedlab::trace::{Comm, Event, Flags, Kind, Sink};
use schedlab::units::{Pid, Time};
use std::io::Cursor;

use super::*;

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

/// A fork by task 7 on CPU 1: its page and the format of its event.
fn recorded_elsewhere() -> (Vec<u8>, String) {
    let mut writer = TraceDat::new(Vec::new(), Cursor::new(Vec::new()), 1);
    writer.event(&Event {
        time: Time(5_000_000_123),
        cpu: CpuId(0),
        pid: Pid(7),
        tgid: None,
        comm: Comm::from("sh"),
        flags: Flags::UNKNOWN,
        kind: Kind::SchedProcessWait { comm: Comm::from("sh"), pid: Pid(7), prio: 120 },
    });
    let file = writer.finish().unwrap();
    let page = file[file.len() - 4096..].to_vec();
    let text = String::from_utf8_lossy(&file);
    let start = text.find("name: sched_process_wait").expect("the format is in the file");
    let end = start + text[start..].find("\nname: ").unwrap_or(text.len() - start);
    // A format is followed by the length of the next one.
    let format = text[start..end].trim_end_matches(|c: char| c != '\n').to_owned();
    (page, format)
}

fn put(root: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What the kernel does when the folder of an instance is created.
fn make_instance(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    let tracefs = path.parent().unwrap().parent().unwrap();
    for system in fs::read_dir(tracefs.join("events"))?.flatten().filter(|entry| entry.path().is_dir()) {
        for event in fs::read_dir(system.path())?.flatten() {
            let name = format!("events/{}/{}", system.file_name().display(), event.file_name().display());
            put(path, &format!("{name}/enable"), "0");
        }
    }
    put(path, "trace_clock", "local [mono] boot\n");
    put(path, "per_cpu/cpu0/trace_pipe_raw", "");
    put(path, "per_cpu/cpu1/trace_pipe_raw", recorded_elsewhere().0);
    put(path, "per_cpu/cpu0/stats", "entries: 0\noverrun: 0\nread events: 0\n");
    put(path, "per_cpu/cpu1/stats", "entries: 0\noverrun: 3\ndropped events: 1\nread events: 1\n");
    Ok(())
}

/// The test checks the files of an instance before they are removed.
fn remove_instance(path: &Path) -> io::Result<()> {
    let kept = path.parent().unwrap().parent().unwrap().join("removed");
    let _ = fs::remove_dir_all(&kept);
    fs::rename(path, kept)
}

fn host(root: &Path) -> Host {
    put(
        root,
        "proc/mounts",
        "tracefs /sys/kernel/tracing tracefs rw 0 0\ncg /sys/fs/cgroup cgroup2 rw 0 0\nd /sys/kernel/debug debugfs rw 0 0\n",
    );
    put(root, "proc/self/status", "Name:\tschedlab\nUid:\t1000\t0\t0\t0\n");
    put(root, "proc/sys/kernel/osrelease", "6.12.95-test\n");
    put(root, "proc/sys/kernel/ostype", "Linux\n");
    put(root, "proc/sys/kernel/sched_rr_timeslice_ms", "100\n");
    put(
        root,
        "proc/7/task/7/stat",
        "7 (a (b) c) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 25 5 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 3 0 0",
    );
    put(root, "proc/7/task/7/status", "Name:\tx\nCpus_allowed_list:\t0-1\n");
    put(root, "proc/7/task/7/cgroup", "0::/user.slice/a b\n");
    put(root, "proc/7/autogroup", "/autogroup-47 nice 5\n");
    put(root, "proc/self/cgroup", "3:memory:/\n1:cpuacct,cpu:/\n0::/\n");
    put(
        root,
        "boot/config-6.12.95-test",
        "CONFIG_HZ=250\nCONFIG_EXT4_FS=y\n# CONFIG_PREEMPT_RT is not set\n",
    );
    put(
        root,
        "dev/kmsg",
        "6,0,0,-;Linux version 6.12\n6,1,1680000,-;CPU0 attaching sched-domain(s):\n SUBSYSTEM=x\n",
    );
    put(root, "sys/fs/cgroup/user.slice/cpu.max", "50000 100000\n");
    put(root, "sys/kernel/debug/sched/features", "GENTLE NO_SIS_UTIL \n");
    put(root, "sys/kernel/debug/sched/base_slice_ns", "3000000\n");
    put(root, "sys/kernel/debug/sched/domains/cpu0/domain0/name", "MC\n");
    for (path, text) in Topology::preset_or_regular("1x2").unwrap().to_sysfs().iter() {
        put(root, path.trim_start_matches('/'), format!("{text}\n"));
    }
    let tracefs = root.join("sys/kernel/tracing");
    fs::create_dir_all(tracefs.join("instances")).unwrap();
    put(&tracefs, "events/header_page", HEADER_PAGE);
    put(&tracefs, "events/sched/sched_switch/format", "");
    put(&tracefs, "events/sched/sched_process_wait/format", recorded_elsewhere().1);
    for event in ["power/cpu_frequency", "power/cpu_hotplug", "sched/sched_kthread_stop"] {
        put(&tracefs, &format!("events/{event}/format"), "");
    }
    put(&tracefs, "saved_cmdlines", "7 sh\n");
    Host::below(root, make_instance, remove_instance)
}

fn args(folder: &Path, command: &[&str]) -> Record {
    Record {
        output: folder.join("out"),
        duration: None,
        buffer: 1024,
        events: Vec::new(),
        format: Format::Text,
        command: command.iter().map(|&word| word.to_owned()).collect(),
    }
}

#[test]
fn a_recording_holds_the_pages_and_the_facts() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut args) = (host(&folder.path().join("host")), args(folder.path(), &["true", "x"]));
    args.events = ["power:cpu_f*", "sched"].map(str::to_owned).into();
    let done = record(&host, &args, Stop::new()).unwrap();
    assert_eq!((done.nr_cpus, done.events, done.lost), (2, 1, 4));
    assert_eq!(done.warnings, ["4 events were lost; a larger buffer may hold them: --buffer 4096"]);

    let out =
        |name: &str| fs::read_to_string(args.output.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(out("count.txt"), "events 1 lost 4\n");
    assert_eq!(out("cmd.txt"), "true x\n");
    assert!(out("facts/uname.txt").starts_with("Linux (none) 6.12.95-test "));
    assert_eq!(out("facts/sched_features.txt"), "GENTLE NO_SIS_UTIL\n");
    assert_eq!(out("facts/debug_sched.txt"), "/sys/kernel/debug/sched/base_slice_ns 3000000\n");
    assert_eq!(out("facts/domains.txt"), "cpu0/domain0/name MC\n");
    assert_eq!(out("facts/sysctl.txt"), "/proc/sys/kernel/sched_rr_timeslice_ms 100\n");
    assert_eq!(out("facts/config.txt"), "CONFIG_HZ=250\n# CONFIG_PREEMPT_RT is not set\n");
    assert_eq!(out("facts/cgroups.txt"), "/user.slice/cpu.max 50000 100000\n");
    assert_eq!(out("facts/dmesg-sched.txt"), "[    1.680000] CPU0 attaching sched-domain(s):\n");
    assert_eq!(out("facts/cgroups-after.txt"), out("facts/cgroups.txt"));
    for when in ["before", "after"] {
        let groups = out(&format!("facts/groups-{when}.txt"));
        let groups: Vec<&str> = groups.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(groups, ["hierarchy 1", "7 7 /user.slice/a\\x20b 47 5 a (b) c"]);
    }
    let tasks = out("facts/tasks.txt");
    assert_eq!(tasks.lines().nth(1), Some("7 7 BATCH 5 0 0-1 /user.slice/a\\x20b a (b) c"));
    let saved = SavedSysfs::from_lines("topology.txt", &out("facts/topology.txt")).unwrap();
    let topology = Topology::from_sysfs("saved", &saved).unwrap();
    assert_eq!(topology.llcs(), Topology::preset_or_regular("1x2").unwrap().llcs());

    let trace = fs::read(args.output.join("trace.dat")).unwrap();
    let reader = open(Cursor::new(trace), || Ok(Cursor::new(Vec::new()))).unwrap();
    let events: Vec<_> = reader.map(|record| record.unwrap()).collect();
    let [Read::Event(event)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((event.time, event.cpu, event.pid), (Time(5_000_000_123), CpuId(1), Pid(7)));
    assert_eq!((event.comm, event.kind.name()), (Comm::from("sh"), "sched_process_wait"));

    let mut names: Vec<_> = fs::read_dir(&args.output)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["cmd.txt", "count.txt", "facts", "trace.dat"], "no pages are left beside the trace");

    let instance = |name: &str| {
        fs::read_to_string(folder.path().join("host/sys/kernel/tracing/removed").join(name)).unwrap()
    };
    for (name, value) in [
        ("tracing_on", "0"),
        ("buffer_size_kb", "1024"),
        ("trace_clock", "mono"),
        ("events/sched/sched_switch/enable", "1"),
        ("events/power/cpu_frequency/enable", "1"),
        ("events/power/cpu_hotplug/enable", "0"),
        ("events/sched/sched_kthread_stop/enable", "1"),
    ] {
        assert_eq!(instance(name), value, "{name}");
    }
}

#[test]
fn an_interrupt_ends_the_recording_and_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let (host, args) = (host(&folder.path().join("host")), args(folder.path(), &[]));
    let stop = Stop::new();
    stop.interrupt()();
    let done = record(&host, &args, stop).unwrap();
    assert_eq!(done.warnings[0], "interrupted; what was recorded until then is kept");
    assert!(args.output.join("trace.dat").is_file());
}

#[test]
fn an_interrupt_ends_the_command_too() {
    let folder = tempfile::tempdir().unwrap();
    let (host, args) = (host(&folder.path().join("host")), args(folder.path(), &["sleep", "60"]));
    let stop = Stop::new();
    stop.interrupt()();
    let done = record(&host, &args, stop).unwrap();
    assert!(
        done.cut_short && !done.warnings.iter().any(|warning| warning.contains("goes on")),
        "{:?}",
        done.warnings
    );
}

#[test]
fn what_a_killed_recording_left_on_is_removed_and_the_next_one_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (host, args) = (host(&folder.path().join("host")), args(folder.path(), &["true"]));
    let instance = folder.path().join("host/sys/kernel/tracing/instances/schedlab");
    fs::create_dir(&instance).unwrap();
    assert!(record(&host, &args, Stop::new()).unwrap().folder == args.output);
    assert!(!instance.exists());
}

#[test]
fn a_recording_whose_place_was_taken_meanwhile_is_kept_under_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let command = format!("mkdir -p {0} && echo theirs >{0}/file", folder.path().join("out").display());
    let (host, args) = (host(&folder.path().join("host")), args(folder.path(), &["sh", "-c", &command]));
    let done = record(&host, &args, Stop::new()).unwrap();
    assert_eq!(done.folder, folder.path().join("out-2"));
    assert!(done.folder.join("trace.dat").is_file());
    assert_eq!(fs::read_to_string(args.output.join("file")).unwrap(), "theirs\n");
    assert!(done.warnings[0].contains("something else appeared as "), "{:?}", done.warnings);
}

#[test]
fn time_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut args) = (host(&folder.path().join("host")), args(folder.path(), &[]));
    args.duration = Some("30ms".to_owned());
    assert!(record(&host, &args, Stop::new()).unwrap().time >= Duration::from_millis(30));
    args.duration = Some("soon".to_owned());
    let error = record(&host, &args, Stop::new()).err().unwrap().to_string();
    assert_eq!(error, "\"soon\" is not a time; write it like 250us, 4ms or 1.5s");
}

/// Records a modified host; returns the error, and checks that nothing is left of the recording.
#[track_caller]
fn refused(change: impl FnOnce(&Path, &mut Record), error: &str) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("host");
    let (host, mut args) = (host(&root), args(folder.path(), &["true"]));
    change(&root, &mut args);
    let before = fs::read_dir(folder.path()).unwrap().count();
    let found = record(&host, &args, Stop::new()).err().expect("it is refused").to_string();
    let found = found.replace(&folder.path().display().to_string(), "");
    assert!(found.contains(error), "{found}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), before, "nothing is half-written");
    assert!(!root.join("sys/kernel/tracing/instances/schedlab").exists() || error.contains("already"));
}

#[test]
fn what_cannot_be_is_refused_with_the_way_out() {
    refused(
        |root, _| put(root, "proc/mounts", "proc /proc proc rw 0 0\n"),
        "tracefs is not mounted, so nothing can be recorded; `mount -t tracefs tracefs /sys/kernel/tracing`",
    );
    refused(
        |root, _| fs::remove_dir_all(root.join("sys/kernel/tracing/events/sched/sched_switch")).unwrap(),
        "/sys/kernel/tracing has no sched/sched_switch: the kernel was built without its tracepoints",
    );
    refused(|root, _| put(root, "proc/self/status", "Uid:\t0\t1000\t0\t0\n"), "recording needs root");
    refused(
        |_, args| put(&args.output, "old", ""),
        "/out exists and is not an empty folder; name another one",
    );
    refused(|_, args| args.output = args.output.join("below/it"), "/below is not a folder, so ");
    refused(
        |_, args| fs::create_dir(args.output.with_extension("partial")).unwrap(),
        "/out.partial is left from a recording that was killed; remove it first",
    );
    refused(
        |root, _| {
            let instance = root.join("sys/kernel/tracing/instances/schedlab");
            fs::create_dir(&instance).unwrap();
            // A recording that runs has its instance locked.
            std::mem::forget(super::tracefs::lock(&instance).unwrap());
        },
        "is there already, as another recording runs; wait until it is over",
    );
    refused(
        |_, args| args.events = vec!["sched:no_such".to_owned()],
        "--events sched:no_such: this kernel has no such tracepoint",
    );
    refused(
        |_, args| args.events = vec!["no_such:*".to_owned()],
        "--events no_such:*: this kernel has no such tracepoint",
    );
    refused(|_, args| args.output = "-".into(), "a recording is a folder and does not go to standard output");
    refused(|_, args| args.command = vec!["no-such-program-here".to_owned()], "no-such-program-here: ");
    refused(
        |root, _| put(root, "sys/kernel/tracing/events/header_page", ""),
        "does not say how large a page is",
    );
}

#[test]
fn features_that_are_not_there_and_those_that_are_refused_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let told = |host: &Host| super::facts::facts(host).1.join("\n");
    let host = host(folder.path());
    assert_eq!(told(&host), "");
    let features = folder.path().join("sys/kernel/debug/sched/features");
    fs::remove_file(&features).unwrap();
    assert!(told(&host).contains("sched has no features; `mount"), "{}", told(&host));
    // Reading a folder fails, even for root.
    fs::create_dir(&features).unwrap();
    assert!(told(&host).contains("features cannot be read"), "{}", told(&host));
}

#[test]
fn a_scheduler_of_sched_ext_is_reported_and_noted() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(folder.path());
    let noted = |host: &Host| {
        let (facts, told) = super::facts::facts(host);
        let note = facts.into_iter().find(|(name, _)| *name == "sched_ext.txt").map(|(_, text)| text);
        (
            note.is_some_and(|note| schedlab::recording::sched_ext(&note, "").is_some()),
            told.join("\n").contains("sched_ext is at work"),
        )
    };
    for (state, is) in [("disabled\n", false), ("enabled\n", true)] {
        put(folder.path(), "sys/kernel/sched_ext/state", state);
        assert_eq!(noted(&host), (is, is), "{state}");
    }
}
