//! The fair server: a deadline server that runs fair tasks which RT tasks keep waiting.
//!
//! It has 50 ms of each second by default, and defers them for as long as it can, as fair tasks may get that much
//! without it.
//!
//! ```text
//!    a fair task waits     950 ms   1 s                   1.95 s   2 s
//!      |--------- RT ---------|-fair-|--------- RT ----------|-fair-|--- RT ...
//! ```
//!
//! Fair run time in between is subtracted from the 50 ms, and once that is used up another second begins. Here the
//! server is active only while RT and fair tasks are queued together: without RT tasks a second begins again every 50
//! ms, so one more that begins with the arrival of the first RT task makes no difference. Not modelled: idle time
//! counts as fair run time, and the server is queued among the deadline tasks, all of which precede it here.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use super::dl::{add_periods, dl_entity_overflow};
use crate::cfs_rq::before;
use crate::{Effect, RtThrottle, Sched};

/// If less than this is left, the server is not deferred further, ns.
///
/// Kernel: dl_server_min_res, kernel/sched/deadline.c, v6.12.
const MIN_RES: u64 = 1_000_000;

/// The state of a CPU's server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerState {
    /// Inactive: RT and fair tasks are not queued together.
    #[default]
    Off,
    /// It defers its time.
    Waits,
    /// Fair tasks run before RT tasks.
    Runs,
    /// Its time is used up until the next period.
    Spent,
}

/// The fair server of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FairServer {
    /// Its state.
    pub state: ServerState,
    /// The remaining time, ns.
    pub runtime: i64,
    /// End of its period.
    pub deadline: u64,
    /// It had to run in this period or before, and does not defer (dl_defer_running).
    pub starving: bool,
    /// When its timer expires.
    pub timer: u64,
}

impl Sched {
    /// RT and fair tasks may both be queued on a CPU: the server starts.
    ///
    /// Kernel: dl_server_start(), update_dl_entity(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn fair_server_start(&mut self, cpu: CpuId) {
        let rq = &self.rqs[cpu];
        if rq.fair_server.state != ServerState::Off
            || rq.rt_queue.is_empty()
            || self.kernel.rules.rt_throttle != RtThrottle::FairServer
            || self.fair_server_params().0 == 0
            || self.root_cfs(cpu).h_nr_queued == 0
        {
            return;
        }
        let (dl_runtime, dl_period) = self.fair_server_params();
        let now = rq.clock;
        let server = &rq.fair_server;
        let past = before(server.deadline, now);
        let laxity = server.deadline.wrapping_sub(now);
        let overflow = dl_entity_overflow(server.runtime, laxity, dl_runtime, dl_period);
        if past || overflow && !server.starving {
            self.fair_server_new_period(cpu);
        } else if overflow {
            self.rqs[cpu].fair_server.runtime =
                (dl_runtime as i128 * laxity as i128 / dl_period as i128) as i64;
        }
        if self.rqs[cpu].fair_server.starving {
            self.fair_server_runs(cpu);
        } else {
            self.fair_server_waits(cpu);
        }
    }

    /// Time of the server in each period, and its period, which is its relative deadline too; ns.
    ///
    /// Kernel: dl_server_apply_params(), kernel/sched/deadline.c, v6.12.
    fn fair_server_params(&self) -> (u64, u64) {
        let tunables = &self.kernel.tunables;
        let period = tunables.fair_server_period_ns;
        (tunables.fair_server_runtime_ns.min(period), period)
    }

    /// Whether fair tasks of a CPU run before its RT tasks.
    #[inline]
    pub(crate) fn fair_before_rt(&self, cpu: CpuId) -> bool {
        self.rqs[cpu].fair_server.state == ServerState::Runs && self.root_cfs(cpu).h_nr_queued > 0
    }

    fn fair_server_new_period(&mut self, cpu: CpuId) {
        let (dl_runtime, dl_period) = self.fair_server_params();
        let rq = &mut self.rqs[cpu];
        let server = &mut rq.fair_server;
        (server.deadline, server.runtime) = (rq.clock + dl_period, dl_runtime as i64);
        server.starving = false;
    }

    /// It runs when its time would otherwise exceed the rest of the period.
    fn fair_server_waits(&mut self, cpu: CpuId) {
        let server = self.rqs[cpu].fair_server;
        self.fair_server_timer_at(cpu, ServerState::Waits, server.deadline - server.runtime.max(0) as u64);
    }

    fn fair_server_timer_at(&mut self, cpu: CpuId, state: ServerState, at: u64) {
        let rq = &mut self.rqs[cpu];
        let at = at.max(rq.clock);
        (rq.fair_server.state, rq.fair_server.timer) = (state, at);
        self.effects.push(Effect::StartRtPeriodTimer { at });
    }

    fn fair_server_runs(&mut self, cpu: CpuId) {
        let server = &mut self.rqs[cpu].fair_server;
        (server.state, server.starving) = (ServerState::Runs, true);
        self.resched_now(cpu);
    }

    /// A fair task ran for this long, with or without the server.
    ///
    /// Kernel: dl_server_update(), update_curr_dl_se(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn fair_server_update(&mut self, cpu: CpuId, ran: u64) {
        let rq = &mut self.rqs[cpu];
        let server = &mut rq.fair_server;
        server.runtime -= ran as i64;
        if server.runtime > 0 {
            return;
        }
        if server.state != ServerState::Runs {
            self.fair_server_new_period(cpu);
            if self.rqs[cpu].rt_queue.is_empty() {
                self.rqs[cpu].fair_server.state = ServerState::Off;
            } else {
                self.fair_server_waits(cpu);
            }
        } else if before(server.deadline, rq.clock) {
            self.fair_server_replenish(cpu);
        } else {
            let at = server.deadline;
            self.fair_server_timer_at(cpu, ServerState::Spent, at);
            self.resched_now(cpu);
        }
    }

    /// Kernel: replenish_dl_entity(), kernel/sched/deadline.c, v6.12.
    fn fair_server_replenish(&mut self, cpu: CpuId) {
        let (dl_runtime, dl_period) = self.fair_server_params();
        let rq = &mut self.rqs[cpu];
        let server = &mut rq.fair_server;
        add_periods(&mut server.deadline, &mut server.runtime, dl_period, dl_runtime);
        if before(server.deadline, rq.clock) {
            self.fair_server_new_period(cpu);
        }
    }

    /// Due timers of servers expire: deferred time begins, or a new period.
    ///
    /// Kernel: dl_server_timer(), kernel/sched/deadline.c, v6.12.
    pub(super) fn fair_server_timers(&mut self, now: Time) {
        for cpu in (0..self.rqs.len()).map(CpuId::from) {
            let server = self.rqs[cpu].fair_server;
            if matches!(server.state, ServerState::Waits | ServerState::Spent) && server.timer <= now.0 {
                self.update_rq_clock(cpu, now);
                self.fair_server_timer(cpu);
            }
        }
    }

    fn fair_server_timer(&mut self, cpu: CpuId) {
        let rq = &self.rqs[cpu];
        let (server, clock) = (rq.fair_server, rq.clock);
        if rq.rt_queue.is_empty() || self.root_cfs(cpu).h_nr_queued == 0 {
            self.rqs[cpu].fair_server.state = ServerState::Off;
            return;
        }
        if server.state == ServerState::Spent {
            self.fair_server_replenish(cpu);
        } else if before(clock, server.deadline - server.runtime as u64 - MIN_RES) {
            return self.fair_server_waits(cpu);
        } else {
            // So little of the period is left that another one begins.
            self.fair_server_new_period(cpu);
        }
        self.fair_server_runs(cpu);
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use expect_test::expect;

    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{NewTask, Policy};

    fn rt(lab: &Lab) -> NewTask {
        NewTask { policy: Policy::Fifo(50), ..lab.spec() }
    }

    /// How long a fair task waits that is woken after an RT task has run for `before` ms, and its share of the 4 s
    /// after that.
    fn waits(before: u64) -> impl Fn(&str) -> String {
        move |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1");
            let spec = rt(&lab);
            lab.fork("rt", 0, spec);
            lab.run(before * MS);
            let fair = lab.hog("fair", 0);
            let mut waited = 0;
            while lab.running(0) != "fair" {
                lab.run(MS);
                waited += 1;
            }
            format!("{waited} ms, {}", lab.shares(&[fair], 4000 * MS)[0])
        }
    }

    #[test]
    fn a_fair_task_behind_rt_tasks_has_50_ms_of_each_second_from_when_it_began_to_wait() {
        expect![[r#"
            v4.13..v6.10: 952 ms, 50
            v6.12..v7.3: 950 ms, 50"#]]
        .assert_eq(&by_kernel("", waits(0)));
        expect![[r#"
            v4.13..v6.10: 848 ms, 50
            v6.12..v7.3: 950 ms, 50"#]]
        .assert_eq(&by_kernel("", waits(40_100)));
    }

    #[test]
    fn the_time_of_the_server_and_its_period_can_be_set() {
        let of_400_ms = "+fair_server_period_ns=400000000+fair_server_runtime_ns=100000000";
        expect![[r#"
            v4.13..v6.10: 952 ms, 50
            v6.12..v7.3: 300 ms, 250"#]]
        .assert_eq(&by_kernel(of_400_ms, waits(0)));
        let none = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x1");
            let spec = rt(&lab);
            lab.fork("rt", 0, spec);
            let fair = lab.hog("fair", 0);
            format!("{}", lab.shares(&[fair], 4000 * MS)[0])
        };
        expect![[r#"
            v4.13..v6.10: 49
            v6.12..v7.3: 0"#]]
        .assert_eq(&by_kernel("+fair_server_runtime_ns=0", none));
    }

    #[test]
    fn what_fair_tasks_run_between_rt_tasks_counts() {
        // The RT task leaves this much of each 100 ms.
        let by_server = |left: u64| {
            move |kernel: &str| {
                let mut lab = Lab::new(kernel, "1x1x1");
                let spec = rt(&lab);
                let task = lab.fork("rt", 0, spec);
                lab.hog("fair", 0);
                let mut held_up = 0;
                for _ in 0..30 {
                    let runs = lab.sched.task(task).se.sum_exec_runtime;
                    lab.run((100 - left) * MS);
                    let ran = lab.ran(task) - runs;
                    held_up += (100 - left) - ran / MS;
                    while lab.running(0) != "rt" {
                        lab.run(MS);
                    }
                    lab.sleep(task);
                    lab.run(left * MS);
                    lab.wake(task);
                }
                format!("{held_up} ms")
            }
        };
        expect!["v4.13..v7.3: 0 ms"].assert_eq(&by_kernel("", by_server(10)));
        expect![[r#"
            v4.13..v6.10: 73 ms
            v6.12..v7.3: 120 ms"#]]
        .assert_eq(&by_kernel("", by_server(1)));
    }
}
