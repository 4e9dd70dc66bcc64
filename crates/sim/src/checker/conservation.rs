//! Time adds up: the time charged to a task while it is on a CPU is no more than the time it was there, plus the time
//! since the last wake-up or move to that CPU, whose clock the scheduler may have used, or since the last charge of
//! the task that ran before. A throttled task that continues may be charged from any time at which its CPU idled. The
//! rest is what interrupts stole.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_topology::CpuId;
use schedlab_trace::{Event, Kind, Sink};
use schedlab_units::{Duration, Pid, Time};

use super::Findings;

/// The checker. Needs `sched_stat_runtime` beside `sched_switch`.
#[derive(Clone, Debug, Default)]
pub struct Conservation {
    /// The task that runs on each CPU, since when, and its charges.
    stays: BTreeMap<CpuId, Stay>,
    /// When a task was last queued on each CPU, since its last switch.
    queued: BTreeMap<CpuId, Time>,
    /// The tasks that are being woken. Such a task that changes its CPU is queued there later.
    waking: BTreeSet<Pid>,
    /// The tasks that left their CPU runnable.
    runnable: BTreeSet<Pid>,
    /// Time charged to tasks, time they were on a CPU, time CPUs were idle.
    totals: Totals,
    /// The findings.
    pub findings: Findings,
}

#[derive(Clone, Copy, Debug)]
struct Stay {
    pid: Pid,
    since: Time,
    /// From when on it may have been charged.
    clock: Time,
    /// Until when a task was charged.
    told: Option<Time>,
    charged: Duration,
}

/// Where the time of all CPUs went, between each one's first and last switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Charged to tasks.
    pub charged: Duration,
    /// Tasks on a CPU, interrupts included.
    pub busy: Duration,
    /// Idle.
    pub idle: Duration,
}

impl Conservation {
    /// Where the time went so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }
}

impl Sink for Conservation {
    fn event(&mut self, event: &Event) {
        match event.kind {
            Kind::SchedStatRuntime { pid, runtime, .. } => {
                // A task's charge may be reported from another CPU; it counts where the task runs.
                if let Some(stay) = self.stays.get_mut(&event.cpu).filter(|stay| stay.pid == pid) {
                    stay.charged += Duration(runtime);
                    stay.told = Some(event.time);
                }
            }
            Kind::SchedWaking { pid, .. } => _ = self.waking.insert(pid),
            Kind::SchedMigrateTask { pid, .. } if self.waking.contains(&pid) => {}
            Kind::SchedWakeup { pid, target_cpu: cpu, .. }
            | Kind::SchedWakeupNew { pid, target_cpu: cpu, .. }
            | Kind::SchedMigrateTask { pid, dest_cpu: cpu, .. } => {
                self.waking.remove(&pid);
                self.queued.insert(cpu, event.time);
            }
            Kind::SchedSwitch { prev_pid, prev_state, next_pid, .. } => {
                let since = event.time;
                // A CPU on its way to idle may get a task and still switch to idle first.
                let queued = match next_pid {
                    Pid::IDLE => None,
                    _ => self.queued.remove(&event.cpu),
                };
                let mut clock = queued.unwrap_or(since);
                let last = self.stays.remove(&event.cpu);
                if prev_state.is_runnable() {
                    self.runnable.insert(prev_pid);
                }
                let throttled = self.runnable.remove(&next_pid) && prev_pid == Pid::IDLE;
                if let Some(last) = last {
                    let read = if throttled { Some(last.since) } else { last.told };
                    clock = read.map_or(clock, |read| clock.min(read));
                }
                let stay = Stay { pid: next_pid, since, clock, told: None, charged: Duration::ZERO };
                self.stays.insert(event.cpu, stay);
                let Some(last) = last else { return };
                let there = event.time.since(last.since);
                if last.pid == Pid::IDLE {
                    self.totals.idle += there;
                    return;
                }
                self.totals.busy += there;
                self.totals.charged += last.charged;
                let there = event.time.since(last.clock);
                if last.charged > there {
                    self.findings.add(event.time, event.cpu, || {
                        let Stay { pid, charged, .. } = last;
                        format!("task {pid} was charged {charged} in a stay of {there}")
                    });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{event, switch, wakeup};
    use super::*;
    use schedlab_trace::Comm;

    fn runtime(time: u64, cpu: u16, pid: i32, runtime: u64) -> Event {
        let comm = Comm::default();
        event(time, cpu, Kind::SchedStatRuntime { comm, pid: Pid(pid), runtime, vruntime: None })
    }

    #[test]
    fn charged_time_fits_into_the_stay() {
        let mut checker = Conservation::default();
        for event in [
            switch(0, 0, 0, "R", 5),
            runtime(4_000, 0, 5, 3_900),
            runtime(6_000, 0, 5, 2_000),
            switch(6_000, 0, 5, "S", 0),
            switch(9_000, 0, 0, "R", 6),
        ] {
            checker.event(&event);
        }
        assert!(checker.findings.is_empty());
        let totals = Totals { charged: Duration(5_900), busy: Duration(6_000), idle: Duration(3_000) };
        assert_eq!(checker.totals(), totals);
        checker.event(&runtime(9_500, 0, 6, 2_000));
        checker.event(&switch(10_000, 0, 6, "S", 0));
        assert_eq!(checker.findings.first()[0].what, "task 6 was charged 2us in a stay of 1us");
    }

    #[test]
    fn the_way_from_the_last_charge_may_be_charged() {
        let mut checker = Conservation::default();
        for event in [
            switch(0, 0, 7, "S", 5),
            runtime(4_000, 0, 5, 4_000),
            switch(6_000, 0, 5, "S", 6),
            runtime(8_000, 0, 6, 4_000),
            switch(8_000, 0, 6, "S", 7),
            runtime(9_000, 0, 7, 2_000),
            switch(9_000, 0, 7, "S", 8),
        ] {
            checker.event(&event);
        }
        assert_eq!(checker.findings.first()[0].what, "task 7 was charged 2us in a stay of 1us");
        assert_eq!(checker.findings.count(), 1);
    }

    #[test]
    fn the_way_from_the_wake_up_may_be_charged() {
        let mut checker = Conservation::default();
        let comm = Comm::default();
        let elsewhere = Kind::SchedWaking { comm, pid: Pid(6), prio: 120, target_cpu: CpuId(1) };
        let comes =
            Kind::SchedMigrateTask { comm, pid: Pid(6), prio: 120, orig_cpu: CpuId(1), dest_cpu: CpuId(0) };
        for event in [
            switch(0, 0, 7, "S", 0),
            wakeup(2_000, 1, 5, 0),
            // On its way to a wake list, which reads no clock of the CPU.
            event(3_000, 2, elsewhere),
            event(3_000, 2, comes),
            switch(5_000, 0, 0, "R", 5),
            wakeup(5_500, 0, 6, 0),
            runtime(6_000, 0, 5, 4_000),
            switch(6_000, 0, 5, "S", 0),
        ] {
            checker.event(&event);
        }
        assert!(checker.findings.is_empty());
    }
}
