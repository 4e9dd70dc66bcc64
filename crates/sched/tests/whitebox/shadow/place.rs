//! Where place_entity() puts a task, from what the probe at its entry saw.

use schedlab_sched::pick::avg_vruntime::AvgSums;
use schedlab_sched::pick::place_entity::{PlaceCfs, place_eevdf};
use schedlab_sched::{AvgWeight, DelayedRequeue, LoadWeight, calc_delta_fair};
use schedlab_topology::CpuId;
use schedlab_trace::Unknown;
use schedlab_units::TaskId;

use super::{Expected, Shadow, field, field_u64, load_weight, root, se_of};

const ENQUEUE_WAKEUP: u64 = 0x1;

impl Shadow<'_> {
    /// ENQUEUE_INITIAL of this kernel.
    fn initial_flag(&self) -> u64 {
        if self.sched.kernel.rules.avg_weight == AvgWeight::Full { 0x80000 } else { 0x80 }
    }

    pub(super) fn placed(&mut self, executing: CpuId, probe: &Unknown) {
        let task = self.task_of(probe);
        let cpu = self.sched.task(task).cpu;
        if !self.eevdf() {
            return self.placed_cfs(executing, task, probe);
        }
        let flags = field_u64(probe, "fl");
        let initial = flags & self.initial_flag() != 0;
        let running = self.curr(cpu) == Some(task);
        let requeued = self.known[task.index()].queued;
        if running {
            // Its group, nice level or affinity changes: it was dequeued for that.
            self.sched.cfs_rqs[cpu.index()].curr = None;
            self.se(task).on_rq = false;
        } else if requeued {
            self.requeued(task, cpu, probe);
            self.leave_line(task);
            self.se(task).on_rq = false;
        } else if !initial {
            self.had_left(task, probe);
        }
        self.recount(cpu);

        let se = self.se(task);
        se.vruntime = field_u64(probe, "vr");
        se.deadline = field_u64(probe, "dl");
        se.vlag = field(probe, "vlag");
        se.slice = field_u64(probe, "slice");
        se.load = load_weight(field_u64(probe, "w"));
        // Only a task that did not sleep has a relative deadline.
        se.rel_deadline = !initial && !requeued && flags & ENQUEUE_WAKEUP == 0;
        let expected = self.place(task, cpu, probe, initial);
        self.se(task).rel_deadline = false;
        self.placing.insert(executing, (task, expected));
    }

    /// Where the decider places it: vruntime and deadline.
    fn place(&self, task: TaskId, cpu: CpuId, probe: &Unknown, initial: bool) -> Expected<(u64, u64)> {
        let mut queue = self.sched.cfs_rqs[cpu.index()].clone();
        let complete = queue.nr_queued as u64 == field_u64(probe, "nr") && self.curr_known(cpu);
        queue.avg_vruntime = field(probe, "av");
        queue.avg_load = field(probe, "al");
        queue.zero_vruntime = field_u64(probe, "zv");
        let curr = queue.curr.map(|curr| self.sched.se(curr)).filter(|curr| curr.on_rq);
        let sums = AvgSums::of(&self.sched.kernel.rules, &queue, curr);
        let se = &self.sched.task(task).se;
        let base_slice = self.sched.scaled.base_slice;
        let placed = place_eevdf(&self.sched.kernel, base_slice, &queue, &sums, se, initial);
        let says = match complete {
            true => Ok((placed.vruntime, placed.deadline)),
            false => Err("the running task was not seen yet"),
        };
        Expected {
            says,
            story: format!("task {} nr {} lag {} -> {says:?}", task.0, queue.nr_queued, se.vlag),
        }
    }

    /// The lag, and the rest of the deadline, with which a task had left its last queue.
    fn had_left(&mut self, task: TaskId, probe: &Unknown) {
        let se = &self.sched.task(task).se;
        let own = (se.vlag, se.deadline);
        let recorded = (field(probe, "vlag"), field_u64(probe, "dl"));
        let agrees = own.0 == recorded.0 && (!se.rel_deadline || own.1 == recorded.1);
        let result = if self.known[task.index()].lag { Ok(agrees) } else { Err("not seen leaving") };
        self.count("leave", result, || format!("task {} {own:?}, recorded {recorded:?}", task.0));
    }

    /// A task woken while its dequeue was delayed is placed again.
    fn requeued(&mut self, task: TaskId, cpu: CpuId, probe: &Unknown) {
        let average = self.sched.avg_sums(root(cpu)).average();
        let lag = self.sched.entity_lag(root(cpu), se_of(task), average);
        let at_sleep = self.sched.task(task).se.vlag;
        let recorded = field(probe, "vlag");
        let agrees = match self.sched.kernel.rules.delayed_requeue {
            DelayedRequeue::ZeroIfEligible => lag > 0 && recorded == 0,
            DelayedRequeue::BetterLag => recorded == lag.max(at_sleep).min(0),
        };
        let known = self.known[task.index()].lag && self.all_known(cpu);
        self.count("requeue", if known { Ok(agrees) } else { Err("not seen leaving") }, || {
            format!("task {} lag {lag}, at sleep {at_sleep}, recorded {recorded}", task.0)
        });
    }

    /// A task enters a timeline: placed, or put back after running.
    pub(super) fn enqueued(&mut self, executing: CpuId, probe: &Unknown) {
        let task = self.task_of(probe);
        let cpu = self.sched.task(task).cpu;
        if self.sched.cfs_rqs[cpu.index()].curr == Some(se_of(task)) {
            self.meet(task, probe, "");
            self.sched.cfs_rqs[cpu.index()].curr = None;
            self.enter(task, cpu);
            return;
        }
        if let Some((placed, expected)) = self.placing.remove(&executing)
            && placed == task
        {
            let recorded = (field_u64(probe, "vr"), field_u64(probe, "dl"));
            let agrees = expected.says.map(|says| says == recorded);
            self.count("place", agrees, || format!("{}, recorded {recorded:?}", expected.story));
        }
        self.take_over(task, probe, "");
        self.enter(task, cpu);
        if self.curr(cpu) == Some(task) {
            // It changed while it ran; it continues to run, and only v6.12 protects it again.
            let vprot = self.sched.task(task).se.vprot;
            self.leave_line(task);
            self.run(cpu, task);
            self.se(task).vprot = vprot;
        }
    }

    fn placed_cfs(&mut self, executing: CpuId, task: TaskId, probe: &Unknown) {
        let initial = field_u64(probe, "fl") & 1 == 1;
        self.known[task.index()].vruntime = !initial;
        if initial {
            return self.forked(task, executing, probe);
        }
        let place = PlaceCfs {
            min_vruntime: field_u64(probe, "minv"),
            initial_vslice: None,
            thresh: self.sched.scaled.latency,
            absent: None,
        };
        let vruntime = place.place(&self.sched.kernel, field_u64(probe, "vr"));
        self.se(task).vruntime = vruntime;
        let story = format!("task {} floor {} -> {vruntime}", task.0, place.min_vruntime);
        self.placing_cfs.insert(task, Expected { says: Ok(vruntime), story });
    }

    /// v6.1: a new task is placed on its parent's queue, then made relative to its floor.
    fn forked(&mut self, task: TaskId, parents: CpuId, probe: &Unknown) {
        let floor = field_u64(probe, "minv");
        let queue = &mut self.sched.cfs_rqs[parents.index()];
        queue.load = LoadWeight { weight: field_u64(probe, "qw"), inv_weight: 0 };
        queue.nr_queued = field_u64(probe, "nr") as u32;
        queue.h_nr_queued = queue.nr_queued;
        self.sched.set_cpu(task, parents);
        self.se(task).load = load_weight(field_u64(probe, "w"));
        let slice = self.sched.sched_slice(root(parents), se_of(task));
        let vslice = calc_delta_fair(slice, &self.sched.task(task).se.load);
        self.recount(parents);
        let place = PlaceCfs { min_vruntime: floor, initial_vslice: Some(vslice), thresh: 0, absent: None };
        let vruntime = place.place(&self.sched.kernel, field_u64(probe, "vr")).wrapping_sub(floor);
        let story = format!("task {} nr {} slice {slice} -> {vruntime}", task.0, field(probe, "nr"));
        self.forked.insert(task, Expected { says: Ok(vruntime), story });
    }

    /// v6.1: a new task requests preemption at once, which shows its distance from the floor; on an idle CPU
    /// it does not.
    pub(super) fn shown_forked(&mut self, task: TaskId, probe: &Unknown, forks: bool) {
        if let Some(expected) = self.forked.remove(&task).filter(|_| forks) {
            let recorded = field_u64(probe, "vr").wrapping_sub(field_u64(probe, "minv"));
            let agrees = expected.says.map(|says| says == recorded);
            self.count("fork", agrees, || format!("{}, recorded {recorded}", expected.story));
        }
    }

    /// v6.1: a probe shows where a task is.
    pub(super) fn shown_cfs(&mut self, task: TaskId, probe: &Unknown) {
        if let Some(expected) = self.placing_cfs.remove(&task) {
            let recorded = field_u64(probe, "vr");
            let agrees = expected.says.map(|says| says == recorded);
            self.count("place", agrees, || format!("{}, recorded {recorded}", expected.story));
        }
    }
}
