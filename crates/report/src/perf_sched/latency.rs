//! `perf sched latency`: run time and wait time per task.
//!
//! A wait begins when a task is made runnable and ends when it runs. Versions of perf define the beginning
//! differently, see [`Reading`]; both are followed, and the table uses one.
//!
//! Run time is what the kernel accounted (`sched_stat_runtime`). If that was not recorded, perf prints zeros;
//! here the time from switch to switch is used instead.

use std::collections::BTreeMap;

use schedlab_trace::read::Lost;
use schedlab_trace::{Event, Kind, Sink, TaskState};
use schedlab_units::{Duration, Pid, Time};
use serde::Serialize;

use super::by_pid::ByPid;
use super::names::Names;
use super::seconds;

/// When a wait begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// As [`Reading::Perf61`] if the trace has `sched_wakeup`, otherwise as [`Reading::Perf69`].
    ///
    /// `perf sched record` has left out `sched_wakeup` since 5.10, and so in its own files perf up to 6.8
    /// found no delay at all.
    #[default]
    Auto,
    /// perf up to 6.8: at `sched_wakeup`; a task marked as preempted (`R+`) does not wait.
    Perf61,
    /// perf from 6.9 on: at `sched_waking`; a preempted task waits.
    Perf69,
}

/// What lines are ordered by, largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// Average delay.
    Avg,
    /// Longest delay.
    Max,
    /// How often it was switched to.
    Switch,
    /// Run time.
    Runtime,
    /// The task's number.
    Pid,
}

impl SortKey {
    /// The default order.
    pub const DEFAULT: [SortKey; 4] = [SortKey::Avg, SortKey::Max, SortKey::Switch, SortKey::Runtime];

    /// The key of a name: avg, max, switch, runtime, pid.
    pub fn parse(name: &str) -> Option<SortKey> {
        Some(match name {
            "avg" => SortKey::Avg,
            "max" => SortKey::Max,
            "switch" => SortKey::Switch,
            "runtime" => SortKey::Runtime,
            "pid" => SortKey::Pid,
            _ => return None,
        })
    }
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LatencyRow {
    /// The task's name.
    pub comm: String,
    /// Its pid; the highest of several tasks with one name.
    pub pid: i32,
    /// How many tasks of that name the line sums up.
    pub tasks: u32,
    /// Time it ran, ns.
    pub runtime_ns: u64,
    /// How often it was switched to after a wait.
    pub switches: u64,
    /// Average delay, ns.
    pub avg_delay_ns: u64,
    /// Longest delay, ns.
    pub max_delay_ns: u64,
    /// When the longest delay began, ns.
    pub max_delay_start_ns: u64,
    /// When the longest delay ended, ns.
    pub max_delay_end_ns: u64,
}

/// The totals below the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LatencyTotal {
    /// Run time of the listed tasks, ns.
    pub runtime_ns: u64,
    /// How often they were switched to after a wait.
    pub switches: u64,
    /// Switches away from a task other than the last one switched to on that CPU.
    pub switch_bugs: u64,
    /// Wake-ups, including those out of order.
    pub wakeups: u64,
    /// Wake-ups that are recorded before the sleep that they end.
    pub unordered: u64,
    /// Number of lost events, if counted.
    pub lost_events: u64,
    /// Places where events were lost.
    pub losses: u64,
    /// Events and losses read. perf also counts the other records in its file.
    pub events: u64,
}

/// Follows run times and delays. Needs `sched_switch`, `sched_wakeup` or `sched_waking`,
/// `sched_wakeup_new`, and `sched_stat_runtime` if it is there.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    names: Names,
    tasks: ByPid<Task>,
    cpus: Vec<Cpu>,
    has_wakeup: bool,
    has_runtime: bool,
    /// By reading: 6.1, 6.9.
    wakeups: [u64; 2],
    unordered: [u64; 2],
    switch_bugs: u64,
    lost_events: u64,
    losses: u64,
    events: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    since: Option<Time>,
    curr: Option<Pid>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    accounted: Duration,
    switched: Duration,
    /// By reading: 6.1, 6.9.
    delays: [Delays; 2],
}

/// The waits of one task by one reading.
#[derive(Clone, Copy, Debug, Default)]
struct Delays {
    state: State,
    count: u64,
    total: Duration,
    max: Duration,
    max_start: Time,
    max_end: Time,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unseen,
    Sleeping(Time),
    Waiting(Time),
    Running,
}

const READINGS: [Reading; 2] = [Reading::Perf61, Reading::Perf69];

impl Latency {
    /// The lines, tasks of one name together unless `per_pid`, in the order of the keys.
    pub fn rows(&self, reading: Reading, per_pid: bool, keys: &[SortKey]) -> Vec<LatencyRow> {
        let reading = self.index(reading);
        let rows = self.tasks.in_order().into_iter().map(|(pid, task)| self.row(pid, task, reading));
        let mut rows: Vec<(LatencyRow, Duration)> = if per_pid {
            rows.rev().collect()
        } else {
            let mut merged: BTreeMap<String, (LatencyRow, Duration)> = BTreeMap::new();
            for (row, total) in rows.rev() {
                match merged.get_mut(&row.comm) {
                    Some((sum, sum_total)) => {
                        merge(sum, &row);
                        *sum_total += total;
                    }
                    None => drop(merged.insert(row.comm.clone(), (row, total))),
                }
            }
            merged.into_values().rev().collect()
        };
        rows.retain(|(row, _)| row.switches > 0);
        let mut rows: Vec<LatencyRow> = rows
            .into_iter()
            .map(|(row, total)| LatencyRow { avg_delay_ns: total.0 / row.switches, ..row })
            .collect();
        rows.sort_by(|a, b| {
            let order = keys.iter().map(|&key| column(b, key).cmp(&column(a, key)));
            order.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
        rows
    }

    /// The totals below these lines.
    pub fn total(&self, reading: Reading, rows: &[LatencyRow]) -> LatencyTotal {
        LatencyTotal {
            runtime_ns: rows.iter().map(|row| row.runtime_ns).sum(),
            switches: rows.iter().map(|row| row.switches).sum(),
            switch_bugs: self.switch_bugs,
            wakeups: self.wakeups[self.index(reading)],
            unordered: self.unordered[self.index(reading)],
            lost_events: self.lost_events,
            losses: self.losses,
            events: self.events,
        }
    }

    /// The table.
    pub fn text(&self, reading: Reading, per_pid: bool, keys: &[SortKey]) -> String {
        let rows = self.rows(reading, per_pid, keys);
        let mut out = format!("\n {}\n", "-".repeat(139));
        out += "  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    \
                | Max delay start           | Max delay end          |\n";
        out += &format!(" {}\n", "-".repeat(139));
        for row in &rows {
            out += &line(row);
        }
        let total = self.total(reading, &rows);
        out += &format!(" {}\n", "-".repeat(113));
        out +=
            &format!("  TOTAL:                |{:11.3} ms |{:9} |\n", ms(total.runtime_ns), total.switches);
        out += &format!(" {}\n", "-".repeat(51));
        out + &total.bad_events() + "\n"
    }

    fn index(&self, reading: Reading) -> usize {
        match reading {
            Reading::Auto => usize::from(!self.has_wakeup),
            Reading::Perf61 => 0,
            Reading::Perf69 => 1,
        }
    }

    /// The line of one task, its average not yet computed, and its summed delays.
    fn row(&self, pid: Pid, task: &Task, reading: usize) -> (LatencyRow, Duration) {
        let delays = &task.delays[reading];
        let row = LatencyRow {
            comm: self.names.of(pid).comm.to_string(),
            pid: pid.0,
            tasks: 1,
            runtime_ns: if self.has_runtime { task.accounted } else { task.switched }.0,
            switches: delays.count,
            avg_delay_ns: 0,
            max_delay_ns: delays.max.0,
            max_delay_start_ns: delays.max_start.0,
            max_delay_end_ns: delays.max_end.0,
        };
        (row, delays.total)
    }

    fn switch(&mut self, event: &Event, prev: Pid, state: TaskState, next: Pid) {
        let index = event.cpu.index();
        if index >= self.cpus.len() {
            self.cpus.resize(index + 1, Cpu::default());
        }
        let cpu = &mut self.cpus[index];
        if cpu.curr.is_some_and(|curr| curr != prev) {
            self.switch_bugs += 1;
        }
        let ran = cpu.since.map_or(Duration::ZERO, |since| event.time.since(since));
        *cpu = Cpu { since: Some(event.time), curr: Some(next) };

        if let Some(task) = self.task(prev) {
            task.switched += ran;
            for (reading, delays) in READINGS.iter().zip(&mut task.delays) {
                let waits = match reading {
                    Reading::Perf69 => state.is_runnable(),
                    _ => state == TaskState::RUNNING,
                };
                delays.state = if waits { State::Waiting(event.time) } else { State::Sleeping(event.time) };
            }
        }
        if let Some(task) = self.task(next) {
            task.delays.iter_mut().for_each(|delays| delays.run(event.time));
        }
    }

    fn wakeup(&mut self, pid: Pid, reading: usize, time: Time) {
        match self.task(pid).map(|task| task.delays[reading].wake(time)) {
            Some(Woken::InOrder) => self.wakeups[reading] += 1,
            Some(Woken::TooEarly) => {
                self.wakeups[reading] += 1;
                self.unordered[reading] += 1;
            }
            Some(Woken::Awake) | None => {}
        }
    }

    /// A task; the idle ones are not listed.
    fn task(&mut self, pid: Pid) -> Option<&mut Task> {
        (pid != Pid::IDLE).then(|| self.tasks.of(pid))
    }
}

impl LatencyTotal {
    /// perf's messages about events that are missing or wrong.
    fn bad_events(&self) -> String {
        let info = |bad: u64, all: u64, what: &str, more: &str| {
            let percent = bad as f64 / all as f64 * 100.0;
            format!("  INFO: {percent:.3}% {what} ({bad} out of {all}{more}\n")
        };
        let mut out = String::new();
        if self.unordered > 0 && self.wakeups > 0 {
            out += &info(self.unordered, self.wakeups, "unordered timestamps", ")");
        }
        if self.lost_events > 0 && self.events > 0 {
            let chunks = format!(", in {} chunks)", self.losses);
            out += &info(self.lost_events, self.events, "lost events", &chunks);
        }
        if self.switch_bugs > 0 && self.wakeups > 0 {
            let why = if self.lost_events > 0 { ") (due to lost events?)" } else { ")" };
            out += &info(self.switch_bugs, self.wakeups, "context switch bugs", why);
        }
        out
    }
}

/// The state in which a wake-up found its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    /// A task that slept.
    InOrder,
    /// A task that falls asleep only later, so the times are wrong.
    TooEarly,
    /// A task that is already runnable.
    Awake,
}

impl Delays {
    /// A wake-up; only one that is in order changes anything.
    fn wake(&mut self, time: Time) -> Woken {
        match self.state {
            State::Sleeping(since) if since > time => Woken::TooEarly,
            State::Waiting(_) | State::Running => Woken::Awake,
            State::Unseen | State::Sleeping(_) => {
                self.state = State::Waiting(time);
                Woken::InOrder
            }
        }
    }

    /// The task runs. A new task is counted with zero delay.
    fn run(&mut self, time: Time) {
        let since = match self.state {
            State::Unseen => time,
            State::Waiting(since) if since <= time => since,
            _ => return,
        };
        let delay = time.since(since);
        self.count += 1;
        self.total += delay;
        if delay > self.max {
            (self.max, self.max_start, self.max_end) = (delay, since, time);
        }
        self.state = State::Running;
    }
}

impl Sink for Latency {
    fn lost(&mut self, lost: &Lost) {
        self.losses += 1;
        self.events += 1;
        self.lost_events = self.lost_events.saturating_add(lost.count.unwrap_or(0));
    }

    fn event(&mut self, event: &Event) {
        self.events += 1;
        self.names.event(event);
        match event.kind {
            Kind::SchedSwitch { prev_pid, prev_state, next_pid, .. } => {
                self.switch(event, prev_pid, prev_state, next_pid);
            }
            Kind::SchedWakeup { pid, .. } => {
                self.has_wakeup = true;
                self.wakeup(pid, 0, event.time);
            }
            Kind::SchedWaking { pid, .. } => self.wakeup(pid, 1, event.time),
            Kind::SchedWakeupNew { pid, .. } => {
                self.wakeup(pid, 0, event.time);
                self.wakeup(pid, 1, event.time);
            }
            Kind::SchedStatRuntime { pid, runtime, .. } => {
                self.has_runtime = true;
                if let Some(task) = self.task(pid) {
                    task.accounted += Duration(runtime);
                    for delays in &mut task.delays {
                        if delays.state == State::Unseen {
                            delays.state = State::Waiting(event.time);
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

fn merge(sum: &mut LatencyRow, row: &LatencyRow) {
    sum.tasks += row.tasks;
    sum.runtime_ns += row.runtime_ns;
    sum.switches += row.switches;
    if sum.max_delay_ns < row.max_delay_ns {
        sum.max_delay_ns = row.max_delay_ns;
        sum.max_delay_start_ns = row.max_delay_start_ns;
        sum.max_delay_end_ns = row.max_delay_end_ns;
    }
}

fn column(row: &LatencyRow, key: SortKey) -> u64 {
    match key {
        SortKey::Avg => row.avg_delay_ns,
        SortKey::Max => row.max_delay_ns,
        SortKey::Switch => row.switches,
        SortKey::Runtime => row.runtime_ns,
        SortKey::Pid => row.pid as u64,
    }
}

fn line(row: &LatencyRow) -> String {
    let task = match row.tasks {
        1 => format!("  {}:{} ", row.comm, row.pid),
        tasks => format!("  {}:({tasks}) ", row.comm),
    };
    format!(
        "{task:24}|{:11.3} ms |{:9} | avg:{:8.3} ms | max:{:8.3} ms | max start: {:>12} s | max end: {:>12} s\n",
        ms(row.runtime_ns),
        row.switches,
        ms(row.avg_delay_ns),
        ms(row.max_delay_ns),
        seconds(Time(row.max_delay_start_ns)),
        seconds(Time(row.max_delay_end_ns)),
    )
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::super::testdata::{TRACE, barred, feed};
    use super::*;
    use expect_test::{Expect, expect};

    fn latency(text: &str) -> Latency {
        let mut latency = Latency::default();
        feed(text, &mut latency);
        latency
    }

    fn check(text: &str, reading: Reading, per_pid: bool, expected: Expect) {
        expected.assert_eq(&barred(&latency(text).text(reading, per_pid, &SortKey::DEFAULT)));
    }

    #[test]
    fn a_delay_is_the_time_from_wakeup_to_switch() {
        check(
            TRACE,
            Reading::Auto,
            true,
            expect![[r#"
                ||
                | -------------------------------------------------------------------------------------------------------------------------------------------|
                |  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    | Max delay start           | Max delay end          ||
                | -------------------------------------------------------------------------------------------------------------------------------------------|
                |  cc1:72                |      1.500 ms |        2 | avg:   0.415 ms | max:   0.750 ms | max start:     1.000500 s | max end:     1.001250 s|
                |  make:71               |      1.000 ms |        1 | avg:   0.050 ms | max:   0.050 ms | max start:     1.000200 s | max end:     1.000250 s|
                |  ld:73                 |      8.100 ms |        1 | avg:   0.000 ms | max:   0.000 ms | max start:     0.000000 s | max end:     0.000000 s|
                | -----------------------------------------------------------------------------------------------------------------|
                |  TOTAL:                |     10.600 ms |        4 ||
                | ---------------------------------------------------|
                ||
            "#]],
        );
    }

    #[test]
    fn tasks_of_one_name_are_summed_up() {
        check(
            &TRACE.replace("=ld", "=cc1"),
            Reading::Auto,
            false,
            expect![[r#"
                ||
                | -------------------------------------------------------------------------------------------------------------------------------------------|
                |  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    | Max delay start           | Max delay end          ||
                | -------------------------------------------------------------------------------------------------------------------------------------------|
                |  cc1:(2)               |      9.600 ms |        3 | avg:   0.277 ms | max:   0.750 ms | max start:     1.000500 s | max end:     1.001250 s|
                |  make:71               |      1.000 ms |        1 | avg:   0.050 ms | max:   0.050 ms | max start:     1.000200 s | max end:     1.000250 s|
                | -----------------------------------------------------------------------------------------------------------------|
                |  TOTAL:                |     10.600 ms |        4 ||
                | ---------------------------------------------------|
                ||
            "#]],
        );
    }

    #[test]
    fn later_versions_begin_at_waking_and_count_preemption() {
        check(
            TRACE,
            Reading::Perf69,
            true,
            expect![[r#"
                ||
                | -------------------------------------------------------------------------------------------------------------------------------------------|
                |  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    | Max delay start           | Max delay end          ||
                | -------------------------------------------------------------------------------------------------------------------------------------------|
                |  ld:73                 |      8.100 ms |        2 | avg:   0.500 ms | max:   1.000 ms | max start:     1.003100 s | max end:     1.004100 s|
                |  cc1:72                |      1.500 ms |        2 | avg:   0.425 ms | max:   0.750 ms | max start:     1.000500 s | max end:     1.001250 s|
                |  make:71               |      1.000 ms |        1 | avg:   0.150 ms | max:   0.150 ms | max start:     1.000100 s | max end:     1.000250 s|
                | -----------------------------------------------------------------------------------------------------------------|
                |  TOTAL:                |     10.600 ms |        5 ||
                | ---------------------------------------------------|
                ||
            "#]],
        );
    }

    #[test]
    fn without_sched_wakeup_a_delay_begins_at_waking() {
        let text: String = TRACE
            .lines()
            .filter(|line| !line.contains("sched_wakeup:"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert!(latency(&text).rows(Reading::Perf61, true, &[])[0].avg_delay_ns == 0);
        let auto = latency(&text).rows(Reading::Auto, true, &[]);
        assert_eq!(auto, latency(&text).rows(Reading::Perf69, true, &[]));
        assert!(auto.iter().any(|row| row.avg_delay_ns > 0));
    }

    #[test]
    fn accounted_run_time_goes_before_measured() {
        let accounted = "ld-73 [001] 1.009050: sched_stat_runtime: comm=ld pid=73 runtime=7777777 [ns]\n";
        let rows = latency(&format!("{TRACE}{accounted}")).rows(Reading::Auto, true, &[SortKey::Runtime]);
        let ran: Vec<(&str, u64)> = rows.iter().map(|row| (row.comm.as_str(), row.runtime_ns)).collect();
        assert_eq!(ran, [("ld", 7_777_777), ("cc1", 0), ("make", 0)]);
    }

    #[test]
    fn a_switch_from_a_task_that_did_not_run_is_reported() {
        let lost = TRACE.replacen("prev_pid=72", "prev_pid=79", 1);
        let text = latency(&lost).text(Reading::Auto, false, &SortKey::DEFAULT);
        assert!(text.contains("INFO: 50.000% context switch bugs (1 out of 2)"), "{text}");
    }

    #[test]
    fn lost_events_and_times_that_go_back_are_reported() {
        // cc1 sleeps from 1.00175 on; the wake-up that ends it seems to come earlier, or two chunks of events are
        // lost.
        let back = TRACE.replace("1.003020: sched_wakeup", "1.001500: sched_wakeup");
        assert_ne!(back, TRACE);
        let text = latency(&back).text(Reading::Perf61, false, &SortKey::DEFAULT);
        assert!(text.contains("\n  INFO: 33.333% unordered timestamps (1 out of 3)\n\n"), "{text}");
        let mut fold = latency(&TRACE.replacen("prev_pid=72", "prev_pid=79", 1));
        let events = fold.total(Reading::Auto, &[]).events;
        (events..18).for_each(|_| fold.events += 1);
        fold.lost(&Lost { cpu: None, count: Some(4), after: None });
        fold.lost(&Lost { cpu: None, count: None, after: None });
        let text = fold.text(Reading::Auto, false, &SortKey::DEFAULT);
        let info = "\n  INFO: 20.000% lost events (4 out of 20, in 2 chunks)\n  \
                    INFO: 50.000% context switch bugs (1 out of 2) (due to lost events?)\n\n";
        assert!(text.contains(info), "{text}");
    }
}
