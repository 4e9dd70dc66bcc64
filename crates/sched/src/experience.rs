//! What balancing has learned: the cost of its passes, how often they move something, how long a CPU is idle.
//!
//! It outlives the tasks it was learned from, so it affects later programs. None of it refers to absolute times: it
//! can be carried from one run of a machine to the next.

use alloc::vec::Vec;

use schedlab_topology::CpuId;

use crate::Sched;

/// What the domains and the CPUs of a machine have learned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Experience {
    /// By CPU, its domains from the lowest up.
    pub domains: Vec<Vec<OfDomain>>,
    /// By CPU.
    pub cpus: Vec<OfCpu>,
}

/// What a domain of a CPU has learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfDomain {
    /// Longest newly idle pass, ns.
    pub max_newidle_lb_cost: u64,
    /// NI_RANDOM: calls, successes and their ratio of 1024; `None` if only the cost is known.
    pub newidle: Option<[u32; 3]>,
}

/// What a CPU has learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfCpu {
    /// How long newly idle balancing took in all its domains, ns.
    pub max_idle_balance_cost: u64,
    /// Average idle time, ns.
    pub avg_idle: u64,
}

impl Sched {
    /// What balancing has learned so far.
    pub fn experience(&self) -> Experience {
        let of_cpu = |cpu: CpuId| {
            let domains = self.domains.walk(cpu).map(|(_, sd)| OfDomain {
                max_newidle_lb_cost: sd.max_newidle_lb_cost,
                newidle: Some([sd.newidle_call, sd.newidle_success, sd.newidle_ratio]),
            });
            domains.collect()
        };
        let (cpus, domains) = self
            .rqs
            .iter()
            .map(|(cpu, rq)| {
                let (max_idle_balance_cost, avg_idle) = (rq.max_idle_balance_cost, rq.avg_idle);
                (OfCpu { max_idle_balance_cost, avg_idle }, of_cpu(cpu))
            })
            .unzip();
        Experience { domains, cpus }
    }

    /// Begins with what was learned before, on a machine with the same domains.
    pub fn has_learned(&mut self, experience: &Experience) {
        for (cpu, learned) in experience.domains.iter().enumerate() {
            let ids: Vec<_> = self.domains.walk(CpuId::from(cpu)).map(|(id, _)| id).collect();
            for (id, learned) in ids.into_iter().zip(learned) {
                let sd = self.domains.sd_mut(id);
                sd.max_newidle_lb_cost = learned.max_newidle_lb_cost;
                if let Some(newidle) = learned.newidle {
                    [sd.newidle_call, sd.newidle_success, sd.newidle_ratio] = newidle;
                }
            }
        }
        for (cpu, learned) in experience.cpus.iter().enumerate() {
            let rq = &mut self.rqs[CpuId::from(cpu)];
            (rq.max_idle_balance_cost, rq.avg_idle) = (learned.max_idle_balance_cost, learned.avg_idle);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::{Kernel, Took};
    use schedlab_topology::Topology;

    #[test]
    fn what_was_learned_is_known_to_the_next() {
        let topology = Topology::regular("2x1x2").unwrap();
        let new = || Sched::new(&topology, &Kernel::parse("v6.12").unwrap(), Took::default(), 1);
        let mut sched = new();
        let unknown = sched.experience();
        assert_eq!(unknown.domains.iter().map(Vec::len).collect::<Vec<_>>(), [2; 4]);
        let ids: Vec<_> = sched.domains.walk(CpuId(3)).map(|(id, _)| id).collect();
        sched.domains.sd_mut(ids[1]).max_newidle_lb_cost = 77_000;
        sched.domains.sd_mut(ids[0]).newidle_ratio = 9;
        sched.rqs[CpuId(2)].avg_idle = 123;
        let known = sched.experience();
        assert_ne!(known, unknown);
        let mut next = new();
        next.has_learned(&known);
        assert_eq!(next.experience(), known);
    }

    #[test]
    fn of_a_machine_of_which_only_costs_are_known_the_rest_is_as_at_boot() {
        let topology = Topology::regular("1x1x2").unwrap();
        let mut sched = Sched::new(&topology, &Kernel::parse("v6.12").unwrap(), Took::default(), 1);
        let at_boot = sched.experience();
        let of = OfDomain { max_newidle_lb_cost: 5000, newidle: None };
        sched.has_learned(&Experience { domains: vec![vec![of]], cpus: Vec::new() });
        let found = sched.experience();
        let newidle = at_boot.domains[0][0].newidle;
        assert_eq!(found.domains[0], [OfDomain { max_newidle_lb_cost: 5000, newidle }]);
        assert_eq!((&found.domains[1], &found.cpus), (&at_boot.domains[1], &at_boot.cpus));
    }
}
