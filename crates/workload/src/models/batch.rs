//! A parallel program in phases: compute, stream through memory, access memory at random, meet.
//!
//! The coarse form of NAS kernels, Graph500, XSBench and hash joins: one thread per CPU, each with memory of
//! its own that it touches first, and no wake-ups between barriers. The shares determine the program: a hash
//! join has random accesses and no barriers, Graph500 many short phases.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{
    AccessSpec, CpuList, Measure, MeasureRule, Op, Pattern, ProgramBuilder, SpecId, TaskSpec, WorkloadBuilder,
};

params! {
    /// A parallel program; see the module.
    Batch = "batch" {
        /// How many threads.
        threads: u32 = 8,
        /// How many phases.
        phases: u32 = 100,
        /// Work of a thread in a phase.
        work: Duration = Duration::millis(5),
        /// Bytes that a thread reads sequentially in a phase.
        stream: u64 = 4 << 20,
        /// Bytes that a thread reads at random addresses in a phase.
        random: u64 = 0,
        /// Memory of a thread.
        memory: u64 = 64 << 20,
        /// Whether there is a barrier after each phase.
        barrier: bool = true,
        /// How long a thread spins at the barrier before it sleeps.
        spin: Duration = Duration::millis(5),
        /// CPUs the process is restricted to.
        cpus: Option<CpuList> = None,
        /// The CPU on which the process starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Batch {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let process = w.process();
        let (begin, end) = (w.label("batch begin"), w.label("batch end"));
        let meet = w.barrier("phase", self.threads, self.spin);
        let ops: Vec<Vec<Op>> = (0..self.threads).map(|i| self.phase(w, i)).collect();
        let first = w.next_task();
        let phases = |p: &mut ProgramBuilder, ops: &[Op]| {
            p.op(ops[0]).barrier(meet).repeat(self.phases, |p| {
                for &op in &ops[1..] {
                    p.op(op);
                }
                if self.barrier {
                    p.barrier(meet);
                }
            });
        };
        for (i, ops) in ops.iter().enumerate().skip(1) {
            let program = w.program(format!("batch {i}"), |p| phases(p, ops));
            let spec = TaskSpec::forked("batch", program).thread_of(process);
            w.task(TaskSpec { memory_bound: self.is_memory_bound(), ..spec });
        }
        let others = (0..self.threads.saturating_sub(1)).map(|i| SpecId(first.0 + i));
        let main = w.program("batch", |p| {
            for thread in others.clone() {
                p.fork(thread);
            }
            p.mark(begin, 0);
            if let Some(ops) = ops.first() {
                phases(p, ops);
            }
            for thread in others {
                p.join(thread);
            }
            p.mark(end, 0);
        });
        let cpus = self.cpus.clone().map(|cpus| w.cpus(cpus));
        let spec = TaskSpec::root("batch", main).thread_of(process);
        w.task(TaskSpec { start_cpu: self.start_cpu, cpus, memory_bound: self.is_memory_bound(), ..spec });
        w.measure(Measure {
            name: "elapsed".to_string(),
            unit: "s",
            lower_is_better: true,
            rule: MeasureRule::Elapsed { from: begin, to: end },
        });
    }

    /// A thread first touches its memory, then repeats the phase.
    fn phase(&self, w: &mut WorkloadBuilder, thread: u32) -> Vec<Op> {
        let region = w.region(format!("memory of {thread}"), self.memory);
        let mut ops = vec![Op::Touch { region, bytes: self.memory }, Op::Run { work: self.work }];
        for (read_bytes, pattern) in [(self.stream, Pattern::Sequential), (self.random, Pattern::Random)] {
            if read_bytes > 0 {
                let spec =
                    AccessSpec { region, pattern, read_bytes, write_bytes: 0, stride: 64, streaming: false };
                ops.push(Op::Access { access: w.access(spec) });
            }
        }
        ops
    }

    /// More than a tenth of a GB for a second of work counts as waiting for memory.
    fn is_memory_bound(&self) -> bool {
        u128::from(self.stream + self.random) * 10 > u128::from(self.work.0)
    }
}
