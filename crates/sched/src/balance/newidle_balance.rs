//! Looking for work before a CPU goes idle.
//!
//! It is worth the time only if the CPU will be idle for longer than the search takes, so each domain
//! remembers how long its passes took and the CPU how long it is idle on average. Some kernels also decide at
//! random: the probability of visiting a domain is its recent success rate (NI_RANDOM).

use schedlab_topology::CpuId;
use schedlab_units::Time;

use super::BalanceDecision;
use crate::class::Class;
use crate::{Feature, IdleType, NewidleAges, NewidleGate, Reason, Sched, SdFlags, SdId};

/// What newly idle balancing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewidleOutcome {
    /// Fair tasks that the CPU now has: pulled, or queued by others.
    pub pulled: u32,
    /// There is work of a higher class: the pick must start again.
    pub higher_class: bool,
    /// Why it ended.
    pub reason: Reason,
    /// Time it took, ns.
    pub cost_ns: u64,
    /// CPUs examined.
    pub examined: u32,
}

/// A newly idle CPU, and the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newidle {
    /// The CPU.
    pub cpu: CpuId,
    /// What it did.
    pub outcome: NewidleOutcome,
    /// How long it is idle on average, ns.
    pub avg_idle: u64,
    /// The longest pass over its lowest domain, ns; `None` if it is in no domain.
    pub max_cost: Option<u64>,
}

impl Sched {
    /// Tries to find work for a CPU that has none.
    ///
    /// Kernel: newidle_balance(), kernel/sched/fair.c, v6.1, v5.18 and v5.5; sched_balance_newidle(), v6.12, v7.2.
    pub fn newidle_balance(&mut self, cpu: CpuId, now: Time) -> NewidleOutcome {
        let avg_idle = self.rqs[cpu].avg_idle;
        let outcome = self.look_for_work(cpu, now);
        if self.keeps_balance_reasons {
            self.balance_reasons.push(outcome.reason);
        }
        if self.balance_log.is_some() {
            let base = self.domains.per_cpu[cpu].base;
            let max_cost = base.map(|base| self.domains.sd(base).max_newidle_lb_cost);
            self.newidle_log.push(Newidle { cpu, outcome, avg_idle, max_cost });
        }
        outcome
    }

    fn look_for_work(&mut self, cpu: CpuId, now: Time) -> NewidleOutcome {
        let avg_idle = self.rqs[cpu].avg_idle;
        let mut outcome = NewidleOutcome {
            pulled: 0,
            higher_class: false,
            reason: Reason::NiPending,
            cost_ns: 0,
            examined: 0,
        };
        self.update_misfit_status(cpu, None);
        let bail_out = self.kernel.has(Feature::NewidlePendingWake);
        let rq = &mut self.rqs[cpu];
        if bail_out && rq.ttwu_pending {
            return outcome;
        }
        rq.idle_stamp = rq.clock;
        outcome.reason = Reason::NiNoDomain;
        if !rq.active {
            return outcome;
        }
        let Some(base) = self.domains.per_cpu[cpu].base else {
            // Earlier kernels check for domains only after updating the averages.
            if self.kernel.rules.newidle_gate == NewidleGate::MigrationCost
                && self.domains.overload
                && avg_idle >= self.kernel.tunables.migration_cost_ns
            {
                self.update_blocked_averages(cpu, now);
            }
            return self.finish_newidle(cpu, outcome, now);
        };
        let mut next_balance = self.jiffies(now) + self.kernel.tunables.hz;
        let gate = self.newidle_gate(cpu, base);
        if let Some(reason) = gate {
            outcome.reason = reason;
            self.update_next_balance(base, &mut next_balance);
            if self.kernel.rules.newidle_ages == NewidleAges::InPasses {
                self.nohz_newidle_balance(cpu, now);
            }
        } else {
            self.newidle_passes(cpu, base, &mut outcome, &mut next_balance, now);
        }
        let rq = &mut self.rqs[cpu];
        rq.next_balance = rq.next_balance.min(next_balance);
        self.finish_newidle(cpu, outcome, now)
    }

    /// Why a CPU does not even begin: nothing to pull anywhere, or too little time for its lowest domain.
    /// `None` if it does.
    ///
    /// Kernel: newidle_balance(), kernel/sched/fair.c, v5.18 and v5.5.
    pub fn newidle_gate(&self, cpu: CpuId, base: SdId) -> Option<Reason> {
        let limit = match self.kernel.rules.newidle_gate {
            NewidleGate::MigrationCost => self.kernel.tunables.migration_cost_ns,
            NewidleGate::DomainCost => self.domains.sd(base).max_newidle_lb_cost,
        };
        if !self.domains.overload {
            Some(Reason::NiNoOverload)
        } else if self.rqs[cpu].avg_idle < limit {
            Some(Reason::NiShortIdle)
        } else {
            None
        }
    }

    fn newidle_passes(
        &mut self,
        cpu: CpuId,
        base: SdId,
        outcome: &mut NewidleOutcome,
        next_balance: &mut u64,
        now: Time,
    ) {
        if self.kernel.has(Feature::NewidleReadsClock) {
            self.update_rq_clock(cpu, now);
        }
        self.age_blocked(cpu, now);
        let mut before = match self.kernel.rules.newidle_gate {
            NewidleGate::MigrationCost => 0,
            NewidleGate::DomainCost => self.took.blocked_update,
        };
        outcome.cost_ns = self.took.blocked_update - before;
        let mut spent = 0;
        let mut next = Some(base);
        outcome.reason = Reason::NiNothing;
        // v7.2 asks whether a higher class was modified (rq_modified_above()), which nothing does during a pass. What waited
        // before it does not count: a fair server looks for work while an RT task runs.
        let asks_modified = self.kernel.has(Feature::NextClass);
        if asks_modified {
            let rq = &mut self.rqs[cpu];
            rq.next_class = rq.next_class.min(Class::Fair);
        }
        // A pass may shorten the interval of its domain, which earlier kernels use at once.
        let afterwards = self.kernel.rules.newidle_gate == NewidleGate::MigrationCost;
        while let Some(id) = next {
            let sd = self.domains.sd(id);
            next = sd.parent;
            let too_long = self.rqs[cpu].avg_idle < spent + sd.max_newidle_lb_cost;
            let visits = sd.flags.has(SdFlags::BALANCE_NEWIDLE);
            if !afterwards || too_long || !visits {
                self.update_next_balance(id, next_balance);
            }
            if too_long {
                outcome.reason = Reason::NiCost;
                break;
            }
            if !visits {
                continue;
            }
            let Some(weight) = self.draw_newidle(cpu, id, now) else {
                outcome.reason = Reason::NiRandom;
                continue;
            };
            let decision = self.load_balance(cpu, id, IdleType::NewlyIdle, now);
            if afterwards {
                self.update_next_balance(id, next_balance);
            }
            let work = before + self.time_of(&decision);
            let cost = work + self.stalled(spent, work);
            before = 0;
            spent += cost;
            outcome.examined += decision.examined;
            outcome.reason = Reason::NiNothing;
            let success = if decision.moved > 0 { weight } else { 0 };
            self.update_newidle_cost(id, cost, success, now);
            outcome.pulled = decision.moved;
            let work_came = !asks_modified && self.rqs[cpu].nr_running > 0;
            if decision.moved > 0 || !decision.continue_balancing || work_came {
                break;
            }
        }
        outcome.cost_ns += spent + before;
        let h_nr = self.root_cfs(cpu).h_nr_queued;
        let rq = &mut self.rqs[cpu];
        rq.max_idle_balance_cost = rq.max_idle_balance_cost.max(spent);
        outcome.higher_class = !asks_modified && rq.nr_running != h_nr;
        if outcome.pulled == 0 {
            outcome.pulled = h_nr;
        }
    }

    /// Whether a domain is visited, and what a success then counts.
    ///
    /// Kernel: sched_balance_newidle(), kernel/sched/fair.c, v6.12.107 and v7.2.
    fn draw_newidle(&mut self, cpu: CpuId, id: SdId, now: Time) -> Option<u32> {
        if !self.kernel.has(Feature::NiRandom) {
            return Some(1);
        }
        let ratio = self.domains.sd(id).newidle_ratio;
        if ratio >= 1024 && self.kernel.has(Feature::NiRate) {
            return Some(1);
        }
        let weight = 1 + ratio;
        if self.rqs[cpu].draw() % 1024 > weight {
            self.update_newidle_stats(id, 0, now);
            return None;
        }
        Some((1024 + weight / 2) / weight)
    }

    /// Remembers how long a pass took, and whether it moved anything.
    ///
    /// Kernel: update_newidle_cost(), kernel/sched/fair.c, v6.12; newidle_balance(), v5.5.
    fn update_newidle_cost(&mut self, id: SdId, cost: u64, success: u32, now: Time) {
        if cost > 0 && self.kernel.has(Feature::NiRandom) {
            self.update_newidle_stats(id, success, now);
        }
        let (jiffy, hz) = (self.jiffies(now), self.kernel.tunables.hz);
        let decays = self.kernel.rules.newidle_gate == NewidleGate::DomainCost;
        let sd = self.domains.sd_mut(id);
        if cost > sd.max_newidle_lb_cost {
            sd.max_newidle_lb_cost = cost;
            if decays {
                sd.last_decay_max_lb_cost = jiffy;
            }
        } else if decays {
            sd.decay_newidle_cost(jiffy, hz);
        }
    }

    /// Counts a call; after 1024 of them the ratio of successes is computed and both counters are halved.
    ///
    /// Kernel: update_newidle_stats(), kernel/sched/fair.c, v6.12.107 and v7.2.
    fn update_newidle_stats(&mut self, id: SdId, success: u32, now: Time) {
        let by_rate = self.kernel.has(Feature::NiRate);
        let sd = self.domains.sd_mut(id);
        sd.newidle_call += 1;
        sd.newidle_success += success;
        if sd.newidle_call < 1024 {
            return;
        }
        let mut ratio = u64::from(sd.newidle_success);
        if by_rate {
            // Rare calls are cheap: the longer 1024 of them took, the more are allowed.
            ratio = (ratio + (now.0.saturating_sub(sd.newidle_stamp) >> 22)).min(1024);
            sd.newidle_stamp = now.0;
        }
        sd.newidle_ratio = ratio as u32;
        sd.newidle_call /= 2;
        sd.newidle_success /= 2;
    }

    /// How long a pass takes.
    fn time_of(&self, decision: &BalanceDecision) -> u64 {
        let took = &self.took;
        took.pass + u64::from(decision.examined) * took.pass_cpu + u64::from(decision.moved) * took.pass_task
    }

    /// How long the CPU is stopped in the middle of its work, which the clock counts as work.
    fn stalled(&self, begun_after: u64, work: u64) -> u64 {
        match self.stall {
            Some((after, lasts)) if (begun_after..begun_after + work).contains(&after) => lasts,
            _ => 0,
        }
    }

    /// Kernel: update_next_balance(), kernel/sched/fair.c, v6.12.
    fn update_next_balance(&self, id: SdId, next_balance: &mut u64) {
        let sd = self.domains.sd(id);
        *next_balance = (*next_balance).min(sd.last_balance + self.get_sd_balance_interval(sd, false));
    }

    fn finish_newidle(&mut self, cpu: CpuId, mut outcome: NewidleOutcome, now: Time) -> NewidleOutcome {
        if outcome.pulled > 0 {
            outcome.reason = Reason::NiPulled;
        }
        if outcome.pulled > 0 || outcome.higher_class {
            self.rqs[cpu].idle_stamp = 0;
        } else if self.kernel.rules.newidle_ages == NewidleAges::IfIdle {
            self.nohz_newidle_balance(cpu, now);
        }
        outcome
    }
}

impl crate::Rq {
    /// A random number of the CPU's own.
    ///
    /// Kernel: sched_rng(), kernel/sched/sched.h, v6.12.107. Another generator (xorshift64*)
    /// stands for it: only that draws are even and independent matters.
    fn draw(&mut self) -> u32 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use expect_test::{Expect, expect};
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    use crate::balance::drawings::queues;
    use crate::drawing::{NOW, by_kernel, draw};
    use crate::lab::{Lab, MS};
    use crate::{Deactivate, Policy, TaskState};

    #[test]
    fn without_domains_earlier_kernels_bring_the_averages_up_to_date_all_the_same() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
            let sleeper = lab.hog("sleeper", 0);
            lab.run(10 * MS);
            lab.sleep(sleeper);
            let b = lab.hog("b", 0);
            lab.sched.domains.overload = true;
            let now = lab.time();
            lab.sched.set_policy(CpuId(0), b, Policy::Rr(10), now);
            lab.settle();
            lab.run(3 * MS);
            let before = lab.sched.cfs_rqs[0].avg.util_avg;
            lab.sleep(b);
            format!("{} ms passed", if lab.sched.cfs_rqs[0].avg.util_avg < before { 3 } else { 0 })
        });
        expect![[r#"
            v4.13..v5.5: 3 ms passed
            v5.18..v7.3: 0 ms passed"#]]
        .assert_eq(&found);
    }

    /// The result of newly idle balancing of CPU 0 under each kernel.
    #[track_caller]
    fn check(with: &str, drawing: &str, domain_cost: u64, expected: Expect) {
        expected.assert_eq(&by_kernel(with, |kernel| {
            let mut drawn = draw(kernel, drawing);
            let sched = &mut drawn.sched;
            for sd in &mut sched.domains.sds {
                sd.max_newidle_lb_cost = domain_cost;
            }
            let found = sched.newidle_balance(CpuId(0), NOW);
            let idle = if sched.rqs[CpuId(0)].idle_stamp == 0 { "" } else { ", idle since now" };
            format!("{} after {} ns{idle}: {}", found.reason.name(), found.cost_ns, queues(&drawn))
        }));
    }

    #[test]
    fn work_is_pulled_from_the_nearest_level() {
        check(
            "+NO_NI_RANDOM",
            "2x1x2 | 0[] 1[a* b] 2[c* d]",
            0,
            expect!["v4.13..v7.3: NI_PULLED after 1250 ns: 0[b] 1[a*] 2[c* d] 3[]"],
        );
    }

    #[test]
    fn or_from_the_next() {
        check(
            "+NO_NI_RANDOM",
            "2x1x2 | 0[] 1[a*] 2[b* c d] 3[e*]",
            0,
            expect![[r#"
                v4.13: NI_PULLED after 2150 ns: 0[c d] 1[a*] 2[b*] 3[e*]
                v5.5..v7.3: NI_PULLED after 1800 ns: 0[c] 1[a*] 2[b* d] 3[e*]"#]],
        );
    }

    #[test]
    fn the_next_pass_is_due_by_the_interval_before_this_one_or_after_it() {
        // A pass that moves a task resets an interval of 64 ms to the shortest, 2 ms for two CPUs. Ticks take 4 ms.
        let due = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[] 1[a* b]");
            let sched = &mut drawn.sched;
            for sd in &mut sched.domains.sds {
                (sd.balance_interval, sd.last_balance) = (64, sched.kernel.tunables.hz);
            }
            sched.rqs[CpuId(0)].next_balance = u64::MAX;
            assert!(sched.newidle_balance(CpuId(0), NOW).pulled > 0);
            let base = sched.domains.per_cpu[CpuId(0)].base.unwrap();
            assert_eq!(sched.domains.sd(base).balance_interval, 2, "{kernel}");
            format!("{}", sched.rqs[CpuId(0)].next_balance - sched.domains.sd(base).last_balance)
        };
        expect![[r#"
            v4.13..v5.5: 1
            v5.18..v7.3: 16"#]]
        .assert_eq(&by_kernel("+NO_NI_RANDOM", due));
    }

    #[test]
    fn nobody_may_have_anything() {
        check(
            "+NO_NI_RANDOM",
            "2x1x2 | 0[] 1[a*] 2[b*] 3[c*]",
            0,
            expect!["v4.13..v7.3: NI_NO_OVERLOAD after 0 ns, idle since now: 0[] 1[a*] 2[b*] 3[c*]"],
        );
    }

    #[test]
    fn everything_else_may_be_bound_or_running() {
        check(
            "+NO_NI_RANDOM",
            "1x1x2 | 0[] 1[a* kworker/1:1]",
            0,
            expect!["v4.13..v7.3: NI_NOTHING after 950 ns, idle since now: 0[] 1[a* kworker/1:1]"],
        );
    }

    #[test]
    fn the_load_of_idle_cpus_is_aged_on_the_way_or_in_the_end() {
        // CPU 1 is idle in the cache of CPU 0, CPU 2 in another; both had load 100 ms ago. For CPU 0 the lowest domain
        // is searched, then the next; or none, because no CPU has two tasks.
        let aged = |kernel: &str, drawing: &str| {
            let mut drawn = draw(kernel, drawing);
            let sched = &mut drawn.sched;
            for cpu in [1, 2].map(CpuId) {
                let root = sched.root_cfs_id(cpu);
                let clock = sched.cfs_rq_clock_pelt(root);
                let avg = &mut sched.cfs_mut(root).avg;
                (avg.load_avg, avg.load_sum, avg.last_update_time) = (1000, 47_000_000, clock);
                sched.list_add_leaf_cfs_rq(root);
                sched.nohz_balance_enter_idle(cpu);
            }
            let now = Time(NOW.0 + 100_000_000);
            sched.update_rq_clock(CpuId(0), now);
            sched.newidle_balance(CpuId(0), now);
            let at_once = sched.cpu_load(CpuId(1)) != 1000;
            sched.nohz_run_idle_balance(CpuId(0), now);
            let when = if at_once { "at once" } else { "in the idle loop" };
            format!("{} {} {when}", sched.cpu_load(CpuId(1)), sched.cpu_load(CpuId(2)))
        };
        let told = |kernel: &str| {
            let found = aged(kernel, "2x1x2 | 0[] 3[a* b c d]");
            let gate = aged(kernel, "2x1x2 | 0[] 3[a*]");
            let nothing = aged(kernel, "2x1x2 | 0[] 3[a* kworker/3:1]");
            format!("found {found}, nothing {nothing}, gate {gate}")
        };
        expect![[r#"
            v4.13: found 0 0 at once, nothing 0 0 at once, gate 0 0 at once
            v5.5: found 127 127 at once, nothing 127 127 at once, gate 127 127 at once
            v5.18..v7.3: found 1000 1000 in the idle loop, nothing 127 127 in the idle loop, gate 127 127 in the idle loop"#]]
        .assert_eq(&by_kernel("+NO_NI_RANDOM", told));
    }

    #[test]
    fn a_clock_that_is_to_be_left_alone_is_read_up_to_v6_12() {
        // The scheduler was asked not to read the clock, and no task can be pulled.
        let found = by_kernel("+NO_NI_RANDOM", |kernel| {
            let mut sched = draw(kernel, "1x1x2 | 0[a*] 1[b* kworker/1:1]").sched;
            let (cpu, now) = (CpuId(0), Time(NOW.0 + 3_000_000));
            sched.rqs[cpu].skip_clock_update = true;
            sched.schedule(cpu, Deactivate::Sleep(TaskState::Interruptible), now);
            format!("{} us later", (sched.rqs[cpu].clock - NOW.0) / 1000)
        });
        expect![[r#"
            v4.13..v6.12: 3000 us later
            v7.2..v7.3: 0 us later"#]]
        .assert_eq(&found);
    }

    #[test]
    fn short_idle_times_are_not_worth_a_search() {
        check(
            "+NO_NI_RANDOM",
            "1x1x2 | 0[;avg_idle=100000] 1[a* b]",
            0,
            expect![[r#"
                v4.13..v5.5: NI_SHORT_IDLE after 0 ns, idle since now: 0[] 1[a* b]
                v5.18..v7.3: NI_PULLED after 1250 ns: 0[b] 1[a*]"#]],
        );
        check(
            "+NO_NI_RANDOM",
            "1x1x2 | 0[;avg_idle=100000] 1[a* b]",
            100_001,
            expect!["v4.13..v7.3: NI_SHORT_IDLE after 0 ns, idle since now: 0[] 1[a* b]"],
        );
    }

    #[test]
    fn a_level_that_takes_too_long_is_left_out() {
        check(
            "+NO_NI_RANDOM",
            "2x1x2 | 0[;avg_idle=600000] 1[a*] 2[b* c d] 3[e*]",
            599_500,
            expect![[r#"
                v4.13: NI_PULLED after 2150 ns: 0[c d] 1[a*] 2[b*] 3[e*]
                v5.5: NI_PULLED after 1800 ns: 0[c] 1[a*] 2[b* d] 3[e*]
                v5.18..v7.3: NI_COST after 900 ns, idle since now: 0[] 1[a*] 2[b* c d] 3[e*]"#]],
        );
    }

    #[test]
    fn a_wake_up_on_the_way_is_work() {
        check(
            "+NO_NI_RANDOM",
            "1x1x2 | 0[;pending] 1[a* b]",
            0,
            expect![[r#"
                v4.13..v5.5: NI_PULLED after 1250 ns: 0[b] 1[a*]
                v5.18..v7.3: NI_PENDING after 0 ns, idle since now: 0[] 1[a* b]"#]],
        );
    }

    #[test]
    fn a_cpu_without_domain_looks_nowhere() {
        check("", "1x1x1 | 0[]", 0, expect!["v4.13..v7.3: NI_NO_DOMAIN after 0 ns, idle since now: 0[]"]);
    }

    #[test]
    fn lots_are_drawn_by_recent_success() {
        let visits = |kernel: &str, ratio: u32| {
            let mut drawn = draw(kernel, "1x1x2 | 0[] 1[a* kworker/1:1]");
            let sched = &mut drawn.sched;
            let base = sched.domains.per_cpu[CpuId(0)].base.unwrap();
            let mut visits = 0;
            for round in 0..1000 {
                let sd = sched.domains.sd_mut(base);
                (sd.newidle_ratio, sd.newidle_call) = (ratio, 0);
                sd.max_newidle_lb_cost = 0;
                sched.domains.overload = true;
                let found = sched.newidle_balance(CpuId(0), Time(NOW.0 + round));
                visits += u32::from(found.reason == crate::Reason::NiNothing);
            }
            visits
        };
        let table = |kernel: &str| {
            let cells = [0, 10, 256, 512, 1023, 1024].map(|ratio| format!("{}", visits(kernel, ratio)));
            cells.join(" ")
        };
        expect![[r#"
            v4.13..v5.18: 1000 1000 1000 1000 1000 1000
            v6.1: 0 11 253 507 1000 1000
            v6.3..v6.10: 1000 1000 1000 1000 1000 1000
            v6.12..v7.3: 0 11 253 507 1000 1000"#]]
        .assert_eq(&by_kernel("", table));
    }

    #[test]
    fn the_ratio_is_taken_every_1024_calls() {
        let ratios = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[] 1[]");
            let sched = &mut drawn.sched;
            let base = sched.domains.per_cpu[CpuId(0)].base.unwrap();
            let mut text = String::new();
            // 512 calls, 256 of them successful, are counted from the start.
            for (calls, success) in [(512, 0), (512, 1), (512, 1)] {
                for _ in 0..calls {
                    sched.update_newidle_stats(base, success, Time(NOW.0 + 1_000_000_000));
                }
                let sd = sched.domains.sd(base);
                text += &format!("{} of {}/{} ", sd.newidle_ratio, sd.newidle_success, sd.newidle_call);
            }
            text
        };
        expect!["256 of 128/512 640 of 320/512 832 of 416/512 "].assert_eq(&ratios("v6.12"));
        // 11 s for the first 1024 calls: 11e9 >> 22 = 2622, so every call is allowed.
        expect!["1024 of 128/512 640 of 320/512 832 of 416/512 "].assert_eq(&ratios("v7.2"));
        expect!["256 of 128/512 640 of 320/512 832 of 416/512 "].assert_eq(&ratios("v7.2+NO_NI_RATE"));
    }

    #[test]
    fn a_domain_remembers_its_longest_search() {
        let costs = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[] 1[]");
            let sched = &mut drawn.sched;
            let base = sched.domains.per_cpu[CpuId(0)].base.unwrap();
            let mut text = String::new();
            for (ms, cost) in [(0, 3000), (0, 2000), (900, 5000), (1500, 100), (2000, 100)] {
                sched.update_newidle_cost(base, cost, 0, Time(NOW.0 + ms * 1_000_000));
                text += &format!("{} ", sched.domains.sd(base).max_newidle_lb_cost);
            }
            text
        };
        expect![[r#"
            v4.13..v5.5: 3000 3000 5000 5000 5000 
            v5.18..v7.3: 3000 3000 5000 5000 4941 "#]]
        .assert_eq(&by_kernel("", costs));
    }
}
