//! The environment of one pass, as `struct lb_env`, and its notes.
//!
//! A pass may try several times: if all candidates of a queue are bound elsewhere the next busiest is tried,
//! and tasks that may not run on the destination may be moved to a neighbour of it. All of this is decided on
//! the notes kept here, without changing the state. Between two candidates a pass can stop until a task was taken off.

use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::{Deref, DerefMut};

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{TaskId, Time};

use super::{BalanceDecision, MigrationType};
use crate::{CfsRqId, DstGroup, IdleType, Sched, SchedDomain, SchedGroup, SdFlags, SdId, SgId, View};

/// Tasks examined before the queue's lock is briefly released.
pub(super) const SCHED_NR_MIGRATE_BREAK: u32 = 32;

/// Flags of a pass that hold for all candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    /// No task examined so far may run on the destination.
    pub all_pinned: bool,
    /// Some task may only run elsewhere.
    pub some_pinned: bool,
    /// Some task may run on a neighbour of the destination.
    pub dst_pinned: bool,
    /// Many were examined; continue after releasing the lock.
    pub need_break: bool,
    /// Active balancing.
    pub active: bool,
    /// v7.2: active balancing towards a preferred cache.
    pub active_llc: bool,
    /// v7.2: some task stayed because of its preferred cache.
    pub llc_pinned: bool,
}

/// The environment of one pass: a window on the state, and what the pass has noted.
pub(super) struct LbEnv<'a> {
    /// The window on the state at an instant.
    pub view: View<'a>,
    pub sched: &'a Sched,
    pub now: Time,
    pub sd: &'a SchedDomain,
    pub notes: Notes,
}

/// What a pass has noted: all that it knows besides the state, so that it can go on once a task was taken off.
pub(super) struct Notes {
    pub sd_id: SdId,
    pub idle: IdleType,
    /// The CPU for which the pass is made.
    pub this_cpu: CpuId,
    /// The destination; changes when tasks may only run on a neighbour.
    pub dst_cpu: CpuId,
    pub new_dst_cpu: CpuId,
    pub src_cpu: CpuId,
    /// CPUs of the span that are excluded.
    pub without: Vec<CpuId>,
    pub flags: Flags,
    pub imbalance: i64,
    pub migration_type: MigrationType,
    /// Failed passes before this one.
    pub failed_before: u32,
    /// Failed passes, this one included.
    pub nr_balance_failed: u32,
    pub loops: u32,
    pub loop_break: u32,
    pub loop_max: u32,

    /// CPUs examined.
    pub examined: Cell<u32>,
    /// What is decided so far.
    pub decision: BalanceDecision,

    /// Whether the pass stops before it examines another candidate, until the one that it detached was taken off.
    pub stops: bool,
    /// It stopped, or would: a task is detached and not taken off.
    pub waits: bool,
    /// Tasks detached for the present destination.
    pub detached: u32,
    /// Remaining tasks on the source, of all classes.
    pub src_nr_running: u32,
    /// Tasks on the destination, including those moved there.
    pub dst_nr_running: u32,
    /// Next candidate of the source's list; see [`LbEnv::candidate`].
    pub cursor: Option<TaskId>,
    /// The step from which passed-over tasks are considered again, after all others.
    pub skipped: usize,
    /// Load that left each queue, if no task is taken off.
    pub detached_load: Vec<Detached>,
}

impl Deref for LbEnv<'_> {
    type Target = Notes;

    #[inline]
    fn deref(&self) -> &Notes {
        &self.notes
    }
}

impl DerefMut for LbEnv<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Notes {
        &mut self.notes
    }
}

/// Load of tasks that left a queue during a pass.
pub(super) struct Detached {
    pub cfs: CfsRqId,
    /// Subtracted from the queue's average.
    pub off: u64,
    /// The queue's average before that, after its update.
    pub aged: Option<u64>,
    /// Up to v4.14: recorded, to be subtracted at the next update of the average.
    pub noted: u64,
}

impl<'a> LbEnv<'a> {
    pub fn new(sched: &'a Sched, cpu: CpuId, sd_id: SdId, idle: IdleType, now: Time) -> LbEnv<'a> {
        LbEnv::of(View::new(sched, now, None), cpu, sd_id, idle)
    }

    pub fn of(view: View<'a>, cpu: CpuId, sd_id: SdId, idle: IdleType) -> LbEnv<'a> {
        let sched = view.sched;
        let failed = view.nr_balance_failed(sd_id);
        let interval = sched.domains.sd(sd_id).balance_interval;
        let notes = Notes {
            sd_id,
            idle,
            this_cpu: cpu,
            dst_cpu: cpu,
            new_dst_cpu: cpu,
            src_cpu: cpu,
            without: sched.leaving.clone(),
            flags: Flags::default(),
            imbalance: 0,
            migration_type: MigrationType::Load,
            failed_before: failed,
            nr_balance_failed: failed,
            loops: 0,
            loop_break: SCHED_NR_MIGRATE_BREAK,
            loop_max: 0,
            examined: Cell::new(0),
            decision: BalanceDecision::undecided(cpu, sd_id, idle, failed, interval),
            stops: false,
            waits: false,
            detached: 0,
            src_nr_running: 0,
            dst_nr_running: sched.rqs[cpu].nr_running,
            cursor: None,
            skipped: 0,
            detached_load: Vec::new(),
        };
        LbEnv::with(view, notes)
    }

    /// The environment in which a pass goes on.
    pub fn with(view: View<'a>, notes: Notes) -> LbEnv<'a> {
        let (sched, now) = (view.sched, view.now);
        LbEnv { view, sched, now, sd: sched.domains.sd(notes.sd_id), notes }
    }

    /// Whether the destination has nothing to run.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.idle != IdleType::NotIdle
    }

    /// The CPUs of a mask that take part.
    #[inline]
    pub fn cpus<'m>(&'m self, mask: &'m CpuMask) -> impl Iterator<Item = CpuId> + 'm {
        mask.iter().filter(|cpu| self.takes_part(*cpu))
    }

    /// The CPUs of a group that take part.
    #[inline]
    pub fn group_cpus<'m>(&'m self, group: &'m SchedGroup) -> impl Iterator<Item = CpuId> + 'm {
        group.cpus.iter().copied().filter(|cpu| self.takes_part(*cpu))
    }

    /// Whether a group is the destination's own: the first of the ring, and where groups
    /// overlap perhaps others.
    #[inline]
    pub fn is_local(&self, id: SgId, group: &SchedGroup) -> bool {
        id == self.sd.groups.local()
            || self.sd.flags.has(SdFlags::OVERLAP) && group.span.contains(self.dst_cpu)
    }

    /// Whether a CPU takes part. Domains cover active CPUs, and those that are leaving.
    #[inline]
    pub fn takes_part(&self, cpu: CpuId) -> bool {
        self.without.is_empty() || !self.without.contains(&cpu)
    }

    /// A CPU is examined.
    #[inline]
    pub fn examine(&self, cpu: CpuId) {
        self.examined.set(self.examined.get() + 1);
        self.sched.looked.note(cpu);
    }

    /// All CPUs of a group are examined.
    #[inline]
    pub fn examine_group(&self, group: &SchedGroup) {
        self.examined.set(self.examined.get() + group.group_weight);
        self.sched.looked.note_all(&group.span);
    }

    /// CPUs that may receive on behalf of the destination.
    ///
    /// Kernel: load_balance(), kernel/sched/fair.c, v6.1 and v5.5.
    pub fn dst_grpmask(&self) -> &'a CpuMask {
        let group = self.sched.domains.sg(self.sd.groups.local());
        match self.sched.kernel.rules.dst_group {
            DstGroup::Span => &group.span,
            DstGroup::BalanceMask => &group.balance_mask,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::expect;

    use super::LbEnv;
    use crate::balance::drawings::Pass;
    use crate::drawing::{NOW, by_kernel};

    #[test]
    fn where_groups_overlap_the_middle_of_the_local_one_receives_or_all_of_it() {
        // A ring of four nodes: the group of the first holds both its neighbours, to which other groups belong too.
        let ring = "4x1x1:distance=10/20/30/20:20/10/20/30:30/20/10/20:20/30/20/10 | 0[] 1[] 2[] 3[]";
        let told = |kernel: &str| {
            let pass = Pass::new(kernel, ring, "cpu=0 idle level=1");
            let env = LbEnv::new(&pass.drawn.sched, pass.cpu, pass.sd, pass.idle, NOW);
            let group = pass.drawn.sched.domains.sg(env.sd.groups.local());
            format!("{} of {}", env.dst_grpmask(), group.span)
        };
        expect![[r#"
            v4.13..v5.18: 0-1,3 of 0-1,3
            v6.1: 0 of 0-1,3
            v6.3: 0-1,3 of 0-1,3
            v6.10..v7.3: 0 of 0-1,3"#]]
        .assert_eq(&by_kernel("", told));
    }
}
