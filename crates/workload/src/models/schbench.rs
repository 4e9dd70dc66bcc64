//! schbench: message threads that pass requests to workers, which think and compute.
//!
//! A worker sleeps until its message thread wakes it, then does `operations` times: think (a sleep by timer) and
//! compute, under one of `locks` locks, if there are any. In the old shape (`operations = 0`) it only computes for
//! `work`. With `rps` a message thread hands out this many requests per second; without it each worker that is ready is
//! woken at once.
//!
//! Measured are requests per second and the time from being woken to being done. Wake-up latencies are in the trace.
//!
//! Left out: per-CPU locks (a worker's lock is chosen by its number, as a program does not know where it runs), and the
//! pipe mode (`-p`).

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{
    CpuList, Expected, Measure, MeasureRule, MutexId, Op, STEADY, TaskSpec, Test, WordId, WorkloadBuilder,
};

params! {
    /// schbench; see the module.
    Schbench = "schbench" {
        /// Message threads (`-m`).
        messengers: u32 = 1,
        /// Workers of each (`-t`).
        workers: u32 = 8,
        /// Requests per second of all message threads together (`-R`); 0 for no limit.
        rps: u32 = 0,
        /// Cycles of think and compute in a request (`-n`); 0 for the old form.
        operations: u32 = 5,
        /// How long a worker sleeps in a cycle (`-s`).
        think: Duration = Duration::micros(100),
        /// Work of a cycle, by default the square of a matrix of 256 KB (`-F`).
        work: Duration = Duration::micros(250),
        /// Locks under which workers compute (`-L` switches them off: 0).
        locks: u32 = 0,
        /// CPUs of the message threads, one each in turn (`-M`).
        message_cpus: Option<CpuList> = None,
        /// CPUs of the workers (`-W`). With `-M auto` message threads have the first CPUs, workers all others.
        worker_cpus: Option<CpuList> = None,
        /// Cache footprint of each worker, in bytes (`-F`).
        footprint: u64 = 256 << 10,
        /// Warm-up, which is not measured.
        warmup: Duration = Duration::millis(50),
        /// Length of the measurement (`-r`).
        wall: Duration = Duration::millis(500),
        /// The CPU on which the process starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Schbench {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let process = w.process();
        let (begin, end, done) = (w.label("request begin"), w.label("request end"), w.label("request done"));
        let steady = w.label(STEADY);
        let locks: Vec<MutexId> = (0..self.locks).map(|i| w.mutex(format!("cpu lock {i}"))).collect();
        let worker_cpus = self.worker_cpus.clone().map(|cpus| w.cpus(cpus));
        let mut threads = Vec::new();
        for m in 0..self.messengers {
            let message_cpu = self.message_cpus.as_ref().map(|list| {
                let cpus = list.cpus();
                w.cpus(CpuList::one(cpus[m as usize % cpus.len()]))
            });
            let count = w.word(format!("count {m}"), 0);
            let ready: Vec<WordId> = (0..self.workers).map(|i| w.word(format!("woken {m}.{i}"), 1)).collect();
            for (i, &woken) in ready.iter().enumerate() {
                let lock = (!locks.is_empty()).then(|| locks[(m as usize + i) % locks.len()]);
                let program = w.program(format!("worker {m}.{i}"), |p| {
                    p.own_comm().forever(|p| {
                        let (wait, go) = (p.label(), p.label());
                        p.word_set(woken, 0).word_add(count, 1).futex_wake(count, 1);
                        p.place(wait).jump_if(woken, Test::Differs, 0, go).futex_wait(woken, 0).jump(wait);
                        p.place(go).mark(begin, 0);
                        p.repeat(self.operations, |p| {
                            p.sleep(self.think);
                            match lock {
                                Some(lock) => p.lock(lock).run(self.work).unlock(lock),
                                None => p.run(self.work),
                            };
                        });
                        if self.operations == 0 {
                            p.run(self.work);
                        }
                        p.mark(end, 0).mark(done, 1);
                    });
                });
                let spec = TaskSpec::forked("schbench-w", program).thread_of(process);
                threads.push(TaskSpec {
                    cpus: worker_cpus,
                    footprint: self.footprint,
                    background: true,
                    ..spec
                });
            }
            let program = w.program(format!("messenger {m}"), |p| {
                let pause = u64::from(self.workers) * u64::from(self.messengers) * 1_000_000_000
                    / u64::from(self.rps.max(1));
                p.own_comm().forever(|p| {
                    p.word_load(count);
                    for &woken in &ready {
                        let next = p.label();
                        p.jump_if(woken, Test::Differs, 0, next)
                            .word_set(woken, 1)
                            .futex_wake(woken, 1)
                            .place(next);
                        if self.rps > 0 {
                            // Requests of a round are spread over it.
                            p.sleep(Duration(pause / u64::from(self.workers.max(1))));
                        }
                    }
                    if self.rps == 0 {
                        p.op(Op::FutexWait {
                            word: count,
                            expected: Expected::Remembered,
                            timeout: Duration::ZERO,
                        });
                    }
                });
            });
            let spec = TaskSpec::forked("schbench-m", program).thread_of(process);
            threads.push(TaskSpec { cpus: message_cpu, background: true, ..spec });
        }
        let threads: Vec<_> = threads.into_iter().map(|thread| w.task(thread)).collect();
        let main = w.program("schbench", |p| {
            for thread in threads {
                p.fork(thread);
            }
            p.sleep(self.warmup).mark(steady, 0).sleep(self.wall).exit_group();
        });
        w.task(TaskSpec { start_cpu: self.start_cpu, ..TaskSpec::root("schbench", main).thread_of(process) });
        let span = |name: &str, permille| Measure {
            name: name.to_string(),
            unit: "ns",
            lower_is_better: true,
            rule: MeasureRule::SpanAt { from: begin, to: end, permille },
        };
        let measures = [span("request p50", 500), span("request p99", 990), span("request p99.9", 999)];
        measures.into_iter().for_each(|measure| w.measure(measure));
        w.measure(Measure {
            name: "requests".to_string(),
            unit: "/s",
            lower_is_better: false,
            rule: MeasureRule::Rate { label: done },
        });
    }
}
