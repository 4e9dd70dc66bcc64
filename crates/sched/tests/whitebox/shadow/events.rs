//! Tracepoints: run times, switches, wake-ups and moves.

use schedlab_sched::{Curr, NeedResched, Policy};
use schedlab_topology::CpuId;
use schedlab_trace::{Kind, TaskState, Unknown};
use schedlab_units::{Pid, TaskId};

use super::{Expected, Shadow, field, field_u64, root, se_of};

/// Lower priorities are those of real-time tasks.
const MAX_RT_PRIO: i32 = 100;

impl Shadow<'_> {
    pub(super) fn tracepoint(&mut self, cpu: CpuId, kind: &Kind) {
        match *kind {
            Kind::SchedStatRuntime { pid, runtime, .. } => {
                self.charge(cpu, pid, runtime);
                self.decide(cpu);
            }
            Kind::SchedSwitch { prev_pid, prev_prio, prev_state, next_pid, next_prio, .. } => {
                self.put(cpu, prev_pid, prev_prio, prev_state);
                self.set(cpu, next_pid, next_prio);
            }
            Kind::SchedMigrateTask { pid, dest_cpu, .. } => self.migrate(pid, dest_cpu),
            Kind::SchedWaking { pid, prio, target_cpu, .. } => {
                let task = self.task(pid);
                self.set_class(task, prio);
                if !self.known[task.index()].queued && !self.sched.task(task).se.on_rq {
                    self.sched.set_cpu(task, target_cpu);
                }
            }
            Kind::SchedWakeup { pid, prio, target_cpu, .. }
            | Kind::SchedWakeupNew { pid, prio, target_cpu, .. } => self.woken(pid, prio, target_cpu),
            _ => {}
        }
    }

    /// A task ran for this long; the charge may end its slice.
    fn charge(&mut self, executing: CpuId, pid: Pid, runtime: u64) {
        let task = self.task(pid);
        let cpu = self.sched.task(task).cpu;
        if self.curr(cpu) != Some(task) || !self.sched.task(task).policy.is_fair() {
            return;
        }
        // Any start will do: only the difference counts.
        let start = 1 << 40;
        self.se(task).exec_start = start;
        self.sched.rqs[cpu].clock_task = start + runtime;
        let pending = std::mem::take(&mut self.sched.rqs[cpu].need_resched);
        let complete = self.known[task.index()].vruntime && self.all_known(cpu);
        self.sched.update_curr(root(cpu));
        let asks = self.sched.rqs[cpu].need_resched.any();
        self.sched.rqs[cpu].need_resched = pending;
        self.note_lag_if_it_left(cpu);
        if self.ticking.get(&executing).is_some_and(|&(ticks, _)| ticks == task) {
            self.expect_tick(executing, task);
        }
        if self.eevdf() {
            let says = if complete { Ok(asks) } else { Err("a queued task was not seen entering") };
            let story = format!("task {} ran {runtime} on cpu {cpu}", task.0);
            self.charging.insert(executing, Expected { says, story });
        }
    }

    /// A tick begins; under CFS it may end the slice of the running task.
    pub(super) fn ticks(&mut self, executing: CpuId, probe: &Unknown) {
        let task = self.task_of(probe);
        self.meet(task, probe, "");
        if !self.eevdf() {
            let se = self.se(task);
            se.sum_exec_runtime = field_u64(probe, "ran");
            se.prev_sum_exec_runtime = field_u64(probe, "pran");
            self.expect_tick(executing, task);
        }
    }

    /// v6.1: what the tick decides about the running task with its charges so far.
    fn expect_tick(&mut self, executing: CpuId, task: TaskId) {
        let cpu = self.sched.task(task).cpu;
        let several = self.sched.cfs_rqs[cpu.index()].nr_queued > 1;
        let reason = several.then(|| self.sched.check_preempt_tick(root(cpu), se_of(task))).flatten();
        let says = match self.all_known(cpu) && self.curr(cpu) == Some(task) {
            true => Ok(reason.is_some()),
            false => Err("a queued task was not seen entering"),
        };
        let story = format!("task {} ticks on cpu {cpu}: {reason:?}", task.0);
        self.ticking.insert(executing, (task, Expected { says, story }));
    }

    /// A reschedule request.
    pub(super) fn requested(&mut self, executing: CpuId, probe: &Unknown) {
        let by = probe.field("by").unwrap_or("");
        if let Some(expected) = self.charging.remove(&executing) {
            let came = by.starts_with("update_curr");
            let agrees = expected.says.map(|asks| asks == came);
            self.count("slice", agrees, || format!("{}, request by {by}", expected.story));
        }
        if let Some((_, expected)) = self.ticking.remove(&executing) {
            let came = by.starts_with("task_tick_fair");
            let agrees = expected.says.map(|asks| asks == came);
            self.count("slice", agrees, || format!("{}, request by {by}", expected.story));
        }
        let preempts = by.starts_with("check_preempt") || by.starts_with("wakeup_preempt");
        if preempts && let Some((_, expected)) = self.preempting.remove(&executing) {
            self.count("preempt", expected.says, || format!("{}, request by {by}", expected.story));
        }
        const TIF_NEED_RESCHED_LAZY: i64 = 5;
        let rq = &mut self.sched.rqs[CpuId(field(probe, "cpu") as u16)];
        if field(probe, "tif") == TIF_NEED_RESCHED_LAZY && rq.curr != Curr::Idle {
            rq.need_resched.lazy = true;
        } else {
            rq.need_resched.full = true;
        }
    }

    /// The previous task is put back, or has left.
    fn put(&mut self, cpu: CpuId, pid: Pid, prio: i32, state: TaskState) {
        let runnable = state.is_runnable();
        self.chosen(cpu, !runnable);
        self.sched.cfs_rqs[cpu.index()].curr = None;
        if pid != Pid::IDLE && prio >= MAX_RT_PRIO {
            let task = self.task(pid);
            let queued = self.known[task.index()].queued;
            if runnable && !queued {
                // v6.1 has no probe where it is put back.
                self.enter(task, cpu);
            } else if !runnable {
                if queued {
                    self.se(task).sched_delayed = true;
                    self.left(task);
                } else if self.sched.task(task).se.on_rq {
                    self.se(task).on_rq = false;
                    self.left(task);
                }
                self.forget_buddy(task);
            }
        }
    }

    /// The next task begins to run.
    fn set(&mut self, cpu: CpuId, pid: Pid, prio: i32) {
        let rq = &mut self.sched.rqs[cpu];
        rq.need_resched = NeedResched::default();
        rq.curr = Curr::Idle;
        if pid != Pid::IDLE {
            let task = self.task(pid);
            self.set_class(task, prio);
            self.leave_line(task);
            self.sched.set_cpu(task, cpu);
            self.sched.rqs[cpu].curr = Curr::Task(task);
            if self.sched.task(task).policy.is_fair() {
                self.run(cpu, task);
            }
        }
        self.recount(cpu);
    }

    fn set_class(&mut self, task: TaskId, prio: i32) {
        let fair = prio >= MAX_RT_PRIO;
        self.sched.tasks[task.index()].policy = if fair { Policy::Normal } else { Policy::Fifo(50) };
    }

    fn migrate(&mut self, pid: Pid, to: CpuId) {
        let task = self.task(pid);
        if self.known[task.index()].queued {
            let from = self.sched.task(task).cpu;
            self.dequeue(task, false);
            self.note_lag_if_it_left(from);
        }
        self.sched.set_cpu(task, to);
        if !self.eevdf() {
            // The shadow does not know the floors of both queues.
            self.known[task.index()].vruntime = false;
            self.placing_cfs.remove(&task);
        }
    }

    fn woken(&mut self, pid: Pid, prio: i32, cpu: CpuId) {
        let task = self.task(pid);
        self.se(task).sched_delayed = false;
        let waits = self.curr(cpu) != Some(task) && !self.known[task.index()].queued;
        if prio >= MAX_RT_PRIO && waits {
            if self.eevdf() {
                // A probe that fires while another is running on the CPU is lost.
                self.known[task.index()].vruntime = false;
            }
            self.enter(task, cpu);
        }
    }

    /// A CPU was chosen for a task.
    pub(super) fn selected(&mut self, probe: &Unknown) {
        let task = self.task_of(probe);
        if !self.known[task.index()].queued {
            self.sched.set_cpu(task, CpuId(field_u64(probe, "ret") as u16));
        }
    }

    /// Newly idle balancing begins: the running task has left and the queue is empty.
    pub(super) fn nothing_left(&mut self, cpu: CpuId) {
        if let Some(task) = self.curr(cpu)
            && self.sched.task(task).se.on_rq
            && !self.known[task.index()].queued
        {
            self.sleep(cpu, task);
        }
    }

    /// The running task has left, before the switch.
    pub(super) fn sleep(&mut self, cpu: CpuId, task: TaskId) {
        self.se(task).on_rq = false;
        self.left(task);
        self.recount(cpu);
    }
}
