//! Idle states: how deep a CPU sleeps and how long it takes to wake up (equation E5).
//!
//! The deepest state whose residency is at most the predicted idle time is entered; a wake-up pays its exit latency, or
//! the share of it that the machine actually needs. The prediction is a moving average of idle times, half old and half
//! new, bounded by the next timer.
//!
//! Left out: the correction factors and the search for repeating intervals of the
//! kernel's menu governor, and states that a whole package enters together.

use crate::cost::constants;

constants! {
    /// Numbers of the choice of idle states.
    IdlePrices = "idle" {
        /// How long the idle loop polls before it enters the first state.
        poll_ns: Ns = 0, 0..=100_000, "x86 drivers poll only when no state fits; on POWER snooze polls up to the residency of CEDE";
        /// Share of the exit latency in the driver's table, which is the worst case, that a wake-up takes.
        exit_permille: Permille = 1_000, 100..=1_000, "driver tables; measured exits are mostly much shorter (Schoene et al., Wake-up latencies for processor idle states on current x86 processors, 2014)";
        /// Whether idle CPUs poll their flags in an idle state (`mwait`), 1 or 0.
        mwait: Count = 1, 0..=1, "x86 bare metal: intel_idle and acpi_idle use mwait";
        /// Whether a driver and a governor choose among idle states, 1 or 0. Without them a CPU stops its tick whenever it goes idle.
        governor: Count = 1, 0..=1, "bare metal has a driver; cpuidle_idle_call(), kernel/sched/idle.c, v6.12, for the path without them";
    }
}

/// One idle state, as in a driver's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// `C1E`.
    pub name: String,
    /// Exit latency, ns.
    pub exit_ns: u64,
    /// Target residency, ns.
    pub residency_ns: u64,
    /// Whether the core's own caches are emptied.
    pub flushes: bool,
}

/// The idle states of a machine, shallowest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdleStates {
    /// Invariant: residencies do not fall.
    states: Vec<IdleState>,
    /// Its prices.
    pub prices: IdlePrices,
}

impl IdleStates {
    /// States from a driver's table.
    ///
    /// # Errors
    /// The state whose residency is below that of the one before it.
    pub fn new(states: Vec<IdleState>, prices: IdlePrices) -> Result<IdleStates, String> {
        match states.windows(2).find(|two| two[1].residency_ns < two[0].residency_ns) {
            Some(two) => Err(format!(
                "idle state {} has a shorter residency than {} before it; list the shallowest first",
                two[1].name, two[0].name
            )),
            None => Ok(IdleStates { states, prices }),
        }
    }

    /// The states, shallowest first.
    pub fn states(&self) -> &[IdleState] {
        &self.states
    }

    /// The state entered when `predicted` ns of idle time are expected; `None` is polling.
    pub fn choose(&self, predicted: u64) -> Option<usize> {
        self.states.iter().rposition(|state| state.residency_ns <= predicted)
    }

    /// Exit latency of a state.
    #[inline]
    pub fn exit_ns(&self, state: Option<usize>) -> u64 {
        state.map_or(0, |index| self.states[index].exit_ns * self.prices.exit_permille.get() / 1000)
    }

    /// Whether a governor predicts how long a CPU will be idle.
    #[inline]
    pub fn is_governed(&self) -> bool {
        self.prices.governor.get() != 0
    }

    /// Whether a CPU in a state watches its flags, so that a write to memory wakes it.
    #[inline]
    pub fn watches(&self, state: Option<usize>) -> bool {
        state.is_none() || self.prices.mwait.get() != 0
    }
}

/// What a CPU has learned about its idle times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdlePredictor {
    average_ns: u64,
}

impl IdlePredictor {
    /// Longer times than this say nothing more.
    const CAP_NS: u64 = 1_000_000_000;

    /// A CPU that has been idle for long.
    pub fn new() -> IdlePredictor {
        IdlePredictor { average_ns: IdlePredictor::CAP_NS }
    }

    /// The expected idle time when the next timer is `next_timer` ns away.
    #[inline]
    pub fn predict(&self, next_timer: u64) -> u64 {
        self.average_ns.min(next_timer)
    }

    /// Records an idle time that has ended.
    #[inline]
    pub fn note(&mut self, idle_ns: u64) {
        self.average_ns = (self.average_ns + idle_ns.min(IdlePredictor::CAP_NS)) / 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn haswell() -> IdleStates {
        let table = [("C1", 2, 2), ("C1E", 10, 20), ("C3", 33, 100), ("C6", 133, 400)];
        let states = table.map(|(name, exit, residency)| IdleState {
            name: name.into(),
            exit_ns: exit * 1_000,
            residency_ns: residency * 1_000,
            flushes: name == "C6",
        });
        IdleStates::new(states.into(), IdlePrices::default()).unwrap()
    }

    #[test]
    fn the_deepest_state_that_pays_off_is_entered() {
        let idle = haswell();
        for (predicted_us, name, exit_us) in
            [(1, "poll", 0), (2, "C1", 2), (99, "C1E", 10), (100, "C3", 33), (10_000, "C6", 133)]
        {
            let state = idle.choose(predicted_us * 1_000);
            assert_eq!(state.map_or("poll", |s| &idle.states()[s].name), name);
            assert_eq!(idle.exit_ns(state), exit_us * 1_000);
        }
    }

    #[test]
    fn the_prediction_is_half_old_and_half_new_and_ends_at_a_timer() {
        let mut predictor = IdlePredictor::new();
        assert_eq!(predictor.predict(500), 500);
        predictor.note(0);
        predictor.note(0);
        assert_eq!(predictor.predict(u64::MAX), 250_000_000);
        predictor.note(50_000_000);
        assert_eq!(predictor.predict(u64::MAX), 150_000_000);
    }

    #[test]
    fn a_machine_may_come_back_sooner_than_its_table_says() {
        let mut idle = haswell();
        idle.prices.exit_permille.set(200);
        assert_eq!(idle.exit_ns(Some(3)), 26_600);
        assert_eq!(idle.choose(399_999), Some(2), "the choice goes by the table");
    }

    #[test]
    fn states_in_the_wrong_order_are_refused() {
        let mut states = haswell().states.clone();
        states.swap(1, 2);
        let error = IdleStates::new(states, IdlePrices::default()).unwrap_err();
        assert_eq!(
            error,
            "idle state C1E has a shorter residency than C3 before it; list the shallowest first"
        );
    }
}
