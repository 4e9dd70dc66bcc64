//! Copies of a memory-bound program, as in a rate run of SPEC CPU: mcf.
//!
//! Each copy has memory of its own and follows pointers through it, a part of it in each step; how long that takes
//! depends on the caches that it finds and on the tasks that share them. The result is the number of steps of all
//! copies per second.
//!
//! Left out: phases of the program, and its code. As in the program, each copy touches its own pages first.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{AccessSpec, Measure, MeasureRule, Pattern, STEADY, TaskSpec, WorkloadBuilder};

params! {
    /// Copies bound by memory; see the module.
    Copies = "copies" {
        /// How many copies.
        copies: u32 = 1,
        /// Memory of each.
        bytes: u64 = 2 << 20,
        /// Bytes that a step reads by following pointers.
        step: u64 = 16 << 10,
        /// Work of a step apart from its reads.
        work: Duration = Duration::micros(5),
        /// Warm-up, which is not measured.
        warmup: Duration = Duration::millis(50),
        /// Length of the measurement.
        wall: Duration = Duration::millis(500),
        /// The CPU on which the main process starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Copies {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let (done, steady) = (w.label("step"), w.label(STEADY));
        let mut copies = Vec::new();
        for i in 0..self.copies {
            let region = w.region(format!("memory {i}"), self.bytes);
            let access = w.access(AccessSpec {
                region,
                pattern: Pattern::Chase,
                read_bytes: self.step,
                write_bytes: 0,
                stride: 64,
                streaming: false,
            });
            let program = w.program(format!("copy {i}"), |p| {
                p.touch(region, self.bytes).forever(|p| _ = p.access(access).run(self.work).mark(done, 1));
            });
            let spec = TaskSpec::forked("copy", program);
            copies.push(w.task(TaskSpec {
                footprint: self.bytes,
                memory_bound: true,
                background: true,
                ..spec
            }));
        }
        let main = w.program("copy-main", |p| {
            for copy in copies {
                p.fork(copy);
            }
            p.sleep(self.warmup).mark(steady, 0).sleep(self.wall).exit_group();
        });
        w.task(TaskSpec { start_cpu: self.start_cpu, ..TaskSpec::root("copy-main", main) });
        let rule = MeasureRule::Rate { label: done };
        w.measure(Measure { name: "steps".to_string(), unit: "/s", lower_is_better: false, rule });
    }
}
