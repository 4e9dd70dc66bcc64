//! A parent that repeatedly forks short-lived children and waits for all of them.
//!
//! The program `wl_fork` of the recordings.
//!
//! Left out: copying page tables and the faults that follow, which are in the machine's price of a fork;
//! `overhead` represents the other work of a child.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{Measure, MeasureRule, SpecId, TaskSpec, WorkloadBuilder};

params! {
    /// Short-lived children; see the module.
    ForkStorm = "fork-storm" {
        /// Children per round.
        width: u32 = 32,
        /// How many rounds.
        rounds: u32 = 30,
        /// Work of a child.
        work: Duration = Duration::micros(60),
        /// Further work of a child: page faults, setting its name.
        overhead: Duration = Duration::micros(30),
        /// The CPU on which the parent starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl ForkStorm {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let (begin, end) = (w.label("fork begin"), w.label("fork end"));
        let child = w.program("fk", |p| _ = p.own_comm().run_kernel(self.overhead).run(self.work));
        let first = w.next_task();
        for i in 0..self.width {
            w.task(TaskSpec::forked(format!("fk-{i}"), child));
        }
        let main = w.program("fk-main", |p| {
            p.mark(begin, 0);
            p.repeat(self.rounds, |p| {
                for i in 0..self.width {
                    p.fork(SpecId(first.0 + i));
                }
                p.wait_children();
            });
            p.mark(end, 0);
        });
        w.task(TaskSpec { start_cpu: self.start_cpu, ..TaskSpec::root("fk-main", main) });
        w.measure(Measure {
            name: "elapsed".to_string(),
            unit: "s",
            lower_is_better: true,
            rule: MeasureRule::Elapsed { from: begin, to: end },
        });
    }
}
