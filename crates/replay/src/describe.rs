//! The learned programs as text: one line per task.

use std::fmt;

use schedlab_units::Duration;

use crate::learned::{Begin, Learned, Sleep, Step};

impl fmt::Display for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for task in &self.tasks {
            write!(f, "{}-{}", task.comm, task.pid)?;
            match task.begin {
                Begin::Running(cpu) => write!(f, ", running on {cpu}:")?,
                Begin::Runnable(cpu) => write!(f, ", runnable on {cpu}:")?,
                Begin::Asleep(cpu) => write!(f, ", asleep on {cpu}:")?,
                Begin::Forked(parent) => {
                    let kind = if task.is_thread { "thread of" } else { "child of" };
                    write!(f, ", {kind} {}:", self.tasks[parent.index()].pid)?;
                }
            }
            if let Some(group) = task.group {
                write!(f, " in {},", self.groups[group as usize])?;
            }
            if let Some(mask) = task.allowed {
                write!(f, " on {},", self.masks[mask as usize])?;
            }
            if let Some(did) = task.did.filter(|did| did.runnable > 0) {
                let percent = |part: u16| u32::from(part) * 100 / 1024;
                write!(
                    f,
                    " ran {} % and waited {} % before,",
                    percent(did.running),
                    percent(did.runnable - did.running)
                )?;
            }
            if task.lag > Duration::ZERO {
                write!(f, " owed {},", task.lag)?;
            }
            if let Some(cpu) = task.recent_used_cpu {
                write!(f, " used {cpu} before,")?;
            }
            if task.of_wakers_cpu {
                write!(f, " of its waker's CPU,")?;
            }
            if task.is_left_out {
                write!(f, " left out")?;
            }
            for (at, step) in task.steps.iter().enumerate() {
                write!(f, "{} ", if at == 0 { "" } else { "," })?;
                self.step(f, step)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl Learned {
    fn step(&self, f: &mut fmt::Formatter<'_>, step: &Step) -> fmt::Result {
        match step {
            Step::Run(work) => write!(f, "run {work}"),
            Step::Sleep(Sleep { span, served: true, .. }) => write!(f, "is served for {span}"),
            Step::Sleep(Sleep { span, since_last, .. }) => {
                write!(f, "sleep {span} until {since_last} after the last")
            }
            Step::Heard(after) => write!(f, "heard {after} after"),
            Step::InterruptOn { cpu, .. } => write!(f, "interrupt on CPU {cpu}"),
            Step::Wait(task) => write!(f, "wait for {}", self.tasks[task.index()].pid),
            Step::Wake(task) => write!(f, "wake {}", self.tasks[task.index()].pid),
            Step::Yield => write!(f, "yield"),
            Step::OutOfBudget => write!(f, "out of budget"),
            Step::Fork(task) => write!(f, "fork {}", self.tasks[task.index()].pid),
            Step::Exec(comm) => write!(f, "exec {comm}"),
            Step::Rename(comm) => write!(f, "rename {comm}"),
            Step::Prio(prio) => write!(f, "prio {prio}"),
            Step::Group(group) => write!(f, "group {}", self.groups[*group as usize]),
            Step::Allowed(mask) => write!(f, "cpus {}", self.masks[*mask as usize]),
            Step::Hotplug { cpu, to } => write!(f, "hotplug {cpu} {}", to.name()),
            Step::Nothing => write!(f, "nothing"),
        }
    }
}
