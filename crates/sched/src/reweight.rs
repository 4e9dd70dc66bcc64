//! Giving an entity another weight: a task's nice level, or a group's share.
//!
//! CFS keeps vruntime as it is. EEVDF keeps what the entity is owed: its lag and its
//! distance to the deadline are virtual times, so they are scaled by the ratio of the
//! weights around the average, which does not move. From v6.13 to v6.19 it was placed again
//! instead, as if it joined: its lag comes out greater by the part of the queue's weight that it is.

use crate::{CfsRqId, Feature, LoadWeight, Protection, Reweight, Sched, SeId};

/// `value * old / new` in the kernel's integers.
fn rescale(value: i64, old: u64, new: u64) -> i64 {
    value.wrapping_mul(old as i64) / new.max(1) as i64
}

impl Sched {
    /// Sets the weight of an entity and all sums it is part of.
    ///
    /// Kernel: reweight_entity(), kernel/sched/fair.c, v6.1, v6.12, v7.2.
    pub fn reweight_entity(&mut self, cfs: CfsRqId, se: SeId, weight: u64) {
        self.reweight_to(cfs, se, LoadWeight::new(weight));
    }

    pub(crate) fn reweight_to(&mut self, cfs: CfsRqId, se: SeId, load: LoadWeight) {
        let load = self.kernel.divisor(load);
        if self.se(se).load.weight == load.weight && self.kernel.has(Feature::SameWeightStays) {
            if self.se(se).on_rq {
                self.update_curr(cfs);
            }
            return;
        }
        if self.is_flat() {
            // Its virtual times are scaled when it is queued.
            let entity = self.se_mut(se);
            entity.h_load = Some(*entity.line_load());
            self.change_load(cfs, se, load);
        } else if self.is_eevdf() {
            self.reweight_eevdf(cfs, se, load);
        } else {
            if self.se(se).on_rq && self.cfs(cfs).curr == Some(se) {
                self.update_curr(cfs);
            }
            self.change_load(cfs, se, load);
        }
    }

    /// Changes the weight in the sum of the queue and in the averages.
    fn change_load(&mut self, cfs: CfsRqId, se: SeId, load: LoadWeight) {
        let old = self.se(se).load.weight;
        if self.se(se).on_rq {
            let sum = &mut self.cfs_mut(cfs).load;
            *sum = LoadWeight { weight: sum.weight - old + load.weight, inv_weight: 0 };
        }
        self.reweight_load_avg(cfs, se, |entity| entity.load = load);
    }

    /// Kernel: reweight_eevdf(), kernel/sched/fair.c, v6.12; rescale_entity(), v7.2.
    fn reweight_eevdf(&mut self, cfs: CfsRqId, se: SeId, load: LoadWeight) {
        let old = self.se(se).load.weight;
        let rules = self.kernel.rules;
        if !self.se(se).on_rq {
            let entity = self.se_mut(se);
            entity.vlag = rescale(entity.vlag, old, load.weight);
            if entity.rel_deadline && rules.protection == Protection::MinSlice {
                entity.deadline = rescale(entity.deadline as i64, old, load.weight) as u64;
            }
            return self.change_load(cfs, se, load);
        }
        self.update_curr(cfs);
        if rules.reweight == Reweight::Placed {
            return self.reweight_placing(cfs, se, load);
        }
        let average = self.avg_vruntime(cfs);
        let curr = self.cfs(cfs).curr == Some(se);
        let vprot_form = rules.protection == Protection::MinSlice;
        let protected = curr && vprot_form && self.se(se).is_protected(&rules);
        let lag = self.entity_lag(cfs, se, average);
        if !curr {
            self.timeline_remove(cfs, se);
        }
        let entity = self.se_mut(se);
        let lag = rescale(lag, old, load.weight);
        let around = |value: u64| {
            let distance = value.wrapping_sub(average) as i64;
            average.wrapping_add(rescale(distance, old, load.weight) as u64)
        };
        if vprot_form || entity.vruntime != average {
            entity.vruntime = average.wrapping_sub(lag as u64);
        }
        entity.deadline = around(entity.deadline);
        if vprot_form {
            entity.vlag = lag;
        }
        if protected {
            entity.vprot = around(entity.vprot);
        }
        self.change_load(cfs, se, load);
        if !curr {
            self.timeline_add(cfs, se);
        }
        self.update_floor(cfs);
    }

    /// The running entity stays in the average around which it is placed, with its new weight.
    ///
    /// Kernel: reweight_entity(), kernel/sched/fair.c, v6.17, v6.18, v6.19.
    fn reweight_placing(&mut self, cfs: CfsRqId, se: SeId, load: LoadWeight) {
        self.update_entity_lag(cfs, se);
        self.place_again(cfs, se, |sched| {
            let entity = sched.se_mut(se);
            let old = entity.load.weight;
            let left = entity.deadline.wrapping_sub(entity.vruntime) as i64;
            entity.vlag = rescale(entity.vlag, old, load.weight);
            entity.deadline = rescale(left, old, load.weight) as u64;
            entity.rel_deadline = true;
            sched.change_load(cfs, se, load);
        });
        self.update_floor(cfs);
    }

    fn update_floor(&mut self, cfs: CfsRqId) {
        if self.kernel.rules.avg_reference == crate::AvgReference::MinVruntime {
            self.update_min_vruntime(cfs);
        }
    }
}

#[cfg(test)]
mod tests {
    use schedlab_topology::CpuId;
    use schedlab_units::TaskId;

    use crate::SeId;
    use crate::lab::{Lab, MS};

    /// One of two runs and is ahead; half its weight makes it twice as far from the average, which stays where it was.
    /// If it is placed again, it is so around the average as its new weight has moved it, by a lag that is 4/3 of that.
    #[test]
    fn the_running_task_gets_ahead_with_less_weight_and_more_so_where_it_is_placed_again() {
        for (kernel, sixths) in [("v6.12", 3), ("v6.17", 4), ("v6.18", 4), ("v7.2", 3)] {
            let mut lab = Lab::new(kernel, "1x1x1");
            let tasks = [lab.hog("a", 0), lab.hog("b", 0)];
            lab.run(101 * MS);
            let runs = lab.sched.rqs[CpuId(0)].curr.task().unwrap();
            let waits = tasks.into_iter().find(|&task| task != runs).unwrap();
            let at = |lab: &Lab, task: TaskId| lab.sched.task(task).se.vruntime;
            let lead = at(&lab, runs).wrapping_sub(at(&lab, waits)) as i64;
            assert!(lead.unsigned_abs() > 100_000, "{kernel}: {lead}");
            let (before, waiting) = (at(&lab, runs), at(&lab, waits));
            let se = SeId(runs.0);
            let cfs = lab.sched.cfs_rq_of(se);
            lab.sched.reweight_entity(cfs, se, lab.sched.task(runs).se.load.weight / 2);
            let moved = at(&lab, runs).wrapping_sub(before) as i64;
            assert!((6 * moved - sixths * lead).abs() < 24, "{kernel}: {moved} of {lead}");
            assert_eq!(at(&lab, waits), waiting, "{kernel}");
        }
    }
}
