//! Threads that meet at a barrier after each round: the shape of an OpenMP loop.
//!
//! The program `wl_barrier` of the recordings, and with `first = "1"` and some noise the OpenMP micro-benchmark of
//! published tables. The main thread creates the others and takes part itself. A waiting thread spins for `spins`
//! turns, then sleeps on a futex; the last to arrive wakes all. With `shared` each thread reads at the beginning
//! of a round what the others wrote at the end of the previous one, as the parts of a simulated circuit do.
//!
//! Left out: the cache line of the barrier's counter, whose transfers lengthen a
//! round by some hundred nanoseconds per thread.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{
    CpuList, Dist, Measure, MeasureRule, ProgramBuilder, STEADY, SpecId, Start, TaskSpec, WorkloadBuilder,
};

params! {
    /// Threads that compute and wait for each other at a barrier; see the module.
    Barrier = "barrier" {
        /// How many threads.
        threads: u32 = 8,
        /// How many rounds.
        rounds: u32 = 200,
        /// Work of a thread per round.
        work: Duration = Duration::micros(60),
        /// Work of the first thread, as a multiple of that of the others.
        first: u32 = 2,
        /// Standard deviation of the work, in thousandths of it.
        noise_permille: u32 = 0,
        /// Iterations of the spin loop before a thread sleeps.
        spins: u32 = 200,
        /// Time of one iteration: a pause takes 140 cycles on Skylake and later, 40 to 65 on Zen.
        pause: Duration = Duration::nanos(45),
        /// Bytes that each thread writes in a round and all others read in the next.
        shared: u32 = 0,
        /// CPUs the process is restricted to.
        cpus: Option<CpuList> = None,
        /// Time from the start of the run to the start of the process, so that the other tasks are running before it counts.
        delay: Duration = Duration::ZERO,
        /// Whether the process starts on a random CPU, as its shell may be anywhere.
        start_anywhere: bool = false,
        /// The CPU on which the process starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Barrier {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let process = w.process();
        let barrier = w.barrier("round", self.threads, self.pause * u64::from(self.spins));
        let works = [self.work, self.work * u64::from(self.first)].map(|work| self.work(w, work));
        let round = w.label("round");
        let of_threads = if self.shared == 0 { 0 } else { self.threads };
        let written: Vec<_> =
            (0..of_threads).map(|i| w.region(format!("of {i}"), self.shared.into())).collect();
        let body = |p: &mut ProgramBuilder, work: Work, thread: usize| {
            for (_, &other) in written.iter().enumerate().filter(|&(i, _)| i != thread) {
                p.read_shared(other, self.shared);
            }
            match work {
                Work::Fixed(work) => p.run(work),
                Work::Drawn(dist) => p.run_draw(dist),
            };
            if let Some(&own) = written.get(thread) {
                p.write_shared(own, self.shared);
            }
            p.barrier(barrier);
        };
        let mut program = |thread: u32| {
            w.program("br", |p| {
                p.own_comm().repeat(self.rounds, |p| body(p, works[0], thread as usize));
            })
        };
        // Threads that share nothing have the same program.
        let nr_workers = self.threads.saturating_sub(1) as usize;
        let workers: Vec<_> = match self.shared {
            0 => vec![program(0); nr_workers],
            _ => (1..self.threads).map(program).collect(),
        };
        let first = w.next_task();
        for (i, worker) in (1..).zip(workers) {
            w.task(TaskSpec::forked(format!("br-{i}"), worker).thread_of(process));
        }
        let others = (0..self.threads.saturating_sub(1)).map(|i| SpecId(first.0 + i));
        let steady = w.label(STEADY);
        let main = w.program("br-0", |p| {
            if self.delay > Duration::ZERO {
                p.mark(steady, 0);
            }
            for thread in others.clone() {
                p.fork(thread);
            }
            p.own_comm().repeat(self.rounds, |p| {
                body(p, works[1], 0);
                p.mark(round, 1);
            });
            for thread in others {
                p.join(thread);
            }
        });
        let cpus = self.cpus.clone().map(|cpus| w.cpus(cpus));
        w.task(TaskSpec {
            start: Start::At(self.delay),
            start_cpu: self.start_cpu,
            start_anywhere: self.start_anywhere,
            cpus,
            ..TaskSpec::root("br-0", main).thread_of(process)
        });
        w.measure(Measure {
            name: "rounds".to_string(),
            unit: "rounds/s",
            lower_is_better: false,
            rule: MeasureRule::Rate { label: round },
        });
    }

    fn work(&self, w: &mut WorkloadBuilder, mean: Duration) -> Work {
        match self.noise_permille {
            0 => Work::Fixed(mean),
            noise => {
                Work::Drawn(w.dist(Dist::Normal { mean, sd: Duration(mean.0 * u64::from(noise) / 1000) }))
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Work {
    Fixed(Duration),
    Drawn(crate::DistId),
}
