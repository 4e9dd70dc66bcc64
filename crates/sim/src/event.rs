//! What can happen next: a closed set.

use schedlab_sched::TgId;
use schedlab_topology::CpuId;
use schedlab_units::TaskId;
use schedlab_workload::{DeviceId, SourceId, SpecId};

/// Something that happens at a time. A `number` that no longer agrees with its
/// owner's says that the event was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The execution of a CPU reaches a point at which something must be done.
    Cpu { cpu: CpuId, number: u32 },
    /// The turn of a CPU is over, where they take turns.
    Turn { number: u32 },
    /// The periodic tick of a CPU.
    Tick { cpu: CpuId },
    /// The timer that ends a slice.
    HrTick { cpu: CpuId, number: u32 },
    /// Another CPU's interrupt, or a write to the flags that an idle CPU watches, is noticed.
    Notify { cpu: CpuId },
    /// An idle CPU stops polling.
    Deeper { cpu: CpuId, number: u32 },
    /// A sleep is over.
    Timer { task: TaskId, number: u32 },
    /// A task without a parent begins.
    Start { spec: SpecId },
    /// A group's quota is renewed.
    Period { tg: TgId, cpu: CpuId },
    /// Quota that CPUs returned is handed out.
    Slack { tg: TgId, cpu: CpuId },
    /// The period of RT throttling is over.
    RtPeriod { cpu: CpuId },
    /// A deadline task gets a new budget.
    Replenish { task: TaskId },
    /// The bandwidth of a deadline task that sleeps is no longer in use.
    DlInactive { task: TaskId },
    /// A source interrupts its CPU.
    Irq { source: SourceId },
    /// A change from outside.
    Change { number: u32 },
    /// The second half of what is measured begins, or is over.
    Half { over: bool },
    /// A pass of balancing is known to come at the next tick.
    Pass { number: u32 },
    /// A pass of this CPU has found that no CPU has two tasks.
    NoOverload { cpu: CpuId },
    /// A device has completed a request.
    Device { device: DeviceId, slot: u32 },
    /// A contended line has reached the CPUs it was sent to.
    Line { line: u32 },
    /// A post that is owed at a semaphore can be paid.
    Pay { sem: schedlab_workload::SemId },
    /// Its interrupt reaches a CPU that slept.
    DeviceIrq { cpu: CpuId, task: TaskId },
}
