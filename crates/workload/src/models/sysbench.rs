//! sysbench on PostgreSQL: clients and server processes in one CPU group.
//!
//! Each client has a server process. A transaction is a number of statements, each
//! a request and a reply over a local socket, so each is two sleeps and two
//! wake-ups, and every one of them enqueues and dequeues along the group's levels.
//! At the end the server inserts into the write-ahead log under a lock and waits
//! for the flush. Now and then a statement meets a hot buffer under a lock.
//!
//! `instances` splits the same number of clients over several databases, each in a
//! group of its own.
//!
//! Left out: the planner and the buffer cache, which appear as the noise of a statement's work; followers of
//! a group commit wait for a flush of their own.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{
    ChannelId, Completion, DeviceId, DeviceSpec, Dist, DistId, GroupId, LabelId, Measure, MeasureRule,
    MutexId, MutexKind, MutexSpec, ProcessId, STEADY, SpecId, TaskSpec, Test, WordId, WorkloadBuilder,
};

params! {
    /// sysbench on PostgreSQL; see the module.
    Sysbench = "sysbench" {
        /// Clients, and as many server processes, in all.
        clients: u32 = 224,
        /// Databases they are spread over, each in its own group.
        instances: u32 = 1,
        /// Levels of groups below the root; 0 for no group.
        levels: u32 = 2,
        /// Warm-up, which is not measured.
        warmup: Duration = Duration::ZERO,
        /// Length of the measurement.
        wall: Duration = Duration::millis(2000),
        /// Statements in a transaction.
        statements: u32 = 14,
        /// Work of a client between two statements.
        client_work: Duration = Duration::micros(7),
        /// Shortest work of a server for a statement.
        server_work_min: Duration = Duration::micros(20),
        /// Longest work of a server for a statement.
        server_work_max: Duration = Duration::micros(60),
        /// Statements in a thousand that need a hot buffer.
        hot_permille: u16 = 50,
        /// How long a hot buffer is held.
        hot_work: Duration = Duration::micros(3),
        /// How long the log is held for an insertion.
        log_work: Duration = Duration::micros(2),
        /// Time of a flush of the log; 0 for none.
        flush: Duration = Duration::micros(150),
        /// Cache footprint of a server, in bytes.
        footprint: u64 = 512 << 10,
        /// The CPU on which the main process starts.
        start_cpu: Option<CpuId> = None,
    }
}

/// What all databases share.
#[derive(Clone, Copy)]
struct Common {
    stop: WordId,
    transaction: LabelId,
    process: ProcessId,
    server_work: DistId,
}

/// What the servers of one database share.
struct Database {
    group: Option<GroupId>,
    log: MutexId,
    hot: MutexId,
    disk: Option<DeviceId>,
}

impl Sysbench {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let common = Common {
            stop: w.word("stop", 0),
            transaction: w.label("transaction"),
            process: w.process(),
            server_work: w.dist(Dist::Uniform { low: self.server_work_min, high: self.server_work_max }),
        };
        let (mut servers, mut clients) = (Vec::new(), Vec::new());
        let instances = self.instances.max(1);
        let databases: Vec<Database> = (0..instances).map(|i| self.database(w, i)).collect();
        for i in 0..self.clients {
            let database = &databases[(i % instances) as usize];
            let request = w.socket(format!("request {i}"));
            let reply = w.socket(format!("reply {i}"));
            servers.push(self.server(w, common, database, (request, reply)));
            clients.push(self.client(w, common, database, (request, reply)));
        }
        let steady = w.label(STEADY);
        let main = w.program("sysbench", |p| {
            for (&server, &client) in servers.iter().zip(&clients) {
                p.fork(server).fork(client);
            }
            if self.warmup > Duration::ZERO {
                p.sleep(self.warmup);
            }
            p.mark(steady, 0).sleep(self.wall).word_set(common.stop, 1);
            for client in clients {
                p.join(client);
            }
        });
        let spec = TaskSpec::root("sysbench", main).thread_of(common.process);
        w.task(TaskSpec { start_cpu: self.start_cpu, ..spec });
        w.measure(Measure {
            name: "transactions".to_string(),
            unit: "/s",
            lower_is_better: false,
            rule: MeasureRule::Rate { label: common.transaction },
        });
    }

    fn database(&self, w: &mut WorkloadBuilder, index: u32) -> Database {
        // Levels above the last are shared, as with containers of one engine.
        let above = "/docker".repeat(self.levels.saturating_sub(1) as usize);
        let path = if self.levels == 0 { String::new() } else { format!("{above}/db{index}") };
        let mut lock = |what: &str| {
            let name = format!("{what} {index}");
            w.mutex_of(MutexSpec { name, kind: MutexKind::Futex, pi: false })
        };
        let (log, hot) = (lock("log"), lock("hot buffer"));
        let disk = (self.flush > Duration::ZERO).then(|| {
            let service = w.dist(Dist::Constant(self.flush));
            let name = format!("log disk {index}");
            w.device(DeviceSpec { name, service, depth: 64, completion: Completion::IrqSubmitter })
        });
        Database { group: w.group(&path), log, hot, disk }
    }

    /// A server process: it answers as long as requests arrive.
    fn server(
        &self,
        w: &mut WorkloadBuilder,
        common: Common,
        db: &Database,
        (request, reply): Sockets,
    ) -> SpecId {
        let program = w.program("postgres", |p| {
            p.forever(|p| {
                p.repeat(self.statements, |p| {
                    let cold = p.label();
                    p.read(request, STATEMENT_BYTES).run_draw(common.server_work);
                    p.jump_odds(1000 - self.hot_permille.min(1000), cold);
                    p.lock(db.hot).run(self.hot_work).unlock(db.hot);
                    p.place(cold).write(reply, STATEMENT_BYTES);
                });
                p.read(request, STATEMENT_BYTES).lock(db.log).run(self.log_work).unlock(db.log);
                if let Some(disk) = db.disk {
                    p.block_write(disk, 8192);
                }
                p.write(reply, STATEMENT_BYTES);
            });
        });
        let spec = TaskSpec::forked("postgres", program);
        w.task(TaskSpec { group: db.group, footprint: self.footprint, background: true, ..spec })
    }

    fn client(
        &self,
        w: &mut WorkloadBuilder,
        common: Common,
        db: &Database,
        (request, reply): Sockets,
    ) -> SpecId {
        let program = w.program("sysbench client", |p| {
            let (again, out) = (p.label(), p.label());
            p.place(again).jump_if(common.stop, Test::Differs, 0, out);
            p.repeat(self.statements + 1, |p| {
                p.run(self.client_work).write(request, STATEMENT_BYTES).read(reply, STATEMENT_BYTES);
            });
            p.mark(common.transaction, 1).jump(again).place(out);
        });
        let spec = TaskSpec::forked("sysbench", program).thread_of(common.process);
        w.task(TaskSpec { group: db.group, ..spec })
    }
}

/// Requests to a server and its replies.
type Sockets = (ChannelId, ChannelId);

/// A statement or its result.
const STATEMENT_BYTES: u32 = 100;
