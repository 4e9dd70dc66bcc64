//! Invariants of a run, checked on its trace.
//!
//! A checker reads only events, so the same checkers run on recordings of real kernels. Each is a sink that
//! keeps the first findings and counts the rest.

mod affinity;
mod conservation;
mod explained;
mod lost_task;
mod one_cpu;

use schedlab_topology::CpuId;
use schedlab_trace::{Event, Sink};
use schedlab_units::{Duration, Time};

pub use affinity::Affinity;
pub use conservation::Conservation;
pub use explained::Explained;
pub use lost_task::LostTask;
pub use one_cpu::OneCpu;

/// A violation of an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// When it was seen.
    pub time: Time,
    /// Where.
    pub cpu: CpuId,
    /// What it is, as a sentence.
    pub what: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [{}] {}", self.time, self.cpu, self.what)
    }
}

/// The first findings, and how many there were.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    first: Vec<Finding>,
    count: u64,
}

impl Findings {
    /// How many are kept.
    const KEPT: usize = 16;

    /// Nothing was found.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first of them.
    pub fn first(&self) -> &[Finding] {
        &self.first
    }

    fn add(&mut self, time: Time, cpu: CpuId, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < Findings::KEPT {
            self.first.push(Finding { time, cpu, what: what() });
        }
    }
}

/// All checkers at once.
#[derive(Clone, Debug)]
pub struct Checkers {
    affinity: Affinity,
    one_cpu: OneCpu,
    conservation: Conservation,
    lost_task: LostTask,
}

impl Checkers {
    /// Checkers of a complete trace. A task that waits longer than `patience` for a CPU
    /// counts as lost.
    pub fn new(patience: Duration) -> Checkers {
        Checkers {
            affinity: Affinity::default(),
            one_cpu: OneCpu::default(),
            conservation: Conservation::default(),
            lost_task: LostTask::new(patience),
        }
    }

    /// The trace ends here; returns the findings, each with the name of its checker.
    pub fn finish(mut self, time: Time) -> Vec<(&'static str, Findings)> {
        self.lost_task.finish(time);
        let all = [
            ("affinity", self.affinity.findings),
            ("one_cpu", self.one_cpu.findings),
            ("conservation", self.conservation.findings),
            ("lost_task", self.lost_task.findings),
        ];
        all.into_iter().filter(|(_, findings)| !findings.is_empty()).collect()
    }

    /// As [`Checkers::finish`], for tests.
    ///
    /// # Panics
    /// With the findings, if there are any.
    pub fn assert_quiet(self, time: Time) {
        let found = self.finish(time);
        if !found.is_empty() {
            let lines: Vec<String> = found
                .iter()
                .flat_map(|(name, findings)| {
                    let lines = findings.first().iter().map(move |finding| format!("{name}: {finding}"));
                    lines.chain([format!("{name}: {} in all", findings.count())])
                })
                .collect();
            panic!("the trace breaks an invariant:\n{}", lines.join("\n"));
        }
    }
}

impl Sink for Checkers {
    fn event(&mut self, event: &Event) {
        self.affinity.event(event);
        self.one_cpu.event(event);
        self.conservation.event(event);
        self.lost_task.event(event);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use schedlab_trace::{Comm, Flags, Kind, TaskState};
    use schedlab_units::Pid;

    /// An event at a time on a CPU.
    pub fn event(time: u64, cpu: u16, kind: Kind) -> Event {
        Event {
            time: Time(time),
            cpu: CpuId(cpu),
            pid: Pid::IDLE,
            tgid: None,
            comm: Comm::default(),
            flags: Flags::NONE,
            kind,
        }
    }

    /// A switch between pids, with the state in which the first leaves.
    pub fn switch(time: u64, cpu: u16, prev: i32, state: &str, next: i32) -> Event {
        let kind = Kind::SchedSwitch {
            prev_comm: Comm::default(),
            prev_pid: Pid(prev),
            prev_prio: 120,
            prev_state: TaskState::parse(state.as_bytes()).unwrap(),
            next_comm: Comm::default(),
            next_pid: Pid(next),
            next_prio: 120,
        };
        event(time, cpu, kind)
    }

    pub fn wakeup(time: u64, cpu: u16, pid: i32, target: u16) -> Event {
        let kind =
            Kind::SchedWakeup { comm: Comm::default(), pid: Pid(pid), prio: 120, target_cpu: CpuId(target) };
        event(time, cpu, kind)
    }
}
