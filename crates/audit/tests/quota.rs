//! Drawn traces of tasks whose group has a quota, which no event shows.

use std::fmt::Write;

use expect_test::expect;
use schedlab_audit::{Answer, Audit, Decision, Options};
use schedlab_recording::{GroupFiles, Groups};
use schedlab_sched::Kernel;
use schedlab_topology::Topology;
use schedlab_trace::Sink;
use schedlab_trace::read::{Record, ftrace};

/// `a` and `c` are in a group, `b` is not. `a` is switched out for `b` without a request, then `c` waits while the
/// CPU is idle, and both run again without a wake-up.
const TRACE: &str = "\
   <idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
        a-10 [000] d.h3. 1.000100: sched_waking: comm=b pid=11 prio=120 target_cpu=000
        a-10 [000] d.h4. 1.000101: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000
        a-10 [000] d.h3. 1.000200: sched_waking: comm=c pid=12 prio=120 target_cpu=000
        a-10 [000] d.h4. 1.000201: sched_wakeup: comm=c pid=12 prio=120 target_cpu=000
        a-10 [000] d..2. 1.000900: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120
        b-11 [000] d..2. 1.001500: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
   <idle>-0 [000] dNh2. 1.050000: sched_waking: comm=b pid=11 prio=120 target_cpu=000
   <idle>-0 [000] dNh3. 1.050001: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000
   <idle>-0 [000] d..2. 1.050100: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=c next_pid=12 next_prio=120
        c-12 [000] d..2. 1.050200: sched_switch: prev_comm=c prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=a next_pid=10 next_prio=120
        a-10 [000] d..2. 1.050300: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=b next_pid=11 next_prio=120
";

/// Picks under a kernel, with a limit for the group.
fn picks(kernel: &str, max: &str) -> String {
    let members = "hierarchy 0\n# tid pid cgroup autogroup nice comm\n\
                   10 10 /g - 0 a\n11 11 / - 0 b\n12 12 /g - 0 c\n";
    let cgroups = format!("/g/cpu.weight 100\n/g/cpu.max {max}\n");
    let files = GroupFiles {
        before: members,
        after: members,
        cgroups: &cgroups,
        cgroups_after: &cgroups,
        ..GroupFiles::default()
    };
    let (groups, hidden) = Groups::read(&files).unwrap();
    assert_eq!(hidden, None);
    let options = Options { keep_verdicts: true, groups, ..Options::default() };
    let topology = Topology::regular("1x1x2").unwrap();
    let mut audit = Audit::new(&topology, &Kernel::parse(kernel).unwrap(), options);
    for record in ftrace::Reader::new(TRACE.as_bytes()) {
        if let Record::Event(event) = record.unwrap() {
            audit.event(&event);
        }
    }
    let mut told = format!("{kernel}, {max}\n");
    for verdict in audit.finish().0.verdicts {
        let hidden = verdict.hidden.map_or(String::new(), |hidden| format!(" by {hidden:?}"));
        let hidden = if verdict.answer == Answer::Agrees { String::new() } else { hidden };
        if matches!(verdict.decision, Decision::Pick | Decision::Preempt) {
            writeln!(told, "  {}: {}, {}{hidden}", verdict.comm, verdict.kernel, verdict.answer.name())
                .unwrap();
        }
    }
    told
}

#[test]
fn a_task_that_is_out_of_quota_is_passed_over_until_it_runs_again() {
    let cases =
        [("v6.12", "max 100000"), ("v6.1", "20000 50000"), ("v6.12", "20000 50000"), ("v7.2", "20000 50000")];
    let told: String = cases.into_iter().map(|(kernel, max)| picks(kernel, max)).collect();
    expect![[r#"
        v6.12, max 100000
          swapper/0: task 10, undecided by Unmet
          a: let run, undecided by VirtualTime
          a: let run, undecided by VirtualTime
          a: task 11, agrees_in_set by VirtualTime
          a: preempt, differs
          b: idle, differs
          swapper/0: task 12, undecided by Unmet
          c: task 10, undecided by Unmet
          a: task 11, agrees
        v6.1, 20000 50000
          swapper/0: task 10, undecided by Unmet
          a: let run, undecided by Quota
          a: let run, agrees
          a: task 11, agrees
          a: preempt, undecided by Quota
          b: idle, agrees
          swapper/0: task 12, undecided by Quota
          c: task 10, agrees_in_set by VirtualTime
          a: task 11, agrees
        v6.12, 20000 50000
          swapper/0: task 10, undecided by Unmet
          a: let run, undecided by VirtualTime
          a: let run, undecided by VirtualTime
          a: task 11, agrees
          a: preempt, undecided by Quota
          b: idle, agrees
          swapper/0: task 12, undecided by Quota
          c: task 10, agrees_in_set by VirtualTime
          a: task 11, agrees
        v7.2, 20000 50000
          swapper/0: task 10, undecided by Unmet
          a: let run, undecided by VirtualTime
          a: let run, undecided by VirtualTime
          a: task 11, agrees_in_set by VirtualTime
          a: preempt, undecided by Quota
          b: idle, agrees_in_set by Quota
          swapper/0: task 12, agrees_in_set by VirtualTime
          c: task 10, agrees_in_set by VirtualTime
          a: task 11, agrees
    "#]]
    .assert_eq(&told);
}
