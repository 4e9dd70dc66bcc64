//! Effects of a decision that others must act on or pay for.
//!
//! The scheduler reports what it touched; the machine prices it. A driver drains [`crate::Sched::effects`]
//! after each call.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::{Access, Shared, TgId};

/// The cause of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MigrationCause {
    /// Wake-up placement.
    Wakeup,
    /// Fork placement.
    Fork,
    /// exec.
    Exec,
    /// Periodic or idle balancing.
    Periodic,
    /// Newly idle balancing.
    NewlyIdle,
    /// Balancing on behalf of idle CPUs.
    Nohz,
    /// Active balancing by the stopper.
    Active,
    /// Affinity or hotplug.
    Affinity,
    /// A CPU pushed an RT or deadline task that waited on it.
    Push,
    /// A CPU pulled one.
    Pull,
}

/// One thing that happened, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// `curr` of a CPU must reschedule; the bits are in [`crate::Rq::need_resched`].
    Resched {
        /// Whose current task.
        cpu: CpuId,
        /// The lazy bit only.
        lazy: bool,
    },
    /// A wake-up was appended to the CPU's empty wake list: interrupt it (or write
    /// its flag, if it polls).
    WakeList {
        /// Target.
        cpu: CpuId,
    },
    /// A task changed CPU.
    Migrated {
        /// The task.
        task: TaskId,
        /// From.
        from: CpuId,
        /// To.
        to: CpuId,
        /// Why.
        cause: MigrationCause,
    },
    /// The stopper of `cpu` must move a task to `to` (active balancing).
    ActiveBalance {
        /// The CPU that wakes it.
        by: CpuId,
        /// Source, where the stopper runs.
        cpu: CpuId,
        /// Destination.
        to: CpuId,
    },
    /// An idle CPU must balance for the idle ones.
    NohzKick {
        /// The CPU that does it.
        cpu: CpuId,
    },
    /// A CPU must be interrupted to push RT tasks ([`crate::Sched::rto_push_irq_work`]).
    RtPush {
        /// The CPU that pushes.
        cpu: CpuId,
    },
    /// Something shared was touched.
    Touch {
        /// The CPU that touched it.
        by: CpuId,
        /// What.
        what: Shared,
        /// How.
        how: Access,
    },
    /// Balancing examined this many CPUs and moved this many tasks.
    Balanced {
        /// The CPU that balanced.
        cpu: CpuId,
        /// CPUs examined.
        examined: u32,
        /// Tasks moved.
        moved: u32,
    },
    /// A group was throttled on a CPU, or unthrottled.
    Throttled {
        /// Group.
        tg: TgId,
        /// Where.
        cpu: CpuId,
        /// Begins (true) or ends.
        on: bool,
    },
    /// A CPU must be interrupted to unthrottle queues ([`crate::Sched::cfsb_csd_unthrottle`]).
    Unthrottle {
        /// The CPU that unthrottles them.
        cpu: CpuId,
    },
    /// The group's period timer must be started: first expiry at this clock.
    StartPeriodTimer {
        /// Group.
        tg: TgId,
        /// When it expires, ns.
        at: u64,
    },
    /// The group's slack timer must be started: it hands out time that was returned.
    StartSlackTimer {
        /// Group.
        tg: TgId,
        /// When it expires, ns.
        at: u64,
    },
    /// The timer of RT throttling, or from v6.12 on of a fair server, must be started.
    StartRtPeriodTimer {
        /// When it expires, ns.
        at: u64,
    },
    /// A deadline task is out of budget: it is replenished then.
    StartDlTimer {
        /// Task.
        task: TaskId,
        /// It is replenished in so many ns, whatever the clock of its CPU shows.
        after: u64,
    },
    /// A deadline task sleeps or has left its class: at this time its bandwidth is released
    /// ([`crate::Sched::dl_inactive_timer`]).
    StartDlInactiveTimer {
        /// Task.
        task: TaskId,
        /// It expires in so many ns, whatever the clock of its CPU shows.
        after: u64,
    },
}
