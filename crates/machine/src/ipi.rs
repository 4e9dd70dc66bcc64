//! Notifying another CPU: the cost, and the delay until it reacts.
//!
//! An idle CPU that polls its flags (or sleeps in `mwait` on them) is woken by a write to memory; one that is
//! halted, or busy, needs an interrupt. The exit from its idle state is added in `idle_state.rs`.

use crate::cost::constants;

constants! {
    /// Prices of interrupts between CPUs.
    Ipi = "ipi" {
        /// Cost of sending an interrupt, for the sender.
        send_ns: Ns = 150, 50..=500, "estimate";
        /// Time from the write of a flag until an idle CPU that polls it continues.
        polling_ns: Ns = 500, 100..=1_000, "estimate";
        /// Time from sending an interrupt until a halted or busy CPU handles it.
        deliver_ns: Ns = 1_000, 500..=3_000, "estimate";
        /// Cost of handling an interrupt, for the receiver.
        handle_ns: Ns = 500, 200..=1_500, "estimate";
    }
}
