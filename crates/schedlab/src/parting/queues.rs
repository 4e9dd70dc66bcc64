//! Which task runs on each CPU and which tasks wait there, according to the events of a run.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Kind};
use schedlab_units::Pid;
use serde::Serialize;

/// Maximum number of CPUs that are described.
const MOST: usize = 8;

/// A CPU at an instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OfCpu {
    /// The CPU.
    pub cpu: u16,
    /// The running task; `None` if the CPU is idle.
    pub runs: Option<String>,
    /// Waiting tasks, in the order of their pids.
    pub waits: Vec<String>,
}

/// Running and waiting tasks.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    names: BTreeMap<Pid, Comm>,
    runs: BTreeMap<CpuId, Pid>,
    waits: BTreeMap<Pid, CpuId>,
}

impl Queues {
    /// Follows an event.
    pub fn event(&mut self, event: &Event) {
        match event.kind {
            Kind::SchedSwitch { prev_comm, prev_pid, prev_state, next_comm, next_pid, .. } => {
                if prev_pid != Pid::IDLE && prev_state.is_runnable() {
                    self.names.insert(prev_pid, prev_comm);
                    self.waits.insert(prev_pid, event.cpu);
                }
                self.waits.remove(&next_pid);
                self.names.insert(next_pid, next_comm);
                self.runs.insert(event.cpu, next_pid);
            }
            Kind::SchedWakeup { comm, pid, target_cpu, .. }
            | Kind::SchedWakeupNew { comm, pid, target_cpu, .. } => {
                self.names.insert(pid, comm);
                if self.runs.get(&target_cpu) != Some(&pid) {
                    self.waits.insert(pid, target_cpu);
                }
            }
            Kind::SchedMigrateTask { pid, dest_cpu, .. } => {
                if let Some(cpu) = self.waits.get_mut(&pid) {
                    *cpu = dest_cpu;
                }
            }
            _ => {}
        }
    }

    /// The first of these CPUs.
    pub fn of(&self, cpus: &BTreeSet<u16>) -> Vec<OfCpu> {
        let name = |pid: &Pid| match self.names.get(pid) {
            Some(comm) => format!("{}-{pid}", comm.to_str_lossy()),
            None => format!("task {pid}"),
        };
        let of = |&cpu: &u16| {
            let runs = self.runs.get(&CpuId(cpu)).filter(|pid| **pid != Pid::IDLE).map(name);
            let waits = self.waits.iter().filter(|(_, at)| at.0 == cpu).map(|(pid, _)| name(pid)).collect();
            OfCpu { cpu, runs, waits }
        };
        cpus.iter().take(MOST).map(of).collect()
    }
}
