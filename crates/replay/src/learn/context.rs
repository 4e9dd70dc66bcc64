//! The context in which an event happened.

use schedlab_trace::{Event, Flags, Kind};

/// Whether a wake-up is not caused by a task: the task of its line was only interrupted. Soft interrupts that ksoftirqd
/// runs count as its work.
pub(super) fn is_interrupt(event: &Event) -> bool {
    let hard = event.flags.has(Flags::HARDIRQ) || event.flags.has(Flags::NMI);
    let in_ksoftirqd = event.comm.as_bytes().starts_with(b"ksoftirqd/");
    event.flags.in_interrupt() && (hard || !in_ksoftirqd)
}

/// Whether a soft interrupt runs outside ksoftirqd.
pub(super) fn is_softirq(event: &Event) -> bool {
    is_interrupt(event) && event.flags.has(Flags::SOFTIRQ) && !event.flags.has(Flags::HARDIRQ)
}

/// Whether an event, other than a switch, usually comes from a tick.
pub(super) fn is_of_tick(event: &Event) -> bool {
    match event.kind {
        Kind::SchedStatRuntime { .. } => event.flags.has(Flags::HARDIRQ),
        Kind::SchedMigrateTask { .. } | Kind::SchedWaking { .. } => is_softirq(event),
        _ => false,
    }
}
