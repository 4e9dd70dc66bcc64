//! Ids index their tables, and numbers are within the kernel's limits.

use core::ops::RangeInclusive;

use super::{Fault, Finding, Site};
use crate::{
    AttrId, Completion, Dist, Expected, Measure, OWN_TIMERS_MAX, Op, Pc, Policy, Process, QueueKind,
    SchedAttr, SpecId, TaskAct, Timer, Trigger, Workload,
};

pub(super) fn check(w: &Workload) -> Result<(), Finding> {
    if w.roots().next().is_none() {
        return Err(Finding { fault: Fault::NoRoot, at: Site::Workload });
    }
    measures(w)?;
    for (index, attr) in w.attrs.iter().enumerate() {
        attr_is_valid(attr).map_err(|fault| Finding { fault, at: user_of_attr(w, index) })?;
    }
    for group in &w.groups {
        let check = || {
            range("shares", group.shares as i64, 2..=262_144, "2 to 262144")?;
            if let Some(quota) = group.quota {
                let period_us = (quota.period.0 / 1_000) as i64;
                range("the quota's period in microseconds", period_us, 1_000..=1_000_000, "1000 to 1000000")?;
                range(
                    "the quota in nanoseconds",
                    quota.quota.0 as i64,
                    1_000_000..=i64::MAX,
                    "1 ms or more",
                )?;
            }
            for bound in [group.util_min, group.util_max].into_iter().flatten() {
                range("a bound of utilisation", i64::from(bound), 0..=1024, "0 to 1024")?;
            }
            within("group", group.parent.map(|p| p.0), w.groups.len())?;
            within("CPU list", group.cpus.map(|c| c.0), w.cpu_lists.len())
        };
        check().map_err(|fault| part(format!("group \"{}\"", group.path), fault))?;
    }
    for (index, dist) in w.dists.iter().enumerate() {
        if let Dist::Uniform { low, high } = dist {
            let wide = high.0 as i64 - low.0 as i64;
            range("the width of a uniform distribution", wide, 0..=i64::MAX, "0 or more")
                .map_err(|fault| part(format!("distribution {index}"), fault))?;
        }
    }
    objects(w)?;
    for (index, task) in w.tasks.iter().enumerate() {
        let check = || {
            within("program", Some(task.program.0), w.programs.len())?;
            within("scheduling attributes", task.attr.map(|a| a.0), w.attrs.len())?;
            within("CPU list", task.cpus.map(|c| c.0), w.cpu_lists.len())?;
            within("group", task.group.map(|g| g.0), w.groups.len())
        };
        check().map_err(|fault| Finding { fault, at: Site::Task(SpecId(index as u32)) })?;
        debug_assert!(!task.kthread || task.process == Process::Own, "a kernel thread has no process");
    }
    for (pc, &op) in w.code.iter().enumerate() {
        ids_of(w, op).map_err(|fault| Finding::at_op(pc, fault))?;
    }
    Ok(())
}

/// Measures of one name are one figure, and what they read is marked somewhere.
fn measures(w: &Workload) -> Result<(), Finding> {
    let mut marked = vec![false; w.labels.len()];
    for op in &w.code {
        if let Op::Mark { label, .. } | Op::MarkLate { label, .. } = op
            && let Some(marked) = marked.get_mut(label.index())
        {
            *marked = true;
        }
    }
    // Text in braces becomes a number when it is written, so the text here does not show the label.
    let any = marked.iter().zip(&w.labels).any(|(marked, label)| *marked && label.contains('{'));
    for (index, measure) in w.measures.iter().enumerate() {
        let fail = |fault| Err(part(format!("measure \"{}\"", measure.name), fault));
        let is_another = |before: &&Measure| {
            before.name == measure.name
                && (before.unit, before.lower_is_better) != (measure.unit, measure.lower_is_better)
        };
        if w.measures[..index].iter().find(is_another).is_some() {
            return fail(Fault::SameMeasure);
        }
        for label in measure.rule.labels() {
            within("label", Some(label.0), w.labels.len()).or_else(fail)?;
            if !marked[label.index()] && !any {
                return fail(Fault::NeverMarked { label: w.labels[label.index()].clone() });
            }
        }
    }
    Ok(())
}

fn objects(w: &Workload) -> Result<(), Finding> {
    let o = &w.objects;
    for barrier in &o.barriers {
        range("the number of parties", i64::from(barrier.parties), 1..=i64::MAX, "1 or more")
            .map_err(|fault| part(format!("barrier \"{}\"", barrier.name), fault))?;
    }
    for channel in &o.channels {
        range("the capacity", i64::from(channel.capacity), 1..=i64::MAX, "1 or more")
            .map_err(|fault| part(format!("channel \"{}\"", channel.name), fault))?;
    }
    for device in &o.devices {
        let check = || {
            within("distribution", Some(device.service.0), w.dists.len())?;
            range("the queue depth", i64::from(device.depth), 1..=i64::MAX, "1 or more")?;
            match device.completion {
                Completion::Worker { queue, .. } => within("workqueue", Some(queue.0), o.queues.len()),
                Completion::IrqSubmitter | Completion::IrqAt(_) => Ok(()),
            }
        };
        check().map_err(|fault| part(format!("device \"{}\"", device.name), fault))?;
    }
    for queue in &o.queues {
        // For every kind an engine makes the workers itself.
        match queue.kind {
            QueueKind::PerCpu | QueueKind::PerCpuHighPri | QueueKind::Unbound => {}
        }
    }
    for access in &o.accesses {
        within("region", Some(access.region.0), o.regions.len())
            .map_err(|fault| part("a memory access".to_string(), fault))?;
    }
    for source in &o.sources {
        let check = || {
            let (Trigger::Every(dist) | Trigger::Raised(dist)) = source.trigger;
            within("distribution", Some(dist.0), w.dists.len())?;
            if let Trigger::Every(dist) = source.trigger {
                // Such interrupts would leave no time between them.
                let mean = w.dists[dist.index()].mean();
                range("the mean of the interval in ns", mean.0 as i64, 1..=i64::MAX, "1 or more")?;
            }
            within("semaphore", source.posts.map(|s| s.0), o.sems.len())
        };
        check().map_err(|fault| part(format!("interrupt source \"{}\"", source.name), fault))?;
    }
    Ok(())
}

/// The first task or op with these attributes.
fn user_of_attr(w: &Workload, index: usize) -> Site {
    let is = |attr: AttrId| attr.index() == index;
    let task = w.tasks.iter().position(|task| task.attr.is_some_and(is));
    let op = w.code.iter().position(|op| matches!(*op, Op::SetSched { attr } if is(attr)));
    match (task, op) {
        (Some(task), _) => Site::Task(SpecId(task as u32)),
        (None, Some(op)) => Site::Op(Pc(op as u32)),
        (None, None) => Site::Part(format!("scheduling attributes {index}")),
    }
}

pub(crate) fn attr_is_valid(attr: &SchedAttr) -> Result<(), Fault> {
    match attr.policy {
        Policy::Normal { nice } | Policy::Batch { nice } | Policy::Idle { nice } => {
            range("nice", i64::from(nice), -20..=19, "-20 to 19")?;
        }
        Policy::Fifo { priority } | Policy::Rr { priority } => {
            range("the real-time priority", i64::from(priority), 1..=99, "1 to 99")?;
        }
        Policy::Deadline(d) => {
            range("the deadline runtime in ns", d.runtime.0 as i64, 1024..=i64::MAX, "1024 or more")?;
            let slack = d.deadline.0 as i64 - d.runtime.0 as i64;
            range("deadline minus runtime", slack, 0..=i64::MAX, "0 or more")?;
            let gap = d.period.0 as i64 - d.deadline.0 as i64;
            range("period minus deadline", gap, 0..=i64::MAX, "0 or more")?;
        }
    }
    let (min, max) = (attr.util_min.unwrap_or(0), attr.util_max.unwrap_or(1024));
    range("util_max", i64::from(max), 0..=1024, "0 to 1024")?;
    range("util_max minus util_min", i64::from(max) - i64::from(min), 0..=1024, "0 or more")
}

/// Whether each id of an op is in its table.
fn ids_of(w: &Workload, op: Op) -> Result<(), Fault> {
    let o = &w.objects;
    let has = |what, id, len| within(what, Some(id), len);
    match op {
        Op::RunDraw { dist } | Op::SleepDraw { dist } => has("distribution", dist.0, w.dists.len()),
        Op::Touch { region, .. } | Op::Share { region, .. } => has("region", region.0, o.regions.len()),
        Op::Access { access } => has("memory access", access.0, o.accesses.len()),
        Op::TimerWait { timer: Timer::Shared(timer), .. } => has("timer", timer.0, o.timers.len()),
        Op::TimerWait { timer: Timer::Own(timer), .. } => has("own timer", timer.into(), OWN_TIMERS_MAX),
        Op::Lock { mutex } | Op::Unlock { mutex } => has("mutex", mutex.0, o.mutexes.len()),
        Op::CondWait { cond, mutex } => {
            has("condition", cond.0, o.conds.len())?;
            has("mutex", mutex.0, o.mutexes.len())
        }
        Op::Signal { cond } | Op::Broadcast { cond } => has("condition", cond.0, o.conds.len()),
        Op::SemPost { sem } | Op::SemWait { sem } => has("semaphore", sem.0, o.sems.len()),
        Op::Barrier { barrier } => has("barrier", barrier.0, o.barriers.len()),
        Op::Write { channel, .. } | Op::Read { channel, .. } => has("channel", channel.0, o.channels.len()),
        Op::FutexWait { word, expected: Expected::Value(_) | Expected::Remembered, .. }
        | Op::FutexWake { word, .. }
        | Op::JumpIf { word, .. }
        | Op::WordSet { word, .. }
        | Op::WordAdd { word, .. }
        | Op::WordLoad { word } => has("word", word.0, o.words.len()),
        Op::BlockIo { device, .. } => has("device", device.0, o.devices.len()),
        Op::QueueWork { queue, work } => {
            has("workqueue", queue.0, o.queues.len())?;
            has("program", work.0, w.programs.len())
        }
        Op::Raise { source } => has("interrupt source", source.0, o.sources.len()),
        Op::Fork { task } | Op::Join { task } => has("task", task.0, w.tasks.len()),
        Op::Exec { comm } | Op::SetComm { comm } => has("comm", comm.0, w.comms.len()),
        Op::SetCpus { cpus } => within("CPU list", cpus.map(|c| c.0), w.cpu_lists.len()),
        Op::SetSched { attr } => has("scheduling attributes", attr.0, w.attrs.len()),
        Op::SetGroup { group } => within("group", group.map(|g| g.0), w.groups.len()),
        Op::OfTask { task, act } => {
            has("task", task.0, w.tasks.len())?;
            match act {
                TaskAct::Cpus(cpus) => within("CPU list", cpus.map(|c| c.0), w.cpu_lists.len()),
                TaskAct::Sched(attr) => has("scheduling attributes", attr.0, w.attrs.len()),
                TaskAct::Group(group) => within("group", group.map(|g| g.0), w.groups.len()),
                TaskAct::Freeze | TaskAct::Thaw => Ok(()),
            }
        }
        Op::OfGroup { group, .. } => has("group", group.0, w.groups.len()),
        Op::Switch { part } => has("part of a kernel string", part.0, w.parts.len()),
        Op::Mark { label, .. } => has("label", label.0, w.labels.len()),
        Op::MarkLate { label, timer } => {
            has("label", label.0, w.labels.len())?;
            has("own timer", timer.into(), OWN_TIMERS_MAX)
        }
        Op::Run { .. }
        | Op::RunKernel { .. }
        | Op::RunWall { .. }
        | Op::Sleep { .. }
        | Op::Zero
        | Op::Origin { .. }
        | Op::ComeToWaker
        | Op::Heard { .. }
        | Op::InterruptOn { .. }
        | Op::Hotplug { .. }
        | Op::Exit
        | Op::ExitGroup
        | Op::WaitChildren
        | Op::Yield
        | Op::OwnComm
        | Op::Loop { .. }
        | Op::EndLoop { .. }
        | Op::Jump { .. }
        | Op::JumpOdds { .. } => Ok(()),
    }
}

fn within(what: &'static str, id: Option<u32>, len: usize) -> Result<(), Fault> {
    match id {
        Some(id) if id as usize >= len => Err(Fault::NoSuch { what, id }),
        _ => Ok(()),
    }
}

fn range(
    what: &'static str,
    value: i64,
    range: RangeInclusive<i64>,
    allowed: &'static str,
) -> Result<(), Fault> {
    if range.contains(&value) { Ok(()) } else { Err(Fault::Range { what, value, allowed }) }
}

fn part(part: String, fault: Fault) -> Finding {
    Finding { fault, at: Site::Part(part) }
}
