//! The context switch: which task leaves, which is picked, and how it takes over.

use core::ops::ControlFlow;

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::class::Class;
use crate::{
    BalanceFair, BandwidthAtPick, CfsRqId, Curr, DequeueFlags, Feature, HrtickEnd, Reason, Sched, SeId,
    TaskState,
};

/// Why a CPU calls the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deactivate {
    /// Its current task is interrupted (from preemptible code).
    Preempted,
    /// Its current task calls the scheduler but can continue: at exit to user mode, in cond_resched(), after
    /// sched_yield(); or the CPU is idle.
    Yielded,
    /// Its current task goes to sleep in this state.
    Sleep(TaskState),
    /// Its current task ends.
    Exit,
}

/// What runs next, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The next task.
    pub next: Curr,
    /// The reason, at the level where the pick departs from the running task, or at the lowest level.
    pub reason: Reason,
    /// This entity was picked but is asleep: it must leave its queue, and the pick must be repeated.
    pub delayed: Option<SeId>,
}

/// The fair class has no task.
const NO_FAIR_TASK: Pick = Pick { next: Curr::Idle, reason: Reason::PickIdle, delayed: None };

/// What a context switch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switched {
    /// What ran.
    pub prev: Curr,
    /// What runs now.
    pub next: Curr,
    /// The reason.
    pub reason: Reason,
    /// The previous task went to sleep or ended.
    pub voluntary: bool,
    /// The previous task was interrupted.
    pub preempted: bool,
    /// The previous task sleeps but is still queued.
    pub delayed: bool,
}

impl Sched {
    /// Calls the scheduler on a CPU. When it returns, the next task runs; the previous
    /// one is still marked as on its CPU until the driver calls
    /// [`Sched::finish_task_switch`].
    ///
    /// Kernel: __schedule(), kernel/sched/core.c, v6.1, v6.12, v7.2.
    pub fn schedule(&mut self, cpu: CpuId, how: Deactivate, now: Time) -> Switched {
        let prev = self.rqs[cpu].curr;
        self.hrtick_schedule_enter(cpu);
        self.has_come(cpu);
        let clock = self.schedule_clock(cpu, now);
        self.update_rq_clock(cpu, clock);
        let leaves = prev.task().filter(|_| matches!(how, Deactivate::Sleep(_) | Deactivate::Exit));
        if let Some(task) = leaves {
            self.block_task(task, how, clock);
        }
        let reason = self.pick_and_switch(cpu, now);
        // The pick may have completed the dequeue that was delayed.
        let delayed = leaves.is_some_and(|task| self.task(task).se.sched_delayed);
        let next = self.rqs[cpu].curr;
        self.chosen(cpu, prev, next);
        self.rqs[cpu].push_queued = next != prev || !self.kernel.has(Feature::IdleShortcut);
        self.hrtick_schedule_exit(cpu);
        if next == Curr::Idle {
            // The idle loop comes after finish_task_switch(), which removes the averages of a task that has ended.
            if how == Deactivate::Exit
                && let Curr::Task(task) = prev
            {
                self.finish_task_switch(task);
            }
            self.nohz_run_idle_balance(cpu, now);
        }
        Switched {
            prev,
            next,
            reason,
            voluntary: leaves.is_some(),
            preempted: how == Deactivate::Preempted,
            delayed,
        }
    }

    /// A CPU that was about to go idle does not count as idle if it has something to run.
    ///
    /// Kernel: sched_balance_newidle(), kernel/sched/fair.c, v6.12.
    fn has_come(&mut self, cpu: CpuId) {
        let rq = &mut self.rqs[cpu];
        if rq.leaving.is_some() && rq.nr_running > 0 {
            (rq.leaving, rq.idle_stamp) = (None, 0);
        }
    }

    /// Once the switch is done: tasks that wait behind another task of their class are pushed, unless the running one
    /// was picked again and nothing was set.
    ///
    /// Kernel: __balance_callbacks(), kernel/sched/core.c, set_next_task_rt(), set_next_task_dl(), v6.12.
    pub fn balance_callbacks(&mut self, cpu: CpuId, now: Time) {
        if core::mem::take(&mut self.rqs[cpu].push_queued) {
            self.push_tasks(cpu, cpu, self.curr_class(cpu), now);
        }
    }

    /// A task is no longer on the CPU that switched away from it.
    ///
    /// Kernel: finish_task_switch(), kernel/sched/core.c, v6.12.
    pub fn finish_task_switch(&mut self, prev: TaskId) {
        let task = self.task_mut(prev);
        if !core::mem::take(&mut task.on_cpu) {
            return;
        }
        if task.state == TaskState::Dead && task.policy.is_fair() {
            self.task_dead_fair(prev);
        }
    }

    /// A task has ended: what it left in its queue's averages is removed.
    ///
    /// Kernel: task_dead_fair(), kernel/sched/fair.c, v6.1, v6.12.
    fn task_dead_fair(&mut self, task: TaskId) {
        if self.task(task).se.sched_delayed {
            self.dequeue_delayed(SeId(task.0));
        }
        self.remove_entity_load_avg(SeId(task.0));
    }

    /// Kernel: try_to_block_task(), block_task(), kernel/sched/core.c, v6.12.
    fn block_task(&mut self, task: TaskId, how: Deactivate, now: Time) {
        let special = how == Deactivate::Exit;
        let entry = self.task_mut(task);
        entry.state = match how {
            Deactivate::Sleep(state) => state,
            _ => TaskState::Dead,
        };
        if special {
            self.sched_cache_exit(task);
        }
        self.deactivate(task, DequeueFlags { sleep: true, special, ..DequeueFlags::default() }, now);
    }

    /// Picks until a task that can run is found, and switches to it. A CPU without such a task looks for work, and
    /// does so again if it pulled only delayed sleepers.
    ///
    /// Kernel: pick_next_task_fair(), kernel/sched/fair.c, v6.12.
    fn pick_and_switch(&mut self, cpu: CpuId, now: Time) -> Reason {
        let prev = self.rqs[cpu].curr;
        // The idle loop looks for no work beyond what it was given.
        if prev == Curr::Idle && self.rqs[cpu].nr_running == 0 && self.kernel.has(Feature::IdleShortcut) {
            self.rqs[cpu].next_class = Class::Idle;
            return Reason::PickIdle;
        }
        self.balance_prev(cpu, prev, now);
        // In v7.2 the pick of a fair task looks for work itself, also if a server makes it. Where all tasks are fair only that
        // class is asked, and a server that waits is left alone.
        let pick_looks = self.kernel.rules.balance_fair == BalanceFair::NoTask;
        let fair_only = pick_looks
            && matches!(self.class_of_curr(prev), Class::Fair | Class::Idle)
            && self.rqs[cpu].nr_running == self.root_cfs(cpu).h_nr_queued;
        let server_first = |sched: &Sched| !fair_only && sched.fair_server_first(cpu);
        let mut looks = self.balance_fair(cpu, prev, now);
        self.charge_before_pick(cpu);
        // In v7.2 a server that starts as the fair class looks for work is not asked any more.
        let mut server_picks = pick_looks && server_first(self);
        loop {
            if !pick_looks {
                server_picks = server_first(self);
            }
            // A group's entity that is asleep but still queued is picked first, and leaves; only then does the CPU
            // look for work.
            let empty = self.rqs[cpu].nr_running == 0 && self.root_cfs(cpu).nr_queued == 0;
            if empty && looks && !(pick_looks && server_picks) {
                looks = self.newidle_balance(cpu, now).pulled > 0;
                continue;
            }
            // The charge of the pick can use up what the server has left.
            let pick = self.choose(cpu);
            if pick.next == Curr::Idle && server_picks {
                if !pick_looks || self.newidle_balance(cpu, now).pulled == 0 {
                    self.fair_server_stop(cpu);
                    server_picks = false;
                }
                continue;
            }
            if pick.next == Curr::Idle && looks {
                looks = self.newidle_balance(cpu, now).pulled > 0;
                continue;
            }
            self.put_prev_set_next(cpu, prev, pick.next, server_picks);
            return pick.reason;
        }
    }

    /// A task of a higher class that leaves makes room for a task of its class, or of the next lower one, that waits
    /// elsewhere.
    ///
    /// Kernel: prev_balance(), kernel/sched/core.c; balance_dl(), balance_rt(), v6.1, v6.12.
    fn balance_prev(&mut self, cpu: CpuId, prev: Curr, now: Time) {
        let Curr::Task(task) = prev else { return };
        let class = self.class_of(task);
        if class <= Class::Fair || self.rqs[cpu].stop.is_some() {
            return;
        }
        if class == Class::Dl && !self.rqs[cpu].dl_queue.contains(&task) {
            self.pull_tasks(cpu, Class::Dl, now);
        }
        let rq = &self.rqs[cpu];
        let asks_rt = class == Class::Rt || !rq.dl_runnable();
        if asks_rt && !rq.rt_queue.contains(&task) && self.need_pull_rt_task(cpu, task) {
            self.pull_tasks(cpu, Class::Rt, now);
        }
    }

    /// Picks what runs next, without switching to it. Sleepers that are still queued leave when they are picked. The
    /// CPU's clock must be up to date.
    ///
    /// Kernel: __pick_next_task(), kernel/sched/core.c; pick_task_fair(), kernel/sched/fair.c, v6.12.
    pub fn choose_next(&mut self, cpu: CpuId) -> Pick {
        loop {
            let server_picks = self.fair_server_first(cpu);
            let pick = self.choose(cpu);
            if pick.next != Curr::Idle || !server_picks {
                return pick;
            }
            self.fair_server_stop(cpu);
        }
    }

    /// The same, if a fair server without tasks does not stop. It is picked if it is the first of its class.
    fn choose(&mut self, cpu: CpuId) -> Pick {
        if let Some(task) = self.pick_higher_class(cpu) {
            return Pick { next: Curr::Task(task), reason: Reason::PickClass, delayed: None };
        }
        loop {
            let pick = self.charge_and_pick(cpu);
            let Some(se) = pick.delayed else { return pick };
            self.dequeue_delayed(se);
        }
    }

    /// A sleeper that is still queued leaves its queue.
    pub(crate) fn dequeue_delayed(&mut self, se: SeId) {
        let flags = DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() };
        self.dequeue_entities(se, flags);
    }

    /// A task that sleeps but is still queued leaves, as in the recording.
    pub fn complete_delayed_dequeue(&mut self, task: TaskId, now: Time) {
        self.update_rq_clock(self.task(task).cpu, now);
        self.dequeue_delayed(SeId(task.0));
    }

    /// What a CPU runs next of the fair class. On the way down each level is charged before it is picked from, and not
    /// earlier: a running entity whose slice is used up is no longer preferred, nor are those above it, which then have been
    /// picked. The running entities of other levels are charged when they are put back.
    ///
    /// Queues without quota on the way are throttled, and the pick starts again. Up to v6.11 only queues that have a
    /// running entity are checked. Queues of the running task that are not on the way are throttled when that task is put
    /// back: up to v6.11 before the pick starts again, so that then all its levels are set.
    ///
    /// Kernel: pick_task_fair(), kernel/sched/fair.c, v6.12; pick_next_task_fair(), v6.1.
    fn charge_and_pick(&mut self, cpu: CpuId) -> Pick {
        let root = self.root_cfs_id(cpu);
        if self.is_flat() {
            if self.queued_curr(root).is_some() {
                self.update_curr_line(root);
            }
            return self.pick_task_fair(cpu);
        }
        let checks = self.bandwidth_used && !self.kernel.has(Feature::BandwidthPerTask);
        let asks_all = self.kernel.rules.bandwidth_at_pick != BandwidthAtPick::Never;
        let (mut level, mut parted) = (root, None);
        while self.cfs(root).nr_queued > 0 {
            let queue = self.cfs(level);
            let asked = checks && (asks_all || queue.curr.is_some());
            if self.queued_curr(level).is_some() {
                self.update_curr(level);
            }
            if asked && self.check_cfs_rq_runtime(level) {
                if !asks_all && self.cfs(root).nr_queued > 0 {
                    self.put_prev(cpu);
                    self.rqs[cpu].put_back = true;
                }
                (level, parted) = (root, None);
                continue;
            }
            match self.pick_level(level, &mut parted) {
                ControlFlow::Continue(below) => level = below,
                ControlFlow::Break(pick) => return pick,
            }
        }
        NO_FAIR_TASK
    }

    /// What a CPU runs next. Running entities must have been charged up to now.
    ///
    /// Kernel: __pick_next_task(), pick_task_fair(), kernel/sched/core.c and fair.c, v6.12.
    pub fn pick_next_task(&self, cpu: CpuId) -> Pick {
        let first = self.pick_higher_class(cpu);
        let pick = match first {
            Some(task) => Pick { next: Curr::Task(task), reason: Reason::PickClass, delayed: None },
            None => self.pick_task_fair(cpu),
        };
        let rq = &self.rqs[cpu];
        match rq.pick_task_dl().or_else(|| rq.pick_task_rt()) {
            // A server without tasks stops.
            Some(task) if pick == NO_FAIR_TASK => {
                Pick { next: Curr::Task(task), reason: Reason::PickClass, delayed: None }
            }
            _ => pick,
        }
    }

    /// The task of a higher class than the fair one that a CPU runs next.
    #[inline]
    fn pick_higher_class(&self, cpu: CpuId) -> Option<TaskId> {
        let rq = &self.rqs[cpu];
        if rq.stop.is_none() && self.fair_server_first(cpu) {
            return None;
        }
        rq.stop.or_else(|| rq.pick_task_dl()).or_else(|| rq.pick_task_rt())
    }

    #[inline]
    fn pick_task_fair(&self, cpu: CpuId) -> Pick {
        let (mut level, mut parted) = (self.root_cfs_id(cpu), None);
        if self.cfs(level).nr_queued == 0 {
            return NO_FAIR_TASK;
        }
        loop {
            match self.pick_level(level, &mut parted) {
                ControlFlow::Continue(below) => level = below,
                ControlFlow::Break(pick) => return pick,
            }
        }
    }

    /// One level of a pick: leads to the queue below, or ends it. `parted` is the reason at the level where it left the
    /// running task.
    #[inline]
    fn pick_level(&self, level: CfsRqId, parted: &mut Option<Reason>) -> ControlFlow<Pick, CfsRqId> {
        let (se, reason) = self.pick_entity(level);
        if self.cfs(level).curr != Some(se) {
            *parted = parted.or(Some(reason));
        }
        let reason = parted.unwrap_or(reason);
        let entity = self.se(se);
        if entity.sched_delayed {
            return ControlFlow::Break(Pick { next: Curr::Idle, reason, delayed: Some(se) });
        }
        match entity.my_q {
            Some(below) => ControlFlow::Continue(below),
            None => ControlFlow::Break(Pick { next: Curr::Task(TaskId(se.0)), reason, delayed: None }),
        }
    }

    /// Which entity of a queue runs next, and why.
    ///
    /// Kernel: pick_next_entity(), kernel/sched/fair.c, v6.1, v6.12.
    #[inline]
    fn pick_entity(&self, cfs: CfsRqId) -> (SeId, Reason) {
        if self.is_eevdf() { self.pick_eevdf_next(cfs) } else { self.pick_cfs(cfs, self.queued_curr(cfs)) }
    }

    /// Switches a CPU to what a recorded kernel picked.
    pub fn switch_to(&mut self, cpu: CpuId, next: Curr, now: Time) {
        self.clear_hrtick(cpu);
        self.update_rq_clock(cpu, now);
        let prev = self.rqs[cpu].curr;
        self.put_prev_set_next(cpu, prev, next, self.fair_server_first(cpu));
        self.chosen(cpu, prev, next);
        if self.kernel.rules.hrtick_end == HrtickEnd::Deadline {
            self.stop_hrtick(cpu);
        }
    }

    /// The pending request to the scheduler has been served.
    ///
    /// Kernel: __schedule(), kernel/sched/core.c, v6.1, v6.12.
    fn chosen(&mut self, cpu: CpuId, prev: Curr, next: Curr) {
        let keeps_skip = self.kernel.has(Feature::ClockSkipKept);
        let rq = &mut self.rqs[cpu];
        rq.need_resched = crate::NeedResched::default();
        rq.skip_clock_update &= keeps_skip;
        if next != prev {
            rq.nr_switches += 1;
            if let Curr::Task(task) = next {
                self.task_mut(task).on_cpu = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use expect_test::expect;
    use schedlab_topology::CpuId;
    use schedlab_units::Duration;

    use super::*;
    use crate::drawing::{NOW, by_kernel, draw};
    use crate::lab::{Lab, MS};
    use crate::{EnqueueFlags, MigrationCause, NICE_0_LOAD, NewTask, Policy, ServerState, TgId};

    #[test]
    fn a_pick_that_throttles_sets_all_levels_or_those_that_differ() {
        let next = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
            let above = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), lab.time());
            let limited = lab.sched.new_group(above, 100 * NICE_0_LOAD, CpuId(0), lab.time());
            lab.sched.set_bandwidth(limited, Some(2 * MS), 100 * MS, 0, lab.time());
            lab.fork("limited", 0, NewTask { tg: limited, ..lab.spec() });
            lab.fork("free", 0, NewTask { tg: above, nice: 19, ..lab.spec() });
            let root = lab.sched.root_cfs_id(CpuId(0));
            let (_, entity) = lab.sched.made_on_cpu(above, CpuId(0));
            lab.sched.cfs_mut(root).next = entity.filter(|_| !lab.sched.is_flat());
            let before = alloc::string::String::from(lab.running(0));
            lab.now += 3 * MS;
            lab.sched.schedule(CpuId(0), Deactivate::Preempted, lab.time());
            let marked = lab.sched.cfs(root).next.is_some();
            alloc::format!("{before}, then {}, next {marked}", lab.running(0))
        };
        expect![[r#"
            v4.13..v6.3: limited, then free, next false
            v6.10..v7.2: limited, then free, next true
            v7.3: limited, then free, next false"#]]
        .assert_eq(&by_kernel("", next));
    }

    /// Group `g` is preferred, and so is `h` in it, whose slice is used up while that of `g` is not. `b` is owed as much as
    /// `g` and has the earlier deadline.
    #[test]
    fn a_group_is_picked_as_preferred_before_the_slice_of_what_it_runs_is_checked() {
        let next = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
            let g = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), lab.time());
            let h = lab.sched.new_group(g, NICE_0_LOAD, CpuId(0), lab.time());
            let b = SeId(lab.hog("b", 0).0);
            for (name, tg) in [("also in g", g), ("a", h)] {
                let task = lab.fork(name, 0, NewTask { tg, ..lab.spec() });
                lab.sched.switch_to(CpuId(0), Curr::Task(task), lab.time());
            }
            let root = lab.sched.root_cfs_id(CpuId(0));
            let [(queue, of_g), (_, of_h)] = [g, h].map(|tg| lab.sched.made_on_cpu(tg, CpuId(0)));
            let preferred = |se: Option<SeId>| se.filter(|_| !lab.sched.is_flat());
            let (of_g, of_h) = (preferred(of_g), preferred(of_h));
            (lab.sched.cfs_mut(root).next, lab.sched.cfs_mut(queue).next) = (of_g, of_h);
            let (Some(of_g), Some(of_h)) = (of_g, of_h) else { return "-".to_string() };
            let ran = MS / 2;
            let entity = lab.sched.se_mut(of_h);
            entity.deadline = entity.vruntime + ran;
            let meets = lab.sched.se(of_g).vruntime + ran;
            lab.sched.set_virtual_time(b, meets, meets + 1);
            lab.now += ran;
            lab.sched.schedule(CpuId(0), Deactivate::Preempted, lab.time());
            alloc::format!("{}, {} is preferred", lab.running(0), lab.sched.cfs(root).next.is_some())
        };
        expect![[r#"
            v4.13..v5.5: a, false is preferred
            v5.18..v6.3: a, true is preferred
            v6.10..v7.2: also in g, false is preferred
            v7.3: -"#]]
        .assert_eq(&by_kernel("+NEXT_BUDDY+NO_RUN_TO_PARITY", next));
    }

    #[test]
    fn a_task_has_ended_before_its_cpu_updates_the_load_of_idle_cpus() {
        let left = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x2").without_ticks();
            lab.hog("ends", 0);
            lab.sched.nohz_balance_enter_idle(CpuId(0));
            lab.sched.rqs[CpuId(0)].newilb = true;
            lab.now += 8 * MS;
            let ended = lab.sched.schedule(CpuId(0), Deactivate::Exit, lab.time()).prev;
            lab.sched.finish_task_switch(ended.task().unwrap());
            let queue = lab.sched.root_cfs(CpuId(0));
            alloc::format!("load {}, removed {}", queue.avg.load_avg, queue.removed.nr)
        };
        expect![[r#"
            v4.13: load 1030, removed 1
            v5.5: load 1023, removed 1
            v5.18..v7.3: load 0, removed 0"#]]
        .assert_eq(&by_kernel("", left));
    }

    #[test]
    fn an_idle_cpu_called_for_nothing_looks_for_work_or_not() {
        let after = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[a* b] 1[]");
            drawn.sched.schedule(CpuId(1), Deactivate::Yielded, NOW);
            alloc::format!("b on {}", drawn.cpu_of("b"))
        };
        expect![[r#"
            v4.13..v6.10: b on 1
            v6.12..v7.3: b on 0"#]]
        .assert_eq(&by_kernel("+NO_NI_RANDOM", after));
    }

    #[test]
    fn an_idle_cpu_that_stays_idle_shows_of_its_core_again_or_not() {
        let told = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2x2 | 2[a*] 3[b*]");
            drawn.sched.schedule(CpuId(0), Deactivate::Yielded, NOW);
            alloc::format!("{}", drawn.sched.test_idle_cores(CpuId(0)))
        };
        expect![[r#"
            v4.13..v6.10: true
            v6.12..v7.3: false"#]]
        .assert_eq(&by_kernel("", told));
    }

    /// An RT task waits on a CPU.
    fn rt_waits(sched: &mut Sched, cpu: CpuId) -> TaskId {
        let policy = Policy::Fifo(50);
        let rt = sched.new_task(&NewTask { policy, ..NewTask::plain(sched.rqs.len()) }, None, NOW);
        sched.set_task_cpu(rt, cpu, MigrationCause::Fork, NOW);
        sched.task_mut(rt).state = TaskState::Running;
        sched.activate(rt, cpu, EnqueueFlags::default(), NOW);
        rt
    }

    #[test]
    fn a_server_that_uses_up_its_time_as_it_picks_has_picked() {
        let told = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[a* b]");
            let sched = &mut drawn.sched;
            if !sched.has_fair_server() {
                return "no server".to_string();
            }
            let sleep = Deactivate::Sleep(TaskState::Interruptible);
            sched.schedule(CpuId(0), sleep, NOW + Duration::millis(4));
            rt_waits(sched, CpuId(0));
            let server = &mut sched.rqs[CpuId(0)].fair_server;
            (server.state, server.runtime, server.deadline) = (ServerState::Runs, 1, NOW.0 + 40 * MS);
            // The pick charges b, dequeues a and then picks again.
            let next = sched.schedule(CpuId(0), Deactivate::Preempted, NOW + Duration::millis(20)).next;
            let server = sched.rqs[CpuId(0)].fair_server.state;
            let next = if next == Curr::Task(drawn.task("b")) { "b" } else { "rt" };
            alloc::format!("{next}, {server:?}")
        };
        expect![[r#"
            v4.13..v6.10: no server
            v6.12..v7.3: b, Spent"#]]
        .assert_eq(&by_kernel("", told));
    }

    /// The second sleeper is not owed anything either, but the pick finds nothing else and dequeues both.
    #[test]
    fn a_sleeper_that_the_pick_dequeues_is_no_longer_delayed() {
        let delayed = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[a* b]");
            let sleep = Deactivate::Sleep(TaskState::Interruptible);
            let mut after = |ms: u64| drawn.sched.schedule(CpuId(0), sleep, NOW + Duration::millis(ms));
            let (first, second) = (after(4), after(20));
            assert_eq!((second.next, second.voluntary), (Curr::Idle, true));
            alloc::format!("{} {}", first.delayed, second.delayed)
        };
        expect![[r#"
            v4.13..v6.10: false false
            v6.12..v7.3: true false"#]]
        .assert_eq(&by_kernel("", delayed));
    }

    /// Whether a group without run time gets some when one of its tasks takes over: the task's own group, or one above
    /// those of both tasks.
    fn accounted(kernel: &str, outer: bool, from_idle: bool) -> alloc::string::String {
        let mut drawn = draw(kernel, "1x1x1 | 0[a* b]");
        let [a, b] = ["a", "b"].map(|name| drawn.task(name));
        let (sched, cpu) = (&mut drawn.sched, CpuId(0));
        let mut group = |parent| sched.new_group(parent, NICE_0_LOAD, cpu, NOW);
        let top = group(TgId::ROOT);
        let middle = group(top);
        let [of_a, of_b] = [group(middle), group(middle)];
        sched.move_task_to_group(a, of_a, NOW);
        sched.move_task_to_group(b, of_b, NOW);
        let limited = if outer { top } else { of_b };
        sched.set_bandwidth(limited, Some(50_000_000), 100_000_000, 0, NOW);
        if from_idle {
            sched.switch_to(cpu, Curr::Idle, NOW);
        }
        let cfs = sched.tg(limited).cfs_rq[0];
        sched.cfs_mut(cfs).runtime_remaining = 0;
        sched.switch_to(cpu, Curr::Task(b), NOW);
        alloc::format!("{}", sched.cfs(cfs).runtime_remaining > 0)
    }

    #[test]
    fn a_queue_without_quota_is_throttled_where_the_choice_goes_through_it() {
        let then = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[a* b]");
            let b = drawn.task("b");
            let (sched, cpu) = (&mut drawn.sched, CpuId(0));
            let group = sched.new_group(TgId::ROOT, NICE_0_LOAD, cpu, NOW);
            sched.move_task_to_group(b, group, NOW);
            sched.set_bandwidth(group, Some(50_000_000), 100_000_000, 0, NOW);
            sched.tgs[group.0 as usize].bandwidth.runtime = 0;
            sched.schedule(cpu, Deactivate::Sleep(TaskState::Interruptible), NOW);
            (if sched.rqs[cpu].curr == Curr::Task(b) { "b" } else { "idle" }).to_string()
        };
        expect![[r#"
            v4.13..v6.10: b
            v6.12: idle
            v7.2..v7.3: b"#]]
        .assert_eq(&by_kernel("", then));
    }

    #[test]
    fn another_is_chosen_while_the_group_that_has_used_up_its_quota_is_still_queued() {
        // With the group far ahead x is eligible, and has the earlier deadline; without it only y would be.
        let mut lab = Lab::new("v6.12", "1x1x1").without_ticks();
        let (cpu, now) = (CpuId(0), lab.time());
        let group = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, cpu, now);
        lab.sched.set_bandwidth(group, Some(50 * MS), 100 * MS, 0, now);
        let y = NewTask { slice: Some(50 * MS), ..lab.spec() };
        lab.fork("y", 0, y);
        let x = lab.hog("x", 0);
        let limited = NewTask { tg: group, ..lab.spec() };
        let limited = lab.fork("limited", 0, limited);
        for (task, runs) in [(x, 2), (limited, 10)] {
            lab.sched.switch_to(cpu, Curr::Task(task), lab.time());
            lab.now += runs * MS;
        }
        let cfs = lab.sched.tg(group).cfs_rq[0];
        lab.sched.cfs_mut(cfs).runtime_remaining = 0;
        lab.sched.tgs[group.0 as usize].bandwidth.runtime = 0;
        lab.sched.schedule(cpu, Deactivate::Preempted, lab.time());
        assert_eq!((lab.running(0), lab.sched.cfs(cfs).throttled), ("x", true));
    }

    #[test]
    fn whose_quota_is_looked_at_when_a_task_takes_over() {
        expect![[r#"
            v4.13..v7.2: false
            v7.3: true"#]]
        .assert_eq(&by_kernel("", |kernel| accounted(kernel, true, false)));
        expect![[r#"
            v4.13..v6.12: false
            v7.2..v7.3: true"#]]
        .assert_eq(&by_kernel("", |kernel| accounted(kernel, false, false)));
        for outer in [true, false] {
            expect![[r#"
                v4.13..v6.10: false
                v6.12..v7.3: true"#]]
            .assert_eq(&by_kernel("", |kernel| accounted(kernel, outer, true)));
        }
    }
}
