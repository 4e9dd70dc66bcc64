//! Clients and servers that send each other messages over sockets of one host: netperf.
//!
//! Each client has a server. In `rr` one request and one reply are in transit; in `stream` the client sends as long as
//! the socket has room. Sending costs the way through the network stack on the sender's CPU, which on a loopback device
//! ends at the receiver's socket: `stack` for each packet, in the kernel.
//!
//! Left out: delayed acknowledgements, Nagle's wait, windows; and a packet of the loopback device is handed over in a
//! soft interrupt that may run in another task's time.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::{choice, params};
use crate::{ChannelKind, Measure, MeasureRule, STEADY, TaskSpec, WorkloadBuilder};

choice! {
    /// The direction of the data.
    Way {
        /// One request, one reply.
        Rr = "rr",
        /// As much as the socket takes.
        Stream = "stream",
    }
}

params! {
    /// Requests and replies over sockets; see the module.
    Netperf = "netperf" {
        /// Clients, and as many servers.
        clients: u32 = 1,
        /// The direction of the data.
        way: Way = Way::Rr,
        /// Bytes of a request, or of a send of a stream.
        request: u32 = 1,
        /// Bytes of a reply.
        reply: u32 = 1,
        /// Work of a client between two requests.
        client_work: Duration = Duration::nanos(300),
        /// Work of a server for a request.
        server_work: Duration = Duration::nanos(300),
        /// Time of a packet in the network stack: about 1500ns for udp and 2500ns for tcp on a server of 2020.
        stack: Duration = Duration::nanos(2_500),
        /// Bytes that a socket holds.
        socket_bytes: u32 = 212_992,
        /// Warm-up, which is not measured.
        warmup: Duration = Duration::millis(10),
        /// Length of the measurement.
        wall: Duration = Duration::millis(40),
        /// The CPU on which the main process starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Netperf {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let (done, steady) = (w.label("netperf done"), w.label(STEADY));
        let mut children = Vec::new();
        for i in 0..self.clients {
            let room = |bytes: u32| self.socket_bytes.max(bytes);
            let request = w.channel(format!("request {i}"), ChannelKind::Socket, room(self.request));
            let reply = w.channel(format!("reply {i}"), ChannelKind::Socket, room(self.reply));
            let rr = self.way == Way::Rr;
            let server = w.program(format!("netserver {i}"), |p| {
                p.own_comm().forever(|p| {
                    p.read(request, self.request).run(self.server_work);
                    if rr {
                        p.run_kernel(self.stack).write(reply, self.reply);
                    } else {
                        p.mark(done, i64::from(self.request));
                    }
                });
            });
            let client = w.program(format!("netperf {i}"), |p| {
                p.own_comm().forever(|p| {
                    p.run(self.client_work).run_kernel(self.stack).write(request, self.request);
                    if rr {
                        p.read(reply, self.reply).mark(done, 1);
                    }
                });
            });
            children.push(TaskSpec { background: true, ..TaskSpec::forked("netserver", server) });
            children.push(TaskSpec { background: true, ..TaskSpec::forked("netperf", client) });
        }
        let children: Vec<_> = children.into_iter().map(|child| w.task(child)).collect();
        let main = w.program("netperf-main", |p| {
            for child in children {
                p.fork(child);
            }
            p.sleep(self.warmup).mark(steady, 0).sleep(self.wall).exit_group();
        });
        w.task(TaskSpec { start_cpu: self.start_cpu, ..TaskSpec::root("netperf-main", main) });
        let (name, unit) = match self.way {
            Way::Rr => ("transactions", "/s"),
            Way::Stream => ("throughput", "B/s"),
        };
        let rule = MeasureRule::Rate { label: done };
        w.measure(Measure { name: name.to_string(), unit, lower_is_better: false, rule });
    }
}
