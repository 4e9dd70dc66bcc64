//! CPUs that come and go.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::{CpusetHotplug, Feature, RtThrottle, Sched, TgId};

impl Sched {
    /// Takes a CPU into use or out of it, with all steps at once. When it leaves, every task that may run
    /// elsewhere is moved away; the driver must have switched it to its idle task or to
    /// a bound task first.
    ///
    /// Kernel: cpu_up(), cpu_down(), kernel/cpu.c, v6.12.
    pub fn set_online(&mut self, cpu: CpuId, online: bool, now: Time) {
        if online && !self.rqs[cpu].online {
            self.cpu_starting(cpu);
        }
        self.set_active(cpu, online, now);
        if !online && self.rqs[cpu].online {
            self.cpu_dying(cpu, now);
            self.cpuset_hotplug_work(now);
        }
    }

    /// Opens an online CPU to all tasks, or only to the kernel threads bound to it, which it keeps.
    ///
    /// Kernel: sched_cpu_activate(), sched_cpu_deactivate(), balance_push(), kernel/sched/core.c, v6.12.
    pub fn set_active(&mut self, cpu: CpuId, active: bool, now: Time) {
        if self.rqs[cpu].active == active {
            return;
        }
        if active {
            self.cpu_activate(cpu, now);
            self.cpuset_update_active_cpus(now);
            self.cpuset_hotplug_work(now);
        } else {
            self.cpu_deactivate(cpu, now);
            self.cpuset_update_active_cpus(now);
            self.move_tasks_away(cpu, now);
        }
    }

    /// A CPU left or came: domains are rebuilt, unless that is left to a work item.
    ///
    /// Kernel: cpuset_update_active_cpus(), kernel/cgroup/cpuset.c, v6.12.
    pub fn cpuset_update_active_cpus(&mut self, now: Time) {
        if self.kernel.rules.cpuset_hotplug == CpusetHotplug::AtOnce {
            self.rebuild_domains(now);
        }
    }

    /// The work item runs, if domains are left to it, once a CPU is offline or online.
    ///
    /// Kernel: cpuset_hotplug_workfn(), kernel/cgroup/cpuset.c, v6.1.
    pub fn cpuset_hotplug_work(&mut self, now: Time) {
        if self.kernel.rules.cpuset_hotplug == CpusetHotplug::Later {
            self.rebuild_domains(now);
        }
    }

    /// A CPU that is leaving takes no more tasks except kernel threads bound to it. Its domains stay until they are
    /// rebuilt, so searches still find it, and tasks sent there fall back to another CPU.
    ///
    /// Kernel: sched_cpu_deactivate(), kernel/sched/core.c, v6.12.
    pub fn cpu_deactivate(&mut self, cpu: CpuId, now: Time) {
        self.nohz_balance_exit_idle(cpu);
        self.rqs[cpu].active = false;
        self.leaving.push(cpu);
        self.free_llc_id(cpu);
        let first = self.kernel.has(Feature::BalancePush);
        if first {
            self.update_rq_clock(cpu, now);
            self.set_rq_offline(cpu, now);
        }
        self.offline_for_a_moment(now, (!first).then_some(cpu));
    }

    /// A CPU cannot leave, as its deadline tasks have no room elsewhere. From v5.11 to v6.12 that is found once its run queue is
    /// offline, which therefore comes back at once.
    ///
    /// Kernel: sched_cpu_deactivate(), kernel/sched/core.c, v6.12.
    pub fn cpu_stays(&mut self, cpu: CpuId, now: Time) {
        self.nohz_balance_exit_idle(cpu);
        self.rqs[cpu].active = false;
        self.leaving.push(cpu);
        self.update_rq_clock(cpu, now);
        self.set_rq_offline(cpu, now);
        self.set_rq_online(cpu);
    }

    /// A CPU is offline: everything that is still queued there moves away, except kernel threads that are bound to it.
    ///
    /// Kernel: sched_cpu_dying(), migrate_tasks(), kernel/sched/core.c, v5.5, v6.12.
    pub fn cpu_dying(&mut self, cpu: CpuId, now: Time) {
        self.move_tasks_away(cpu, now);
        self.update_rq_clock(cpu, now);
        self.fair_server_stop(cpu);
        self.rqs[cpu].online = false;
        self.domains.set_online(&self.topology, &self.online());
        self.update_max_interval();
    }

    /// Whether domains were built with a CPU. One that domains were built without has a root domain of its own, which no
    /// balancing reads.
    #[inline]
    pub(crate) fn has_domains(&self, cpu: CpuId) -> bool {
        self.rqs[cpu].active || self.leaving.contains(&cpu)
    }

    /// A CPU is there again, for kernel threads that are bound to it.
    ///
    /// Kernel: sched_cpu_starting(), kernel/sched/core.c, v6.12.
    pub fn cpu_starting(&mut self, cpu: CpuId) {
        self.update_max_interval();
        self.rqs[cpu].online = true;
        self.domains.set_online(&self.topology, &self.online());
    }

    /// A CPU takes tasks again; balancing reaches it when domains are rebuilt.
    ///
    /// Kernel: sched_cpu_activate(), kernel/sched/core.c, v6.12.
    pub fn cpu_activate(&mut self, cpu: CpuId, now: Time) {
        self.offline_for_a_moment(now, None);
        self.set_rq_online(cpu);
    }

    /// Kernel: set_rq_online(), kernel/sched/core.c, v6.12.
    fn set_rq_online(&mut self, cpu: CpuId) {
        self.rqs[cpu].active = true;
        self.rqs[cpu].rt_time = 0;
        self.leaving.retain(|&other| other != cpu);
        self.enable_runtime(cpu);
    }

    /// All CPUs move to new domains, and go offline for a moment, in order. From v5.11 on the CPU that leaves did that
    /// before; up to v5.10 it is one of them.
    ///
    /// Kernel: rq_attach_root(), kernel/sched/topology.c, sched_cpu_deactivate(), kernel/sched/core.c, v5.10, v6.1, v6.12.
    fn offline_for_a_moment(&mut self, now: Time, leaves: Option<CpuId>) {
        for cpu in (0..self.rqs.len()).map(CpuId::from) {
            if !self.rqs[cpu].active && Some(cpu) != leaves {
                continue;
            }
            if self.kernel.has(Feature::OfflineReadsClock) {
                self.update_rq_clock(cpu, now);
            }
            self.set_rq_offline(cpu, now);
            if self.rqs[cpu].active && self.kernel.has(Feature::RebuildUnthrottles) {
                self.enable_runtime(cpu);
            }
        }
    }

    /// Tunables follow the number of CPUs that are online first: it may have changed since domains were last rebuilt. RT tasks
    /// see the CPU by its highest RT priority afterwards, whatever deadline tasks it has.
    ///
    /// Kernel: set_rq_offline(), kernel/sched/core.c, rq_offline_fair(), kernel/sched/fair.c, __enable_runtime(),
    /// rq_online_rt(), kernel/sched/rt.c, v6.1, v6.12, v7.2.
    fn set_rq_offline(&mut self, cpu: CpuId, now: Time) {
        self.update_sysctl();
        if self.kernel.rules.rt_throttle != RtThrottle::FairServer {
            let rq = &mut self.rqs[cpu];
            let (throttled, waiting) = (rq.rt_throttled, rq.rt_queue.len() as u32);
            rq.rt_throttled = false;
            if rq.active {
                rq.rt_time = 0;
            }
            if throttled {
                self.add_nr_running(cpu, waiting);
            }
            if waiting > 0 {
                self.resched_now(cpu);
            }
        }
        if !self.rqs[cpu].active || self.kernel.has(Feature::RebuildUnthrottles) {
            self.unthrottle_offline(cpu, now);
        }
        self.clear_tg_offline_cfs_rqs(cpu);
        // Also if a fair server has started, as a queue runs again.
        self.rqs[cpu].cpupri_higher = false;
    }

    /// Kernel: update_runtime_enabled(), kernel/sched/fair.c, v6.12.
    fn enable_runtime(&mut self, cpu: CpuId) {
        for tg in 1..self.tgs.len() {
            let (id, limited) = (TgId(tg as u32), self.tgs[tg].bandwidth.quota.is_some());
            if self.runtime_enabled(id, cpu) != limited {
                let (cfs, _) = self.made_on_cpu(id, cpu);
                self.cfs_mut(cfs).runtime_enabled = limited;
            }
        }
    }

    /// Groups come in the order of the kernel's list.
    ///
    /// Kernel: unthrottle_offline_cfs_rqs(), kernel/sched/fair.c, sched_online_group(), kernel/sched/core.c, v6.12, v7.2.
    fn unthrottle_offline(&mut self, cpu: CpuId, now: Time) {
        let last = self.tgs.len().saturating_sub(1);
        for at in 1..=last {
            let tg = if self.kernel.has(Feature::OldestGroupFirst) { at } else { last + 1 - at };
            if !self.runtime_enabled(TgId(tg as u32), cpu) {
                continue;
            }
            let (cfs, _) = self.made_on_cpu(TgId(tg as u32), cpu);
            let always = self.kernel.has(Feature::RebuildUnthrottles);
            let queue = self.cfs_mut(cfs);
            queue.runtime_enabled = false;
            if queue.throttled || always {
                queue.runtime_remaining = 1;
            }
            if queue.throttled {
                self.update_rq_clock(cpu, now);
                self.unthrottle_cfs_rq(cfs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::sync::Arc;

    use expect_test::expect;
    use schedlab_topology::{CpuId, CpuMask};
    use schedlab_units::{TaskId, Time};

    use crate::class::ServerState;
    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::wakeup::Wakeup;
    use crate::{Curr, IdleType, NewTask, Policy, TgId};

    /// Where a task that slept on CPU 3 is sent, woken by CPU 1 that runs.
    fn woken(lab: &Lab, task: TaskId, waker: TaskId) -> String {
        let wakeup = Wakeup::by(waker, CpuId(1), task);
        let placement =
            lab.sched.decide_wakeup(&wakeup, Time(lab.now), None).placement.expect("a CPU is chosen");
        format!("cpu {} {}", placement.cpu.0, placement.reason.name())
    }

    /// How queues fare that have no quota left on CPU 0, which stays, as CPU 1 leaves.
    #[test]
    fn up_to_v6_12_queues_of_all_cpus_run_again_when_domains_are_rebuilt() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2");
            let now = lab.time();
            let group = lab.sched.new_group(TgId::ROOT, 1024 << 10, CpuId(0), now);
            lab.sched.set_bandwidth(group, Some(MS), 100 * MS, 0, now);
            let spec = NewTask { tg: group, ..lab.spec() };
            lab.fork("limited", 0, spec);
            lab.run(10 * MS);
            let (cfs, _) = lab.sched.made_on_cpu(group, CpuId(0));
            let before = lab.sched.cfs(cfs).throttled;
            let now = lab.time();
            lab.sched.cpu_deactivate(CpuId(1), now);
            format!("throttled {before}, then {}", lab.sched.cfs(cfs).throttled)
        });
        expect![[r#"
            v4.13..v6.12: throttled true, then false
            v7.2..v7.3: throttled true, then true"#]]
        .assert_eq(&found);
    }

    #[test]
    fn groups_of_a_cpu_that_leaves_run_again_from_the_newest_on_and_later_from_the_oldest() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2");
            let now = lab.time();
            let groups = [1, 2].map(|_| {
                let group = lab.sched.new_group(TgId::ROOT, 1024 << 10, CpuId(0), now);
                lab.sched.set_bandwidth(group, Some(MS), 100 * MS, 0, now);
                lab.fork("limited", 1, NewTask { tg: group, ..lab.spec() });
                group
            });
            lab.run(20 * MS);
            let order = |lab: &Lab| {
                let list = &lab.sched.rqs[CpuId(1)].leaf_cfs_rqs;
                let at = |tg| list.iter().position(|&cfs| cfs == lab.sched.on_cpu(tg, CpuId(1)).unwrap().0);
                format!("{:?}", groups.map(at))
            };
            let before = order(&lab);
            lab.sched.cpu_deactivate(CpuId(1), lab.time());
            format!("{before}, then {}", order(&lab))
        });
        expect![[r#"
            v4.13..v6.12: [None, None], then [Some(1), Some(0)]
            v7.2..v7.3: [None, None], then [Some(0), Some(1)]"#]]
        .assert_eq(&found);
    }

    /// Threads of CPU 1 that its user and the kernel bound there are woken while it leaves.
    #[test]
    fn a_thread_that_the_kernel_bound_stays_on_a_cpu_that_leaves() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2");
            let waker = lab.hog("waker", 0);
            let threads = ["by the user", "by the kernel"].map(|name| {
                let thread = lab.fork(name, 1, NewTask { kthread: true, ..lab.spec() });
                lab.sched.task_mut(thread).bound_by_user = true;
                lab.sleep(thread);
                thread
            });
            let one = Arc::new(CpuMask::one(2, CpuId(1)));
            lab.sched.set_cpus_allowed(CpuId(0), threads[0], one, lab.time());
            lab.sched.kthread_bind(threads[1], CpuId(1), lab.time());
            lab.sched.cpu_deactivate(CpuId(1), lab.time());
            let cpu_of = |task| {
                let wakeup = Wakeup::by(waker, CpuId(0), task);
                lab.sched.decide_wakeup(&wakeup, lab.time(), None).placement.map(|placement| placement.cpu.0)
            };
            format!("{:?}", threads.map(cpu_of))
        });
        expect!["v4.13..v7.3: [Some(0), Some(1)]"].assert_eq(&found);
    }

    #[test]
    fn a_child_none_of_whose_cpus_stays_may_run_anywhere() {
        let mut lab = Lab::new("v7.2", "1x1x2");
        let one = Arc::new(CpuMask::one(2, CpuId(1)));
        lab.fork("parent", 1, NewTask { kthread: true, allowed: one.clone(), ..lab.spec() });
        lab.sched.cpu_deactivate(CpuId(1), lab.time());
        let spec = NewTask { allowed: one, ..lab.spec() };
        let child = lab.sched.new_task(&spec, None, lab.time());
        lab.sched.set_cpu(child, CpuId(1));
        let to = lab.sched.decide_fork(child, CpuId(1), lab.time(), None).cpu;
        lab.sched.apply_fork(child, to, lab.time());
        assert_eq!((to, lab.sched.task(child).nr_cpus_allowed), (CpuId(0), 2));
    }

    /// Its part of their load went when it began to leave.
    #[test]
    fn a_cpu_that_dies_changes_nothing_about_its_groups() {
        let mut lab = Lab::new("v6.12", "1x1x2").without_ticks();
        let group = lab.sched.new_group(TgId::ROOT, 1024 << 10, CpuId(0), lab.time());
        let task = lab.fork("in a group", 1, NewTask { tg: group, ..lab.spec() });
        lab.run(5 * MS);
        lab.sched.cpu_deactivate(CpuId(1), lab.time());
        let written = |lab: &Lab| lab.sched.seen_on_cpu(group, CpuId(1)).0.last_update_tg_load_avg;
        let before = written(&lab);
        lab.run(5 * MS);
        lab.sleep(task);
        lab.sched.cpu_dying(CpuId(1), lab.time());
        assert_eq!(written(&lab), before);
    }

    /// A queue of CPU 0 runs again as CPU 1 leaves, which starts the server of CPU 0.
    #[test]
    fn rt_tasks_do_not_see_a_server_that_starts_as_domains_are_rebuilt() {
        let mut lab = Lab::new("v6.12", "1x1x2").without_ticks();
        let group = lab.sched.new_group(TgId::ROOT, 1024 << 10, CpuId(0), lab.time());
        lab.sched.set_bandwidth(group, Some(MS), 1000 * MS, 0, lab.time());
        lab.fork("limited", 0, NewTask { tg: group, ..lab.spec() });
        lab.run(5 * MS);
        lab.sched.tick(CpuId(0), lab.time());
        lab.settle();
        assert_eq!(lab.running(0), "idle");
        let server = &mut lab.sched.rqs[CpuId(0)].fair_server;
        (server.state, server.timer, server.starving) = (ServerState::Off, None, true);
        (server.deadline, server.runtime) = (lab.now + 900 * MS, 10_000_000);
        lab.sched.cpu_deactivate(CpuId(1), lab.time());
        let rq = &lab.sched.rqs[CpuId(0)];
        assert_eq!((rq.fair_server.runs(), rq.cpupri_higher), (true, false));
    }

    #[test]
    fn tunables_follow_the_cpus_that_are_online_before_another_leaves() {
        let mut lab = Lab::new("v6.12", "1x1x4");
        let slice = |lab: &Lab| lab.sched.scaled.base_slice;
        let mut leave = |cpu| {
            lab.sched.cpu_deactivate(CpuId(cpu), lab.time());
            let before = slice(&lab);
            lab.sched.rebuild_domains(lab.time());
            lab.sched.cpu_dying(CpuId(cpu), lab.time());
            before / 100_000
        };
        // Four are online while the first leaves, three while the second does: 0.7 ms, times 3 and times 2.
        assert_eq!([leave(3), leave(2)], [21, 14]);
    }

    /// Two CPUs have tasks of a group whose time the first of them took.
    #[test]
    fn a_cpu_that_leaves_is_offline_before_the_others_which_still_count_in_its_groups() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2").without_ticks();
            let group = lab.sched.new_group(TgId::ROOT, 3072 << 10, CpuId(0), lab.time());
            let below = lab.sched.new_group(group, 1024 << 10, CpuId(0), lab.time());
            lab.sched.set_bandwidth(below, Some(2 * MS), 100 * MS, 0, lab.time());
            for cpu in [0, 1] {
                lab.fork("limited", cpu, NewTask { tg: below, ..lab.spec() });
            }
            let throttled = lab.sched.seen_on_cpu(below, CpuId(1)).0.throttled;
            lab.sched.cpu_deactivate(CpuId(1), lab.time());
            let (queue, se) = lab.sched.seen_on_cpu(below, CpuId(1));
            format!("throttled {throttled}, then {}, weight {}", queue.throttled, se.load.weight >> 10)
        });
        expect![[r#"
            v4.13..v6.12: throttled true, then false, weight 512
            v7.2..v7.3: throttled false, then false, weight 512"#]]
        .assert_eq(&found);
    }

    #[test]
    fn up_to_v6_12_a_cpu_that_leaves_still_counts_in_the_domains_that_leave_it_out() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x4");
            let now = lab.time();
            lab.sched.cpu_deactivate(CpuId(3), now);
            lab.sched.rebuild_domains(now);
            let (_, sd) = lab.sched.domains.walk(CpuId(0)).next().unwrap();
            format!(
                "{} of {} ms, {} busy",
                sd.span_weight, sd.balance_interval, lab.sched.domains.shared[0].nr_busy_cpus
            )
        });
        expect![[r#"
            v4.13..v6.12: 3 of 4 ms, 4 busy
            v7.2..v7.3: 3 of 3 ms, 3 busy"#]]
        .assert_eq(&found);
    }

    #[test]
    fn from_v5_18_on_the_last_cpu_of_a_node_does_not_count_among_nodes_as_it_leaves() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "3x1x2");
            let mut interval = |cpu: u16| {
                let now = lab.time();
                lab.sched.cpu_deactivate(CpuId(cpu), now);
                lab.sched.rebuild_domains(now);
                lab.sched.cpu_dying(CpuId(cpu), now);
                let (_, numa) = lab.sched.domains.walk(CpuId(0)).last().unwrap();
                format!("{} ms for {}", numa.balance_interval, numa.span_weight)
            };
            format!("{}, then {}", interval(5), interval(4))
        });
        expect![[r#"
            v4.13..v5.5: 6 ms for 5, then 5 ms for 4
            v5.18..v6.12: 6 ms for 5, then 4 ms for 4
            v7.2..v7.3: 5 ms for 5, then 4 ms for 4"#]]
        .assert_eq(&found);
    }

    #[test]
    fn a_thread_that_leaves_still_keeps_its_core_busy() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2x2");
            lab.hog("runs", 1);
            let idle = |lab: &Lab| lab.sched.is_core_idle(CpuId(0));
            lab.sched.cpu_deactivate(CpuId(1), lab.time());
            lab.sched.rebuild_domains(lab.time());
            let leaving = idle(&lab);
            lab.sched.switch_to(CpuId(1), Curr::Idle, lab.time());
            lab.sched.cpu_dying(CpuId(1), lab.time());
            format!("{leaving}, then {}", idle(&lab))
        });
        expect!["v4.13..v7.3: false, then true"].assert_eq(&found);
    }

    #[test]
    fn a_cpu_that_cannot_leave_was_offline_for_a_moment() {
        let mut lab = Lab::new("v6.12", "1x1x2");
        let group = lab.sched.new_group(TgId::ROOT, 1024 << 10, CpuId(0), lab.time());
        lab.sched.set_bandwidth(group, Some(MS), 100 * MS, 0, lab.time());
        let spec = NewTask { tg: group, ..lab.spec() };
        lab.fork("limited", 1, spec);
        lab.run(10 * MS);
        let (cfs, _) = lab.sched.made_on_cpu(group, CpuId(1));
        let throttled = lab.sched.cfs(cfs).throttled;
        lab.sched.cpu_stays(CpuId(1), lab.time());
        assert_eq!((throttled, lab.sched.cfs(cfs).throttled), (true, false));
        assert!(lab.sched.rqs[CpuId(1)].active && lab.sched.leaving.is_empty());
    }

    #[test]
    fn from_v6_6_on_every_cpu_reads_its_clock_when_another_leaves() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x3");
            let now = Time(lab.time().0 + 5 * MS);
            lab.sched.cpu_deactivate(CpuId(2), now);
            format!("{}", lab.sched.rqs[CpuId(0)].clock == now.0)
        });
        expect![[r#"
            v4.13..v6.3: false
            v6.10..v7.3: true"#]]
        .assert_eq(&found);
    }

    #[test]
    fn groups_have_new_capacities_from_the_start() {
        let mut lab = Lab::new("v6.12", "1x1x2");
        let now = lab.time();
        lab.sched.update_rq_clock(CpuId(0), now);
        lab.sched.rqs[CpuId(0)].cpu_capacity = 1;
        lab.sched.rqs[CpuId(1)].avg_rt.util_avg = 200;
        lab.sched.rebuild_domains(now);
        let groups = lab.sched.domains.sgcs.iter().map(|sgc| sgc.capacity);
        assert_eq!(groups.min(), Some(824), "what real-time tasks leave");
        let (_, sd) = lab.sched.domains.walk(CpuId(0)).next().unwrap();
        let sgc = &lab.sched.domains.sgcs[lab.sched.domains.sg(sd.groups.local()).sgc as usize];
        let due = sgc.next_update - lab.sched.jiffies(now);
        assert_eq!((lab.sched.rqs[CpuId(0)].cpu_capacity, due), (1024, 1));
    }

    #[test]
    fn a_task_sent_to_a_cpu_that_leaves_falls_back_until_domains_leave_it_out() {
        let told = |kernel: &str| -> String {
            let mut lab = Lab::new(kernel, "1x1x4");
            let spec = lab.spec();
            let mut fork = |name, cpu| lab.fork(name, cpu, spec.clone());
            let (task, waker) = (fork("sleeper", 3), fork("waker", 1));
            lab.sleep(task);
            let now = lab.time();
            let before = woken(&lab, task, waker);
            lab.sched.cpu_deactivate(CpuId(3), now);
            let leaving = woken(&lab, task, waker);
            lab.sched.rebuild_domains(now);
            let left = woken(&lab, task, waker);
            lab.sched.cpu_dying(CpuId(3), now);
            lab.sched.cpu_starting(CpuId(3));
            lab.sched.cpu_activate(CpuId(3), now);
            lab.sched.rebuild_domains(now);
            format!("{before}, {leaving}, {left}, {}", woken(&lab, task, waker))
        };
        expect![[r#"
            v4.13: cpu 3 PREV_IDLE, cpu 0 FALLBACK, cpu 0 FALLBACK, cpu 3 PREV_IDLE
            v5.5..v7.3: cpu 3 TARGET_IDLE, cpu 0 FALLBACK, cpu 0 FALLBACK, cpu 3 TARGET_IDLE"#]]
        .assert_eq(&by_kernel("", told));
    }

    #[test]
    fn a_task_whose_only_cpu_is_gone_goes_to_the_first_there_is_and_may_run_anywhere() {
        let told = |asleep: bool| {
            move |kernel: &str| -> String {
                let mut lab = Lab::new(kernel, "1x2x2");
                let allowed = Arc::new(CpuMask::one(4, CpuId(0)));
                let first = lab.hog("first", 0);
                let task = lab.fork("bound", 0, NewTask { allowed, ..lab.spec() });
                while asleep && lab.running(0) != "bound" {
                    lab.run(MS);
                }
                if asleep {
                    lab.sleep(task);
                }
                let now = lab.time();
                for other in [first, task] {
                    if lab.sched.rqs[CpuId(0)].curr == Curr::Task(other) {
                        lab.sched.switch_to(CpuId(0), Curr::Idle, now);
                        lab.sched.finish_task_switch(other);
                    }
                }
                lab.sched.cpu_deactivate(CpuId(0), now);
                lab.sched.cpu_dying(CpuId(0), now);
                let wakeup = Wakeup::by(first, CpuId(2), task);
                let later = Time(now.0 + MS);
                let listed = asleep && lab.sched.try_to_wake_up(&wakeup, later).remote;
                let reads = lab.sched.rqs[CpuId(0)].clock == later.0;
                let entry = lab.sched.task(task);
                let by = if listed { ", by its wake list" } else { "" };
                let clock = if reads { ", reads the old clock" } else { "" };
                format!("cpu {}{by}, one of {}{clock}", entry.cpu.0, entry.nr_cpus_allowed)
            }
        };
        expect!["v4.13..v7.3: cpu 1, one of 4"].assert_eq(&by_kernel("", told(false)));
        expect![[r#"
            v4.13..v6.12: cpu 1, by its wake list, one of 4
            v7.2..v7.3: cpu 1, by its wake list, one of 4, reads the old clock"#]]
        .assert_eq(&by_kernel("+NO_DELAY_DEQUEUE", told(true)));
    }

    #[test]
    fn a_deadline_task_that_may_run_anywhere_from_now_on_does_not_keep_a_deadline_that_is_over() {
        let told = |kernel: &str| -> String {
            let mut lab = Lab::new(kernel, "1x1x2");
            let policy = Policy::Deadline { runtime: 10 * MS, deadline: 200 * MS, period: 200 * MS };
            let allowed = Arc::new(CpuMask::one(2, CpuId(0)));
            let spec = NewTask { allowed, policy, ..lab.spec() };
            let [first, task] = ["first", "waits"].map(|name| lab.fork(name, 0, spec.clone()));
            let now = lab.time();
            lab.sched.task_mut(task).dl_deadline = now.0 - MS;
            lab.sched.switch_to(CpuId(0), Curr::Idle, now);
            lab.sched.finish_task_switch(first);
            lab.sched.cpu_deactivate(CpuId(0), now);
            lab.sched.cpu_dying(CpuId(0), now);
            let entry = lab.sched.task(task);
            format!("on cpu {} until {} ms from now", entry.cpu.0, (entry.dl_deadline - now.0) / MS)
        };
        expect!["v4.13..v7.3: on cpu 1 until 200 ms from now"].assert_eq(&by_kernel("", told));
    }

    #[test]
    fn an_idle_cpu_that_leaves_is_not_the_one_that_balances() {
        let told = |kernel: &str| -> String {
            // Two caches: the idle one of two CPUs balances for both.
            let mut lab = Lab::new(kernel, "1x2x2");
            for cpu in [0, 2, 3] {
                lab.hog("hog", cpu);
            }
            let now = lab.time();
            let balances = |lab: &Lab| {
                let (sd, _) = lab.sched.domains.walk(CpuId(0)).last().expect("it has domains");
                lab.sched.should_we_balance(CpuId(0), sd, IdleType::NotIdle, now)
            };
            let before = balances(&lab);
            lab.sched.cpu_deactivate(CpuId(1), now);
            let leaving = balances(&lab);
            lab.sched.rebuild_domains(now);
            format!("{before}, {leaving}, {}", balances(&lab))
        };
        expect!["v4.13..v7.3: false, true, true"].assert_eq(&by_kernel("", told));
    }

    #[test]
    fn a_crowd_on_a_cpu_without_domains_does_not_overload_the_machine() {
        let mut lab = Lab::new("v6.12", "1x1x3");
        let spec = lab.spec();
        lab.fork("runs", 2, spec.clone());
        let now = lab.time();
        lab.sched.cpu_deactivate(CpuId(2), now);
        lab.sched.rebuild_domains(now);
        lab.sched.domains.overload = false;
        lab.sched.add_nr_running(CpuId(2), 1);
        assert!(!lab.sched.domains.overload);
        lab.sched.add_nr_running(CpuId(0), 2);
        assert!(lab.sched.domains.overload);
    }

    #[test]
    fn setting_a_policy_gives_the_slice_of_today() {
        let told = |kernel: &str| -> String {
            let mut lab = Lab::new(kernel, "1x1x4");
            let spec = lab.spec();
            let task = lab.fork("t", 0, spec);
            for cpu in [3, 2] {
                let now = lab.time();
                lab.sched.set_online(CpuId(cpu), false, now);
            }
            let before = lab.sched.task(task).se.slice;
            let now = lab.time();
            lab.sched.set_policy(CpuId(0), task, Policy::Normal, now);
            format!("{before}, {}", lab.sched.task(task).se.slice)
        };
        expect![[r#"
            v4.13..v6.10: 2250000, 2250000
            v6.12..v7.3: 2100000, 1400000"#]]
        .assert_eq(&by_kernel("", told));
    }

    #[test]
    fn tunables_follow_the_cpus_that_are_online_when_domains_are_built() {
        let told = |kernel: &str| -> String {
            let mut lab = Lab::new(kernel, "1x1x4");
            let now = lab.time();
            let mut scaled = |cpu, online| {
                lab.sched.set_online(CpuId(cpu), online, now);
                lab.sched.scaled.base_slice / 1000
            };
            format!(
                "{:?} us",
                [(3, false), (2, false), (2, true), (3, true)].map(|(cpu, online)| scaled(cpu, online))
            )
        };
        expect![[r#"
            v4.13..v6.3: [1500, 1500, 1500, 2250] us
            v6.10: [2250, 1500, 1500, 2250] us
            v6.12..v7.3: [2100, 1400, 1400, 2100] us"#]]
        .assert_eq(&by_kernel("", told));
    }
}
