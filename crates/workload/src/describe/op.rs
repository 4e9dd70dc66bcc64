//! One op in words.

use core::fmt::{self, Write as _};

use schedlab_units::Duration;

use crate::{
    Deadline, Dist, Expected, FOREVER, GroupAct, Miss, Op, Pattern, Policy, SchedAttr, Section, TaskAct,
    Test, Timer, Workload,
};

/// Writes an op; places in the code are written as `@` and their number.
pub(super) fn op_text(w: &Workload, op: Op, out: &mut String) -> fmt::Result {
    let o = &w.objects;
    let dist = |dist: crate::DistId| dist_text(&w.dists[dist.index()]);
    match op {
        Op::Run { work } => write!(out, "run {work}"),
        Op::RunKernel { work, section: Section { preempt_off, cond_resched_ns } } => {
            write!(out, "run-kernel {work}")?;
            if preempt_off {
                write!(out, " preempt-off")?;
            }
            match cond_resched_ns {
                0 => Ok(()),
                ns => write!(out, " cond-resched={}", Duration(ns.into())),
            }
        }
        Op::RunWall { wall, block } => write!(out, "run-wall {wall} block={block}"),
        Op::RunDraw { dist: d } => write!(out, "run {}", dist(d)),
        Op::Touch { region, bytes } => write!(out, "touch {} {bytes}", name(&o.regions[region.index()].name)),
        Op::Share { region, bytes, write: w } => {
            let how = if w { "write-shared" } else { "read-shared" };
            write!(out, "{how} {} {bytes}", name(&o.regions[region.index()].name))
        }
        Op::Access { access } => {
            let a = o.accesses[access.index()];
            let region = name(&o.regions[a.region.index()].name);
            let pattern = pattern_text(a.pattern);
            write!(
                out,
                "access {region} {pattern} read={} write={} stride={}",
                a.read_bytes, a.write_bytes, a.stride
            )?;
            if a.streaming { write!(out, " streaming") } else { Ok(()) }
        }
        Op::Sleep { span } => write!(out, "sleep {span}"),
        Op::SleepDraw { dist: d } => write!(out, "sleep {}", dist(d)),
        Op::Zero => write!(out, "zero"),
        Op::Origin { delay } => write!(out, "origin {delay}"),
        Op::ComeToWaker => write!(out, "come-to-waker"),
        Op::Heard { after } => write!(out, "heard {after}"),
        Op::InterruptOn { cpu } => write!(out, "interrupt-on {cpu}"),
        Op::Hotplug { cpu, to } => write!(out, "hotplug {cpu} {}", to.name()),
        Op::TimerWait { timer, period, miss } => {
            match timer {
                Timer::Shared(timer) => write!(out, "timer {} {period}", name(&o.timers[timer.index()]))?,
                Timer::Own(slot) => write!(out, "own-timer {slot} {period}")?,
            }
            match miss {
                Miss::Rebase => Ok(()),
                Miss::KeepGrid => write!(out, " keep-grid"),
            }
        }
        Op::Lock { mutex } => write!(out, "lock {}", name(&o.mutexes[mutex.index()].name)),
        Op::Unlock { mutex } => write!(out, "unlock {}", name(&o.mutexes[mutex.index()].name)),
        Op::CondWait { cond, mutex } => {
            write!(out, "wait {} {}", name(&o.conds[cond.index()]), name(&o.mutexes[mutex.index()].name))
        }
        Op::Signal { cond } => write!(out, "signal {}", name(&o.conds[cond.index()])),
        Op::Broadcast { cond } => write!(out, "broadcast {}", name(&o.conds[cond.index()])),
        Op::SemPost { sem } => write!(out, "post {}", name(&o.sems[sem.index()].name)),
        Op::SemWait { sem } => write!(out, "take {}", name(&o.sems[sem.index()].name)),
        Op::Barrier { barrier } => write!(out, "barrier {}", name(&o.barriers[barrier.index()].name)),
        Op::Write { channel, bytes } => {
            write!(out, "write {} {bytes}", name(&o.channels[channel.index()].name))
        }
        Op::Read { channel, bytes } => {
            write!(out, "read {} {bytes}", name(&o.channels[channel.index()].name))
        }
        Op::FutexWait { word, expected, timeout } => {
            write!(out, "futex-wait {} ", name(&o.words[word.index()].name))?;
            match expected {
                Expected::Value(value) => write!(out, "{value}")?,
                Expected::Remembered => write!(out, "remembered")?,
            }
            match timeout {
                Duration::ZERO => Ok(()),
                timeout => write!(out, " timeout={timeout}"),
            }
        }
        Op::FutexWake { word, count } => {
            write!(out, "futex-wake {} {count}", name(&o.words[word.index()].name))
        }
        Op::BlockIo { device, bytes, write: to } => {
            let verb = if to { "io-write" } else { "io-read" };
            write!(out, "{verb} {} {bytes}", name(&o.devices[device.index()].name))
        }
        Op::QueueWork { queue, work } => {
            let queue = name(&o.queues[queue.index()].name);
            write!(out, "queue {queue} {}", name(&w.programs[work.index()].name))
        }
        Op::Raise { source } => write!(out, "raise {}", name(&o.sources[source.index()].name)),
        Op::Fork { task } => write!(out, "fork {}", name(&w.task_name(task))),
        Op::Exec { comm } => write!(out, "exec {}", name(&w.comms[comm.index()])),
        Op::Exit => write!(out, "exit"),
        Op::ExitGroup => write!(out, "exit-group"),
        Op::WaitChildren => write!(out, "wait-children"),
        Op::Join { task } => write!(out, "join {}", name(&w.task_name(task))),
        Op::Yield => write!(out, "yield"),
        Op::OwnComm => write!(out, "own-name"),
        Op::SetComm { comm } => write!(out, "name {}", name(&w.comms[comm.index()])),
        Op::SetCpus { cpus: Some(cpus) } => write!(out, "cpus {}", w.cpu_lists[cpus.index()]),
        Op::SetCpus { cpus: None } => write!(out, "cpus all"),
        Op::SetSched { attr } => write!(out, "sched {}", attr_text(&w.attrs[attr.index()])),
        Op::SetGroup { group: Some(group) } => write!(out, "group {}", name(&w.groups[group.index()].path)),
        Op::SetGroup { group: None } => write!(out, "group /"),
        Op::OfTask { task, act } => of_task(w, out, name(&w.task_name(task)), act),
        Op::OfGroup { group, act } => of_group(out, name(&w.groups[group.index()].path), act),
        Op::Switch { part } => write!(out, "switch {}", name(&w.parts[part.index()])),
        Op::Mark { label, value: 0 } => write!(out, "mark {}", name(&w.labels[label.index()])),
        Op::Mark { label, value } => write!(out, "mark {} {value}", name(&w.labels[label.index()])),
        Op::MarkLate { label, timer } => write!(out, "mark-late {} {timer}", name(&w.labels[label.index()])),
        Op::Loop { times: FOREVER, .. } => write!(out, "loop forever"),
        Op::Loop { times, .. } => write!(out, "loop {times}"),
        Op::EndLoop { .. } => write!(out, "end"),
        Op::Jump { to } => write!(out, "jump @{to}"),
        Op::JumpIf { word, test, value, to } => {
            let sign = match test {
                Test::Equal => "==",
                Test::Differs => "!=",
                Test::Less => "<",
                Test::Greater => ">",
            };
            write!(out, "jump-if {} {sign} {value} @{to}", name(&o.words[word.index()].name))
        }
        Op::JumpOdds { permille, to } => write!(out, "jump-odds {permille} @{to}"),
        Op::WordSet { word, value } => write!(out, "set {} {value}", name(&o.words[word.index()].name)),
        Op::WordAdd { word, value } => write!(out, "add {} {value}", name(&o.words[word.index()].name)),
        Op::WordLoad { word } => write!(out, "load {}", name(&o.words[word.index()].name)),
    }
}

/// A name, in quotes if blanks or other characters would split it.
pub(super) fn name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    if !name.is_empty() && name.chars().all(plain) { name.to_string() } else { format!("{name:?}") }
}

pub(super) fn dist_text(dist: &Dist) -> String {
    match dist {
        Dist::Constant(span) => span.to_string(),
        Dist::Uniform { low, high } => format!("uniform({low},{high})"),
        Dist::Exponential { mean } => format!("exponential({mean})"),
        Dist::Stalls { usual, stall, one_in } => format!("stalls({usual},{stall},{one_in})"),
        Dist::Normal { mean, sd } => format!("normal({mean},{sd})"),
    }
}

fn of_task(w: &Workload, out: &mut String, task: impl fmt::Display, act: TaskAct) -> fmt::Result {
    match act {
        TaskAct::Cpus(Some(cpus)) => write!(out, "cpus-of {task} {}", w.cpu_lists[cpus.index()]),
        TaskAct::Cpus(None) => write!(out, "cpus-of {task} all"),
        TaskAct::Sched(attr) => write!(out, "sched-of {task} {}", attr_text(&w.attrs[attr.index()])),
        TaskAct::Group(Some(group)) => {
            write!(out, "group-of {task} {}", name(&w.groups[group.index()].path))
        }
        TaskAct::Group(None) => write!(out, "group-of {task} /"),
        TaskAct::Freeze => write!(out, "freeze {task}"),
        TaskAct::Thaw => write!(out, "thaw {task}"),
    }
}

fn of_group(out: &mut String, group: impl fmt::Display, act: GroupAct) -> fmt::Result {
    let us = |us: u32| Duration::micros(us.into());
    match act {
        GroupAct::Weight(weight) => write!(out, "weight {group} {weight}"),
        GroupAct::Shares(shares) => write!(out, "shares {group} {shares}"),
        GroupAct::Idle(idle) => write!(out, "idle {group} {idle}"),
        GroupAct::Clamps { util_min, util_max } => {
            write!(out, "clamps {group}")?;
            let mut bound = |key, bound: Option<u16>| bound.map_or(Ok(()), |n| write!(out, " {key}={n}"));
            bound("util_min", util_min)?;
            bound("util_max", util_max)
        }
        GroupAct::Quota { quota_us: 0, .. } => write!(out, "quota {group} none"),
        GroupAct::Quota { quota_us, period_us, burst_us } => {
            write!(out, "quota {group} {} period={} burst={}", us(quota_us), us(period_us), us(burst_us))
        }
    }
}

fn pattern_text(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Sequential => "sequential",
        Pattern::Random => "random",
        Pattern::ChaseSequential => "chase-sequential",
        Pattern::Chase => "chase",
    }
}

pub(super) fn attr_text(attr: &SchedAttr) -> String {
    let mut text = match attr.policy {
        Policy::Normal { nice } => format!("other nice={nice}"),
        Policy::Batch { nice } => format!("batch nice={nice}"),
        Policy::Idle { nice } => format!("idle nice={nice}"),
        Policy::Fifo { priority } => format!("fifo priority={priority}"),
        Policy::Rr { priority } => format!("rr priority={priority}"),
        Policy::Deadline(Deadline { runtime, deadline, period }) => {
            format!("deadline runtime={runtime} deadline={deadline} period={period}")
        }
    };
    let mut add = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(text, " {key}={value}");
        }
    };
    add("slice", attr.slice.map(|s| s.to_string()));
    add("util_min", attr.util_min.map(|u| u.to_string()));
    add("util_max", attr.util_max.map(|u| u.to_string()));
    text
}
