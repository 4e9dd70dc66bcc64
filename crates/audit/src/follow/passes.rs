//! What the passes that no event shows would set as the scan limits of caches.

use schedlab_sched::{Curr, Feature, SdId, SharedId, nr_idle_scan};
use schedlab_units::Time;

use super::bounds::{self, Width};
use super::scan_limits::Range;
use super::shadow::Shadow;

/// Time between samples, ns.
const BETWEEN: u64 = 8_000_000;

impl Shadow {
    /// The range of a cache's limit.
    pub fn scan_range(&self, llc: SharedId) -> Range {
        if self.trusts { self.scan_limits.of(llc) } else { Range::ANY }
    }

    /// If it is time, samples what passes over caches would set at this tick.
    pub(crate) fn look_at_scan_limits(&mut self, at: Time) {
        self.scan_limits.forget_searches();
        let before = at.0.saturating_sub(self.sched.tick_ns());
        if at.0 / BETWEEN == before / BETWEEN || !self.sched.kernel.has(Feature::SisUtil) {
            return;
        }
        for cpu in self.cpus() {
            let domains = &self.sched.domains;
            let short = &domains.per_cpu[cpu];
            if let (Some(sd), Some(llc)) = (short.llc, short.llc_shared)
                && domains.sd(sd).span.first() == Some(cpu)
            {
                let (look, busy) = self.scan_limit(sd, at);
                self.scan_limits.note(llc, look, busy);
            }
        }
    }

    /// What a pass over a cache would set, and whether one of its CPUs is busy.
    fn scan_limit(&self, sd: SdId, at: Time) -> (Range, bool) {
        let sd = self.sched.domains.sd(sd);
        let (mut least, mut most, mut busy) = (0, 0, false);
        for cpu in sd.span.iter() {
            let (low, high) = bounds::bounds(self, cpu, Width::Likely, at);
            least += self.sched.cpu_util_of(cpu, low.util);
            most += self.sched.cpu_util_of(cpu, high.util);
            busy |= self.sched.rqs[cpu].curr != Curr::Idle;
        }
        let limit = |util| nr_idle_scan(util, sd.span_weight.into(), sd.imbalance_pct.into());
        (Range { least: limit(most), most: limit(least) }, busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::scan_limits::ByLimit;
    use schedlab_sched::Kernel;
    use schedlab_topology::{CpuId, Topology};

    #[test]
    fn searches_narrow_the_limit_until_the_next_tick() {
        let mut shadow =
            Shadow::new(&Topology::regular("1x1x8").unwrap(), &Kernel::parse("v6.12").unwrap(), Vec::new());
        let (llc, finds, else_takes) = (SharedId(0), CpuId(3), CpuId(0));
        let by = |looks| ByLimit { llc, finds, looks, else_takes };
        shadow.scan_limits.learn(by(5), CpuId(7));
        assert_eq!(shadow.scan_range(llc), Range::ANY, "it ended at neither");
        shadow.scan_limits.learn(by(2), finds);
        shadow.scan_limits.learn(by(5), else_takes);
        assert_eq!(shadow.scan_range(llc), Range { least: 2, most: 4 });
        shadow.scan_limits.learn(by(6), finds);
        assert_eq!(shadow.scan_range(llc).least, 6, "of what contradicts itself the latest counts");
        shadow.look_at_scan_limits(Time(1_000_000_000));
        assert_eq!(shadow.scan_range(llc), Range::ANY);
    }
}
