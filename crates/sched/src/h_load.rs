//! Load of a task as the whole CPU sees it: its share of its group's queue, times that
//! group's share of the queue above, up to the root.
//!
//! A queue's factor is computed once per jiffy, from top to bottom, at the first read; it stays the same during the
//! jiffy, although loads change. So a task that just arrived on an empty CPU may count almost nothing. The kernel
//! writes this cache from readers; so do we, in cells: it is the only state that a decider writes, except in a
//! hypothetical question.

use schedlab_units::{TaskId, Time};

use crate::{CfsRqId, Sched, View};

impl Sched {
    /// Hierarchical load of a queue. `keeps`: its factor stays for the rest of the jiffy.
    ///
    /// Kernel: update_cfs_rq_h_load(), kernel/sched/fair.c, v6.12.
    pub(crate) fn h_load(&self, cfs: CfsRqId, now: Time, keeps: bool) -> u64 {
        let jiffy = self.jiffies(now);
        let queue = self.cfs(cfs);
        if queue.last_h_load_update.get() == jiffy {
            return queue.h_load.get();
        }
        let tg = self.tg(queue.tg);
        let load = match tg.se.get(queue.cpu.index()) {
            None => queue.avg.load_avg,
            Some(&se) => {
                let entity = self.se(se);
                let above = entity.cfs_rq.expect("entity has a queue");
                self.h_load(above, now, keeps) * entity.avg.load_avg / (self.cfs(above).avg.load_avg + 1)
            }
        };
        if keeps {
            queue.h_load.set(load);
            queue.last_h_load_update.set(jiffy);
        }
        load
    }

    /// Load of a task at the root of its CPU.
    ///
    /// Kernel: task_h_load(), kernel/sched/fair.c, v6.12.
    pub fn task_h_load(&self, task: TaskId, now: Time) -> u64 {
        View::new(self, now, None).task_h_load(task)
    }
}

#[cfg(test)]
mod tests {
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    use crate::drawing::{NOW, draw};
    use crate::{Supposed, TgId, View};

    #[test]
    fn a_task_counts_its_share_of_each_level_and_the_factor_stays_for_a_jiffy() {
        let mut drawn = draw("v6.12", "1x1x2 | 0[a* b]");
        let b = drawn.task("b");
        let sched = &mut drawn.sched;
        let tg = sched.new_group(TgId::ROOT, 1_048_576, CpuId(0), NOW);
        sched.move_task_to_group(b, tg, NOW);
        let (root, cfs, se) = (sched.root_cfs_id(CpuId(0)), sched.tg(tg).cfs_rq[0], sched.tg(tg).se[0]);
        let later = Time(NOW.0 + sched.tick_ns());
        sched.cfs_mut(root).avg.load_avg = 2000;
        sched.se_mut(se).avg.load_avg = 800;
        sched.cfs_mut(cfs).avg.load_avg = 500;
        sched.task_mut(b).se.avg.load_avg = 250;
        // 2000 * 800 / 2001 = 799; 250 * 799 / 501 = 398.
        assert_eq!(sched.task_h_load(b, later), 398);
        sched.cfs_mut(root).avg.load_avg = 4000;
        sched.se_mut(se).avg.load_avg = 4000;
        assert_eq!(sched.task_h_load(b, later), 398, "the factor is of this jiffy");
        // 4000 * 4000 / 4001 = 3999; 250 * 3999 / 501 = 1995.
        assert_eq!(sched.task_h_load(b, Time(later.0 + sched.tick_ns())), 1995);
    }

    #[test]
    fn a_hypothetical_question_keeps_no_factor() {
        let mut drawn = draw("v6.12", "1x1x2 | 0[a* b]");
        let b = drawn.task("b");
        let sched = &mut drawn.sched;
        let (root, later) = (sched.root_cfs_id(CpuId(0)), Time(NOW.0 + sched.tick_ns()));
        sched.cfs_mut(root).avg.load_avg = 2000;
        sched.task_mut(b).se.avg.load_avg = 250;
        let asked = View::supposing(sched, later, &Supposed::NOTHING).task_h_load(b);
        // 250 * 2000 / 2001 = 249.
        assert_eq!(asked, 249);
        sched.cfs_mut(root).avg.load_avg = 4000;
        assert_eq!(sched.task_h_load(b, later), 249, "the load of now: 250 * 4000 / 4001");
        sched.cfs_mut(root).avg.load_avg = 2000;
        assert_eq!(sched.task_h_load(b, later), 499, "its factor stays: 250 * 4000 / 2001");
    }
}
