//! The search for an idle CPU around a target, given the facts that are hidden.

use schedlab_sched::{Feature, Reason, RecentUsedCpu, SharedId, Supposed, Wakeup, wakeup};
use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::judge::possibilities::Possibilities;
use crate::report::verdict::Numbers;
use crate::unknown::Shadow;
use crate::unknown::idle_scan_limit::{ByLimit, Range};
use crate::unknown::list::Unknown;
use crate::unknown::{idle_cores, recent_cpu};

/// A CPU around which an idle one is searched.
pub struct Target {
    pub cpu: CpuId,
    /// The reason why it is the target.
    pub affine: Reason,
    /// The hidden fact that makes it the target, if another CPU may be it as well.
    pub hidden: Option<Unknown>,
    pub numbers: Numbers,
}

/// One assumption about what is hidden.
pub struct Assumption {
    /// The fact that it assumes; `None` for the likeliest case.
    pub takes: Option<Unknown>,
    /// Whether its outcome counts as possible; otherwise it only serves to distinguish guesses.
    pub counts: bool,
    /// It has led to no CPU yet.
    pub first: bool,
}

impl Assumption {
    /// The hidden fact that is needed to reach a CPU, given the fact needed on the way there.
    fn hidden(&mut self, on_the_way: Option<Unknown>) -> Option<Unknown> {
        let first = std::mem::replace(&mut self.first, false);
        on_the_way.filter(|_| !first).or(self.takes)
    }
}

/// A search cost at which searching is not worthwhile, ns.
const DEAR: u64 = 1 << 40;

/// A wake-up's search, under one assumption about what leads to it.
pub struct Search<'a> {
    pub wakeup: &'a Wakeup,
    pub prev: CpuId,
    pub target: &'a Target,
    pub reading: &'a mut Assumption,
    pub now: Time,
}

/// How a search ended.
struct Ended {
    reason: Reason,
    cpu: CpuId,
    /// How many CPUs it examined.
    looks: u32,
}

impl Search<'_> {
    /// Adds all CPUs where it may end.
    pub fn add_all(mut self, shadow: &Shadow, found: &mut Possibilities) {
        let llc = shadow.sched.domains.per_cpu[self.target.cpu].llc_shared;
        let Some(llc) = llc else {
            self.add_plainly(shadow, &Supposed::NOTHING, found);
            return;
        };
        let shared = &shadow.sched.domains.shared[llc.0 as usize];
        let range = shadow.scan_range(llc);
        let limit = shared.nr_idle_scan.clamp(range.least, range.most);
        let limited = Supposed { nr_idle_scan: Some(limit), ..Supposed::NOTHING };
        let ended = self.add_plainly(shadow, &limited, found);
        let scans = matches!(
            ended.reason,
            Reason::IdleCpu | Reason::NoIdleCpu | Reason::ScanLimit | Reason::NoScan | Reason::IdleClusterCpu
        );
        if scans && shadow.sched.kernel.has(Feature::SisUtil) {
            self.add_by_limit(shadow, (llc, limit, range), &ended, found);
        } else if scans && shadow.sched.kernel.has(Feature::SisProp) {
            self.add_by_cost(shadow, &limited, &ended, found);
        }
        let core = matches!(ended.reason, Reason::IdleCore | Reason::IdleCoreFallback | Reason::IdleSmt);
        if (scans || core) && shadow.sched.domains.smt_active {
            self.add(shadow, &idle_cores::other_mark(shared), Some(Unknown::IdleCores), found);
        }
    }

    /// Where it ends with the mark of the cache as it is, and the recently used CPUs where it may end earlier.
    fn add_plainly(&mut self, shadow: &Shadow, limited: &Supposed, found: &mut Possibilities) -> Ended {
        let ended = self.add(shadow, limited, None, found);
        let early = matches!(ended.reason, Reason::TargetIdle | Reason::PrevIdle | Reason::KthreadStack);
        if !early {
            for recent in recent_cpu::values(shadow, self.wakeup.task, self.target.cpu, limited) {
                self.add(shadow, &recent, Some(Unknown::RecentCpu), found);
            }
        }
        ended
    }

    /// Where it ends under another limit. A search that found a CPU finds it under any limit that reaches that far. One
    /// that found none finds none under a lower limit, nor under a higher one once it has examined all.
    fn add_by_limit(
        &mut self,
        shadow: &Shadow,
        (llc, had, range): (SharedId, u32, Range),
        ended: &Ended,
        found: &mut Possibilities,
    ) {
        let found_some = matches!(ended.reason, Reason::IdleCpu | Reason::IdleClusterCpu);
        let stopped = matches!(ended.reason, Reason::ScanLimit | Reason::NoScan);
        let limit = if found_some { range.least } else { range.most };
        if !(found_some || stopped) || limit == had {
            return;
        }
        let limited = Supposed { nr_idle_scan: Some(limit), ..Supposed::NOTHING };
        let other = self.add(shadow, &limited, Some(Unknown::IdleScanLimit), found);
        let (far, near) = if found_some { (ended, &other) } else { (&other, ended) };
        if far.cpu != near.cpu {
            found.by_limit = Some(ByLimit { llc, finds: far.cpu, looks: far.looks, else_takes: near.cpu });
        }
    }

    /// Where it ends if earlier searches were so expensive that this one may examine few CPUs, or so cheap that it may
    /// examine all. The kernel measures the cost, and no event shows it.
    fn add_by_cost(&mut self, shadow: &Shadow, limited: &Supposed, ended: &Ended, found: &mut Possibilities) {
        let cost = match ended.reason {
            Reason::IdleCpu => DEAR,
            Reason::ScanLimit | Reason::NoScan => 0,
            _ => return,
        };
        let measured = Supposed { avg_scan_cost: Some(cost), ..*limited };
        self.add(shadow, &measured, Some(Unknown::IdleScanLimit), found);
    }

    /// Adds where it ends under this assumption.
    fn add(
        &mut self,
        shadow: &Shadow,
        supposed: &Supposed,
        hidden: Option<Unknown>,
        found: &mut Possibilities,
    ) -> Ended {
        let Search { wakeup, prev, target, now, .. } = *self;
        let view = shadow.supposed(now, supposed);
        let placement = wakeup::select_idle_sibling(&view, wakeup, prev, target.cpu);
        let mut placement = shadow.sched.or_fallback(wakeup.task, placement);
        found.around[usize::from(target.cpu != prev)].push(placement.cpu);
        let hidden = self.reading.hidden(target.hidden.or(hidden));
        let ended = Ended { reason: placement.reason, cpu: placement.cpu, looks: placement.examined };
        if self.reading.counts {
            placement.affine = Some((target.affine, target.cpu));
            placement.waker_recent_used_cpu = self.waker_recent(shadow);
            found.add(placement, hidden, target.numbers);
        }
        ended
    }

    /// The recently used CPU that is passed to the waker's affinity check.
    fn waker_recent(&self, shadow: &Shadow) -> Option<CpuId> {
        let this = self.wakeup.this_cpu;
        let by_waker = shadow.sched.kernel.rules.recent_used_cpu == RecentUsedCpu::Waker;
        let asked_affine = self.target.affine != Reason::WakeWide
            && shadow.sched.task(self.wakeup.task).allowed.contains(this);
        (by_waker && asked_affine).then_some(this)
    }
}
