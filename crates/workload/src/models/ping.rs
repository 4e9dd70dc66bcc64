//! A ping flood from one CPU, and the softirqs that its replies cause there.
//!
//! `ping -l 10000 -q -s 10 -f`: thousands of small packets are in flight, and for each reply the next is
//! sent. The rate is set by the other host. One flow uses one receive queue, so all its interrupts hit one
//! CPU, and ping runs there too.
//!
//! Replies come at random at a given rate, each costing interrupt and softirq time
//! and letting ping send once. If ping falls behind, replies pile up; a real host
//! would stop answering after `-l` packets.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{CpuList, Dist, SourceSpec, TaskSpec, Trigger, WorkloadBuilder};

params! {
    /// A ping flood; see the module.
    Ping = "ping" {
        /// The CPU that runs ping and takes its interrupts.
        cpu: u16 = 0,
        /// Mean time from one reply to the next: 100 to 250 thousand a second.
        interval: Duration = Duration::nanos(6_700),
        /// Time of an interrupt outside its softirq, per reply.
        hard: Duration = Duration::nanos(200),
        /// Time of the softirq per reply, including the delivery to ping.
        soft: Duration = Duration::nanos(1_800),
        /// Kernel time of ping to send one packet.
        send: Duration = Duration::nanos(2_500),
        /// User time of ping per packet.
        work: Duration = Duration::nanos(300),
        /// Whether ping is pinned to the CPU.
        pinned: bool = false,
    }
}

impl Ping {
    /// Adds the task and the source of interrupts.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let cpu = CpuId(self.cpu);
        let replies = w.sem("ping replies", 0);
        let every = w.dist(Dist::Exponential { mean: self.interval });
        w.source(SourceSpec {
            name: "ping replies".to_string(),
            cpu,
            trigger: Trigger::Every(every),
            hard: self.hard,
            soft: self.soft,
            posts: Some(replies),
        });
        let cpus = CpuList::new([cpu]).filter(|_| self.pinned).map(|cpus| w.cpus(cpus));
        let program = w.program("ping", |p| {
            p.forever(|p| _ = p.sem_wait(replies).run(self.work).run_kernel(self.send));
        });
        w.task(TaskSpec { start_cpu: Some(cpu), cpus, ..TaskSpec::root("ping", program) });
    }
}
