//! Processes that read from a block device, one block at a time.
//!
//! The program `wl_io` of the recordings. What matters is the waker of the reader: for a disk, an interrupt at the CPU
//! that submitted the request; for a loop device, an unbound kworker that reads itself, one request after another, and
//! reports the completion through the block softirq.
//!
//! Left out: the offsets; every request takes the same time except for the noise.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::{choice, params};
use crate::{Completion, DeviceSpec, Dist, Measure, MeasureRule, QueueKind, TaskSpec, WorkloadBuilder};

choice! {
    /// The kind of device.
    DeviceKind {
        /// A disk that interrupts the CPU of the submitter.
        Disk = "disk",
        /// A loop device over a file in memory, served by an unbound kworker.
        Loop = "loop",
    }
}

params! {
    /// Readers of a device; see the module.
    Io = "io" {
        /// The device that is read.
        device: DeviceKind = DeviceKind::Disk,
        /// How many readers.
        readers: u32 = 4,
        /// Reads by each.
        reads: u32 = 400,
        /// Work between two reads.
        work: Duration = Duration::micros(15),
        /// Size of a read.
        bytes: u32 = 4096,
        /// Service time of a disk request.
        service: Duration = Duration::micros(80),
        /// Standard deviation of the service time.
        service_sd: Duration = Duration::micros(15),
        /// Requests that the disk serves at once.
        depth: u32 = 64,
        /// Work of the loop device's kworker for a request.
        loop_work: Duration = Duration::micros(5),
        /// The CPU on which the parent starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Io {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let (begin, end) = (w.label("io begin"), w.label("io end"));
        let device = self.device(w);
        let device = w.device(device);
        let reader = w.program("io", |p| {
            p.own_comm().repeat(self.reads, |p| _ = p.block_read(device, self.bytes).run(self.work));
        });
        let readers: Vec<_> =
            (0..self.readers).map(|i| w.task(TaskSpec::forked(format!("io-{i}"), reader))).collect();
        let main = w.program("io-main", |p| {
            for reader in readers {
                p.fork(reader);
            }
            p.mark(begin, 0).wait_children().mark(end, 0);
        });
        w.task(TaskSpec { start_cpu: self.start_cpu, ..TaskSpec::root("io-main", main) });
        w.measure(Measure {
            name: "elapsed".to_string(),
            unit: "s",
            lower_is_better: true,
            rule: MeasureRule::Elapsed { from: begin, to: end },
        });
    }

    fn device(&self, w: &mut WorkloadBuilder) -> DeviceSpec {
        match self.device {
            DeviceKind::Disk => DeviceSpec {
                name: "disk".to_string(),
                service: w.dist(Dist::Normal { mean: self.service, sd: self.service_sd }),
                depth: self.depth,
                completion: Completion::IrqSubmitter,
            },
            DeviceKind::Loop => DeviceSpec {
                name: "loop0".to_string(),
                service: w.dist(Dist::Constant(Duration::ZERO)),
                depth: 1,
                completion: Completion::Worker {
                    queue: w.queue("loop0", QueueKind::Unbound),
                    work: self.loop_work,
                    softirq: true,
                },
            },
        }
    }
}
