//! The state of a machine that has been up and idle for a while.
//!
//! A kernel that has just booted is a special case: all balancing is due at once,
//! no CPU was ever idle, no cache was ever scanned. Runs begin on a machine like
//! those that benchmarks run on: each domain was balanced some time ago, each CPU
//! went idle at some moment, and the limits of idle searches have settled.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::{Sched, SchedDomain};

impl Sched {
    /// Lets the idle machine reach `now`. What its past left to chance is drawn from
    /// `draw`: when each CPU went idle, and when each domain was balanced last.
    pub fn has_been_up(&mut self, now: Time, mut draw: impl FnMut() -> u64) {
        let jiffy = self.jiffies(now);
        for id in 0..self.domains.sds.len() {
            let sd = &self.domains.sds[id];
            let interval = (sd.balance_interval * self.kernel.tunables.hz / 1000).max(1);
            let ago = draw() % interval;
            let sd = &mut self.domains.sds[id];
            sd.last_balance = jiffy.saturating_sub(ago);
            sd.last_decay_max_lb_cost = jiffy;
        }
        for index in 0..self.rqs.len() {
            let cpu = CpuId::from(index);
            let due = self.domains.walk(cpu).map(|(_, sd)| {
                sd.last_balance + (sd.balance_interval * self.kernel.tunables.hz / 1000).max(1)
            });
            let next_balance = due.min().unwrap_or(jiffy + 1);
            let smt = self.domains.smt_mask[cpu].weight() > 1;
            if let Some(shared) = self.domains.per_cpu[cpu].llc_shared {
                let llc_size = self.domains.per_cpu[cpu].llc_size;
                let shared = &mut self.domains.shared[shared.0 as usize];
                // What an idle cache gives; see update_idle_cpu_scan().
                shared.nr_idle_scan = llc_size;
                shared.has_idle_cores = smt;
            }
            let went_idle = 1 + draw() % now.0.max(2);
            self.update_rq_clock(cpu, now);
            let rq = &mut self.rqs[cpu];
            rq.next_balance = next_balance;
            rq.idle_stamp = went_idle.min(now.0);
            rq.last_blocked_load_update = jiffy;
            rq.age_stamp = rq.clock;
        }
        self.nohz_next_balance = jiffy + 1;
    }

    /// Lets the last pass of a CPU over the lowest of its domains with `from` in it be so long ago that, if the CPU is
    /// busy from `now` on, one comes at `pass`: the first if no interval is too short for that, else one of them.
    ///
    /// Kernel: get_sd_balance_interval(), kernel/sched/fair.c, v6.12; passes that find nothing to do double the interval.
    pub fn has_balanced_for(&mut self, cpu: CpuId, from: CpuId, pass: Time, now: Time) {
        let found = self.domains.walk(cpu).find(|(_, sd)| sd.span.contains(from)).map(|(id, _)| id);
        let Some(id) = found else { return };
        let (pass, now) = (self.jiffies(pass), self.jiffies(now));
        let ahead = pass.saturating_sub(now);
        let SchedDomain { min_interval, max_interval, .. } = *self.domains.sd(id);
        let mut interval = 0;
        for balance_interval in [min_interval, max_interval] {
            if ahead > interval {
                self.domains.sd_mut(id).balance_interval = balance_interval;
                interval = self.get_sd_balance_interval(self.domains.sd(id), true);
            }
        }
        let since = ahead.div_ceil(interval.max(1)) * interval;
        self.domains.sd_mut(id).last_balance = pass.saturating_sub(since);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kernel, Prices};
    use schedlab_topology::Topology;

    #[test]
    fn the_past_is_past_and_nothing_is_long_overdue() {
        let topology = Topology::regular("2x2x4x2").unwrap();
        for preset in 0..crate::PRESETS.len() {
            let mut sched = Sched::new(&topology, &Kernel::preset(preset), Prices::default(), 1);
            let now = Time(1_000_000_000);
            let mut seed = 7u64;
            sched.has_been_up(now, || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                seed >> 33
            });
            let jiffy = sched.jiffies(now);
            assert!(sched.rqs.values().iter().all(|rq| (1..=now.0).contains(&rq.idle_stamp)));
            assert!(sched.rqs.values().iter().all(|rq| rq.next_balance > jiffy));
            assert!(sched.domains.sds.iter().all(|sd| sd.last_balance <= jiffy));
            sched.check();
        }
    }

    #[test]
    fn a_busy_cpu_balances_when_it_is_known_to() {
        let topology = Topology::regular("1x2x4").unwrap();
        let mut sched = Sched::new(&topology, &Kernel::parse("v6.12").unwrap(), Prices::default(), 1);
        let now = Time(1_000_000_000);
        // Ticks from now on until the first pass over the domain with both CPUs in it, if it is so many until the known
        // one. A pass that finds nothing doubles the interval, from 15 to 31 ticks and from 31 to 63.
        let mut first = |from, ahead| {
            let (cpu, from) = (CpuId(1), CpuId(from));
            let pass = Time(now.0 + ahead * sched.tick_ns());
            sched.has_balanced_for(cpu, from, pass, now);
            let (_, sd) = sched.domains.walk(cpu).find(|(_, sd)| sd.span.contains(from)).unwrap();
            let due = sd.last_balance + sched.get_sd_balance_interval(sd, true);
            (sd.span_weight, due - sched.jiffies(now))
        };
        let within = [1, 15, 16, 31, 32, 62].map(|ahead| first(0, ahead));
        assert_eq!(within, [1, 15, 16, 31, 1, 31].map(|due| (4, due)));
        let across = [1, 31, 32, 63, 64].map(|ahead| first(4, ahead));
        assert_eq!(across, [1, 31, 32, 63, 1].map(|due| (8, due)));
    }
}
