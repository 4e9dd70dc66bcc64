//! How tasks are assigned to their groups.

use crate::judge::Audit;
use crate::options::Options;
use crate::unknown::Shadow;
use schedlab_recording::{GroupFiles, Groups};
use schedlab_sched::Kernel;
use schedlab_sched::LOAD_SHIFT;
use schedlab_topology::Topology;
use schedlab_trace::Sink;
use schedlab_trace::read::{Record, ftrace};
use schedlab_units::Pid;

const CGROUPS: &str = "/a/cpu.weight 300\n";
const BEFORE: &str = "hierarchy 0\n10 10 / 47 0 sh\n";
const AFTER: &str = "hierarchy 0\n10 10 /a/below 47 0 sh\n11 11 / 50 0 daemon\n12 10 /a 47 0 sh\n";
const SYSCTL: &str = "/proc/sys/kernel/sched_autogroup_enabled 1\n";

/// Follows the lines up to each empty one and then prints something about each of tasks 10 to 12.
fn of_each(trace: &str, of: fn(&Shadow, Pid) -> String) -> Vec<String> {
    let files =
        GroupFiles { before: BEFORE, after: AFTER, cgroups: CGROUPS, cgroups_after: CGROUPS, sysctl: SYSCTL };
    let options = Options { groups: Groups::read(&files).unwrap().0, ..Options::default() };
    let topology = Topology::regular("1x1x2").unwrap();
    let mut audit = Audit::new(&topology, &Kernel::parse("v6.12").unwrap(), options);
    let mut told = Vec::new();
    for part in trace.split("\n\n") {
        // Events wait for later ones, so a late event releases the others.
        let end = format!(
            "{part}\n x-9 [001] ..... {}.050000: sched_process_wait: comm=x pid=9 prio=120\n",
            told.len() + 3
        );
        for record in ftrace::Reader::new(end.as_bytes()) {
            let Record::Event(event) = record.unwrap() else { continue };
            audit.event(&event);
        }
        told.push([10, 11, 12].map(|pid| of(&audit.shadow, Pid(pid))).join(" "));
    }
    told
}

fn group(shadow: &Shadow, pid: Pid) -> String {
    let Some(task) = shadow.find(pid) else { return "-".to_owned() };
    let (grouping, tg) = (&shadow.grouping, shadow.sched.task(task).tg);
    let cgroup = grouping.cgroups.iter().find(|(_, made)| **made == tg).map(|(path, _)| path.clone());
    let session =
        || grouping.sessions.iter().find(|(_, made)| **made == tg).map(|(number, _)| number.to_string());
    cgroup.or_else(session).unwrap_or_else(|| "root".to_owned())
}

#[test]
fn tasks_follow_their_parents_until_they_are_moved_or_begin_a_session() {
    let told = of_each(
        "\
  <idle>-0 [000] d..2. 2.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=sh next_pid=10 next_prio=120
  sh-10 [000] ..... 2.000100: task_newtask: pid=11 comm=sh clone_flags=1200000 oom_score_adj=0
  sh-10 [000] ..... 2.000101: sched_process_fork: comm=sh pid=10 child_comm=sh child_pid=11
  sh-10 [000] d..2. 2.000102: sched_wakeup_new: comm=sh pid=11 prio=120 target_cpu=000
  sh-10 [000] ..... 2.000200: task_newtask: pid=12 comm=sh clone_flags=3d0f00 oom_score_adj=0
  sh-10 [000] ..... 2.000201: sched_process_fork: comm=sh pid=10 child_comm=sh child_pid=12
  sh-10 [000] d..2. 2.000202: sched_wakeup_new: comm=sh pid=12 prio=120 target_cpu=000

  sh-10 [000] d..2. 3.100000: sched_switch: prev_comm=sh prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=sh next_pid=11 next_prio=120
  sh-11 [000] ..... 3.100200: sched_process_exec: filename=/bin/daemon pid=11 old_pid=11

  sh-11 [000] d..1. 4.100000: cgroup_attach_task: dst_root=1 dst_id=5 dst_level=1 dst_path=/a pid=11 comm=sh
  sh-11 [000] d..1. 4.100100: cgroup_attach_task: dst_root=0 dst_id=5 dst_level=2 dst_path=/a/below pid=10 comm=sh

  sh-11 [000] d..1. 5.100000: cgroup_attach_task: dst_root=0 dst_id=1 dst_level=0 dst_path=/ pid=12 comm=sh

  sh-11 [000] ..... 6.100000: sched_process_exit: comm=sh pid=11 prio=120
",
        group,
    );
    assert_eq!(told, ["47 47 47", "47 50 47", "/a 50 /a", "/a 50 47", "/a root 47"]);
}

#[test]
fn a_simulated_trace_shows_groups_and_the_groups_of_new_tasks() {
    let trace = |given: &str| {
        format!(
            "\
  <idle>-0 [000] d..1. 2.000000: cgroup_mkdir: root=0 id=7 level=1 path=/t
{given}  <idle>-0 [000] d..2. 2.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=sh next_pid=10 next_prio=120
  sh-10 [000] ..... 2.000100: cgroup_attach_task: dst_root=0 dst_id=7 dst_level=1 dst_path=/t pid=11 comm=sh
  sh-10 [000] ..... 2.000100: sched_process_fork: comm=sh pid=10 child_comm=sh child_pid=11
  sh-10 [000] d..2. 2.000100: sched_wakeup_new: comm=sh pid=11 prio=120 target_cpu=000
  sh-10 [000] ..... 2.000200: sched_process_fork: comm=sh pid=10 child_comm=sh child_pid=12
  sh-10 [000] d..2. 2.000200: sched_wakeup_new: comm=sh pid=12 prio=120 target_cpu=000
"
        )
    };
    let shares = |shadow: &Shadow, pid: Pid| {
        let tg = shadow.find(pid).map(|task| shadow.sched.task(task).tg);
        tg.map_or(0, |tg| shadow.sched.tg(tg).shares >> LOAD_SHIFT).to_string()
    };
    let given = |number: u64| {
        format!("  <idle>-0 [000] d..1. 2.000000: schedlab_group: id={number} shares=300 idle=0\n")
    };
    assert_eq!(of_each(&trace(&given(7)), group), ["47 /t 47"]);
    assert_eq!(of_each(&trace(&given(7)), shares), ["1024 300 1024"]);
    assert_eq!(of_each(&trace(&given(8)), group), ["47 47 47"], "a group that was not made");
}

#[test]
fn a_task_that_executes_no_program_shares_memory_with_its_parent_unless_clones_are_recorded() {
    let process = |shadow: &Shadow, pid: Pid| {
        shadow.find(pid).map_or("-".to_owned(), |task| shadow.sched.task(task).process.to_string())
    };
    let forks = |clones: [&str; 2]| {
        format!(
            "\
  <idle>-0 [000] d..2. 2.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=sh next_pid=10 next_prio=120
{}      sh-10 [000] ..... 2.000101: sched_process_fork: comm=sh pid=10 child_comm=sh child_pid=11
  sh-10 [000] d..2. 2.000102: sched_wakeup_new: comm=sh pid=11 prio=120 target_cpu=000
{}      sh-10 [000] ..... 2.000201: sched_process_fork: comm=sh pid=10 child_comm=sh child_pid=12
  sh-10 [000] d..2. 2.000202: sched_wakeup_new: comm=sh pid=12 prio=120 target_cpu=000

  sh-10 [000] d..2. 3.100000: sched_switch: prev_comm=sh prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=sh next_pid=11 next_prio=120
  sh-11 [000] ..... 3.100200: sched_process_exec: filename=/bin/daemon pid=11 old_pid=11
",
            clones[0], clones[1]
        )
    };
    assert_eq!(of_each(&forks([""; 2]), process), ["10 10 10", "10 11 10"]);
    let child = "      sh-10 [000] ..... 2.000100: task_newtask: pid=11 comm=sh clone_flags=1200000 oom_score_adj=0\n";
    let thread =
        "      sh-10 [000] ..... 2.000200: task_newtask: pid=12 comm=sh clone_flags=3d0f00 oom_score_adj=0\n";
    assert_eq!(of_each(&forks([child, thread]), process), ["10 11 10", "10 11 10"]);
}
