//! The shadow's queues: timelines, sums, and whether they equal the kernel's.

use schedlab_sched::{AvgWeight, Feature, LoadWeight, Protection, Queued, SeId};
use schedlab_topology::CpuId;
use schedlab_trace::Unknown;
use schedlab_units::TaskId;

use super::{Shadow, field, field_u64, root, se_of};

impl Shadow<'_> {
    /// Puts a task on the timeline of a CPU.
    pub(super) fn enter(&mut self, task: TaskId, cpu: CpuId) {
        if self.known[task.index()].queued {
            self.leave_line(task);
        }
        self.known[task.index()].queued = true;
        self.sched.set_cpu(task, cpu);
        self.se(task).on_rq = true;
        let se = &self.sched.task(task).se;
        let key = if self.eevdf() { se.deadline } else { se.vruntime };
        let entry = Queued { key, vruntime: se.vruntime, slice: se.slice, se: se_of(task) };
        self.sched.cfs_rqs[cpu.index()].timeline.insert(entry);
        self.recount(cpu);
    }

    /// Takes a task off its timeline, if it is on one.
    pub(super) fn leave_line(&mut self, task: TaskId) {
        if !std::mem::take(&mut self.known[task.index()].queued) {
            return;
        }
        let cpu = self.sched.task(task).cpu;
        let line = &mut self.sched.cfs_rqs[cpu.index()].timeline;
        let key = line.entries().iter().find(|q| q.se == se_of(task)).expect("the task is queued").key;
        line.remove(key, se_of(task));
        self.recount(cpu);
    }

    /// Recomputes counts and sums of a queue from its timeline and current task.
    pub(super) fn recount(&mut self, cpu: CpuId) {
        let rules = self.sched.kernel.rules;
        let full = rules.avg_weight == AvgWeight::Full;
        let queue = &self.sched.cfs_rqs[cpu.index()];
        let curr = queue.curr.filter(|&curr| self.sched.se(curr).on_rq);
        let weight_of = |se: SeId| self.sched.se(se).load.weight;
        let (zero, entries) = (queue.zero(&rules), queue.timeline.entries());
        let (mut sum, mut weight) = (0i64, 0i64);
        for q in entries {
            let w = if full { weight_of(q.se) } else { (weight_of(q.se) >> 10).max(2) } as i64;
            sum = sum.wrapping_add((q.vruntime.wrapping_sub(zero) as i64).wrapping_mul(w));
            weight += w;
        }
        let load = entries.iter().map(|q| q.se).chain(curr).map(weight_of).sum();
        let nr = entries.len() as u32 + curr.is_some() as u32;
        let queue = &mut self.sched.cfs_rqs[cpu.index()];
        queue.avg_vruntime = sum;
        queue.avg_load = weight;
        queue.load = LoadWeight { weight: load, inv_weight: 0 };
        (queue.nr_queued, queue.h_nr_queued, queue.h_nr_runnable) = (nr, nr, nr);
        self.sched.rqs[cpu].nr_running = nr;
    }

    /// The task that runs on a CPU.
    pub(super) fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.sched.rqs[cpu].curr.task()
    }

    pub(super) fn all_known(&self, cpu: CpuId) -> bool {
        let entries = self.sched.cfs_rqs[cpu.index()].timeline.entries();
        entries.iter().all(|q| self.known[q.se.0 as usize].vruntime)
    }

    pub(super) fn curr_known(&self, cpu: CpuId) -> bool {
        let curr = self.sched.cfs_rqs[cpu.index()].curr;
        curr.filter(|&curr| self.sched.se(curr).on_rq).is_none_or(|curr| self.known[curr.0 as usize].vruntime)
    }

    /// Whether the shadow's queue is the one the probe saw: by the sums over its timeline, or its number of
    /// tasks.
    pub(super) fn is_kernels(&self, cpu: CpuId, probe: &Unknown) -> Result<(), &'static str> {
        let queue = &self.sched.cfs_rqs[cpu.index()];
        if !self.all_known(cpu) {
            return Err("a queued task was not seen entering");
        }
        let same = if self.eevdf() {
            let at_zero =
                |zero: u64, sum: i64, weight: i64| sum.wrapping_add((zero as i64).wrapping_mul(weight));
            let zero = queue.zero(&self.sched.kernel.rules);
            let (sum, weight) = (field(probe, "av"), field(probe, "al"));
            weight == queue.avg_load
                && at_zero(field_u64(probe, "zv"), sum, weight)
                    == at_zero(zero, queue.avg_vruntime, queue.avg_load)
        } else {
            probe.int("nr").is_none_or(|nr| nr == queue.nr_queued as i64)
        };
        if same { Ok(()) } else { Err("the queue is not the kernel's") }
    }

    /// A fair task begins to run.
    pub(super) fn run(&mut self, cpu: CpuId, task: TaskId) {
        self.forget_buddy(task);
        self.sched.cfs_rqs[cpu.index()].curr = Some(se_of(task));
        self.se(task).on_rq = true;
        self.se(task).sched_delayed = false;
        self.recount(cpu);
        if !self.eevdf() {
            return;
        }
        let shortest = self.sched.cfs_rq_min_slice(root(cpu));
        let rules = self.sched.kernel.rules;
        let se = self.se(task);
        match rules.protection {
            Protection::MinSlice => {
                se.vprot = se.deadline;
                if shortest < se.slice {
                    se.vprot = se.vprot.min(se.vruntime + shortest);
                }
            }
            _ => se.vlag = se.deadline as i64,
        }
    }

    /// A queued task leaves; notes the lag that the kernel will have noted.
    pub(super) fn dequeue(&mut self, task: TaskId, sleeps: bool) {
        if !self.sched.task(task).se.on_rq {
            return;
        }
        let cpu = self.sched.task(task).cpu;
        let known = self.known[task.index()].vruntime && self.all_known(cpu) && self.curr_known(cpu);
        if self.eevdf() {
            let average = self.sched.avg_sums(root(cpu)).average();
            let mut lag = self.sched.entity_lag(root(cpu), se_of(task), average);
            let zero = self.sched.kernel.has(Feature::DelayZero);
            let better = self.better_lag();
            let se = self.se(task);
            if better && se.sched_delayed {
                lag = lag.max(se.vlag);
            }
            if se.sched_delayed && zero && (better || sleeps) {
                lag = lag.min(0);
            }
            se.vlag = lag;
            se.rel_deadline = !sleeps;
            if !sleeps {
                se.deadline = se.deadline.wrapping_sub(se.vruntime);
            }
        }
        self.known[task.index()].lag = known;
        self.forget_buddy(task);
        self.leave_line(task);
        self.se(task).on_rq = false;
        self.recount(cpu);
    }

    /// v7.2: a delayed task keeps the better of its lags.
    pub(super) fn better_lag(&self) -> bool {
        self.sched.kernel.rules.delayed_requeue == schedlab_sched::DelayedRequeue::BetterLag
    }

    /// A task that runs or leaves is no longer a buddy.
    pub(super) fn forget_buddy(&mut self, task: TaskId) {
        let queue = &mut self.sched.cfs_rqs[self.sched.tasks[task.index()].cpu.index()];
        let other = |&se: &SeId| se != se_of(task);
        queue.next = queue.next.filter(other);
        queue.last = queue.last.filter(other);
    }

    /// The lag with which the running task of a CPU would leave now.
    pub(super) fn note_lag_if_it_left(&mut self, cpu: CpuId) {
        if let Some(se) = self.sched.cfs_rqs[cpu.index()].curr
            && self.sched.se(se).on_rq
        {
            let average = self.sched.avg_sums(root(cpu)).average();
            let lag = self.sched.entity_lag(root(cpu), se, average);
            let known = self.known[se.0 as usize].vruntime && self.all_known(cpu);
            self.known[se.0 as usize].lag_if_it_left = known.then_some(lag);
        }
    }

    /// The running task has left, or stays with its dequeue delayed.
    pub(super) fn left(&mut self, task: TaskId) {
        let lag = self.known[task.index()].lag_if_it_left;
        self.known[task.index()].lag = lag.is_some();
        if let (true, Some(lag)) = (self.eevdf(), lag) {
            self.se(task).vlag = lag;
            self.se(task).rel_deadline = false;
        }
    }
}
