//! What a profile of the kernel would show: time in the functions that use contended lines.
//!
//! Counted from the mark `steady` on, if the workload has one, else from the beginning.

use schedlab_sched::Scheduler;
use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::engine::Engine;

/// What CPUs spent their time on, by node: what a profile of the kernel would show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// By number of the node.
    pub nodes: Vec<NodeProfile>,
}

/// The CPUs of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeProfile {
    /// Time they were busy.
    pub busy: Duration,
    /// Time they were in `update_cfs_group()`, which reads a group's load average.
    pub update_cfs_group: Duration,
    /// Time they were in `update_load_avg()`, which writes it.
    pub update_load_avg: Duration,
    /// Reads, each of all counters of a group.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

impl Profile {
    /// Nothing yet.
    pub fn new(nr_nodes: usize) -> Profile {
        Profile { nodes: vec![NodeProfile::default(); nr_nodes] }
    }
}

impl<S: Scheduler> Engine<'_, S> {
    /// Restarts the profile: counting begins now.
    pub fn begin_profile(&mut self) {
        for cpu in self.machine.topology.online().iter() {
            self.cpus[cpu].counted = self.now;
        }
        self.begun = self.account();
        self.begun_at = self.now;
        self.lines.profile = Profile::new(self.machine.topology.nr_nodes());
    }

    /// Counts the time up to now of a CPU that was busy, or idle.
    pub fn count_busy_of(&mut self, cpu: CpuId, busy: bool) {
        let since = std::mem::replace(&mut self.cpus[cpu].counted, self.now);
        if busy {
            let node = usize::from(self.machine.topology.cpu(cpu).node.0);
            self.lines.profile.nodes[node].busy += self.now.since(since);
        }
    }

    /// Counts the time up to now of all busy CPUs.
    pub fn count_busy(&mut self) {
        for cpu in self.machine.topology.online().iter() {
            self.count_busy_of(cpu, !self.is_idle(cpu));
        }
    }
}
