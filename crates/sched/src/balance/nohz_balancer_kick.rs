//! Kicking an idle CPU to balance for those whose tick is stopped.
//!
//! A busy CPU that has more than its share notices that at its tick and interrupts one idle CPU. That costs an
//! interrupt and wakes the other CPU, so it does so only for good reasons; the time of the next kick is shared by
//! all CPUs.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use super::find_busiest_group::sched_asym_prefer;
use crate::{BalanceModel, Effect, Feature, NohzKickNext, Sched, Shared, Ticked};

/// The purpose of a kick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NohzKick {
    /// Balance (NOHZ_BALANCE_KICK).
    pub balance: bool,
    /// Update blocked load (NOHZ_STATS_KICK).
    pub stats: bool,
    /// Compute the next time (NOHZ_NEXT_KICK).
    pub next: bool,
}

impl NohzKick {
    /// Whether there is anything to do.
    pub fn any(self) -> bool {
        self.balance || self.stats || self.next
    }
}

impl Sched {
    /// The tick's part of balancing: whether the softirq is due, and which CPU to kick.
    ///
    /// Kernel: trigger_load_balance(), kernel/sched/fair.c, v6.1.
    pub fn trigger_load_balance(&mut self, cpu: CpuId, now: Time) -> Ticked {
        self.cpu_load_update(cpu, now);
        let idle = self.idle_cpu(cpu);
        if self.rqs[cpu].idle_balance != idle {
            self.rqs[cpu].idle_balance = idle;
        }
        let rq = &self.rqs[cpu];
        if !rq.active || self.domains.per_cpu[cpu].base.is_none() {
            return Ticked::default();
        }
        let jiffy = self.jiffies(now);
        Ticked { raise_balance: jiffy >= rq.next_balance, nohz_kick: self.nohz_balancer_kick(cpu, jiffy) }
    }

    /// Which idle CPU must balance for the idle ones, if any.
    ///
    /// Kernel: nohz_balancer_kick(), kernel/sched/fair.c, v7.2, v6.12, v5.5; nohz_kick_needed(), v4.13.
    #[inline]
    fn nohz_balancer_kick(&mut self, cpu: CpuId, jiffy: u64) -> Option<CpuId> {
        if self.rqs[cpu].idle_balance {
            return None;
        }
        self.nohz_balance_exit_idle(cpu);
        self.effects.push(Effect::read(cpu, Shared::Nohz));
        if self.nohz_idle_cpus.is_empty() {
            return None;
        }
        let stats = self.kernel.has(Feature::NohzBlockedLoad);
        let mut kick = NohzKick {
            stats: stats && self.nohz_has_blocked && jiffy > self.nohz_next_blocked,
            next: self.nohz_needs_update && self.kernel.has(Feature::NohzNextKick),
            balance: false,
        };
        if jiffy >= self.nohz_next_balance && self.has_too_much(cpu) {
            kick.balance = true;
            kick.stats = stats;
        }
        if kick.any() { self.kick_ilb(cpu, kick, jiffy) } else { None }
    }

    /// Reasons of a busy CPU to need help from idle ones.
    fn has_too_much(&self, cpu: CpuId) -> bool {
        let rq = &self.rqs[cpu];
        if rq.nr_running >= 2 {
            return true;
        }
        let shortcuts = &self.domains.per_cpu[cpu];
        if self.lb_h_nr(cpu) >= 1
            && shortcuts.base.is_some_and(|base| self.check_cpu_capacity(cpu, self.domains.sd(base)))
        {
            return true;
        }
        if let Some(asym) = shortcuts.asym_packing {
            let sd = self.domains.sd(asym);
            let mut idle = sd.span.iter().filter(|&other| self.nohz_idle_cpus.contains(other));
            if idle.any(|other| self.use_asym_prio(sd, other) && sched_asym_prefer(other, cpu)) {
                return true;
            }
        }
        // v4.13 has no such short cut.
        let asym = shortcuts.asym_cpucapacity;
        if let Some(asym) = asym.filter(|_| self.kernel.rules.balance_model == BalanceModel::Types) {
            return self.check_misfit_status(cpu, self.domains.sd(asym));
        }
        shortcuts.llc_shared.is_some_and(|shared| self.domains.shared[shared.0 as usize].nr_busy_cpus > 1)
    }

    /// Chooses the first idle CPU without tick and sets its work. `None` if there is none, or it has already
    /// been kicked.
    ///
    /// A CPU counts as tickless until its next tick finds it busy. So the first one may run something by now, and v4.13
    /// then kicks no CPU.
    ///
    /// Kernel: kick_ilb(), kernel/sched/fair.c, v6.12 and v4.13.
    fn kick_ilb(&mut self, cpu: CpuId, kick: NohzKick, jiffy: u64) -> Option<CpuId> {
        match self.kernel.rules.nohz_kick_next {
            NohzKickNext::OneMore => self.nohz_next_balance += 1,
            NohzKickNext::NextTick if kick.balance => self.nohz_next_balance = jiffy + 1,
            NohzKickNext::NextTick => {}
        }
        let ilb = if self.kernel.has(Feature::NohzFindsNext) {
            self.find_new_ilb(cpu)?
        } else {
            self.nohz_idle_cpus.first().filter(|&first| self.idle_cpu(first))?
        };
        let pending = &mut self.rqs[ilb].nohz_kick;
        let was_pending = pending.any();
        pending.balance |= kick.balance;
        pending.stats |= kick.stats;
        pending.next |= kick.next;
        if was_pending {
            return None;
        }
        self.effects.push(crate::Effect::NohzKick { cpu: ilb });
        Some(ilb)
    }

    /// The first idle CPU without tick; one whose core is idle too takes precedence.
    ///
    /// Kernel: find_new_ilb(), kernel/sched/fair.c, v6.12, v7.3.
    fn find_new_ilb(&self, cpu: CpuId) -> Option<CpuId> {
        let mut idle = self.nohz_idle_cpus.iter().filter(|&other| other != cpu && self.idle_cpu(other));
        if !self.kernel.has(Feature::NohzWholeCore) || !self.domains.smt_active {
            return idle.next();
        }
        let first = idle.next()?;
        let whole = core::iter::once(first).chain(idle).find(|&other| self.is_core_idle(other));
        Some(whole.unwrap_or(first))
    }

    /// The interrupt that kicks a CPU arrives. True if it is still idle, so that its balance
    /// softirq must run.
    ///
    /// Kernel: nohz_csd_func(), kernel/sched/core.c, v6.1, v6.12, v7.2; got_nohz_idle_kick() before v5.8.
    pub fn nohz_kicked(&mut self, cpu: CpuId) -> bool {
        let asked = self.kernel.has(Feature::NohzKickAsked) && self.rqs[cpu].need_resched.any();
        let taken = self.kernel.has(Feature::NohzKickTaken);
        let idle = self.idle_cpu(cpu);
        let balances = idle && !asked;
        let rq = &mut self.rqs[cpu];
        if taken {
            rq.idle_balance = idle;
            let kick = core::mem::take(&mut rq.nohz_kick);
            if balances {
                rq.nohz_idle_balance = kick;
            }
        } else if balances {
            rq.idle_balance = true;
        } else {
            rq.nohz_kick = NohzKick::default();
        }
        balances
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use expect_test::{Expect, expect};
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    use super::NohzKick;
    use crate::balance::drawings::settled;
    use crate::drawing::{NOW, by_kernel};

    /// The CPU that the tick of CPU 0 kicks, and the purpose.
    #[track_caller]
    fn check_kick(drawing: &str, expected: Expect) {
        expected.assert_eq(&by_kernel("", |kernel| {
            let mut drawn = settled(kernel, drawing);
            let ticked = drawn.sched.trigger_load_balance(CpuId(0), NOW);
            match ticked.nohz_kick {
                None => "nobody".to_string(),
                Some(cpu) => {
                    let NohzKick { balance, stats, next } = drawn.sched.rqs[cpu].nohz_kick;
                    format!("{cpu}: balance {balance}, stats {stats}, next {next}")
                }
            }
        }));
    }

    #[test]
    fn a_cpu_with_two_tasks_asks_for_help() {
        check_kick(
            "1x1x4 | 0[a* b] 1[c*]",
            expect![[r#"
                v4.13: 2: balance true, stats false, next false
                v5.5..v7.3: 2: balance true, stats true, next false"#]],
        );
    }

    #[test]
    fn one_with_a_task_to_itself_does_not() {
        check_kick("1x1x4 | 0[a*]", expect!["v4.13..v7.3: nobody"]);
    }

    #[test]
    fn unless_others_of_its_cache_are_busy_too() {
        check_kick(
            "1x1x4 | 0[a*] 1[b*]",
            expect![[r#"
                v4.13: 2: balance true, stats false, next false
                v5.5..v7.3: 2: balance true, stats true, next false"#]],
        );
    }

    #[test]
    fn or_its_capacity_is_reduced() {
        check_kick(
            "1x1x4 | 0[a* ;capacity=700]",
            expect![[r#"
                v4.13: 1: balance true, stats false, next false
                v5.5..v7.3: 1: balance true, stats true, next false"#]],
        );
    }

    #[test]
    fn where_capacities_differ_only_misfit_tasks_ask() {
        // Two CPUs of a cache are busy; v4.13 does not check capacities.
        check_kick(
            "1x1x4:capacity=0-1/446 | 0[a*] 1[b*]",
            expect![[r#"
                v4.13: 2: balance true, stats false, next false
                v5.5..v7.3: nobody"#]],
        );
    }

    #[test]
    fn without_idle_cpus_there_is_nobody_to_ask() {
        check_kick("1x1x2 | 0[a* b] 1[c*]", expect!["v4.13..v7.3: nobody"]);
    }

    #[test]
    fn whether_another_is_asked_when_the_first_is_busy_again() {
        let kicked = |kernel: &str| {
            let mut drawn = settled(kernel, "1x1x4 | 0[a* b] 1[c*] 2[] 3[]");
            // CPU 1 had no tick since it went idle and got work.
            drawn.sched.nohz_idle_cpus.set(CpuId(1));
            drawn
                .sched
                .trigger_load_balance(CpuId(0), NOW)
                .nohz_kick
                .map_or("nobody".to_string(), |cpu| cpu.to_string())
        };
        expect![[r#"
            v4.13: nobody
            v5.5..v7.3: 2"#]]
        .assert_eq(&by_kernel("", kicked));
    }

    #[test]
    fn one_whose_core_is_idle_goes_before_the_first_since_v7_3() {
        check_kick(
            "llc0: (0[a* b] 1[]) (2[c*] 3[]) (4[] 5[])",
            expect![[r#"
            v4.13: 1: balance true, stats false, next false
            v5.5..v7.2: 1: balance true, stats true, next false
            v7.3: 4: balance true, stats true, next false"#]],
        );
        check_kick(
            "llc0: (0[a* b] 1[]) (2[c*] 3[])",
            expect![[r#"
            v4.13: 1: balance true, stats false, next false
            v5.5..v7.3: 1: balance true, stats true, next false"#]],
        );
    }

    #[test]
    fn a_cpu_is_asked_once_and_no_more_than_once_a_jiffy() {
        let mut drawn = settled("v6.12", "1x1x4 | 0[a* b] 1[c* d]");
        let sched = &mut drawn.sched;
        assert_eq!(sched.trigger_load_balance(CpuId(0), NOW).nohz_kick, Some(CpuId(2)));
        assert_eq!(sched.trigger_load_balance(CpuId(1), NOW).nohz_kick, None, "not in this jiffy");
        let next = Time(NOW.0 + sched.tick_ns());
        assert_eq!(sched.trigger_load_balance(CpuId(1), next).nohz_kick, None, "CPU 2 is on its way");
    }

    #[test]
    fn a_kick_puts_the_next_one_off() {
        // CPU 0 requests balancing, then, with nothing to move, an update of the idle CPUs' load.
        let next = |kernel: &str| {
            let told = ["0[a* b] 1[] 2[]", "0[a*] 1[] 2[]"].map(|queues| {
                let mut drawn = settled(kernel, &format!("1x1x3 | {queues}"));
                let sched = &mut drawn.sched;
                let jiffy = sched.jiffies(NOW);
                sched.nohz_next_balance = jiffy - 10;
                (sched.nohz_has_blocked, sched.nohz_next_blocked) = (true, 0);
                let kicked = sched.trigger_load_balance(CpuId(0), NOW).nohz_kick.is_some();
                format!("{kicked} {:+}", sched.nohz_next_balance as i64 - jiffy as i64)
            });
            told.join(", ")
        };
        expect![[r#"
            v4.13: true -9, false -10
            v5.5: true -9, true -9
            v5.18..v7.3: true +1, true -10"#]]
        .assert_eq(&by_kernel("", next));
    }

    #[test]
    fn one_that_is_asked_to_switch_though_nobody_is_queued_may_go_on() {
        let kicked = |kernel: &str| {
            let mut drawn = settled(kernel, "1x1x4 | 0[a* b c] 1[] 2[] 3[]");
            let kicked = drawn.sched.trigger_load_balance(CpuId(0), NOW).nohz_kick.unwrap();
            drawn.sched.rqs[kicked].need_resched.full = true;
            drawn.sched.nohz_kicked(kicked).to_string()
        };
        expect![[r#"
            v4.13..v5.18: false
            v6.1: true
            v6.3..v6.10: false
            v6.12..v7.3: true"#]]
        .assert_eq(&by_kernel("", kicked));
    }
}
