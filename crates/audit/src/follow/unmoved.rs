//! Moves of tasks that the shadow decides about and leaves to the recording.

use schedlab_sched::{BalanceDecision, Class, IdleType, Mover, Sched, SdId};
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

/// The recording shows which tasks move, and to which CPUs.
#[derive(Debug)]
pub(crate) struct Unmoved;

impl Mover for Unmoved {
    fn balance(&self, sched: &mut Sched, cpu: CpuId, sd: SdId, idle: IdleType, now: Time) -> BalanceDecision {
        let decision = sched.decide_balance(cpu, sd, idle, now);
        sched.apply_balance_marks(&decision, now);
        decision
    }

    fn push(&self, _: &mut Sched, _: CpuId, _: CpuId, _: Class, _: Time) -> bool {
        false
    }

    fn pull(&self, _: &mut Sched, _: CpuId, _: Class, _: Time) {}

    /// A recording contains masks by itself: kernel threads are bound again when their CPU is back.
    fn widen_affinity(&self, _: &mut Sched, _: TaskId, _: CpuId, _: Time) {}
}
