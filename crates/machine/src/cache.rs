//! Cache warmth: how much of its footprint a task finds in the caches where it runs next (equation E4).
//!
//! For the core's own cache and for the LLC a task has a warmth w, the share of its footprint in that cache.
//! Running for t: `w <- 1 - (1-w) exp(-t/tau_fill)`. While others run there for t with footprint f:
//! `w <- w exp(-t f / (size tau_evict))`. An idle state that empties the core's cache sets w to 0. When the
//! task is switched in it pays for the missing lines, `mlp` misses at a time:
//!
//! `stall = lines missing / mlp * latency of where they are now`.
//!
//! The running time of other tasks is kept as one clock per cache that only grows; a task remembers the clock
//! of the cache it left, so there is no state per pair of task and cache, and nothing is updated while a task
//! sleeps. A task remembers one core and one LLC: returning to an earlier one finds it cold.
//!
//! Left out: lines shared by tasks, associativity, prefetch, and misses of the
//! running task itself (they are part of its work).

use crate::cost::constants;
use crate::fixed::{ONE, decay};

constants! {
    /// Caches.
    CachePrices = "cache" {
        /// Size of the core's own cache, if the topology does not say.
        l2_bytes: Bytes = 1_048_576, 262_144..=2_097_152, "architecture manuals";
        /// Size of the last-level cache, if the topology does not say.
        llc_bytes: Bytes = 33_554_432, 8_388_608..=402_653_184, "architecture manuals";
        /// Number of misses in flight.
        mlp: Count = 6, 4..=8, "estimate";
        /// Latency of the last-level cache.
        llc_ns: Ns = 20, 10..=35, "estimate: 40 to 80 cycles";
        /// Latency of another LLC of the node, or of its memory.
        local_ns: Ns = 100, 70..=130, "published idle latencies: 81 to 110 ns";
        /// Latency of another node's memory.
        remote_ns: Ns = 160, 120..=220, "published idle latencies: 130 to 195 ns";
        /// Time in which a running task fills its share of the core's cache to 63 %.
        fill_ns: Ns = 100_000, 30_000..=300_000, "estimate";
        /// Time in which another task with a footprint of the core's cache evicts 63 % of it.
        evict_ns: Ns = 500_000, 100_000..=2_000_000, "the kernel calls a task cache hot for 500 us";
        /// How concentrated a program's accesses are: with a share x of its footprint in a cache, it misses exp(-x times this) of its accesses.
        reuse_permille: Permille = 2_000, 1_000..=3_000, "estimate: even with the whole footprint in a cache one access in seven misses; chosen with the published runs of mcf on clusters in view";
        /// The same as evict_ns for the LLC and a footprint of its size.
        llc_evict_ns: Ns = 20_000_000, 5_000_000..=100_000_000, "estimate";
    }
}

/// Bytes of a cache line.
const LINE: u64 = 64;

/// How much other tasks have pushed through a cache, in ns of running with a footprint of its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionClock(u64);

impl EvictionClock {
    /// A task with a footprint ran here for a while.
    #[inline]
    pub fn advance(&mut self, ran_ns: u64, footprint: u64, size: u64) {
        let pressed = footprint.min(size);
        if pressed > 0 {
            self.0 =
                self.0.wrapping_add((u128::from(ran_ns) * u128::from(pressed) / u128::from(size)) as u64);
        }
    }

    /// All of the cache was lost.
    pub fn flush(&mut self) {
        self.0 = self.0.wrapping_add(1 << 62);
    }

    fn since(self, earlier: EvictionClock) -> u64 {
        self.0.wrapping_sub(earlier.0)
    }
}

/// A task's data in a cache that it left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Left {
    /// Which cache; `None` before the task first ran.
    cache: Option<u32>,
    /// Share of its footprint there, of 65536.
    warmth: u64,
    /// The cache's clock when the task left.
    clock: EvictionClock,
}

impl Left {
    /// The warmth found now in `cache`.
    fn found(&self, cache: u32, clock: EvictionClock, evict_ns: u64) -> u64 {
        if self.cache == Some(cache) {
            (self.warmth * decay(clock.since(self.clock), evict_ns)) >> 16
        } else {
            0
        }
    }
}

/// Where a task's data is warm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warmth {
    core: Left,
    llc: Left,
    /// The node whose caches or memory hold the rest.
    node: u16,
}

/// A CPU's caches at this moment.
#[derive(Clone, Copy, Debug)]
pub struct Caches {
    /// Number of the core.
    pub core: u32,
    /// Its clock.
    pub core_clock: EvictionClock,
    /// Size of its own cache.
    pub l2_bytes: u64,
    /// Number of the LLC.
    pub llc: u32,
    /// Its clock.
    pub llc_clock: EvictionClock,
    /// Its size.
    pub llc_bytes: u64,
    /// The node.
    pub node: u16,
}

impl CachePrices {
    /// A task with this footprint is switched in: ns it loses to missing lines.
    ///
    /// From then on it is as warm there as was found; [`CachePrices::ran`] warms it up.
    pub fn arrive(&self, warmth: &mut Warmth, footprint: u64, at: &Caches) -> u64 {
        if footprint == 0 {
            return 0;
        }
        let core = warmth.core.found(at.core, at.core_clock, self.evict_ns.get());
        // Data that is warm in the core is also warm in the LLC around it.
        let llc = warmth.llc.found(at.llc, at.llc_clock, self.llc_evict_ns.get()).max(core);
        let in_l2 = footprint.min(at.l2_bytes) / LINE;
        let in_llc = footprint.min(at.llc_bytes) / LINE;
        let first_time = warmth.core.cache.is_none();
        let beyond_ns =
            if first_time || warmth.node == at.node { self.local_ns.get() } else { self.remote_ns.get() };
        // Of the lines that the core's cache misses, the LLC has its share; beyond the size of the core's
        // cache only LLC misses cost.
        let missing = in_l2 * (ONE - core) / ONE;
        let from_llc = missing * llc / ONE;
        let from_beyond = (missing + in_llc.saturating_sub(in_l2)) * (ONE - llc) / ONE;
        let stall = (from_llc * self.llc_ns.get() + from_beyond * beyond_ns) / self.mlp.get();
        warmth.core = Left { cache: Some(at.core), warmth: core, clock: at.core_clock };
        warmth.llc = Left { cache: Some(at.llc), warmth: llc, clock: at.llc_clock };
        warmth.node = at.node;
        stall
    }

    /// The task ran for `ns` where it last arrived and leaves it with these clocks.
    pub fn ran(&self, warmth: &mut Warmth, ns: u64, core_clock: EvictionClock, llc_clock: EvictionClock) {
        let cold = decay(ns, self.fill_ns.get());
        warmth.core.warmth = ONE - (((ONE - warmth.core.warmth) * cold) >> 16);
        warmth.llc.warmth = ONE - (((ONE - warmth.llc.warmth) * cold) >> 16);
        warmth.core.clock = core_clock;
        warmth.llc.clock = llc_clock;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: u64 = 1024;

    fn at(core: u32, llc: u32, node: u16) -> Caches {
        Caches {
            core,
            core_clock: EvictionClock::default(),
            l2_bytes: 512 * KB,
            llc,
            llc_clock: EvictionClock::default(),
            llc_bytes: 32 * KB * KB,
            node,
        }
    }

    /// A task of 256 KB that has run long on core 0 of LLC 0 on node 0.
    fn warm(prices: &CachePrices) -> Warmth {
        let mut warmth = Warmth::default();
        prices.arrive(&mut warmth, 256 * KB, &at(0, 0, 0));
        prices.ran(&mut warmth, 10_000_000, EvictionClock::default(), EvictionClock::default());
        warmth
    }

    #[test]
    fn the_stall_grows_with_the_distance_moved() {
        let prices = CachePrices::default();
        // 4096 lines, six at a time: 20, 100 or 160 ns each.
        for (place, stall) in
            [(at(0, 0, 0), 0), (at(1, 0, 0), 13_653), (at(9, 1, 0), 68_266), (at(70, 8, 1), 109_226)]
        {
            assert_eq!(prices.arrive(&mut warm(&prices), 256 * KB, &place), stall, "core {}", place.core);
        }
    }

    #[test]
    fn others_evict_what_the_core_holds_but_hardly_the_llc() {
        let prices = CachePrices::default();
        let mut place = at(0, 0, 0);
        // Another task fills the whole L2 for 500 us: exp(-1) of the lines are left.
        place.core_clock.advance(500_000, 512 * KB, 512 * KB);
        place.llc_clock.advance(500_000, 512 * KB, 32 * KB * KB);
        let stall = prices.arrive(&mut warm(&prices), 256 * KB, &place);
        // 4096 * (1 - 0.3679) = 2589 lines from the LLC, of which a few in a thousand are lost there.
        assert!((8_600..8_700).contains(&stall), "{stall}");
    }

    #[test]
    fn a_short_run_warms_a_part() {
        let prices = CachePrices::default();
        let mut warmth = Warmth::default();
        let place = at(3, 0, 0);
        let first = prices.arrive(&mut warmth, 256 * KB, &place);
        assert_eq!(first, 68_266, "nothing is warm at first");
        prices.ran(&mut warmth, 100_000, EvictionClock::default(), EvictionClock::default());
        // exp(-1) of 4096 lines, 1507, are missing; of these 63 % are in the LLC by now:
        // (952 * 20 + 555 * 100) / 6.
        let again = prices.arrive(&mut warmth, 256 * KB, &place);
        assert!((12_380..12_440).contains(&again), "{again}");
    }

    #[test]
    fn a_deep_idle_state_empties_the_core() {
        let prices = CachePrices::default();
        let mut place = at(0, 0, 0);
        place.core_clock.flush();
        assert_eq!(prices.arrive(&mut warm(&prices), 256 * KB, &place), 13_653, "all from the LLC");
    }

    #[test]
    fn no_footprint_costs_nothing() {
        assert_eq!(CachePrices::default().arrive(&mut Warmth::default(), 0, &at(0, 0, 0)), 0);
    }
}
