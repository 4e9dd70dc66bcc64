//! Periodic balancing of a CPU: one pass over each of its domains that is due.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::{Effect, Feature, IdleType, NohzSelf, Sched, SchedDomain, SdFlags, Shared};

impl Sched {
    /// Ticks until a domain's next pass.
    ///
    /// Kernel: get_sd_balance_interval(), kernel/sched/fair.c, v6.12 and v5.5.
    pub(crate) fn get_sd_balance_interval(&self, sd: &SchedDomain, busy: bool) -> u64 {
        let factor = if busy { u64::from(sd.busy_factor) } else { 1 };
        let mut interval = self.msecs_to_jiffies(sd.balance_interval * factor);
        // So that busy levels are not due together.
        if busy && self.kernel.has(Feature::BusyIntervalLessOne) {
            interval = interval.saturating_sub(1);
        }
        interval.clamp(1, self.max_load_balance_interval)
    }

    /// Balances the domains of a CPU that are due, from the lowest up.
    ///
    /// Kernel: rebalance_domains(), kernel/sched/fair.c, v6.1 and v5.5; sched_balance_domains() from v6.10 on.
    pub fn rebalance_domains(&mut self, cpu: CpuId, mut idle: IdleType, now: Time) {
        let (jiffy, hz) = (self.jiffies(now), self.kernel.tunables.hz);
        let mut busy = self.counts_as_busy(cpu, idle);
        let mut next_balance = jiffy + 60 * hz;
        let (mut go_on, mut update_next, mut need_decay) = (true, false, false);
        let mut max_cost = 0;
        let mut next = self.domains.per_cpu[cpu].base;
        while let Some(id) = next {
            need_decay = self.domains.sd_mut(id).decay_newidle_cost(jiffy, hz);
            let sd = self.domains.sd(id);
            next = sd.parent;
            max_cost += sd.max_newidle_lb_cost;
            if !go_on {
                if need_decay {
                    continue;
                }
                break;
            }
            let mut due = sd.last_balance + self.get_sd_balance_interval(sd, busy);
            if jiffy >= due {
                if sd.flags.has(SdFlags::SERIALIZE) && !self.kernel.has(Feature::SerializeInside) {
                    self.effects.push(Effect::write(cpu, Shared::Serialize));
                }
                let decision = self.load_balance(cpu, id, idle, now);
                go_on = decision.continue_balancing;
                if decision.moved > 0 {
                    idle = if self.idle_cpu(cpu) { IdleType::Idle } else { IdleType::NotIdle };
                    busy = self.counts_as_busy(cpu, idle);
                }
                self.domains.sd_mut(id).last_balance = jiffy;
                due = jiffy + self.get_sd_balance_interval(self.domains.sd(id), busy);
            }
            if due < next_balance {
                next_balance = due;
                update_next = true;
            }
        }
        if need_decay {
            let floor = self.kernel.tunables.migration_cost_ns;
            self.rqs[cpu].max_idle_balance_cost = max_cost.max(floor);
        }
        if update_next {
            self.rqs[cpu].next_balance = next_balance;
            if idle == IdleType::Idle && self.kernel.rules.nohz_self == NohzSelf::Apart {
                self.nohz_next_balance = self.nohz_next_balance.min(next_balance);
            }
        }
    }

    /// A CPU that runs only SCHED_IDLE tasks balances as often as an idle one (v5.6).
    fn counts_as_busy(&self, cpu: CpuId, idle: IdleType) -> bool {
        let only_idle_tasks = self.kernel.has(Feature::SchedIdleBalancesOften) && self.sched_idle_cpu(cpu);
        idle != IdleType::Idle && !only_idle_tasks
    }

    /// The balance softirq of a CPU: for the idle CPUs if it was kicked for that, else for itself.
    ///
    /// Kernel: run_rebalance_domains(), kernel/sched/fair.c, v6.1 and v4.13.
    pub fn run_rebalance_domains(&mut self, cpu: CpuId, now: Time) {
        let idle = if self.rqs[cpu].idle_balance { IdleType::Idle } else { IdleType::NotIdle };
        let for_others = self.nohz_idle_balance(cpu, idle, now);
        if for_others && self.kernel.has(Feature::NohzIncludesSelf) {
            return;
        }
        self.update_blocked_averages(cpu, now);
        self.rebalance_domains(cpu, idle, now);
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use expect_test::{Expect, expect};
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    use crate::IdleType;
    use crate::balance::drawings::queues;
    use crate::drawing::{NOW, by_kernel, draw};

    /// Intervals in jiffies of all levels of CPU 0.
    #[track_caller]
    fn check_intervals(with: &str, machine: &str, busy: bool, expected: Expect) {
        expected.assert_eq(&by_kernel(with, |kernel| {
            let drawn = draw(kernel, &format!("{machine} | 0[]"));
            let sched = &drawn.sched;
            let intervals: Vec<_> = sched
                .domains
                .walk(CpuId(0))
                .map(|(_, sd)| format!("{} {}", sd.name, sched.get_sd_balance_interval(sd, busy)))
                .collect();
            intervals.join(", ")
        }));
    }

    #[test]
    fn larger_domains_are_balanced_less_often_and_busy_cpus_even_less() {
        check_intervals(
            "",
            "2x2x4x2",
            false,
            expect![[r#"
                v4.13..v6.3: SMT 1, MC 2, DIE 4, NUMA 8
                v6.10..v7.3: SMT 1, MC 2, PKG 4, NUMA 8"#]],
        );
        check_intervals(
            "",
            "2x2x4x2",
            true,
            expect![[r#"
                v4.13..v5.5: SMT 16, MC 64, DIE 128, NUMA 256
                v5.18..v6.3: SMT 7, MC 31, DIE 63, NUMA 127
                v6.10..v7.3: SMT 7, MC 31, PKG 63, NUMA 127"#]],
        );
        check_intervals(
            "+hz=1000",
            "2x2x4x2",
            true,
            expect![[r#"
                v4.13..v5.5: SMT 64, MC 256, DIE 512, NUMA 1024
                v5.18..v6.3: SMT 31, MC 127, DIE 255, NUMA 511
                v6.10..v7.3: SMT 31, MC 127, PKG 255, NUMA 511"#]],
        );
    }

    #[test]
    fn no_interval_is_longer_than_a_tenth_of_a_second_per_cpu() {
        check_intervals(
            "",
            "1x1x2",
            true,
            expect![[r#"
                v4.13..v5.5: MC 16
                v5.18..v7.3: MC 7"#]],
        );
    }

    /// Queues after one round of CPU 0, and when the next is due.
    #[track_caller]
    fn check_round(drawing: &str, idle: IdleType, expected: Expect) {
        expected.assert_eq(&by_kernel("", |kernel| {
            let mut drawn = draw(kernel, drawing);
            for cpu in (0..drawn.sched.rqs.len()).map(CpuId::from) {
                let load = drawn.sched.cpu_load(cpu);
                drawn.sched.rqs[cpu].cpu_load = [load; 5];
            }
            let jiffy = drawn.sched.jiffies(NOW);
            drawn.sched.rebalance_domains(CpuId(0), idle, NOW);
            let next = drawn.sched.rqs[CpuId(0)].next_balance - jiffy;
            format!("{}, next in {next}", queues(&drawn))
        }));
    }

    #[test]
    fn an_idle_cpu_takes_from_each_level_until_it_has_work() {
        check_round(
            "2x1x2 | 0[] 1[a* b] 2[c* d e] 3[f*]",
            IdleType::Idle,
            expect![[r#"
                v4.13: 0[e] 1[a* b] 2[c* d] 3[f*], next in 1
                v5.5: 0[b d] 1[a*] 2[c* e] 3[f*], next in 16
                v5.18..v6.3: 0[b d] 1[a*] 2[c* e] 3[f*], next in 7
                v6.10..v7.3: 0[b] 1[a*] 2[c* d e] 3[f*], next in 7"#]],
        );
    }

    #[test]
    fn a_busy_one_takes_from_overloaded_groups() {
        check_round(
            "1x1x2 | 0[a* ;util=700] 1[b* c d e ;util=1020 runnable=4000]",
            IdleType::NotIdle,
            expect![[r#"
                v4.13: 0[a* d e] 1[b* c], next in 16
                v5.5: 0[a* c d e] 1[b*], next in 16
                v5.18..v6.3: 0[a* c] 1[b* d e], next in 7
                v6.10..v7.3: 0[a*] 1[b* c d e], next in 15"#]],
        );
    }

    #[test]
    fn a_level_is_visited_when_its_interval_is_over() {
        let mut drawn = draw("v6.12", "2x1x4 | 0[] 4[a* b c]");
        let sched = &mut drawn.sched;
        let jiffy = sched.jiffies(NOW);
        let levels: Vec<_> = sched.domains.walk(CpuId(0)).map(|(id, _)| id).collect();
        for &id in &levels {
            sched.domains.sd_mut(id).last_balance = jiffy;
        }
        sched.rebalance_domains(CpuId(0), IdleType::Idle, NOW);
        assert_eq!(queues(&drawn), "0[] 1[] 2[] 3[] 4[a* b c] 5[] 6[] 7[]", "no time has passed");
        let sched = &mut drawn.sched;
        assert_eq!(sched.rqs[CpuId(0)].next_balance, jiffy + 1, "4 ms are one tick");
        let two_ticks = Time(NOW.0 + 2 * sched.tick_ns());
        sched.rebalance_domains(CpuId(0), IdleType::Idle, two_ticks);
        assert_eq!(queues(&drawn), "0[b] 1[] 2[] 3[] 4[a* c] 5[] 6[] 7[]");
    }

    #[test]
    fn a_cpu_of_sched_idle_tasks_is_as_eager_as_an_idle_one() {
        // The pass finds nothing and doubles the interval to 4 ms, one jiffy; busy CPUs
        // wait 32 (v5.5) times as long.
        check_round(
            "1x1x2 | 0[idle:a*] 1[]",
            IdleType::NotIdle,
            expect![[r#"
                v4.13..v5.5: 0[a*] 1[], next in 25
                v5.18..v7.3: 0[a*] 1[], next in 1"#]],
        );
    }
}
