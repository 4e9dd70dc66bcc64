//! Where a wake-up may lead, given everything that the trace leaves open.
//!
//! The deciders are asked once for each combination of hidden facts that can matter at this wake-up: the waker's sync
//! flag if it may be set, loads that are close, the scan limit, a recently used CPU from before the recording. The
//! likeliest combination comes first.

use schedlab_sched::wakeup::{self, Affine, EffectiveLoads};
use schedlab_sched::{Class, Placement, Reason, SchedDomain, SdFlags, SdId, View, WakePath, Wakeup};
use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::judge::possibilities::{Possibilities, Telling};
use crate::judge::spare::Spare;
use crate::judge::wakeup::search::{Assumption, Search, Target};
use crate::report::verdict::Numbers;
use crate::unknown::Shadow;
use crate::unknown::list::Unknown;
use crate::unknown::sync_flag::may_be_sync;
use crate::unknown::{cpu_rotation, deadlines};

/// Everything that a wake-up may lead to in the shadow's current state.
pub fn of_wakeup(shadow: &mut Shadow, spare: &mut Spare, wakeup: &Wakeup, now: Time) -> Possibilities {
    let mut found = spare.possibilities();
    let reason = match shadow.sched.wake_path(wakeup) {
        WakePath::SelfWake => Reason::WakeSelf,
        WakePath::StillQueued => Reason::StillQueued,
        WakePath::StillDelayed => Reason::StillDelayed,
        WakePath::OnCpuHandover => Reason::OnCpuHandover,
        WakePath::Select => {
            selections(shadow, wakeup, true, now, &mut found);
            if found.telling.is_some() && shadow.learned.trusts && found.list.len() > 1 {
                // That run ignored untrusted guesses, because it may rule guesses out for good; now ask again for
                // everything that is possible.
                let mut trusted = spare.possibilities();
                selections(shadow, wakeup, false, now, &mut trusted);
                std::mem::swap(&mut found.list, &mut trusted.list);
                std::mem::swap(&mut found.placements, &mut trusted.placements);
                found.by_limit = trusted.by_limit;
                spare.give_back_all(trusted);
            }
            return found;
        }
    };
    found.add(Placement::new(shadow.sched.task(wakeup.task).cpu, reason), None, Numbers::default());
    found
}

/// Candidates for a real-time task: the nearest CPU that runs something of lower priority, each in turn.
fn of_rt(shadow: &Shadow, wakeup: &Wakeup, found: &mut Possibilities) {
    let (sched, this) = (&shadow.sched, wakeup.this_cpu);
    found.add(sched.select_task_rq_rt(wakeup.task, this), None, Numbers::default());
    for placement in cpu_rotation::others(shadow, wakeup) {
        found.add(placement, Some(Unknown::CpuRotation), Numbers::default());
    }
}

/// Candidates for a deadline task: its own CPU, or another one.
fn of_dl(shadow: &Shadow, wakeup: &Wakeup, found: &mut Possibilities) {
    let prev = shadow.sched.task(wakeup.task).wake_cpu;
    found.add(Placement::new(prev, Reason::KeepCpu), None, Numbers::default());
    for placement in deadlines::later_cpus(shadow, wakeup) {
        found.add(placement, Some(Unknown::Deadlines), Numbers::default());
    }
}

/// Evaluates the candidate assumptions; with `tells`, also those that distinguish guesses of the flips.
fn selections(shadow: &mut Shadow, wakeup: &Wakeup, tells: bool, now: Time, found: &mut Possibilities) {
    let task = shadow.sched.task(wakeup.task);
    let (prev, this) = (task.wake_cpu, wakeup.this_cpu);
    let slow = shadow.sched.domains.walk(this).any(|(_, sd)| sd.flags.has(SdFlags::BALANCE_WAKE));
    let (policy, nr_cpus_allowed) = (task.policy, task.nr_cpus_allowed);
    if !task.policy.is_fair() || task.nr_cpus_allowed <= 1 || slow {
        match policy.class() {
            Class::Rt if nr_cpus_allowed > 1 => return of_rt(shadow, wakeup, found),
            Class::Dl if nr_cpus_allowed > 1 => return of_dl(shadow, wakeup, found),
            _ => {}
        }
        for sync in [false, true] {
            let decision = shadow.view(now).decide_wakeup(&Wakeup { sync, ..*wakeup });
            let placement = decision.placement.expect("a CPU is chosen");
            found.add(placement, Some(Unknown::SyncFlag), Numbers::default());
        }
        return;
    }
    let own = |shadow: &Shadow| wakeup::wake_wide(&shadow.view(now), wakeup);
    let (wide, open) = match shadow.guessed_spread(wakeup, now) {
        Some(spread) => {
            let answer = (spread.wide, spread.open);
            if spread.tells && tells {
                found.telling = Some(Telling { spread, leads: Default::default() });
            }
            answer
        }
        None => (own(shadow), shadow.flips_are_hidden(wakeup)),
    };
    let narrow_by_own = wide && !own(shadow);
    let asks_other = open || found.telling.is_some();
    let over = if !wide || narrow_by_own || asks_other { affine_domain(shadow, wakeup, prev) } else { None };
    (found.affine, found.spreads) = (over, wide && !narrow_by_own);
    let mut asks_sync = (!wide || asks_other) && over.is_some() && may_be_sync(shadow, wakeup);
    let trusts = shadow.learned.trusts;
    shadow.learned.trusts &= found.telling.is_none();
    let flag = shadow.sync_flag(wakeup).filter(|_| asks_sync);
    let mut by_flag = [[false; 2]; 2];
    // Whether the wake-up leads to a search around the previous CPU or the waker's, without and with spreading; and
    // which of the two were searched for the possible choices, or at all.
    let (mut leads, mut counted, mut searched) = ([[false; 2]; 2], [false; 2], [false; 2]);
    for sync in [false, true] {
        if sync && !asks_sync {
            break;
        }
        for spreads in [wide, !wide] {
            let counts = spreads == wide || open;
            // A wake-up that spreads ignores the flag.
            if !counts && found.telling.is_none() || sync && spreads || !spreads && flag == Some(!sync) {
                continue;
            }
            let flips = (spreads != wide).then_some(Unknown::WakeeFlips);
            let mut reading =
                Assumption { takes: sync.then_some(Unknown::SyncFlag).or(flips), counts, first: true };
            let (first, second) = if spreads {
                (spreading(shadow, wakeup, prev), None)
            } else {
                shadow.suppose(|shadow| affine(shadow, &Wakeup { sync, ..*wakeup }, prev, over, now))
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
                let search = Search { wakeup, prev, target, reading: &mut reading, now };
                search.add_all(shadow, found);
            }
        }
    }
    shadow.learned.trusts = trusts;
    if let Some(telling) = &mut found.telling {
        telling.leads = leads;
    }
    // Where the wake-up may also spread, the flag's effect cannot be separated from that.
    found.by_flag = Some(by_flag).filter(|_| asks_sync && flag.is_none() && !wide && !asks_other);
}

/// Applies the side effect of the affine step over a domain: loads that it weighs keep their factor for a jiffy.
pub fn weigh(shadow: &Shadow, wakeup: &Wakeup, over: SdId, now: Time) {
    let (sched, prev) = (&shadow.sched, shadow.sched.task(wakeup.task).wake_cpu);
    wakeup::wake_affine(&View::new(sched, now, None), wakeup, sched.domains.sd(over), prev, wakeup.sync);
}

/// Where the search starts if the wake-up spreads.
fn spreading(shadow: &Shadow, wakeup: &Wakeup, prev: CpuId) -> Target {
    let flips = |task| i64::from(shadow.likeliest_flips(task).unwrap_or(shadow.sched.task(task).wakee_flips));
    let mut numbers = Numbers::from_iter([("wakee's flips", flips(wakeup.task))]);
    numbers.extend(wakeup.waker.map(|waker| ("waker's flips", flips(waker))));
    Target { cpu: prev, affine: Reason::WakeWide, hidden: None, numbers }
}

/// The domain over which the affine step compares the waker's CPU with the previous one; only this step considers the
/// sync flag.
fn affine_domain(shadow: &Shadow, wakeup: &Wakeup, prev: CpuId) -> Option<SdId> {
    let this = wakeup.this_cpu;
    if this == prev || !shadow.sched.task(wakeup.task).allowed.contains(this) {
        return None;
    }
    let spans = |sd: &SchedDomain| sd.flags.has(SdFlags::WAKE_AFFINE) && sd.span.contains(prev);
    shadow.sched.domains.walk(this).find(|(_, sd)| spans(sd)).map(|(id, _)| id)
}

/// The possible answers of the affine step over a domain, one or two.
fn affine(
    shadow: &Shadow,
    wakeup: &Wakeup,
    prev: CpuId,
    over: Option<SdId>,
    now: Time,
) -> (Target, Option<Target>) {
    let (sched, this) = (&shadow.sched, wakeup.this_cpu);
    let view = &shadow.view(now);
    let plain = |affine, cpu| Target { cpu, affine, hidden: None, numbers: Numbers::default() };
    let Some(sd) = over.map(|over| sched.domains.sd(over)) else {
        return (plain(Reason::NoAffine, prev), None);
    };
    let Affine { reason, cpu, loads } = wakeup::wake_affine(view, wakeup, sd, prev, wakeup.sync);
    let Some(EffectiveLoads::Compared { this: this_load, prev: prev_load }) = loads else {
        return (plain(reason, cpu), None);
    };
    // Convert back to the unit of a load average.
    let bias = 100 + (i64::from(sd.imbalance_pct) - 100) / 2;
    let this_load = this_load / (100 * sched.capacity_of(prev) as i64);
    let prev_load = prev_load / (bias * sched.capacity_of(this) as i64);
    let numbers = Numbers::from_iter([("load of waker's CPU", this_load), ("of previous", prev_load)]);
    let target = Target { numbers, ..plain(reason, cpu) };
    let open = shadow.error_of_difference(wakeup, prev, now);
    let close = (this_load - prev_load * bias / 100).unsigned_abs() <= open;
    if !close && !shadow.groups_hidden {
        return (target, None);
    }
    let hidden = if close { Unknown::Loads } else { Unknown::Groups };
    let other = if cpu == this { prev } else { this };
    (target, Some(Target { hidden: Some(hidden), numbers, ..plain(reason, other) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_sched::Kernel;
    use schedlab_topology::{CpuId, Topology};
    use schedlab_trace::Comm;
    use schedlab_units::Pid;

    #[test]
    fn loads_keep_a_factor_only_if_the_wake_up_that_happened_weighed_them() {
        let now = Time(1_000_000_000);
        let mut shadow =
            Shadow::new(&Topology::regular("1x1x2").unwrap(), &Kernel::parse("v6.12").unwrap(), Vec::new());
        shadow.begin(now);
        for (cpu, pid) in [(0, 7), (1, 8)] {
            shadow.sync_curr(CpuId(cpu), Pid(pid), &Comm::from("busy"), now);
        }
        let task = shadow.task(Pid(9), &Comm::from("b"), Some(120), CpuId(1), now);
        let (waker, this_cpu) = (shadow.find(Pid(7)), CpuId(0));
        let wakeup = Wakeup { task, waker, this_cpu, sync: false, in_task: true, current_cpu: false };
        let weighed = |shadow: &Shadow| shadow.sched.root_cfs(CpuId(1)).last_h_load_update.get() != u64::MAX;
        let over = of_wakeup(&mut shadow, &mut Spare::default(), &wakeup, now).affine.expect("it is asked");
        assert!(!weighed(&shadow), "what is only possible leaves nothing behind");
        weigh(&shadow, &Wakeup { sync: true, ..wakeup }, over, now);
        assert!(!weighed(&shadow), "a waker that sleeps and is alone is followed without a look at loads");
        weigh(&shadow, &wakeup, over, now);
        assert!(weighed(&shadow));
    }
}
