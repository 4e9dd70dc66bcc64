//! Per-entity load tracking: the arithmetic, to the last bit.
//!
//! Time is cut into periods of 1024 units of 1024 ns. A contribution n periods ago counts y^n, with y^32 =
//! 1/2, so a sum of contributions is a geometric series that never exceeds [`LOAD_AVG_MAX`], and an average
//! is the sum divided by the largest possible sum at this point of the current period.
//!
//! ```text
//!   last update                        now
//!        v                              v
//!  |-----+====|==========|==========|===+------|
//!          d1           d2            d3
//! ```
//!
//! d1 and d3 are parts of a period, d2 whole periods; each is decayed to now.
//!
//! Kernel: decay_load(), accumulate_sum(), ___update_load_sum(), ___update_load_avg(), kernel/sched/pelt.c, v6.12.

use crate::SchedAvg;

/// The largest sum of a quantity of 1.
pub const LOAD_AVG_MAX: u64 = 47742;
/// Least divider of a sum: the largest sum just after a period boundary.
pub(crate) const PELT_MIN_DIVIDER: u64 = LOAD_AVG_MAX - 1024;
/// Periods after which a sum counts as zero.
const DECAYED_AFTER: u64 = 32 * 63;

/// y^n in 32 bits after the point.
const RUNNABLE_AVG_YN_INV: [u32; 32] = [
    0xffffffff, 0xfa83b2da, 0xf5257d14, 0xefe4b99a, 0xeac0c6e6, 0xe5b906e6, 0xe0ccdeeb, 0xdbfbb796,
    0xd744fcc9, 0xd2a81d91, 0xce248c14, 0xc9b9bd85, 0xc5672a10, 0xc12c4cc9, 0xbd08a39e, 0xb8fbaf46,
    0xb504f333, 0xb123f581, 0xad583ee9, 0xa9a15ab4, 0xa5fed6a9, 0xa2704302, 0x9ef5325f, 0x9b8d39b9,
    0x9837f050, 0x94f4efa8, 0x91c3d373, 0x8ea4398a, 0x8b95c1e3, 0x88980e80, 0x85aac367, 0x82cd8698,
];

/// `sum` after `periods` periods in which nothing was added.
///
/// Kernel: decay_load(), kernel/sched/pelt.c, v6.12.
#[inline]
pub fn decay_load(sum: u64, periods: u64) -> u64 {
    Decay::over(periods).of(sum)
}

/// The decay of sums over this many periods without a contribution: [`decay_load`] of several.
#[derive(Clone, Copy)]
struct Decay {
    halvings: u64,
    /// y^n for the rest, in 32 bits after the point; 0 if nothing is left.
    inverse: u32,
}

impl Decay {
    #[inline]
    fn over(periods: u64) -> Decay {
        if periods > DECAYED_AFTER {
            return Decay { halvings: 0, inverse: 0 };
        }
        Decay { halvings: periods / 32, inverse: RUNNABLE_AVG_YN_INV[(periods % 32) as usize] }
    }

    #[inline]
    fn of(self, sum: u64) -> u64 {
        ((u128::from(sum >> self.halvings) * u128::from(self.inverse)) >> 32) as u64
    }
}

/// `value` scaled by a capacity or frequency of 1024.
///
/// Kernel: cap_scale(), kernel/sched/sched.h, v6.12.
#[inline]
pub(crate) fn cap_scale(value: u64, scale: u64) -> u64 {
    (value * scale) >> 10
}

/// The contribution of a quantity of 1 over d1, whole periods and d3, decayed to now.
///
/// Kernel: __accumulate_pelt_segments(), kernel/sched/pelt.c, v6.12.
#[inline]
fn accumulate_segments(decay: Decay, d1: u64, d3: u64) -> u64 {
    decay.of(d1) + (LOAD_AVG_MAX - decay.of(LOAD_AVG_MAX) - 1024) + d3
}

/// The time since the last update.
enum Step {
    /// No unit of time has passed.
    Nothing,
    /// `contrib` for a quantity of 1, after decay if whole periods passed.
    Over { contrib: u64, decay: Option<Decay> },
}

impl SchedAvg {
    /// Largest value of a sum at this point of the period.
    ///
    /// Kernel: get_pelt_divider(), kernel/sched/pelt.h, v6.12.
    #[inline]
    pub(crate) fn divider(&self) -> u64 {
        PELT_MIN_DIVIDER + u64::from(self.period_contrib)
    }

    /// Whether nothing is left to decay.
    ///
    /// Kernel: load_avg_is_decayed(), kernel/sched/fair.c, v6.12.
    pub(crate) fn is_decayed(&self) -> bool {
        self.load_sum == 0 && self.util_sum == 0 && self.runnable_sum == 0
    }

    #[inline]
    fn advance(&mut self, now: u64) -> Step {
        let delta = now.wrapping_sub(self.last_update_time);
        if (delta as i64) < 0 {
            self.last_update_time = now;
            return Step::Nothing;
        }
        let delta = delta >> 10;
        if delta == 0 {
            return Step::Nothing;
        }
        self.last_update_time += delta << 10;
        let old = u64::from(self.period_contrib);
        let total = delta + old;
        let periods = total / 1024;
        if periods == 0 {
            self.period_contrib = total as u32;
            return Step::Over { contrib: delta, decay: None };
        }
        self.period_contrib = (total % 1024) as u32;
        let decay = Decay::over(periods);
        Step::Over { contrib: accumulate_segments(decay, 1024 - old, total % 1024), decay: Some(decay) }
    }

    /// Decays the sums to `now` and adds what happened since. Returns true if a period boundary was crossed, so that
    /// the averages must be recomputed.
    ///
    /// Kernel: ___update_load_sum(), kernel/sched/pelt.c, v6.12.
    #[inline]
    pub(crate) fn update_sum(&mut self, now: u64, load: u64, runnable: u64, running: bool) -> bool {
        let Step::Over { contrib, decay } = self.advance(now) else { return false };
        if let Some(decay) = decay {
            self.load_sum = decay.of(self.load_sum);
            self.runnable_sum = decay.of(self.runnable_sum);
            self.util_sum = decay.of(self.util_sum);
        }
        // Without load nothing runs or waits, whatever the callers pass.
        if load != 0 {
            self.load_sum += load * contrib;
            self.runnable_sum += (runnable * contrib) << 10;
            if running {
                self.util_sum += contrib << 10;
            }
        }
        decay.is_some()
    }

    /// Computes the averages from the sums.
    ///
    /// Kernel: ___update_load_avg(), kernel/sched/pelt.c, v6.12.
    #[inline]
    pub(crate) fn update_avg(&mut self, weight: u64) {
        let divider = self.divider();
        self.load_avg = weight * self.load_sum / divider;
        if self.runnable_sum | self.runnable_avg != 0 {
            self.runnable_avg = self.runnable_sum / divider;
        }
        self.util_avg = self.util_sum / divider;
    }

    /// Sums and averages of a signal that is on or off and mostly zero. True if a period boundary was
    /// crossed.
    ///
    /// Kernel: update_rt_rq_load_avg(), update_dl_rq_load_avg(), kernel/sched/pelt.c, v6.12.
    pub(crate) fn update_running(&mut self, now: u64, running: bool) -> bool {
        if !running && self.is_decayed() {
            return matches!(self.advance(now), Step::Over { decay: Some(_), .. });
        }
        let crossed = self.update_sum(now, running.into(), running.into(), running);
        if crossed {
            self.update_avg(1);
        }
        crossed
    }

    /// The form of v4.13: the weight is part of the load sum, frequency and capacity scale each contribution,
    /// and a run queue keeps a second sum of queued entities. Sums and averages in one step; true if a period
    /// boundary was crossed.
    ///
    /// Kernel: ___update_load_avg(), accumulate_sum(), kernel/sched/fair.c, v4.13.
    #[inline]
    pub(crate) fn update_weighted(&mut self, now: u64, weight: u64, running: bool, scale: Scale) -> bool {
        let Step::Over { contrib, decay } = self.advance(now) else { return false };
        if let Some(decay) = decay {
            self.load_sum = decay.of(self.load_sum);
            self.runnable_load_sum = decay.of(self.runnable_load_sum);
            self.util_sum = decay.of(self.util_sum);
        }
        let contrib = cap_scale(contrib, scale.freq);
        if weight != 0 {
            self.load_sum += weight * contrib;
            if scale.queue {
                self.runnable_load_sum += weight * contrib;
            }
            if running {
                self.util_sum += contrib * scale.cpu;
            }
        }
        if decay.is_none() {
            return false;
        }
        let divider = self.divider();
        self.load_avg = self.load_sum / divider;
        self.runnable_load_avg = self.runnable_load_sum / divider;
        self.util_avg = self.util_sum / divider;
        true
    }
}

/// How contributions are scaled in v4.13.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Clock rate, 1024 = full.
    pub freq: u64,
    /// Capacity of the CPU, 1024 = largest.
    pub cpu: u64,
    /// The average is of a run queue: keep the queued-only sum as well.
    pub queue: bool,
}

/// `value - less`, but not below zero.
///
/// Kernel: sub_positive(), kernel/sched/fair.c, v6.12.
#[inline]
pub(crate) fn sub_positive(value: &mut u64, less: u64) {
    *value = value.saturating_sub(less);
}

/// `value + more`, where `more` may be negative, but not below zero.
///
/// Kernel: add_positive(), kernel/sched/fair.c, v6.12.
#[inline]
pub(crate) fn add_positive(value: &mut u64, more: i64) {
    *value = value.saturating_add_signed(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Scale = Scale { freq: 1024, cpu: 1024, queue: false };

    /// Values from a separate calculation with arbitrary-precision integers.
    #[test]
    fn decay_is_exact() {
        for (sum, periods, expected) in DECAYS {
            assert_eq!(decay_load(sum, periods), expected, "{sum} after {periods} periods");
        }
    }

    #[test]
    fn sums_and_averages_are_exact() {
        let mut avg = SchedAvg::default();
        for (ns, load, runnable, running, expected) in STEPS {
            let now = avg.last_update_time + ns;
            if avg.update_sum(now, load, runnable, running) {
                avg.update_avg(1);
            }
            let found = (
                avg.load_sum,
                avg.runnable_sum,
                avg.util_sum,
                avg.period_contrib,
                avg.load_avg,
                avg.runnable_avg,
                avg.util_avg,
            );
            assert_eq!(found, expected, "after {ns} ns of {load} {runnable} {running}");
        }
    }

    #[test]
    fn the_weighted_form_is_exact() {
        let mut avg = SchedAvg::default();
        for (ns, weight, running, freq, expected) in WEIGHTED_STEPS {
            let now = avg.last_update_time + ns;
            avg.update_weighted(now, weight, running, Scale { freq, queue: true, ..FULL });
            let found = (
                avg.load_sum,
                avg.runnable_load_sum,
                avg.util_sum,
                avg.load_avg,
                avg.runnable_load_avg,
                avg.util_avg,
            );
            assert_eq!(found, expected, "after {ns} ns of {weight} {running} at {freq}");
        }
    }

    #[test]
    fn a_task_that_always_runs_reaches_its_weight_and_1024() {
        let mut avg = SchedAvg::default();
        for tick in 1..400 {
            if avg.update_sum(tick * 4_000_000, 1, 1, true) {
                avg.update_avg(1024);
            }
        }
        assert!((1022..=1024).contains(&avg.util_avg), "{}", avg.util_avg);
        assert!((1022..=1024).contains(&avg.load_avg), "{}", avg.load_avg);
        assert_eq!(avg.runnable_avg, avg.util_avg);
    }

    #[test]
    fn a_clock_that_goes_back_changes_only_the_stamp() {
        let mut avg = SchedAvg { last_update_time: 10_000_000, load_sum: 77, ..SchedAvg::default() };
        assert!(!avg.update_sum(9_000_000, 1, 1, true));
        assert_eq!(avg, SchedAvg { last_update_time: 9_000_000, load_sum: 77, ..SchedAvg::default() });
    }

    #[test]
    fn without_load_nothing_runs_or_waits() {
        let mut avg = SchedAvg::default();
        avg.update_sum(5_000_000, 0, 1, true);
        assert!(avg.is_decayed());
    }

    const DECAYS: [(u64, u64, u64); 14] = [
        (47742, 1, 46718),
        (47742, 31, 24393),
        (47742, 32, 23870),
        (47742, 33, 23359),
        (47742, 345, 26),
        (48887808, 7, 42009765),
        (12712882986, 100, 1457220636),
        (1, 1, 0),
        (1099511640121, 63, 280896952401),
        (48887808, 2016, 0),
        (9223372036854775808, 2016, 0),
        (9223372036854775808, 2017, 0),
        (0, 5, 0),
        (1024, 0, 1023),
    ];

    type Sums = (u64, u64, u64, u32, u64, u64, u64);
    /// ns, load, runnable, running; sums, place in the period, averages.
    const STEPS: [(u64, u64, u64, bool, Sums); 15] = [
        (500000, 1, 1, true, (488, 499712, 499712, 488, 0, 0, 0)),
        (600000, 1, 1, true, (1050, 1075756, 1075756, 49, 0, 23, 23)),
        (1000, 1, 1, true, (1050, 1075756, 1075756, 49, 0, 23, 23)),
        (1023, 1, 1, true, (1050, 1075756, 1075756, 49, 0, 23, 23)),
        (1, 0, 0, false, (1050, 1075756, 1075756, 49, 0, 23, 23)),
        (4000000, 1, 1, true, (4759, 4874697, 4874697, 883, 0, 102, 102)),
        (4000000, 1, 1, false, (8125, 8321380, 4470116, 693, 0, 175, 94)),
        (2500000, 2048, 2, true, (4824509, 12614726, 6597321, 62, 103, 269, 141)),
        (10000000, 0, 3, true, (3969981, 10380377, 5428788, 611, 83, 219, 114)),
        (33554432, 1, 1, true, (2008653, 29422123, 26946329, 611, 42, 621, 569)),
        (1048576, 1, 1, false, (1966626, 29831027, 26368924, 611, 41, 630, 557)),
        (100000000, 335, 5, true, (14206975, 217104609, 46027107, 987, 297, 4550, 964)),
        (2500000000, 0, 0, false, (0, 0, 0, 153, 0, 0, 0)),
        (345000, 15, 1, true, (5040, 344064, 344064, 489, 0, 0, 0)),
        (3333333, 88761, 40, true, (279868155, 129469296, 3551088, 672, 5905, 2731, 74)),
    ];

    type WeightedSums = (u64, u64, u64, u64, u64, u64);
    /// ns, weight, running, frequency; load, queued load and utilisation: sums, then averages.
    const WEIGHTED_STEPS: [(u64, u64, bool, u64, WeightedSums); 7] = [
        (500000, 1024, true, 1024, (499712, 499712, 499712, 0, 0, 0)),
        (4000000, 1024, true, 1024, (4275709, 4275709, 4275709, 90, 90, 90)),
        (4000000, 3072, true, 512, (9622474, 9622474, 5821386, 205, 205, 124)),
        (7654321, 820, false, 1024, (13921764, 13921764, 5002373, 295, 295, 106)),
        (40000000, 0, false, 1024, (6112532, 6112532, 2196356, 129, 129, 46)),
        (900000, 15, true, 300, (5985363, 5985363, 2409388, 126, 126, 51)),
        (900000, 15, true, 300, (5860904, 5860904, 2616831, 124, 124, 55)),
    ];
}
