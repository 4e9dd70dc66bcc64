//! The policies that share their priorities.

use schedlab_sched::Policy;

/// Which of the policies of a priority a task has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyKind {
    /// The usual one: SCHED_OTHER, or SCHED_FIFO.
    #[default]
    Usual,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_RR.
    Rr,
}

impl PolicyKind {
    /// The policy with this name, such as `BATCH`.
    pub fn named(name: &str) -> PolicyKind {
        match name {
            "BATCH" => PolicyKind::Batch,
            "IDLE" => PolicyKind::Idle,
            "RR" => PolicyKind::Rr,
            _ => PolicyKind::Usual,
        }
    }

    /// The policy of this kind with a priority as traces print it, below 140 and not that of a stopper or a deadline
    /// task.
    pub fn policy(self, prio: i32) -> Policy {
        let real_time = (99 - prio).max(1) as u8;
        match self {
            PolicyKind::Rr if prio < 100 => Policy::Rr(real_time),
            _ if prio < 100 => Policy::Fifo(real_time),
            PolicyKind::Batch => Policy::Batch,
            PolicyKind::Idle => Policy::Idle,
            PolicyKind::Usual | PolicyKind::Rr => Policy::Normal,
        }
    }
}
