//! uclamp: bounds within which a task's utilisation counts when a CPU of sufficient capacity is sought for it.
//!
//! A task requests bounds for itself, and each of its groups limits them. Their effect on the clock of a CPU is not
//! modelled.

use schedlab_units::TaskId;

use crate::{AsymFits, Sched, TgId};

/// A lower and an upper bound of utilisation, 0 to 1024 each. The lower one may be above the upper one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uclamp {
    /// Utilisation counts as at least this much.
    pub min: u32,
    /// It counts as at most this much.
    pub max: u32,
}

impl Default for Uclamp {
    /// No bounds.
    fn default() -> Uclamp {
        Uclamp { min: 0, max: 1024 }
    }
}

impl Uclamp {
    /// Requests of the root group: they allow everything to the groups below.
    pub(crate) const ROOT: Uclamp = Uclamp { min: 1024, max: 1024 };

    /// With new bounds; `None` leaves one unchanged.
    pub fn requested(self, min: Option<u32>, max: Option<u32>) -> Uclamp {
        Uclamp { min: min.unwrap_or(self.min), max: max.unwrap_or(self.max) }
    }
}

impl Sched {
    /// Requests bounds for a group; `None` leaves one unchanged. What each group below it allows follows.
    ///
    /// Kernel: cpu_uclamp_write(), kernel/sched/core.c, v6.12.
    pub fn set_group_uclamp(&mut self, tg: TgId, min: Option<u32>, max: Option<u32>) {
        let group = &mut self.tgs[tg.0 as usize];
        group.uclamp_req = group.uclamp_req.requested(min, max);
        // A group's number is above that of its parent.
        for id in (tg.0..self.tgs.len() as u32).map(TgId) {
            self.tgs[id.0 as usize].uclamp = self.allowed_uclamp(id);
        }
    }

    /// What a group allows, from its own request and what its parent allows.
    ///
    /// Kernel: cpu_util_update_eff(), kernel/sched/core.c, v6.12.
    pub(crate) fn allowed_uclamp(&self, tg: TgId) -> Uclamp {
        let group = self.tg(tg);
        let above = group.parent.map_or(Uclamp::ROOT, |parent| self.tg(parent).uclamp);
        let max = group.uclamp_req.max.min(above.max);
        Uclamp { min: group.uclamp_req.min.min(above.min).min(max), max }
    }

    /// The bounds that apply to a task: those that it requests, moved to within those of its group.
    ///
    /// Kernel: uclamp_eff_get(), uclamp_tg_restrict(), kernel/sched/core.c, v6.12, v5.14.
    pub fn uclamp_eff(&self, task: TaskId) -> Uclamp {
        let p = self.task(task);
        if p.tg == TgId::ROOT {
            return p.uclamp_req;
        }
        let Uclamp { min, max } = self.tg(p.tg).uclamp;
        Uclamp { min: p.uclamp_req.min.clamp(min, max), max: p.uclamp_req.max.clamp(min, max) }
    }

    /// A task's utilisation within its bounds, in kernels that compare only that with a capacity. Later ones compare utilisation and
    /// bounds apart, and older ones have no bounds.
    ///
    /// Kernel: uclamp_task_util(), kernel/sched/fair.c, v5.18.
    pub(crate) fn uclamp_task_util(&self, task: TaskId, util: u64) -> u64 {
        if self.kernel.rules.asym_fits != AsymFits::Capacity {
            return util;
        }
        let bounds = self.uclamp_eff(task);
        util.max(u64::from(bounds.min)).min(u64::from(bounds.max))
    }
}

#[cfg(test)]
mod tests {
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    use super::*;
    use crate::drawing::draw;

    const NOW: Time = Time(1_000_000_000);

    #[test]
    fn a_group_limits_what_its_tasks_and_its_groups_request() {
        let mut drawn = draw("v5.18", "1x1x2 | 0[a*]");
        let sched = &mut drawn.sched;
        let outer = sched.new_group(TgId::ROOT, 1 << 20, CpuId(0), NOW);
        let inner = sched.new_group(outer, 1 << 20, CpuId(0), NOW);
        let task = TaskId(0);
        sched.task_mut(task).tg = inner;
        let mut seen = |bounds: [(TgId, u32, u32); 2], (min, max): (u32, u32)| {
            for (tg, min, max) in bounds {
                sched.set_group_uclamp(tg, Some(min), Some(max));
            }
            sched.task_mut(task).uclamp_req = Uclamp { min, max };
            let Uclamp { min, max } = sched.uclamp_eff(task);
            (min, max, sched.uclamp_task_util(task, 500))
        };
        let free = (inner, 0, 1024);
        assert_eq!(seen([(outer, 0, 1024), free], (0, 1024)), (0, 1024, 500));
        assert_eq!(
            seen([(outer, 0, 1024), free], (800, 900)),
            (800, 900, 800),
            "a protection of nothing limits nothing"
        );
        assert_eq!(seen([(outer, 1024, 1024), (inner, 600, 1024)], (0, 1024)), (600, 1024, 600));
        assert_eq!(seen([(outer, 512, 1024), (inner, 600, 1024)], (0, 1024)), (512, 1024, 512));
        assert_eq!(
            seen([(outer, 900, 205), (inner, 600, 1024)], (0, 1024)),
            (205, 205, 205),
            "a limit is above all"
        );
        assert_eq!(seen([(outer, 0, 205), free], (819, 1024)), (205, 205, 205), "as in kSTEP");
    }

    #[test]
    fn tasks_of_the_root_group_have_what_they_request() {
        let mut drawn = draw("v5.18", "1x1x2 | 0[a*]");
        drawn.sched.set_group_uclamp(TgId::ROOT, Some(0), Some(100));
        drawn.sched.task_mut(TaskId(0)).uclamp_req = Uclamp { min: 300, max: 400 };
        assert_eq!(drawn.sched.uclamp_eff(TaskId(0)), Uclamp { min: 300, max: 400 });
        assert_eq!(
            [200, 350, 450].map(|util| drawn.sched.uclamp_task_util(TaskId(0), util)),
            [300, 350, 400]
        );
        for kernel in ["v5.5", "v6.12"] {
            let mut drawn = draw(kernel, "1x1x2 | 0[a*]");
            drawn.sched.task_mut(TaskId(0)).uclamp_req = Uclamp { min: 300, max: 400 };
            assert_eq!(drawn.sched.uclamp_task_util(TaskId(0), 200), 200, "{kernel}");
        }
    }
}
