//! Balancing on behalf of CPUs whose tick is stopped.
//!
//! An idle CPU gets no ticks and so never balances. A busy CPU that has more than it should interrupts one of the idle
//! CPUs, and that CPU makes the passes of all idle ones. The decaying load of idle CPUs is updated in the same way, at
//! most every 32 ms.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use super::NohzKick;
use crate::{Effect, Feature, IdleType, NewidleAges, NewidleGate, NohzSelf, Sched, SdId, Shared};

/// Ticks between updates of idle CPUs' load, ms.
const BLOCKED_PERIOD_MS: u64 = 32;

impl Sched {
    /// Whether a CPU that goes idle stops its tick, given its expected idle time, ns (`None` without a governor), and
    /// the time to its next timer.
    ///
    /// Kernel: cpuidle_idle_call(), v5.10, v6.12; menu_select(), v4.17; tick_nohz_stop_sched_tick(), v4.13.
    pub fn stops_tick(&self, expected_ns: Option<u64>, timer_ns: u64) -> bool {
        if !self.kernel.has(Feature::TickStopPredicted) {
            return timer_ns > self.tick_ns();
        }
        match expected_ns {
            Some(ns) => ns >= self.tick_ns(),
            None => !self.kernel.has(Feature::TickKeptUngoverned),
        }
    }

    /// A CPU stops its tick to be idle.
    ///
    /// Kernel: nohz_balance_enter_idle(), kernel/sched/fair.c, v6.12.
    pub fn nohz_balance_enter_idle(&mut self, cpu: CpuId) {
        if !self.rqs[cpu].active {
            return;
        }
        self.rqs[cpu].has_blocked_load = true;
        let stopped = self.rqs[cpu].nohz_tick_stopped;
        // The last CPU that is left, or one that is isolated, is in no domain.
        if !stopped && self.domains.per_cpu[cpu].base.is_none() {
            return;
        }
        self.nohz_has_blocked = true;
        if stopped {
            return;
        }
        self.rqs[cpu].nohz_tick_stopped = true;
        self.nohz_idle_cpus.set(cpu);
        self.effects.push(Effect::write(cpu, Shared::Nohz));
        self.nohz_needs_update = true;
        self.set_cpu_sd_state(cpu, true);
    }

    /// A CPU has its first tick after being idle.
    ///
    /// Kernel: nohz_balance_exit_idle(), kernel/sched/fair.c, v6.12.
    pub fn nohz_balance_exit_idle(&mut self, cpu: CpuId) {
        if !self.rqs[cpu].nohz_tick_stopped {
            return;
        }
        self.rqs[cpu].nohz_tick_stopped = false;
        self.nohz_idle_cpus.clear(cpu);
        self.effects.push(Effect::write(cpu, Shared::Nohz));
        self.set_cpu_sd_state(cpu, false);
    }

    /// A CPU no longer counts as busy in its cache, or does again.
    ///
    /// Kernel: set_cpu_sd_state_idle(), set_cpu_sd_state_busy(), kernel/sched/fair.c, v6.12.
    fn set_cpu_sd_state(&mut self, cpu: CpuId, idle: bool) {
        let cut = &mut self.domains.per_cpu[cpu];
        if let Some(shared) = cut.llc_shared
            && cut.nohz_idle != idle
        {
            cut.nohz_idle = idle;
            self.domains.shared[shared.0 as usize].nr_busy_cpus += if idle { -1 } else { 1 };
        }
    }

    /// Domains were rebuilt. Each domain counts as just balanced, the CPUs of a cache as busy although they stopped
    /// their ticks.
    ///
    /// Kernel: sd_init(), kernel/sched/topology.c, v6.12 and v5.5.
    pub(crate) fn after_rebuild(&mut self, now: Time) {
        let jiffy = self.jiffies(now);
        let decays_later = self.kernel.rules.newidle_gate == NewidleGate::DomainCost;
        for sd in &mut self.domains.sds {
            sd.last_balance = jiffy;
            if decays_later {
                sd.last_decay_max_lb_cost = jiffy;
            }
        }
        self.init_sched_groups_capacity(now);
        for cpu in self.nohz_idle_cpus.clone().iter() {
            if !self.rqs[cpu].active {
                self.nohz_idle_cpus.clear(cpu);
                self.rqs[cpu].nohz_tick_stopped = false;
            }
        }
        self.number_llcs();
        // Domains count who prefers which cache. Tasks that are queued now are counted again when they are queued next.
        for (_, rq) in self.rqs.iter_mut() {
            rq.llc_counts.clear();
        }
    }

    /// The softirq of a CPU that was kicked: passes for all idle CPUs. False if it was not
    /// kicked for the idle.
    ///
    /// Kernel: nohz_idle_balance(), kernel/sched/fair.c, v6.12 and v5.5.
    pub fn nohz_idle_balance(&mut self, cpu: CpuId, idle: IdleType, now: Time) -> bool {
        let taken = self.kernel.has(Feature::NohzKickTaken);
        let rq = &mut self.rqs[cpu];
        let kick = core::mem::take(if taken { &mut rq.nohz_idle_balance } else { &mut rq.nohz_kick });
        if !kick.any() || idle != IdleType::Idle {
            return false;
        }
        self.balance_the_idle(cpu, kick, idle, now);
        true
    }

    /// Kernel: _nohz_idle_balance(), kernel/sched/fair.c, v6.12 and v5.5; nohz_idle_balance(), v4.13.
    fn balance_the_idle(&mut self, this_cpu: CpuId, kick: NohzKick, idle: IdleType, now: Time) {
        let jiffy = self.jiffies(now);
        let apart = self.kernel.rules.nohz_self == NohzSelf::Apart;
        let mut next_balance = jiffy + 60 * self.kernel.tunables.hz;
        let (mut has_blocked, mut update_next) = (false, false);
        if kick.stats {
            self.nohz_has_blocked = false;
        }
        if kick.next {
            self.nohz_needs_update = false;
        }
        for cpu in self.nohz_order(this_cpu) {
            if !self.idle_cpu(cpu) {
                continue;
            }
            // This CPU got work: the next CPU to be kicked continues.
            if !self.idle_cpu(this_cpu) && self.rqs[this_cpu].need_resched.any() {
                self.nohz_has_blocked |= kick.stats || has_blocked;
                self.nohz_needs_update |= kick.next;
                if apart && update_next {
                    self.nohz_next_balance = next_balance;
                }
                return;
            }
            if kick.stats {
                has_blocked |= self.update_nohz_stats(this_cpu, cpu, apart, now);
            }
            if jiffy >= self.rqs[cpu].next_balance {
                self.effects.push(Effect::lock(this_cpu, Shared::Rq(cpu)));
                self.update_rq_clock(cpu, now);
                self.cpu_load_update(cpu, now);
                if kick.balance {
                    // Later kernels age the load of the idle above.
                    if !self.kernel.has(Feature::NohzBlockedLoad) {
                        self.update_blocked_averages(cpu, now);
                    }
                    self.balance_idle_cpu(this_cpu, cpu, now);
                }
            }
            if self.rqs[cpu].next_balance < next_balance {
                next_balance = self.rqs[cpu].next_balance;
                update_next = true;
            }
        }
        if apart && self.kernel.has(Feature::NohzIncludesSelf) {
            if idle != IdleType::NewlyIdle {
                self.update_blocked_averages(this_cpu, now);
                has_blocked |= self.rqs[this_cpu].has_blocked_load;
            }
            if kick.balance {
                self.balance_idle_cpu(this_cpu, this_cpu, now);
            }
        }
        if update_next {
            self.nohz_next_balance = next_balance;
        }
        if kick.stats {
            self.nohz_next_blocked = jiffy + self.msecs_to_jiffies(BLOCKED_PERIOD_MS);
        }
        self.nohz_has_blocked |= has_blocked;
    }

    fn balance_idle_cpu(&mut self, by: CpuId, cpu: CpuId, now: Time) {
        self.nohz_balancing = Some(by);
        self.rebalance_domains(cpu, IdleType::Idle, now);
        self.nohz_balancing = None;
    }

    /// Idle CPUs in the order they are served: behind this one round to it; or the others in order of
    /// number.
    fn nohz_order(&self, this_cpu: CpuId) -> alloc::vec::Vec<CpuId> {
        let idle = &self.nohz_idle_cpus;
        match self.kernel.rules.nohz_self {
            NohzSelf::Apart => idle.iter().filter(|&cpu| cpu != this_cpu).collect(),
            NohzSelf::Alike if self.kernel.has(Feature::NohzWrap) => {
                idle.iter_wrap(this_cpu.index() + 1).collect()
            }
            NohzSelf::Alike => idle.iter().collect(),
        }
    }

    /// Decays the load of an idle CPU, once per jiffy if nothing forces it. True if some is left.
    ///
    /// Kernel: update_nohz_stats(), kernel/sched/fair.c, v6.12 and v5.5.
    fn update_nohz_stats(&mut self, by: CpuId, cpu: CpuId, force: bool, now: Time) -> bool {
        if !self.rqs[cpu].has_blocked_load || !self.nohz_idle_cpus.contains(cpu) {
            return false;
        }
        if force || self.jiffies(now) > self.rqs[cpu].last_blocked_load_update {
            self.effects.push(Effect::lock(by, Shared::Rq(cpu)));
            self.update_blocked_averages(cpu, now);
            return self.rqs[cpu].has_blocked_load;
        }
        true
    }

    /// Decays the load of the idle CPUs of a domain before a newly idle CPU's pass, once per jiffy.
    ///
    /// Kernel: update_sd_lb_stats(), kernel/sched/fair.c, v5.5, LBF_NOHZ_STATS and LBF_NOHZ_AGAIN.
    pub(super) fn age_idle_before_pass(&mut self, by: CpuId, sd: SdId, now: Time) {
        if !self.kernel.has(Feature::NohzBlockedLoad)
            || self.kernel.rules.newidle_ages != NewidleAges::InPasses
            || !self.nohz_has_blocked
        {
            return;
        }
        let span = self.domains.sd(sd).span.clone();
        let mut has_blocked = false;
        for cpu in span.iter() {
            has_blocked |= self.update_nohz_stats(by, cpu, false, now);
        }
        if has_blocked && self.nohz_idle_cpus.is_subset(&span) {
            self.nohz_next_blocked = self.jiffies(now) + self.msecs_to_jiffies(BLOCKED_PERIOD_MS);
        }
    }

    /// A CPU that found nothing and will be idle for a while updates the load of the idle CPUs: at once, or in later
    /// kernels on its way into the idle loop.
    ///
    /// Kernel: nohz_newidle_balance(), kernel/sched/fair.c, v6.12 and v5.5.
    pub(super) fn nohz_newidle_balance(&mut self, cpu: CpuId, now: Time) {
        if !self.kernel.has(Feature::NohzBlockedLoad)
            || self.rqs[cpu].avg_idle < self.kernel.tunables.migration_cost_ns
            || !self.nohz_has_blocked
            || self.jiffies(now) < self.nohz_next_blocked
        {
            return;
        }
        match self.kernel.rules.newidle_ages {
            NewidleAges::InPasses => self.balance_the_idle(cpu, STATS, IdleType::NewlyIdle, now),
            NewidleAges::IfIdle => self.rqs[cpu].newilb = true,
        }
    }

    /// A CPU enters the idle loop: it updates the load of the idle CPUs if it meant to. If its tick has been stopped
    /// since before its last task ran, it is one of them, and its clock of averages has caught up.
    ///
    /// Kernel: nohz_run_idle_balance(), kernel/sched/fair.c, do_idle(), kernel/sched/idle.c, v5.13, v6.12.
    #[inline]
    pub fn nohz_run_idle_balance(&mut self, cpu: CpuId, now: Time) {
        let rq = &mut self.rqs[cpu];
        if core::mem::take(&mut rq.newilb) && !rq.nohz_kick.any() && !rq.need_resched.any() {
            self.balance_the_idle(cpu, STATS, IdleType::NewlyIdle, now);
        }
    }
}

/// Only the load of the idle CPUs is updated.
const STATS: NohzKick = NohzKick { stats: true, balance: false, next: false };

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    use expect_test::expect;
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    use crate::balance::NohzKick;
    use crate::balance::drawings::{queues, settled};
    use crate::drawing::{Drawn, NOW, by_kernel, draw};

    #[test]
    fn a_tick_is_kept_for_a_short_sleep_or_only_for_a_timer() {
        let stops = |kernel: &str| {
            let drawn = draw(kernel, "1x1x2 | 0[]");
            [
                (Some(100_000), 50_000_000),
                (Some(9_000_000), 50_000_000),
                (Some(1_000_000), 1_000_000),
                (None, 50_000_000),
            ]
            .map(|(expected, timer)| drawn.sched.stops_tick(expected, timer).to_string())
            .join(" ")
        };
        expect![[r#"
            v4.13: true true false true
            v5.5..v5.18: false true false true
            v6.1: false true false false
            v6.3..v6.10: false true false true
            v6.12..v7.3: false true false false"#]]
        .assert_eq(&by_kernel("", stops));
    }

    #[test]
    fn busy_cpus_of_a_cache_are_counted() {
        let mut drawn = settled("v6.12", "2x1x2 | 0[a*] 1[] 2[] 3[]");
        let busy =
            |drawn: &Drawn| drawn.sched.domains.shared.iter().map(|s| s.nr_busy_cpus).collect::<Vec<_>>();
        assert_eq!(busy(&drawn), [1, 0]);
        drawn.sched.nohz_balance_exit_idle(CpuId(2));
        assert_eq!(busy(&drawn), [1, 1]);
        drawn.sched.nohz_balance_enter_idle(CpuId(2));
        drawn.sched.nohz_balance_enter_idle(CpuId(2));
        assert_eq!(busy(&drawn), [1, 0]);
    }

    #[test]
    fn the_next_kick_follows_from_the_cpus_that_were_served() {
        // All are due; CPU 1 serves the rest, has a longer interval than they, then makes a round of its own.
        let next = |kernel: &str| {
            let mut drawn = settled(kernel, "1x1x4 | 0[a*] 1[] 2[] 3[]");
            let sched = &mut drawn.sched;
            let jiffy = sched.jiffies(NOW);
            for cpu in [2, 3].map(CpuId) {
                sched.rqs[cpu].next_balance = jiffy + 20;
            }
            let kick = NohzKick { balance: true, stats: true, next: false };
            sched.rqs[CpuId(1)].nohz_kick = kick;
            assert!(sched.nohz_kicked(CpuId(1)));
            sched.run_rebalance_domains(CpuId(1), NOW);
            let after = sched.nohz_next_balance - jiffy;
            sched.rebalance_domains(CpuId(1), crate::IdleType::Idle, NOW);
            format!("in {after}, then in {} jiffies", sched.nohz_next_balance - jiffy)
        };
        expect![[r#"
            v4.13: in 2, then in 2 jiffies
            v5.5: in 20, then in 2 jiffies
            v5.18..v7.3: in 2, then in 2 jiffies"#]]
        .assert_eq(&by_kernel("", next));
    }

    #[test]
    fn new_domains_count_all_cpus_as_busy_and_as_just_balanced() {
        let mut drawn = settled("v6.12", "1x1x4 | 0[a*] 1[] 2[] 3[]");
        let busy = |drawn: &Drawn| drawn.sched.domains.shared[0].nr_busy_cpus;
        let before = busy(&drawn);
        // Long after a CPU last read its clock.
        let later = Time(NOW.0 + 40_000_000);
        drawn.sched.rebuild_domains(later);
        let rebuilt = busy(&drawn);
        drawn.sched.nohz_balance_exit_idle(CpuId(1));
        let left = busy(&drawn);
        drawn.sched.nohz_balance_enter_idle(CpuId(1));
        assert_eq!([before, rebuilt, left, busy(&drawn)], [1, 4, 4, 3]);
        assert!(drawn.sched.nohz_idle_cpus.contains(CpuId(2)), "still without tick");
        let sched = &drawn.sched;
        assert!(sched.domains.sds.iter().all(|sd| sd.last_balance == sched.jiffies(later)));
    }

    #[test]
    fn the_load_of_a_cpu_without_domains_asks_no_other_to_update_it() {
        let mut drawn = draw("v6.12", "1x1x2 | 0[]");
        let sched = &mut drawn.sched;
        sched.set_online(CpuId(1), false, NOW);
        sched.nohz_balance_enter_idle(CpuId(0));
        assert!(sched.rqs[CpuId(0)].has_blocked_load && !sched.nohz_has_blocked);
        sched.set_online(CpuId(1), true, NOW);
        sched.nohz_balance_enter_idle(CpuId(0));
        assert!(sched.nohz_has_blocked);
    }

    #[test]
    fn idle_cpus_are_served_in_turn() {
        let order = |kernel: &str| {
            let drawn = settled(kernel, "1x1x6 | 0[a*] 3[b*]");
            let order = drawn.sched.nohz_order(CpuId(2));
            order.iter().map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(" ")
        };
        expect![[r#"
            v4.13..v5.5: 1 4 5
            v5.18..v7.3: 4 5 1 2"#]]
        .assert_eq(&by_kernel("", order));
    }

    #[test]
    fn the_kicked_cpu_makes_the_passes_of_all_idle_ones() {
        let after = |kernel: &str| {
            let mut drawn = settled(kernel, "1x1x4 | 0[a* b c d e ;util=1020] 1[] 2[] 3[]");
            let sched = &mut drawn.sched;
            let kicked = sched.trigger_load_balance(CpuId(0), NOW).nohz_kick.unwrap();
            assert!(sched.nohz_kicked(kicked));
            sched.run_rebalance_domains(kicked, NOW);
            queues(&drawn)
        };
        expect![[r#"
            v4.13: 0[a* b] 1[c] 2[e] 3[d]
            v5.5: 0[a*] 1[] 2[b c d e] 3[]
            v5.18..v7.3: 0[a*] 1[e] 2[b c] 3[d]"#]]
        .assert_eq(&by_kernel("", after));
    }

    #[test]
    fn a_softirq_before_the_interrupt_arrives_serves_the_idle_ones_only_up_to_v5_7() {
        let after = |kernel: &str| {
            let mut drawn = settled(kernel, "1x1x4 | 0[a* b c d e ;util=1020] 1[] 2[] 3[]");
            let sched = &mut drawn.sched;
            let kicked = sched.trigger_load_balance(CpuId(0), NOW).nohz_kick.unwrap();
            // None of its own domains is due.
            let (jiffy, base) = (sched.jiffies(NOW), sched.domains.per_cpu[kicked].base.unwrap());
            sched.domains.sd_mut(base).last_balance = jiffy;
            sched.rqs[kicked].idle_balance = true;
            sched.run_rebalance_domains(kicked, NOW);
            queues(&drawn)
        };
        expect![[r#"
            v4.13: 0[a* b c] 1[] 2[e] 3[d]
            v5.5: 0[a*] 1[] 2[b c d e] 3[]
            v5.18..v7.3: 0[a* b c d e] 1[] 2[] 3[]"#]]
        .assert_eq(&by_kernel("", after));
    }

    #[test]
    fn a_cpu_that_got_work_meanwhile_does_not() {
        let mut drawn = settled("v6.12", "1x1x4 | 0[a* b c] 1[] 2[] 3[]");
        let kicked = drawn.sched.trigger_load_balance(CpuId(0), NOW).nohz_kick.unwrap();
        let task = drawn.make("x", kicked);
        drawn.queue(task);
        assert!(!drawn.sched.nohz_kicked(kicked));
        drawn.sched.run_rebalance_domains(kicked, NOW);
        assert_eq!(queues(&drawn), "0[a* b c] 1[x] 2[] 3[]");
    }

    #[test]
    fn load_of_idle_cpus_is_aged_every_32_ms() {
        let aged = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x4 | 0[a*] 1[] 2[] 3[]");
            let sched = &mut drawn.sched;
            for cpu in [2, 3].map(CpuId) {
                let root = sched.root_cfs_id(cpu);
                let clock = sched.cfs_rq_clock_pelt(root);
                let avg = &mut sched.cfs_mut(root).avg;
                (avg.load_avg, avg.load_sum, avg.last_update_time) = (1000, 47_000_000, clock);
                sched.list_add_leaf_cfs_rq(root);
                sched.nohz_balance_enter_idle(cpu);
            }
            let mut text = String::new();
            for ms in [4, 20, 40, 60, 80] {
                let now = Time(NOW.0 + ms * 1_000_000);
                sched.nohz_next_balance = u64::MAX / 2;
                if let Some(cpu) = sched.trigger_load_balance(CpuId(0), now).nohz_kick {
                    sched.nohz_kicked(cpu);
                    sched.run_rebalance_domains(cpu, now);
                }
                text += &format!("{} ", sched.cpu_load(CpuId(3)));
            }
            text
        };
        expect![[r#"
            v4.13: 0 0 0 0 0 
            v5.5..v7.3: 926 926 440 440 192 "#]]
        .assert_eq(&by_kernel("", aged));
    }

    #[test]
    fn a_cpu_that_went_idle_has_the_next_time_computed_anew() {
        // CPU 3 went idle and is due in 5 jiffies, long before another CPU will ask.
        let next = |kernel: &str| {
            let mut drawn = settled(kernel, "1x1x4 | 0[a*] 1[b*] 2[] 3[]");
            let sched = &mut drawn.sched;
            let jiffy = sched.jiffies(NOW);
            sched.nohz_next_balance = jiffy + 1000;
            sched.nohz_balance_exit_idle(CpuId(3));
            for (cpu, ticks) in [(2, 9), (3, 5)] {
                sched.rqs[CpuId(cpu)].next_balance = jiffy + ticks;
            }
            sched.nohz_balance_enter_idle(CpuId(3));
            sched.nohz_has_blocked = false;
            if let Some(cpu) = sched.trigger_load_balance(CpuId(0), NOW).nohz_kick {
                assert!(sched.nohz_kicked(cpu));
                sched.run_rebalance_domains(cpu, NOW);
            }
            format!("in {} jiffies", sched.nohz_next_balance - jiffy)
        };
        expect![[r#"
            v4.13..v5.5: in 1000 jiffies
            v5.18..v7.3: in 5 jiffies"#]]
        .assert_eq(&by_kernel("", next));
    }
}
