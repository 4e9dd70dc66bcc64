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
//! The first fair task of a CPU starts it. What fair tasks run is subtracted from the 50 ms, and once that is used up
//! another second begins. It stays active without tasks, until its timer expires (`fair_server_idle.rs`). The driver is asked
//! for that timer only where RT tasks wait with fair ones: elsewhere it reads a clock and stops the server, which is
//! made up for when the next fair task comes. Not modelled: reclaimed bandwidth.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use super::dl::{BW_SHIFT, add_periods, dl_entity_overflow};
use crate::cfs_rq::before;
use crate::class::Class;
use crate::{Curr, Effect, Feature, RtThrottle, Sched, SeId};

/// If less than this is left, the server is not deferred further, ns.
///
/// Kernel: dl_server_min_res, kernel/sched/deadline.c, v6.12.
const MIN_RES: u64 = 1_000_000;

/// The state of a CPU's server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerState {
    /// Inactive.
    #[default]
    Off,
    /// It defers its time (dl_throttled, dl_defer_armed).
    Waits,
    /// It is queued among the deadline tasks: fair tasks run before RT tasks.
    Runs,
    /// Its time is used up until the next period (dl_throttled).
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
    /// A period began while the CPU was idle, and no fair task has run in it (dl_defer_idle).
    pub idle: bool,
    /// When its timer expires, if that is set.
    pub timer: Option<u64>,
    /// When its bandwidth is no longer in use, if it stopped before: a timer reads the clock then.
    pub zero_lag: Option<u64>,
    /// The driver was asked for its timer.
    pub(super) asked: bool,
}

/// Time of a server in each period, and its period, which is its relative deadline too; ns.
#[derive(Clone, Copy)]
pub(super) struct Reservation {
    pub(super) runtime: u64,
    period: u64,
}

impl FairServer {
    /// Whether it was started, and has not stopped since.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.state != ServerState::Off
    }

    /// Whether it is queued among the deadline tasks.
    #[inline]
    pub fn runs(&self) -> bool {
        self.state == ServerState::Runs
    }

    /// A period begins. Unless fair tasks starve, its time is deferred.
    ///
    /// Kernel: replenish_dl_new_period(), kernel/sched/deadline.c, v6.12.
    pub(super) fn new_period(&mut self, of: Reservation, clock: u64) {
        (self.deadline, self.runtime) = (clock + of.period, of.runtime as i64);
        if !self.starving {
            self.state = ServerState::Waits;
        }
    }

    fn overflows(&self, of: Reservation, clock: u64) -> bool {
        dl_entity_overflow(self.runtime, self.deadline.wrapping_sub(clock), of.runtime, of.period)
    }

    /// It starts. The rest of its last period may be kept if that takes no more than its bandwidth.
    ///
    /// Kernel: update_dl_entity(), update_dl_revised_wakeup(), kernel/sched/deadline.c, v6.12.
    fn start(&mut self, of: Reservation, clock: u64) {
        let past = before(self.deadline, clock);
        let overflows = past || self.overflows(of, clock);
        if overflows && (past || !self.starving) {
            self.starving = false;
            self.new_period(of, clock);
            return;
        }
        if overflows {
            let density = (u128::from(of.runtime) << BW_SHIFT) / u128::from(of.period);
            let laxity = u128::from(self.deadline.wrapping_sub(clock));
            self.runtime = ((density * laxity) >> BW_SHIFT) as i64;
        }
        self.state = if self.starving { ServerState::Runs } else { ServerState::Waits };
    }

    /// It gets its time again: deferred time that begins now, or that of another period.
    ///
    /// Kernel: replenish_dl_entity(), kernel/sched/deadline.c, v6.12.
    pub(super) fn replenish(&mut self, of: Reservation, clock: u64) {
        let deferred = self.state == ServerState::Waits;
        if deferred && self.overflows(of, clock) {
            (self.deadline, self.runtime) = (clock + of.period, of.runtime as i64);
        }
        add_periods(&mut self.deadline, &mut self.runtime, of.period, of.runtime);
        let late = before(self.deadline, clock);
        if late {
            (self.deadline, self.runtime) = (clock + of.period, of.runtime as i64);
        }
        let waits = !deferred
            && !late
            && !self.starving
            && before(clock, self.deadline.wrapping_sub(self.runtime as u64));
        self.state = if waits { ServerState::Waits } else { ServerState::Runs };
    }

    /// What remains of its period before it must run, by the time it has left.
    pub(super) fn zero_laxity(&self) -> u64 {
        self.deadline.wrapping_sub(self.runtime as u64)
    }
}

impl Sched {
    /// Whether the kernel has fair servers.
    #[inline]
    pub fn has_fair_server(&self) -> bool {
        self.kernel.rules.rt_throttle == RtThrottle::FairServer
    }

    /// Kernel: dl_server_apply_params(), kernel/sched/deadline.c, v6.12.
    pub(super) fn reservation(&self) -> Reservation {
        let tunables = &self.kernel.tunables;
        let period = tunables.fair_server_period_ns;
        Reservation { runtime: tunables.fair_server_runtime_ns.min(period), period }
    }

    /// The first fair task of a CPU is queued, or its groups have quota again. What the CPU runs makes way for a switch,
    /// whatever it is, if the server is not active yet. A CPU that is offline starts none.
    ///
    /// Kernel: dl_server_start(), kernel/sched/deadline.c, v6.12, v7.2.
    pub(crate) fn fair_server_start(&mut self, cpu: CpuId) {
        if !self.has_fair_server() {
            return;
        }
        let of = self.reservation();
        let server = &mut self.rqs[cpu].fair_server;
        server.idle = false;
        if server.is_active() || of.runtime == 0 {
            return;
        }
        if self.kernel.has(Feature::ServerStartCharges) {
            self.update_curr_of_class(cpu);
        }
        if !self.rqs[cpu].online {
            return;
        }
        let clock = self.rqs[cpu].clock;
        let server = &mut self.rqs[cpu].fair_server;
        server.zero_lag = None;
        server.start(of, clock);
        self.enqueue_fair_server(cpu);
        self.fair_server_preempts(cpu);
    }

    /// Charges what a CPU runs, of whatever class.
    pub(super) fn update_curr_of_class(&mut self, cpu: CpuId) {
        match (self.rqs[cpu].curr, self.curr_class(cpu)) {
            (Curr::Idle, _) => self.update_curr_idle(cpu),
            (Curr::Task(task), Class::Fair) => self.update_curr_fair(SeId(task.0)),
            (Curr::Task(_), Class::Rt) => self.update_curr_rt(cpu),
            (Curr::Task(_), Class::Dl) => self.update_curr_dl(cpu),
            (Curr::Task(_), _) => {}
        }
    }

    /// A server joins the queue, or its timer does that.
    ///
    /// Kernel: enqueue_dl_entity(), kernel/sched/deadline.c, v6.12.
    fn enqueue_fair_server(&mut self, cpu: CpuId) {
        if !self.rqs[cpu].fair_server.runs() && self.start_fair_server_timer(cpu) {
            return;
        }
        let rq = &mut self.rqs[cpu];
        rq.cpupri_higher |= rq.dl_queue.is_empty();
        (rq.fair_server.state, rq.fair_server.timer) = (ServerState::Runs, None);
        if self.kernel.has(Feature::ServerCounts) {
            self.add_nr_running(cpu, 1);
        }
    }

    /// Kernel: __dequeue_dl_entity(), kernel/sched/deadline.c, v6.12.
    fn dequeue_fair_server(&mut self, cpu: CpuId) {
        let counts = self.kernel.has(Feature::ServerCounts);
        let rq = &mut self.rqs[cpu];
        rq.nr_running -= u32::from(counts);
        rq.cpupri_higher &= !rq.dl_queue.is_empty();
    }

    fn fair_server_preempts(&mut self, cpu: CpuId) {
        let rq = &self.rqs[cpu];
        let running = rq.curr.task().filter(|&task| self.class_of(task) == Class::Dl);
        if running.is_none_or(|task| before(rq.fair_server.deadline, self.task(task).dl_deadline)) {
            self.resched_now(cpu);
        }
    }

    /// Sets the timer for the time at which a deferred server must run, or for its next period; false if that was more than a
    /// microsecond ago. A timer that is set stays as it is.
    ///
    /// Kernel: start_dl_timer(), kernel/sched/deadline.c, v6.12.
    fn start_fair_server_timer(&mut self, cpu: CpuId) -> bool {
        let rq = &mut self.rqs[cpu];
        let (clock, server) = (rq.clock, &mut rq.fair_server);
        let at = if server.state == ServerState::Waits { server.zero_laxity() } else { server.deadline };
        if at.wrapping_sub(clock) as i64 <= -1000 {
            return false;
        }
        if server.timer.is_none() {
            let skipped = rq.called.saturating_sub(clock);
            (server.timer, server.asked) = (Some(at + skipped), false);
            self.ask_for_fair_server(cpu);
        }
        true
    }

    /// The driver is asked for the timer of a server where RT tasks may keep fair ones waiting.
    pub(super) fn ask_for_fair_server(&mut self, cpu: CpuId) {
        if self.root_cfs(cpu).h_nr_queued == 0 {
            self.stop_as_timer_would(cpu);
        }
        let rq = &mut self.rqs[cpu];
        let Some(at) = rq.fair_server.timer else { return };
        if !rq.rt_queue.is_empty() && !core::mem::replace(&mut rq.fair_server.asked, true) {
            self.effects.push(Effect::StartRtPeriodTimer { at: at.max(rq.clock) });
        }
    }

    /// Kernel: dl_server_stop(), task_non_contending(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn fair_server_stop(&mut self, cpu: CpuId) {
        let of = self.reservation();
        let rq = &self.rqs[cpu];
        let (server, clock) = (rq.fair_server, rq.clock);
        let stops = server.is_active() || !self.kernel.has(Feature::ServerIdle) && server.deadline != 0;
        if !self.has_fair_server() || of.runtime == 0 || !stops {
            return;
        }
        if server.runs() {
            self.dequeue_fair_server(cpu);
        }
        let owed = server.runtime * of.period as i64 / of.runtime as i64;
        let zero_lag = server.deadline as i64 - owed;
        let rq = &mut self.rqs[cpu];
        let skipped = rq.called.saturating_sub(clock);
        let server = &mut rq.fair_server;
        if zero_lag >= clock as i64 && server.zero_lag.is_none() {
            server.zero_lag = Some(zero_lag as u64 + skipped);
        }
        (server.state, server.timer, server.idle) = (ServerState::Off, None, false);
    }

    /// Whether the server is the first of the deadline class.
    #[inline]
    pub(crate) fn fair_server_first(&self, cpu: CpuId) -> bool {
        let rq = &self.rqs[cpu];
        let earlier = |&task| before(rq.fair_server.deadline, self.task(task).dl_deadline);
        rq.fair_server.runs() && rq.dl_queue.first().is_none_or(earlier)
    }

    /// The server has used this much: a fair task ran, with or without it, or the CPU was idle.
    ///
    /// Kernel: dl_server_update(), kernel/sched/deadline.c, v6.12.
    #[inline]
    pub(crate) fn fair_server_update(&mut self, cpu: CpuId, ran: u64) {
        let rq = &mut self.rqs[cpu];
        let idle = rq.curr == Curr::Idle && rq.nr_running == 0 && !rq.ttwu_pending;
        let server = &mut rq.fair_server;
        server.runtime -= ran as i64;
        server.idle &= idle;
        if server.runtime <= 0 {
            self.fair_server_exceeded(cpu, idle);
        }
    }

    /// A server that defers was not needed in this period: it begins another.
    ///
    /// Kernel: update_curr_dl_se(), kernel/sched/deadline.c, v6.12, v7.2.
    fn fair_server_exceeded(&mut self, cpu: CpuId, idle: bool) {
        let of = self.reservation();
        let clock = self.rqs[cpu].clock;
        let server = &mut self.rqs[cpu].fair_server;
        if !server.runs() {
            if server.idle {
                server.runtime = 0;
                return;
            }
            (server.starving, server.timer) = (false, None);
            server.new_period(of, clock);
            server.idle = idle;
            self.start_fair_server_timer(cpu);
            return;
        }
        self.dequeue_fair_server(cpu);
        self.rqs[cpu].fair_server.state = ServerState::Spent;
        if !self.start_fair_server_timer(cpu) {
            if self.kernel.has(Feature::ServerIdle) {
                self.rqs[cpu].fair_server.new_period(of, clock);
                self.start_fair_server_timer(cpu);
            } else {
                self.rqs[cpu].fair_server.replenish(of, clock);
                self.enqueue_fair_server(cpu);
            }
        }
        if !self.fair_server_first(cpu) {
            self.resched_now(cpu);
        }
    }

    /// When the next timer of a CPU's server expires.
    pub fn fair_server_timer_at(&self, cpu: CpuId) -> Option<u64> {
        let server = &self.rqs[cpu].fair_server;
        match (server.timer, server.zero_lag) {
            (Some(timer), Some(zero_lag)) => Some(timer.min(zero_lag)),
            (timer, zero_lag) => timer.or(zero_lag),
        }
    }

    /// The timers of servers expire that the driver was asked for.
    pub(super) fn fair_server_timers(&mut self, now: Time) {
        for cpu in (0..self.rqs.len()).map(CpuId::from) {
            if self.rqs[cpu].fair_server.asked {
                self.fair_server_timer(cpu, now);
            }
        }
    }

    /// Those timers of a CPU's server expire that are due: deferred time begins, or a new period.
    ///
    /// Kernel: dl_server_timer(), inactive_task_timer(), kernel/sched/deadline.c, v6.12, v7.2.
    pub fn fair_server_timer(&mut self, cpu: CpuId, now: Time) {
        if let Some(timer) = self.rqs[cpu].fair_server.timer.take_if(|at| *at <= now.0) {
            self.dl_server_timer(cpu, timer, now);
        }
        if self.rqs[cpu].fair_server.zero_lag.take_if(|at| *at <= now.0).is_some() {
            self.update_rq_clock(cpu, now);
        }
    }

    fn dl_server_timer(&mut self, cpu: CpuId, timer: u64, now: Time) {
        let server = &mut self.rqs[cpu].fair_server;
        server.asked = false;
        if !matches!(server.state, ServerState::Waits | ServerState::Spent) {
            return;
        }
        self.update_rq_clock(cpu, now);
        if self.kernel.has(Feature::ServerIdle) {
            self.update_curr_of_class(cpu);
            let server = self.rqs[cpu].fair_server;
            if server.idle {
                self.fair_server_stop(cpu);
                // A timer is not cancelled while it expires.
                self.rqs[cpu].fair_server.timer = server.timer;
                return;
            }
        }
        let of = self.reservation();
        let clock = self.rqs[cpu].clock;
        let server = &mut self.rqs[cpu].fair_server;
        if server.state == ServerState::Waits {
            if before(clock, server.zero_laxity().wrapping_sub(MIN_RES)) {
                let later = timer + server.zero_laxity().wrapping_sub(clock);
                if server.timer.is_none() {
                    server.timer = Some(later);
                    self.ask_for_fair_server(cpu);
                }
                return;
            }
            server.starving = true;
        }
        server.replenish(of, clock);
        self.enqueue_fair_server(cpu);
        self.fair_server_preempts(cpu);
        if !self.rqs[cpu].dl_queue.is_empty() {
            self.push_task(cpu, cpu, Class::Dl, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{NICE_0_LOAD, NewTask, Policy, TgId};

    const CPU: CpuId = CpuId(0);

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
    fn a_server_that_starts_has_what_runs_charged_in_its_own_queue_or_in_those_of_its_groups_too() {
        let charged = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
            let tg = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CPU, lab.time());
            let spec = NewTask { tg, ..lab.spec() };
            let task = lab.fork("fair", 0, spec);
            lab.run(MS);
            let ran = |lab: &Lab| {
                let group = lab.sched.tg(tg).se[0];
                [lab.sched.task(task).se.sum_exec_runtime, lab.sched.se(group).sum_exec_runtime]
                    .map(|ns| ns / 1000)
            };
            let before = ran(&lab);
            lab.now += MS / 2;
            let now = lab.time();
            lab.sched.fair_server_stop(CPU);
            lab.sched.update_rq_clock(CPU, now);
            lab.sched.fair_server_start(CPU);
            let after = ran(&lab);
            format!("task {} us, group {} us", after[0] - before[0], after[1] - before[1])
        };
        expect![[r#"
            v4.13..v6.12: task 0 us, group 0 us
            v7.2: task 1500 us, group 0 us
            v7.3: task 1500 us, group 1500 us"#]]
        .assert_eq(&by_kernel("", charged));
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
