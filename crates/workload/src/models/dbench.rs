//! dbench on XFS: clients whose I/O goes through kworkers.
//!
//! A client replays a load file: mostly work on cached data, broken by synchronous
//! points (flushes and the log forces they cause). At each point it
//! 1. hands a log push to a kworker bound to no CPU, and sleeps until that is done;
//! 2. hands the I/O to the kworker bound to its CPU, and sleeps: the kworker issues
//!    it, sleeps while the disk works, and at the end wakes the client, while the
//!    kworker itself is the one that runs on the client's CPU.
//!
//! That last wake-up is what per-CPU kthread stacking is about. The kworker is of high priority (nice -20):
//! of the queues at work there, kblockd begins requests and XFS's own ends them, and both are made with
//! WQ_HIGHPRI, so they share the workers `kworker/N:MH`. With `filesystem = "ext4"` the client does both
//! itself and an interrupt wakes it.
//!
//! Disk and log are one server, which handles one request at a time; a log push is followed there by a write for
//! which no task waits. With many clients that server sets the pace: two services per point. Occasionally the disk
//! stalls, while its cache is emptied: with few clients most of their waiting for each other is behind such requests.
//!
//! Each client beyond the number of CPUs makes a service longer: the log's locks are then
//! handed over by wake-ups. That is one constant, not a model of those locks.
//!
//! dbench runs for a given time and counts the load files that end in it: all clients are at work as long as
//! any is measured. The same holds here: clients continue until each has done its `files`.
//!
//! Left out: the operations one by one (their work is one sum), and the tail of a load file.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::{choice, params};
use crate::{
    Completion, DeviceId, DeviceSpec, Dist, DistId, LabelId, Measure, MeasureRule, ProgramBuilder, QueueId,
    QueueKind, SemId, TaskSpec, WorkloadBuilder,
};

choice! {
    /// Which file system, hence who does its work.
    Filesystem {
        /// Kworkers do it.
        Xfs = "xfs",
        /// The client does it.
        Ext4 = "ext4",
    }
}

params! {
    /// dbench; see the module.
    Dbench = "dbench" {
        /// How many clients.
        clients: u32 = 1,
        /// Load files that each client replays at least; all continue until the last client is done.
        files: u32 = 20,
        /// Work of a load file: 62 million cycles, calibrated on one client of the 48-CPU machine
        /// with the change (mail of 28 January 2020).
        work: Duration = Duration::micros(20_000),
        /// Standard deviation of each burst of work, in thousandths of it.
        noise_permille: u32 = 100,
        /// Synchronous points in a load file.
        points: u32 = 30,
        /// Work of a log push.
        log_work: Duration = Duration::micros(35),
        /// Work to issue an I/O.
        issue_work: Duration = Duration::micros(8),
        /// Work to complete it.
        complete_work: Duration = Duration::micros(6),
        /// Usual service time of a disk request; calibrated together with the stalls on 32 clients, v5.5.
        service: Duration = Duration::micros(53),
        /// How much longer a request takes on average when the disk stalls.
        stall: Duration = Duration::micros(2_500),
        /// One request in this many stalls. The time of a load file of one client then
        /// varies by 10 %, as published.
        stall_one_in: u32 = 50,
        /// Time that each client beyond `crowd_from` adds to a request: lock hand-offs in the log.
        /// Calibrated on 128 clients of the 48-CPU machine, v5.5.
        crowd: Duration = Duration::nanos(900),
        /// Number of clients that do not contend for the log: the number of CPUs of the machine.
        crowd_from: u32 = 48,
        /// Which file system.
        filesystem: Filesystem = Filesystem::Xfs,
        /// Cache footprint of a client, in bytes.
        footprint: u64 = 256 << 10,
        /// The CPU on which the main process starts.
        start_cpu: Option<CpuId> = None,
    }
}

/// What all clients share.
struct Shared {
    disk: DeviceId,
    log: QueueId,
    requeue: QueueId,
    burst: DistId,
    begin: LabelId,
    end: LabelId,
    /// A client has done its files.
    done: SemId,
}

impl Dbench {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let burst = Duration(self.work.0 / u64::from(3 * self.points.max(1)));
        let sd = Duration(burst.0 * u64::from(self.noise_permille) / 1000);
        let crowd = self.crowd * u64::from(self.clients.saturating_sub(self.crowd_from));
        let usual = self.service + crowd;
        let service = w.dist(Dist::Stalls { usual, stall: self.stall, one_in: self.stall_one_in });
        let shared = Shared {
            disk: w.device(DeviceSpec {
                name: "disk".to_string(),
                service,
                depth: 1,
                completion: Completion::IrqSubmitter,
            }),
            log: w.queue("xfs-cil", QueueKind::Unbound),
            requeue: w.queue("kblockd", QueueKind::PerCpuHighPri),
            burst: w.dist(Dist::Normal { mean: burst, sd }),
            begin: w.label("load file begin"),
            end: w.label("load file end"),
            done: w.sem("files done", 0),
        };
        let mut clients = Vec::new();
        for i in 0..self.clients {
            let program = match self.filesystem {
                Filesystem::Xfs => self.on_kworkers(w, &shared, i),
                Filesystem::Ext4 => self.by_itself(w, &shared),
            };
            let spec = TaskSpec::forked("dbench", program);
            clients.push(w.task(TaskSpec { footprint: self.footprint, background: true, ..spec }));
        }
        let main = w.program("dbench", |p| {
            for client in clients {
                p.fork(client);
            }
            p.repeat(self.clients, |p| {
                p.sem_wait(shared.done);
            });
        });
        w.task(TaskSpec { start_cpu: self.start_cpu, ..TaskSpec::root("dbench", main) });
        w.measure(Measure {
            name: "load file".to_string(),
            unit: "ns",
            lower_is_better: true,
            rule: MeasureRule::Spans { from: shared.begin, to: shared.end },
        });
    }

    fn on_kworkers(&self, w: &mut WorkloadBuilder, shared: &Shared, client: u32) -> crate::ProgramId {
        let pushed = w.sem(format!("log pushed for {client}"), 0);
        let done = w.sem(format!("io done for {client}"), 0);
        let push = w.program(format!("log push for {client}"), |p| {
            p.run_kernel(self.log_work).sem_post(pushed).block_write(shared.disk, 4096);
        });
        let io = w.program(format!("io for {client}"), |p| {
            p.run_kernel(self.issue_work).block_write(shared.disk, 4096);
            p.run_kernel(self.complete_work).sem_post(done);
        });
        w.program(format!("dbench client {client}"), |p| {
            self.files(p, shared, |p| {
                p.run_draw(shared.burst).queue_work(shared.log, push).sem_wait(pushed);
                p.run_draw(shared.burst).queue_work(shared.requeue, io).sem_wait(done);
                p.run_draw(shared.burst);
            });
        })
    }

    fn by_itself(&self, w: &mut WorkloadBuilder, shared: &Shared) -> crate::ProgramId {
        w.program("dbench client", |p| {
            self.files(p, shared, |p| {
                p.run_draw(shared.burst).run_kernel(self.log_work);
                p.run_draw(shared.burst).run_kernel(self.issue_work).block_write(shared.disk, 4096);
                p.run_kernel(self.complete_work).run_draw(shared.burst);
            });
        })
    }

    fn files(&self, p: &mut ProgramBuilder, shared: &Shared, point: impl Fn(&mut ProgramBuilder)) {
        let file = |p: &mut ProgramBuilder| {
            p.mark(shared.begin, 0).repeat(self.points, &point).mark(shared.end, 0);
        };
        p.repeat(self.files, file).sem_post(shared.done).forever(file);
    }
}
