//! The history of a machine that has been up before the run.

use schedlab_kernel_tree::OfDomain;
use schedlab_topology::CpuId;

use crate::TreeSched;

impl TreeSched {
    /// Copies from our rules the history of a machine that has been up.
    pub(crate) fn bring_past(&mut self) {
        for index in 0..self.cpus.len() {
            let cpu = CpuId::from(index);
            let rq = &self.rules.rqs[cpu];
            let domains = &self.rules.domains;
            let cut = &domains.per_cpu[cpu];
            let [llc, searched] = [cut.llc_shared, cut.balance_shared].map(|shared| {
                shared.map_or((0, false), |s| {
                    let shared = &domains.shared[s.0 as usize];
                    (u64::from(shared.nr_idle_scan), shared.has_idle_cores)
                })
            });
            self.library.set_past(cpu, rq.idle_stamp, rq.next_balance, [llc.0, searched.0], searched.1);
            for (level, (_, sd)) in domains.walk(cpu).enumerate() {
                let past = OfDomain {
                    last_balance: sd.last_balance,
                    balance_interval: sd.balance_interval,
                    max_newidle_lb_cost: sd.max_newidle_lb_cost,
                    decayed: sd.last_decay_max_lb_cost,
                };
                self.library.set_past_of_domain(cpu, level, &past);
            }
        }
    }
}
