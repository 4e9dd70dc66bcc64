//! The part of a group's weight that its entity on one CPU gets.
//!
//! The exact share needs the queued weight of the group on all CPUs. The slow sum `tg->load_avg` approximates
//! it, with this CPU's part replaced by the larger of its average and what is queued now, so that a group
//! that just woke up on an otherwise idle machine gets all of its weight at once.

use crate::{CfsRqId, Feature, Sched, SeId, TgId};

/// Least weight of a group's entity, unscaled.
pub(crate) const MIN_SHARES: u64 = 2;

impl Sched {
    /// Weight of the group's entity on the queue's CPU.
    ///
    /// Kernel: calc_group_shares(), kernel/sched/fair.c, v6.12; calc_cfs_shares() in v4.13.
    pub fn calc_group_shares(&mut self, cfs: CfsRqId) -> u64 {
        let tg_load = self.read_tg_load_avg(cfs);
        let queue = self.cfs(cfs);
        let tg_shares = self.shares_to_divide(queue.tg);
        let queued = self.scale_load_down(queue.load.weight);
        let load =
            if self.kernel.has(Feature::GroupLoadMax) { queued.max(queue.avg.load_avg) } else { queued };
        let tg_weight = tg_load - queue.tg_load_avg_contrib as i64 + load as i64;
        let mut shares = (tg_shares * load) as i64;
        if tg_weight != 0 {
            shares /= tg_weight;
        }
        shares.clamp(MIN_SHARES as i64, tg_shares.max(MIN_SHARES) as i64) as u64
    }

    /// The shares that the CPUs of a group divide in proportion to load.
    ///
    /// Kernel: calc_smp_shares(), calc_concur_shares(), kernel/sched/fair.c, v7.3.
    fn shares_to_divide(&self, tg: TgId) -> u64 {
        let group = self.tg(tg);
        if !self.kernel.has(Feature::ConcurShares) {
            return group.shares;
        }
        let tasks = (group.runnable_avg >> 10).max(1) as usize;
        let cpus = self.rqs.iter().filter(|(_, rq)| rq.online).take(tasks).count();
        group.shares * cpus.max(1) as u64
    }

    /// Sets a group entity's weight to its current share. Does nothing for tasks.
    ///
    /// Kernel: update_cfs_group(), kernel/sched/fair.c, v6.12, v6.1 and v7.2; update_cfs_shares() in v4.13.
    #[inline]
    pub fn update_cfs_group(&mut self, se: SeId) {
        if !se.is_task() {
            self.update_shares(se);
        }
    }

    fn update_shares(&mut self, se: SeId) {
        let Some(my_q) = self.se(se).my_q else { return };
        let queue = self.cfs(my_q);
        if queue.load.weight == 0 && self.kernel.has(Feature::KeepEmptyWeight) {
            return;
        }
        if queue.throttle_count > 0 && !self.kernel.has(Feature::BandwidthPerTask) {
            return;
        }
        let shares = self.calc_group_shares(my_q);
        let entity = self.se(se);
        if entity.load.weight == shares && self.kernel.has(Feature::ReweightIfChanged) {
            return;
        }
        let cfs = entity.cfs_rq.expect("entity has a queue");
        self.reweight_entity(cfs, se, shares);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::drawing::{NOW, by_kernel, draw};
    use crate::lab::{Lab, MS};
    use crate::{Effect, NewTask, Shared, TgId};

    /// Shares of the group, queued weight, average load, group's load, contribution; the weight of the entity by the
    /// larger of weight and load, and by weight alone (v4.13).
    const TABLE: [(u64, u64, u64, i64, u64, u64, u64); 6] = [
        (1_048_576, 1_048_576, 0, 0, 0, 1_048_576, 1_048_576),
        (1_048_576, 1_048_576, 500, 3000, 500, 304_694, 304_694),
        (1_048_576, 0, 700, 3000, 600, 236_775, 2),
        (1_048_576, 2_097_152, 100, 1900, 100, 558_077, 558_077),
        (15_360, 1_048_576, 1024, 8192, 1024, 1920, 1920),
        (104_857_600, 1024, 1, 100_000, 1, 1048, 1048),
    ];

    #[test]
    fn an_entity_gets_its_part_of_the_shares() {
        for (kernel, by_load) in [("v4.13", false), ("v5.5", true), ("v6.12", true), ("v7.2", true)] {
            for (row, &(shares, weight, load, tg_load, contrib, larger, weight_only)) in
                TABLE.iter().enumerate()
            {
                let mut drawn = draw(&alloc::format!("{kernel}+NO_SCALE_DOWN_FLOOR"), "1x1x2 | 0[]");
                let sched = &mut drawn.sched;
                let tg = sched.new_group(TgId::ROOT, shares, CpuId(0), NOW);
                let (cfs, _) = sched.made_on_cpu(tg, CpuId(0));
                sched.tgs[tg.0 as usize].shares = shares;
                sched.tgs[tg.0 as usize].load_avg[0] = tg_load;
                let queue = sched.cfs_mut(cfs);
                queue.load.weight = weight;
                queue.avg.load_avg = load;
                queue.tg_load_avg_contrib = contrib;
                sched.effects.clear();
                let expected = if by_load { larger } else { weight_only };
                assert_eq!(sched.calc_group_shares(cfs), expected, "{kernel}, row {row}");
                assert_eq!(sched.effects, [Effect::read(CpuId(0), Shared::TgLoadAvg(tg))]);
            }
        }
    }

    #[test]
    fn when_an_entity_is_given_its_weight_anew() {
        let reweighted = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[]");
            let sched = &mut drawn.sched;
            let tg = sched.new_group(TgId::ROOT, 1_048_576, CpuId(0), NOW);
            let (cfs, se) = sched.made_on_cpu(tg, CpuId(0));
            let se = se.expect("not the root");
            let mut outcome = alloc::string::String::new();
            for (what, weight, throttled, own) in [
                ("empty", 0, 0, 5000),
                ("same", 1_048_576, 0, 1_048_576),
                ("throttled", 1_048_576, 1, 5000),
                ("new", 1_048_576, 0, 5000),
            ] {
                sched.cfs_mut(cfs).load.weight = weight;
                sched.cfs_mut(cfs).throttle_count = throttled;
                sched.se_mut(se).load.weight = own;
                sched.effects.clear();
                sched.update_cfs_group(se);
                let read = if sched.effects.is_empty() { "" } else { " read" };
                outcome += &alloc::format!("{what} {}{read}; ", sched.se(se).load.weight);
            }
            outcome
        };
        expect![[r#"
            v4.13..v6.10: empty 2 read; same 1048576 read; throttled 5000; new 1048576 read; 
            v6.12: empty 5000; same 1048576 read; throttled 5000; new 1048576 read; 
            v7.2..v7.3: empty 5000; same 1048576 read; throttled 1048576 read; new 1048576 read; "#]]
        .assert_eq(&by_kernel("", reweighted));
    }

    #[test]
    fn a_group_has_its_shares_once_or_for_each_task_that_can_run() {
        let entity = |kernel: &str, runnable: i64, offline: usize| {
            let mut drawn = draw(kernel, "1x1x4 | 0[]");
            let sched = &mut drawn.sched;
            let tg = sched.new_group(TgId::ROOT, 1_048_576, CpuId(0), NOW);
            let (cfs, _) = sched.made_on_cpu(tg, CpuId(0));
            for cpu in 0..offline {
                sched.rqs[CpuId::from(3 - cpu)].online = false;
            }
            // One that is leaving counts until it is offline.
            sched.rqs[CpuId(0)].active = false;
            sched.tgs[tg.0 as usize].load_avg[0] = 4096;
            sched.tgs[tg.0 as usize].runnable_avg = runnable;
            sched.cfs_mut(cfs).load.weight = 1_048_576;
            sched.calc_group_shares(cfs)
        };
        // A fifth of the group's load is here. The average of runnable tasks, offline CPUs, and the weight.
        for (runnable, offline, weight) in [
            (0, 0, 209_715),
            (2047, 0, 209_715),
            (2048, 0, 419_430),
            (9 << 10, 0, 838_860),
            (9 << 10, 1, 629_145),
        ] {
            assert_eq!(entity("v7.3", runnable, offline), weight, "{runnable}, {offline}");
            assert_eq!(entity("v7.3+NO_CONCUR_SHARES", runnable, offline), 209_715);
        }
    }

    #[test]
    fn a_weight_that_stays_the_same_is_given_again_or_not() {
        // Setting a weight charges the group's running entity first.
        expect![[r#"
            v4.13..v6.3: charged 1000 us
            v6.10..v7.3: charged 0 us"#]]
        .assert_eq(&by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2").without_ticks();
            let tg = lab.sched.new_group(TgId::ROOT, 1_048_576, CpuId(0), lab.time());
            let a = lab.fork("a", 0, NewTask { tg, ..lab.spec() });
            assert_eq!(lab.sched.rqs[CpuId(0)].curr.task(), Some(a));
            let se = lab.sched.tg(tg).se[0];
            let before = lab.sched.se(se).sum_exec_runtime;
            lab.run(MS);
            lab.sched.update_rq_clock(CpuId(0), lab.time());
            lab.sched.update_cfs_group(se);
            assert_eq!(lab.sched.se(se).load.weight, 1_048_576);
            alloc::format!("charged {} us", (lab.sched.se(se).sum_exec_runtime - before) / 1000)
        }));
    }
}
