//! Learned programs and the workloads that are built from them.

use expect_test::{Expect, expect};
use schedlab_units::Pid;

use super::*;
use crate::learned::Sleep;

const US: fn(u64) -> Duration = Duration::micros;

fn task(comm: &str, begin: Begin, steps: Vec<Step>) -> Task {
    let comm = Comm::from(comm);
    Task {
        pid: Pid(7),
        comm,
        prio: 120,
        begin,
        placed: None,
        lag: Duration::ZERO,
        recent_used_cpu: None,
        did: None,
        of_wakers_cpu: false,
        wheel: false,
        is_thread: false,
        ran_elsewhere: false,
        is_left_out: false,
        yields: None,
        group: None,
        allowed: None,
        budget: None,
        ended: true,
        steps,
    }
}

fn check(nr_cpus: usize, affinity: &[(&str, &str)], tasks: Vec<Task>, expected: Expect) {
    check_known(&Known::default(), nr_cpus, affinity, tasks, expected);
}

fn check_known(known: &Known, nr_cpus: usize, affinity: &[(&str, &str)], tasks: Vec<Task>, expected: Expect) {
    let hint = |&(comm, cpus): &(&str, &str)| AffinityHint {
        comm: comm.to_string(),
        allowed: schedlab_topology::CpuMask::parse_list(cpus, 8).unwrap(),
    };
    let affinity = affinity.iter().map(hint).collect();
    let groups = vec!["/moved-to".to_string()];
    let masks = ["2-3", "0-7"].map(|list| CpuMask::parse_list(list, 8).unwrap()).to_vec();
    let learned = Learned { tasks, last: Time(1), groups, masks, ..Learned::default() };
    let workload = learned
        .workload(&Options {
            name: "test".to_string(),
            recorded_cpus: 8,
            nr_cpus,
            heard: nr_cpus == 8,
            interrupts: nr_cpus == 8,
            yields: 2,
            wakers: Wakers::Wait,
            placed: Duration::ZERO,
            past: true,
            affinity,
            known: known.clone(),
        })
        .unwrap();
    let mut text = String::new();
    for (task, program) in workload.tasks.iter().zip(&workload.programs).skip(1) {
        let ops = &workload.code[program.entry.index()..(program.entry.0 + program.len) as usize];
        let ops: Vec<String> = ops[1..].iter().map(|op| format!("{op:?}")).collect();
        let cpus = task.cpus.map(|cpus| format!(" on {}", workload.cpu_lists[cpus.index()]));
        let group = task.group.map(|group| &workload.groups[group.index()]);
        let group = group.map(|group| format!(" in {} ({})", group.path, group.shares));
        text += &format!(
            "{} from {:?}{}{}: {}\n",
            task.name(),
            task.start_cpu.map(|cpu| cpu.0),
            cpus.unwrap_or_default(),
            group.unwrap_or_default(),
            ops.join(", ")
        );
    }
    for attr in &workload.attrs {
        text += &format!("{:?}\n", attr.policy);
    }
    expected.assert_eq(&text);
}

fn sleep(span: u64, since_last: u64) -> Step {
    Step::Sleep(Sleep { span: US(span), since_last: US(since_last), served: false })
}

#[test]
fn only_what_lasted_from_before_the_recording_lasts_through_the_prologue() {
    let asleep = Begin::Asleep(CpuId(1));
    let served = Step::Sleep(Sleep { span: US(5), since_last: US(5), served: true });
    check(
        4,
        &[],
        vec![
            task("from-first", asleep, vec![served, Step::Run(US(1)), served]),
            task("first-waits", asleep, vec![Step::Wait(TaskIndex(2)), served, sleep(9, 30)]),
            task("wakes", Begin::Running(CpuId(0)), vec![Step::Wake(TaskIndex(1)), sleep(9, 30)]),
        ],
        expect![[r#"
            from-first from Some(1): Sleep { span: Duration(833338334) }, Run { work: Duration(1000) }, Sleep { span: Duration(5000) }, Exit
            first-waits from Some(1): Barrier { barrier: BarrierId(0) }, Sleep { span: Duration(5000) }, TimerWait { timer: Own(0), period: Duration(666696667), miss: KeepGrid }, Exit
            wakes from Some(0): Barrier { barrier: BarrierId(0) }, TimerWait { timer: Own(0), period: Duration(30000), miss: KeepGrid }, Exit
            Normal { nice: 0 }
        "#]],
    );
}

#[test]
fn a_task_moved_in_its_first_sleep_sleeps_through_the_prologue_all_the_same() {
    let sleep = Step::Sleep(Sleep { span: US(5), since_last: US(5), served: true });
    check(
        8,
        &[],
        vec![task("a", Begin::Asleep(CpuId(1)), vec![Step::Group(0), sleep])],
        expect![[r#"
            a from Some(1): SetGroup { group: Some(GroupId(0)) }, Sleep { span: Duration(750005000) }, Exit
            Normal { nice: 0 }
        "#]],
    );
}

#[test]
fn masks_are_known_by_name_and_fit_the_machine() {
    let steps = vec![Step::Rename(Comm::from("st-0")), Step::Run(US(1))];
    check(
        4,
        &[("st-*", "0,2,6")],
        vec![
            task("sh", Begin::Running(CpuId(5)), steps),
            task("kworker/7:1", Begin::Asleep(CpuId(7)), vec![]),
        ],
        expect![[r#"
            sh from Some(1): SetComm { comm: CommId(0) }, SetCpus { cpus: Some(CpuListId(0)) }, Run { work: Duration(1000) }, Exit
            kworker/7:1 from Some(3) on 3: Exit
            Normal { nice: 0 }
        "#]],
    );
}

#[test]
fn calls_that_do_not_show_are_made_at_so_many_usual_times() {
    let task = task("spins", Begin::Running(CpuId(1)), vec![Step::Run(US(9)), Step::Yield]);
    check(
        8,
        &[],
        vec![Task { yields: Some(US(2)), ..task }],
        expect![[r#"
            spins from Some(1): Run { work: Duration(4000) }, Yield, Run { work: Duration(5000) }, Yield, Exit
            Normal { nice: 0 }
        "#]],
    );
}

#[test]
fn a_kernel_thread_is_in_no_process_whatever_is_known_of_it() {
    let mut known = Known::default();
    known.tasks("7 7 OTHER 0 0 1 / ksoftirqd/1\n").unwrap();
    let ksoftirqd = task("ksoftirqd/1", Begin::Asleep(CpuId(1)), vec![Step::Run(US(1))]);
    check_known(
        &known,
        8,
        &[],
        vec![ksoftirqd],
        expect![[r#"
            ksoftirqd/1 from Some(1) on 1: RunKernel { work: Duration(1000), section: Section { preempt_off: false, cond_resched_ns: 1000 } }, Exit
            Normal { nice: 0 }
        "#]],
    );
}

#[test]
fn where_a_task_ran_and_what_is_known_of_it_come_before_its_name() {
    let mut known = Known::default();
    known.tasks("7 7 OTHER 0 0 0-7 / watchdog/1\n").unwrap();
    let thread = || task("watchdog/1", Begin::Asleep(CpuId(1)), vec![Step::Run(US(1))]);
    for (known, ran_elsewhere) in [(known, false), (Known::default(), true)] {
        check_known(
            &known,
            8,
            &[],
            vec![Task { ran_elsewhere, ..thread() }],
            expect![[r#"
                watchdog/1 from Some(1): Run { work: Duration(1000) }, Exit
                Normal { nice: 0 }
            "#]],
        );
    }
    check(
        8,
        &[],
        vec![thread()],
        expect![[r#"
            watchdog/1 from Some(1) on 1: RunKernel { work: Duration(1000), section: Section { preempt_off: false, cond_resched_ns: 1000 } }, Exit
            Normal { nice: 0 }
        "#]],
    );
}

#[test]
fn what_was_known_of_a_task_is_kept() {
    let mut known = Known::default();
    known.tasks("7 7 IDLE 3 0 2-3 /batch cc1\n").unwrap();
    known.groups("/batch/cpu.weight 50\n");
    let steps = vec![Step::Exec(Comm::from("cc1")), Step::Prio(123), Step::Run(US(1))];
    check_known(
        &known,
        8,
        &[],
        vec![task("make", Begin::Running(CpuId(2)), steps)],
        expect![[r#"
            make from Some(2) on 2-3 in /batch (512): Exec { comm: CommId(0) }, SetSched { attr: AttrId(0) }, Run { work: Duration(1000) }, Exit
            Idle { nice: 3 }
            Idle { nice: 0 }
        "#]],
    );
}

#[test]
fn a_task_born_in_a_group_of_its_own_begins_there() {
    let child = Task { group: Some(0), ..task("cc1", Begin::Forked(TaskIndex(0)), vec![Step::Run(US(1))]) };
    let parent = task("make", Begin::Running(CpuId(2)), vec![Step::Fork(TaskIndex(1))]);
    check(
        8,
        &[],
        vec![parent, child],
        expect![[r#"
        make from Some(2): Fork { task: SpecId(2) }, Exit
        cc1 from None in /moved-to (1024): Run { work: Duration(1000) }, Exit
        Normal { nice: 0 }
    "#]],
    );
}

#[test]
fn masks_that_the_trace_reported_are_kept_and_changed() {
    let steps = vec![Step::Allowed(1), Step::Run(US(1)), Step::Allowed(0)];
    let bound = Task { allowed: Some(0), ..task("a", Begin::Running(CpuId(2)), steps) };
    check(
        8,
        &[],
        vec![bound.clone()],
        expect![[r#"
        a from Some(2) on 2-3: SetCpus { cpus: None }, Run { work: Duration(1000) }, SetCpus { cpus: Some(CpuListId(0)) }, Exit
        Normal { nice: 0 }
    "#]],
    );
    check(
        3,
        &[],
        vec![bound],
        expect![[r#"
        a from Some(2) on 0,2: SetCpus { cpus: None }, Run { work: Duration(1000) }, SetCpus { cpus: Some(CpuListId(0)) }, Exit
        Normal { nice: 0 }
    "#]],
    );
}

#[test]
fn the_first_sleep_lasts_through_the_prologue_however_late_its_end_is_heard_of() {
    let sleep = Step::Sleep(Sleep { span: US(300), since_last: US(300), served: true });
    check(
        8,
        &[],
        vec![task("a", Begin::Asleep(CpuId(1)), vec![Step::Heard(US(50)), sleep, Step::Run(US(10)), sleep])],
        expect![[r#"
            a from Some(1): Heard { after: Duration(50000) }, Sleep { span: Duration(750300000) }, Run { work: Duration(10000) }, Sleep { span: Duration(300000) }, Exit
            Normal { nice: 0 }
        "#]],
    );
}

#[test]
fn where_interrupts_came_belongs_to_the_recorded_machine() {
    let interrupted = Step::InterruptOn { cpu: CpuId(6), task_on: CpuId(1) };
    let steps = || vec![Step::Run(US(1)), interrupted, sleep(9, 30)];
    let expected = [
        (
            8,
            expect![[r#"
                a from Some(1): Run { work: Duration(1000) }, InterruptOn { cpu: CpuId(6) }, TimerWait { timer: Own(0), period: Duration(30000), miss: KeepGrid }, Exit
                Normal { nice: 0 }
            "#]],
        ),
        (
            4,
            expect![[r#"
            a from Some(1): Run { work: Duration(1000) }, TimerWait { timer: Own(0), period: Duration(30000), miss: KeepGrid }, Exit
            Normal { nice: 0 }
        "#]],
        ),
    ];
    for (nr_cpus, expected) in expected {
        check(nr_cpus, &[], vec![task("a", Begin::Running(CpuId(1)), steps())], expected);
    }
}

#[test]
fn how_late_a_wakeup_is_heard_of_belongs_to_the_recorded_machine() {
    let tasks = || {
        vec![
            task("wakee", Begin::Asleep(CpuId(1)), vec![Step::Heard(US(300)), Step::Wait(TaskIndex(1))]),
            task("waker", Begin::Running(CpuId(0)), vec![Step::Wake(TaskIndex(0))]),
        ]
    };
    check(
        8,
        &[],
        tasks(),
        expect![[r#"
            wakee from Some(1): Heard { after: Duration(300000) }, Barrier { barrier: BarrierId(0) }, Exit
            waker from Some(0): Barrier { barrier: BarrierId(0) }, Exit
            Normal { nice: 0 }
        "#]],
    );
    check(
        4,
        &[],
        tasks(),
        expect![[r#"
            wakee from Some(1): Barrier { barrier: BarrierId(0) }, Exit
            waker from Some(0): Barrier { barrier: BarrierId(0) }, Exit
            Normal { nice: 0 }
        "#]],
    );
}
