//! Where an entity that joins a queue is put on the line of virtual time.
//!
//! CFS puts it near the floor of the queue: a sleeper a little before it, so that it
//! runs soon, a new task a slice behind, so that forking gains nothing. EEVDF puts it
//! around the average so that the lag with which it left comes out again: adding an
//! entity moves the average, so the lag is inflated by (W + w) / W beforehand.
//!
//! Kernel: place_entity(), kernel/sched/fair.c.

use crate::calc_delta::calc_delta_fair;
use crate::cfs_rq::before;
use crate::pick::avg_vruntime::{AvgSums, avg_vruntime_weight};
use crate::{AvgWeight, CfsRq, Entity, Feature, ForkPlace, Kernel};

/// Where EEVDF puts an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its virtual run time.
    pub vruntime: u64,
    /// Its virtual deadline.
    pub deadline: u64,
    /// Its slice.
    pub slice: u64,
    /// How far the zero point of the sums moves with it, so that products stay small.
    pub zero_shift: i64,
}

/// Places an entity by its lag. `cfs_rq.nr_queued` and `sums` are without it.
///
/// Kernel: place_entity(), kernel/sched/fair.c, v6.12, v7.2, v7.3.
pub fn place_eevdf(
    kernel: &Kernel,
    base_slice: u64,
    cfs_rq: &CfsRq,
    sums: &AvgSums,
    se: &Entity,
    initial: bool,
) -> Placed {
    let slice = if se.custom_slice { se.slice } else { base_slice };
    let vslice = calc_delta_fair(slice, se.line_load());
    let mut zero_shift = 0;
    let mut lag = 0;
    if kernel.has(Feature::PlaceLag) && cfs_rq.nr_competing(kernel) > 0 {
        let weight = avg_vruntime_weight(&kernel.rules, cfs_rq, se.line_load().weight);
        let others = sums.weight.max(1);
        lag = match kernel.has(Feature::PlaceLagApart) {
            true => se.vlag + se.vlag.wrapping_mul(weight) / others,
            false => se.vlag.wrapping_mul(sums.weight + weight) / others,
        };
        if kernel.rules.avg_weight == AvgWeight::Full && weight > sums.weight {
            zero_shift = -lag;
        }
    }
    let vruntime = sums.average().wrapping_sub(lag as u64);
    let deadline = if kernel.has(Feature::PlaceRelDeadline) && se.rel_deadline {
        vruntime.wrapping_add(se.deadline)
    } else {
        let half = initial
            && kernel.has(Feature::PlaceDeadlineInitial)
            && kernel.rules.fork_place == ForkPlace::Chosen;
        vruntime.wrapping_add(if half { vslice / 2 } else { vslice })
    };
    Placed { vruntime, deadline, slice, zero_shift }
}

/// What CFS needs to know to place an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceCfs {
    /// Floor of the queue.
    pub min_vruntime: u64,
    /// A new task's slice in virtual time; `None` for one that wakes.
    pub initial_vslice: Option<u64>,
    /// The latency, or for idle entities the minimum granularity.
    pub thresh: u64,
    /// Real time since the entity last ran, if it did.
    pub absent: Option<u64>,
}

impl PlaceCfs {
    /// The vruntime of an entity that had `vruntime`.
    ///
    /// Kernel: place_entity(), entity_is_long_sleeper(), kernel/sched/fair.c, v6.1.
    pub fn place(&self, kernel: &Kernel, vruntime: u64) -> u64 {
        let target = match self.initial_vslice {
            Some(vslice) if kernel.has(Feature::StartDebit) => self.min_vruntime.wrapping_add(vslice),
            Some(_) => self.min_vruntime,
            None => {
                self.min_vruntime.wrapping_sub(self.thresh >> kernel.has(Feature::GentleFairSleepers) as u32)
            }
        };
        // The slowest clock runs 1024 times faster than real time at the highest weight.
        let long = self.absent.is_some_and(|absent| absent > (1 << 63) / 1024);
        if kernel.has(Feature::LongSleeper) && long || before(vruntime, target) { target } else { vruntime }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LoadWeight, NICE_0_LOAD, TgId};
    use schedlab_topology::CpuId;

    const MS: u64 = 1_000_000;

    fn entity(vlag: i64, nice_0_parts: u64) -> Entity {
        Entity { vlag, load: LoadWeight::new(NICE_0_LOAD * nice_0_parts), ..Entity::default() }
    }

    fn place(kernel: &str, se: &Entity, nr_queued: u32, initial: bool) -> Placed {
        let kernel = Kernel::parse(kernel).unwrap();
        let mut cfs_rq = CfsRq::new(CpuId(0), TgId::ROOT);
        cfs_rq.nr_queued = nr_queued;
        let scale = if kernel.rules.avg_weight == AvgWeight::Full { 1 << 20 } else { 1 << 10 };
        let sums = AvgSums { zero: 0, sum: 0, weight: nr_queued as i64 * scale };
        place_eevdf(&kernel, 3 * MS, &cfs_rq, &sums, se, initial)
    }

    #[test]
    fn lag_is_inflated_by_what_joining_takes_away() {
        for kernel in ["v6.10", "v6.12", "v7.2"] {
            // Two of weight 1 queued, one of weight 1 joins with lag 2 ms: 2 * 3/2.
            let placed = place(kernel, &entity(2_000_000, 1), 2, false);
            assert_eq!(placed.vruntime as i64, -3_000_000, "{kernel}");
            assert_eq!(placed.deadline as i64, 0, "{kernel}: one slice later");
            // The queue is empty: lag does not matter.
            assert_eq!(place(kernel, &entity(2_000_000, 1), 0, false).vruntime, 0, "{kernel}");
        }
        let none = place("v6.12+NO_PLACE_LAG", &entity(2_000_000, 1), 2, false);
        assert_eq!(none.vruntime, 0);
    }

    /// 6.8 ms at the weight of an idle task, beside 64 tasks of nice -20: the product does not fit into 64 bits.
    #[test]
    fn a_light_entity_beside_heavy_ones_keeps_its_lag_in_v7_3() {
        let se = Entity { vlag: 2_321_066_666, load: LoadWeight::new(3 << 10), ..Entity::default() };
        let mut cfs_rq = CfsRq::new(CpuId(0), TgId::ROOT);
        (cfs_rq.nr_queued, cfs_rq.h_nr_queued) = (64, 64);
        let sums = AvgSums { zero: 0, sum: 0, weight: 64 * (88_761 << 10) };
        let lag = |kernel: &str| {
            let kernel = Kernel::parse(kernel).unwrap();
            place_eevdf(&kernel, 3 * MS, &cfs_rq, &sums, &se, false).vruntime as i64
        };
        assert_eq!(lag("v7.3"), -2_321_067_891);
        assert_eq!(lag("v7.2"), 850_088_096, "the other sign");
    }

    #[test]
    fn a_heavy_entity_moves_the_zero_point_with_it_in_v7_2() {
        assert_eq!(place("v7.2", &entity(1_000, 4), 2, false).zero_shift, -3_000);
        assert_eq!(place("v7.2", &entity(1_000, 2), 2, false).zero_shift, 0);
        assert_eq!(place("v6.12", &entity(1_000, 4), 2, false).zero_shift, 0);
    }

    #[test]
    fn a_new_task_gets_half_a_slice_unless_it_is_placed_twice() {
        for (kernel, deadline) in [
            ("v6.10", 3 * MS),
            ("v6.12", 3 * MS / 2),
            ("v7.2", 3 * MS / 2),
            ("v7.2+NO_PLACE_DEADLINE_INITIAL", 3 * MS),
        ] {
            assert_eq!(place(kernel, &entity(0, 1), 1, true).deadline, deadline, "{kernel}");
        }
    }

    #[test]
    fn a_migrated_entity_keeps_its_distance_to_the_deadline() {
        let se = Entity { rel_deadline: true, deadline: MS, ..entity(0, 1) };
        assert_eq!(place("v6.12", &se, 1, false).deadline, MS);
        assert_eq!(place("v6.12+NO_PLACE_REL_DEADLINE", &se, 1, false).deadline, 3 * MS);
    }

    #[test]
    fn cfs_favours_sleepers_by_half_a_latency_and_makes_new_tasks_wait_a_slice() {
        let sleeper =
            PlaceCfs { min_vruntime: 100 * MS, initial_vslice: None, thresh: 24 * MS, absent: None };
        let new = PlaceCfs { initial_vslice: Some(3 * MS), ..sleeper };
        let long = PlaceCfs { absent: Some(u64::MAX >> 1), ..sleeper };
        for (kernel, place, had, gets) in [
            ("v6.1", sleeper, 0, 88 * MS),
            ("v6.1+NO_GENTLE_FAIR_SLEEPERS", sleeper, 0, 76 * MS),
            ("v6.1", sleeper, 95 * MS, 95 * MS),
            ("v6.1", new, 0, 103 * MS),
            ("v6.1+NO_START_DEBIT", new, 0, 100 * MS),
            ("v6.3", long, 95 * MS, 88 * MS),
            ("v5.18", long, 95 * MS, 95 * MS),
        ] {
            assert_eq!(place.place(&Kernel::parse(kernel).unwrap(), had), gets, "{kernel} {place:?}");
        }
    }
}
