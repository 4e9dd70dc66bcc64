//! Processes that do nothing but compute, at given nice values: how much time does each get?
//!
//! The program `wl_hogs` of the recordings: a parent forks all of them and waits; each takes its nice value
//! and computes until a span of wall time is over.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{CpuList, Policy, SchedAttr, TaskSpec, WorkloadBuilder};

params! {
    /// Processes that compute all the time; see the module.
    Hogs = "hogs" {
        /// How many processes.
        hogs: u32 = 12,
        /// How long they compute, in wall-clock time.
        wall: Duration = Duration::millis(1000),
        /// Work of each process before it first reads the clock: page faults, setting its name.
        overhead: Duration = Duration::ZERO,
        /// Work between two reads of the clock: 2000 iterations of an empty loop.
        block: Duration = Duration::micros(6),
        /// Nice values, assigned round robin.
        nice: Vec<i8> = vec![0],
        /// Groups over which they are spread round robin; 0 leaves all in the root group.
        groups: u32 = 0,
        /// CPUs that the processes are restricted to.
        cpus: Option<CpuList> = None,
        /// The CPU on which the parent starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Hogs {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let cpus = self.cpus.clone().map(|cpus| w.cpus(cpus));
        let nice = if self.nice.is_empty() { &[0][..] } else { &self.nice };
        let programs: Vec<_> = nice
            .iter()
            .map(|&nice| {
                let attr = w.attr(SchedAttr { policy: Policy::Normal { nice }, ..SchedAttr::default() });
                w.program(format!("hg nice {nice}"), |p| {
                    p.own_comm();
                    if self.overhead > Duration::ZERO {
                        p.run_kernel(self.overhead);
                    }
                    p.set_sched(attr).run_wall(self.wall, self.block);
                })
            })
            .collect();
        let mut children = Vec::new();
        for i in 0..self.hogs {
            let group = match self.groups {
                0 => None,
                groups => w.group(&format!("/hogs{}", i % groups)),
            };
            let program = programs[i as usize % programs.len()];
            children.push(w.task(TaskSpec { cpus, group, ..TaskSpec::forked(format!("hg-{i}"), program) }));
        }
        let main = w.program("hg-main", |p| {
            for child in children {
                p.fork(child);
            }
            p.wait_children();
        });
        w.task(TaskSpec { start_cpu: self.start_cpu, ..TaskSpec::root("hg-main", main) });
    }
}
