//! In whose time an event happened.

use schedlab_trace::{Event, Flags, Kind};

/// Whether a wake-up has no task as its cause: its line's task is only what an interrupt hit. The
/// soft interrupts that ksoftirqd runs are its work.
pub(super) fn is_interrupt(event: &Event) -> bool {
    let hard = event.flags.has(Flags::HARDIRQ) || event.flags.has(Flags::NMI);
    let in_ksoftirqd = event.comm.as_bytes().starts_with(b"ksoftirqd/");
    event.flags.in_interrupt() && (hard || !in_ksoftirqd)
}

/// Whether a soft interrupt is at work that no task runs.
pub(super) fn is_softirq(event: &Event) -> bool {
    is_interrupt(event) && event.flags.has(Flags::SOFTIRQ) && !event.flags.has(Flags::HARDIRQ)
}

/// Whether something happens that mostly ticks do, of all but switches.
pub(super) fn is_of_tick(event: &Event) -> bool {
    match event.kind {
        Kind::SchedStatRuntime { .. } => event.flags.has(Flags::HARDIRQ),
        Kind::SchedMigrateTask { .. } | Kind::SchedWaking { .. } => is_softirq(event),
        _ => false,
    }
}
