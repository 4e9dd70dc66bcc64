//! Whether a wake-up requests a reschedule.

use schedlab_topology::CpuId;
use schedlab_trace::Unknown;
use schedlab_units::{Pid, TaskId};

use super::{Expected, Shadow, field, root};

/// WF_EXEC, WF_FORK and WF_TTWU: flags without any of them are a migration's.
const WF_WAKEUPS: u32 = 0xe;

const WF_FORK: u32 = 0x4;

/// A wake-up that requests preemption.
pub struct Asking {
    task: TaskId,
    pub(super) cpu: CpuId,
    flags: u32,
    story: String,
}

impl Shadow<'_> {
    pub(super) fn asks(&mut self, executing: CpuId, probe: &Unknown) {
        let cpu = CpuId(field(probe, "cpu") as u16);
        let curr_pid = Pid(field(probe, "curr") as i32);
        let flags = field(probe, "fl") as u32;
        if curr_pid == Pid::IDLE {
            // v7.2 gets here for the second wake-up of an idle CPU, without effect.
            return;
        }
        let (task, curr) = (self.task_of(probe), self.task(curr_pid));
        let story = format!("task {} on cpu {cpu} nr {}", task.0, field(probe, "nr"));
        if task == curr || !self.sched.task(task).policy.is_fair() {
            // Woken before it had left, so it continues to run; or of a higher class.
            let says = Ok(self.sched.check_preempt(cpu, task, flags).preempt);
            self.preempting.insert(executing, (cpu, Expected { says, story }));
            return;
        }
        if !self.eevdf() {
            self.shown_cfs(task, probe);
            self.shown_forked(task, probe, flags & WF_FORK != 0);
            if !self.known[task.index()].queued {
                self.take_over(task, probe, "");
                self.enter(task, cpu);
            }
        }
        let runs = self.curr(cpu) == Some(curr);
        if runs && self.sched.task(curr).policy.is_fair() {
            self.meet(curr, probe, "c");
            self.recount(cpu);
        }
        let complete = if !runs || !self.known[task.index()].queued || self.sched.task(task).cpu != cpu {
            Err("the queue is not the kernel's")
        } else {
            self.meet(task, probe, "");
            self.is_kernels(cpu, probe)
        };
        if flags & WF_WAKEUPS != 0 {
            self.se(task).sched_delayed = false;
        }
        match complete {
            Ok(()) => {
                self.asking.insert(executing, Asking { task, cpu, flags, story });
            }
            Err(why) => {
                self.preempting.insert(executing, (cpu, Expected { says: Err(why), story }));
            }
        }
    }

    /// Decides, now that the running task is charged if it had to be.
    pub(super) fn decide(&mut self, executing: CpuId) {
        let Some(asking) = self.asking.remove(&executing) else { return };
        let Asking { task, cpu, flags, .. } = asking;
        let decision = self.sched.check_preempt(cpu, task, flags);
        if decision.then.dequeue.is_some() {
            self.waiting.insert(executing, asking);
            return;
        }
        let story = format!("{}: {}", asking.story, decision.reason.name());
        self.preempting.insert(executing, (cpu, Expected { says: Ok(decision.preempt), story }));
        let queue = &mut self.sched.cfs_rqs[cpu.index()];
        queue.next = decision.then.next_buddy.or(queue.next);
        queue.last = decision.then.last_buddy.or(queue.last);
        if let Some(lower) = decision.then.lower {
            let shortest = self.sched.cfs_rq_min_slice(root(cpu));
            let se = self.se(TaskId(lower.0));
            se.vprot = se.vprot.min(se.vruntime.wrapping_add(shortest));
        }
    }

    /// The CPU about which an executing CPU is deciding.
    pub(super) fn decided_cpu(&self, executing: CpuId) -> Option<CpuId> {
        let preempting = self.preempting.get(&executing).map(|&(cpu, _)| cpu);
        preempting.or_else(|| self.waiting.get(&executing).map(|asking| asking.cpu))
    }

    /// v7.2: the sleeper in the way has left.
    pub(super) fn ask_again(&mut self, executing: CpuId) {
        if let Some(waiting) = self.waiting.remove(&executing) {
            self.asking.insert(executing, waiting);
        }
    }
}
