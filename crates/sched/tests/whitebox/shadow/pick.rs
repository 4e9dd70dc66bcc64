//! Which task is picked.

use schedlab_sched::{NeedResched, SeId};
use schedlab_topology::CpuId;
use schedlab_trace::Unknown;
use schedlab_units::TaskId;

use super::{Shadow, field_u64, root, se_of};

/// v6.1: the task recorded, and the choices with and without the running one.
pub struct Choosing {
    task: TaskId,
    with: SeId,
    without: SeId,
}

impl Shadow<'_> {
    pub(super) fn picked(&mut self, executing: CpuId, probe: &Unknown) {
        let task = self.task_of(probe);
        let by_wakeup = probe.place().is_some_and(|place| place.contains("wakeup"));
        let cpu = self.decided_cpu(executing).filter(|_| by_wakeup).unwrap_or(executing);
        if !by_wakeup && !self.sched.task(task).se.sched_delayed {
            // Requests are served by the switch, also by one that keeps the running task.
            self.sched.rqs[cpu].need_resched = NeedResched::default();
        }
        if self.eevdf() {
            self.picked_eevdf(executing, cpu, task, probe, by_wakeup);
        } else {
            self.picked_cfs(cpu, task, probe);
        }
    }

    fn picked_eevdf(&mut self, executing: CpuId, cpu: CpuId, task: TaskId, probe: &Unknown, by_wakeup: bool) {
        // Its number of tasks shows whether the running task still counts.
        let queue = &self.sched.cfs_rqs[cpu.index()];
        if let Some(curr) = queue.curr
            && !by_wakeup
            && self.sched.se(curr).on_rq
            && field_u64(probe, "nr") == queue.timeline.len() as u64
        {
            self.sleep(cpu, TaskId(curr.0));
        }
        let complete = self.is_kernels(cpu, probe).and_then(|()| {
            let same = self.sched.cfs_rqs[cpu.index()].nr_queued as u64 == field_u64(probe, "nr");
            match (self.curr_known(cpu), same) {
                (false, _) => Err("the running task was not seen yet"),
                (true, false) => Err("the queue is not the kernel's"),
                (true, true) => Ok(()),
            }
        });
        let choice = complete.map(|()| self.sched.pick_eevdf(root(cpu), true));
        self.count("pick", choice.map(|(se, _)| se == se_of(task)), || {
            format!("cpu {cpu} recorded task {}, chose {choice:?}", task.0)
        });
        if self.sched.task(task).se.sched_delayed {
            if !by_wakeup || self.wakeup_picks() {
                self.dequeue(task, true);
                self.se(task).sched_delayed = false;
                self.ask_again(executing);
            }
        } else if !by_wakeup && self.curr(cpu) == Some(task) {
            // If it is asleep, its dequeue was delayed and is completed now.
            self.note_lag_if_it_left(cpu);
            let known = &mut self.known[task.index()];
            known.lag_if_it_left = known.lag_if_it_left.map(|lag| lag.min(0));
        }
    }

    fn picked_cfs(&mut self, cpu: CpuId, task: TaskId, probe: &Unknown) {
        self.shown_cfs(task, probe);
        let queued = self.known[task.index()].queued;
        let curr = self.sched.cfs_rqs[cpu.index()].curr;
        let seen = queued || self.curr(cpu) == Some(task);
        if seen && self.all_known(cpu) && self.curr_known(cpu) {
            let with = self.sched.pick_cfs(root(cpu), curr).0;
            let without = match self.sched.cfs_rqs[cpu.index()].timeline.is_empty() {
                true => with,
                false => self.sched.pick_cfs(root(cpu), None).0,
            };
            self.choosing.insert(cpu, Choosing { task, with, without });
        } else {
            self.count("pick", Err("a queued task was not seen entering"), String::new);
        }
        if queued {
            self.leave_line(task);
        }
        self.take_over(task, probe, "");
        if queued {
            self.enter(task, cpu);
        }
    }

    /// v6.1: compares the choice, now that it is known whether the running task sleeps.
    pub(super) fn chosen(&mut self, cpu: CpuId, sleeps: bool) {
        if let Some(Choosing { task, with, without }) = self.choosing.remove(&cpu) {
            let choice = if sleeps { without } else { with };
            self.count("pick", Ok(choice == se_of(task)), || {
                format!("cpu {cpu} recorded task {}, chose {}", task.0, choice.0)
            });
        }
    }
}
