//! What a trace shows about task groups.

use expect_test::expect;
use schedlab_machine::Machine;
use schedlab_sched::Kernel;
use schedlab_sim::Simulation;
use schedlab_trace::{Each, Event, Kind};
use schedlab_units::{Duration, Pid};
use schedlab_workload::{Quota, TaskSpec, WorkloadBuilder};

/// The events of a run.
fn run(kernel: &str, write: impl FnOnce(&mut WorkloadBuilder)) -> Vec<Event> {
    let machine = Machine::preset("2").unwrap();
    let mut w = WorkloadBuilder::new("test");
    write(&mut w);
    let workload = w.finish().unwrap();
    let mut events = Vec::new();
    let mut sink = Each(|event: &Event| events.push(event.clone()));
    Simulation::new(&machine, &Kernel::parse(kernel).unwrap(), &workload).unwrap().run(&mut sink);
    events
}

#[test]
fn groups_are_written_with_their_settings_and_the_tasks_moved_to_each() {
    let ms = Duration::millis;
    let events = run("v6.12", |w| {
        let inner = w.group("/a/b");
        w.group_mut(inner.unwrap()).shares = 2048;
        let quota = w.group("/q").unwrap();
        let burst = ms(5);
        w.group_mut(quota).quota = Some(Quota { quota: ms(20), period: ms(50), burst });
        let low = w.group("/low").unwrap();
        w.group_mut(low).idle = true;
        let child = w.program("child", |p| _ = p.run(ms(1)));
        let [inherits, elsewhere] =
            [None, Some(low)].map(|group| w.task(TaskSpec { group, ..TaskSpec::forked("child", child) }));
        let parent = w.program("parent", |p| {
            p.fork(inherits)
                .fork(elsewhere)
                .set_group(Some(quota))
                .run(ms(1))
                .set_group(None)
                .wait_children();
        });
        w.task(TaskSpec { group: inner, ..TaskSpec::root("parent", parent) });
    });
    let told = events.iter().filter_map(|event| match &event.kind {
        Kind::CgroupMkdir { root, id, level, path } => Some(format!("{root} {id} {level} {path}\n")),
        Kind::Group(given) => {
            let limits = (given.quota_ns, given.period_ns, given.burst_ns);
            Some(format!("  {} shares {} idle {} {limits:?}\n", given.id, given.shares, given.idle))
        }
        Kind::CgroupAttachTask { dst_root, dst_id, dst_level, dst_path, pid, .. } => {
            Some(format!("{} by {}: {dst_root} {dst_id} {dst_level} {dst_path}\n", pid, event.pid))
        }
        Kind::SchedWakeupNew { pid, .. } => Some(format!("{pid} begins\n")),
        _ => None,
    });
    expect![[r#"
        0 2 1 /a
          2 shares 1024 idle false (None, None, None)
        0 3 2 /a/b
          3 shares 2048 idle false (None, None, None)
        0 4 1 /q
          4 shares 1024 idle false (Some(20000000), Some(50000000), Some(5000000))
        0 5 1 /low
          5 shares 1024 idle true (None, None, None)
        1000 by 0: 0 3 2 /a/b
        1000 begins
        1001 begins
        1002 by 1000: 0 5 1 /low
        1002 begins
        1000 by 1000: 0 4 1 /q
        1000 by 1000: 0 1 0 /
    "#]]
    .assert_eq(&told.collect::<String>());
}

#[test]
fn a_task_moved_to_a_group_is_charged_in_the_queue_that_it_leaves() {
    let ms = Duration::millis;
    for kernel in ["v5.18", "v6.1"] {
        let events = run(kernel, |w| {
            let group = w.group("/g");
            let program = w.program("a", |p| _ = p.run(ms(5)).set_group(group).run(ms(1)));
            w.task(TaskSpec::root("a", program));
        });
        let moved = events.iter().position(|event| matches!(event.kind, Kind::CgroupAttachTask { .. }));
        let told = events[..moved.unwrap()].iter().filter_map(|event| match event.kind {
            Kind::SchedStatRuntime { pid: Pid(1000), runtime, vruntime, .. } => Some((runtime, vruntime?)),
            _ => None,
        });
        let told: Vec<(u64, u64)> = told.collect();
        let ran: u64 = told.iter().map(|(runtime, _)| runtime).sum();
        assert!(ran > 5_000_000, "{kernel}: {ran}");
        for two in told.windows(2) {
            assert_eq!(two[1].1.wrapping_sub(two[0].1), two[1].0, "{kernel}: {told:?}");
        }
    }
}
