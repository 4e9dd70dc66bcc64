//! New threads that spin: where is each placed?
//!
//! The program `wl_stream` of the recordings: a process restricts itself to some CPUs, then creates threads
//! one after another, and each computes until a span of wall time is over. To the scheduler it looks like
//! STREAM, without the memory.
//!
//! Left out: the page faults of the new threads' stacks and the printing.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{CpuList, SpecId, TaskSpec, WorkloadBuilder};

params! {
    /// Threads that spin for a while; see the module.
    Spinners = "spinners" {
        /// How many threads.
        threads: u32 = 8,
        /// How long each spins, in wall-clock time.
        wall: Duration = Duration::millis(200),
        /// Work between two reads of the clock: 1000 iterations of an empty loop.
        block: Duration = Duration::micros(3),
        /// CPUs the process restricts itself to before it creates them.
        cpus: Option<CpuList> = None,
        /// The CPU on which the process starts.
        start_cpu: Option<CpuId> = None,
        /// Time from one thread creation to the next, without the creation itself.
        gap: Duration = Duration::ZERO,
    }
}

impl Spinners {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let process = w.process();
        let program = w.program("st", |p| _ = p.own_comm().run_wall(self.wall, self.block));
        let first = w.next_task();
        for i in 0..self.threads {
            w.task(TaskSpec::forked(format!("st-{i}"), program).thread_of(process));
        }
        let threads = (0..self.threads).map(|i| SpecId(first.0 + i));
        let cpus = self.cpus.clone().map(|cpus| w.cpus(cpus));
        let main = w.program("st-main", |p| {
            if cpus.is_some() {
                p.set_cpus(cpus);
            }
            for thread in threads.clone() {
                p.fork(thread);
                if self.gap > Duration::ZERO {
                    p.run(self.gap);
                }
            }
            for thread in threads {
                p.join(thread);
            }
        });
        w.task(TaskSpec { start_cpu: self.start_cpu, ..TaskSpec::root("st-main", main).thread_of(process) });
    }
}
