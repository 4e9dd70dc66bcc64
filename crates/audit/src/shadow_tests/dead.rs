//! What a recording of many births and deaths keeps.

use schedlab_sched::Kernel;
use schedlab_topology::Topology;
use schedlab_trace::Sink;
use schedlab_trace::read::{Record, ftrace};

use crate::judge::Audit;
use crate::options::Options;

/// A shell forks a task ten times a second; the task runs on another CPU and exits.
fn births(count: u32) -> String {
    let birth = |number: u32| {
        let (pid, at) = (100 + number, format!("{}.{}", 1 + number / 10, number % 10));
        let line = |cpu: u32, us: u32, who: &str, what: &str| {
            format!(" {who} [00{cpu}] d..2. {at}{us:05}: {what}\n")
        };
        let idle = "swapper/1 prev_pid=0 prev_prio=120 prev_state=R";
        let child = format!("c prev_pid={pid} prev_prio=120 prev_state=Z");
        [
            line(
                0,
                10,
                "sh-10",
                &format!("sched_process_fork: comm=sh pid=10 child_comm=sh child_pid={pid}"),
            ),
            line(0, 20, "sh-10", &format!("sched_wakeup_new: comm=c pid={pid} prio=120 target_cpu=001")),
            line(
                1,
                30,
                "<idle>-0",
                &format!("sched_switch: prev_comm={idle} ==> next_comm=c next_pid={pid} next_prio=120"),
            ),
            line(1, 40, &format!("c-{pid}"), &format!("sched_process_exit: comm=c pid={pid} prio=120")),
            line(
                1,
                50,
                &format!("c-{pid}"),
                &format!("sched_switch: prev_comm={child} ==> next_comm=swapper/1 next_pid=0 next_prio=120"),
            ),
        ]
        .concat()
    };
    (0..count).map(birth).collect()
}

#[test]
fn a_recording_of_many_births_keeps_few_tasks_and_judges_them_all() {
    let topology = Topology::regular("1x1x2").unwrap();
    let mut audit = Audit::new(&topology, &Kernel::parse("v6.12").unwrap(), Options::default());
    for record in ftrace::Reader::new(births(200).as_bytes()) {
        let Record::Event(event) = record.unwrap() else { continue };
        audit.event(&event);
    }
    let kept = audit.shadow.sched.tasks.len();
    assert!((10..=14).contains(&kept), "{kept} tasks kept: ten a second, and the shell");
    let forks = audit.finish().0.fork.counts;
    assert_eq!(forks.agrees + forks.agrees_in_set + forks.differs + forks.undecided, 200);
}
