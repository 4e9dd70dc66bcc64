//! Pairs that pass data to each other through pipes: perf bench sched pipe, UnixBench context1, stress-ng --pipe.
//!
//! In `token` each pair has two pipes and passes a few bytes back and forth: perf bench sched pipe with one pair,
//! context1 with one for each copy. In `stream` one task writes and the other reads as long as the pipe has room, as
//! stress-ng's pipe stressor does with 4096 bytes.
//!
//! Left out: stress-ng compares what it reads with what was written, here in `work`.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::{choice, params};
use crate::{Measure, MeasureRule, Process, STEADY, TaskSpec, WorkloadBuilder};

choice! {
    /// How data is passed.
    Pass {
        /// Back and forth.
        Token = "token",
        /// One way.
        Stream = "stream",
    }
}

params! {
    /// Pairs and their pipes; see the module.
    Token = "token" {
        /// How many pairs.
        pairs: u32 = 1,
        /// How data is passed.
        pass: Pass = Pass::Token,
        /// Bytes of a write.
        bytes: u32 = 4,
        /// Whether the tasks of a pair are threads of one process.
        threads: bool = false,
        /// Work of a task for each write or read, apart from the system call.
        work: Duration = Duration::nanos(100),
        /// Warm-up, which is not measured.
        warmup: Duration = Duration::millis(10),
        /// Length of the measurement.
        wall: Duration = Duration::millis(20),
        /// The CPU on which the main process starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Token {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let (done, steady) = (w.label("passed"), w.label(STEADY));
        let mut children = Vec::new();
        for i in 0..self.pairs {
            let process = if self.threads { Process::Thread(w.process()) } else { Process::Own };
            let (there, back) = (w.pipe(format!("there {i}")), w.pipe(format!("back {i}")));
            let token = self.pass == Pass::Token;
            let first = w.program(format!("first {i}"), |p| {
                p.forever(|p| {
                    p.run(self.work).write(there, self.bytes);
                    if token {
                        p.read(back, self.bytes).mark(done, 1);
                    }
                });
            });
            let second = w.program(format!("second {i}"), |p| {
                p.forever(|p| {
                    p.read(there, self.bytes).run(self.work);
                    match token {
                        true => p.write(back, self.bytes),
                        false => p.mark(done, 1),
                    };
                });
            });
            for (name, program) in [("pipe-a", first), ("pipe-b", second)] {
                children.push(TaskSpec { process, background: true, ..TaskSpec::forked(name, program) });
            }
        }
        let children: Vec<_> = children.into_iter().map(|child| w.task(child)).collect();
        let main = w.program("pipe-main", |p| {
            for child in children {
                p.fork(child);
            }
            p.sleep(self.warmup).mark(steady, 0).sleep(self.wall).exit_group();
        });
        w.task(TaskSpec { start_cpu: self.start_cpu, ..TaskSpec::root("pipe-main", main) });
        let rule = MeasureRule::Rate { label: done };
        w.measure(Measure { name: "operations".to_string(), unit: "/s", lower_is_better: false, rule });
    }
}
