//! `tg->load_avg`: the sum of a group's load over all CPUs, one counter that every CPU
//! of the group writes and reads.
//!
//! It is one cache line per group, and with many CPUs the hottest of the scheduler.
//! Every write and read is reported as an effect, so that the machine can charge for
//! it. A change of less than 1/64 of the CPU's own part is not written. Two ways to
//! cool the line are rules: one counter per node (2023, not merged), and at most one
//! write per ms and CPU (v6.7).

use crate::clock::PELT_EPOCH;
use crate::{CfsRqId, Effect, Feature, Sched, TgId};
use schedlab_topology::CpuId;

/// Shortest time between writes of one CPU, ns.
const RATE_LIMIT: u64 = 1_000_000;

impl Sched {
    /// Writes what a queue's load changed by to its group, if that is worth it.
    ///
    /// The CPU reported as writer is the queue's own; a remote enqueue inside a cache is
    /// done by a neighbour, which the effect does not tell.
    ///
    /// Kernel: update_tg_load_avg(), kernel/sched/fair.c, v6.12, v6.1 and v4.13.
    #[inline]
    pub fn update_tg_load_avg(&mut self, cfs: CfsRqId) {
        let queue = &self.cfs_rqs[cfs.0 as usize];
        if queue.tg == TgId::ROOT {
            return;
        }
        let rq = &self.rqs[queue.cpu];
        // v7.2 asks the run queue's clock, v6.7 to v6.12 the CPU's: all callers have just
        // brought the former to the latter.
        let now = rq.clock + PELT_EPOCH;
        let limited = self.kernel.has(Feature::TgLoadAvgRateLimit);
        if limited && (!rq.active || now - queue.last_update_tg_load_avg < RATE_LIMIT) {
            return;
        }
        let delta = queue.avg.load_avg as i64 - queue.tg_load_avg_contrib as i64;
        if delta.unsigned_abs() > queue.tg_load_avg_contrib / 64 {
            self.write_tg_load_avg(cfs, delta, now);
        }
    }

    /// A CPU goes offline: its queues no longer count in their groups.
    ///
    /// Kernel: clear_tg_offline_cfs_rqs(), kernel/sched/fair.c, v6.8.
    pub fn clear_tg_offline_cfs_rqs(&mut self, cpu: CpuId) {
        if !self.kernel.has(Feature::TgLoadAvgRateLimit) {
            return;
        }
        let now = self.rqs[cpu].clock + PELT_EPOCH;
        for tg in 1..self.tgs.len() {
            let cfs = self.tgs[tg].cfs_rq[cpu.index()];
            let contrib = self.cfs(cfs).tg_load_avg_contrib as i64;
            self.write_tg_load_avg(cfs, -contrib, now);
        }
    }

    fn write_tg_load_avg(&mut self, cfs: CfsRqId, delta: i64, now: u64) {
        let queue = &mut self.cfs_rqs[cfs.0 as usize];
        queue.tg_load_avg_contrib =
            queue.tg_load_avg_contrib.checked_add_signed(delta).expect("a contribution is not negative");
        queue.last_update_tg_load_avg = now;
        let (tg, cpu) = (queue.tg, queue.cpu);
        let counters = &mut self.tgs[tg.0 as usize].load_avg;
        let node = if counters.len() == 1 { 0 } else { self.topology.cpu(cpu).node.0 as usize };
        counters[node] += delta;
        self.effects.push(Effect::TgLoadAvgWrite { tg, cpu });
    }

    /// Reads the load of a queue's group: one counter, or the sum over all nodes.
    #[inline]
    pub(crate) fn read_tg_load_avg(&mut self, cfs: CfsRqId) -> i64 {
        let queue = self.cfs(cfs);
        let (tg, cpu) = (queue.tg, queue.cpu);
        self.effects.push(Effect::TgLoadAvgRead { tg, cpu });
        self.tg(tg).load_avg.iter().sum()
    }
}
