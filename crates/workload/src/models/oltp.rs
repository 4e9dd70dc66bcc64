//! An OLTP database whose storage is across a network.
//!
//! A closed network: each user thinks, then has a transaction of some statements, each with a storage access,
//! then thinks again. The storage cells together serve a limited number of requests at once; beyond that
//! requests queue, which bounds the rate when there are many users.
//!
//! Local users are tasks on the same machine, each with a server process, joined by
//! a socket. With `remote`, users are elsewhere: their requests come as interrupts
//! and softirqs, spread over `nic_queues` CPUs from CPU 0 on, and their thinking and
//! the network are one delay.
//!
//! Left out: locks inside the database; a transaction becomes more expensive with more users only through the
//! machine (sharing of cores, caches and clock).

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{
    Completion, CpuList, DeviceId, DeviceSpec, Dist, LabelId, Measure, MeasureRule, ProgramBuilder, STEADY,
    SourceSpec, Start, TaskSpec, Test, Trigger, WordId, WorkloadBuilder,
};

params! {
    /// OLTP; see the module.
    Oltp = "oltp" {
        /// How many users.
        users: u32 = 384,
        /// Whether they are on other machines.
        remote: bool = false,
        /// Warm-up, which is not measured.
        warmup: Duration = Duration::ZERO,
        /// Length of the measurement.
        wall: Duration = Duration::millis(2000),
        /// Mean think time of a user; for remote users it includes the network.
        think: Duration = Duration::micros(500),
        /// Statements in a transaction, each with a storage access.
        statements: u32 = 4,
        /// Mean work of a server for a statement.
        server_work: Duration = Duration::micros(150),
        /// Work of a local user for a statement.
        client_work: Duration = Duration::micros(40),
        /// Mean time of a storage access across the network; 0 for none.
        storage: Duration = Duration::micros(300),
        /// Requests that the storage cells serve at once.
        storage_depth: u32 = 280,
        /// CPUs that take the network's interrupts, from CPU 0 on.
        nic_queues: u16 = 16,
        /// Time of the interrupt and softirq for a remote request.
        softirq: Duration = Duration::micros(4),
        /// Cache footprint of a server, in bytes.
        footprint: u64 = 512 << 10,
        /// CPUs on which the servers start, evenly spread, as balancing leaves them after a second or two.
        spread: Option<CpuList> = None,
        /// The CPU on which the main process starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Oltp {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let stop = w.word("stop", 0);
        let (transaction, steady) = (w.label("transaction"), w.label(STEADY));
        let storage = (self.storage > Duration::ZERO).then(|| {
            let service = w.dist(Dist::Exponential { mean: self.storage });
            let completion = Completion::IrqSubmitter;
            w.device(DeviceSpec {
                name: "storage".to_string(),
                service,
                depth: self.storage_depth,
                completion,
            })
        });
        // They are not forked: a parent would make no progress among tasks that are already at work.
        let mut arrivals = 0;
        for user in 0..self.users {
            if self.remote {
                self.remote_user(w, user, storage, transaction, &mut arrivals);
            } else {
                self.local_user(w, user, storage, (stop, transaction), &mut arrivals);
            }
        }
        let main = w.program("oltp", |p| {
            p.sleep(ARRIVAL * u64::from(arrivals) + self.warmup);
            p.mark(steady, 0).sleep(self.wall).word_set(stop, 1);
        });
        w.task(TaskSpec { start_cpu: self.start_cpu, ..TaskSpec::root("oltp", main) });
        w.measure(Measure {
            name: "transactions".to_string(),
            unit: "/s",
            lower_is_better: false,
            rule: MeasureRule::Rate { label: transaction },
        });
    }

    /// A statement on the server's side.
    fn statement(
        &self,
        w: &mut WorkloadBuilder,
        storage: Option<DeviceId>,
    ) -> impl Fn(&mut ProgramBuilder) + use<> {
        let work = w.dist(Dist::Exponential { mean: self.server_work });
        move |p| {
            p.run_draw(work);
            if let Some(storage) = storage {
                p.block_read(storage, 8192);
            }
        }
    }

    fn local_user(
        &self,
        w: &mut WorkloadBuilder,
        user: u32,
        storage: Option<DeviceId>,
        (stop, transaction): (WordId, LabelId),
        arrivals: &mut u32,
    ) {
        let request = w.socket(format!("request {user}"));
        let reply = w.socket(format!("reply {user}"));
        let statement = self.statement(w, storage);
        let server = w.program("oltp server", |p| {
            p.forever(|p| {
                p.read(request, STATEMENT_BYTES);
                statement(p);
                p.write(reply, STATEMENT_BYTES);
            });
        });
        let think = w.dist(Dist::Exponential { mean: self.think });
        let client = w.program("oltp user", |p| {
            let (again, out) = (p.label(), p.label());
            p.place(again).jump_if(stop, Test::Differs, 0, out).sleep_draw(think);
            p.repeat(self.statements, |p| {
                p.run(self.client_work).write(request, STATEMENT_BYTES).read(reply, STATEMENT_BYTES);
            });
            p.mark(transaction, 1).jump(again).place(out);
        });
        let spec = TaskSpec::root("server", server);
        let server = TaskSpec { footprint: self.footprint, start_cpu: self.place(user), ..spec };
        for spec in [server, TaskSpec::root("client", client)] {
            arrive(w, spec, arrivals);
        }
    }

    fn remote_user(
        &self,
        w: &mut WorkloadBuilder,
        user: u32,
        storage: Option<DeviceId>,
        transaction: LabelId,
        arrivals: &mut u32,
    ) {
        // The first request is there from the start; each reply triggers the next one.
        let request = w.sem(format!("request {user}"), 1);
        let think = w.dist(Dist::Exponential { mean: self.think });
        let source = w.source(SourceSpec {
            name: format!("user {user}"),
            cpu: CpuId(user as u16 % self.nic_queues.max(1)),
            trigger: Trigger::Raised(think),
            hard: Duration::ZERO,
            soft: self.softirq,
            posts: Some(request),
        });
        let statement = self.statement(w, storage);
        let server = w.program("oltp server", |p| {
            p.forever(|p| {
                p.sem_wait(request).repeat(self.statements, &statement);
                p.mark(transaction, 1).raise(source);
            });
        });
        let spec = TaskSpec::root("server", server);
        arrive(w, TaskSpec { footprint: self.footprint, start_cpu: self.place(user), ..spec }, arrivals);
    }

    /// Where a server begins.
    fn place(&self, user: u32) -> Option<CpuId> {
        let cpus = self.spread.as_ref()?.cpus();
        let (user, users) = (user as usize, self.users as usize);
        Some(cpus[user * cpus.len() / users])
    }
}

/// Adds a task that starts after the previous ones.
fn arrive(w: &mut WorkloadBuilder, spec: TaskSpec, arrivals: &mut u32) {
    let start = Start::At(ARRIVAL * u64::from(*arrivals));
    w.task(TaskSpec { start, background: true, ..spec });
    *arrivals += 1;
}

/// Time from one task to the next at the beginning.
const ARRIVAL: Duration = Duration::micros(10);

/// A statement or its result.
const STATEMENT_BYTES: u32 = 100;
