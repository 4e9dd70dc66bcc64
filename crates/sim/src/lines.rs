//! Waiting for the lines that hold a group's load average.
//!
//! Each of the group's counters is one line (or one per node, if the kernel has it
//! so). A transfer takes as long as the way from who wrote last, transfers follow
//! each other, and whoever comes meanwhile waits. Readers of a line that nobody
//! wrote since their node read it have it at hand.
//!
//! Left out here: that the home node's requests overtake older ones
//! (`cacheline.home_first_permille`), which needs the line's own queue of events.

use std::collections::BTreeMap;

use schedlab_machine::Mechanism;
use schedlab_sched::TgId;
use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::engine::Engine;

/// A counter's line.
#[derive(Clone, Debug, Default)]
struct Line {
    writer: Option<CpuId>,
    /// Nodes that have a copy, by number.
    copies: u64,
    free_at: Time,
}

/// The lines in use, by group and counter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(BTreeMap<(TgId, usize), Line>);

impl Engine<'_> {
    /// A CPU reads or writes a group's load average.
    pub fn tg_load_avg(&mut self, tg: TgId, cpu: CpuId, write: bool) {
        if tg == TgId::ROOT || !self.machine.has(Mechanism::CacheLines) {
            return;
        }
        let counters = self.sched.tg(tg).load_avg.len();
        let node = usize::from(self.machine.topology.cpu(cpu).node.0);
        if write {
            let counter = if counters > 1 { node } else { 0 };
            self.line_access(tg, counter, cpu, true);
        } else {
            for counter in 0..counters {
                self.line_access(tg, counter, cpu, false);
            }
        }
    }

    fn line_access(&mut self, tg: TgId, counter: usize, cpu: CpuId, write: bool) {
        let node = self.machine.topology.cpu(cpu).node.0;
        let bit = 1u64 << (node % 64);
        let line = self.lines.0.entry((tg, counter)).or_default();
        let own = line.writer == Some(cpu);
        let at_hand = if write { own && line.copies == 0 } else { own || line.copies & bit != 0 };
        let free_at = line.free_at;
        let writer = line.writer;
        let prices = &self.machine.line;
        if at_hand {
            self.charge(cpu, prices.hit_ns.get());
            return;
        }
        let way = match writer {
            Some(writer) if writer != cpu => self.line_ns(cpu, writer),
            Some(_) => prices.hit_ns.get(),
            None => prices.node_ns.get(),
        };
        let waits = free_at.since(self.now).0;
        let line = self.lines.0.entry((tg, counter)).or_default();
        line.free_at = self.now.max(free_at) + schedlab_units::Duration(way);
        if write {
            line.writer = Some(cpu);
            line.copies = 0;
        } else {
            line.copies |= bit;
        }
        self.charge(cpu, waits + way);
    }
}
