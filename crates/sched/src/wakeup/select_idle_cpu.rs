//! The scan of a cache's CPUs for an idle one, and how far it goes.
//!
//! A scan costs time that the wakee waits, so it is bounded: in proportion to how long
//! CPUs are idle on average (SIS_PROP), or by how much of the cache is in use (SIS_UTIL).

use schedlab_topology::{CpuId, CpuMask};

use crate::{Feature, Reason, Refused, ScanCounts, SchedDomain, SdFlags};

use super::select_idle_sibling::{Effects, Search};

/// How many CPUs a scan may examine, and why it must stop there.
struct Limit {
    /// Counted down before each CPU; at 0 the scan stops.
    left: u64,
    none: Reason,
}

impl Limit {
    /// Whether one more CPU may be examined.
    fn allows(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }
}

impl Search<'_> {
    /// An idle CPU of the cache, or a wholly idle core if there may be one.
    ///
    /// Kernel: select_idle_cpu(), kernel/sched/fair.c, v7.2, v6.12, v6.1, v5.18.
    pub(super) fn select_idle_cpu(
        &self,
        llc: &SchedDomain,
        has_idle_core: bool,
        target: CpuId,
        effects: &mut Effects,
    ) -> Result<(CpuId, Reason), Reason> {
        let kernel = self.view.kernel();
        let mut limit = self.limit(llc, has_idle_core, target)?;
        if has_idle_core {
            return self.scan_cores(llc, target, effects);
        }
        if !kernel.has(Feature::ScanFromNext) {
            return self.scan_from_target(llc, target, &mut limit, effects);
        }
        let mut scanned = None;
        let before = self.view.examined();
        if let Some(cluster) = self.cluster(llc) {
            for cpu in cluster.iter_wrap(target.index() + 1).filter(|&c| self.allowed.contains(c)) {
                if !limit.allows() {
                    return Err(limit.none);
                }
                if self.scans(cpu) {
                    return Ok((cpu, Reason::IdleClusterCpu));
                }
            }
            scanned = Some(cluster);
        }
        let rest = |cpu: &CpuId| {
            self.allowed.contains(*cpu) && scanned.is_none_or(|cluster| !cluster.contains(*cpu))
        };
        let mut found = None;
        for cpu in llc.span.iter_wrap(target.index() + 1).filter(rest) {
            if !limit.allows() {
                return Err(limit.none);
            }
            if self.scans(cpu) {
                found = Some((cpu, self.idle_reason(cpu)));
                break;
            }
        }
        if kernel.has(Feature::SisProp) {
            effects.scan_to_account = Some(self.view.examined() - before);
        }
        found.ok_or(Reason::NoIdleCpu)
    }

    /// From the target on.
    ///
    /// Kernel: select_idle_cpu(), kernel/sched/fair.c, v4.13, v5.5, v5.10.
    fn scan_from_target(
        &self,
        llc: &SchedDomain,
        target: CpuId,
        limit: &mut Limit,
        effects: &mut Effects,
    ) -> Result<(CpuId, Reason), Reason> {
        let sched = self.view.sched;
        let keep = self.view.kernel().has(Feature::ScanKeepSchedIdle);
        let mut sched_idle = None;
        let mut found = None;
        let before = self.view.examined();
        let counts_all = self.view.kernel().rules.scan_counts == ScanCounts::All;
        for cpu in llc.span.iter_wrap(target.index()) {
            let allowed = self.allowed.contains(cpu);
            if (allowed || counts_all) && !limit.allows() {
                return sched_idle.map(|cpu| (cpu, Reason::SchedIdleCpu)).ok_or(limit.none);
            }
            if !allowed {
                self.view.refuse(cpu, Refused::NotAllowed);
                continue;
            }
            if !self.scans(cpu) {
                continue;
            }
            if !keep || sched.available_idle_cpu(cpu) {
                found = Some((cpu, self.idle_reason(cpu)));
                break;
            }
            // A scan that runs to its end forgets it.
            sched_idle = sched_idle.or(Some(cpu));
        }
        effects.scan_to_account = Some(self.view.examined() - before);
        found.ok_or(Reason::NoIdleCpu)
    }

    /// Core by core; the first idle thread found is taken when no core is idle.
    fn scan_cores(
        &self,
        llc: &SchedDomain,
        target: CpuId,
        effects: &mut Effects,
    ) -> Result<(CpuId, Reason), Reason> {
        let mut cpus = llc.span.and(self.allowed);
        if cpus.is_empty() && self.view.kernel().has(Feature::EmptyScanKeepsCores) {
            return Err(Reason::NoIdleCpu);
        }
        let mut fallback = None;
        let cluster = self.cluster(llc);
        // v5.12 and v5.13 begin with the core of the target itself.
        let first = target.index() + usize::from(self.view.kernel().has(Feature::ScanFromNext));
        for span in cluster.into_iter().chain([&*llc.span]) {
            // The mask loses the threads of each core that is not idle, so it is checked again.
            for cpu in span.iter_wrap(first) {
                if cpus.contains(cpu)
                    && let Some(taken) = self.select_idle_core(cpu, &mut cpus, &mut fallback)
                {
                    return Ok((taken, Reason::IdleCore));
                }
            }
            cpus.remove_all(span);
        }
        effects.clear_idle_cores = Some(target);
        fallback.ok_or(Reason::NoIdleCpu)
    }

    /// CPUs of the target's cluster, where the cache has several.
    fn cluster(&self, llc: &SchedDomain) -> Option<&CpuMask> {
        let domains = &self.view.sched.domains;
        if !self.view.kernel().has(Feature::SisCluster) || !domains.cluster_active {
            return None;
        }
        let local = domains.sg(llc.groups.local());
        local.flags.has(SdFlags::CLUSTER).then_some(&*local.span)
    }

    fn idle_reason(&self, cpu: CpuId) -> Reason {
        if self.view.sched.idle_cpu(cpu) { Reason::IdleCpu } else { Reason::SchedIdleCpu }
    }

    /// The limit of a scan; an error if there must be no scan.
    fn limit(&self, llc: &SchedDomain, has_idle_core: bool, target: CpuId) -> Result<Limit, Reason> {
        let (sched, kernel) = (self.view.sched, self.view.kernel());
        let mut limit = Limit { left: u64::MAX, none: Reason::ScanLimit };
        let aged = kernel.has(Feature::WakeAvgIdle);
        let measured = kernel.has(Feature::SisProp) || kernel.has(Feature::SisAvgCpu);
        if measured && !has_idle_core {
            let this = self.wakeup.this_cpu;
            let Some(own) = sched.domains.per_cpu[this].llc else { return Err(Reason::NoScan) };
            let avg_cost = self.view.avg_scan_cost(own) + 1;
            let rq = self.view.rq(this);
            let avg_idle =
                if aged { rq.aged_wake_avg_idle(self.view.jiffies()).1 } else { rq.avg_idle / 512 };
            if kernel.has(Feature::SisAvgCpu) && avg_idle < avg_cost {
                self.view.decided_by("avg_idle", avg_idle as i64);
                return Err(Reason::NoScan);
            }
            if kernel.has(Feature::SisProp) {
                let span_avg = u64::from(llc.span_weight) * avg_idle;
                limit.left = if span_avg > 4 * avg_cost { span_avg / avg_cost } else { 4 };
                self.view.decided_by("nr", limit.left as i64);
            }
        }
        if kernel.has(Feature::SisUtil)
            && let Some(shared) = sched.domains.per_cpu[target].llc_shared
        {
            let nr = self.view.nr_idle_scan(shared);
            self.view.decided_by("nr_idle_scan", i64::from(nr));
            if nr == 0 {
                return Err(Reason::NoScan);
            }
            limit.left = u64::from(nr) + 1;
        }
        Ok(limit)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::wakeup::drawn::{check_all, check_wakeup};

    #[test]
    fn the_scan_begins_behind_the_target_since_v5_18() {
        check_all(
            "llc0: 0[a*] 1[b*] 2[waker*] 3[]",
            "wake x prev=2 waker=waker",
            expect![[r#"
            v4.13..v5.5: cpu 3, IDLE_CPU, examined 2
            v5.18: cpu 3, IDLE_CPU, examined 1
            v6.1..v7.3: cpu 3, IDLE_CPU, examined 1, remote"#]],
        );
        check_all(
            "llc0: 0[] 1[b*] 2[waker*] 3[]",
            "wake x prev=2 waker=waker",
            expect![[r#"
            v4.13..v5.5: cpu 3, IDLE_CPU, examined 2
            v5.18: cpu 3, IDLE_CPU, examined 1
            v6.1..v7.3: cpu 3, IDLE_CPU, examined 1, remote"#]],
        );
        check_all(
            "llc0: 0[] 1[] 2[waker*] 3[c*]",
            "wake x prev=2 waker=waker",
            expect![[r#"
            v4.13..v5.5: cpu 0, IDLE_CPU, examined 3
            v5.18: cpu 0, IDLE_CPU, examined 2
            v6.1..v7.3: cpu 0, IDLE_CPU, examined 2, remote"#]],
        );
    }

    #[test]
    fn a_cache_in_which_a_task_may_run_nowhere_keeps_its_flag_of_idle_cores_in_v7_2() {
        check_all(
            "2x1x2x2 | 0[waker*] 4[a*] llc1{cores}",
            "wake x prev=4 waker=waker allowed=1,2",
            expect![[r#"
                v4.13..v5.18: cpu 1, FALLBACK, examined 0, no idle core
                v6.1..v6.12: cpu 1, FALLBACK, examined 0, no idle core, remote
                v7.2..v7.3: cpu 1, FALLBACK, examined 0, remote"#]],
        );
    }

    #[test]
    fn forbidden_cpus_are_passed_over() {
        check_all(
            "llc0: 0[waker*] 1[] 2[] 3[]",
            "wake x prev=0 waker=waker allowed=0,3",
            expect![[r#"
            v4.13..v5.5: cpu 3, IDLE_CPU, examined 2
            v5.18: cpu 3, IDLE_CPU, examined 1
            v6.1..v7.3: cpu 3, IDLE_CPU, examined 1, remote"#]],
        );
    }

    #[test]
    fn utilisation_bounds_the_scan_since_v5_19() {
        check_all(
            "llc0{scan=2}: 0[waker*] 1[a*] 2[b*] 3[]",
            "wake x prev=0 waker=waker",
            expect![[r#"
            v4.13..v5.5: cpu 3, IDLE_CPU, examined 4
            v5.18: cpu 3, IDLE_CPU, examined 3
            v6.1..v7.3: cpu 0, SCAN_LIMIT, examined 2"#]],
        );
        check_all(
            "llc0{scan=0}: 0[waker*] 1[] 2[] 3[]",
            "wake x prev=0 waker=waker",
            expect![[r#"
            v4.13..v5.5: cpu 1, IDLE_CPU, examined 2
            v5.18: cpu 1, IDLE_CPU, examined 1
            v6.1..v7.3: cpu 0, NO_SCAN, examined 0"#]],
        );
        check_wakeup(
            "v6.12+NO_SIS_UTIL",
            "llc0{scan=0}: 0[waker*] 1[] 2[] 3[]",
            "wake x prev=0 waker=waker",
            expect!["cpu 1, IDLE_CPU, examined 1, remote"],
        );
    }

    #[test]
    fn idle_time_bounds_the_scan_before() {
        check_wakeup(
            "v4.13",
            "llc0{cost=1000}: 0[waker* ; avg_idle=100000] 1[a*] 2[b*] 3[c*] 4[] 5[]",
            "wake x prev=0 waker=waker",
            expect!["cpu 0, SCAN_LIMIT, examined 3"],
        );
        // It examines three of six CPUs; from v5.6 on those that the task may use.
        for (kernel, found) in [
            ("v5.5", expect!["cpu 0, SCAN_LIMIT, examined 1"]),
            ("v5.10", expect!["cpu 4, IDLE_CPU, examined 2"]),
        ] {
            check_wakeup(
                kernel,
                "llc0{cost=1000}: 0[waker* ; avg_idle=100000] 1[a*] 2[b*] 3[c*] 4[] 5[]",
                "wake x prev=0 waker=waker allowed=0,4-5",
                found,
            );
        }
        check_wakeup(
            "v5.5",
            "llc0{cost=1000}: 0[waker* ; avg_idle=100000] 1[a*] 2[b*] 3[c*] 4[] 5[]",
            "wake x prev=0 waker=waker",
            expect!["cpu 0, SCAN_LIMIT, examined 3"],
        );
        check_wakeup(
            "v5.5+NO_SIS_PROP",
            "llc0{cost=1000}: 0[waker* ; avg_idle=100000] 1[a*] 2[b*] 3[c*] 4[] 5[]",
            "wake x prev=0 waker=waker",
            expect!["cpu 4, IDLE_CPU, examined 5"],
        );
        check_wakeup(
            "v5.5+SIS_AVG_CPU",
            "llc0{cost=1000}: 0[waker* ; avg_idle=100000] 1[] 2[b*] 3[c*] 4[] 5[]",
            "wake x prev=0 waker=waker",
            expect!["cpu 0, NO_SCAN, examined 0"],
        );
        check_wakeup(
            "v5.18",
            "llc0{cost=1000}: 0[waker* ; wake_avg_idle=100] 1[a*] 2[b*] 3[c*] 4[] 5[]",
            "wake x prev=0 waker=waker",
            expect!["cpu 0, SCAN_LIMIT, examined 3"],
        );
        check_wakeup(
            "v6.12+SIS_PROP+NO_SIS_UTIL",
            "llc0{cost=1000}: 0[waker* ; avg_idle=100000] 1[a*] 2[b*] 3[c*] 4[] 5[]",
            "wake x prev=0 waker=waker",
            expect!["cpu 0, SCAN_LIMIT, examined 3"],
        );
    }

    #[test]
    fn a_sched_idle_cpu_is_taken_where_met_but_v5_5_forgets_it() {
        check_all(
            "llc0: 0[waker*] 1[a*] 2[idle:b*] 3[c*]",
            "wake x prev=0 waker=waker",
            expect![[r#"
            v4.13..v5.5: cpu 0, NO_IDLE_CPU, examined 4
            v5.18..v7.3: cpu 2, SCHED_IDLE_CPU, examined 2"#]],
        );
        check_wakeup(
            "v5.5",
            "llc0{cost=1000}: 0[waker* ; avg_idle=1] 1[a*] 2[idle:b*] 3[c*] 4[d*] 5[]",
            "wake x prev=0 waker=waker",
            expect!["cpu 2, SCHED_IDLE_CPU, examined 3"],
        );
        check_wakeup(
            "v5.5+NO_SCAN_KEEP_SCHED_IDLE",
            "llc0: 0[waker*] 1[a*] 2[idle:b*] 3[c*]",
            "wake x prev=0 waker=waker",
            expect!["cpu 2, SCHED_IDLE_CPU, examined 3"],
        );
    }

    #[test]
    fn the_cluster_comes_first_since_v6_7() {
        check_all(
            "1x1x8:cluster=4 | 0[waker*] 1[a*] 2[b*] 3[c*]",
            "wake x prev=0 waker=waker",
            expect![[r#"
                v4.13..v5.5: cpu 4, IDLE_CPU, examined 5
                v5.18: cpu 4, IDLE_CPU, examined 4
                v6.1..v6.3: cpu 4, IDLE_CPU, examined 4, remote
                v6.10..v7.3: cpu 4, IDLE_CPU, examined 5, remote"#]],
        );
        check_all(
            "1x1x8:cluster=4 | 0[a*] 2[waker*] 3[c*]",
            "wake x prev=2 waker=waker",
            expect![[r#"
            v4.13..v5.5: cpu 4, IDLE_CPU, examined 3
            v5.18: cpu 4, IDLE_CPU, examined 2
            v6.1..v6.3: cpu 4, IDLE_CPU, examined 2, remote
            v6.10..v7.3: cpu 1, IDLE_CLUSTER_CPU, examined 3, remote"#]],
        );
        check_wakeup(
            "v6.12+NO_SIS_CLUSTER",
            "1x1x8:cluster=4 | 0[a*] 2[waker*] 3[c*]",
            "wake x prev=2 waker=waker",
            expect!["cpu 4, IDLE_CPU, examined 2, remote"],
        );
    }

    #[test]
    fn an_idle_cpu_of_another_cluster_is_kept_for_later() {
        check_all(
            "1x1x8:cluster=4 | 0[waker*] 1[a*] 2[b*]",
            "wake x prev=5 waker=waker sync load=1",
            expect![[r#"
                v4.13: cpu 5, PREV_IDLE, examined 0, WA_SHARE_CACHE 0
                v5.5..v5.18: cpu 5, PREV_IDLE, examined 0, WA_SYNC 0
                v6.1..v6.3: cpu 5, PREV_IDLE, examined 0, WA_SYNC 0, remote
                v6.10..v7.3: cpu 3, IDLE_CLUSTER_CPU, examined 3, WA_SYNC 0, remote"#]],
        );
        check_all(
            "1x1x8:cluster=4 | 0[waker*] 1[a*] 2[b*] 3[c*]",
            "wake x prev=5 waker=waker sync load=1",
            expect![[r#"
                v4.13: cpu 5, PREV_IDLE, examined 0, WA_SHARE_CACHE 0
                v5.5..v5.18: cpu 5, PREV_IDLE, examined 0, WA_SYNC 0
                v6.1..v6.3: cpu 5, PREV_IDLE, examined 0, WA_SYNC 0, remote
                v6.10..v7.3: cpu 4, IDLE_CPU, examined 5, WA_SYNC 0, remote"#]],
        );
        check_wakeup(
            "v6.12",
            "1x1x8:cluster=4 | 0[waker*] 1[a*] 2[b*] 3[c*] llc0{scan=2}",
            "wake x prev=5 waker=waker sync load=1",
            expect!["cpu 5, PREV_OTHER_CLUSTER, examined 2, WA_SYNC 0, remote"],
        );
        check_wakeup(
            "v6.12",
            "1x1x8:cluster=4 | 0[waker*] 1[a*] 2[b*] 3[c*] llc0{scan=2}",
            "wake x prev=0 waker=waker recent=5",
            expect!["cpu 5, RECENT_OTHER_CLUSTER, examined 2, remote"],
        );
    }
}
