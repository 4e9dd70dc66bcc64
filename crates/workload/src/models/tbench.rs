//! tbench: clients that send the packets of a load file, each to its own server.
//!
//! A client reads an operation of the load file, sends a packet of its size over a TCP socket of the loopback device
//! and waits for the reply. The server (`tbench_srv`) does no work for it: it reads the length, then the rest, and sends
//! as many bytes as the packet asks for. Client and server read a packet in two calls.
//!
//! The packets are those of `sockio.c` of dbench for the operations of `client.txt` (dbench 4.0, 458341 of them): two
//! of three are names and attributes below 200 bytes; a quarter are reads, mostly of 4 KB and some of 60 KB; one in
//! twelve is a write, a third of them of 64 KB. A packet is 5.3 KB on average, both ways together. Here each operation is
//! drawn with these odds, as clients soon are at different places of the file.
//!
//! Left out: the order of the file, connecting, delayed acknowledgements, and that a client throws the data of a
//! reply away without copying it (`MSG_TRUNC`).

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{ChannelKind, Measure, MeasureRule, STEADY, TaskSpec, Test, WorkloadBuilder};

/// Operations of the load file: how many of 1000, bytes of the request, bytes of the reply.
const OPERATIONS: [(u32, u32, u32); 8] = [
    (15, 55, 11_850), // reads of 8 to 32 KB
    (21, 15_500, 41), // other writes
    (22, 4_147, 41),  // writes of 4 KB
    (28, 65_587, 41), // writes of 64 KB
    (36, 55, 61_444), // reads of 60 KB
    (38, 55, 1_520),  // reads of up to 2 KB
    (181, 55, 4_100), // reads of 4 KB
    (659, 75, 76),    // names, attributes, and writes of a byte
];
/// Bytes of the length before each packet, which are read first.
const HEADER: u32 = 4;

params! {
    /// tbench; see the module.
    Tbench = "tbench" {
        /// Clients, and as many servers.
        clients: u32 = 1,
        /// Work of a client for an operation: it parses a line of the load file.
        client_work: Duration = Duration::micros(1),
        /// Work of a server for a packet.
        server_work: Duration = Duration::nanos(100),
        /// Time of a packet in the network stack, as for netperf over TCP.
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

impl Tbench {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let (done, steady) = (w.label("tbench done"), w.label(STEADY));
        let room =
            OPERATIONS.iter().map(|&(_, asked, sent)| asked.max(sent)).fold(self.socket_bytes, u32::max);
        let mut children = Vec::new();
        for i in 0..self.clients {
            let request = w.channel(format!("request {i}"), ChannelKind::Socket, room);
            let reply = w.channel(format!("reply {i}"), ChannelKind::Socket, room);
            // What the first bytes of a packet say.
            let operation = w.word(format!("operation {i}"), 0);
            let server = w.program(format!("tbench_srv {i}"), |p| {
                p.own_comm().forever(|p| {
                    let (labels, next) = (OPERATIONS.map(|_| p.label()), p.label());
                    p.read(request, HEADER);
                    for (n, &label) in labels.iter().enumerate().skip(1) {
                        p.jump_if(operation, Test::Equal, n as i32, label);
                    }
                    for (&label, (_, asked, sent)) in labels.iter().zip(OPERATIONS) {
                        p.place(label).read(request, asked - HEADER).run(self.server_work);
                        p.run_kernel(self.stack).write(reply, sent).jump(next);
                    }
                    p.place(next);
                });
            });
            let client = w.program(format!("tbench {i}"), |p| {
                p.own_comm().forever(|p| {
                    let (labels, next) = (OPERATIONS.map(|_| p.label()), p.label());
                    p.run(self.client_work);
                    let mut left = 1000;
                    for (&label, (odds, ..)) in labels.iter().zip(OPERATIONS) {
                        p.jump_odds((odds * 1000 / left) as u16, label);
                        left -= odds;
                    }
                    for (n, (&label, (_, asked, sent))) in labels.iter().zip(OPERATIONS).enumerate() {
                        p.place(label).word_set(operation, n as i32);
                        p.run_kernel(self.stack).write(request, asked);
                        p.read(reply, HEADER).read(reply, sent - HEADER).jump(next);
                    }
                    p.place(next).mark(done, 1);
                });
            });
            children.push(TaskSpec { background: true, ..TaskSpec::forked("tbench_srv", server) });
            children.push(TaskSpec { background: true, ..TaskSpec::forked("tbench", client) });
        }
        let children: Vec<_> = children.into_iter().map(|child| w.task(child)).collect();
        let main = w.program("tbench-main", |p| {
            for child in children {
                p.fork(child);
            }
            p.sleep(self.warmup).mark(steady, 0).sleep(self.wall).exit_group();
        });
        w.task(TaskSpec { start_cpu: self.start_cpu, ..TaskSpec::root("tbench-main", main) });
        w.measure(Measure {
            name: "transactions".to_string(),
            unit: "/s",
            lower_is_better: false,
            rule: MeasureRule::Rate { label: done },
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_those_of_the_load_file() {
        let mean =
            |of: fn(&(u32, u32, u32)) -> u32| OPERATIONS.iter().map(|op| op.0 * of(op)).sum::<u32>() / 1000;
        assert_eq!(OPERATIONS.iter().map(|op| op.0).sum::<u32>(), 1000);
        // client.txt of dbench 4.0: WriteX has 2215 and ReadX 3212 bytes for each of its operations.
        assert!((2_250..2_400).contains(&mean(|op| op.1)), "{}", mean(|op| op.1));
        assert!((3_150..3_350).contains(&mean(|op| op.2)), "{}", mean(|op| op.2));
    }
}
