//! Random events, for properties that every format must keep.

#![allow(dead_code)] // each test binary uses a part

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::strategy::Union;
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::{
    Affinity, Balance, Candidate, Comm, Event, Flags, Group, How, IdleType, Kind, Label, Name, Number, Pick,
    Placement, Preemption, Resched, Softirq, TaskState, Unknown,
};
use schedlab_units::{Pid, Time};

/// A task's name, with everything that makes parsing hard.
pub fn comm() -> impl Strategy<Value = Comm> {
    let hard = ["kworker/0:1-eve", "a pid=3 b", "x=y ==> z", "make -j [1] 2:", "a-1 [002] 3.0:x", "é-ü"];
    prop_oneof![
        4 => "[a-z/:0-9_-]{1,15}",
        1 => "[!-~][ -~]{0,13}[!-~]",
        1 => proptest::sample::select(hard.to_vec()).prop_map(str::to_owned),
    ]
    .prop_filter("names of their own", |name| !["<...>", "<idle>"].contains(&name.as_str()))
    .prop_map(|name| Comm::from(name.as_str()))
}

fn pid() -> impl Strategy<Value = Pid> {
    prop_oneof![1..100i32, 1..4_194_304i32].prop_map(Pid)
}

fn any_pid() -> impl Strategy<Value = Pid> {
    prop_oneof![1 => Just(Pid::IDLE), 4 => pid()]
}

fn cpu() -> impl Strategy<Value = CpuId> {
    prop_oneof![0..16u16, 0..4096u16].prop_map(CpuId)
}

fn prio() -> impl Strategy<Value = i32> {
    -1..140
}

fn name() -> impl Strategy<Value = Name> {
    "[A-Za-z_][A-Za-z0-9_]{0,20}".prop_map(Name::from)
}

fn flags() -> impl Strategy<Value = Flags> {
    // Text cannot distinguish a soft interrupt below a non-maskable one.
    (any::<u8>(), 0..16u8, 0..16u8).prop_map(|(bits, depth, migrate)| {
        let nmi = bits & Flags::NMI != 0;
        Flags::new(if nmi { bits & !Flags::SOFTIRQ } else { bits }, depth, migrate)
    })
}

fn state() -> impl Strategy<Value = TaskState> {
    (0..9u32, any::<bool>()).prop_map(|(bit, preempted)| {
        TaskState::from_bits((1 << bit) & 0xff | if preempted { 0x100 } else { 0 })
    })
}

fn numbers() -> impl Strategy<Value = Vec<Number>> {
    proptest::collection::btree_map("[A-Za-z_][A-Za-z0-9_]{0,20}", any::<i64>(), 0..4)
        .prop_map(|numbers| numbers.into_iter().map(|(name, n)| (Name::from(name), n)).collect())
}

/// CPUs, with a mask as wide as the highest one.
fn mask() -> impl Strategy<Value = CpuMask> {
    vec(cpu(), 0..5).prop_map(|cpus| match cpus.iter().max() {
        Some(highest) => CpuMask::of(highest.index() + 1, cpus.iter().copied()),
        None => CpuMask::default(),
    })
}

/// A text without line breaks.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[!-~]|[!-~][ -~é]{0,40}[!-~]"]
}

fn decision() -> Union<BoxedStrategy<Kind>> {
    let candidate = (cpu(), prop_oneof![Just(Name::from("")), name()])
        .prop_map(|(cpu, refused)| Candidate { cpu, refused });
    let how =
        prop_oneof![Just(How::Wakeup), Just(How::Fork), Just(How::Exec), Just(How::Push), Just(How::Pull)];
    let placement = (pid(), how, cpu(), cpu(), cpu(), name(), numbers(), vec(candidate, 0..6), any::<bool>())
        .prop_map(|(pid, how, prev_cpu, target, cpu, reason, numbers, examined, remote)| {
            Kind::Placement(Box::new(Placement {
                pid,
                how,
                prev_cpu,
                target,
                cpu,
                reason,
                numbers,
                examined,
                remote,
            }))
        });
    let idle = prop_oneof![Just(IdleType::Busy), Just(IdleType::Idle), Just(IdleType::NewlyIdle)];
    let masks = (mask(), mask());
    let balance = (
        (cpu(), option::of(cpu()), name(), idle),
        masks,
        (name(), name(), any::<i64>(), numbers(), vec(pid(), 0..4)),
    )
        .prop_map(|((dst_cpu, src_cpu, domain, idle), (local, busiest), rest)| {
            let (reason, migration, imbalance, numbers, moved) = rest;
            Kind::Balance(Box::new(Balance {
                dst_cpu,
                src_cpu,
                domain,
                idle,
                local,
                busiest,
                reason,
                migration,
                imbalance,
                numbers,
                moved,
            }))
        });
    let resched = prop_oneof![Just(Resched::None), Just(Resched::Lazy), Just(Resched::Full)];
    let preemption = (pid(), any_pid(), name(), name(), resched, numbers()).prop_map(
        |(pid, curr, at, reason, resched, numbers)| {
            Kind::Preemption(Box::new(Preemption { pid, curr, at, reason, resched, numbers }))
        },
    );
    let pick = (any_pid(), name(), numbers())
        .prop_map(|(pid, reason, numbers)| Kind::Pick(Box::new(Pick { pid, reason, numbers })));
    let affinity = (pid(), mask().prop_filter("a task has a CPU", |mask| !mask.is_empty()))
        .prop_map(|(pid, allowed)| Kind::Affinity(Box::new(Affinity { pid, allowed })));
    let limit = (option::of(any::<u64>()), option::of(any::<u64>()), option::of(any::<u64>()));
    let group = (any::<u64>(), any::<u64>(), any::<bool>(), limit).prop_map(
        |(id, shares, idle, (quota_ns, period_ns, burst_ns))| {
            Kind::Group(Box::new(Group { id, shares, idle, quota_ns, period_ns, burst_ns }))
        },
    );
    Union::new([
        placement.boxed(),
        balance.boxed(),
        preemption.boxed(),
        pick.boxed(),
        affinity.boxed(),
        group.boxed(),
    ])
}

/// The scheduler's own tracepoints.
pub fn sched_kind() -> Union<BoxedStrategy<Kind>> {
    let task = || (comm(), pid(), prio());
    let waking = (task(), cpu()).prop_map(|((comm, pid, prio), target_cpu)| Kind::SchedWaking {
        comm,
        pid,
        prio,
        target_cpu,
    });
    let wakeup = (task(), cpu()).prop_map(|((comm, pid, prio), target_cpu)| Kind::SchedWakeup {
        comm,
        pid,
        prio,
        target_cpu,
    });
    let wakeup_new = (task(), cpu()).prop_map(|((comm, pid, prio), target_cpu)| Kind::SchedWakeupNew {
        comm,
        pid,
        prio,
        target_cpu,
    });
    let migrate = (task(), cpu(), cpu()).prop_map(|((comm, pid, prio), orig_cpu, dest_cpu)| {
        Kind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu }
    });
    let fork = (comm(), pid(), comm(), pid()).prop_map(|(comm, pid, child_comm, child_pid)| {
        Kind::SchedProcessFork { comm, pid, child_comm, child_pid }
    });
    let exit = (task(), option::of(any::<bool>()))
        .prop_map(|((comm, pid, prio), group_dead)| Kind::SchedProcessExit { comm, pid, prio, group_dead });
    Union::new([
        switch().boxed(),
        waking.boxed(),
        wakeup.boxed(),
        wakeup_new.boxed(),
        migrate.boxed(),
        fork.boxed(),
        exit.boxed(),
    ])
}

fn switch() -> impl Strategy<Value = Kind> {
    let task = || (comm(), any_pid(), prio());
    (task(), state(), task()).prop_map(|(prev, prev_state, next)| Kind::SchedSwitch {
        prev_comm: prev.0,
        prev_pid: prev.1,
        prev_prio: prev.2,
        prev_state,
        next_comm: next.0,
        next_pid: next.1,
        next_prio: next.2,
    })
}

/// The rest of the kernel's tracepoints.
fn other_kind() -> Union<BoxedStrategy<Kind>> {
    let stat = || (comm(), pid(), any::<u64>());
    let work = || (any::<u64>(), name());
    Union::new([
        ("/[ -~]{0,30}[!-~]", pid(), pid())
            .prop_map(|(filename, pid, old_pid)| Kind::SchedProcessExec {
                filename: filename.into(),
                pid,
                old_pid,
            })
            .boxed(),
        (comm(), pid(), prio())
            .prop_map(|(comm, pid, prio)| Kind::SchedProcessFree { comm, pid, prio })
            .boxed(),
        (comm(), any_pid(), prio())
            .prop_map(|(comm, pid, prio)| Kind::SchedProcessWait { comm, pid, prio })
            .boxed(),
        (stat(), option::of(any::<u64>()))
            .prop_map(|((comm, pid, runtime), vruntime)| Kind::SchedStatRuntime {
                comm,
                pid,
                runtime,
                vruntime,
            })
            .boxed(),
        stat().prop_map(|(comm, pid, delay)| Kind::SchedStatWait { comm, pid, delay }).boxed(),
        stat().prop_map(|(comm, pid, delay)| Kind::SchedStatSleep { comm, pid, delay }).boxed(),
        stat().prop_map(|(comm, pid, delay)| Kind::SchedStatIowait { comm, pid, delay }).boxed(),
        stat().prop_map(|(comm, pid, delay)| Kind::SchedStatBlocked { comm, pid, delay }).boxed(),
        cpu().prop_map(|cpu| Kind::SchedWakeIdleWithoutIpi { cpu }).boxed(),
        (comm(), pid(), prio(), prio())
            .prop_map(|(comm, pid, oldprio, newprio)| Kind::SchedPiSetprio { comm, pid, oldprio, newprio })
            .boxed(),
        (pid(), comm(), any::<u64>(), any::<i16>())
            .prop_map(|(pid, comm, clone_flags, oom_score_adj)| Kind::TaskNewtask {
                pid,
                comm,
                clone_flags,
                oom_score_adj,
            })
            .boxed(),
        (pid(), comm(), comm(), any::<i16>())
            .prop_map(|(pid, oldcomm, newcomm, oom_score_adj)| Kind::TaskRename {
                pid,
                oldcomm,
                newcomm,
                oom_score_adj,
            })
            .boxed(),
        ("[0-9a-f]{8}(,[0-9a-f]{8}){0,2}", "[A-Za-z ]{1,30}")
            .prop_map(|(mask, reason)| Kind::IpiRaise { target_mask: mask.into(), reason: reason.into() })
            .boxed(),
        (cpu(), name(), name())
            .prop_map(|(cpu, callsite, callback)| Kind::IpiSendCpu { cpu, callsite, callback })
            .boxed(),
        "[A-Za-z ]{1,30}".prop_map(|reason| Kind::IpiEntry { reason: reason.into() }).boxed(),
        "[A-Za-z ]{1,30}".prop_map(|reason| Kind::IpiExit { reason: reason.into() }).boxed(),
        (any::<i32>(), name()).prop_map(|(irq, name)| Kind::IrqHandlerEntry { irq, name }).boxed(),
        (any::<i32>(), any::<bool>())
            .prop_map(|(irq, handled)| Kind::IrqHandlerExit { irq, handled })
            .boxed(),
        (0..10u8).prop_map(|vec| Kind::SoftirqRaise { vec: Softirq(vec) }).boxed(),
        (0..10u8).prop_map(|vec| Kind::SoftirqEntry { vec: Softirq(vec) }).boxed(),
        (0..10u8).prop_map(|vec| Kind::SoftirqExit { vec: Softirq(vec) }).boxed(),
        (any::<u32>(), cpu()).prop_map(|(state, cpu)| Kind::CpuIdle { state, cpu }).boxed(),
        (any::<u32>(), cpu()).prop_map(|(state, cpu)| Kind::CpuFrequency { state, cpu }).boxed(),
        (work(), name(), any::<i32>(), any::<i32>())
            .prop_map(|((work, function), workqueue, req_cpu, cpu)| Kind::WorkqueueQueueWork {
                work,
                function: function.into(),
                workqueue: workqueue.into(),
                req_cpu,
                cpu,
            })
            .boxed(),
        work().prop_map(|(work, function)| Kind::WorkqueueActivateWork { work, function }).boxed(),
        work().prop_map(|(work, function)| Kind::WorkqueueExecuteStart { work, function }).boxed(),
        work().prop_map(|(work, function)| Kind::WorkqueueExecuteEnd { work, function }).boxed(),
        // Blanks at the end of a line are lost.
        (any::<i32>(), any::<u64>(), any::<i32>(), "(/[ -~]{0,9}[!-~]){1,3}")
            .prop_map(|(root, id, level, path)| Kind::CgroupMkdir { root, id, level, path: path.into() })
            .boxed(),
        (any::<i32>(), any::<u64>(), any::<i32>(), "(/[ -~]{0,10}){1,3}", pid(), comm())
            .prop_map(|(dst_root, dst_id, dst_level, dst_path, pid, comm)| Kind::CgroupAttachTask {
                dst_root,
                dst_id,
                dst_level,
                dst_path: dst_path.into(),
                pid,
                comm,
            })
            .boxed(),
        (cpu(), any::<i32>(), any::<i32>(), name())
            .prop_map(|(cpu, target, idx, fun)| Kind::CpuhpEnter { cpu, target, idx, fun })
            .boxed(),
        (cpu(), any::<i32>(), any::<i32>(), any::<i32>())
            .prop_map(|(cpu, state, idx, ret)| Kind::CpuhpExit { cpu, state, idx, ret })
            .boxed(),
        ("[a-z_ é]{1,20}", any::<i64>())
            .prop_map(|(label, value)| Kind::Mark { label: Label::new(&label), value })
            .boxed(),
        text().prop_map(|text| Kind::Print(text.into())).boxed(),
        ("[a-z_]{1,20}", text())
            .prop_map(|(name, text)| Kind::Unknown(Unknown::new(&format!("x_{name}"), &text)))
            .boxed(),
    ])
}

/// An event of any kind.
pub fn event() -> impl Strategy<Value = Event> {
    event_of(prop_oneof![sched_kind(), other_kind(), decision()])
}

/// An event of some kinds.
pub fn event_of(kind: impl Strategy<Value = Kind>) -> impl Strategy<Value = Event> {
    let time = prop_oneof![0..10_000_000_000u64, any::<u64>()].prop_map(Time);
    let task = prop_oneof![1 => Just((Pid::IDLE, Comm::from("<idle>"))), 4 => (pid(), comm())];
    (time, cpu(), task, option::of(pid()), flags(), kind).prop_map(
        |(time, cpu, (pid, comm), tgid, flags, kind)| Event { time, cpu, pid, tgid, comm, flags, kind },
    )
}

/// Events in the order of their times.
pub fn trace() -> impl Strategy<Value = Vec<Event>> {
    vec(event(), 0..40).prop_map(sorted)
}

/// Sorts events by time.
pub fn sorted(mut events: Vec<Event>) -> Vec<Event> {
    events.sort_by_key(|event| event.time);
    events
}
