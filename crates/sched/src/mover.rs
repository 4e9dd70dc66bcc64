//! Carrying out the moves of tasks that the scheduler decides on its own.

use core::fmt::Debug;

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::{BalanceDecision, Class, IdleType, Sched, SdId};

/// Carries out the moves that no caller requests: balancing, pushing, pulling, and leaving a CPU that may not be used.
/// By default, each method does what the kernel does. A driver that learns the moves from elsewhere, such as one that
/// follows a recording, has its own mover.
pub trait Mover: Debug + Sync {
    /// Decides a balance pass and carries it out.
    fn balance(&self, sched: &mut Sched, cpu: CpuId, sd: SdId, idle: IdleType, now: Time) -> BalanceDecision {
        sched.decide_and_balance(cpu, sd, idle, now)
    }

    /// Pushes one waiting task of a class, and returns whether one moved.
    fn push(&self, sched: &mut Sched, by: CpuId, cpu: CpuId, class: Class, now: Time) -> bool {
        sched.decide_and_push(by, cpu, class, now)
    }

    /// Pulls waiting tasks of a class.
    fn pull(&self, sched: &mut Sched, to: CpuId, class: Class, now: Time) {
        sched.decide_and_pull(to, class, now);
    }

    /// Lets a task use the CPU that it falls back to.
    fn widen_affinity(&self, sched: &mut Sched, task: TaskId, to: CpuId, now: Time) {
        sched.widen_affinity(task, to, now);
    }
}

/// Moves tasks as the kernel does.
#[derive(Clone, Copy, Debug)]
pub struct KernelMover;

impl Mover for KernelMover {}
