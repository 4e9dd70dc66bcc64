//! Periodic balancing of a CPU: one pass over each of its domains that is due.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::{Feature, IdleType, Sched, SchedDomain, SdId};

/// Fraction by which the longest newly idle pass is forgotten each second, of 256.
const NEWIDLE_COST_DECAY: u64 = 253;

impl Sched {
    /// Ticks until a domain's next pass.
    ///
    /// Kernel: get_sd_balance_interval(), kernel/sched/fair.c, v6.12 and v5.5.
    pub(crate) fn get_sd_balance_interval(&self, sd: &SchedDomain, busy: bool) -> u64 {
        let factor = if busy { u64::from(sd.busy_factor) } else { 1 };
        let mut interval = self.msecs_to_jiffies(sd.balance_interval * factor);
        // So that busy levels do not come due together.
        if busy && self.kernel.has(Feature::BusyIntervalLessOne) {
            interval = interval.saturating_sub(1);
        }
        interval.clamp(1, self.max_load_balance_interval)
    }

    /// Balances the domains of a CPU from the lowest up, as far as they are due.
    ///
    /// Kernel: rebalance_domains(), kernel/sched/fair.c, v6.1; sched_balance_domains() from v6.10 on.
    pub fn rebalance_domains(&mut self, cpu: CpuId, mut idle: IdleType, now: Time) {
        let jiffy = self.jiffies(now);
        let mut busy = self.counts_as_busy(cpu, idle);
        let mut next_balance = jiffy + 60 * self.kernel.tunables.hz;
        let (mut go_on, mut update_next, mut need_decay) = (true, false, false);
        let mut max_cost = 0;
        let mut next = self.domains.per_cpu[cpu].base;
        while let Some(id) = next {
            need_decay = self.decay_newidle_cost(id, jiffy);
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
        }
    }

    /// A CPU that runs only SCHED_IDLE tasks balances as often as an idle one (v5.6).
    fn counts_as_busy(&self, cpu: CpuId, idle: IdleType) -> bool {
        let only_idle_tasks = self.kernel.has(Feature::SchedIdleBalancesOften) && self.sched_idle_cpu(cpu);
        idle != IdleType::Idle && !only_idle_tasks
    }

    /// Forgets a little of a domain's longest newly idle pass, once per second. True if so.
    ///
    /// Kernel: update_newidle_cost(), kernel/sched/fair.c, v6.12; rebalance_domains(), v5.5.
    fn decay_newidle_cost(&mut self, id: SdId, jiffy: u64) -> bool {
        let hz = self.kernel.tunables.hz;
        let sd = self.domains.sd_mut(id);
        if jiffy <= sd.last_decay_max_lb_cost + hz {
            return false;
        }
        sd.max_newidle_lb_cost = sd.max_newidle_lb_cost * NEWIDLE_COST_DECAY / 256;
        sd.last_decay_max_lb_cost = jiffy;
        true
    }

    /// The balance softirq of a CPU: for the idle if it was kicked for that, else for itself.
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
