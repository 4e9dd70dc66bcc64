//! Run times as the kernel charged them, where the trace has them.
//!
//! The time between two events is a little more than what a task was charged: interrupts
//! take their part, and a clock is read before its event is written. `sched_stat_runtime`
//! says what was charged, to the nanosecond, so virtual times need no guess.

use schedlab_sched::{Curr, calc_delta_fair};
use schedlab_units::{TaskId, Time};

use crate::shadow::Shadow;

/// Charges so far, by two clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Charged {
    /// Run time of the task here when the kernel said last what it charged.
    at: Option<u64>,
}

impl Charged {
    /// Whether the kernel says what it charges.
    pub fn is_told(self) -> bool {
        self.at.is_some()
    }
}

/// The kernel charged a task so much since it said so last.
pub fn charge(shadow: &mut Shadow, task: TaskId, runtime: u64, now: Time) {
    let cpu = shadow.sched.task(task).cpu;
    if shadow.sched.rqs[cpu].curr != Curr::Task(task) || !shadow.sched.task(task).policy.is_fair() {
        return;
    }
    shadow.sched.update_rq_clock(cpu, now);
    let ran = shadow.sched.task(task).se.sum_exec_runtime;
    let root = shadow.sched.root_cfs_id(cpu);
    match shadow.known(task).charged.at {
        None => shadow.sched.update_curr(root),
        Some(at) => {
            let clock = shadow.sched.rqs[cpu].clock_task;
            let rest = runtime as i64 - ran.wrapping_sub(at) as i64;
            let entity = &mut shadow.sched.task_mut(task).se;
            entity.exec_start = clock - (rest.max(0) as u64).min(clock);
            if rest >= 0 {
                shadow.sched.update_curr(root);
            } else {
                give_back(shadow, task, rest.unsigned_abs());
            }
        }
    }
    let ran = shadow.sched.task(task).se.sum_exec_runtime;
    shadow.known_mut(task).charged.at = Some(ran);
}

/// A task was charged too much.
fn give_back(shadow: &mut Shadow, task: TaskId, time: u64) {
    let entity = &mut shadow.sched.task_mut(task).se;
    entity.sum_exec_runtime -= time.min(entity.sum_exec_runtime);
    // Some of it may have been charged before the task was picked.
    entity.prev_sum_exec_runtime = entity.prev_sum_exec_runtime.min(entity.sum_exec_runtime);
    let vruntime = entity.vruntime.wrapping_sub(calc_delta_fair(time, &entity.load));
    let deadline = entity.deadline;
    shadow.sched.set_virtual_time(task, vruntime, deadline);
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_sched::Kernel;
    use schedlab_topology::{CpuId, Topology};
    use schedlab_trace::Comm;
    use schedlab_units::Pid;

    #[test]
    fn a_task_has_run_as_long_as_the_kernel_says() {
        let topology = Topology::regular("1x1x2").unwrap();
        let mut shadow = Shadow::new(&topology, &Kernel::parse("v6.12").unwrap(), Vec::new());
        shadow.begin(Time(1_000_000_000));
        let comm = Comm::from("a");
        shadow.sync_curr(CpuId(0), Pid(7), &comm, Time(1_000_000_000));
        let task = shadow.find(Pid(7)).unwrap();
        charge(&mut shadow, task, 1, Time(1_001_000_000));
        let ran = |shadow: &Shadow| shadow.sched.task(task).se.sum_exec_runtime;
        let before = ran(&shadow);
        charge(&mut shadow, task, 990_000, Time(1_002_000_000));
        assert_eq!(ran(&shadow) - before, 990_000, "10 us went to an interrupt");
        shadow.sched.update_rq_clock(CpuId(0), Time(1_003_000_000));
        shadow.sched.update_curr(shadow.sched.root_cfs_id(CpuId(0)));
        charge(&mut shadow, task, 980_000, Time(1_003_000_000));
        assert_eq!(ran(&shadow) - before, 1_970_000, "what was charged here meanwhile is given back");
    }
}
