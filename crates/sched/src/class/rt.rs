//! FIFO and RR: the highest priority runs, first come first.
//!
//! Modelled as far as it affects the fair class: order, round robin, throttling, moving to CPUs free of RT,
//! and the pressure on capacity. Left out: priority inheritance, RT groups and the lending of RT time between
//! CPUs.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::class::Class;
use crate::{Curr, Effect, EnqueueFlags, Policy, Pressure, Rq, RtThrottle, Sched};

impl Policy {
    /// RT priority, 1..=99; 0 for all others.
    #[inline]
    pub(crate) fn rt_priority(self) -> u8 {
        match self {
            Policy::Fifo(priority) | Policy::Rr(priority) => priority,
            _ => 0,
        }
    }

    /// Its rank among RT tasks: the priority, 0 for lower classes, and above all RT priorities for higher classes.
    pub(crate) fn rt_level(self) -> u8 {
        if self.class() > Class::Rt { u8::MAX } else { self.rt_priority() }
    }
}

impl Rq {
    /// Kernel: pick_task_rt(), kernel/sched/rt.c, v6.12.
    #[inline]
    pub(crate) fn pick_task_rt(&self) -> Option<TaskId> {
        self.rt_queue.first().copied().filter(|_| !self.rt_throttled)
    }
}

impl Sched {
    /// Queues a task after those of the same priority, or before them. All RT tasks leave the CPU's count for that, and
    /// return to it together, which can show that the CPU has several tasks.
    ///
    /// Kernel: enqueue_task_rt(), enqueue_top_rt_rq(), kernel/sched/rt.c, v6.12.
    pub(crate) fn enqueue_task_rt(&mut self, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        let others = self.rqs[cpu].rt_queue.len() as u32;
        self.insert_rt(cpu, task, flags.head);
        self.rt_waits(cpu, task);
        if !self.rqs[cpu].rt_throttled {
            self.rqs[cpu].nr_running -= others;
            self.add_nr_running(cpu, others + 1);
        }
        match self.kernel.rules.rt_throttle {
            RtThrottle::Bandwidth => self.start_rt_bandwidth(cpu),
            RtThrottle::FairServer => self.ask_for_fair_server(cpu),
        }
    }

    pub(super) fn insert_rt(&mut self, cpu: CpuId, task: TaskId, head: bool) {
        let priority = self.task(task).policy.rt_priority();
        let queue = &self.rqs[cpu].rt_queue;
        let at = queue.partition_point(|&other| {
            let other = self.task(other).policy.rt_priority();
            other > priority || !head && other == priority
        });
        let overload = self.rt_overload();
        let queue = &mut self.rqs[cpu].rt_queue;
        let before = queue.first().copied();
        queue.insert(at, task);
        self.nr_rt_overloaded += (queue.len() == overload) as u32;
        self.highest_rt_changed(cpu, before, Some(task).filter(|_| at == 0).or(before));
    }

    /// RT tasks see a CPU by its highest RT priority again once that changes, whatever deadline tasks it has.
    ///
    /// Kernel: inc_rt_prio_smp(), dec_rt_prio_smp(), kernel/sched/rt.c, v6.12.
    fn highest_rt_changed(&mut self, cpu: CpuId, before: Option<TaskId>, after: Option<TaskId>) {
        let priority = |task: Option<TaskId>| task.map(|task| self.task(task).policy.rt_priority());
        if priority(before) != priority(after) {
            self.rqs[cpu].cpupri_higher = false;
        }
    }

    /// The others leave the count too, and return together.
    ///
    /// Kernel: dequeue_task_rt(), dequeue_rt_stack(), kernel/sched/rt.c, v6.12.
    pub(crate) fn dequeue_task_rt(&mut self, cpu: CpuId, task: TaskId) {
        self.update_curr_rt(cpu);
        self.remove_rt(cpu, task);
        if !self.rqs[cpu].rt_throttled {
            let others = self.rqs[cpu].rt_queue.len() as u32;
            self.rqs[cpu].nr_running -= others + 1;
            self.add_nr_running(cpu, others);
        }
    }

    pub(super) fn remove_rt(&mut self, cpu: CpuId, task: TaskId) {
        let overload = self.rt_overload();
        let queue = &mut self.rqs[cpu].rt_queue;
        let at = queue.iter().position(|&other| other == task).expect("the task is queued");
        queue.remove(at);
        let after = queue.first().copied();
        self.nr_rt_overloaded -= (queue.len() + 1 == overload) as u32;
        if at == 0 {
            self.highest_rt_changed(cpu, Some(task), after);
        }
    }

    /// A task begins to wait. Among those of its priority, the one that has waited longest is moved to other CPUs first, even
    /// if another runs here first.
    ///
    /// Kernel: enqueue_pushable_task(), kernel/sched/rt.c, v6.12.
    fn rt_waits(&mut self, cpu: CpuId, task: TaskId) {
        self.rqs[cpu].rt_waits += 1;
        self.task_mut(task).rt_waits_from = self.rqs[cpu].rt_waits;
    }

    /// Moves a task after the others of its priority, or before them.
    ///
    /// Kernel: requeue_task_rt(), yield_task_rt(), kernel/sched/rt.c, v6.12.
    pub(crate) fn requeue_task_rt(&mut self, cpu: CpuId, task: TaskId, head: bool) {
        self.remove_rt(cpu, task);
        self.insert_rt(cpu, task, head);
    }

    /// Sets the position of an RT task in the queue of a CPU.
    pub(crate) fn place_rt(&self, cpu: CpuId, task: TaskId) -> Option<usize> {
        self.rqs[cpu].rt_queue.iter().position(|&other| other == task)
    }

    /// A task that is enqueued again after a change that does not move it keeps its position.
    ///
    /// Kernel: move_entity(), __delist_rt_entity(), kernel/sched/rt.c, v6.1, v6.12.
    pub(crate) fn keep_place_rt(&mut self, cpu: CpuId, task: TaskId, place: usize) {
        let at = self.place_rt(cpu, task).expect("the task came back");
        let queue = &mut self.rqs[cpu].rt_queue;
        let task = queue.remove(at);
        queue.insert(place, task);
    }

    /// Kernel: put_prev_task_rt(), kernel/sched/rt.c, v6.12.
    pub(crate) fn put_prev_task_rt(&mut self, cpu: CpuId) {
        self.update_curr_rt(cpu);
        self.update_rt_rq_load_avg(cpu, true);
        if let Curr::Task(task) = self.rqs[cpu].curr {
            self.rt_waits(cpu, task);
        }
    }

    /// Kernel: set_next_task_rt(), kernel/sched/rt.c, v6.12.
    pub(crate) fn set_next_task_rt(&mut self, cpu: CpuId, prev_class: Class) {
        if prev_class != Class::Rt {
            self.update_rt_rq_load_avg(cpu, false);
        }
    }

    /// Charges the running RT task; its CPU may run out of RT time, or have none left since the task became an RT task. A CPU that
    /// leaves is not limited.
    ///
    /// Kernel: update_curr_rt(), sched_rt_runtime_exceeded(), __disable_runtime(), kernel/sched/rt.c, v6.1.
    pub(crate) fn update_curr_rt(&mut self, cpu: CpuId) {
        if self.curr_class(cpu) != Class::Rt {
            return;
        }
        let delta = self.update_curr_common(cpu);
        if delta == 0 {
            return;
        }
        if self.kernel.rules.pressure == Pressure::RtAvg {
            self.sched_rt_avg_update(cpu, delta);
        }
        if self.has_fair_server() || !self.limits_rt() || !self.rqs[cpu].active {
            return;
        }
        self.rqs[cpu].rt_time += delta;
        if !self.rqs[cpu].rt_throttled {
            if self.rqs[cpu].rt_time <= self.rt_runtime() {
                return;
            }
            let rq = &mut self.rqs[cpu];
            rq.rt_throttled = true;
            rq.nr_running -= rq.rt_queue.len() as u32;
        }
        self.resched_now(cpu);
        self.start_rt_bandwidth(cpu);
    }

    /// Deadline tasks use the time reserved for RT. Only RT tasks are throttled for it, when one of them is next
    /// charged.
    ///
    /// Kernel: update_curr_dl(), kernel/sched/deadline.c, sched_rt_bandwidth_account(), kernel/sched/rt.c, v6.1.
    pub(super) fn account_dl_as_rt(&mut self, cpu: CpuId, ran: u64) {
        let runtime = self.rt_runtime();
        let limited = self.kernel.rules.rt_throttle == RtThrottle::Bandwidth && self.limits_rt();
        if limited && (self.rt_period_active || self.rqs[cpu].rt_time < runtime) {
            self.rqs[cpu].rt_time += ran;
        }
    }

    /// Whether RT tasks must leave some time to fair ones.
    pub(super) fn limits_rt(&self) -> bool {
        self.rt_runtime() < self.rt_period()
    }

    fn rt_runtime(&self) -> u64 {
        self.kernel.tunables.rt_runtime_us * 1000
    }

    fn rt_period(&self) -> u64 {
        self.kernel.tunables.rt_period_us * 1000
    }

    /// Kernel: do_start_rt_bandwidth(), kernel/sched/rt.c, v5.10, v6.1.
    fn start_rt_bandwidth(&mut self, cpu: CpuId) {
        if !self.rt_period_active && self.limits_rt() {
            self.rt_period_active = true;
            // The timer expires at once, unless the period that it was moved to when it last expired is not over.
            let rq = &self.rqs[cpu];
            let at = self.rt_period_expires.max(rq.ktime() + 1);
            self.rt_period_expires = at;
            self.effects.push(Effect::StartRtPeriodTimer { at });
        }
    }

    /// The timer of RT throttling expired: a new period begins on all CPUs that are online. Returns when
    /// it expires next, if it is still needed. From v6.12 on it is the timer of some CPU's fair server.
    ///
    /// Kernel: do_sched_rt_period_timer(), kernel/sched/rt.c, v6.1.
    pub fn rt_period_timer(&mut self, now: Time) -> Option<Time> {
        if self.has_fair_server() {
            self.fair_server_timers(now);
            return None;
        }
        let (runtime, period) = (self.rt_runtime(), self.rt_period());
        self.rt_period_expires += (now.0.saturating_sub(self.rt_period_expires) / period + 1) * period;
        let mut needed = false;
        for cpu in (0..self.rqs.len()).map(CpuId::from) {
            let rq = &self.rqs[cpu];
            if !rq.online || rq.rt_time == 0 && rq.rt_queue.is_empty() {
                continue;
            }
            self.update_rq_clock(cpu, now);
            let rq = &mut self.rqs[cpu];
            if rq.rt_time == 0 && !rq.rt_throttled {
                // RT tasks that have not run in this period are waiting: their queue is enqueued again, which requests
                // a reschedule.
                needed = true;
                self.resched_now(cpu);
                continue;
            }
            rq.rt_time -= rq.rt_time.min(if rq.active { runtime } else { u64::MAX });
            needed |= rq.rt_time > 0 || !rq.rt_queue.is_empty();
            if rq.rt_throttled && rq.rt_time < runtime {
                rq.rt_throttled = false;
                let waiting = rq.rt_queue.len() as u32;
                if waiting > 0 {
                    self.add_nr_running(cpu, waiting);
                    self.resched_now(cpu);
                }
            }
        }
        self.rt_period_active = needed;
        needed.then_some(Time(self.rt_period_expires))
    }

    /// Kernel: task_tick_rt(), kernel/sched/rt.c, v6.12.
    pub(crate) fn task_tick_rt(&mut self, cpu: CpuId, task: TaskId) {
        self.update_curr_rt(cpu);
        self.update_rt_rq_load_avg(cpu, true);
        let Policy::Rr(priority) = self.task(task).policy else { return };
        let tunables = &self.kernel.tunables;
        let ticks = (tunables.rr_timeslice_ms * tunables.hz).div_ceil(1000);
        let slice = u32::try_from(ticks).unwrap_or(u32::MAX);
        let left = &mut self.task_mut(task).rr_ticks_left;
        *left = if *left == 0 { slice } else { *left } - 1;
        if *left > 0 {
            return;
        }
        *left = slice;
        let others = |&&other: &&TaskId| self.task(other).policy.rt_priority() == priority;
        if self.rqs[cpu].rt_queue.iter().filter(others).count() > 1 {
            self.requeue_task_rt(cpu, task, false);
            self.resched_now(cpu);
        }
    }

    /// Whether a woken RT task preempts the running one.
    ///
    /// Kernel: wakeup_preempt_rt(), kernel/sched/rt.c, v6.12.
    pub(crate) fn rt_preempts(&self, cpu: CpuId, task: TaskId) -> bool {
        self.task(task).policy.rt_priority() > self.rt_level(cpu)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::{String, ToString};
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    use expect_test::expect;
    use schedlab_topology::{CpuId, CpuMask};
    use schedlab_units::{TaskId, Time};

    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{NICE_0_LOAD, NewTask, Policy, TgId};

    #[test]
    fn rt_tasks_have_what_deadline_tasks_leave_of_their_part_of_a_second() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1");
            let deadline = Policy::Deadline { runtime: 40 * MS, deadline: 100 * MS, period: 100 * MS };
            let mut fork = |name, policy| lab.fork(name, 0, NewTask { policy, ..lab.spec() });
            let tasks = [("dl", deadline), ("rt", Policy::Fifo(10)), ("fair", Policy::Normal)]
                .map(|(name, policy)| fork(name, policy));
            format!("{:?}", lab.shares(&tasks, 4_000 * MS))
        });
        expect![[r#"
            v4.13..v6.10: [400, 551, 49]
            v6.12..v7.3: [400, 550, 50]"#]]
        .assert_eq(&found);
    }

    #[test]
    fn rt_tasks_are_counted_together_when_one_more_comes_or_goes() {
        for kernel in ["v5.10", "v6.12", "v7.3"] {
            let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
            lab.hog("fair", 0);
            let fifo = |lab: &Lab| NewTask { policy: Policy::Fifo(10), ..lab.spec() };
            let spec = fifo(&lab);
            lab.fork("first", 0, spec);
            // Two tasks were there before, but only one beside the RT tasks.
            lab.sched.domains.overload = false;
            let spec = fifo(&lab);
            let second = lab.fork("second", 0, spec);
            assert!(lab.sched.domains.overload, "{kernel}");
            lab.sched.domains.overload = false;
            lab.sched.set_policy(CpuId(0), second, Policy::Normal, lab.time());
            assert!(lab.sched.domains.overload, "{kernel}");
            assert_eq!(lab.sched.rqs[CpuId(0)].nr_running, 3, "{kernel}");
        }
    }

    #[test]
    fn the_timer_of_throttling_expires_at_once_and_asks_where_rt_tasks_wait() {
        for kernel in ["v5.10", "v6.1", "v6.10"] {
            let mut lab = Lab::new(kernel, "1x1x1");
            lab.fork("rt", 0, NewTask { policy: Policy::Fifo(10), ..lab.spec() });
            let (cpu, begun) = (CpuId(0), lab.time());
            lab.sched.rqs[cpu].need_resched = crate::NeedResched::default();
            let next = lab.sched.rt_period_timer(Time(begun.0 + 1)).map(|at| at.0 - begun.0);
            assert_eq!(next, Some(1_000_000_001), "{kernel}");
            assert!(lab.sched.rqs[cpu].need_resched.full, "{kernel}: it has not run yet");
            lab.run(10 * MS);
            lab.sched.rt_period_timer(lab.time());
            assert!(!lab.sched.rqs[cpu].need_resched.full, "{kernel}: it has");
        }
    }

    #[test]
    fn a_timer_of_throttling_that_was_not_needed_expires_again_when_its_period_is_over() {
        for kernel in ["v5.10", "v6.1", "v6.10"] {
            let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
            let rt = lab.fork("rt", 0, NewTask { policy: Policy::Fifo(10), ..lab.spec() });
            let begun = lab.time();
            let expires = |lab: &Lab| (lab.sched.rt_period_expires - begun.0, lab.sched.rt_period_active);
            assert_eq!(expires(&lab), (1, true), "{kernel}");
            lab.sleep(rt);
            lab.run(MS);
            assert_eq!(expires(&lab), (1_000_000_001, false), "{kernel}: it is moved on, and stops");
            lab.wake(rt);
            assert_eq!(expires(&lab), (1_000_000_001, true), "{kernel}: not at once");
        }
    }

    #[test]
    fn a_task_that_joins_the_class_on_a_throttled_cpu_makes_way_when_it_is_charged() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1");
            lab.fork("rt", 0, NewTask { policy: Policy::Fifo(10), ..lab.spec() });
            let fair = ["fair", "other"].map(|name| lab.hog(name, 0))[0];
            lab.run(960 * MS);
            while lab.running(0) != "fair" {
                lab.run(MS);
            }
            lab.sched.set_policy(CpuId(0), fair, Policy::Fifo(10), lab.time());
            lab.settle();
            let before = String::from(lab.running(0));
            lab.run(lab.sched.tick_ns());
            format!("{before}, then {}", lab.running(0))
        });
        expect![[r#"
            v4.13..v6.10: fair, then other
            v6.12: fair, then fair
            v7.2..v7.3: other, then other"#]]
        .assert_eq(&found);
    }

    #[test]
    fn a_task_that_is_picked_again_is_charged_where_it_is_put_back_for_it() {
        for (kernel, charged) in [("v5.10", true), ("v6.1", true), ("v6.12", false)] {
            let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
            let rt = lab.fork("rt", 0, NewTask { policy: Policy::Fifo(10), ..lab.spec() });
            lab.run(MS);
            let before = lab.sched.task(rt).se.sum_exec_runtime;
            lab.sched.rqs[CpuId(0)].need_resched.full = true;
            lab.settle();
            let ran = lab.sched.task(rt).se.sum_exec_runtime - before;
            assert_eq!(ran > MS / 2, charged, "{kernel}: {ran}");
        }
    }

    #[test]
    fn a_turn_of_round_robin_is_100_ms_or_what_is_set_in_whole_ticks() {
        for (with, ticks) in [
            ("+hz=100", 10),
            ("+hz=250", 25),
            ("+hz=300", 30),
            ("+hz=1000", 100),
            ("+hz=100+rr_timeslice_ms=41", 5),
        ] {
            let found = by_kernel(with, |kernel| {
                let mut lab = Lab::new(kernel, "1x1x1");
                for name in ["a", "b"] {
                    lab.fork(name, 0, NewTask { policy: Policy::Rr(50), ..lab.spec() });
                }
                let tick = lab.sched.tick_ns();
                lab.run((ticks - 1) * tick);
                let early = String::from(lab.running(0));
                lab.run(tick);
                format!("{early}, then {}", lab.running(0))
            });
            assert_eq!(found, "v4.13..v7.3: a, then b", "{with}");
        }
    }

    #[test]
    fn a_new_priority_puts_a_task_before_or_behind_others_a_new_group_behind_them_and_nothing_else_moves_it()
    {
        let order = |change: fn(&mut Lab, TaskId)| {
            by_kernel("", |kernel| {
                let mut lab = Lab::new(kernel, "1x1x1");
                let priorities = [("top", 30), ("x", 20), ("y", 20), ("z", 10)];
                let mut tasks = Vec::new();
                for (name, priority) in priorities {
                    tasks.push((
                        lab.fork(name, 0, NewTask { policy: Policy::Fifo(priority), ..lab.spec() }),
                        name,
                    ));
                }
                let changed = tasks[1].0;
                change(&mut lab, changed);
                let queue = &lab.sched.rqs[CpuId(0)].rt_queue;
                let named = |task: &TaskId| tasks.iter().find(|(other, _)| other == task).unwrap().1;
                queue.iter().map(named).collect::<Vec<_>>().join(" ")
            })
        };
        let falls = order(|lab, task| {
            let now = lab.time();
            lab.sched.set_policy(CpuId(0), task, Policy::Fifo(10), now);
        });
        expect!["v4.13..v7.3: top y x z"].assert_eq(&falls);
        let rises = order(|lab, task| {
            let now = lab.time();
            lab.sched.set_policy(CpuId(0), task, Policy::Fifo(30), now);
        });
        expect!["v4.13..v7.3: top x y z"].assert_eq(&rises);
        let moves = order(|lab, task| {
            let now = lab.time();
            let group = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), now);
            lab.sched.move_task_to_group(task, group, now);
        });
        expect!["v4.13..v7.3: top y x z"].assert_eq(&moves);
        let stays =
            |change: fn(&mut Lab, TaskId)| expect!["v4.13..v7.3: top x y z"].assert_eq(&order(change));
        stays(|lab, x| {
            let (y, now) = (TaskId(x.0 + 1), lab.time());
            lab.sched.set_policy(CpuId(0), y, Policy::Rr(20), now);
        });
        stays(|lab, x| {
            let (y, now) = (TaskId(x.0 + 1), lab.time());
            lab.sched.do_set_cpus_allowed(y, Arc::new(CpuMask::one(1, CpuId(0))), now);
        });
        // A deadline task falls to any new priority.
        let from_above = order(|lab, x| {
            let (y, now) = (TaskId(x.0 + 1), lab.time());
            let deadline = Policy::Deadline { runtime: MS, deadline: 100 * MS, period: 100 * MS };
            lab.sched.set_policy(CpuId(0), y, deadline, now);
            lab.sched.set_policy(CpuId(0), y, Policy::Fifo(20), now);
        });
        expect!["v4.13..v7.3: top y x z"].assert_eq(&from_above);
    }

    #[test]
    fn rt_tasks_give_way_after_950_ms_always_or_only_to_fair_tasks_that_wait() {
        let runs = |with_hog: bool| {
            move |kernel: &str| {
                let mut lab = Lab::new(kernel, "1x1x2");
                lab.fork("rt", 0, NewTask { policy: Policy::Fifo(50), ..lab.spec() });
                if with_hog {
                    lab.hog("fair", 0);
                }
                lab.run(940 * MS);
                let early = String::from(lab.running(0));
                lab.run(20 * MS);
                format!("{early}, then {}", lab.running(0))
            }
        };
        expect![[r#"
            v4.13..v6.10: rt, then idle
            v6.12..v7.3: rt, then rt"#]]
        .assert_eq(&by_kernel("", runs(false)));
        expect!["v4.13..v7.3: rt, then fair"].assert_eq(&by_kernel("", runs(true)));
    }

    #[test]
    fn a_cpu_that_leaves_is_not_limited_in_its_rt_time_and_one_that_comes_begins_anew() {
        let told = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x2").without_ticks();
            if lab.sched.has_fair_server() {
                return "no limit".to_string();
            }
            let spec = NewTask { policy: Policy::Fifo(10), ..lab.spec() };
            lab.fork("rt", 1, spec);
            let ran = |lab: &mut Lab| {
                lab.now += 100 * MS;
                let now = lab.time();
                lab.sched.update_rq_clock(CpuId(1), now);
                lab.sched.update_curr_rt(CpuId(1));
                lab.sched.rqs[CpuId(1)].rt_time / MS
            };
            let before = ran(&mut lab);
            lab.sched.rqs[CpuId(1)].active = false;
            let leaving = ran(&mut lab);
            let now = lab.time();
            lab.sched.cpu_activate(CpuId(1), now);
            let came = lab.sched.rqs[CpuId(1)].rt_time;
            // Periods are those of CPUs that are online.
            lab.sched.rqs[CpuId(1)].rt_time = MS;
            lab.sched.rqs[CpuId(1)].online = false;
            lab.sched.rt_period_timer(now);
            format!("{before} ms, {leaving} ms, {came} ms; {} ms", lab.sched.rqs[CpuId(1)].rt_time / MS)
        };
        expect![[r#"
            v4.13..v6.10: 100 ms, 100 ms, 0 ms; 1 ms
            v6.12..v7.3: no limit"#]]
        .assert_eq(&by_kernel("", told));
    }
}
