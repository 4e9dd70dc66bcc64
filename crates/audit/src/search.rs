//! The search for an idle CPU around a target, under what is hidden of it.

use schedlab_sched::{Feature, Reason, RecentUsedCpu, SharedId, View, Wakeup, wakeup};
use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::possibilities::{ByLimit, Possibilities};
use crate::shadow::Shadow;
use crate::verdict::{Hidden, Numbers};

/// A CPU around which an idle one is looked for.
pub struct Target {
    pub cpu: CpuId,
    /// What made it the target.
    pub affine: Reason,
    /// The hidden fact by which it is, if another may be as well.
    pub hidden: Option<Hidden>,
    pub numbers: Numbers,
}

/// One reading of what is hidden.
pub struct Reading {
    /// The fact that it takes; none for the likeliest.
    pub takes: Option<Hidden>,
    /// What it leads to is possible; else it is only asked to tell guesses apart.
    pub counts: bool,
    /// It led nowhere yet.
    pub first: bool,
}

impl Reading {
    /// What it takes to be led to a CPU, by a fact of the way there.
    fn hidden(&mut self, on_the_way: Option<Hidden>) -> Option<Hidden> {
        let first = std::mem::replace(&mut self.first, false);
        on_the_way.filter(|_| !first).or(self.takes)
    }
}

/// What a search costs that is not worth it, ns.
const DEAR: u64 = 1 << 40;

/// A search of a wake-up, under one reading of what leads to it.
pub struct Search<'a> {
    pub wakeup: &'a Wakeup,
    pub prev: CpuId,
    pub target: &'a Target,
    pub reading: &'a mut Reading,
    pub now: Time,
}

/// How a search ended.
struct Ended {
    reason: Reason,
    cpu: CpuId,
    /// CPUs it looked at.
    looks: u32,
}

impl Search<'_> {
    /// Adds all CPUs where it may end.
    pub fn add_all(mut self, shadow: &mut Shadow, found: &mut Possibilities) {
        let llc = shadow.sched.domains.per_cpu[self.target.cpu].llc_shared;
        let Some(llc) = llc else {
            self.add_without_marks(shadow, found);
            return;
        };
        let before = shadow.sched.domains.shared[llc.0 as usize].clone();
        let range = shadow.scan_range(llc);
        let limit = &mut shadow.sched.domains.shared[llc.0 as usize].nr_idle_scan;
        *limit = (*limit).clamp(range.least, range.most);
        let ended = self.add_without_marks(shadow, found);
        let scans = matches!(
            ended.reason,
            Reason::IdleCpu | Reason::NoIdleCpu | Reason::ScanLimit | Reason::NoScan | Reason::IdleClusterCpu
        );
        if scans && shadow.sched.kernel.has(Feature::SisUtil) {
            self.add_by_limit(shadow, llc, &ended, found);
        } else if scans && shadow.sched.kernel.has(Feature::SisProp) {
            self.add_by_cost(shadow, &ended, found);
        }
        shadow.sched.domains.shared[llc.0 as usize].nr_idle_scan = before.nr_idle_scan;
        let core = matches!(ended.reason, Reason::IdleCore | Reason::IdleCoreFallback | Reason::IdleSmt);
        if (scans || core) && shadow.sched.domains.smt_active {
            // Searches that failed took the mark away, and which of them were made is not known.
            shadow.sched.domains.shared[llc.0 as usize].has_idle_cores = !before.has_idle_cores;
            self.add(shadow, Some(Hidden::IdleCores), found);
            shadow.sched.domains.shared[llc.0 as usize].has_idle_cores = before.has_idle_cores;
        }
    }

    /// Where it ends with the marks of the cache as they are, and by which recently used CPU it may end before.
    fn add_without_marks(&mut self, shadow: &mut Shadow, found: &mut Possibilities) -> Ended {
        let ended = self.add(shadow, None, found);
        let early = matches!(ended.reason, Reason::TargetIdle | Reason::PrevIdle | Reason::KthreadStack);
        if !early && !shadow.known(self.wakeup.task).recent_known {
            recent(shadow, self.wakeup, self.target.cpu, |shadow| {
                self.add(shadow, Some(Hidden::RecentCpu), found);
            });
        }
        ended
    }

    /// Where it ends under another limit. One that found somebody does so under any limit that lets it come so far;
    /// one that did not finds nobody in less, nor in more once it has seen all.
    fn add_by_limit(&mut self, shadow: &mut Shadow, llc: SharedId, ended: &Ended, found: &mut Possibilities) {
        let (at, range) = (llc.0 as usize, shadow.scan_range(llc));
        let found_some = matches!(ended.reason, Reason::IdleCpu | Reason::IdleClusterCpu);
        let stopped = matches!(ended.reason, Reason::ScanLimit | Reason::NoScan);
        let limit = if found_some { range.least } else { range.most };
        if !(found_some || stopped) || limit == shadow.sched.domains.shared[at].nr_idle_scan {
            return;
        }
        shadow.sched.domains.shared[at].nr_idle_scan = limit;
        let other = self.add(shadow, Some(Hidden::IdleScanLimit), found);
        let (far, near) = if found_some { (ended, &other) } else { (&other, ended) };
        if far.cpu != near.cpu {
            found.by_limit = Some(ByLimit { llc, finds: far.cpu, looks: far.looks, else_takes: near.cpu });
        }
    }

    /// Where it ends if earlier searches cost so much that this one may look at few, or so little that it may look at
    /// all: the kernel measured them, which no event shows.
    fn add_by_cost(&mut self, shadow: &mut Shadow, ended: &Ended, found: &mut Possibilities) {
        let cost = match ended.reason {
            Reason::IdleCpu => DEAR,
            Reason::ScanLimit | Reason::NoScan => 0,
            _ => return,
        };
        let Some(own) = shadow.sched.domains.per_cpu[self.wakeup.this_cpu].llc else { return };
        let before = std::mem::replace(&mut shadow.sched.domains.sd_mut(own).avg_scan_cost, cost);
        self.add(shadow, Some(Hidden::IdleScanLimit), found);
        shadow.sched.domains.sd_mut(own).avg_scan_cost = before;
    }

    /// Adds where it ends in the state of now.
    fn add(&mut self, shadow: &Shadow, hidden: Option<Hidden>, found: &mut Possibilities) -> Ended {
        let Search { wakeup, prev, target, now, .. } = *self;
        let view = View::new(&shadow.sched, now, None);
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

    /// The recently used CPU that the waker is given where it is asked for affinity.
    fn waker_recent(&self, shadow: &Shadow) -> Option<CpuId> {
        let this = self.wakeup.this_cpu;
        let by_waker = shadow.sched.kernel.rules.recent_used_cpu == RecentUsedCpu::Waker;
        let asked_affine = self.target.affine != Reason::WakeWide
            && shadow.sched.task(self.wakeup.task).allowed.contains(this);
        (by_waker && asked_affine).then_some(this)
    }
}

/// Tries each CPU of the target's cache as the recently used one.
fn recent(shadow: &mut Shadow, wakeup: &Wakeup, target: CpuId, mut run: impl FnMut(&Shadow)) {
    if shadow.sched.kernel.rules.recent_used_cpu == RecentUsedCpu::Off {
        return;
    }
    let before = shadow.sched.task(wakeup.task).recent_used_cpu;
    for cpu in shadow.cpus() {
        if shadow.sched.cpus_share_cache(cpu, target) && shadow.sched.available_idle_cpu(cpu) {
            shadow.sched.task_mut(wakeup.task).recent_used_cpu = Some(cpu);
            run(shadow);
        }
    }
    shadow.sched.task_mut(wakeup.task).recent_used_cpu = before;
}
