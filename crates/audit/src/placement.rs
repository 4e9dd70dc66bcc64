//! Where a wake-up may lead, under all that the trace leaves open.
//!
//! The deciders are asked once for each reading of the hidden facts that can matter at
//! this wake-up: the waker's sync flag where there may be one, loads that are close, the scan limit, a recently
//! used CPU from before the recording. The likeliest reading comes first.

use schedlab_sched::wakeup::{self, Affine, EffectiveLoads};
use schedlab_sched::{
    Feature, Placement, Policy, Reason, RecentUsedCpu, SchedDomain, SdFlags, SdId, SharedId, View, WakePath,
    Wakeup,
};
use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::flips::Spread;
use crate::shadow::Shadow;
use crate::verdict::{Choice, Hidden, Numbers, Possible};

/// A CPU around which an idle one is looked for.
struct Target {
    cpu: CpuId,
    affine: Reason,
    hidden: Option<Hidden>,
    numbers: Numbers,
}

/// What is possible, each CPU once.
#[derive(Default)]
pub struct Possibilities {
    /// The likeliest first.
    pub list: Vec<Possible>,
    /// What the likeliest leaves behind: recently used CPU, hints.
    pub placements: Vec<Placement>,
    /// The CPUs that are possible around the previous CPU, and around the waker's.
    pub around: [Vec<CpuId>; 2],
    /// Where guesses of the flips differ: what they say.
    pub telling: Option<Telling>,
    /// Whether the wake-up may lead around the previous CPU and around the waker's: without the sync flag, and with it.
    pub by_flag: Option<[[bool; 2]; 2]>,
    /// Where a search ends hangs on its limit.
    pub by_limit: Option<ByLimit>,
}

/// Where a search ends if its limit lets it come so far, and if it does not.
#[derive(Clone, Copy)]
pub struct ByLimit {
    /// The cache whose limit it is.
    pub llc: SharedId,
    /// The CPU that it finds.
    pub finds: CpuId,
    /// So many CPUs it has to look at.
    pub looks: u32,
    /// The CPU that is taken if it may look at fewer.
    pub else_takes: CpuId,
}

/// What the outcome of a wake-up may tell of the flips.
pub struct Telling {
    /// What the guesses say.
    pub spread: Spread,
    /// If the wake-up does not spread, and if it does: whether it may lead around the previous CPU and
    /// around the waker's.
    pub leads: [[bool; 2]; 2],
}

impl Possibilities {
    /// Whether the wake-up spread, if only that, or only the other, leads to a CPU.
    pub fn tells_spread(&self, cpu: CpuId) -> Option<bool> {
        self.tells(self.telling.as_ref()?.leads, cpu)
    }

    /// Whether the wake-up carried the sync flag, if only that, or only the other, leads to a CPU.
    pub fn tells_flag(&self, cpu: CpuId) -> Option<bool> {
        self.tells(self.by_flag?, cpu)
    }

    /// Which of two readings leads to a CPU, if one alone does.
    fn tells(&self, leads: [[bool; 2]; 2], cpu: CpuId) -> Option<bool> {
        let may = |leads: [bool; 2]| {
            leads.iter().zip(&self.around).any(|(&leads, cpus)| leads && cpus.contains(&cpu))
        };
        let [one, other] = leads.map(may);
        (one != other).then_some(other)
    }

    /// Whether a CPU is among them.
    pub fn has(&self, cpu: CpuId) -> bool {
        self.list.iter().any(|possible| possible.choice == Choice::Cpu(cpu))
    }

    /// Adds one, unless its CPU is there. The first needs no hidden fact.
    pub fn add(&mut self, placement: Placement, hidden: Option<Hidden>, mut numbers: Numbers) {
        let choice = Choice::Cpu(placement.cpu);
        if self.has(placement.cpu) {
            return;
        }
        numbers.extend(placement.number);
        let hidden = if self.list.is_empty() { None } else { hidden };
        self.list.push(Possible { choice, reason: placement.reason.name(), hidden, numbers });
        self.placements.push(placement);
    }
}

/// One reading of what is hidden.
struct Reading {
    /// The fact that it takes; none for the likeliest.
    takes: Option<Hidden>,
    /// What it leads to is possible; else it is only asked to tell guesses apart.
    counts: bool,
    /// It led nowhere yet.
    first: bool,
}

impl Reading {
    /// What it takes to be led to a CPU, by a fact of the way there.
    fn hidden(&mut self, on_the_way: Option<Hidden>) -> Option<Hidden> {
        let first = std::mem::replace(&mut self.first, false);
        on_the_way.filter(|_| !first).or(self.takes)
    }
}

/// All that a wake-up may lead to, in the shadow's state of now.
pub fn of_wakeup(shadow: &mut Shadow, wakeup: &Wakeup, now: Time) -> Possibilities {
    let mut found = shadow.spare.possibilities();
    let reason = match shadow.sched.wake_path(wakeup) {
        WakePath::SelfWake => Reason::WakeSelf,
        WakePath::StillQueued => Reason::StillQueued,
        WakePath::StillDelayed => Reason::StillDelayed,
        WakePath::OnCpuHandover => Reason::OnCpuHandover,
        WakePath::Select => {
            selections(shadow, wakeup, now, &mut found);
            return found;
        }
    };
    found.add(Placement::new(shadow.sched.task(wakeup.task).cpu, reason), None, Numbers::default());
    found
}

/// A CPU is chosen: the readings.
fn selections(shadow: &mut Shadow, wakeup: &Wakeup, now: Time, found: &mut Possibilities) {
    let task = shadow.sched.task(wakeup.task);
    let (prev, this) = (task.wake_cpu, wakeup.this_cpu);
    let slow = shadow.sched.domains.walk(this).any(|(_, sd)| sd.flags.has(SdFlags::BALANCE_WAKE));
    let (policy, nr_cpus_allowed) = (task.policy, task.nr_cpus_allowed);
    if !task.policy.is_fair() || task.nr_cpus_allowed <= 1 || slow {
        if nr_cpus_allowed > 1 && matches!(policy, Policy::Fifo(_) | Policy::Rr(_)) {
            found.add(shadow.sched.select_task_rq_rt(wakeup.task, this), None, Numbers::default());
            for cpu in shadow.sched.lowest_for_woken(wakeup.task, this) {
                let placement = Placement::new(cpu, Reason::LowestRt);
                found.add(placement, Some(Hidden::CpuRotation), Numbers::default());
            }
            return;
        }
        for sync in [false, true] {
            let decision = shadow.sched.decide_wakeup(&Wakeup { sync, ..*wakeup }, now, None);
            let placement = decision.placement.expect("a CPU is chosen");
            found.add(placement, Some(Hidden::SyncFlag), Numbers::default());
        }
        return;
    }
    let own = |shadow: &Shadow| wakeup::wake_wide(&View::new(&shadow.sched, now, None), wakeup);
    let (wide, open) = match spread(shadow, wakeup, now) {
        Some(spread) => {
            let answer = (spread.wide, spread.open);
            if spread.tells {
                found.telling = Some(Telling { spread, leads: Default::default() });
            }
            answer
        }
        None => (own(shadow), flips_hidden(shadow, wakeup)),
    };
    let narrow_by_own = wide && !own(shadow);
    let asks_other = open || found.telling.is_some();
    let over = if !wide || narrow_by_own || asks_other { affine_domain(shadow, wakeup, prev) } else { None };
    if narrow_by_own {
        // By its own flips it is affine; loads that were looked at keep their factor for a jiffy.
        affine(shadow, wakeup, prev, over, now);
    }
    let mut asks_sync = (!wide || asks_other) && over.is_some() && may_be_sync(shadow, wakeup);
    let flag = shadow.sync_flag(wakeup).filter(|_| asks_sync);
    let mut by_flag = [[false; 2]; 2];
    // Whether the wake-up leads around the previous CPU or the waker's, if it does not spread and if it
    // does, and which of the two were searched for what is possible, or at all.
    let (mut leads, mut counted, mut searched) = ([[false; 2]; 2], [false; 2], [false; 2]);
    for sync in [false, true] {
        if sync && !asks_sync {
            break;
        }
        for spreads in [wide, !wide] {
            let other_flag = !spreads && flag == Some(!sync);
            let counts = (spreads == wide || open) && !other_flag;
            // A wake-up that spreads does not heed the flag.
            if !counts && found.telling.is_none() || sync && spreads {
                continue;
            }
            let flips = (spreads != wide).then_some(Hidden::WakeeFlips);
            let mut reading =
                Reading { takes: sync.then_some(Hidden::SyncFlag).or(flips), counts, first: true };
            let (first, second) = if spreads {
                (spreading(shadow, wakeup, prev), None)
            } else {
                affine(shadow, &Wakeup { sync, ..*wakeup }, prev, over, now)
            };
            asks_sync &= spreads || wakeup::heeds_sync(first.affine);
            for target in std::iter::once(&first).chain(&second) {
                let at = usize::from(target.cpu != prev);
                by_flag[usize::from(sync)][at] = true;
                if std::mem::replace(&mut leads[usize::from(spreads)][at], true) {
                    continue;
                }
                // Around one CPU the search ends the same, whatever led there.
                if counted[at] || searched[at] && !counts {
                    reading.first = false;
                    continue;
                }
                searched[at] = true;
                counted[at] |= counts;
                search(shadow, wakeup, prev, target, &mut reading, now, found);
            }
        }
    }
    if let Some(telling) = &mut found.telling {
        telling.leads = leads;
    }
    // Where it may also spread, the flag is not told from that.
    found.by_flag = Some(by_flag).filter(|_| asks_sync && flag.is_none() && !wide && !asks_other);
}

/// Whether the wake-up may carry the sync flag, and it is heeded: that of a waker that exits
/// is not.
pub fn may_be_sync(shadow: &Shadow, wakeup: &Wakeup) -> bool {
    let exits = shadow.sched.kernel.has(Feature::SyncWakerExiting)
        && wakeup.waker.is_some_and(|waker| shadow.sched.task(waker).exiting);
    !exits && !shadow.known(wakeup.task).plainly_woken
}

/// What the guesses of the flips say, where both sides descend from a task whose flips are
/// guessed.
fn spread(shadow: &Shadow, wakeup: &Wakeup, now: Time) -> Option<Spread> {
    let waker = shadow.known(wakeup.waker?).flips.as_ref()?;
    let wakee = shadow.known(wakeup.task).flips.as_ref()?;
    let factor = shadow.sched.domains.per_cpu[wakeup.this_cpu].llc_size;
    let jiffies = shadow.sched.jiffies(now);
    Some(shadow.guesses.spread(waker, wakeup.task, wakee, factor, jiffies))
}

/// Whether flips from before the recording may make the difference: those of one side are
/// not known, and the other side changes its partners often enough.
fn flips_hidden(shadow: &Shadow, wakeup: &Wakeup) -> bool {
    let factor = shadow.sched.domains.per_cpu[wakeup.this_cpu].llc_size;
    let guessed = |task| {
        let known = shadow.known(task);
        known.flips.as_ref().map(|flips| shadow.guesses.likeliest(flips).flips)
    };
    match (wakeup.waker.and_then(guessed), guessed(wakeup.task)) {
        (Some(known), None) | (None, Some(known)) => known >= factor,
        (Some(_), Some(_)) | (None, None) => false,
    }
}

/// Around whom is looked where the wake-up spreads.
fn spreading(shadow: &Shadow, wakeup: &Wakeup, prev: CpuId) -> Target {
    let flips = |task| {
        let known = shadow.known(task).flips.as_ref().map(|flips| shadow.guesses.likeliest(flips).flips);
        i64::from(known.unwrap_or(shadow.sched.task(task).wakee_flips))
    };
    let mut numbers = Numbers::from_iter([("wakee's flips", flips(wakeup.task))]);
    numbers.extend(wakeup.waker.map(|waker| ("waker's flips", flips(waker))));
    Target { cpu: prev, affine: Reason::WakeWide, hidden: None, numbers }
}

/// The domain over which the affine step weighs the waker's CPU against the previous one; it alone
/// heeds the sync flag.
fn affine_domain(shadow: &Shadow, wakeup: &Wakeup, prev: CpuId) -> Option<SdId> {
    let this = wakeup.this_cpu;
    if this == prev || !shadow.sched.task(wakeup.task).allowed.contains(this) {
        return None;
    }
    let spans = |sd: &SchedDomain| sd.flags.has(SdFlags::WAKE_AFFINE) && sd.span.contains(prev);
    shadow.sched.domains.walk(this).find(|(_, sd)| spans(sd)).map(|(id, _)| id)
}

/// The answers of the affine step over a domain, one or two.
fn affine(
    shadow: &Shadow,
    wakeup: &Wakeup,
    prev: CpuId,
    over: Option<SdId>,
    now: Time,
) -> (Target, Option<Target>) {
    let (sched, this) = (&shadow.sched, wakeup.this_cpu);
    let view = &View::new(sched, now, None);
    let plain = |affine, cpu| Target { cpu, affine, hidden: None, numbers: Numbers::default() };
    let Some(sd) = over.map(|over| sched.domains.sd(over)) else {
        return (plain(Reason::NoAffine, prev), None);
    };
    let Affine { reason, cpu, loads } = wakeup::wake_affine(view, wakeup, sd, prev, wakeup.sync);
    let Some(EffectiveLoads::Compared { this: this_load, prev: prev_load }) = loads else {
        return (plain(reason, cpu), None);
    };
    // Back in the unit of a load average.
    let bias = 100 + (i64::from(sd.imbalance_pct) - 100) / 2;
    let this_load = this_load / (100 * sched.capacity_of(prev) as i64);
    let prev_load = prev_load / (bias * sched.capacity_of(this) as i64);
    let numbers = Numbers::from_iter([("load of waker's CPU", this_load), ("of previous", prev_load)]);
    let target = Target { numbers, ..plain(reason, cpu) };
    // The wakee is added to one side and taken off the other.
    let wakee = 2 * shadow.sleeper_load_error(wakeup.task, now);
    let open = shadow.load_errors * (shadow.load_error(this) + shadow.load_error(prev) + wakee);
    let close = (this_load - prev_load * bias / 100).unsigned_abs() <= open;
    if !close && !shadow.groups_hidden {
        return (target, None);
    }
    let hidden = if close { Hidden::Loads } else { Hidden::Groups };
    let other = if cpu == this { prev } else { this };
    (target, Some(Target { hidden: Some(hidden), numbers, ..plain(reason, other) }))
}

/// The idle search around a target.
fn search(
    shadow: &mut Shadow,
    wakeup: &Wakeup,
    prev: CpuId,
    target: &Target,
    reading: &mut Reading,
    now: Time,
    found: &mut Possibilities,
) {
    let asked_affine =
        target.affine != Reason::WakeWide && shadow.sched.task(wakeup.task).allowed.contains(wakeup.this_cpu);
    let by_waker = shadow.sched.kernel.rules.recent_used_cpu == RecentUsedCpu::Waker;
    let waker_recent = (by_waker && asked_affine).then_some(wakeup.this_cpu);
    let llc = shadow.sched.domains.per_cpu[target.cpu].llc_shared;
    let before = llc.map(|llc| shadow.sched.domains.shared[llc.0 as usize].nr_idle_scan);
    if let Some(llc) = llc {
        let range = shadow.scan_range(llc);
        let limit = &mut shadow.sched.domains.shared[llc.0 as usize].nr_idle_scan;
        *limit = (*limit).clamp(range.least, range.most);
    }
    let mut run =
        |shadow: &Shadow, hidden: Option<Hidden>, found: &mut Possibilities| -> (Reason, CpuId, u32) {
            let view = View::new(&shadow.sched, now, None);
            let mut placement = wakeup::select_idle_sibling(&view, wakeup, prev, target.cpu);
            if !shadow.sched.task(wakeup.task).allowed.contains(placement.cpu) {
                placement.cpu = shadow.sched.select_fallback_rq(wakeup.task);
                placement.reason = Reason::Fallback;
            }
            found.around[usize::from(target.cpu != prev)].push(placement.cpu);
            let hidden = reading.hidden(target.hidden.or(hidden));
            let outcome = (placement.reason, placement.cpu, placement.examined);
            if reading.counts {
                placement.affine = Some((target.affine, target.cpu));
                placement.waker_recent_used_cpu = waker_recent;
                found.add(placement, hidden, target.numbers);
            }
            outcome
        };
    let (reason, cpu, looks) = run(shadow, None, found);
    let early = matches!(reason, Reason::TargetIdle | Reason::PrevIdle | Reason::KthreadStack);
    if !early && !shadow.known(wakeup.task).recent_known {
        recent(shadow, wakeup, target.cpu, |shadow| {
            run(shadow, Some(Hidden::RecentCpu), found);
        });
    }
    let scans = matches!(
        reason,
        Reason::IdleCpu | Reason::NoIdleCpu | Reason::ScanLimit | Reason::NoScan | Reason::IdleClusterCpu
    );
    if scans && let Some(llc) = llc {
        let at = llc.0 as usize;
        let (limit, range) = (shadow.sched.domains.shared[at].nr_idle_scan, shadow.scan_range(llc));
        // One that found somebody does so under any limit that lets it come so far; one that did not
        // finds nobody in less, nor in more once it has seen all.
        let found_some = matches!(reason, Reason::IdleCpu | Reason::IdleClusterCpu);
        let stopped = matches!(reason, Reason::ScanLimit | Reason::NoScan);
        let other = if found_some { range.least } else { range.most };
        if (found_some || stopped) && other != limit {
            shadow.sched.domains.shared[at].nr_idle_scan = other;
            let (_, other, other_looks) = run(shadow, Some(Hidden::IdleScanLimit), found);
            if other != cpu {
                found.by_limit = Some(if found_some {
                    ByLimit { llc, finds: cpu, looks, else_takes: other }
                } else {
                    ByLimit { llc, finds: other, looks: other_looks, else_takes: cpu }
                });
            }
        }
    }
    if let (Some(llc), Some(before)) = (llc, before) {
        shadow.sched.domains.shared[llc.0 as usize].nr_idle_scan = before;
    }
    let core = matches!(reason, Reason::IdleCore | Reason::IdleCoreFallback | Reason::IdleSmt);
    if (scans || core)
        && shadow.sched.domains.smt_active
        && let Some(shared) = llc
    {
        // Searches that failed took the mark away, and which of them were made is not known.
        let at = shared.0 as usize;
        let known = shadow.sched.domains.shared[at].has_idle_cores;
        shadow.sched.domains.shared[at].has_idle_cores = !known;
        run(shadow, Some(Hidden::IdleCores), found);
        shadow.sched.domains.shared[at].has_idle_cores = known;
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
