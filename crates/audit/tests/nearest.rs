//! Short drawn traces in which a kernel differs from our rules, and the facts that would have led to its
//! choice.

use std::fmt::Write;

use expect_test::expect;
use schedlab_audit::{Answer, Audit, Options};
use schedlab_sched::Kernel;
use schedlab_topology::Topology;
use schedlab_trace::Sink;
use schedlab_trace::read::{Record, ftrace};

/// `a` runs on CPU 0 and `c` on CPU 1, of four in a cache, and `b` has slept on CPU 2 since it ran there.
const RUN: &str = "\
   <idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
   <idle>-0 [001] d..2. 1.000001: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=c next_pid=12 next_prio=120
   <idle>-0 [002] d..2. 1.000002: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120
        b-11 [002] d..2. 1.001000: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/2 next_pid=0 next_prio=120
";

fn audit(kernel: &str, trace: &str, options: Options) -> schedlab_audit::AuditReport {
    let topology = Topology::regular("1x1x4").unwrap();
    let mut audit = Audit::new(&topology, &Kernel::parse(kernel).unwrap(), options);
    for record in ftrace::Reader::new(format!("{RUN}{trace}").as_bytes()) {
        if let Record::Event(event) = record.unwrap() {
            audit.event(&event);
        }
    }
    audit.finish().0
}

fn differs(kernel: &str, trace: &str) -> String {
    let mut told = String::new();
    for verdict in &audit(kernel, trace, Options::default()).stories {
        assert_eq!(verdict.answer, Answer::Differs);
        let nearest =
            verdict.nearest.as_ref().map_or_else(|| "nothing".to_owned(), |nearest| nearest.to_string());
        let ours = &verdict.ours[0];
        writeln!(told, "{}, ours {}: would agree if {nearest}", verdict.kernel, ours.choice).unwrap();
    }
    told
}

/// `b` is woken 8 us after it fell asleep, and sent to CPU 3 although its own CPU is idle.
const SENT_ELSEWHERE: &str = "\
        a-10 [000] d.h2. 1.001008: sched_waking: comm=b pid=11 prio=120 target_cpu=002
        a-10 [000] d.h2. 1.001009: sched_migrate_task: comm=b pid=11 prio=120 orig_cpu=2 dest_cpu=3
   <idle>-0 [003] dNh2. 1.001010: sched_wakeup: comm=b pid=11 prio=120 target_cpu=003
";

#[test]
fn a_wake_up_is_explained_by_the_cpu_whose_state_is_nearest() {
    expect![[r#"
        CPU 3, ours CPU 2: would agree if CPU 2 had been busy longer by 10 us, within its error
    "#]]
    .assert_eq(&differs("v6.1", SENT_ELSEWHERE));
}

#[test]
fn an_answer_is_explained_by_the_time_that_is_off_least() {
    let trace = "\
        a-10 [000] d..2. 1.010000: sched_waking: comm=b pid=11 prio=120 target_cpu=002
        a-10 [000] d..2. 1.010001: sched_migrate_task: comm=b pid=11 prio=120 orig_cpu=2 dest_cpu=0
        a-10 [000] d..3. 1.010002: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000
";
    expect![[r#"
        CPU 0, ours CPU 2: would agree if one more task had been queued on CPU 2
        let run, ours preempt: would agree if the virtual time of task 10 had been earlier by 5111 us, 63 times its error
    "#]].assert_eq(&differs("v6.1", trace));
}

#[test]
fn nearest_facts_are_found_only_for_stories_unless_for_all() {
    let count = |options: Options| {
        let report = audit("v6.1", SENT_ELSEWHERE, Options { keep_verdicts: true, ..options });
        assert!(report.wakeup.counts.differs > 0);
        report.verdicts.iter().filter(|verdict| verdict.nearest.is_some()).count()
    };
    let default = Options::default();
    assert_eq!(count(Options { stories: 0, ..default.clone() }), 0);
    assert!(count(Options { stories: 0, nearest: true, ..default }) > 0);
}
