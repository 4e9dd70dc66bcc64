//! `tg->load_avg`: the sum of a group's load over all CPUs, one counter that every CPU
//! of the group writes and reads.
//!
//! It is one cache line per group, and with many CPUs the hottest of the scheduler.
//! Every write and read is reported as an effect, so that the machine can charge for
//! it. A change of less than 1/64 of the CPU's own part is not written. Two ways to
//! cool the line are rules: one counter per node (2023, not merged), and at most one
//! write per ms and CPU (v6.7).

use crate::clock::PELT_EPOCH;
use crate::{CfsRqId, Effect, Feature, Sched, Shared, TgId, TgLoadClock};
use schedlab_topology::CpuId;

/// Shortest time between writes of one CPU, ns.
const RATE_LIMIT: u64 = 1_000_000;

impl Sched {
    /// Adds the change of a queue's load to its group, if the change is large enough.
    ///
    /// The CPU reported as writer is the queue's own. A remote enqueue within a cache is done by a neighbour, which the
    /// effect does not show.
    ///
    /// Kernel: update_tg_load_avg(), kernel/sched/fair.c, v6.12, v6.1 and v4.13.
    #[inline]
    pub fn update_tg_load_avg(&mut self, cfs: CfsRqId) {
        let queue = &self.cfs_rqs[cfs.0 as usize];
        if queue.tg == TgId::ROOT {
            return;
        }
        let rq = &self.rqs[queue.cpu];
        let clock = match self.kernel.rules.tg_load_clock {
            TgLoadClock::CpuClock => rq.ktime(),
            TgLoadClock::RqClock => rq.clock,
        };
        let now = clock + PELT_EPOCH;
        let limited = self.kernel.has(Feature::TgLoadAvgRateLimit);
        if limited && (!rq.active || now - queue.last_update_tg_load_avg < RATE_LIMIT) {
            return;
        }
        let delta = queue.avg.load_avg as i64 - queue.tg_load_avg_contrib as i64;
        if self.kernel.has(Feature::ConcurShares) {
            let tasks = queue.avg.runnable_avg as i64 - queue.tg_runnable_avg_contrib as i64;
            if delta.unsigned_abs() > queue.tg_load_avg_contrib / 64
                || tasks.unsigned_abs() > queue.tg_runnable_avg_contrib / 64
            {
                self.write_tg_load_avg(cfs, delta, now);
                self.count_tg_tasks(cfs, tasks);
            }
        } else if delta.unsigned_abs() > queue.tg_load_avg_contrib / 64 {
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
            let (cfs, _) = self.made_on_cpu(TgId(tg as u32), cpu);
            let contrib = self.cfs(cfs).tg_load_avg_contrib as i64;
            let runnable = self.cfs(cfs).tg_runnable_avg_contrib as i64;
            self.write_tg_load_avg(cfs, -contrib, now);
            self.count_tg_tasks(cfs, -runnable);
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
        self.effects.push(Effect::write(cpu, Shared::TgLoadAvg(tg)));
    }

    /// The average number of runnable tasks is written together with the load.
    fn count_tg_tasks(&mut self, cfs: CfsRqId, delta: i64) {
        let queue = &mut self.cfs_rqs[cfs.0 as usize];
        queue.tg_runnable_avg_contrib = queue.tg_runnable_avg_contrib.wrapping_add_signed(delta);
        self.tgs[queue.tg.0 as usize].runnable_avg += delta;
    }

    /// Reads the load of a queue's group: one counter, or the sum over all nodes.
    #[inline]
    pub(crate) fn read_tg_load_avg(&mut self, cfs: CfsRqId) -> i64 {
        let queue = self.cfs(cfs);
        let (tg, cpu) = (queue.tg, queue.cpu);
        self.effects.push(Effect::read(cpu, Shared::TgLoadAvg(tg)));
        self.tg(tg).load_avg.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use expect_test::expect;
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    use crate::TgId;
    use crate::clock::PELT_EPOCH;
    use crate::drawing::{NOW, by_kernel, draw};

    #[test]
    fn a_schedule_that_reads_no_clock_writes_by_the_cpus_own() {
        let written = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[]");
            let sched = &mut drawn.sched;
            let tg = sched.new_group(TgId::ROOT, 1_048_576, CpuId(0), NOW);
            let (cfs, _) = sched.made_on_cpu(tg, CpuId(0));
            let clock = sched.rqs[CpuId(0)].clock;
            sched.cfs_mut(cfs).last_update_tg_load_avg = clock + PELT_EPOCH - 700_000;
            sched.cfs_mut(cfs).avg.load_avg = 640;
            // The scheduler is called later, and was asked not to read the clock.
            sched.rqs[CpuId(0)].skip_clock_update = true;
            sched.schedule_clock(CpuId(0), Time(clock + 500_000));
            sched.update_tg_load_avg(cfs);
            format!("{}", sched.cfs(cfs).tg_load_avg_contrib)
        };
        expect![[r#"
            v4.13..v6.12: 640
            v7.2..v7.3: 0"#]]
        .assert_eq(&by_kernel("", written));
    }

    #[test]
    fn small_changes_and_changes_within_a_ms_are_not_written() {
        let writes = |kernel: &str| {
            let mut drawn = draw(kernel, "2x1x2 | 0[]");
            let sched = &mut drawn.sched;
            let tg = sched.new_group(TgId::ROOT, 1_048_576, CpuId(0), NOW);
            let mut outcome = String::new();
            for (us, cpu, load) in [
                (0, 0, 640),
                (100, 0, 650),
                (200, 0, 700),
                (2_000, 0, 710),
                (3_000, 0, 711),
                (3_000, 2, 10),
                (3_500, 0, 0),
            ] {
                let (cfs, _) = sched.made_on_cpu(tg, CpuId(cpu));
                sched.update_rq_clock(CpuId(cpu), Time(NOW.0 + us * 1_000 + 1));
                sched.cfs_mut(cfs).avg.load_avg = load;
                sched.effects.clear();
                sched.update_tg_load_avg(cfs);
                if !sched.effects.is_empty() {
                    outcome += &format!("{us}us cpu {cpu}: {:?}; ", sched.tg(tg).load_avg);
                }
            }
            outcome
        };
        expect![[r#"
            v4.13..v6.3: 0us cpu 0: [640]; 200us cpu 0: [700]; 3000us cpu 0: [711]; 3000us cpu 2: [721]; 3500us cpu 0: [10]; 
            v6.10..v7.3: 0us cpu 0: [640]; 2000us cpu 0: [710]; 3000us cpu 2: [720]; 3500us cpu 0: [10]; "#]].assert_eq(&by_kernel("", writes));
        expect![[r#"
            v4.13..v6.3: 0us cpu 0: [640, 0]; 200us cpu 0: [700, 0]; 3000us cpu 0: [711, 0]; 3000us cpu 2: [711, 10]; 3500us cpu 0: [0, 10]; 
            v6.10..v7.3: 0us cpu 0: [640, 0]; 2000us cpu 0: [710, 0]; 3000us cpu 2: [710, 10]; 3500us cpu 0: [0, 10]; "#]].assert_eq(&by_kernel("+TG_LOAD_AVG_PER_NODE", writes));
        expect!["0us cpu 0: [640]; 200us cpu 0: [700]; 3000us cpu 0: [711]; 3000us cpu 2: [721]; 3500us cpu 0: [10]; "].assert_eq(&writes("v6.12+NO_TG_LOAD_AVG_RATE_LIMIT"));
    }

    #[test]
    fn the_root_has_no_such_load_and_an_offline_cpu_gives_none() {
        let mut drawn = draw("v6.12", "1x1x2 | 0[]");
        let sched = &mut drawn.sched;
        let root = sched.root_cfs_id(CpuId(0));
        sched.cfs_mut(root).avg.load_avg = 999;
        sched.effects.clear();
        sched.update_tg_load_avg(root);
        assert!(sched.effects.is_empty());

        let tg = sched.new_group(TgId::ROOT, 1_048_576, CpuId(0), NOW);
        let (cfs, _) = sched.made_on_cpu(tg, CpuId(1));
        sched.cfs_mut(cfs).avg.load_avg = 500;
        sched.update_tg_load_avg(cfs);
        assert_eq!(sched.tg(tg).load_avg, [500]);
        sched.clear_tg_offline_cfs_rqs(CpuId(1));
        sched.rqs[CpuId(1)].active = false;
        sched.update_rq_clock(CpuId(1), Time(NOW.0 + 5_000_000));
        sched.update_tg_load_avg(cfs);
        assert_eq!(sched.tg(tg).load_avg, [0]);
    }
}
