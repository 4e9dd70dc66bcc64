//! v7.2: whether a task may move between caches, given the data that its process has there.
//!
//! A task moves to the cache that its process prefers while that cache has room. It leaves that cache only when it is
//! crowded and the other is not, or when passes failed.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use super::env::LbEnv;
use super::{MigrationType, NotMoved, SgLbStats};
use crate::{Feature, IdleType, Sched, SchedGroup, SdFlags};

/// Whether cache preference allows a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LlcMig {
    /// No.
    Forbid,
    /// Yes, because of cache preference.
    Llc,
    /// Cache preference has no opinion.
    Unrestricted,
}

/// How full a last-level cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Filled {
    util: u64,
    capacity: u64,
}

impl Sched {
    /// Whether a cache with this utilisation has room.
    ///
    /// Kernel: fits_llc_capacity(), kernel/sched/fair.c, v7.2.
    fn fits_llc_capacity(&self, util: u64, capacity: u64) -> bool {
        let percent = self.kernel.tunables.llc_overaggr_pct;
        let percent = if self.domains.smt_threads == 1 { percent * 3 / 2 } else { percent };
        util * 100 < capacity * percent
    }

    /// Whether a task with a utilisation of `util` may move from one cache to another.
    ///
    /// Kernel: can_migrate_llc(), kernel/sched/fair.c, v7.2.
    fn can_migrate_llc(&self, from: Filled, to: Filled, util: u64, to_preferred: bool) -> LlcMig {
        let src_util = from.util.saturating_sub(util);
        let dst_util = to.util + util;
        let src_fits = self.fits_llc_capacity(src_util, from.capacity);
        let dst_fits = self.fits_llc_capacity(dst_util, to.capacity);
        let greater = |a: u64, b: u64| a * 100 > b * (100 + self.kernel.tunables.llc_imb_pct);
        if !src_fits && !dst_fits {
            LlcMig::Unrestricted
        } else if to_preferred && !dst_fits && greater(dst_util, src_util)
            || !to_preferred && (src_fits || !greater(src_util, dst_util))
        {
            LlcMig::Forbid
        } else {
            LlcMig::Llc
        }
    }
}

impl LbEnv<'_> {
    /// How full a CPU's cache is. A pass sees at once what it records.
    ///
    /// Kernel: get_llc_stats(), kernel/sched/fair.c, v7.2.
    fn filled(&self, cpu: CpuId) -> Option<Filled> {
        let llc = self.sched.llc_of(cpu)?;
        let recorded = self.decision.llc_stats.iter().rev().find(|(of, ..)| *of == llc);
        let shared = &self.sched.domains.shared[llc.0 as usize];
        let (util, capacity) =
            recorded.map_or((shared.util_avg, shared.capacity), |&(_, util, capacity)| (util, capacity));
        Some(Filled { util, capacity })
    }

    /// Whether a task with a utilisation of `util` may move between the caches of two CPUs.
    fn can_migrate_llc(&self, src: CpuId, dst: CpuId, util: u64, to_preferred: bool) -> LlcMig {
        match (self.filled(src), self.filled(dst)) {
            (Some(from), Some(to)) => self.sched.can_migrate_llc(from, to, util, to_preferred),
            _ => LlcMig::Unrestricted,
        }
    }

    /// Whether a task would become too large for its CPU.
    ///
    /// Kernel: task_misfits_asym_cpu(), kernel/sched/fair.c, v7.2.
    fn task_misfits_asym_cpu(&self, task: TaskId) -> bool {
        let fits = |cpu| self.sched.task_fits_cpu(task, cpu, self.now);
        self.sd.flags.has(SdFlags::ASYM_CPUCAPACITY) && !fits(self.dst_cpu) && fits(self.src_cpu)
    }

    /// Whether a task may move as far as its cache is concerned. A process that does not fit the destination prefers no
    /// cache afterwards.
    ///
    /// Kernel: can_migrate_llc_task(), kernel/sched/fair.c, v7.2.
    fn can_migrate_llc_task(&mut self, task: TaskId) -> LlcMig {
        let sched = self.sched;
        let p = sched.task(task);
        let (src, dst) = (self.src_cpu, self.dst_cpu);
        if self.task_misfits_asym_cpu(task) {
            return LlcMig::Forbid;
        }
        let unfit = self.decision.llc_unfit.contains(&p.process);
        let home = sched.cache_group_of(task).filter(|_| !unfit).and_then(|group| Some((group, group.cpu?)));
        let Some((group, home)) = home else { return LlcMig::Unrestricted };
        let by_order =
            || sched.kernel.has(Feature::AsymBeforeCache) && self.is_idle() && self.sched_asym(dst, src);
        if sched.cpus_share_cache(src, dst) || by_order() {
            return LlcMig::Unrestricted;
        }
        if group.invalid_llc_nr(&sched.kernel, &sched.domains, dst) {
            self.decision.llc_unfit.push(p.process);
            return LlcMig::Unrestricted;
        }
        let to_preferred = sched.cpus_share_cache(dst, home);
        if !to_preferred && !sched.cpus_share_cache(src, home) {
            return LlcMig::Unrestricted;
        }
        self.can_migrate_llc(src, dst, p.se.avg.util_avg, to_preferred)
    }

    /// The pass wants tasks that prefer the destination's cache, and this one prefers another.
    ///
    /// Kernel: migrate_llc_task_wrong_dst(), kernel/sched/fair.c, v7.2.
    pub(super) fn wrong_llc(&self, task: TaskId) -> bool {
        let wanted = self.migration_type == MigrationType::LlcTask || self.flags.active_llc;
        let preferred = self.sched.task(task).preferred_llc;
        wanted && self.sched.sched_cache_active() && preferred != self.sched.llc_id(self.dst_cpu)
    }

    /// Why a task should stay in its cache. Failed passes weaken the reason.
    ///
    /// Kernel: migrate_degrades_llc(), kernel/sched/fair.c, v7.2.
    pub(super) fn degrades_llc(&mut self, task: TaskId) -> Option<NotMoved> {
        if !self.sched.sched_cache_active() || self.failed_before > self.sd.cache_nice_tries {
            None
        } else if self.wrong_llc(task) {
            Some(NotMoved::OtherLlc)
        } else {
            (self.can_migrate_llc_task(task) == LlcMig::Forbid).then_some(NotMoved::LeavesLlc)
        }
    }

    /// Whether all tasks of the source are in their preferred cache, and the running one should stay there.
    ///
    /// Kernel: alb_break_llc(), kernel/sched/fair.c, v7.2.
    pub(super) fn alb_breaks_llc(&self) -> bool {
        let sched = self.sched;
        if !sched.sched_cache_active() || sched.cpus_share_cache(self.src_cpu, self.dst_cpu) {
            return false;
        }
        let rq = &sched.rqs[self.src_cpu];
        let at_home = rq.nr_pref_llc_running;
        if at_home == 0
            || at_home != sched.root_cfs(self.src_cpu).h_nr_runnable
            || self.migration_type == MigrationType::Misfit
        {
            return false;
        }
        if rq.nr_running <= 1 || rq.curr.task().is_some_and(|curr| self.task_misfits_asym_cpu(curr)) {
            return true;
        }
        let curr = rq.curr.task().map(|curr| sched.task(curr)).filter(|p| p.policy.is_fair());
        let util = curr.map_or(0, |p| p.se.avg.util_avg);
        self.can_migrate_llc(self.src_cpu, self.dst_cpu, util, false) == LlcMig::Forbid
    }

    /// Whether a group holds tasks that should move to the destination's cache.
    ///
    /// Kernel: llc_balance(), kernel/sched/fair.c, v7.2.
    pub(super) fn llc_balance(&self, group: &SchedGroup, stats: &SgLbStats) -> bool {
        let asym_misfit = self.sd.flags.has(SdFlags::ASYM_CPUCAPACITY) && stats.group_misfit_task_load != 0;
        if stats.nr_pref_dst_llc == 0
            || self.sd.flags.has(SdFlags::SHARE_LLC)
            || asym_misfit
            || stats.group_asym_packing && self.sched.kernel.has(Feature::AsymBeforeCache)
            || self.failed_before > self.sd.cache_nice_tries
        {
            return false;
        }
        let first = group.span.first().expect("a group is not empty");
        self.can_migrate_llc(first, self.dst_cpu, 0, true) == LlcMig::Llc
    }

    /// Records how full the cache of a group is, for later decisions.
    ///
    /// Kernel: record_sg_llc_stats(), kernel/sched/fair.c, v7.2.
    pub(super) fn record_sg_llc_stats(&mut self, group: &SchedGroup, stats: &SgLbStats) {
        if !self.records_llc_stats() {
            return;
        }
        let first = group.span.first().expect("a group is not empty");
        if let Some(shared) = self.sched.llc_of(first) {
            self.decision.llc_stats.push((shared, stats.group_util, stats.group_capacity));
        }
    }

    /// Whether a pass records how full the caches are: only over the domain above them, and not when newly idle. That of a CPU
    /// that is alone in its cache is its lowest.
    #[inline]
    pub(super) fn records_llc_stats(&self) -> bool {
        self.idle != IdleType::NewlyIdle
            && self.sched.sched_cache_active()
            && self.sd.child == self.sched.domains.per_cpu[self.dst_cpu].llc
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::{Expect, expect};
    use schedlab_topology::CpuId;

    use super::{Filled, LlcMig};
    use crate::balance::drawings::{Pass, check_pass};
    use crate::drawing::{NOW, draw};

    /// Whether a small task may move between caches with the given utilisation in percent: N no, Y yes because of
    /// cache preference, - no opinion.
    fn matrix(kernel: &str, machine: &str, to_preferred: bool) -> alloc::string::String {
        let drawn = draw(kernel, machine);
        let mut text = alloc::string::String::new();
        for src in [30, 40, 50, 60] {
            for dst in [30, 40, 50, 60] {
                let [from, to] =
                    [src, dst].map(|percent| Filled { util: 4096 * percent / 100, capacity: 4096 });
                text += match drawn.sched.can_migrate_llc(from, to, 0, to_preferred) {
                    LlcMig::Forbid => "N",
                    LlcMig::Llc => "Y",
                    LlcMig::Unrestricted => "-",
                };
            }
            text += " ";
        }
        text
    }

    /// Rows are the source, 30 to 60 percent, columns the destination.
    #[test]
    fn tasks_go_to_their_cache_while_it_has_room() {
        let smt = "1x2x2x2 | 0[] 4[]";
        expect!["YYNN YYNN YY-- YY-- "].assert_eq(&matrix("v7.2", smt, true));
        expect!["YYYY YYYY YYYY YYYY "].assert_eq(&matrix("v7.2", "1x2x4 | 0[] 4[]", true));
        expect!["YYYY YYYY YYYY YYYY "].assert_eq(&matrix("v7.2+llc_overaggr_pct=100", smt, true));
    }

    #[test]
    fn and_leave_it_only_when_it_is_crowded() {
        expect!["NNNN NNNN YY-- YY-- "].assert_eq(&matrix("v7.2", "1x2x2x2 | 0[] 4[]", false));
        expect!["NNNN NNNN YN-- YY-- "].assert_eq(&matrix("v7.2+llc_imb_pct=30", "1x2x2x2 | 0[] 4[]", false));
    }

    #[test]
    fn a_group_with_tasks_that_prefer_this_cache_gives_them() {
        let words = "cpu=0 idle level=1 pref:c=0 pref:e=1";
        check_home(words, 0, expect!["LB_LLC llc_task 1 from 4, b OtherLlc, c to 0"]);
        check_home(
            "cpu=0 idle level=1 failed=2 pref:c=0 pref:e=1",
            0,
            expect!["LB_TASK task 2 from 4, b to 0, c to 0"],
        );
        let drawing = "1x2x4 | 0[] 4[a* b c] 5[d* e]";
        check_pass("v7.2+NO_SCHED_CACHE", drawing, words, expect!["LB_TASK task 2 from 4, b to 0, c to 0"]);
    }

    #[track_caller]
    fn check_home(words: &str, llc: u16, expected: Expect) {
        let mut pass = Pass::new("v7.2", "1x2x4 | 0[] 4[a* b c] 5[d* e]", words);
        let sched = &mut pass.drawn.sched;
        let group = sched.sched_cache.groups.get_mut(0).unwrap();
        group.cpu = Some(CpuId(4 * llc));
        for shared in &mut sched.domains.shared {
            (shared.capacity, shared.util_avg) = (4096, 1000);
        }
        expected.assert_eq(&pass.decide());
    }

    #[test]
    fn a_task_does_not_leave_its_cache_until_passes_failed() {
        check_home(
            "cpu=0 idle level=1",
            1,
            expect!["LB_NOTHING_MOVABLE task 2 from 4, b LeavesLlc, c LeavesLlc, a Running"],
        );
        check_home("cpu=0 idle level=1 failed=2", 1, expect!["LB_TASK task 2 from 4, b to 0, c to 0"]);
        check_home("cpu=0 idle level=1", 0, expect!["LB_TASK task 2 from 4, b to 0, c to 0"]);
    }

    #[test]
    fn the_stopper_takes_no_task_out_of_its_cache() {
        let mut pass =
            Pass::new("v7.2", "1x2x2 | 0[] 1[] 2[a*] 3[b*]", "cpu=0 idle level=1 failed=4 pref:a=1");
        expect!["LB_NOTHING_MOVABLE task 1 from 2"].assert_eq(&pass.decide());
        pass.drawn.sched.kernel.switch("NO_SCHED_CACHE").unwrap();
        expect!["LB_ACTIVE task 1 from 2"].assert_eq(&pass.decide());
    }

    #[test]
    fn nor_to_a_cpu_too_small_for_it() {
        let stays = |util: u64| {
            let words = "cpu=0 idle level=1 pref:a=1 pref:c=1";
            let mut pass = Pass::new("v7.2", "1x2x2:capacity=0-1/446 | 0[] 1[] 2[a* c] 3[b*]", words);
            let sched = &mut pass.drawn.sched;
            for shared in &mut sched.domains.shared {
                (shared.capacity, shared.util_avg) = (1024, 1024);
            }
            let a = pass.drawn.tasks["a"];
            sched.task_mut(a).se.avg.util_avg = util;
            let mut env = super::LbEnv::new(sched, pass.cpu, pass.sd, pass.idle, NOW);
            env.src_cpu = CpuId(2);
            env.alb_breaks_llc()
        };
        assert_eq!([100, 500].map(stays), [false, true]);
    }

    #[test]
    fn a_pass_sees_the_fullness_that_it_records() {
        let words = "cpu=0 idle level=1 pref:c=0 pref:e=1";
        let mut pass = Pass::new("v7.2", "1x2x4 | 0[] 4[a* b c] 5[d* e]", words);
        let sched = &mut pass.drawn.sched;
        sched.sched_cache.groups.get_mut(0).unwrap().cpu = Some(CpuId(0));
        for shared in &mut sched.domains.shared {
            (shared.capacity, shared.util_avg) = (0, 0);
        }
        // Nothing was known of the caches before, so neither would have room.
        expect!["LB_LLC llc_task 1 from 4, b OtherLlc, c to 0"].assert_eq(&pass.decide());
    }

    #[test]
    fn a_process_that_does_not_fit_the_destination_prefers_no_cache_from_then_on() {
        let mut pass = Pass::new("v7.2", "1x2x4 | 0[] 4[a* b c] 5[d* e]", "cpu=0 idle level=1");
        let sched = &mut pass.drawn.sched;
        let group = sched.sched_cache.groups.get_mut(0).unwrap();
        (group.cpu, group.nr_running_avg) = (Some(CpuId(4)), 40);
        let decision = sched.load_balance(pass.cpu, pass.sd, pass.idle, NOW);
        assert_eq!((decision.llc_unfit, decision.moved), (alloc::vec![0], 2));
        assert_eq!(sched.sched_cache.groups.get(0).unwrap().cpu, None);
    }

    #[test]
    fn fullness_is_recorded_one_level_above_the_cache() {
        let pass = |words: &str| {
            let pass = Pass::new("v7.2", "1x2x2 | 0[ ;util=100] 1[] 2[a*;util=900] 3[b*;util=300]", words);
            let decision = pass.drawn.sched.decide_balance(pass.cpu, pass.sd, pass.idle, NOW);
            format!("{:?}", decision.llc_stats)
        };
        assert_eq!(pass("cpu=0 idle level=0"), "[]");
        assert_eq!(pass("cpu=0 newidle level=1"), "[]");
        assert_eq!(pass("cpu=0 idle level=1"), "[(SharedId(0), 100, 2048), (SharedId(1), 1200, 2048)]");
    }
}
