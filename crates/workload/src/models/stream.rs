//! STREAM: memory bandwidth by OpenMP threads over three arrays.
//!
//! The course of STREAM 5.10 under the GNU runtime. The first parallel region creates the threads, one after
//! another; a second counts them; a third writes the arrays for the first time, each thread its own slice, so
//! the pages are on the node where it runs then; a fourth is a timing sweep; then follow `ntimes` rounds of
//! Copy, Scale, Add and Triad. Around each region all meet at two barriers, spin and then sleep on a futex.
//! The figure of a kernel is its bytes by the best time, the first round left out.
//!
//! The slices of one thread are one region of memory here, since they are touched in one go. Left out:
//! checking and printing the results.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{
    AccessId, AccessSpec, BarrierId, CpuList, Dist, LabelId, Measure, MeasureRule, Op, Pattern,
    ProgramBuilder, RegionId, SpecId, TaskSpec, WorkloadBuilder,
};

params! {
    /// STREAM; see the module.
    Stream = "stream" {
        /// How many threads.
        threads: u32 = 8,
        /// Elements of 8 bytes in each of the three arrays.
        elements: u64 = 512 << 20,
        /// Rounds of the four kernels.
        ntimes: u32 = 10,
        /// CPUs the process is restricted to, as by numactl -C.
        cpus: Option<CpuList> = None,
        /// The CPU on which the process starts.
        start_cpu: Option<CpuId> = None,
        /// How long a waiting thread spins before it sleeps: 300000 pauses of the
        /// runtime, 14 ms on Skylake and later, 4 to 6 ms on Zen.
        spin: Duration = Duration::millis(14),
        /// Shortest time from one thread creation to the next, without the creation itself.
        gap_min: Duration = Duration::micros(1),
        /// Longest time from one thread creation to the next.
        gap_max: Duration = Duration::micros(25),
        /// Whether the compiler turned Copy into a copy routine whose stores do not fetch the line first.
        copy_streams: bool = false,
    }
}

/// The accesses of one thread.
struct Slice {
    region: RegionId,
    bytes: u64,
    sweep: AccessId,
    kernels: [AccessId; 4],
}

/// The two barriers around every parallel region.
#[derive(Clone, Copy)]
struct Meet {
    /// Where the pool waits for the main thread to begin a region.
    dock: BarrierId,
    /// Where all wait for each other at its end.
    team: BarrierId,
}

impl Meet {
    fn region(self, p: &mut ProgramBuilder, body: Op) {
        p.barrier(self.dock).op(body).barrier(self.team);
    }
}

/// The kernels: name, arrays read, arrays written.
const KERNELS: [(&str, u64, u64); 4] = [("copy", 1, 1), ("scale", 1, 1), ("add", 2, 1), ("triad", 2, 1)];

impl Stream {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let process = w.process();
        let dock = w.barrier("threads_dock", self.threads, self.spin);
        let team = w.barrier("team", self.threads, self.spin);
        let gap = w.dist(Dist::Uniform { low: self.gap_min, high: self.gap_max });
        let cpus = self.cpus.clone().map(|cpus| w.cpus(cpus));
        let slices: Vec<Slice> = (0..self.threads).map(|i| self.slice(w, i)).collect();
        let labels =
            KERNELS.map(|(name, ..)| (w.label(&format!("{name} begin")), w.label(&format!("{name} end"))));

        let meet = Meet { dock, team };
        let first = w.next_task();
        for (i, slice) in slices.iter().enumerate().skip(1) {
            let program = w.program(format!("stream thread {i}"), |p| {
                self.regions(p, slice, meet, None);
                // The pool waits for another region, which does not come.
                p.barrier(dock);
            });
            let spec = TaskSpec::forked("stream", program).thread_of(process);
            w.task(TaskSpec { memory_bound: true, ..spec });
        }
        let workers = (0..self.threads.saturating_sub(1)).map(|i| SpecId(first.0 + i));
        let main = w.program("stream", |p| {
            for worker in workers {
                p.run_draw(gap).fork(worker);
            }
            self.regions(p, &slices[0], meet, Some(&labels));
            // The process ends with its main thread, whether or not the others spin.
            p.exit_group();
        });
        let spec = TaskSpec::root("stream", main).thread_of(process);
        w.task(TaskSpec { start_cpu: self.start_cpu, cpus, memory_bound: true, ..spec });
        for ((name, read, written), (from, to)) in KERNELS.into_iter().zip(labels) {
            let amount = (read + written) * 8 * self.elements;
            w.measure(Measure {
                name: name.to_string(),
                unit: "MB/s",
                lower_is_better: false,
                rule: MeasureRule::BestRate { from, to, amount, skip: 1 },
            });
        }
    }

    /// One thread's course through all regions; the main thread sets the marks.
    fn regions(
        &self,
        p: &mut ProgramBuilder,
        slice: &Slice,
        meet: Meet,
        labels: Option<&[(LabelId, LabelId); 4]>,
    ) {
        let short = Duration::micros(1);
        meet.region(p, Op::Run { work: short });
        meet.region(p, Op::Run { work: short });
        meet.region(p, Op::Touch { region: slice.region, bytes: slice.bytes });
        meet.region(p, Op::Access { access: slice.sweep });
        p.repeat(self.ntimes, |p| {
            for (i, &access) in slice.kernels.iter().enumerate() {
                if let Some(labels) = labels {
                    p.mark(labels[i].0, 0);
                }
                meet.region(p, Op::Access { access });
                if let Some(labels) = labels {
                    p.mark(labels[i].1, 0);
                }
            }
        });
    }

    /// A thread's share of the arrays: the static schedule gives the first ones the remainder.
    fn slice(&self, w: &mut WorkloadBuilder, thread: u32) -> Slice {
        let (threads, thread) = (u64::from(self.threads.max(1)), u64::from(thread));
        let elements = self.elements / threads + u64::from(thread < self.elements % threads);
        let array = elements * 8;
        let region = w.region(format!("slice {thread}"), 3 * array);
        let mut pass = |read: u64, write: u64, streaming: bool| {
            let pattern = Pattern::Sequential;
            let (read_bytes, write_bytes) = (read * array, write * array);
            w.access(AccessSpec { region, pattern, read_bytes, write_bytes, stride: 64, streaming })
        };
        let sweep = pass(1, 1, false);
        let kernels =
            KERNELS.map(|(name, read, write)| pass(read, write, name == "copy" && self.copy_streams));
        Slice { region, bytes: 3 * array, sweep, kernels }
    }
}
