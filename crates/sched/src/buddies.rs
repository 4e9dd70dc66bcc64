//! Buddies: entities that the next pick prefers or passes over.
//!
//! A queue remembers the entity woken last (next), under CFS also the one preempted
//! last (last) and the one that yielded (skip). A mark is set on every level up to
//! the root and taken away on the levels where it still is the same.
//!
//! Kernel: set_next_buddy(), clear_buddies(), kernel/sched/fair.c, v6.1, v6.12.

use crate::{CfsRq, CfsRqId, Feature, Sched, SeId};

type Mark = fn(&mut CfsRq) -> &mut Option<SeId>;

const NEXT: Mark = |queue| &mut queue.next;
const LAST: Mark = |queue| &mut queue.last;
const SKIP: Mark = |queue| &mut queue.skip;

impl Sched {
    /// Prefers an entity and its groups at the next pick, up to the first idle one.
    pub(crate) fn set_next_buddy(&mut self, se: SeId) {
        self.set_unless_idle(se, NEXT);
    }

    /// Prefers an entity that is about to be preempted at the pick after.
    pub(crate) fn set_last_buddy(&mut self, se: SeId) {
        self.set_unless_idle(se, LAST);
    }

    /// Passes over an entity that yielded.
    pub(crate) fn set_skip_buddy(&mut self, se: SeId) {
        let mut level = Some(se);
        while let Some(se) = level {
            let cfs = self.cfs_rq_of(se);
            self.cfs_mut(cfs).skip = Some(se);
            level = self.se(se).parent;
        }
    }

    fn set_unless_idle(&mut self, se: SeId, mark: Mark) {
        let mut level = Some(se);
        while let Some(se) = level {
            if !self.se(se).on_rq || self.se_is_idle(se) {
                return;
            }
            let cfs = self.line_of(se);
            *mark(self.cfs_mut(cfs)) = Some(se);
            level = self.se(se).parent.filter(|_| !self.is_flat());
        }
    }

    /// Takes all marks off an entity.
    #[inline]
    pub(crate) fn clear_buddies(&mut self, cfs: CfsRqId, se: SeId) {
        let queue = self.cfs(cfs);
        if queue.last.is_some() || queue.next.is_some() || queue.skip.is_some() {
            self.clear_set_buddies(cfs, se);
        }
    }

    fn clear_set_buddies(&mut self, cfs: CfsRqId, se: SeId) {
        let queue = self.cfs(cfs);
        let (last, next, skip) = (queue.last == Some(se), queue.next == Some(se), queue.skip == Some(se));
        if last {
            self.clear_marks(se, LAST);
        }
        if next {
            self.clear_marks(se, NEXT);
        }
        if skip {
            self.clear_marks(se, SKIP);
        }
    }

    fn clear_marks(&mut self, se: SeId, mark: Mark) {
        let mut level = Some(se);
        while let Some(se) = level {
            let cfs = self.line_of(se);
            let marked = mark(self.cfs_mut(cfs));
            if *marked != Some(se) {
                return;
            }
            *marked = None;
            level = self.se(se).parent.filter(|_| !self.is_flat());
        }
    }

    /// A SCHED_IDLE task, or the entity of an idle group.
    #[inline]
    pub(crate) fn se_is_idle(&self, se: SeId) -> bool {
        self.se(se).idle && (se.is_task() || self.kernel.has(Feature::IdleGroups))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::drawing::{NOW, by_kernel, draw};
    use crate::lab::Lab;
    use crate::{Curr, NICE_0_LOAD, NewTask, SeId, TgId};

    #[test]
    fn a_group_stays_the_next_buddy_as_one_of_its_tasks_follows_another_or_not() {
        let marked = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[a* b]");
            let [a, b] = ["a", "b"].map(|name| drawn.task(name));
            let (sched, cpu) = (&mut drawn.sched, CpuId(0));
            let group = sched.new_group(TgId::ROOT, NICE_0_LOAD, cpu, NOW);
            for task in [a, b] {
                sched.move_task_to_group(task, group, NOW);
            }
            sched.set_next_buddy(SeId(b.0));
            sched.switch_to(cpu, Curr::Task(b), NOW);
            let (root, inner) = (sched.root_cfs_id(cpu), sched.tg(group).cfs_rq[0]);
            alloc::format!(
                "root {}, group {}",
                sched.cfs(root).next.is_some(),
                sched.cfs(inner).next.is_some()
            )
        };
        expect!["v4.13..v7.3: root false, group false"].assert_eq(&by_kernel("", marked));
    }

    #[test]
    fn the_mark_of_a_group_stays_as_the_running_task_moves_there_unless_setting_clears_it() {
        let marked = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[a* b]");
            let [a, b] = ["a", "b"].map(|name| drawn.task(name));
            let (sched, cpu) = (&mut drawn.sched, CpuId(0));
            let group = sched.new_group(TgId::ROOT, NICE_0_LOAD, cpu, NOW);
            sched.move_task_to_group(b, group, NOW);
            let (root, se) = (sched.root_cfs_id(cpu), sched.tg(group).se[0]);
            sched.cfs_mut(root).next = Some(se);
            sched.move_task_to_group(a, group, NOW);
            sched.cfs(root).next.is_some()
        };
        expect![[r#"
            v4.13..v5.5: true
            v5.18..v7.2: false
            v7.3: true"#]]
        .assert_eq(&by_kernel("", |kernel| alloc::format!("{}", marked(kernel))));
    }

    #[test]
    fn v7_2_forgets_a_preferred_idle_task_that_makes_way_but_no_group() {
        let cleared = |grouped: bool| {
            move |kernel: &str| {
                let mut lab = Lab::new(kernel, "1x1x8").without_ticks();
                let tg = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), lab.time());
                let spec = if grouped { NewTask { tg, ..lab.spec() } } else { lab.spec() };
                let background = lab.fork("background", 0, spec);
                let a = lab.hog("a", 0);
                if grouped {
                    lab.sched.set_idle_group(tg, true, lab.time());
                } else {
                    lab.sched.set_policy(CpuId(0), background, crate::Policy::Idle, lab.time());
                }
                lab.sched.rqs[CpuId(0)].need_resched = crate::NeedResched::default();
                assert_eq!(lab.running(0), "background", "{kernel}");
                let se = if grouped { lab.sched.tg(tg).se[0] } else { SeId(background.0) };
                let root = lab.sched.root_cfs_id(CpuId(0));
                lab.sched.cfs_mut(root).next = Some(se);
                let decision = lab.sched.check_preempt(CpuId(0), a, crate::wf::TTWU);
                lab.sched.apply_preempt(CpuId(0), &decision);
                lab.sched.cfs(root).next.is_none()
            }
        };
        assert_eq!(["v7.2", "v6.12"].map(cleared(false)), [true, false]);
        assert_eq!(["v7.2", "v6.12"].map(cleared(true)), [false, false]);
    }
}
