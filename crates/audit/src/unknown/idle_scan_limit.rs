//! How many CPUs of a cache a search for an idle one may have been allowed to examine.
//!
//! The balancer sets the limit (SIS_UTIL) in passes that no event shows, from the utilisation of the cache. So the
//! limit lies between the least and the most that a recent pass would have set. Passes over a cache with busy CPUs come
//! every few dozen milliseconds; a cache whose CPUs are idle may keep its limit for as long as they stay idle.

use schedlab_sched::{Curr, Feature, SdId, SharedDomain, SharedId, nr_idle_scan};
use schedlab_topology::CpuId;
use schedlab_units::Time;

use super::Shadow;
use super::about::{About, Reading};
use super::beyond::{Candidate, Case, Look, Of};
use super::loads::{self, Width};
use super::otherwise::Otherwise;

/// Learned from searches that end elsewhere under another limit.
pub const LEARNED: Reading =
    Reading::new("LEARNED_LIMIT", "searches since the last tick narrow the scan limit");

pub(super) const ABOUT: About = About {
    readings: &[LEARNED],
    beyond,
    ..About::new("IDLE_SCAN_LIMIT", "how many CPUs the search was allowed to examine")
};

/// Within this many samples of a busy cache there was a pass.
const LOOKS: usize = 16;

/// Time between samples, ns.
const BETWEEN: u64 = 8_000_000;

/// The limits of each last-level cache.
#[derive(Clone, Debug, Default)]
pub struct ScanLimits(Vec<Limits>);

/// The limits of one cache.
#[derive(Clone, Debug)]
struct Limits {
    /// What a pass would have set at each of the last samples.
    looks: [Range; LOOKS],
    /// The sample that is replaced next.
    oldest: usize,
    /// Range that covers all samples.
    range: Range,
    /// What searches since the last tick show about the limit: only balancing at ticks changes it.
    told: Range,
}

/// The lowest and the highest value that a limit may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Lowest value.
    pub least: u32,
    /// Highest value.
    pub most: u32,
}

impl Range {
    /// Nothing is known.
    pub const ANY: Range = Range { least: 0, most: u32::MAX };

    fn and(self, other: Range) -> Range {
        Range { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    /// The intersection; `self` if the two are disjoint.
    fn within(self, other: Range) -> Range {
        let common = Range { least: self.least.max(other.least), most: self.most.min(other.most) };
        if common.least <= common.most { common } else { self }
    }
}

/// Where a search ends depending on its limit.
#[derive(Clone, Copy)]
pub struct ByLimit {
    /// The cache that the limit belongs to.
    pub llc: SharedId,
    /// The CPU that it finds.
    pub finds: CpuId,
    /// How many CPUs it has to examine to find it.
    pub looks: u32,
    /// The CPU that is chosen if the limit is lower.
    pub else_takes: CpuId,
}

impl ScanLimits {
    /// The range of a cache's limit.
    pub fn of(&self, llc: SharedId) -> Range {
        self.0.get(llc.0 as usize).map_or(Range::ANY, |limits| limits.range.within(limits.told))
    }

    fn limits(&mut self, llc: SharedId) -> &mut Limits {
        let at = llc.0 as usize;
        if self.0.len() <= at {
            let unknown =
                Limits { looks: [Range::ANY; LOOKS], oldest: 0, range: Range::ANY, told: Range::ANY };
            self.0.resize(at + 1, unknown);
        }
        &mut self.0[at]
    }

    /// Adds what a pass would set now. While all CPUs are idle nothing is dropped.
    pub fn note(&mut self, llc: SharedId, look: Range, busy: bool) {
        let Limits { looks, oldest, range, .. } = self.limits(llc);
        if busy {
            looks[*oldest] = look;
            *oldest = (*oldest + 1) % LOOKS;
        } else {
            let newest = (*oldest + LOOKS - 1) % LOOKS;
            looks[newest] = looks[newest].and(look);
        }
        *range = looks[1..].iter().fold(looks[0], |all, look| all.and(*look));
    }

    /// Learns from a wake-up that ended at this CPU and would have ended at another one under another limit.
    pub fn learn(&mut self, by: ByLimit, cpu: CpuId) {
        let told = &mut self.limits(by.llc).told;
        if cpu == by.finds {
            *told = Range { least: by.looks, ..Range::ANY }.within(*told);
        } else if cpu == by.else_takes {
            *told = Range { most: by.looks.saturating_sub(1), ..Range::ANY }.within(*told);
        }
    }

    /// A tick may change the limits, so what searches have shown is out of date.
    pub fn forget_searches(&mut self) {
        self.0.iter_mut().for_each(|limits| limits.told = Range::ANY);
    }
}

impl Shadow {
    /// The range of a cache's limit.
    pub fn scan_range(&self, llc: SharedId) -> Range {
        if self.learned.trusts { self.learned.scan_limits.of(llc) } else { Range::ANY }
    }

    /// If it is time, samples what passes over caches would set at this tick.
    pub(crate) fn look_at_scan_limits(&mut self, at: Time) {
        self.learned.scan_limits.forget_searches();
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
                self.learned.scan_limits.note(llc, look, busy);
            }
        }
    }

    /// What a pass over a cache would set, and whether one of its CPUs is busy.
    fn scan_limit(&self, sd: SdId, at: Time) -> (Range, bool) {
        let sd = self.sched.domains.sd(sd);
        let (mut least, mut most, mut busy) = (0, 0, false);
        for cpu in sd.span.iter() {
            let (low, high) = loads::bounds(self, cpu, Width::Likely, at);
            least += self.sched.cpu_util_of(cpu, low.util);
            most += self.sched.cpu_util_of(cpu, high.util);
            busy |= self.sched.rqs[cpu].curr != Curr::Idle;
        }
        let limit = |util| nr_idle_scan(util, sd.span_weight.into(), sd.imbalance_pct.into());
        (Range { least: limit(most), most: limit(least) }, busy)
    }
}

/// Asks with the facts that the CPUs of a cache share changed, in all caches.
pub(super) fn with_caches(shadow: &mut Shadow, change: impl Fn(&mut SharedDomain), look: Look<'_>) -> bool {
    let known = shadow.sched.domains.shared.clone();
    shadow.sched.domains.shared.iter_mut().for_each(change);
    let leads = look(shadow);
    shadow.sched.domains.shared = known;
    leads
}

fn beyond(case: &Case<'_>, candidates: &mut Vec<Candidate>) {
    if !matches!(case.of, Of::Wakeup { .. }) {
        return;
    }
    for (limit, had) in
        [(u32::MAX >> 1, "the search had looked at every CPU"), (0, "the search had looked at no CPU")]
    {
        let had = Otherwise::plain("IDLE_SCAN_LIMIT", had);
        candidates.push(Candidate::new(had, move |shadow, look| {
            with_caches(shadow, |llc| llc.nr_idle_scan = limit, look)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_sched::Kernel;
    use schedlab_topology::Topology;

    #[test]
    fn a_limit_lies_between_what_the_last_looks_at_a_busy_cache_would_have_left() {
        let (llc, look) = (SharedId(1), |least, most| Range { least, most });
        let mut limits = ScanLimits::default();
        assert_eq!(limits.of(llc), Range::ANY);
        limits.note(llc, look(2, 3), true);
        assert_eq!(limits.of(llc), Range::ANY, "what was left before the recording");
        for _ in 1..LOOKS {
            limits.note(llc, look(4, 5), true);
        }
        assert_eq!(limits.of(llc), look(2, 5));
        for _ in 0..LOOKS {
            limits.note(llc, look(8, 8), false);
        }
        assert_eq!(limits.of(llc), look(2, 8), "an idle cache keeps what it had");
        limits.note(llc, look(4, 4), true);
        assert_eq!(limits.of(llc), look(4, 8));
        assert_eq!(limits.of(SharedId(0)), Range::ANY);
    }

    #[test]
    fn searches_narrow_the_limit_until_the_next_tick() {
        let mut shadow =
            Shadow::new(&Topology::regular("1x1x8").unwrap(), &Kernel::parse("v6.12").unwrap(), Vec::new());
        let (llc, finds, else_takes) = (SharedId(0), CpuId(3), CpuId(0));
        let by = |looks| ByLimit { llc, finds, looks, else_takes };
        shadow.learned.scan_limits.learn(by(5), CpuId(7));
        assert_eq!(shadow.scan_range(llc), Range::ANY, "it ended at neither");
        shadow.learned.scan_limits.learn(by(2), finds);
        shadow.learned.scan_limits.learn(by(5), else_takes);
        assert_eq!(shadow.scan_range(llc), Range { least: 2, most: 4 });
        shadow.learned.scan_limits.learn(by(6), finds);
        assert_eq!(shadow.scan_range(llc).least, 6, "of what contradicts itself the latest counts");
        shadow.look_at_scan_limits(Time(1_000_000_000));
        assert_eq!(shadow.scan_range(llc), Range::ANY);
    }
}
