//! Waiting for the lines that hold a group's load average.
//!
//! Each of the group's counters is one line, or one per node in kernels that split it
//! ([`schedlab_machine::Line`]). A CPU that reads or writes a line that it does not have stalls until the
//! line arrives, and accesses of one path follow each other:
//!
//! ```text
//!   path of the kernel |== read ==|===== write =====|-- what else it costs --| user mode
//!                      ^ the CPU stands             ^ and goes on
//! ```
//!
//! Waiting time is counted per node and kernel function, as a profile would show it.
//!
//! Left out: another CPU notices a wake-up only after the waker's wait.

use std::collections::VecDeque;

use schedlab_machine::{Line, Mechanism, Work};
use schedlab_sched::{Scheduler, TgId};
use schedlab_topology::{CpuId, NodeId, PerCpu};
use schedlab_units::{Duration, Time};

use crate::account::Part;
use crate::engine::Engine;
use crate::event::Event;
use crate::profile::Profile;
use crate::rng::Stream;

/// An access to a counter.
#[derive(Clone, Copy, Debug)]
struct Access {
    line: u32,
    write: bool,
}

/// What a CPU still has to access; the first is in progress while it is stalled.
#[derive(Clone, Debug, Default)]
struct Path {
    ahead: VecDeque<Access>,
    stands_since: Time,
}

/// The lines in use.
#[derive(Clone)]
pub(crate) struct Lines {
    /// Counters of a group.
    pub counters: usize,
    /// By group, then counter; made when first used.
    lines: Vec<Option<Line>>,
    paths: PerCpu<Path>,
    dice: Stream,
    pub profile: Profile,
}

impl Lines {
    pub fn new(nr_cpus: usize, nr_nodes: usize, counters: usize, seed: u64) -> Lines {
        Lines {
            counters,
            lines: Vec::new(),
            paths: PerCpu::new(nr_cpus, |_| Path::default()),
            dice: Stream::new(seed, "lines", 0),
            profile: Profile::new(nr_nodes),
        }
    }
}

impl<S: Scheduler> Engine<'_, S> {
    /// A CPU reads or writes a group's load average.
    pub fn tg_load_avg(&mut self, tg: TgId, cpu: CpuId, write: bool) {
        if tg == TgId::ROOT {
            return;
        }
        let node = usize::from(self.machine.topology.cpu(cpu).node.0);
        let counts = &mut self.lines.profile.nodes[node];
        if write {
            counts.writes += 1;
        } else {
            // The plain work of both is part of the price of queueing a task, or dequeueing it. Like all work
            // it takes longer at a lower clock and beside a busy sibling, and is counted accordingly.
            let (cost, rate) = (&self.machine.cost, self.cpus[cpu].rate);
            let takes = |ns: u64| Duration(Work::nanos(ns).time_at(rate));
            counts.reads += 1;
            counts.update_cfs_group += takes(cost.update_cfs_group_ns.get());
            counts.update_load_avg += takes(cost.update_load_avg_ns.get());
        }
        if !self.machine.has(Mechanism::CacheLines) {
            return;
        }
        let counters = self.lines.counters;
        let first = tg.0 as usize * counters;
        let wanted = match write {
            true if counters > 1 => first + node..first + node + 1,
            _ => first..first + counters,
        };
        for line in wanted {
            self.find_line(tg, line);
            self.lines.paths[cpu].ahead.push_back(Access { line: line as u32, write });
        }
        if !self.cpus[cpu].stands {
            self.next_access(cpu);
        }
    }

    /// Creates a line on the node where the kernel allocates it.
    fn find_line(&mut self, tg: TgId, index: usize) {
        let lines = &mut self.lines;
        if index >= lines.lines.len() {
            lines.lines.resize(index + 1, None);
        }
        if lines.lines[index].is_none() {
            let home = match lines.counters {
                1 => self.sched.home_node(tg),
                counters => (index % counters) as u16,
            };
            lines.lines[index] = Some(Line::new(&self.machine.topology, NodeId(home)));
        }
    }

    /// The CPU continues with its accesses until it has to wait for one.
    fn next_access(&mut self, cpu: CpuId) {
        while let Some(&Access { line, write }) = self.lines.paths[cpu].ahead.front() {
            let (topology, prices) = (&self.machine.topology, &self.machine.line);
            let state = self.lines.lines[line as usize].as_mut().expect("found when asked for");
            let Some(ns) = state.request(topology, prices, cpu, write) else {
                self.advance(cpu);
                self.cpus[cpu].stands = true;
                self.lines.paths[cpu].stands_since = self.now;
                return self.start_transfer(line);
            };
            self.accessed(cpu, write, ns);
            self.charge_time(cpu, Part::Lines, ns);
            self.lines.paths[cpu].ahead.pop_front();
        }
    }

    fn accessed(&mut self, cpu: CpuId, write: bool, ns: u64) {
        let node = usize::from(self.machine.topology.cpu(cpu).node.0);
        let node = &mut self.lines.profile.nodes[node];
        *if write { &mut node.update_load_avg } else { &mut node.update_cfs_group } += Duration(ns);
    }

    fn start_transfer(&mut self, line: u32) {
        let coin = self.lines.dice.next() % 1000;
        let state = self.lines.lines[line as usize].as_mut().expect("found when asked for");
        if let Some(ns) = state.start(&self.machine.topology, &self.machine.line, coin) {
            self.queue.push(self.now + Duration(ns), Event::Line { line });
        }
    }

    /// A line has reached the CPUs it was sent to.
    pub fn line_comes(&mut self, line: u32) {
        let state = self.lines.lines[line as usize].as_mut().expect("it was sent");
        let served: Vec<CpuId> = state.finish().collect();
        self.start_transfer(line);
        for cpu in served {
            let path = &mut self.lines.paths[cpu];
            let access = path.ahead.pop_front().expect("it waited for this");
            let waited = self.now.since(path.stands_since).0;
            self.accessed(cpu, access.write, waited);
            // A CPU on its way to the idle loop is not yet idle.
            if self.is_idle(cpu) {
                let node = usize::from(self.machine.topology.cpu(cpu).node.0);
                self.lines.profile.nodes[node].busy += Duration(waited);
            }
            self.advance(cpu);
            self.cpus[cpu].stands = false;
            self.next_access(cpu);
            if !self.cpus[cpu].stands {
                self.arm_next(cpu);
            }
        }
    }
}
