//! What a machine has learned when a program begins: the loads of a boot run one after the other.
//!
//! Newly idle balancing remembers for minutes how expensive its passes were, and an expensive pass keeps a CPU from
//! looking for work until it is forgotten. So a program is run on a machine that has run the earlier loads. The first
//! load starts with the domain costs in the facts of the boot.

use schedlab_sched::{Experience, Kernel, OfCpu, OfDomain};

/// The loads in the order in which each boot recorded them.
pub const SESSION: [&str; 13] = [
    "stream-perllc-1",
    "stream-perllc-2",
    "stream-perllc-3",
    "stream-half",
    "pipes",
    "sleepers",
    "io-loop",
    "barrier",
    "barrier-nospin",
    "fork",
    "hogs",
    "hogs-runtime",
    "io-disk",
];

/// The cost of newly idle passes from a boot's `facts/domains.txt`, which was written before its first load.
pub fn learned(domains: &str, kernel: &Kernel) -> Experience {
    let mut experience = Experience::default();
    for (cpu, domain, cost) in domains.lines().filter_map(cost) {
        let of = &mut experience.domains;
        if of.len() <= cpu {
            of.resize(cpu + 1, Vec::new());
        }
        if of[cpu].len() <= domain {
            of[cpu].resize(domain + 1, OfDomain::default());
        }
        of[cpu][domain].max_newidle_lb_cost = cost;
    }
    let floor = kernel.tunables.migration_cost_ns;
    let of_cpu = |of: &Vec<OfDomain>| OfCpu {
        max_idle_balance_cost: floor.max(of.iter().map(|of| of.max_newidle_lb_cost).sum()),
        avg_idle: 2 * floor,
    };
    experience.cpus = experience.domains.iter().map(of_cpu).collect();
    experience
}

/// `cpu3/domain1/max_newidle_lb_cost 1500`.
fn cost(line: &str) -> Option<(usize, usize, u64)> {
    let (path, value) = line.split_once(' ')?;
    let mut parts = path.strip_suffix("/max_newidle_lb_cost")?.split('/');
    let mut number = |prefix| parts.next()?.strip_prefix(prefix)?.parse::<usize>().ok();
    Some((number("cpu")?, number("domain")?, value.trim().parse().ok()?))
}

/// The estimated cost of newly idle balancing for each CPU, ns, from a boot's `sched-debug-1.txt`.
pub fn idle_balance_costs(sched_debug: &str) -> Vec<u64> {
    let of_line = |line: &str| {
        let (name, value) = line.split_once(':')?;
        value.trim().parse().ok().filter(|_| name.trim() == ".max_idle_balance_cost")
    };
    sched_debug.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_domains_are_read_from_facts() {
        let domains = "\
cpu0/domain0/max_interval 8
cpu0/domain0/max_newidle_lb_cost 6457
cpu0/domain1/max_newidle_lb_cost 650000
cpu0/domain1/name DIE
cpu1/domain0/max_newidle_lb_cost 4730
cpu1/domain1/max_newidle_lb_cost 2542
";
        let found = learned(domains, &Kernel::parse("v6.1").unwrap());
        let costs: Vec<Vec<u64>> =
            found.domains.iter().map(|of| of.iter().map(|of| of.max_newidle_lb_cost).collect()).collect();
        assert_eq!(costs, [[6457, 650_000], [4730, 2542]]);
        assert!(found.domains.iter().flatten().all(|of| of.newidle.is_none()), "which is not in the facts");
        let of_cpus: Vec<(u64, u64)> =
            found.cpus.iter().map(|of| (of.max_idle_balance_cost, of.avg_idle)).collect();
        assert_eq!(of_cpus, [(656_457, 1_000_000), (500_000, 1_000_000)], "at least the floor");
        assert_eq!(learned("", &Kernel::parse("v6.1").unwrap()), Experience::default());
    }

    #[test]
    fn costs_of_cpus_are_read_from_the_scheduler_s_own_file() {
        let text = "\
cpu#0, 999.993 MHz
  .avg_idle                      : 4786722
  .max_idle_balance_cost         : 2393361
cpu#1, 999.993 MHz
  .max_idle_balance_cost         : 500000
";
        assert_eq!(idle_balance_costs(text), [2_393_361, 500_000]);
    }
}
