//! The queue of one level of the hierarchy on one CPU.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::slice_tree::SliceTree;
use crate::{LoadWeight, SchedAvg, SeId, TgId};

/// An entry of the time line: enough to order entities, to test eligibility and to find the shortest slice without
/// reading the entity. All of it is constant while queued, except the slice of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// CFS: vruntime. EEVDF: deadline. Compared as a signed difference.
    pub key: u64,
    /// vruntime of the entity.
    pub vruntime: u64,
    /// Slice of the entity.
    pub slice: u64,
    /// The entity.
    pub se: SeId,
}

/// Queued entities except the running one, in order of key; equal keys in order of arrival.
///
/// A sorted vector replaces the kernel's red-black tree: the same order, fewer cache misses at the sizes run queues
/// have. The shortest and longest slice, which the kernel keeps in the tree's nodes, are stored separately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    entries: Vec<Queued>,
    /// Invariant: the smallest and largest `slice` of `entries`; meaningless when empty.
    slices: (u64, u64),
    /// Where there are groups, under SLICE_NOT_ROTATED: the shortest slice.
    tree: Option<Box<SliceTree>>,
}

/// Whether virtual time `a` is before `b`; both wrap.
#[inline]
pub(crate) fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

impl Timeline {
    /// From now on the shortest slice is the one that the top of the kernel's tree stores. What is queued enters the tree in
    /// order, as it is not known in which order it came.
    pub(crate) fn keep_tree(&mut self) {
        if self.tree.is_none() {
            let mut tree = Box::new(SliceTree::new());
            self.entries.iter().for_each(|entry| tree.insert(*entry));
            self.tree = Some(tree);
        }
    }

    /// Adds an entry after those with an equal key.
    #[inline]
    pub fn insert(&mut self, entry: Queued) {
        self.slices = match self.entries.is_empty() {
            true => (entry.slice, entry.slice),
            false => (self.slices.0.min(entry.slice), self.slices.1.max(entry.slice)),
        };
        if let Some(tree) = &mut self.tree {
            tree.insert(entry);
        }
        self.put(entry);
    }

    #[inline]
    fn put(&mut self, entry: Queued) {
        match self.entries.last() {
            Some(last) if before(entry.key, last.key) => {
                let at = self.entries.partition_point(|q| !before(entry.key, q.key));
                self.entries.insert(at, entry);
            }
            _ => self.entries.push(entry),
        }
    }

    /// Removes an entity, which must be queued with this key.
    #[inline]
    pub fn remove(&mut self, key: u64, se: SeId) {
        if let Some(tree) = &mut self.tree {
            tree.remove(se);
        }
        let at = self.place_of(key, se);
        let slice = self.take(at).slice;
        if self.slices.0 != self.slices.1 && (slice == self.slices.0 || slice == self.slices.1) {
            self.recount_slices();
        }
    }

    #[inline]
    fn take(&mut self, at: usize) -> Queued {
        if at + 1 == self.entries.len() { self.entries.swap_remove(at) } else { self.entries.remove(at) }
    }

    /// Changes the key and the virtual time of an entity; it is placed after those with an equal key.
    #[inline]
    pub fn shift(&mut self, from: u64, se: SeId, key: u64, vruntime: u64) {
        let at = self.place_of(from, se);
        let (left, right) = self.entries.split_at_mut(at);
        let [own, right @ ..] = right else { unreachable!("it is there") };
        let after_left = left.last().is_none_or(|q| !before(key, q.key));
        if after_left && right.first().is_none_or(|q| before(key, q.key)) {
            (own.key, own.vruntime) = (key, vruntime);
        } else {
            let entry = self.take(at);
            self.put(Queued { key, vruntime, ..entry });
        }
        if let Some(tree) = &mut self.tree {
            let entry = self.entries.iter().find(|q| q.se == se).expect("it is there");
            tree.remove(se);
            tree.insert(*entry);
        }
    }

    /// Shifts the virtual time of some entities, each by `times` its own amount; their keys do not change. `some` is
    /// in the order of the entries.
    pub fn shift_vruntimes(&mut self, some: &[(SeId, i64)], times: i64) {
        let mut some = some.iter();
        let mut next = some.next();
        for entry in &mut self.entries {
            let Some(&(se, by)) = next else { break };
            if entry.se == se {
                entry.vruntime = entry.vruntime.wrapping_add((by * times) as u64);
                next = some.next();
            }
        }
        debug_assert!(next.is_none(), "they stand in order");
    }

    /// Changes the slice of a queued entity.
    pub fn set_slice(&mut self, key: u64, se: SeId, slice: u64) {
        if let Some(tree) = &mut self.tree {
            tree.set_slice(se, slice);
        }
        let at = self.place_of(key, se);
        if core::mem::replace(&mut self.entries[at].slice, slice) != slice {
            self.recount_slices();
        }
    }

    /// Whether the shortest slice depends on the tree, and a slice that is set again may change it.
    #[inline]
    pub(crate) fn has_tree(&self) -> bool {
        self.tree.is_some()
    }

    #[inline]
    fn place_of(&self, key: u64, se: SeId) -> usize {
        // A short line is searched faster.
        let short = self.entries.len() <= 8;
        let first = if short { 0 } else { self.entries.partition_point(|q| before(q.key, key)) };
        first + self.entries[first..].iter().position(|q| q.se == se).expect("entity is on the time line")
    }

    fn recount_slices(&mut self) {
        let slices = self.entries.iter().map(|q| q.slice);
        self.slices = (slices.clone().min().unwrap_or(0), slices.max().unwrap_or(0));
    }

    /// The entries in order.
    #[inline]
    pub fn entries(&self) -> &[Queued] {
        &self.entries
    }

    /// The first entry.
    #[inline]
    pub fn leftmost(&self) -> Option<&Queued> {
        self.entries.first()
    }

    /// The shortest slice.
    #[inline]
    pub fn min_slice(&self) -> Option<u64> {
        match &self.tree {
            Some(tree) => tree.min_slice(),
            None => (!self.entries.is_empty()).then_some(self.slices.0),
        }
    }

    /// The longest slice.
    #[inline]
    pub fn max_slice(&self) -> Option<u64> {
        (!self.entries.is_empty()).then_some(self.slices.1)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Load of tasks that left while asleep, subtracted at the next update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// How many tasks.
    pub nr: u32,
    /// Their load.
    pub load_avg: u64,
    /// Their unweighted load sums (v5.5).
    pub load_sum: u64,
    /// Their utilisation.
    pub util_avg: u64,
    /// Their runnable average.
    pub runnable_avg: u64,
}

/// A CFS run queue, as `struct cfs_rq`.
///
/// The order of fields is deliberate: those that balancing reads on other CPUs come first.
#[derive(Clone, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct CfsRq {
    /// Tasks below, delayed ones included.
    pub h_nr_queued: u32,
    /// Tasks below, without delayed ones.
    pub h_nr_runnable: u32,
    /// Averages.
    pub avg: SchedAvg,
    /// CPU it belongs to.
    pub cpu: CpuId,
    /// Group whose children are queued here.
    pub tg: TgId,
    /// Entity running at this level; not on the time line.
    pub curr: Option<SeId>,
    /// Under FLAT_GROUPS, the running task's entity at this level; `curr` of the root is then the task itself.
    pub h_curr: Option<SeId>,
    /// Buddy to pick next if fair.
    pub next: Option<SeId>,
    /// CFS: buddy that was preempted last.
    pub last: Option<SeId>,
    /// CFS: buddy that yielded.
    pub skip: Option<SeId>,
    /// Queued entities except `curr`.
    pub timeline: Timeline,
    /// Sum of the weights of all queued entities, `curr` included.
    pub load: LoadWeight,
    /// Entities at this level, `curr` included.
    pub nr_queued: u32,
    /// Tasks below that are SCHED_IDLE or in an idle group.
    pub h_nr_idle: u32,
    /// CFS: entities at this level that are idle.
    pub idle_nr_queued: u32,
    /// CFS and v6.10: floor that never decreases.
    pub min_vruntime: u64,
    /// v6.12.117 and later: zero point of `avg_vruntime`.
    pub zero_vruntime: u64,
    /// EEVDF: sum of (vruntime - zero point) * weight over the time line.
    pub avg_vruntime: i64,
    /// EEVDF: sum of weights over the time line (rule AVG_WEIGHT says which).
    pub avg_load: i64,
    /// v7.2: extra shift of weights in the two sums.
    pub sum_shift: u32,
    /// Load of sleepers that moved away.
    pub removed: Removed,
    /// The part of `avg.load_avg` that is included in `TaskGroup::load_avg`.
    pub tg_load_avg_contrib: u64,
    /// Clock of the last write to `TaskGroup::load_avg`.
    pub last_update_tg_load_avg: u64,
    /// The part of `avg.runnable_avg` that is included in `TaskGroup::runnable_avg`.
    pub tg_runnable_avg_contrib: u64,
    /// A change is waiting to be propagated to the parent level.
    pub propagate: bool,
    /// Runnable sum of that change.
    pub prop_runnable_sum: i64,
    /// Hierarchical load, computed at most once per jiffy, at the first read.
    pub h_load: Cell<u64>,
    /// Jiffy of `h_load`.
    pub last_h_load_update: Cell<u64>,
    /// On its CPU's list of queues whose averages must be decayed.
    pub on_list: bool,
    /// All entities below are idle.
    pub idle: bool,
    /// Bandwidth control is on for the group.
    pub runtime_enabled: bool,
    /// Time left before more is requested from the pool, ns.
    pub runtime_remaining: i64,
    /// End of the period in which some of it was taken, ns.
    pub runtime_expires: u64,
    /// How often the pool had been filled by then.
    pub expires_seq: u64,
    /// Out of run time.
    pub throttled: bool,
    /// Throttled ancestors, itself included.
    pub throttle_count: u32,
    /// v7.2: tasks off the queue until there is quota again, newest first.
    pub throttled_limbo: Vec<TaskId>,
    /// The PELT clock is stopped, in v7.2 since the queue became empty while throttled; set and cleared by
    /// `stop_pelt_clock` and `start_pelt_clock`.
    pub pelt_clock_throttled: bool,
    /// `throttled_clock_pelt_time` when the queue became empty; `None` if the clock was stopped.
    pub throttled_pelt_idle: Option<u64>,
    /// PELT clock when throttling began.
    pub throttled_clock_pelt: u64,
    /// Throttled time subtracted from the PELT clock.
    pub throttled_clock_pelt_time: u64,
}

/// Virtual time at which a queue starts: just below the wrap.
///
/// Kernel: init_cfs_rq(), kernel/sched/fair.c, v6.12.
pub const MIN_VRUNTIME_START: u64 = (-(1i64 << 20)) as u64;

impl CfsRq {
    /// The running entity at this level.
    #[inline]
    pub(crate) fn runs(&self) -> Option<SeId> {
        self.h_curr.or(self.curr)
    }

    /// An empty queue of a group on a CPU.
    pub fn new(cpu: CpuId, tg: TgId) -> CfsRq {
        let start = MIN_VRUNTIME_START;
        CfsRq {
            cpu,
            tg,
            curr: None,
            h_curr: None,
            next: None,
            last: None,
            skip: None,
            timeline: Timeline::default(),
            load: LoadWeight::default(),
            nr_queued: 0,
            h_nr_queued: 0,
            h_nr_runnable: 0,
            h_nr_idle: 0,
            idle_nr_queued: 0,
            min_vruntime: start,
            zero_vruntime: start,
            avg_vruntime: 0,
            avg_load: 0,
            sum_shift: 0,
            avg: SchedAvg::default(),
            removed: Removed::default(),
            tg_load_avg_contrib: 0,
            last_update_tg_load_avg: 0,
            tg_runnable_avg_contrib: 0,
            propagate: false,
            prop_runnable_sum: 0,
            h_load: Cell::new(0),
            last_h_load_update: Cell::new(u64::MAX),
            on_list: false,
            idle: false,
            runtime_enabled: false,
            runtime_remaining: 0,
            runtime_expires: 0,
            expires_seq: 0,
            throttled: false,
            throttle_count: 0,
            throttled_limbo: Vec::new(),
            pelt_clock_throttled: false,
            throttled_pelt_idle: Some(0),
            throttled_clock_pelt: 0,
            throttled_clock_pelt_time: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(key: u64, slice: u64, se: u32) -> Queued {
        Queued { key, vruntime: key, slice, se: SeId(se) }
    }

    #[test]
    fn equal_keys_keep_their_order_of_arrival() {
        let mut line = Timeline::default();
        for (key, se) in [(5, 0), (3, 1), (5, 2), (u64::MAX, 3)] {
            line.insert(queued(key, 1, se));
        }
        let order = |line: &Timeline| -> Vec<u32> { line.entries().iter().map(|q| q.se.0).collect() };
        assert_eq!(order(&line), [3, 1, 0, 2], "u64::MAX is one below zero");
        line.remove(5, SeId(2));
        line.remove(u64::MAX, SeId(3));
        assert_eq!(order(&line), [1, 0]);
    }

    #[test]
    fn the_shortest_and_longest_slice_follow_what_is_queued() {
        let mut line = Timeline::default();
        assert_eq!((line.min_slice(), line.max_slice()), (None, None));
        for (se, slice) in [(0, 30), (1, 10), (2, 50)] {
            line.insert(queued(se as u64, slice, se));
        }
        assert_eq!((line.min_slice(), line.max_slice()), (Some(10), Some(50)));
        line.remove(1, SeId(1));
        assert_eq!((line.min_slice(), line.max_slice()), (Some(30), Some(50)));
        line.set_slice(2, SeId(2), 20);
        assert_eq!((line.min_slice(), line.max_slice()), (Some(20), Some(30)));
        line.remove(0, SeId(0));
        line.remove(2, SeId(2));
        line.insert(queued(9, 70, 3));
        assert_eq!((line.min_slice(), line.max_slice()), (Some(70), Some(70)));
    }
}
