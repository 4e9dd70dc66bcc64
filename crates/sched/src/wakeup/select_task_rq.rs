//! Chooses a CPU for a task that wakes, is forked or executes another program.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::class::Class;
use crate::{
    Candidate, Feature, Placement, Reason, RecentUsedCpu, Refused, Sched, SdFlags, SdId, SeId, View,
};

use super::wake_affine::wake_affine;
use super::wake_cap::wake_cap;
use super::wake_wide::wake_wide;
use super::{Wakeup, find_idlest_cpu, select_idle_sibling};

use alloc::vec::Vec;
use core::cell::RefCell;

impl View<'_> {
    /// A CPU for a task that `this` forked; [`View::leans`] says what that depends on.
    pub fn decide_fork(&self, task: TaskId, this: CpuId) -> Placement {
        self.sched.placed(task, this, |prev| select_slow(self, task, this, prev, SdFlags::BALANCE_FORK))
    }

    /// A CPU for a running task that executes another program; its own to stay.
    pub fn decide_exec(&self, task: TaskId) -> Placement {
        let sched = self.sched;
        let this = sched.task(task).cpu;
        if sched.class_of(task) != Class::Fair {
            return Placement::new(this, Reason::KeepCpu);
        }
        let placement = select_slow(self, task, this, this, SdFlags::BALANCE_EXEC);
        if sched.rqs[placement.cpu].active { placement } else { Placement::new(this, Reason::StayLocal) }
    }
}

impl Sched {
    /// A CPU for a task that wakes.
    ///
    /// Kernel: select_task_rq(), kernel/sched/core.c, v6.12.
    pub(super) fn select_task_rq(&self, view: &View, wakeup: &Wakeup) -> Placement {
        self.placed(wakeup.task, wakeup.this_cpu, |prev| select_task_rq_fair(view, wakeup, prev))
    }

    /// A CPU for a task that `this` forked.
    ///
    /// Kernel: wake_up_new_task(), kernel/sched/core.c, v6.12.
    pub fn decide_fork(
        &self,
        task: TaskId,
        this: CpuId,
        now: Time,
        passed_over: Option<&RefCell<Vec<Candidate>>>,
    ) -> Placement {
        View::new(self, now, passed_over).decide_fork(task, this)
    }

    /// Updates the average of a running task before [`Sched::decide_exec`]. The call is meant for sleeping tasks: the
    /// time since the queue's last update counts as sleep.
    ///
    /// Kernel: find_idlest_cpu(), kernel/sched/fair.c, v4.15, v6.12.
    pub fn sync_exec(&mut self, task: TaskId) {
        let p = self.task(task);
        let looks = self.class_of(task) == Class::Fair && self.kernel.has(Feature::SyncBeforeSlow);
        let top = top_domain(self, p.cpu, SdFlags::BALANCE_EXEC);
        if looks && top.is_some_and(|top| self.domains.sd(top).span.intersects(&p.allowed)) {
            self.sync_entity_load_avg(SeId(task.0));
        }
    }

    /// A CPU for a running task that executes another program; its own to stay. Only the fair class looks for
    /// another one. [`Sched::sync_exec`] comes first.
    ///
    /// Kernel: sched_exec(), kernel/sched/core.c, select_task_rq_rt(), select_task_rq_dl(), v6.1, v6.12.
    pub fn decide_exec(
        &self,
        task: TaskId,
        now: Time,
        passed_over: Option<&RefCell<Vec<Candidate>>>,
    ) -> Placement {
        View::new(self, now, passed_over).decide_exec(task)
    }

    /// Asks the task's class if the task has a choice, and replaces an invalid answer.
    fn placed(&self, task: TaskId, this: CpuId, fair: impl FnOnce(CpuId) -> Placement) -> Placement {
        let p = self.task(task);
        let placement = if p.nr_cpus_allowed <= 1 {
            Placement::new(p.allowed.first().unwrap_or(p.cpu), Reason::OnlyAllowed)
        } else {
            match self.class_of(task) {
                Class::Fair => fair(p.wake_cpu),
                Class::Rt => self.select_task_rq_rt(task, this),
                Class::Dl => self.select_task_rq_dl(task, this),
                Class::Stop | Class::Idle => Placement::new(p.wake_cpu, Reason::KeepCpu),
            }
        };
        self.or_fallback(task, placement)
    }

    /// The answer of a task's class, or the fallback if the task may not run there.
    ///
    /// Kernel: select_task_rq(), kernel/sched/core.c, v6.12.
    pub fn or_fallback(&self, task: TaskId, mut placement: Placement) -> Placement {
        if !self.is_cpu_allowed(task, placement.cpu) {
            placement.cpu = self.select_fallback_rq(task);
            placement.reason = Reason::Fallback;
        }
        placement
    }

    /// Whether a task may use a CPU, and the CPU is online.
    ///
    /// Kernel: is_cpu_allowed(), kernel/sched/core.c, v6.12.
    pub fn is_cpu_allowed(&self, task: TaskId, cpu: CpuId) -> bool {
        let p = self.task(task);
        let rq = &self.rqs[cpu];
        p.allowed.contains(cpu) && if p.kthread_is_per_cpu() { rq.online } else { rq.active }
    }

    /// The first possible CPU, preferably of the task's node. A task without any online CPU moves to the
    /// first one, and may run anywhere from then on (`widen_affinity()`).
    ///
    /// Kernel: select_fallback_rq(), kernel/sched/core.c, v6.12.
    pub fn select_fallback_rq(&self, task: TaskId) -> CpuId {
        let p = self.task(task);
        let node = self.topology.node_mask(self.topology.cpu(p.cpu).node);
        let fits = |&cpu: &CpuId| self.is_cpu_allowed(task, cpu);
        node.iter()
            .find(fits)
            .or_else(|| p.allowed.iter().find(fits))
            .or_else(|| self.rqs.iter().find(|(_, rq)| rq.active).map(|(cpu, _)| cpu))
            .unwrap_or(p.cpu)
    }
}

/// A CPU for a fair task that wakes; `prev` is where it ran last.
///
/// Kernel: select_task_rq_fair(), kernel/sched/fair.c, v4.13, v5.5, v5.18, v7.2. Energy-aware
/// placement is left out.
pub fn select_task_rq_fair(view: &View, wakeup: &Wakeup, prev: CpuId) -> Placement {
    let (sched, kernel) = (view.sched, view.kernel());
    let this = wakeup.this_cpu;
    let allowed = &sched.task(wakeup.task).allowed;
    if wakeup.current_cpu && kernel.has(Feature::CurrentCpuFlag) && allowed.contains(this) {
        return Placement::new(this, Reason::CurrentCpu);
    }
    let wide = wake_wide(view, wakeup);
    let want_affine = !wide && !wake_cap(view, wakeup.task, this, prev) && allowed.contains(this);
    let exiting = wakeup.waker(view).is_some_and(|waker| waker.exiting);
    let sync = wakeup.sync && !(exiting && kernel.has(Feature::SyncWakerExiting));

    let mut affine = (if wide { Reason::WakeWide } else { Reason::NoAffine }, prev);
    let mut slow: Option<SdId> = None;
    for (id, sd) in sched.domains.walk(this) {
        if want_affine && sd.flags.has(SdFlags::WAKE_AFFINE) && sd.span.contains(prev) {
            if this != prev {
                let answer = wake_affine(view, wakeup, sd, prev, sync);
                affine = (answer.reason, answer.cpu);
            }
            slow = None;
            break;
        }
        if sd.flags.has(SdFlags::BALANCE_WAKE) {
            slow = Some(id);
        } else if !want_affine {
            break;
        }
    }
    let affine_number = view.take_number();
    if !allowed.contains(this) {
        view.refuse(this, Refused::NotAllowed);
    }
    let mut placement = match slow {
        Some(top) => find_idlest_cpu(view, wakeup.task, top, this, prev, SdFlags::BALANCE_WAKE),
        None => {
            let mut placement = select_idle_sibling(view, wakeup, prev, affine.1);
            if want_affine && kernel.rules.recent_used_cpu == RecentUsedCpu::Waker {
                placement.waker_recent_used_cpu = Some(this);
            }
            placement
        }
    };
    placement.affine = Some(affine);
    placement.affine_number = affine_number;
    placement
}

/// The slow path of fork and exec, from the highest domain that takes part.
fn select_slow(view: &View, task: TaskId, this: CpuId, prev: CpuId, flag: SdFlags) -> Placement {
    match top_domain(view.sched, this, flag) {
        Some(top) => find_idlest_cpu(view, task, top, this, prev, flag),
        None => Placement::new(prev, Reason::NoForkDomain),
    }
}

/// The highest domain that takes part; the first one without the flag ends the walk.
pub(super) fn top_domain(sched: &Sched, this: CpuId, flag: SdFlags) -> Option<SdId> {
    sched.domains.walk(this).take_while(|(_, sd)| sd.flags.has(flag)).last().map(|(id, _)| id)
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::sync::Arc;

    use expect_test::expect;
    use schedlab_topology::{CpuId, CpuMask};

    use crate::drawing::{NOW, by_kernel, draw};
    use crate::lab::{Lab, MS, Random};
    use crate::{Curr, NewTask, PRESETS, Policy, Wakeup};

    #[test]
    fn only_fair_tasks_look_for_a_cpu_when_they_execute_another_program() {
        let goes = |policy| {
            by_kernel("", move |kernel| {
                let mut lab = Lab::new(kernel, "1x1x4");
                let [running, _] = ["running", "waits"].map(|name| {
                    let policy = if name == "running" { policy } else { Policy::Normal };
                    lab.fork(name, 0, NewTask { policy, ..lab.spec() })
                });
                let placement = lab.sched.decide_exec(running, lab.time(), None);
                format!("cpu {}, {}", placement.cpu.0, placement.reason.name())
            })
        };
        let deadline = Policy::Deadline { runtime: MS, deadline: 10 * MS, period: 10 * MS };
        expect!["v4.13..v7.3: cpu 0, KEEP_CPU"].assert_eq(&goes(Policy::Fifo(10)));
        expect!["v4.13..v7.3: cpu 0, KEEP_CPU"].assert_eq(&goes(deadline));
        expect![[r#"
            v4.13: cpu 0, STAY_LOCAL
            v5.5..v7.3: cpu 1, IDLEST_ONLY"#]]
        .assert_eq(&goes(Policy::Normal));
    }

    #[test]
    fn the_time_since_its_queue_was_updated_counts_as_slept_when_a_task_calls_exec() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2");
            let running = lab.hog("running", 0);
            lab.run(3 * MS);
            let load = |lab: &Lab| lab.sched.task(running).se.avg.load_avg;
            let before = load(&lab);
            // As after an enqueue: it updates the queue, but not the average of the running task.
            lab.sched.cfs_rqs[0].avg.last_update_time += 3 * MS;
            lab.sched.sync_exec(running);
            format!("{} lost", before as i64 - load(&lab) as i64)
        });
        expect![[r#"
            v4.13: 0 lost
            v5.5..v7.3: 62 lost"#]]
        .assert_eq(&found);
    }

    /// Whatever the state: the answer is a CPU the task may use, and the same when asked again.
    #[test]
    fn whatever_the_state_the_cpu_is_allowed() {
        let machines = [
            "2x2x2x2",
            "1x1x8:cluster=4",
            "4x1x2:distance=10/20/30/20:20/10/20/30:30/20/10/20:20/30/20/10",
            "1x2x2:capacity=0-1/400",
            "2x1x2:offline=3",
        ];
        let mut random = Random(0x9E37_79B9);
        for preset in PRESETS {
            for machine in machines {
                for features in ["", "+SIS_CAPACITY+FIC_CAPACITY"] {
                    let mut drawn =
                        draw(&alloc::format!("{preset}{features}"), &alloc::format!("{machine} | 0[a]"));
                    let nr_cpus = drawn.sched.rqs.len() as u64;
                    let online = drawn.sched.topology.online().clone();
                    let (waker, wakee) = (drawn.make("waker", CpuId(0)), drawn.make("wakee", CpuId(0)));
                    for _ in 0..200 {
                        for (_, rq) in drawn.sched.rqs.iter_mut() {
                            rq.curr = if random.below(2) == 0 { Curr::Idle } else { Curr::Task(waker) };
                            rq.nr_running = random.below(3) as u32;
                            rq.ttwu_pending = random.below(8) == 0;
                            rq.cpu_capacity = random.below(1024) + 1;
                            rq.idle_stamp = random.below(3);
                        }
                        let mut allowed =
                            CpuMask::of(nr_cpus as usize, online.iter().filter(|_| random.below(2) == 0));
                        let any = online.iter_wrap(random.below(nr_cpus) as usize).next().unwrap();
                        allowed.set(any);
                        let p = drawn.sched.task_mut(wakee);
                        p.nr_cpus_allowed = allowed.weight() as u32;
                        p.allowed = Arc::new(allowed);
                        p.wake_cpu = any;
                        p.recent_used_cpu = Some(CpuId(random.below(nr_cpus) as u16));
                        p.wakee_flips = random.below(20) as u32;
                        let this = online.iter_wrap(random.below(nr_cpus) as usize).next().unwrap();
                        let wakeup = Wakeup { sync: random.below(2) == 0, ..Wakeup::by(waker, this, wakee) };
                        let sched = &drawn.sched;
                        let decision = sched.decide_wakeup(&wakeup, NOW, None);
                        assert_eq!(decision, sched.decide_wakeup(&wakeup, NOW, None));
                        let fork = sched.decide_fork(wakee, this, NOW, None);
                        for cpu in [decision.cpu, fork.cpu] {
                            assert!(
                                sched.task(wakee).allowed.contains(cpu),
                                "{preset} {machine}: {decision:?} {fork:?}"
                            );
                            assert!(sched.rqs[cpu].active);
                        }
                    }
                }
            }
        }
    }
}
