//! Parents that fork a child and wait for it, over and over: UnixBench spawn and execl, lmbench lat_proc.
//!
//! Left out: copying page tables and the faults that follow, which are in the machine's price of a fork.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{Measure, MeasureRule, STEADY, TaskSpec, WorkloadBuilder};

params! {
    /// Forks in sequence; see the module.
    Spawn = "spawn" {
        /// How many parents.
        parents: u32 = 1,
        /// Whether a child calls exec.
        exec: bool = false,
        /// Work of a child.
        work: Duration = Duration::micros(20),
        /// Warm-up, which is not measured.
        warmup: Duration = Duration::millis(20),
        /// Length of the measurement.
        wall: Duration = Duration::millis(200),
        /// The CPU on which the main process starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Spawn {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let (done, steady) = (w.label("forked"), w.label(STEADY));
        let comm = w.comm("spawned");
        let child = w.program("child", |p| {
            if self.exec {
                p.exec(comm);
            }
            p.run_kernel(self.work);
        });
        let child = w.task(TaskSpec { background: true, ..TaskSpec::forked("child", child) });
        let program = w.program("parent", |p| {
            p.forever(|p| _ = p.fork(child).wait_children().mark(done, 1));
        });
        let parent = TaskSpec { background: true, ..TaskSpec::forked("spawn", program) };
        let parents: Vec<_> = (0..self.parents).map(|_| w.task(parent.clone())).collect();
        let main = w.program("spawn-main", |p| {
            for parent in parents {
                p.fork(parent);
            }
            p.sleep(self.warmup).mark(steady, 0).sleep(self.wall).exit_group();
        });
        w.task(TaskSpec { start_cpu: self.start_cpu, ..TaskSpec::root("spawn-main", main) });
        let rule = MeasureRule::Rate { label: done };
        w.measure(Measure { name: "forks".to_string(), unit: "/s", lower_is_better: false, rule });
    }
}
