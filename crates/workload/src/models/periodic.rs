//! Threads that wake by timer at fixed moments: cyclictest.
//!
//! Each thread sleeps until an absolute time, reads the clock, does almost nothing, and adds the interval to its time. The
//! result is the delay from the requested time to the moment the thread reads the clock: it includes the delivery of the
//! timer, the exit from an idle state, the interrupt, the wake-up and the switch. cyclictest prints its mean and maximum.
//!
//! Left out: cyclictest holds `/dev/cpu_dma_latency` at 0, which keeps CPUs out of idle states. This is `cyclictest --laptop`,
//! which does not; `--without idle-states` is the other.
//!
//! A user starts it at any moment of the kernel's tick. Intervals are whole parts of a tick, so the phase of its
//! threads to the tick stays constant, and with it whether a tick ever finds one of them running. The start is a random
//! moment within a tick of 10 ms, the longest, determined by the seed.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{
    CpuList, Dist, Measure, MeasureRule, Miss, Policy, SchedAttr, SpecId, TaskSpec, Timer, WorkloadBuilder,
};

/// A tick at HZ=100.
const LONGEST_TICK: Duration = Duration::millis(10);

params! {
    /// cyclictest; see the module.
    Periodic = "periodic" {
        /// How many threads.
        threads: u32 = 1,
        /// Whether thread i is pinned to CPU i.
        pinned: bool = true,
        /// Real-time priority of the first thread, one less for each further thread; 0 for SCHED_OTHER.
        priority: u8 = 80,
        /// Interval of the first thread.
        interval: Duration = Duration::micros(1000),
        /// Difference of the intervals of two successive threads.
        distance: Duration = Duration::micros(500),
        /// How often each thread wakes up.
        loops: u32 = 1000,
        /// Work after each wake-up.
        work: Duration = Duration::micros(2),
        /// The CPU on which the process starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Periodic {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let process = w.process();
        let first = w.next_task();
        let late = w.label("late");
        for i in 0..self.threads {
            let interval = self.interval + self.distance * u64::from(i);
            let policy = match self.priority {
                0 => Policy::Normal { nice: 0 },
                priority => Policy::Fifo {
                    priority: u8::try_from(u32::from(priority).saturating_sub(i)).unwrap_or(1).max(1),
                },
            };
            let attr = w.attr(SchedAttr { policy, ..SchedAttr::default() });
            let cpus = CpuList::new([CpuId(i as u16)]).filter(|_| self.pinned).map(|cpus| w.cpus(cpus));
            let program = w.program(format!("cyclictest {i}"), |p| {
                if cpus.is_some() {
                    p.set_cpus(cpus);
                }
                p.set_sched(attr);
                p.repeat(self.loops, |p| {
                    p.timer_wait(Timer::Own(0), interval, Miss::KeepGrid).mark_late(late, 0).run(self.work);
                });
            });
            w.task(TaskSpec::forked("cyclictest", program).thread_of(process));
        }
        let threads = (0..self.threads).map(|i| SpecId(first.0 + i));
        let start = w.dist(Dist::Uniform { low: Duration::ZERO, high: LONGEST_TICK });
        let main = w.program("cyclictest", |p| {
            p.sleep_draw(start);
            for thread in threads.clone() {
                p.fork(thread);
            }
            for thread in threads {
                p.join(thread);
            }
        });
        w.task(TaskSpec {
            start_cpu: self.start_cpu,
            ..TaskSpec::root("cyclictest", main).thread_of(process)
        });
        for (name, permille) in
            [("latency mean", None), ("latency p99", Some(990)), ("latency max", Some(1000))]
        {
            let rule = MeasureRule::Values { label: late, permille };
            w.measure(Measure { name: name.to_string(), unit: "ns", lower_is_better: true, rule });
        }
    }
}
