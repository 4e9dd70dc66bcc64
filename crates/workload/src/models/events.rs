//! Threads that execute events one after the other: sysbench cpu and sysbench threads.
//!
//! An event is `work`; with `locks` it is `yields` turns of taking a lock, yielding, and releasing it, as sysbench
//! threads does with 8 mutexes and 1000 yields. A thread takes the locks in turn.
//!
//! Left out: the search for primes is one length of work whatever the limit.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{Measure, MeasureRule, MutexId, STEADY, TaskSpec, WorkloadBuilder};

params! {
    /// Threads that count events; see the module.
    Events = "events" {
        /// Threads.
        threads: u32 = 8,
        /// Work of an event without locks, or of one iteration with locks.
        work: Duration = Duration::micros(700),
        /// Locks; 0 for none.
        locks: u32 = 0,
        /// Iterations in an event with locks.
        yields: u32 = 100,
        /// Warm-up, which is not measured.
        warmup: Duration = Duration::millis(20),
        /// Length of the measurement.
        wall: Duration = Duration::millis(200),
        /// The CPU on which the process starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Events {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let process = w.process();
        let (done, steady) = (w.label("event"), w.label(STEADY));
        let locks: Vec<MutexId> = (0..self.locks).map(|i| w.mutex(format!("lock {i}"))).collect();
        let mut threads = Vec::new();
        for i in 0..self.threads {
            let program = w.program(format!("event thread {i}"), |p| {
                p.forever(|p| {
                    if locks.is_empty() {
                        p.run(self.work);
                    } else {
                        let lock = locks[i as usize % locks.len()];
                        p.repeat(self.yields, |p| _ = p.lock(lock).run(self.work).yield_cpu().unlock(lock));
                    }
                    p.mark(done, 1);
                });
            });
            let spec = TaskSpec::forked("sysbench", program).thread_of(process);
            threads.push(w.task(TaskSpec { background: true, ..spec }));
        }
        let main = w.program("sysbench-main", |p| {
            for thread in threads {
                p.fork(thread);
            }
            p.sleep(self.warmup).mark(steady, 0).sleep(self.wall).exit_group();
        });
        let spec = TaskSpec::root("sysbench-main", main).thread_of(process);
        w.task(TaskSpec { start_cpu: self.start_cpu, ..spec });
        let rule = MeasureRule::Rate { label: done };
        w.measure(Measure { name: "events".to_string(), unit: "/s", lower_is_better: false, rule });
    }
}
