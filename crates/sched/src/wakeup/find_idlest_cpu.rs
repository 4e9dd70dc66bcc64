//! The slow path: from the highest domain down, the idlest group, then a CPU in it.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::{Feature, ForkGroup, ForkSchedIdle, Placement, Reason, Refused, SchedGroup, SdFlags, SdId, View};

use super::find_idlest_group::find_idlest_group;
use super::reduced_capacity::full_capacity;

/// A CPU for a task that `this` forks, executes or (on asymmetric machines) wakes;
/// `flag` is the one that domains must carry to take part.
///
/// Having moved to another group, the walk goes on in the smaller domains of the CPU it
/// moved to.
///
/// Kernel: find_idlest_cpu(), kernel/sched/fair.c, v5.5, v6.12; select_task_rq_fair(), v4.13.
pub fn find_idlest_cpu(
    view: &View,
    task: TaskId,
    top: SdId,
    this: CpuId,
    prev: CpuId,
    flag: SdFlags,
) -> Placement {
    let domains = &view.sched.domains;
    let by_load = view.kernel().rules.fork_group == ForkGroup::Load;
    if !by_load && !domains.sd(top).span.intersects(&view.sched.task(task).allowed) {
        return placed(view, prev, Reason::StayLocal);
    }
    let fork = flag == SdFlags::BALANCE_FORK;
    let mut cpu = this;
    let (mut new, mut why) = (if by_load { prev } else { this }, Reason::StayLocal);
    let mut next = Some(top);
    while let Some(id) = next {
        let sd = domains.sd(id);
        next = sd.child;
        if !sd.flags.has(flag) {
            continue;
        }
        let Some(group) = find_idlest_group(view, sd, task, cpu, fork) else { continue };
        let (found, reason) = find_idlest_group_cpu(view, domains.sg(group), task, cpu);
        (new, why) = (found, reason);
        if found == cpu {
            continue;
        }
        cpu = found;
        next = domains
            .walk(cpu)
            .take_while(|(_, lower)| lower.span_weight < sd.span_weight)
            .filter(|(_, lower)| lower.flags.has(flag))
            .last()
            .map(|(id, _)| id);
    }
    placed(view, new, why)
}

fn placed(view: &View, cpu: CpuId, reason: Reason) -> Placement {
    let mut placement = Placement::new(cpu, reason);
    placement.examined = view.examined();
    placement.number = view.number();
    placement
}

/// The CPU of a group that is idle in the shallowest state, then the one that went idle
/// last; the one with least load if none is idle.
///
/// Kernel: find_idlest_group_cpu(), kernel/sched/fair.c, v4.13, v5.5, v5.18, v7.2.
pub fn find_idlest_group_cpu(view: &View, group: &SchedGroup, task: TaskId, this: CpuId) -> (CpuId, Reason) {
    let (sched, kernel) = (view.sched, view.kernel());
    let p = sched.task(task);
    if group.group_weight == 1 {
        return (group.span.first().expect("a group is not empty"), Reason::IdlestOnly);
    }
    let allowed = || group.span.iter().filter(|&cpu| p.allowed.contains(cpu));
    let mut sched_idle = None;
    let mut idlest = Idlest::default();
    let mut reduced: Option<(u64, CpuId)> = None;
    let (mut least, mut min_load) = (this, u64::MAX);
    for cpu in allowed() {
        view.examine();
        if sched.sched_idle_cpu(cpu) {
            match kernel.rules.fork_sched_idle {
                ForkSchedIdle::AtOnce => return (cpu, Reason::IdlestSchedIdle),
                ForkSchedIdle::AtOnceUnlessIdle if !p.has_idle_policy() => {
                    return (cpu, Reason::IdlestSchedIdle);
                }
                ForkSchedIdle::Remembered if sched_idle.is_none() && idlest.cpu.is_none() => {
                    sched_idle = Some(cpu);
                    continue;
                }
                _ => {}
            }
        }
        if sched.available_idle_cpu(cpu) {
            if kernel.has(Feature::FicCapacity) && !full_capacity(view, cpu) {
                view.refuse(cpu, Refused::ReducedCapacity);
                let capacity = sched.capacity_of(cpu);
                if reduced.is_none_or(|(best, _)| capacity > best) {
                    reduced = Some((capacity, cpu));
                }
                continue;
            }
            idlest.offer(view, cpu);
        } else if idlest.cpu.is_none() && sched_idle.is_none() {
            view.refuse_busy(cpu);
            let load = sched.cpu_load(cpu);
            let tie = kernel.rules.fork_group == ForkGroup::Load && load == min_load && cpu == this;
            if load < min_load || tie {
                (min_load, least) = (load, cpu);
            }
        }
    }
    if let Some(cpu) = idlest.cpu {
        return (cpu, if idlest.by_stamp { Reason::IdlestRecent } else { Reason::IdlestShallow });
    }
    if let Some((_, cpu)) = reduced {
        return (cpu, Reason::BestReduced);
    }
    match sched_idle {
        Some(cpu) => (cpu, Reason::IdlestSchedIdle),
        None => (least, Reason::IdlestLoad),
    }
}

/// The best idle CPU so far.
struct Idlest {
    cpu: Option<CpuId>,
    exit_latency: u64,
    stamp: u64,
    /// Chosen for its stamp, not its state.
    by_stamp: bool,
}

impl Default for Idlest {
    fn default() -> Idlest {
        Idlest { cpu: None, exit_latency: u64::MAX, stamp: 0, by_stamp: false }
    }
}

impl Idlest {
    /// A CPU in no known state that never went idle since boot (stamp 0) is never taken.
    fn offer(&mut self, view: &View, cpu: CpuId) {
        let rq = view.rq(cpu);
        let shallower = rq.idle_exit_latency.is_some_and(|latency| latency < self.exit_latency);
        let same = rq.idle_exit_latency.is_none_or(|latency| latency == self.exit_latency);
        if !shallower && !(same && rq.idle_stamp > self.stamp) {
            view.refuse(cpu, if same { Refused::IdleLonger } else { Refused::DeeperIdle });
            return;
        }
        if let Some(passed) = self.cpu.replace(cpu) {
            view.refuse(passed, if shallower { Refused::DeeperIdle } else { Refused::IdleLonger });
        }
        if let (true, Some(latency)) = (shallower, rq.idle_exit_latency) {
            self.exit_latency = latency;
        }
        self.stamp = rq.idle_stamp;
        self.by_stamp = !shallower;
    }
}
