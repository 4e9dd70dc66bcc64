//! Files as users have them: each represents a kind of problem found in public files.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use expect_test::{Expect, expect};

fn input(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs").join(name)
}

fn schedlab(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab")).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The domains of CPU 0 and the messages about the machine.
fn check_topology(name: &str, expected: Expect) {
    let file = input(name);
    let (status, out, err) = schedlab(&["topo", file.to_str().unwrap(), "--kernel", "v6.12"]);
    let folder = format!("{}/", file.parent().unwrap().display());
    assert_eq!(status, Some(0), "{err}");
    expected.assert_eq(&format!("{out}{err}").replace(&folder, ""));
}

#[test]
fn an_l3_of_arm64_that_reaches_over_packages_is_no_domain() {
    check_topology(
        "arm64-l3-over-packages.sysfs.txt",
        expect![[r#"
        arm64-l3-over-packages.sysfs.txt: 8 CPUs, 3 packages, 1 node, 3 LLCs, 8 cores
        node 0: 0-7
          package 0, LLC 0: 0-2
          package 1, LLC 1: 3-6
          package 2, LLC 2: 7
        capacity 280: 0-2
        capacity 855: 3-6
        capacity 1024: 7

        scheduling domains under v6.12
        MC    1 of 3 CPUs, 3 groups each, imbalance_pct 117
              spans  0-2
              flags  SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SHARE_LLC
        MC    1 of 4 CPUs, 4 groups each, imbalance_pct 117
              spans  3-6
              flags  SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SHARE_LLC
        PKG   1 of 8 CPUs, 3 groups each, imbalance_pct 117, imb_numa_nr 2
              spans  0-7
              flags  SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_ASYM_CPUCAPACITY SD_ASYM_CPUCAPACITY_FULL SD_PREFER_SIBLING
        PKG   1 of 8 CPUs, 3 groups each, imbalance_pct 117, imb_numa_nr 8
              spans  0-7
              flags  SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_ASYM_CPUCAPACITY SD_ASYM_CPUCAPACITY_FULL SD_PREFER_SIBLING
    "#]],
    );
}

#[test]
fn books_of_s390_are_domains() {
    check_topology(
        "s390-books.sysfs.txt",
        expect![[r#"
        s390-books.sysfs.txt: 8 CPUs, 4 packages, 1 node, 4 LLCs, 8 cores
        node 0: 0-7
          package 0, LLC 0: 0-1
          package 1, LLC 1: 2-3
          package 2, LLC 2: 4-5
          package 3, LLC 3: 6-7

        scheduling domains under v6.12
        MC    4 of 2 CPUs, 2 groups each, imbalance_pct 117
              spans  0-1 | 2-3 | 4-5 | 6-7
              flags  SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SHARE_LLC SD_PREFER_SIBLING
        BOOK  2 of 4 CPUs, 2 groups each, imbalance_pct 117, imb_numa_nr 2
              spans  0-3 | 4-7
              flags  SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_PREFER_SIBLING
        PKG   1 of 8 CPUs, 2 groups each, imbalance_pct 117, imb_numa_nr 4
              spans  0-7
              flags  SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_PREFER_SIBLING
    "#]],
    );
}

#[test]
fn core_ids_of_a_phone_repeat_between_clusters() {
    check_topology(
        "phone.lscpu-p.txt",
        expect![[r#"
        phone.lscpu-p.txt: 8 CPUs, 1 package, 1 node, 1 LLC, 8 cores
        package 0, node 0, LLC 0: 0-7

        scheduling domains under v6.12
        MC    1 of 8 CPUs, 8 groups each, imbalance_pct 117
              spans  0-7
              flags  SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SHARE_LLC SD_PREFER_SIBLING
    "#]],
    );
}

#[test]
fn nodes_are_found_without_their_index() {
    check_topology(
        "nodes-without-online.sysfs.txt",
        expect![[r#"
        nodes-without-online.sysfs.txt: 4 CPUs, 2 packages, 2 nodes, 2 LLCs, 4 cores
        package 0, node 0, LLC 0: 0-1
        package 1, node 1, LLC 1: 2-3
        distances, reclaim distance 30
        node   0   1
           0  10  20
           1  20  10

        scheduling domains under v6.12
        MC    2 of 2 CPUs, 2 groups each, imbalance_pct 117
              spans  0-1 | 2-3
              flags  SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SHARE_LLC SD_PREFER_SIBLING
        NUMA  1 of 4 CPUs, 2 groups each, imbalance_pct 117, imb_numa_nr 1
              spans  0-3
              flags  SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SERIALIZE SD_OVERLAP SD_NUMA
    "#]],
    );
}

#[test]
fn capacities_that_hwloc_averaged_are_scaled_with_a_note() {
    check_topology(
        "hybrid-capacity.hwloc.xml",
        expect![[r#"
        hybrid-capacity.hwloc.xml: 2 CPUs, 1 package, 1 node, 1 LLC, 2 cores
        package 0, node 0, LLC 0: 0-1
        capacity 737: 0
        capacity 1024: 1

        scheduling domains under v6.12
        MC    1 of 2 CPUs, 2 groups each, imbalance_pct 117
              spans  0-1
              flags  SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_ASYM_CPUCAPACITY SD_ASYM_CPUCAPACITY_FULL SD_SHARE_LLC SD_PREFER_SIBLING
        schedlab: note: hybrid-capacity.hwloc.xml: the largest capacity is 997; all are scaled so that it is 1024
    "#]],
    );
}

#[test]
fn json_does_not_depend_on_how_a_path_was_typed() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "machine = \"m.txt\"\nkernels = [\"v6.1\", \"v6.12\"]\nruns = 2\nlimit = \"1ms\"\n[workload]\nmodel = \"hogs\"\n";
    std::fs::write(folder.path().join("s.toml"), scenario.replace("m.txt", "2x2")).unwrap();
    std::fs::write(
        folder.path().join("m.txt"),
        "# CPU,Core,Socket,Node,,L1d,L2,L3\n0,0,0,0,,0,0,0\n1,1,0,0,,1,1,0\n",
    )
    .unwrap();
    let whole = folder.path().canonicalize().unwrap().display().to_string();
    let printed = ["", "./", &format!("{whole}/")].map(|before| {
        let (file, machine) = (format!("{before}s.toml"), format!("{before}m.txt"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        command.args(["compare", &file, "--machine", &machine, "--format", "json"]).current_dir(&folder);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    });
    assert!(printed[0].contains("\"machine\": \"m.txt\""), "{}", printed[0]);
    assert!(printed.iter().all(|text| text == &printed[0]));
}

#[test]
fn a_die_of_minus_one_is_none() {
    check_topology(
        "die-minus-1.sysfs.txt",
        expect![[r#"
        die-minus-1.sysfs.txt: 2 CPUs, 1 package, 1 node, 1 LLC, 1 core of 2 threads
        package 0, node 0, LLC 0, core 0: 0-1

        scheduling domains under v6.12
        SMT   1 of 2 CPUs, 2 groups each, imbalance_pct 110
              spans  0-1
              flags  SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SHARE_CPUCAPACITY SD_SHARE_LLC SD_PREFER_SIBLING
    "#]],
    );
}

#[test]
fn a_recording_of_preempt_rt_is_read() {
    let file = input("rt_excerpt.txt");
    let (status, out, err) = schedlab(&["sched", "timehist", file.to_str().unwrap()]);
    assert_eq!(status, Some(0), "{err}");
    expect![[r#"
                   time    cpu  task name                       wait time  sch delay   run time
                                [tid/pid]                          (msec)     (msec)     (msec)
        --------------- ------  ------------------------------  ---------  ---------  ---------
              46.299728 [0007]  <idle>                              0.000      0.000      0.000 
              46.299742 [0007]  rcuc/7[53]                          0.000      0.023      0.014 
              46.299760 [0007]  ksoftirqd/7[54]                     0.000      0.000      0.018 
              46.299773 [0007]  rcu_preempt[11]                     0.000      0.010      0.013 
              46.299797 [0007]  ksoftirqd/7[54]                     0.013      0.000      0.024 
    "#]]
    .assert_eq(&out);
}

#[test]
fn an_excerpt_without_tasks_is_refused_by_what_it_lacks() {
    let file = input("android_noprefix.txt");
    let (status, _, err) = schedlab(&["sched", "latency", file.to_str().unwrap()]);
    assert_eq!(status, Some(2));
    assert!(err.contains("the lines lack the columns of tasks"), "{err}");
}

#[test]
fn scenarios_and_machines_come_through_pipes() {
    let scenario = "machine = \"-\"\nkernels = [\"v6.12\"]\nruns = 1\n[workload]\nmodel = \"hogs\"\n";
    for (args, text) in [
        (&["run", "-", "--machine", "2x2"][..], scenario),
        (&["run", "/dev/stdin", "--machine", "2x2"][..], scenario),
        (&["topo", "-"][..], "[topology]\nregular = \"2x2\"\n"),
        (&["topo", "/dev/stdin"][..], "\u{feff}# CPU,Core\n0,0\n1,1\n"),
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_schedlab"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let text = text.replace("machine = \"-\"", "machine = \"1x2\"");
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[cfg(unix)]
#[test]
fn an_endless_device_is_refused() {
    for (args, says) in [
        (&["audit", "/dev/zero", "--kernel", "v6.1", "--machine", "2x2"][..], "/dev/zero"),
        (&["sched", "latency", "/dev/urandom"], "/dev/urandom"),
        (&["run", "/dev/zero"], "more than 256 MiB"),
        (&["topo", "/dev/zero"], "more than 256 MiB"),
    ] {
        let (status, _, err) = schedlab(args);
        assert!(status == Some(2) && err.contains(says), "{args:?}: {err}");
    }
}

#[test]
fn an_endless_run_of_rt_app_lasts_until_the_end_and_unknown_keys_are_noted() {
    let file = input("rtapp-endless.json");
    let args =
        ["trace", file.to_str().unwrap(), "--machine", "4", "--kernel", "v6.12", "--events", "sched_switch"];
    let (status, out, err) = schedlab(&args);
    assert_eq!(status, Some(0), "{err}");
    assert!(
        err.contains(
            "\"logsize\" of \"global\" is not known, and ignored as rt-app does; did you mean \"log_size\"?"
        ),
        "{err}"
    );
    // Only the idle-policy thread shares a CPU with the endless one, which never sleeps.
    assert!(
        out.contains("next_comm=hog")
            && !out.contains("prev_comm=hog prev_pid=1001 prev_prio=120 prev_state=S")
    );
}

/// It ran for 120 ms on a CPU of capacity 462, which is less work than 120 ms of the largest CPU.
#[test]
fn a_task_of_a_small_cpu_takes_as_long_there_in_a_replay() {
    let (file, machine) = (input("replay_little.txt"), input("hikey960.sysfs.txt"));
    let (file, machine) = (file.to_str().unwrap(), machine.to_str().unwrap());
    let trace = Path::new(env!("CARGO_TARGET_TMPDIR")).join("little.txt");
    let trace = trace.to_str().unwrap();
    let place = ["--recorded-on", machine, "--as-recorded", "v6.12", "--affinity", "little=0"];
    let (status, _, err) =
        schedlab(&[&["replay", file, "--runs", "1", "--trace", trace][..], &place].concat());
    assert_eq!(status, Some(0), "{err}");
    let (_, latency, err) = schedlab(&["sched", "latency", trace]);
    let row =
        latency.lines().find(|line| line.contains("little")).unwrap_or_else(|| panic!("{latency}{err}"));
    let ran: f64 = row.split('|').nth(1).unwrap().trim().trim_end_matches(" ms").parse().unwrap();
    assert!((119.0..124.0).contains(&ran), "{row}");
}

/// Events of a type that was not recorded still happened.
#[test]
fn moves_and_wake_ups_that_were_not_recorded_are_no_disagreements() {
    let audit = |name: &str| {
        let file = input(name);
        schedlab(&["audit", file.to_str().unwrap(), "--machine", "1x1x4", "--kernel", "v6.12"])
    };
    let (status, out, err) = audit("switch_only_stopper.txt");
    assert_eq!(status, Some(0), "{err}");
    assert!(!out.contains("differs,") && !out.contains("switch is missing"), "{out}");
    assert!(out.contains("without UNSEEN_MOVE"), "{out}");
    assert_eq!(
        err.matches("there is no sched_waking").count(),
        1,
        "other kernels' audits repeat no warning: {err}"
    );
    let (status, out, err) = audit("migrate_without_waking.txt");
    assert_eq!(status, Some(0), "{err}");
    assert!(!out.contains("\nbalance "), "{out}");
}

#[test]
fn a_machine_with_too_few_cpus_for_a_recording_is_refused() {
    let file = input("switch_only_stopper.txt");
    let (status, _, err) = schedlab(&["detect", file.to_str().unwrap(), "--machine", "1x2"]);
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("line 1: CPU 2 is not in machine 1x2 (0-1); name the machine"), "{err}");
}

#[test]
fn a_gap_in_the_clock_is_cut_before_a_replay_simulates_it() {
    let mut text = std::fs::read_to_string(input("replay_little.txt")).unwrap();
    text.push_str(
        "          <idle>-0       [000] d..2     9999.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 \
         prev_state=R ==> next_comm=little next_pid=500 next_prio=120\n",
    );
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clock-gap.txt");
    std::fs::write(&file, text).unwrap();
    let args = ["--recorded-on", "8", "--as-recorded", "v6.12", "--programs"];
    let (status, out, err) = schedlab(&[&["replay", file.to_str().unwrap()][..], &args].concat());
    assert_eq!(status, Some(0), "{err}");
    assert!(err.contains(": 1 gap of more than 20s in its clock, the longest 99"), "{err}");
    assert!(out.contains("little"), "{out}");
}
