//! The slow path: from the highest domain down, the idlest group, then a CPU in it.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::{
    Domains, Feature, ForkGroup, ForkSchedIdle, Placement, Reason, Refused, SchedDomain, SchedGroup, SdFlags,
    SdId, View,
};

use super::find_idlest_group::find_idlest_group;
use super::reduced_capacity::full_capacity;

/// A CPU for a task that `this` forks, executes or (on asymmetric machines) wakes; `flag` is the one that
/// domains must have to take part.
///
/// After moving to another group, the walk continues in the smaller domains of the CPU it moved to.
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
    view.leans_if(by_load);
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
        match reason {
            Reason::IdlestOnly => {}
            Reason::IdlestRecent => view.leans_on_stamp(view.idle_stamp(found)),
            _ => view.leans_if(true),
        }
        (new, why) = (found, reason);
        if found == cpu {
            continue;
        }
        cpu = found;
        next = below(domains, cpu, sd, flag);
    }
    placed(view, new, why)
}

/// The highest domain of a CPU that takes part and is smaller than the one it was chosen from.
pub(super) fn below(domains: &Domains, cpu: CpuId, sd: &SchedDomain, flag: SdFlags) -> Option<SdId> {
    let smaller = domains.walk(cpu).take_while(|(_, lower)| lower.span_weight < sd.span_weight);
    smaller.filter(|(_, lower)| lower.flags.has(flag)).last().map(|(id, _)| id)
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
        view.examine(cpu);
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
            let load = view.cpu_load(cpu);
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
        let stamp = view.idle_stamp(cpu);
        let better = shallower || same && stamp > self.stamp;
        if !better {
            view.refuse(cpu, if same { Refused::IdleLonger } else { Refused::DeeperIdle });
            return;
        }
        if let Some(passed) = self.cpu.replace(cpu) {
            view.refuse(passed, if shallower { Refused::DeeperIdle } else { Refused::IdleLonger });
        }
        if let (true, Some(latency)) = (shallower, rq.idle_exit_latency) {
            self.exit_latency = latency;
        }
        self.stamp = stamp;
        self.by_stamp = !shallower;
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    use expect_test::expect;
    use schedlab_topology::{CpuId, CpuMask};

    use crate::NewTask;
    use crate::drawing::{NOW, draw};
    use crate::wakeup::drawn::{check_all, check_passed_over};

    #[test]
    fn a_fork_goes_to_the_idlest_group_then_to_an_idle_cpu() {
        check_all(
            "llc0: 0[make* ] 1[a*] 2[] 3[]",
            "fork by=make",
            expect!["v4.13..v7.3: cpu 2, IDLEST_ONLY, examined 4"],
        );
        check_all(
            "llc0: 0[make*] 1[a*] llc1: 2[] 3[]",
            "fork by=make",
            expect![[r#"
                v4.13: cpu 3, IDLEST_ONLY, examined 8
                v5.5..v7.3: cpu 2, IDLEST_RECENT, examined 8"#]],
        );
    }

    #[test]
    fn the_shallowest_idle_state_then_the_latest_to_go_idle() {
        check_all(
            "2x1x3 | 0[make*] 1[a*] 2[b*] 3[ ; exit=100 stamp=9] 4[ ; exit=2 stamp=1] 5[ ; exit=100 stamp=5]",
            "fork by=make",
            expect![[r#"
                v4.13: cpu 5, IDLEST_ONLY, examined 12
                v5.5..v7.3: cpu 4, IDLEST_SHALLOW, examined 12"#]],
        );
        check_all(
            "2x1x3 | 0[make*] 1[a*] 2[b*] 3[ ; stamp=3] 4[ ; stamp=9] 5[ ; stamp=5]",
            "fork by=make",
            expect![[r#"
                v4.13: cpu 5, IDLEST_ONLY, examined 12
                v5.5..v7.3: cpu 4, IDLEST_RECENT, examined 12"#]],
        );
        check_all(
            "2x1x3 | 0[make*] 1[a*] 2[b*] 3[ ; exit=2 stamp=3] 4[ ; exit=2 stamp=9] 5[ ; exit=2 stamp=5]",
            "fork by=make",
            expect![[r#"
                v4.13: cpu 5, IDLEST_ONLY, examined 12
                v5.5..v7.3: cpu 4, IDLEST_RECENT, examined 12"#]],
        );
    }

    #[test]
    fn an_idle_cpu_in_no_known_state_without_a_stamp_is_never_taken() {
        check_all(
            "2x1x2 | 0[make* a] 1[b* c] 2[ ; stamp=0] 3[ ; stamp=0]",
            "fork by=make",
            expect!["v4.13..v7.3: cpu 0, IDLEST_LOAD, examined 8"],
        );
    }

    #[test]
    fn least_load_where_nobody_is_idle() {
        check_all(
            "2x1x2 | 0[make* a ; util=1024 runnable=2048] 1[b* c ; util=1024 runnable=2048] 2[d* ; load=900 util=500] 3[e* ; load=300 util=500]",
            "fork by=make",
            expect!["v4.13..v7.3: cpu 3, IDLEST_LOAD, examined 8"],
        );
    }

    #[test]
    fn a_cpu_of_sched_idle_tasks() {
        check_all(
            "2x1x2 | 0[make* a ; util=1024 runnable=2048] 1[b* c ; util=1024 runnable=2048] 2[d*] 3[idle:e*]",
            "fork by=make",
            expect![[r#"
                v4.13: cpu 3, IDLEST_LOAD, examined 8
                v5.5..v7.3: cpu 3, IDLEST_SCHED_IDLE, examined 8"#]],
        );
        check_all(
            "2x1x3 | 0[make* a ; util=1024 runnable=2048] 1[b* c ; util=1024 runnable=2048] 2[g* h ; util=1024 runnable=2048] 3[d*] 4[idle:e*] 5[]",
            "fork by=make",
            expect![[r#"
                v4.13..v5.5: cpu 5, IDLEST_RECENT, examined 12
                v5.18..v7.3: cpu 5, IDLEST_ONLY, examined 11"#]],
        );
    }

    #[test]
    fn nobody_moves_beyond_the_reclaim_distance() {
        check_all(
            "2x1x2:distance=10/32 | 0[make* a] 1[b* c]",
            "fork by=make",
            expect!["v4.13..v7.3: cpu 0, STAY_LOCAL, examined 2"],
        );
    }

    #[test]
    fn a_machine_of_one_cpu_has_no_domain() {
        check_all(
            "1x1x1 | 0[make*]",
            "fork by=make",
            expect!["v4.13..v7.3: cpu 0, ONLY_ALLOWED, examined 0"],
        );
        check_all(
            "2x1x1:distance=10/32 | 0[make*]",
            "fork by=make",
            expect!["v4.13..v7.3: cpu 0, NO_FORK_DOMAIN, examined 0"],
        );
    }

    #[test]
    fn exec_moves_off_a_shared_cpu() {
        check_all(
            "llc0: 0[make* a] 1[] 2[b*]",
            "exec make",
            expect![[r#"
            v4.13: cpu 0, STAY_LOCAL, examined 3
            v5.5..v7.3: cpu 1, IDLEST_ONLY, examined 3"#]],
        );
        check_all(
            "llc0: 0[make*] 1[a*] 2[b*]",
            "exec make",
            expect!["v4.13..v7.3: cpu 0, STAY_LOCAL, examined 3"],
        );
    }

    #[test]
    fn a_group_s_cpus_are_listed_with_the_reason() {
        check_passed_over(
            "v6.12",
            "2x1x3 | 0[make*] 1[a*] 2[b*] 3[ ; exit=100] 4[ ; exit=2] 5[ ; exit=2]",
            "fork by=make",
            expect![
                "cpu 4, IDLEST_SHALLOW, examined 12; 0 WorseGroup, 3 DeeperIdle, 5 IdleLonger, 5 WorseGroup, 3 WorseGroup"
            ],
        );
    }

    /// Targets of seven STREAM threads, one CPU allowed per last-level cache, forked one
    /// after the other by the eighth, which runs on CPU 16.
    fn stream(kernel: &str) -> String {
        let mut drawn = draw(kernel, "milan-2s | 16[stream*]");
        let allowed = CpuMask::parse_list("0,16,32,48,64,80,96,112", 256).unwrap();
        let allowed = Arc::new(allowed);
        let forker = drawn.task("stream");
        let mut targets = Vec::new();
        for _ in 0..7 {
            let spec = NewTask { allowed: allowed.clone(), ..drawn.spec() };
            let thread = drawn.sched.new_task(&spec, Some(forker), NOW);
            let placement = drawn.sched.decide_fork(thread, CpuId(16), NOW, None);
            drawn.sched.apply_fork(thread, placement.cpu, NOW);
            targets.push(placement.cpu.to_string());
        }
        targets.join(" ")
    }

    /// Published: 32 48 0 16 16 16 16, and with the change 32 48 0 112 96 80 64; the order on the other socket came
    /// from idle stamps that are unknown.
    #[test]
    fn pinned_stream_threads_are_placed_as_published() {
        expect!["32 48 0 16 16 16 16"].assert_eq(&stream("v5.18"));
        expect!["32 48 0 64 80 96 112"].assert_eq(&stream("v5.18+NUMA_IMB_AFFINITY"));
        expect!["32 48 64 0 80 96 112"].assert_eq(&stream("v6.1"));
        expect!["32 48 64 0 80 96 112"].assert_eq(&stream("v7.2"));
    }
}
