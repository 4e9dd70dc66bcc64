//! The state of a machine that has been up and idle for a while.
//!
//! A kernel that has just booted is a special case: all balancing is due at once, no CPU was ever idle, no
//! cache was ever scanned. Runs begin on a machine as used for benchmarks: each domain was balanced some time
//! ago, each CPU went idle at some time, and the limits of idle searches have settled.

use schedlab_topology::CpuId;
use schedlab_units::{Duration, Time};

use crate::{Sched, SchedDomain, SdId};

/// The activity of a machine just before a run, which determines when CPUs last balanced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lately {
    /// Nothing: idle CPUs had no ticks, and no CPU balanced for them since they were last busy.
    #[default]
    Quiet,
    /// A CPU was busy, and balanced for the idle ones.
    AtWork,
    /// The domains were just built: no pass was made yet, and each is due after its shortest interval.
    Fresh,
}

impl Sched {
    /// Advances the idle machine to `now`. The time at which each CPU went idle is drawn from `draw`.
    pub fn has_been_up(&mut self, now: Time, mut draw: impl FnMut() -> u64) {
        let jiffy = self.jiffies(now);
        for index in 0..self.rqs.len() {
            let cpu = CpuId::from(index);
            let smt = self.domains.smt_mask[cpu].weight() > 1;
            if let Some(shared) = self.domains.per_cpu[cpu].llc_shared {
                let llc_size = self.domains.per_cpu[cpu].llc_size;
                let shared = &mut self.domains.shared[shared.0 as usize];
                // The limit of an idle cache; see update_idle_cpu_scan().
                shared.nr_idle_scan = llc_size;
                shared.has_idle_cores = smt;
            }
            let cut = &self.domains.per_cpu[cpu];
            if let (Some(shared), Some(sd)) = (cut.asym_shared(), cut.asym_cpucapacity) {
                let weight = self.domains.sd(sd).span_weight;
                let shared = &mut self.domains.shared[shared.0 as usize];
                (shared.nr_idle_scan, shared.has_idle_cores) = (weight, smt);
            }
            let went_idle = 1 + draw() % now.0.max(2);
            self.update_rq_clock(cpu, now);
            let rq = &mut self.rqs[cpu];
            rq.idle_stamp = went_idle.min(now.0);
            rq.last_blocked_load_update = jiffy;
            rq.age_stamp = rq.clock;
        }
        for sd in &mut self.domains.sds {
            sd.last_decay_max_lb_cost = jiffy;
        }
        self.nohz_next_balance = jiffy + 1;
    }

    /// Sets the age of the last pass over each domain before `at` as `draw` says: on a quiet machine less than the
    /// time between two passes of a busy CPU, else less than that of an idle one.
    pub fn was_balanced(&mut self, at: Time, lately: Lately, mut draw: impl FnMut() -> u64) {
        let jiffy = self.jiffies(at);
        if lately == Lately::Fresh {
            for sd in &mut self.domains.sds {
                (sd.balance_interval, sd.last_balance) = (sd.min_interval, jiffy);
            }
            for (_, rq) in self.rqs.iter_mut() {
                rq.next_balance = jiffy;
            }
            return;
        }
        for id in 0..self.domains.sds.len() {
            let sd = &mut self.domains.sds[id];
            // Passes that found nothing to do have doubled it up to the maximum.
            sd.balance_interval = sd.max_interval;
            let between = self.get_sd_balance_interval(&self.domains.sds[id], lately == Lately::Quiet);
            self.domains.sds[id].last_balance = jiffy.saturating_sub(draw() % between);
        }
        for index in 0..self.rqs.len() {
            let cpu = CpuId::from(index);
            let idle_due = |sd: &SchedDomain| sd.last_balance + self.get_sd_balance_interval(sd, false);
            let next_balance = self.domains.walk(cpu).map(|(_, sd)| idle_due(sd)).min();
            self.rqs[cpu].next_balance = next_balance.unwrap_or(jiffy + 1);
        }
    }

    /// The shortest and the longest time, in jiffies, between two passes of a busy CPU over the lowest of its domains
    /// with `from` in it; `None` if it has no such domain.
    ///
    /// Kernel: get_sd_balance_interval(), kernel/sched/fair.c, v6.12.
    pub fn busy_balance_intervals(&self, cpu: CpuId, from: CpuId) -> Option<[u64; 2]> {
        let sd = self.domains.sd(self.common_domain(from, cpu)?);
        let busy = |balance_interval| {
            let sd = SchedDomain { balance_interval, ..sd.clone() };
            self.get_sd_balance_interval(&sd, true)
        };
        Some([sd.min_interval, sd.max_interval].map(busy))
    }

    /// The time between two periodic passes over a domain, at its present interval, of a CPU that is busy or not.
    pub fn balance_period(&self, sd: SdId, busy: bool) -> Duration {
        Duration(self.get_sd_balance_interval(self.domains.sd(sd), busy) * self.tick_ns())
    }

    /// Sets the last pass of a CPU over the lowest of its domains with `from` in it so that the next one, if the CPU is
    /// busy by then, comes at `pass`. This assumes the longest interval, the result of passes that find nothing to do.
    pub fn balances_at(&mut self, cpu: CpuId, from: CpuId, pass: Time) {
        let Some(id) = self.common_domain(from, cpu) else { return };
        let pass = self.jiffies(pass);
        let sd = self.domains.sd_mut(id);
        sd.balance_interval = sd.max_interval;
        let interval = self.get_sd_balance_interval(self.domains.sd(id), true);
        self.domains.sd_mut(id).last_balance = pass.saturating_sub(interval);
        let rq = &mut self.rqs[cpu];
        rq.next_balance = rq.next_balance.min(pass);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kernel, Took};
    use schedlab_topology::Topology;

    #[test]
    fn the_past_is_past_and_nothing_is_long_overdue() {
        let topology = Topology::regular("2x2x4x2").unwrap();
        for preset in 0..crate::PRESETS.len() {
            let mut sched = Sched::new(&topology, &Kernel::preset(preset), Took::default(), 1);
            let now = Time(1_000_000_000);
            let mut seed = 7u64;
            let mut draw = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                seed >> 33
            };
            sched.has_been_up(now, &mut draw);
            sched.was_balanced(now, Lately::Quiet, &mut draw);
            let jiffy = sched.jiffies(now);
            assert!(sched.rqs.values().iter().all(|rq| (1..=now.0).contains(&rq.idle_stamp)));
            let due = |sched: &Sched, busy: bool| {
                let past = |sd: &&SchedDomain| sd.last_balance <= jiffy;
                let due =
                    |sd: &SchedDomain| sd.last_balance + sched.get_sd_balance_interval(sd, busy) <= jiffy;
                let sds = &sched.domains.sds;
                assert_eq!(sds.iter().filter(past).count(), sds.len());
                sds.iter().filter(|sd| due(sd)).count()
            };
            assert_eq!(due(&sched, true), 0, "no busy CPU's");
            let (overdue, domains) = (due(&sched, false), sched.domains.sds.len());
            assert!(overdue > domains / 2, "most of the idle CPUs': {overdue} of {domains}");
            sched.check();
            sched.was_balanced(now, Lately::AtWork, draw);
            assert_eq!(due(&sched, false), 0, "no idle CPU's");
            assert!(sched.rqs.values().iter().all(|rq| rq.next_balance > jiffy));
            sched.check();
        }
    }

    #[test]
    fn a_busy_cpu_balances_when_it_is_known_to() {
        let topology = Topology::regular("1x2x4").unwrap();
        let mut sched = Sched::new(&topology, &Kernel::parse("v6.12").unwrap(), Took::default(), 1);
        let (cpu, now) = (CpuId(1), Time(1_000_000_000));
        for (from, intervals) in [(0, [15, 31]), (4, [31, 63])] {
            let from = CpuId(from);
            assert_eq!(sched.busy_balance_intervals(cpu, from), Some(intervals));
            for ahead in [1, 15, 31] {
                sched.balances_at(cpu, from, Time(now.0 + ahead * sched.tick_ns()));
                let (_, sd) = sched.domains.walk(cpu).find(|(_, sd)| sd.span.contains(from)).unwrap();
                let due = sd.last_balance + sched.get_sd_balance_interval(sd, true);
                assert_eq!(due - sched.jiffies(now), ahead);
            }
        }
    }
}
