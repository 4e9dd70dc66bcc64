//! Maintains the averages of entities and queues: decaying, attaching, detaching, and the load that sleepers leave
//! behind when they move away.
//!
//! A queue's average is the sum over its entities, blocked ones included. An entity is attached while
//! `last_update_time` is not 0. A sleeper that moves cannot lock its old queue: its load is recorded in `removed` and
//! subtracted at that queue's next update.

mod attach;

use schedlab_units::Time;

use crate::level::Level;
use crate::pelt::{LOAD_AVG_MAX, PELT_MIN_DIVIDER, Scale, add_positive, sub_positive};
use crate::weight::LOAD_SHIFT;
use crate::{CfsRq, CfsRqId, Entity, Feature, Kernel, PeltClock, PeltSums, Sched, SchedAvg, SeId, TgId};

/// What [`Sched::update_load_avg`] does besides decaying.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpdateFlags {
    /// Write the group's load average if it changed.
    pub update_tg: bool,
    /// Called from enqueue: attach an entity that is not attached (and count it as queued, v4.13).
    pub do_attach: bool,
    /// Called from the dequeue of a migration: detach.
    pub do_detach: bool,
    /// Leave the entity's own average as it is.
    pub skip_age: bool,
}

impl UpdateFlags {
    /// Only decay.
    pub const NONE: UpdateFlags =
        UpdateFlags { update_tg: false, do_attach: false, do_detach: false, skip_age: false };
    /// UPDATE_TG.
    pub const UPDATE_TG: UpdateFlags = UpdateFlags { update_tg: true, ..UpdateFlags::NONE };
    /// UPDATE_TG | DO_ATTACH, for an enqueue.
    pub const ENQUEUE: UpdateFlags = UpdateFlags { do_attach: true, ..UpdateFlags::UPDATE_TG };
    /// UPDATE_TG | DO_DETACH, for the dequeue of a migration (v6.0 on).
    pub const MIGRATE: UpdateFlags = UpdateFlags { do_detach: true, ..UpdateFlags::UPDATE_TG };
}

/// Changes a sum of a queue, and keeps it from falling below what its average needs.
#[inline]
fn adjust(form: PeltSums, avg: &mut u64, sum: &mut u64, delta_avg: i64, delta_sum: i64) {
    add_positive(avg, delta_avg);
    add_positive(sum, delta_sum);
    raise(form, *avg, sum);
}

/// Kernel: __update_sa(), kernel/sched/fair.c, v7.2; the floors in update_cfs_rq_load_avg(), v6.12,
/// where the comparison is made in 32 bits and cuts off what does not fit.
#[inline]
pub(crate) fn raise(form: PeltSums, avg: u64, sum: &mut u64) {
    match form {
        PeltSums::Plain | PeltSums::Synced => {}
        PeltSums::Floor32 => *sum = (*sum & 0xffff_ffff).max((avg * PELT_MIN_DIVIDER) & 0xffff_ffff),
        PeltSums::Floor => *sum = (*sum).max(avg * PELT_MIN_DIVIDER),
    }
}

/// A weight in the scale of the averages.
///
/// Kernel: se_weight(), scale_load_down(), kernel/sched/sched.h, v6.12.
#[inline]
fn scale_load_down(kernel: &Kernel, weight: u64) -> u64 {
    if kernel.has(Feature::ScaleDownFloor) {
        crate::weight::scale_load_down(weight)
    } else {
        weight >> LOAD_SHIFT
    }
}

impl Entity {
    /// Decays an attached entity in its queue, whether it runs or not.
    ///
    /// Kernel: __update_load_avg_se(), kernel/sched/pelt.c, v6.12.
    #[inline]
    fn age(&mut self, kernel: &Kernel, now: u64, running: bool) {
        if self.avg.update_sum(now, self.on_rq.into(), self.runnable(kernel), running) {
            self.avg.update_avg(scale_load_down(kernel, self.load.weight));
            self.util_avg_changed = true;
        }
    }

    /// Number of tasks of an entity that wait or run, the runnable input of its average.
    ///
    /// Kernel: se_runnable(), kernel/sched/sched.h, v6.12.
    #[inline]
    fn runnable(&self, kernel: &Kernel) -> u64 {
        if self.sched_delayed || !kernel.has(Feature::RunnableAvg) {
            0
        } else if self.my_q.is_none() {
            self.on_rq.into()
        } else {
            self.runnable_weight
        }
    }
}

impl Level<'_> {
    /// [`Sched::update_load_avg`] of a task in a root queue that is attached and stays, which changes nothing
    /// elsewhere. Returns false, and does nothing, for any other entity.
    pub(crate) fn update_load_avg(&mut self, se: SeId, flags: UpdateFlags) -> bool {
        let Level { kernel, rq, queue, entity } = self;
        let stays = entity.avg.last_update_time != 0 && !flags.do_detach && !flags.skip_age;
        let alone = se.is_task() && queue.tg == TgId::ROOT && queue.removed.nr == 0;
        if !stays || !alone || kernel.rules.pelt != PeltClock::ScaledClock {
            return false;
        }
        let now = queue.clock_pelt(rq);
        entity.age(kernel, now, queue.runs() == Some(se));
        queue.age(kernel, now);
        true
    }
}

impl CfsRq {
    /// Decays a queue that no sleeping task has left. Returns true if a period elapsed.
    ///
    /// Kernel: __update_load_avg_cfs_rq(), kernel/sched/pelt.c, v6.12.
    #[inline]
    fn age(&mut self, kernel: &Kernel, now: u64) -> bool {
        let load = scale_load_down(kernel, self.load.weight);
        let on = kernel.has(Feature::RunnableAvg);
        let runnable = if on { self.h_nr_runnable.into() } else { 0 };
        let crossed = self.avg.update_sum(now, load, runnable, self.runs().is_some());
        if crossed {
            self.avg.update_avg(1);
        }
        crossed
    }
}

impl Sched {
    /// A weight in the scale of the averages.
    ///
    /// Kernel: se_weight(), scale_load_down(), kernel/sched/sched.h, v6.12.
    #[inline]
    pub(crate) fn scale_load_down(&self, weight: u64) -> u64 {
        scale_load_down(&self.kernel, weight)
    }

    /// The decayed loads of an entity that waits in its queue, and of the queue, if both were updated at `now`.
    pub(crate) fn aged_loads(&self, se: SeId, now: Time) -> (u64, u64) {
        let mut entity = self.se(se).clone();
        let cfs = entity.cfs_rq.expect("it is queued");
        let at = self.cfs_rq_clock_pelt_at(cfs, now);
        entity.age(&self.kernel, at, false);
        let queue = self.cfs(cfs);
        let mut avg = queue.avg;
        let load = self.scale_load_down(queue.load.weight);
        if avg.update_sum(at, load, 0, queue.runs().is_some()) {
            avg.update_avg(1);
        }
        (entity.avg.load_avg, avg.load_avg)
    }

    /// Records how many tasks can run below a group entity.
    ///
    /// Kernel: se_update_runnable(), kernel/sched/sched.h, v6.12.
    #[inline]
    pub fn se_update_runnable(&mut self, se: SeId) {
        if !se.is_task()
            && let Some(my_q) = self.se(se).my_q
        {
            self.se_mut(se).runnable_weight = self.cfs(my_q).h_nr_runnable.into();
        }
    }

    /// Decays an attached entity in its queue, in the form of v4.13.
    ///
    /// Kernel: __update_load_avg_se(), kernel/sched/fair.c, v4.13.
    fn age_se_weighted(&mut self, now: u64, cfs: CfsRqId, se: SeId) {
        let scale = self.scale_of(cfs, false);
        let Level { kernel, queue, entity, .. } = self.level(cfs, se);
        let weight = if entity.on_rq { scale_load_down(kernel, entity.load.weight) } else { 0 };
        let running = queue.runs() == Some(se);
        entity.util_avg_changed |= entity.avg.update_weighted(now, weight, running, scale);
    }

    /// Decays an entity that is not queued.
    ///
    /// Kernel: __update_load_avg_blocked_se(), kernel/sched/pelt.c, v6.12.
    fn age_blocked_se(&mut self, now: u64, cfs: CfsRqId, se: SeId) {
        self.se_mut(se).avg = self.aged_blocked(now, cfs, se);
    }

    /// The average of an entity that is not queued, decayed.
    pub(super) fn aged_blocked(&self, now: u64, cfs: CfsRqId, se: SeId) -> SchedAvg {
        let mut avg = self.se(se).avg;
        if self.kernel.rules.pelt != PeltClock::ScaledClock {
            avg.update_weighted(now, 0, false, self.scale_of(cfs, false));
        } else if avg.update_sum(now, 0, 0, false) {
            avg.update_avg(self.scale_load_down(self.se(se).load.weight));
        }
        avg
    }

    /// v4.13: how contributions of this queue's CPU are scaled. A thread of a core counts
    /// in full here, whatever its share of the core's capacity.
    fn scale_of(&self, cfs: CfsRqId, queue: bool) -> Scale {
        let cpu = self.cfs(cfs).cpu;
        Scale { freq: self.rqs[cpu].freq_scale, cpu: self.topology.cpu(cpu).capacity.into(), queue }
    }

    /// Decays a queue. True if its average changed: a period elapsed or load was removed.
    ///
    /// Kernel: update_cfs_rq_load_avg(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub(crate) fn update_cfs_rq_load_avg(&mut self, now: u64, cfs: CfsRqId) -> bool {
        let removed = self.cfs(cfs).removed.nr != 0 && self.take_removed(cfs);
        let crossed = match self.kernel.rules.pelt {
            PeltClock::ScaledClock => self.cfs_rqs[cfs.0 as usize].age(&self.kernel, now),
            PeltClock::InContribution => {
                let load = self.scale_load_down(self.cfs(cfs).load.weight);
                let scale = self.scale_of(cfs, true);
                let queue = &mut self.cfs_rqs[cfs.0 as usize];
                queue.avg.update_weighted(now, load, queue.runs().is_some(), scale)
            }
        };
        crossed || removed
    }

    /// Subtracts the load of tasks that left asleep from a queue. True if the group must be informed.
    #[cold]
    fn take_removed(&mut self, cfs: CfsRqId) -> bool {
        let form = self.kernel.rules.pelt_sums;
        let weighted = self.kernel.rules.pelt == PeltClock::InContribution;
        let queue = &mut self.cfs_rqs[cfs.0 as usize];
        let removed = core::mem::take(&mut queue.removed);
        let avg = &mut queue.avg;
        let divider = if weighted { LOAD_AVG_MAX } else { avg.divider() };
        let off = |average: &mut u64, sum: &mut u64, less: u64| {
            sub_positive(average, less);
            sub_positive(sum, less * divider);
            raise(form, *average, sum);
        };
        off(&mut avg.load_avg, &mut avg.load_sum, removed.load_avg);
        off(&mut avg.util_avg, &mut avg.util_sum, removed.util_avg);
        if form == PeltSums::Synced {
            avg.load_sum = avg.load_avg * divider;
            raise(PeltSums::Floor32, avg.util_avg, &mut avg.util_sum);
        }
        if weighted {
            queue.propagate |= removed.load_avg != 0 || removed.util_avg != 0;
            return removed.load_avg != 0;
        }
        off(&mut avg.runnable_avg, &mut avg.runnable_sum, removed.runnable_avg);
        if form == PeltSums::Synced {
            avg.runnable_sum = avg.runnable_avg * divider;
        }
        // The unweighted share of the removed load, which the levels above must lose as well.
        let change = match form {
            PeltSums::Plain => -(removed.load_sum as i64),
            PeltSums::Synced | PeltSums::Floor32 | PeltSums::Floor => {
                -((removed.runnable_avg * divider) as i64) >> 10
            }
        };
        self.add_tg_cfs_propagate(cfs, change);
        true
    }

    /// Decays an entity and its queue, propagates group changes, attaches or detaches.
    ///
    /// Kernel: update_load_avg(), kernel/sched/fair.c, v6.12; enqueue_entity_load_avg() in v4.13.
    #[inline]
    pub fn update_load_avg(&mut self, cfs: CfsRqId, se: SeId, flags: UpdateFlags) {
        if !self.level(cfs, se).update_load_avg(se, flags) {
            self.update_load_avg_anywhere(cfs, se, flags);
        }
    }

    pub(crate) fn update_load_avg_anywhere(&mut self, cfs: CfsRqId, se: SeId, flags: UpdateFlags) {
        let scaled_clock = self.kernel.rules.pelt == PeltClock::ScaledClock;
        let Level { kernel, rq, queue, entity } = self.level(cfs, se);
        let now = queue.clock_pelt(rq);
        let attached = entity.avg.last_update_time != 0;
        let mut changed;
        if scaled_clock {
            if attached && !flags.skip_age {
                entity.age(kernel, now, queue.runs() == Some(se));
            }
            changed = if queue.removed.nr == 0 {
                queue.age(kernel, now)
            } else {
                self.update_cfs_rq_load_avg(now, cfs)
            };
        } else {
            if attached && !flags.skip_age {
                self.age_se_weighted(now, cfs, se);
            }
            changed = self.update_cfs_rq_load_avg(now, cfs);
        }
        if !se.is_task() {
            changed |= self.propagate_entity_load_avg(se);
        }
        if flags.do_attach && self.kernel.rules.pelt == PeltClock::InContribution {
            if changed && flags.update_tg {
                self.update_tg_load_avg(cfs);
            }
            let own = self.se(se).avg;
            let avg = &mut self.cfs_mut(cfs).avg;
            avg.runnable_load_avg += own.load_avg;
            avg.runnable_load_sum += own.load_sum;
            changed = false;
        }
        if !attached && flags.do_attach {
            self.attach_entity_load_avg(cfs, se);
            self.update_tg_load_avg(cfs);
        } else if flags.do_detach {
            self.detach_entity_load_avg(cfs, se);
            self.update_tg_load_avg(cfs);
        } else if changed && flags.update_tg {
            self.update_tg_load_avg(cfs);
        }
    }

    /// v4.13: an entity leaves the queue, so it no longer counts in the queued-only load.
    /// Call at dequeue after [`Sched::update_load_avg`]; later kernels have no such load.
    ///
    /// Kernel: dequeue_entity_load_avg(), kernel/sched/fair.c, v4.13.
    #[inline]
    pub fn dequeue_runnable_load_avg(&mut self, cfs: CfsRqId, se: SeId) {
        if self.kernel.rules.pelt == PeltClock::InContribution {
            let own = self.se(se).avg;
            let avg = &mut self.cfs_mut(cfs).avg;
            sub_positive(&mut avg.runnable_load_avg, own.load_avg);
            sub_positive(&mut avg.runnable_load_sum, own.load_sum);
        }
    }

    /// Adds an entity's load to its queue.
    ///
    /// Kernel: enqueue_load_avg(), kernel/sched/fair.c, v6.12.
    pub fn enqueue_load_avg(&mut self, cfs: CfsRqId, se: SeId) {
        let own = self.se(se).avg;
        let sum = self.scale_load_down(self.se(se).load.weight) * own.load_sum;
        let form = self.kernel.rules.pelt_sums;
        let avg = &mut self.cfs_mut(cfs).avg;
        avg.load_avg += own.load_avg;
        avg.load_sum += sum;
        if form == PeltSums::Floor {
            raise(form, avg.load_avg, &mut avg.load_sum);
        }
    }

    /// Subtracts an entity's load from its queue.
    ///
    /// Kernel: dequeue_load_avg(), kernel/sched/fair.c, v6.12.
    pub fn dequeue_load_avg(&mut self, cfs: CfsRqId, se: SeId) {
        let own = self.se(se).avg;
        let sum = self.scale_load_down(self.se(se).load.weight) * own.load_sum;
        let form = self.kernel.rules.pelt_sums;
        let avg = &mut self.cfs_mut(cfs).avg;
        adjust(form, &mut avg.load_avg, &mut avg.load_sum, -(own.load_avg as i64), -(sum as i64));
    }

    /// Changes an entity's weight and adjusts its average and its queue's. In v4.13 averages keep the weight they were
    /// collected with.
    ///
    /// Kernel: reweight_entity(), kernel/sched/fair.c, v6.12: the part about averages.
    pub fn reweight_load_avg(&mut self, cfs: CfsRqId, se: SeId, set_weight: impl FnOnce(&mut crate::Entity)) {
        if self.kernel.rules.pelt == PeltClock::InContribution {
            set_weight(self.se_mut(se));
            return;
        }
        self.dequeue_load_avg(cfs, se);
        set_weight(self.se_mut(se));
        let weight = self.scale_load_down(self.se(se).load.weight);
        let avg = &mut self.se_mut(se).avg;
        avg.load_avg = weight * avg.load_sum / avg.divider();
        self.enqueue_load_avg(cfs, se);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    use crate::drawing::{NOW, by_kernel, draw};
    use crate::lab::Lab;
    use crate::{SchedAvg, SeId, UpdateFlags};

    /// Load, its sum, runnable, its sum, utilisation, its sum: of the queue, then of the entity;
    /// queued-only load of the queue and its sum (v4.13).
    type Row = [u64; 14];

    fn row(queue: &SchedAvg, own: &SchedAvg) -> Row {
        let six =
            |a: &SchedAvg| [a.load_avg, a.load_sum, a.runnable_avg, a.runnable_sum, a.util_avg, a.util_sum];
        let [a, b, c, d, e, f] = six(queue);
        let [g, h, i, j, k, l] = six(own);
        [a, b, c, d, e, f, g, h, i, j, k, l, queue.runnable_load_avg, queue.runnable_load_sum]
    }

    /// Two tasks; one is decayed, the other detached, attached again, and leaves asleep. The numbers come from a
    /// separate calculation by the formulas of each kernel.
    #[test]
    fn averages_follow_arrivals_and_departures_to_the_last_bit() {
        for (kernel, expected) in EXPECTED {
            let mut drawn = draw(kernel, "1x1x2 | 0[a* b] 1[]");
            let [a, b] = ["a", "b"].map(|name| SeId(drawn.task(name).0));
            let sched = &mut drawn.sched;
            let (cpu, cfs) = (CpuId(0), sched.root_cfs_id(CpuId(0)));
            let mut found: [Row; 4] = [[0; 14]; 4];
            let mut now = NOW.0 + 5_000_000;
            sched.update_rq_clock(cpu, Time(now));
            sched.update_load_avg(cfs, a, UpdateFlags::UPDATE_TG);
            found[0] = row(&sched.cfs(cfs).avg, &sched.se(a).avg);

            now += 3_300_000;
            sched.update_rq_clock(cpu, Time(now));
            sched.update_load_avg(cfs, b, UpdateFlags::MIGRATE);
            found[1] = row(&sched.cfs(cfs).avg, &sched.se(b).avg);

            now += 1_000_000;
            sched.update_rq_clock(cpu, Time(now));
            sched.se_mut(b).avg.last_update_time = 0;
            sched.update_load_avg(cfs, b, UpdateFlags::ENQUEUE);
            found[2] = row(&sched.cfs(cfs).avg, &sched.se(b).avg);

            now += 7_777_777;
            sched.update_rq_clock(cpu, Time(now));
            sched.se_mut(b).on_rq = false;
            sched.remove_entity_load_avg(b);
            now += 2_000_000;
            sched.update_rq_clock(cpu, Time(now));
            sched.update_load_avg(cfs, a, UpdateFlags::UPDATE_TG);
            found[3] = row(&sched.cfs(cfs).avg, &sched.se(a).avg);

            let weighted = kernel == "v4.13";
            for (step, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let columns = if weighted { 14 } else { 12 };
                assert_eq!(found[..columns], expected[..columns], "{kernel}, step {step}");
            }
        }
    }

    #[test]
    fn loads_are_foreseen_as_an_update_makes_them() {
        for kernel in ["v5.18", "v6.12", "v7.2"] {
            let mut lab = Lab::new(&alloc::format!("{kernel}+NO_HRTICK"), "1x1x1").without_ticks();
            let tasks = [lab.nice_hog("a", 0, 0), lab.nice_hog("b", 0, 5)];
            lab.run(7 * crate::lab::MS);
            let waits =
                tasks.into_iter().find(|&task| lab.sched.rqs[CpuId(0)].curr != crate::Curr::Task(task));
            let se = SeId(waits.unwrap().0);
            lab.sched.task_mut(waits.unwrap()).se.avg.load_sum /= 2;
            let now = schedlab_units::Time(lab.time().0 + 9 * crate::lab::MS);
            let foreseen = lab.sched.aged_loads(se, now);
            let before = lab.sched.se(se).avg.load_avg;
            lab.sched.update_rq_clock(CpuId(0), now);
            let cfs = lab.sched.cfs_rq_of(se);
            lab.sched.update_load_avg(cfs, se, UpdateFlags::NONE);
            let after = lab.sched.se(se).avg.load_avg;
            assert_eq!(foreseen, (after, lab.sched.cfs(cfs).avg.load_avg), "{kernel}");
            assert_ne!(before, after, "{kernel}");
        }
    }

    #[test]
    fn a_sum_of_heavy_tasks_is_cut_off_in_32_bits() {
        let detach = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[a* b c] 1[]");
            let [a, b, c] = ["a", "b", "c"].map(|name| SeId(drawn.task(name).0));
            let sched = &mut drawn.sched;
            let cfs = sched.root_cfs_id(CpuId(0));
            for se in [a, b, c] {
                sched.reweight_load_avg(cfs, se, |entity| entity.load.weight = 88761 << 10);
            }
            let before = sched.cfs(cfs).avg.load_sum;
            sched.detach_entity_load_avg(cfs, b);
            alloc::format!("{before} -> {}", sched.cfs(cfs).avg.load_sum)
        };
        expect![[r#"
            v4.13: 146663424 -> 97775616
            v5.5: 12642850557 -> 8428567038
            v5.18..v6.12: 8347883261 -> 4133599742
            v7.2..v7.3: 12642850557 -> 8428567038"#]]
        .assert_eq(&by_kernel("", detach));
    }

    #[test]
    fn a_new_task_starts_with_its_share_of_what_is_left() {
        let start = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[a* ;load=1024 util=100] 1[]");
            let b = drawn.make("b", CpuId(0));
            let c = drawn.make("c", CpuId(1));
            drawn.sched.post_init_entity_util_avg(b);
            drawn.sched.post_init_entity_util_avg(c);
            let avg = |task| drawn.sched.task(task).se.avg;
            alloc::format!(
                "{}, alone {}; attached {}",
                avg(b).util_avg,
                avg(c).util_avg,
                avg(b).last_update_time != 0
            )
        };
        expect![[r#"
            v4.13..v5.18: 462, alone 512; attached true
            v6.1..v6.3: 462, alone 512; attached false
            v6.10..v7.3: 99, alone 512; attached false"#]]
        .assert_eq(&by_kernel("", start));
    }

    #[test]
    fn a_task_that_leaves_an_idle_cpu_is_aged_by_what_the_cpu_slept() {
        let leave = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[a*] 1[]");
            let a = drawn.task("a");
            let sched = &mut drawn.sched;
            sched.task_mut(a).se.avg.util_avg = 800;
            sched.task_mut(a).se.avg.util_sum = 800 * 47000;
            let asleep = Time(NOW.0 + 1_000_000);
            sched.schedule(CpuId(0), crate::Deactivate::Sleep(crate::TaskState::Interruptible), asleep);
            sched.finish_task_switch(a);
            sched.migrate_load_avg(a, false, Time(asleep.0 + 33_554_432));
            let avg = sched.task(a).se.avg;
            alloc::format!("util {} attached {}", avg.util_avg, avg.last_update_time != 0)
        };
        expect![[r#"
            v4.13: util 792 attached false
            v5.5..v5.18: util 796 attached false
            v6.1..v7.3: util 398 attached false"#]]
        .assert_eq(&by_kernel("", leave));
    }

    #[test]
    fn what_a_sleeper_leaves_on_its_cpu_stays_and_what_a_dead_task_leaves_goes() {
        let after = |how: crate::Deactivate| {
            move |kernel: &str| {
                let mut drawn = draw(kernel, "1x1x2 | 0[;load=0 util=0] 1[]");
                let a = drawn.make("a", CpuId(0));
                let sched = &mut drawn.sched;
                sched.apply_fork(a, CpuId(0), NOW);
                let at = |us: u64| Time(NOW.0 + us * 1000);
                sched.schedule(CpuId(0), crate::Deactivate::Yielded, at(10));
                let ran = sched.cpu_util(CpuId(0));
                sched.schedule(CpuId(0), how, at(3000));
                sched.finish_task_switch(a);
                sched.update_blocked_averages(CpuId(0), at(5000));
                alloc::format!("{ran} -> {}", sched.cpu_util(CpuId(0)))
            }
        };
        let sleep = crate::Deactivate::Sleep(crate::TaskState::Interruptible);
        expect![[r#"
            v4.13: 512 -> 523
            v5.5..v7.3: 512 -> 520"#]]
        .assert_eq(&by_kernel("", after(sleep)));
        expect!["v4.13..v7.3: 512 -> 0"].assert_eq(&by_kernel("", after(crate::Deactivate::Exit)));
    }

    const EXPECTED: [(&str, [Row; 4]); 4] = [
        (
            "v4.13",
            [
                [2058, 97233920, 0, 0, 100, 4747264, 1024, 48643584, 0, 0, 100, 4773888, 2058, 97233920],
                [1033, 48714462, 0, 0, 161, 7646536, 1024, 48797774, 0, 0, 0, 0, 2057, 97512236],
                [2072, 98452897, 0, 0, 179, 8474942, 1024, 48797774, 0, 0, 0, 0, 3081, 146205035],
                [1229, 58640472, 0, 0, 333, 15901073, 1024, 48041170, 0, 0, 333, 15647213, 2897, 138163332],
            ],
        ),
        (
            "v5.5",
            [
                [2048, 96750583, 0, 0, 100, 4747264, 1024, 47241, 0, 0, 100, 4747264, 2048, 0],
                [1025, 48530925, 0, 0, 161, 7646536, 1023, 47391, 0, 0, 0, 0, 2048, 0],
                [2067, 97908671, 0, 0, 179, 8474942, 1023, 47298, 0, 0, 0, 0, 2048, 0],
                [1228, 58566122, 0, 0, 333, 15901073, 1024, 47677, 0, 0, 333, 15900920, 2048, 0],
            ],
        ),
        (
            "v6.12",
            [
                [
                    2048, 96750583, 200, 9494528, 100, 4747264, 1024, 47241, 100, 4747264, 100, 4747264,
                    2048, 0,
                ],
                [1025, 48530925, 161, 7646864, 161, 7646536, 1023, 47391, 161, 7646208, 0, 0, 2048, 0],
                [2067, 97908671, 360, 17090064, 179, 8474942, 1023, 47298, 161, 7622545, 0, 0, 2048, 0],
                [
                    1228, 58566122, 537, 25645074, 333, 15901073, 1024, 47677, 333, 15900920, 333, 15900920,
                    2048, 0,
                ],
            ],
        ),
        (
            "v7.2",
            [
                [
                    2048, 96750583, 200, 9494528, 100, 4747264, 1024, 47241, 100, 4747264, 100, 4747264,
                    2048, 0,
                ],
                [1025, 48530925, 161, 7646864, 161, 7646536, 1023, 47391, 161, 7646208, 0, 0, 2048, 0],
                [2067, 97908671, 360, 17090064, 179, 8474942, 1023, 47298, 161, 7622545, 0, 0, 2048, 0],
                [
                    1228, 58566122, 537, 25645074, 333, 15901073, 1024, 47677, 333, 15900920, 333, 15900920,
                    2048, 0,
                ],
            ],
        ),
    ];

    #[test]
    fn a_weight_above_zero_counts_at_least_two() {
        let weights = |kernel: &str| {
            let drawn = draw(kernel, "1x1x2 | 0[]");
            let scaled = [0, 2, 1024, 2048, 15 << 10].map(|weight| drawn.sched.scale_load_down(weight));
            alloc::format!("{scaled:?}")
        };
        expect![[r#"
            v4.13..v5.5: [0, 0, 1, 2, 15]
            v5.18..v7.3: [0, 2, 2, 2, 15]"#]]
        .assert_eq(&by_kernel("", weights));
    }
}
