//! The fair server of a CPU without fair tasks: idle time counts as fair run time, and the server stops when its timer
//! expires.
//!
//! ```text
//!    the last fair task leaves   50 ms               v7.2: 1 s              v6.12: at the latest 1 s
//!      |-------------- idle -------|- a period begins ----|- the timer: Off   |- the timer: queued, picked, Off
//! ```

use schedlab_topology::CpuId;

use super::fair_server::ServerState;
use crate::{Curr, Feature, Sched};

impl Sched {
    /// The first fair task of a CPU is queued: the server starts.
    ///
    /// Kernel: enqueue_task_fair(), kernel/sched/fair.c, v6.12, v7.2.
    pub(crate) fn first_fair_task(&mut self, cpu: CpuId) {
        if !self.has_fair_server() {
            return;
        }
        self.stop_as_timer_would(cpu);
        if self.rqs[cpu].nr_running == 0 && self.kernel.has(Feature::ArrivalEndsRun) {
            self.server_update_idle_time(cpu);
        }
        self.fair_server_start(cpu);
    }

    /// The driver was not asked for a timer that has expired since, as no RT task waited. The CPU was idle then: if fair tasks
    /// had run, another period would have begun. So the server has stopped.
    pub(super) fn stop_as_timer_would(&mut self, cpu: CpuId) {
        let of = self.reservation();
        let idle = self.kernel.has(Feature::ServerIdle);
        let rq = &mut self.rqs[cpu];
        let (clock, server) = (rq.clock, &mut rq.fair_server);
        let Some(timer) = server.timer.filter(|&at| at < clock && !server.asked && server.is_active()) else {
            return;
        };
        if !idle {
            let at = if server.state == ServerState::Waits { server.zero_laxity().max(timer) } else { timer };
            server.starving |= server.state == ServerState::Waits;
            server.replenish(of, at);
        } else if !server.idle {
            server.starving = false;
            server.new_period(of, timer);
        }
        (server.state, server.timer, server.idle) = (ServerState::Off, None, false);
    }

    /// A CPU that stops being idle, or to which the first fair task comes, has left that much to its server. If the current
    /// task is another that is about to leave, as its group has no quota, what it has run and was not charged with is lost.
    ///
    /// Kernel: dl_server_update_idle_time(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn server_update_idle_time(&mut self, cpu: CpuId) {
        let now = self.rqs[cpu].clock_task;
        let curr = self.rqs[cpu].curr;
        let since = match curr {
            Curr::Idle => self.rqs[cpu].idle_exec_start,
            Curr::Task(task) => self.task(task).se.exec_start,
        };
        let enabled = self.reservation().runtime > 0;
        let server = &mut self.rqs[cpu].fair_server;
        // A server is set up when it first starts.
        if enabled && server.deadline == 0 {
            return;
        }
        let passed = now.wrapping_sub(since) as i64;
        if server.runtime < 0 || passed < 0 {
            return;
        }
        server.runtime -= passed;
        if server.runtime < 0 {
            (server.starving, server.runtime) = (false, 0);
        }
        match curr {
            Curr::Idle => self.rqs[cpu].idle_exec_start = now,
            Curr::Task(task) => self.task_mut(task).se.exec_start = now,
        }
    }

    /// Charges idle time.
    ///
    /// Kernel: update_curr_idle(), kernel/sched/idle.c, v7.2.
    pub(crate) fn update_curr_idle(&mut self, cpu: CpuId) {
        if !self.kernel.has(Feature::ServerIdle) {
            return;
        }
        let rq = &mut self.rqs[cpu];
        let passed = rq.clock_task.wrapping_sub(rq.idle_exec_start) as i64;
        if passed <= 0 {
            return;
        }
        rq.idle_exec_start = rq.clock_task;
        self.stop_as_timer_would(cpu);
        if self.rqs[cpu].fair_server.is_active() {
            self.fair_server_update(cpu, passed as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    use expect_test::expect;
    use schedlab_topology::CpuId;
    use schedlab_units::{TaskId, Time};

    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{EnqueueFlags, NewTask, Policy};

    const CPU: CpuId = CpuId(0);

    fn rt(lab: &mut Lab) -> TaskId {
        let spec = NewTask { policy: Policy::Fifo(50), ..lab.spec() };
        lab.fork("rt", 0, spec)
    }

    /// Queues a new fair task on the CPU of an RT task; whether that requests a switch, and what the RT task is charged with.
    fn fair_comes(lab: &mut Lab, rt: TaskId) -> (bool, u64) {
        lab.run(2 * MS);
        let charged = |lab: &Lab| lab.sched.task(rt).se.sum_exec_runtime;
        let (now, before) = (lab.time(), charged(lab));
        let task = lab.sched.new_task(&lab.spec(), None, now);
        lab.sched.set_cpu(task, CPU);
        lab.sched.activate(task, CPU, EnqueueFlags { initial: true, ..EnqueueFlags::default() }, now);
        (lab.sched.rqs[CPU].need_resched.full, (charged(lab) - before) / MS)
    }

    #[test]
    fn the_first_fair_task_of_a_cpu_requests_a_switch_whatever_runs_there() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
            let rt = rt(&mut lab);
            let (asks, charged) = fair_comes(&mut lab, rt);
            format!("asks {asks}, charges {charged} ms")
        });
        expect![[r#"
            v4.13..v6.10: asks false, charges 0 ms
            v6.12: asks true, charges 0 ms
            v7.2..v7.3: asks true, charges 2 ms"#]]
        .assert_eq(&found);
    }

    /// A fair task leaves this long before an RT task and another fair one come.
    #[test]
    fn a_server_stays_active_for_up_to_a_second_without_tasks_which_nothing_shows_but_the_next_start() {
        let after = |idle_ms: u64| {
            by_kernel("", |kernel| {
                let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
                let fair = lab.hog("fair", 0);
                lab.run(10 * MS);
                lab.sleep(fair);
                lab.run(idle_ms * MS);
                let rt = rt(&mut lab);
                format!("{}", fair_comes(&mut lab, rt).0)
            })
        };
        expect!["v4.13..v7.3: false"].assert_eq(&after(900));
        expect![[r#"
            v4.13..v6.10: false
            v6.12..v7.3: true"#]]
        .assert_eq(&after(1100));
    }

    /// The states of the server of a CPU that goes idle after 10 ms, and the ms at which its timers expire.
    #[test]
    fn the_timer_of_an_idle_cpu_stops_its_server() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
            let begins = lab.time().0;
            let fair = lab.hog("fair", 0);
            lab.run(10 * MS);
            lab.sleep(fair);
            let mut states = Vec::new();
            while let Some(at) = lab.sched.fair_server_timer_at(CPU) {
                lab.now = at;
                lab.sched.fair_server_timer(CPU, Time(at));
                let server = lab.sched.rqs[CPU].fair_server;
                states.push(format!("{} {:?} {}", (at - begins) / MS, server.state, server.runtime / 1000));
                lab.settle();
            }
            let server = lab.sched.rqs[CPU].fair_server;
            let queued = lab.sched.rqs[CPU].nr_running;
            format!("{}; {:?}, {queued} queued", states.join(", "), server.state)
        });
        expect![[r#"
            v4.13..v6.10: ; Off, 0 queued
            v6.12: 960 Runs 50000, 960 Off 50000; Off, 0 queued
            v7.2..v7.3: 950 Off 50000, 1900 Off 50000; Off, 0 queued"#]]
        .assert_eq(&found);
    }

    #[test]
    fn idle_time_is_taken_from_the_time_of_the_server_when_it_ends_or_with_every_tick() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1");
            let fair = lab.hog("fair", 0);
            lab.run(10 * MS);
            lab.sleep(fair);
            let left = |lab: &Lab| lab.sched.rqs[CPU].fair_server.runtime / MS as i64;
            let before = left(&lab);
            lab.run(20 * MS);
            let idle = left(&lab);
            lab.wake(fair);
            format!("{before} ms, idle {idle}, then {}", left(&lab))
        });
        expect![[r#"
            v4.13..v6.10: 0 ms, idle 0, then 0
            v6.12: 44 ms, idle 44, then 24
            v7.2..v7.3: 40 ms, idle 22, then 20"#]]
        .assert_eq(&found);
    }

    #[test]
    fn a_server_that_runs_counts_as_a_task_of_its_cpu_in_v6_12() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1");
            rt(&mut lab);
            lab.hog("fair", 0);
            let mut counts: Vec<String> = Vec::new();
            for ms in [940, 20, 40] {
                lab.run(ms * MS);
                counts.push(format!("{} of {}", lab.running(0), lab.sched.rqs[CPU].nr_running));
            }
            counts.join(", ")
        });
        expect![[r#"
            v4.13..v6.10: rt of 2, fair of 1, fair of 1
            v6.12: rt of 2, fair of 3, rt of 2
            v7.2..v7.3: rt of 2, fair of 2, rt of 2"#]]
        .assert_eq(&found);
    }

    /// An RT task runs and the fair tasks have left. A pass finds that the CPU is not idle, but has noted since when it was.
    #[test]
    fn a_server_that_is_picked_without_fair_tasks_looks_for_work_from_v7_2_on() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2");
            let begins = lab.time().0;
            let fair = lab.hog("fair", 0);
            lab.run(10 * MS);
            lab.sleep(fair);
            rt(&mut lab);
            for name in ["a", "b"] {
                lab.hog(name, 1);
            }
            lab.run(960 * MS);
            let looked = lab.sched.rqs[CPU].idle_stamp.checked_sub(begins).map(|at| at / MS);
            format!("{}, looked at {looked:?}", lab.running(0))
        });
        expect![[r#"
            v4.13: a, looked at None
            v5.5: idle, looked at Some(964)
            v5.18..v6.3: a, looked at None
            v6.10: b, looked at None
            v6.12: rt, looked at Some(10)
            v7.2..v7.3: rt, looked at Some(960)"#]]
        .assert_eq(&found);
    }

    /// The last real-time task becomes a fair one while the server runs, and then all leave.
    #[test]
    fn a_cpu_whose_tasks_are_all_fair_leaves_its_server_queued_from_v7_2_on() {
        let found = by_kernel("+NO_DELAY_DEQUEUE", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1");
            let tasks = [rt(&mut lab), lab.hog("fair", 0)];
            while lab.running(0) != "fair" {
                lab.run(MS);
            }
            lab.sched.set_policy(CPU, tasks[0], Policy::Normal, lab.time());
            lab.settle();
            for _ in tasks {
                let runs = lab.sched.rqs[CPU].curr.task().expect("a task is left");
                lab.sleep(runs);
            }
            format!("{}, {:?}", lab.running(0), lab.sched.rqs[CPU].fair_server.state)
        });
        expect![[r#"
            v4.13..v6.12: idle, Off
            v7.2..v7.3: idle, Runs"#]]
        .assert_eq(&found);
    }

    /// A fair task is woken while the server runs another, whose charge has requested a switch, and an RT task waits.
    #[test]
    fn rt_tasks_behind_a_server_do_not_keep_a_woken_fair_task_from_preempting() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
            let sleeper = lab.hog("sleeper", 0);
            lab.run(MS);
            lab.sleep(sleeper);
            lab.nice_hog("fair", 0, 19);
            rt(&mut lab);
            while lab.running(0) != "fair" {
                lab.run(MS);
            }
            let now = lab.time();
            lab.sched.activate(sleeper, CPU, EnqueueFlags { wakeup: true, ..EnqueueFlags::default() }, now);
            lab.sched.rqs[CPU].need_resched.full = true;
            format!("{:?}", lab.sched.wakeup_preempt(CPU, sleeper, crate::wf::TTWU).reason)
        });
        expect![[r#"
            v4.13..v7.2: KeepPending
            v7.3: KeepProtected"#]]
        .assert_eq(&found);
    }

    #[test]
    fn a_cpu_that_leaves_stops_its_server_whose_bandwidth_is_in_use_until_it_is_owed_nothing() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2").without_ticks();
            let begins = lab.time().0;
            let fair = lab.hog("fair", 1);
            lab.run(10 * MS);
            lab.sleep(fair);
            let cpu = CpuId(1);
            lab.sched.cpu_deactivate(cpu, lab.time());
            lab.sched.cpu_dying(cpu, lab.time());
            let due = lab.sched.fair_server_timer_at(cpu).map(|at| (at - begins) / MS);
            format!("{:?}, clock read at {due:?} ms", lab.sched.rqs[cpu].fair_server.state)
        });
        expect![[r#"
            v4.13..v6.10: Off, clock read at None ms
            v6.12: Off, clock read at Some(10) ms
            v7.2..v7.3: Off, clock read at Some(200) ms"#]]
        .assert_eq(&found);
    }
}
