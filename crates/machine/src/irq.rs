//! How long soft interrupts may run before a thread takes them over (equation E7).
//!
//! Hard interrupts preempt whatever runs and are never deferred. Soft interrupts run after them, up to a
//! time, a number of packets and a number of restarts; the rest is done by the CPU's `ksoftirqd`, an ordinary
//! fair task. The time that interrupts take from a CPU lowers the capacity left to its tasks; averaging it is
//! left to the scheduler.
//!
//! Kernel: handle_softirqs() (`__do_softirq()` before 6.10), kernel/softirq.c;
//! net_rx_action(), net/core/dev.c.

use crate::cost::constants;

constants! {
    /// Limits of soft interrupts.
    Softirq = "softirq" {
        /// Time after which a burst is passed to `ksoftirqd`.
        max_time_ns: Ns = 2_000_000, 2_000_000..=2_000_000, "MAX_SOFTIRQ_TIME, kernel/softirq.c";
        /// Rounds after which a burst is passed to `ksoftirqd`.
        max_restart: Count = 10, 10..=10, "MAX_SOFTIRQ_RESTART, kernel/softirq.c";
        /// Packets of one receive round.
        net_budget: Count = 300, 300..=300, "netdev_budget, net/core/dev.c";
        /// Entering and leaving the soft interrupt.
        entry_ns: Ns = 200, 80..=500, "estimate";
    }
}

/// One burst of soft interrupts, with what it has used of its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    time_ns: u64,
    rounds: u64,
}

impl Burst {
    /// Serves `waiting` packets of `each` ns, and says how many were served and how long that took. The rest
    /// is left to `ksoftirqd` once [`Burst::is_over`].
    pub fn serve(&mut self, limits: &Softirq, waiting: u64, each: u64) -> (u64, u64) {
        let mut served = 0;
        let mut taken = 0;
        while served < waiting && !self.is_over(limits) {
            let round = (waiting - served).min(limits.net_budget.get());
            self.rounds += 1;
            self.time_ns += round * each;
            served += round;
            taken += round * each;
        }
        (served, taken)
    }

    /// Whether the limits are reached.
    pub fn is_over(&self, limits: &Softirq) -> bool {
        self.time_ns >= limits.max_time_ns.get() || self.rounds >= limits.max_restart.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_ends_after_two_milliseconds_or_ten_rounds() {
        let limits = Softirq::default();
        // 300 packets of 2 us are 600 us a round: the fourth round passes 2 ms.
        let mut slow = Burst::default();
        assert_eq!(slow.serve(&limits, 10_000, 2_000), (1_200, 2_400_000));
        assert!(slow.is_over(&limits));
        // Packets of 100 ns: ten rounds come first.
        let mut fast = Burst::default();
        assert_eq!(fast.serve(&limits, 10_000, 100), (3_000, 300_000));
        assert!(fast.is_over(&limits));
        let mut few = Burst::default();
        assert_eq!(few.serve(&limits, 7, 100), (7, 700));
        assert!(!few.is_over(&limits));
    }
}
