//! Groups of processes that send messages through pipes: hackbench's pattern.
//!
//! The program `wl_pipes` of the recordings: all report that they are ready and
//! wait for one byte each; then every sender of a group writes to each receiver
//! of the group in turn. The real hackbench is in its own file.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::params;
use crate::{ChannelId, Measure, MeasureRule, TaskSpec, WorkloadBuilder};

params! {
    /// Senders and receivers; see the module.
    Pipes = "pipes" {
        /// Groups.
        groups: u32 = 4,
        /// Senders, and as many receivers, in a group.
        pairs: u32 = 5,
        /// Messages from each sender to each receiver.
        loops: u32 = 600,
        /// Size of a message.
        bytes: u32 = 100,
        /// Work of a process for each message, apart from the system call.
        work: Duration = Duration::nanos(50),
        /// The CPU on which the main process starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Pipes {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let (ready, go) = (w.pipe("ready"), w.pipe("go"));
        let (begin, end) = (w.label("pipes begin"), w.label("pipes end"));
        let mut children = Vec::new();
        for group in 0..self.groups {
            let pipes: Vec<ChannelId> =
                (0..self.pairs).map(|r| w.pipe(format!("pipe {}", group * self.pairs + r))).collect();
            for (r, &pipe) in (group * self.pairs..).zip(&pipes) {
                let program = w.program(format!("pp-r{r}"), |p| {
                    p.own_comm().write(ready, 1).read(go, 1);
                    p.repeat(self.pairs * self.loops, |p| _ = p.read(pipe, self.bytes).run(self.work));
                });
                children.push(w.task(TaskSpec::forked(format!("pp-r{r}"), program)));
            }
            let sender = w.program(format!("pp-s of group {group}"), |p| {
                p.own_comm().write(ready, 1).read(go, 1);
                p.repeat(self.loops, |p| {
                    for &pipe in &pipes {
                        p.run(self.work).write(pipe, self.bytes);
                    }
                });
            });
            for s in group * self.pairs..(group + 1) * self.pairs {
                children.push(w.task(TaskSpec::forked(format!("pp-s{s}"), sender)));
            }
        }
        let all = children.len() as u32;
        let main = w.program("pp-main", |p| {
            for child in children {
                p.fork(child);
            }
            p.repeat(all, |p| _ = p.read(ready, 1));
            p.mark(begin, 0).write(go, all).wait_children().mark(end, 0);
        });
        w.task(TaskSpec { start_cpu: self.start_cpu, ..TaskSpec::root("pp-main", main) });
        w.measure(Measure {
            name: "elapsed".to_string(),
            unit: "s",
            lower_is_better: true,
            rule: MeasureRule::Elapsed { from: begin, to: end },
        });
    }
}
