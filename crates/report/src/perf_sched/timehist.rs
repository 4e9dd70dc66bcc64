//! `perf sched timehist`: each run of a task, how long it had waited before, and why.
//!
//! A line is printed at the switch *away* from a task: the time between its last switch away and this stretch
//! is its wait, the part of it after the wake-up the scheduling delay. The summary adds up the stretches of
//! each task and the idle time of each CPU.
//!
//! Columns and numbers are those of perf 6.1, which counts no scheduling delay for a task
//! that was preempted. The letters of states are the kernel's own; perf 6.1 has old ones.

use std::collections::BTreeMap;

use schedlab_stats::Moments;
use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Kind, Sink, TaskState};
use schedlab_units::{Duration, Pid, Time};
use serde::Serialize;

use super::by_pid::ByPid;
use super::names::{Name, Names};
use super::{millis, push_millis, push_number, push_pid, push_seconds};

/// The part of a trace that is shown.
#[derive(Clone, Debug, Default)]
pub struct TimehistOptions {
    /// Wake-ups, too.
    pub wakeups: bool,
    /// Migrations, too.
    pub migrations: bool,
    /// The task that runs next.
    pub next: bool,
    /// The state in which the task left.
    pub state: bool,
    /// Only these CPUs.
    pub cpus: Option<Vec<CpuId>>,
    /// Only these tasks.
    pub tids: Option<Vec<Pid>>,
    /// From this time on.
    pub start: Option<Time>,
    /// Up to this time.
    pub stop: Option<Time>,
    /// CPUs of the machine, if known: those that never switch count as idle.
    pub nr_cpus: u16,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TimehistRow {
    /// A task leaves its CPU.
    Switch(SwitchRow),
    /// A task is woken.
    Wakeup {
        /// When, ns.
        time_ns: u64,
        /// The CPU of the waker.
        cpu: u16,
        /// The task that ran there.
        task: String,
        /// The task woken.
        woken: String,
    },
    /// A task is moved.
    Migration {
        /// When, ns.
        time_ns: u64,
        /// Where that was decided.
        cpu: u16,
        /// The task that ran there.
        task: String,
        /// The task moved.
        moved: String,
        /// From which CPU.
        from: u16,
        /// To which CPU.
        to: u16,
    },
}

/// A stretch of run time, at its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SwitchRow {
    /// When it ended, ns.
    pub time_ns: u64,
    /// The CPU.
    pub cpu: u16,
    /// The task as perf writes it: `make[71]`, `java[72/70]`, `<idle>`.
    pub task: String,
    /// Time from its last switch away to this stretch, ns.
    pub wait_ns: u64,
    /// Time from its wake-up to this stretch, ns.
    pub delay_ns: u64,
    /// Length of the stretch, ns.
    pub run_ns: u64,
    /// The letter of its state; `I` for the idle tasks.
    pub state: char,
    /// The task that runs next.
    pub next: String,
}

/// Follows the stretches and hands each row to a function. Needs `sched_switch`, `sched_waking`
/// or `sched_wakeup`, `sched_wakeup_new`, and `sched_migrate_task`.
#[derive(Debug)]
pub struct Timehist<F> {
    options: TimehistOptions,
    names: Names,
    /// The last switch on each CPU.
    switched: BTreeMap<CpuId, Time>,
    tasks: ByPid<Task>,
    idle: BTreeMap<CpuId, Task>,
    nr_cpus: u16,
    nr_switches: u64,
    has_waking: bool,
    begin: Option<Time>,
    end: Time,
    out: F,
}

#[derive(Clone, Debug, Default)]
struct Task {
    left: Option<Time>,
    ready: Option<Time>,
    runs: Moments,
    run: Duration,
    shortest: Option<Duration>,
    longest: Duration,
    migrations: u64,
}

impl<F: FnMut(&TimehistRow)> Timehist<F> {
    /// Shows the part selected by the options.
    pub fn new(options: TimehistOptions, out: F) -> Timehist<F> {
        Timehist {
            nr_cpus: options.nr_cpus,
            options,
            names: Names::default(),
            switched: BTreeMap::new(),
            tasks: ByPid::default(),
            idle: BTreeMap::new(),
            nr_switches: 0,
            has_waking: false,
            begin: None,
            end: Time::ZERO,
            out,
        }
    }

    /// The summary so far.
    pub fn summary(&self) -> TimehistSummary {
        let row = |(pid, task): (Pid, &Task)| {
            let name = self.names.of(pid);
            RunRow {
                task: task_name(pid, name),
                parent: name.parent.map_or(-1, |parent| parent.0),
                runs: task.runs.n(),
                run_ns: task.run.0,
                min_run_ns: task.shortest.unwrap_or_default().0,
                avg_run_ns: task.runs.mean() as u64,
                max_run_ns: task.longest.0,
                error_percent: error_percent(&task.runs),
                migrations: task.migrations,
                terminated: name.dead,
            }
        };
        let tasks = self.tasks.in_order().into_iter();
        let tasks = tasks.filter(|(pid, task)| self.options.has_task(*pid) && task.runs.n() > 0);
        let (terminated, tasks): (Vec<RunRow>, Vec<RunRow>) = tasks.map(row).partition(|row| row.terminated);
        let span = self.end.since(self.begin.unwrap_or(self.end));
        let idle = |cpu: u16| {
            let task = self.idle.get(&CpuId(cpu)).filter(|task| task.runs.n() > 0);
            CpuIdleRow { cpu, idle_ns: task.map(|task| task.run.0) }
        };
        let totals = TimehistTotals {
            tasks: (tasks.len() + terminated.len()) as u64,
            switches: self.nr_switches,
            run_ns: tasks.iter().chain(&terminated).map(|row| row.run_ns).sum(),
            span_ns: span.0,
            cpus: self.nr_cpus,
        };
        // For single tasks idle time and sums are not of interest, and perf does not print them.
        let cpus = if self.options.tids.is_some() { 0 } else { self.nr_cpus };
        let idle = (0..cpus).filter(|cpu| self.options.has_cpu(CpuId(*cpu))).map(idle).collect();
        TimehistSummary { tasks, terminated, idle, totals }
    }

    /// Whether an event is shown that is about a task and happened under another.
    fn is_shown(&self, event: &Event, pid: Pid) -> bool {
        self.options.has_cpu(event.cpu)
            && (self.options.has_task(pid) || self.options.has_task(event.pid))
            && self.options.start.is_none_or(|start| start <= event.time)
            && self.options.stop.is_none_or(|stop| event.time <= stop)
    }

    /// A task leaves its CPU.
    fn switch(&mut self, event: &Event, prev: Pid, state: TaskState, next: (Pid, Comm)) {
        let since = self.switched.insert(event.cpu, event.time);
        let shown_since = since.map(|since| since.max(self.options.start.unwrap_or(since)));
        let time = event.time.min(self.options.stop.unwrap_or(event.time));
        let is_inside = self.options.start.is_none_or(|start| start <= event.time)
            && self.options.stop.is_none_or(|stop| shown_since.is_none_or(|since| since <= stop));

        let task = match prev {
            Pid::IDLE => self.idle.entry(event.cpu).or_default(),
            pid => self.tasks.of(pid),
        };
        let stretch = task.stretch(shown_since, time);
        task.left = Some(event.time);
        task.ready = None;
        if !is_inside {
            return;
        }
        self.begin.get_or_insert(event.time);
        self.end = time;
        if !self.options.has_cpu(event.cpu) {
            return;
        }
        task.count(stretch.run);
        self.nr_switches += 1;
        if !self.options.has_task(prev) {
            return;
        }
        let letter = if prev == Pid::IDLE { 'I' } else { letter(state) };
        let task = match prev {
            Pid::IDLE => "<idle>".to_owned(),
            pid => task_name(pid, self.names.of(pid)),
        };
        let (next, comm) = next;
        (self.out)(&TimehistRow::Switch(SwitchRow {
            time_ns: time.0,
            cpu: event.cpu.0,
            task,
            wait_ns: stretch.wait.0,
            delay_ns: stretch.delay.0,
            run_ns: stretch.run.0,
            state: letter,
            next: task_name(next, Name { comm, ..Name::default() }),
        }));
    }

    fn wakeup(&mut self, event: &Event, pid: Pid) {
        self.tasks.of(pid).ready.get_or_insert(event.time);
        if self.options.wakeups && self.is_shown(event, pid) {
            let (task, woken) = (self.current(event), task_name(pid, self.names.of(pid)));
            let (time_ns, cpu) = (event.time.0, event.cpu.0);
            (self.out)(&TimehistRow::Wakeup { time_ns, cpu, task, woken });
        }
    }

    /// The task that ran where an event happened.
    fn current(&self, event: &Event) -> String {
        match event.pid {
            Pid::IDLE => "swapper".to_owned(),
            pid => {
                let known = self.names.of(pid);
                let comm = if known.comm.is_empty() { event.comm } else { known.comm };
                task_name(pid, Name { comm, ..known })
            }
        }
    }
}

/// The parts of the time that ends with a stretch.
struct Stretch {
    wait: Duration,
    delay: Duration,
    run: Duration,
}

impl Task {
    /// The stretch from the CPU's last switch to this one. Times that go backwards, which happens if events
    /// were lost, count as zero.
    fn stretch(&self, since: Option<Time>, time: Time) -> Stretch {
        let Some(since) = since else {
            return Stretch { wait: Duration::ZERO, delay: Duration::ZERO, run: Duration::ZERO };
        };
        Stretch {
            wait: self.left.map_or(Duration::ZERO, |left| since.since(left)),
            delay: self.ready.map_or(Duration::ZERO, |ready| since.since(ready)),
            run: time.since(since),
        }
    }

    fn count(&mut self, run: Duration) {
        self.runs.push(run.0 as f64);
        self.run += run;
        self.shortest = Some(self.shortest.map_or(run, |shortest| shortest.min(run)));
        self.longest = self.longest.max(run);
    }
}

impl<F: FnMut(&TimehistRow)> Sink for Timehist<F> {
    fn event(&mut self, event: &Event) {
        self.names.event(event);
        match event.kind {
            Kind::SchedSwitch { prev_pid, prev_state, next_comm, next_pid, .. } => {
                self.nr_cpus = self.nr_cpus.max(event.cpu.0 + 1);
                self.switch(event, prev_pid, prev_state, (next_pid, next_comm));
            }
            Kind::SchedWaking { pid, .. } => {
                self.has_waking = true;
                self.wakeup(event, pid);
            }
            // A wake-up has two events; if both were recorded the first counts.
            Kind::SchedWakeup { pid, .. } if !self.has_waking => self.wakeup(event, pid),
            Kind::SchedWakeupNew { pid, .. } => self.wakeup(event, pid),
            Kind::SchedMigrateTask { pid, orig_cpu, dest_cpu, .. } => {
                self.tasks.of(pid).migrations += 1;
                if self.options.migrations && self.is_shown(event, pid) {
                    let row = TimehistRow::Migration {
                        time_ns: event.time.0,
                        cpu: event.cpu.0,
                        task: self.current(event),
                        moved: task_name(pid, self.names.of(pid)),
                        from: orig_cpu.0,
                        to: dest_cpu.0,
                    };
                    (self.out)(&row);
                }
            }
            _ => {}
        }
    }
}

/// Width of a task's column.
const TASK: usize = 30;

impl TimehistOptions {
    fn has_cpu(&self, cpu: CpuId) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }

    fn has_task(&self, pid: Pid) -> bool {
        self.tids.as_ref().is_none_or(|tids| tids.contains(&pid))
    }

    /// The three lines above the rows.
    pub fn header(&self) -> String {
        let line = |[time, cpu, task, wait, delay, run]: [&str; 6], state| {
            format!("{time:>15} {cpu:>6}  {task:TASK$}  {wait:>9}  {delay:>9}  {run:>9}{state}\n")
        };
        let rules = [15, 6, TASK, 9, 9, 9].map(|width| "-".repeat(width));
        let states = if self.state { ["  state", "       ", "  -----"] } else { [""; 3] };
        line(["time", "cpu", "task name", "wait time", "sch delay", "run time"], states[0])
            + &line(["", "", "[tid/pid]", "(msec)", "(msec)", "(msec)"], states[1])
            + &line(rules.each_ref().map(String::as_str), states[2])
    }

    /// The line that perf prints for a row, without its end.
    pub fn line(&self, row: &TimehistRow) -> String {
        match row {
            TimehistRow::Switch(row) => self.switch_line(row),
            TimehistRow::Wakeup { time_ns, cpu, task, woken } => {
                format!("{} {:34}awakened: {woken}", head(*time_ns, *cpu, task), "")
            }
            TimehistRow::Migration { time_ns, cpu, task, moved, from, to } => {
                format!("{} {:34}migrated: {moved} cpu {from} => {to}", head(*time_ns, *cpu, task), "")
            }
        }
    }

    fn switch_line(&self, row: &SwitchRow) -> String {
        let mut line = head(row.time_ns, row.cpu, &row.task);
        for ns in [row.wait_ns, row.delay_ns, row.run_ns] {
            line.push(' ');
            push_millis(&mut line, Duration(ns), 6);
        }
        line.push(' ');
        if self.state {
            line.push_str("     ");
            line.push(row.state);
            line.push(' ');
        }
        if self.next {
            line += &format!(" {:TASK$}", format!("next: {}", row.next));
        } else if self.wakeups {
            line += &format!("  {:TASK$}", "");
        }
        line
    }
}

fn head(time_ns: u64, cpu: u16, task: &str) -> String {
    let mut line = String::with_capacity(128);
    push_seconds(&mut line, Time(time_ns), 15);
    line.push_str(" [");
    push_number(&mut line, cpu.into(), 4, b'0');
    line.push_str("]  ");
    line.push_str(task);
    let len = if task.is_ascii() { task.len() } else { task.chars().count() };
    line.extend(std::iter::repeat_n(' ', TASK.saturating_sub(len)));
    line
}

/// `make[71]`, or `java[72/70]` for a thread.
fn task_name(pid: Pid, name: Name) -> String {
    let mut text = name.comm.to_str_lossy().into_owned();
    text.push('[');
    push_pid(&mut text, pid);
    if let Some(tgid) = name.tgid.filter(|tgid| *tgid != pid) {
        text.push('/');
        push_pid(&mut text, tgid);
    }
    text.push(']');
    text
}

fn letter(state: TaskState) -> char {
    state.to_string().chars().next().unwrap_or('?')
}

/// Standard error of the mean in percent of it.
fn error_percent(runs: &Moments) -> f64 {
    if runs.n() < 2 || runs.mean() == 0.0 {
        return 0.0;
    }
    100.0 * runs.stderr() / runs.mean()
}

/// What the lines add up to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimehistSummary {
    /// Live tasks, in order of their pids.
    pub tasks: Vec<RunRow>,
    /// Tasks that ended.
    pub terminated: Vec<RunRow>,
    /// Every shown CPU, up to the highest known; empty if single tasks were requested.
    pub idle: Vec<CpuIdleRow>,
    /// The sums.
    pub totals: TimehistTotals,
}

/// The stretches of one task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRow {
    /// The task.
    pub task: String,
    /// The process that created it; -1 if unknown.
    pub parent: i32,
    /// How many stretches.
    pub runs: u64,
    /// Their sum, ns.
    pub run_ns: u64,
    /// The shortest, ns.
    pub min_run_ns: u64,
    /// Their mean, ns.
    pub avg_run_ns: u64,
    /// The longest, ns.
    pub max_run_ns: u64,
    /// Standard error of the mean, percent.
    pub error_percent: f64,
    /// How often it was moved.
    pub migrations: u64,
    /// Whether it ended.
    pub terminated: bool,
}

/// The idle time of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CpuIdleRow {
    /// The CPU.
    pub cpu: u16,
    /// Idle time, ns; `None` if it never left idle.
    pub idle_ns: Option<u64>,
}

/// Sums over the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimehistTotals {
    /// Tasks that ran.
    pub tasks: u64,
    /// Switches.
    pub switches: u64,
    /// Run time of all tasks, ns.
    pub run_ns: u64,
    /// Time covered, ns.
    pub span_ns: u64,
    /// CPUs up to the highest known.
    pub cpus: u16,
}

impl TimehistSummary {
    /// The block that perf prints.
    pub fn text(&self) -> String {
        let mut out = format!(
            "\nRuntime summary\n{:>TASK$}  parent   sched-in     run-time    min-run     avg-run     max-run  \
             stddev  migrations\n{:TASK$}            (count)       (msec)     (msec)      (msec)      (msec)       %\n\
             {:-<117}\n",
            "comm", "", ""
        );
        let lines = |rows: &[RunRow], none: &str| match rows {
            [] => format!("{none}\n"),
            rows => rows.iter().map(run_line).collect(),
        };
        out += &lines(&self.tasks, "<no still running tasks>");
        out += "\nTerminated tasks:\n";
        out += &lines(&self.terminated, "<no terminated tasks>");
        if self.idle.is_empty() {
            return out;
        }
        out += "\nIdle stats:\n";
        let span = self.totals.span_ns;
        for CpuIdleRow { cpu, idle_ns } in &self.idle {
            out += &match idle_ns {
                Some(idle) => format!(
                    "    CPU {cpu:2} idle for {}  msec  ({:6.2}%)\n",
                    millis(Duration(*idle), 6),
                    100.0 * *idle as f64 / span as f64
                ),
                None => format!("    CPU {cpu:2} idle entire time window\n"),
            };
        }
        let TimehistTotals { tasks, switches, run_ns, span_ns, cpus } = self.totals;
        out + &format!(
            "\n    Total number of unique tasks: {tasks}\n\
             Total number of context switches: {switches}\n\
             \x20          Total run time (msec): {} \n\
             \x20   Total scheduling time (msec): {}  (x {cpus})\n",
            millis(Duration(run_ns), 2),
            millis(Duration(span_ns), 2),
        )
    }
}

fn run_line(row: &RunRow) -> String {
    let time = |ns, width| millis(Duration(ns), width);
    format!(
        "{:>TASK$}   {:5}  {:9} {} {}  {}  {}   {:5.2}   {:5}\n",
        row.task,
        row.parent,
        row.runs,
        time(row.run_ns, 8),
        time(row.min_run_ns, 6),
        time(row.avg_run_ns, 6),
        time(row.max_run_ns, 6),
        row.error_percent,
        row.migrations,
    )
}

#[cfg(test)]
mod tests {
    use super::super::testdata::{TRACE, barred, feed};
    use super::*;
    use expect_test::{Expect, expect};

    /// The lines, and the summary.
    fn timehist(options: &TimehistOptions) -> (String, TimehistSummary) {
        let mut text = options.header();
        let mut fold =
            Timehist::new(options.clone(), |row: &TimehistRow| text += &(options.line(row) + "\n"));
        feed(TRACE, &mut fold);
        let summary = fold.summary();
        (text, summary)
    }

    fn check(options: TimehistOptions, expected: Expect) {
        expected.assert_eq(&barred(&timehist(&options).0));
    }

    #[test]
    fn each_switch_away_has_a_line() {
        check(
            TimehistOptions::default(),
            expect![[r#"
                |           time    cpu  task name                       wait time  sch delay   run time|
                |                        [tid/pid]                          (msec)     (msec)     (msec)|
                |--------------- ------  ------------------------------  ---------  ---------  ---------|
                |       1.000000 [0001]  <idle>                              0.000      0.000      0.000 |
                |       1.000250 [0000]  <idle>                              0.000      0.000      0.000 |
                |       1.001250 [0000]  make[71/70]                         0.000      0.150      1.000 |
                |       1.001750 [0000]  cc1[72]                             0.000      0.750      0.500 |
                |       1.003100 [0001]  ld[73]                              0.000      0.000      3.100 |
                |       1.004100 [0001]  cc1[72]                             1.350      0.100      1.000 |
                |       1.009100 [0001]  ld[73]                              1.000      0.000      5.000 |
            "#]],
        );
    }

    #[test]
    fn wakeups_migrations_states_and_the_next_task_are_shown_on_request() {
        let options = TimehistOptions {
            wakeups: true,
            migrations: true,
            next: true,
            state: true,
            ..TimehistOptions::default()
        };
        check(
            options,
            expect![[r#"
                |           time    cpu  task name                       wait time  sch delay   run time  state|
                |                        [tid/pid]                          (msec)     (msec)     (msec)       |
                |--------------- ------  ------------------------------  ---------  ---------  ---------  -----|
                |       1.000000 [0001]  <idle>                              0.000      0.000      0.000      I  next: ld[73]                  |
                |       1.000100 [0000]  swapper                                                          awakened: make[71]|
                |       1.000250 [0000]  <idle>                              0.000      0.000      0.000      I  next: make[71]                |
                |       1.000500 [0000]  make[71/70]                                                      awakened: make[72]|
                |       1.001250 [0000]  make[71/70]                         0.000      0.150      1.000      S  next: make[72]                |
                |       1.001750 [0000]  cc1[72]                             0.000      0.750      0.500      S  next: swapper/0[0]            |
                |       1.003000 [0001]  ld[73]                                                           awakened: cc1[72]|
                |       1.003010 [0001]  ld[73]                                                           migrated: cc1[72] cpu 0 => 1|
                |       1.003100 [0001]  ld[73]                              0.000      0.000      3.100      R  next: cc1[72]                 |
                |       1.004100 [0001]  cc1[72]                             1.350      0.100      1.000      X  next: ld[73]                  |
                |       1.009100 [0001]  ld[73]                              1.000      0.000      5.000      S  next: swapper/1[0]            |
            "#]],
        );
    }

    #[test]
    fn a_window_cuts_stretches() {
        let (start, stop) = (Some(Time(1_003_500_000)), Some(Time(1_008_000_000)));
        check(
            TimehistOptions { start, stop, ..TimehistOptions::default() },
            expect![[r#"
                |           time    cpu  task name                       wait time  sch delay   run time|
                |                        [tid/pid]                          (msec)     (msec)     (msec)|
                |--------------- ------  ------------------------------  ---------  ---------  ---------|
                |       1.004100 [0001]  cc1[72]                             1.750      0.500      0.600 |
                |       1.008000 [0001]  ld[73]                              1.000      0.000      3.900 |
            "#]],
        );
    }

    #[test]
    fn cpus_and_tasks_can_be_picked() {
        let cpus = Some(vec![CpuId(0)]);
        check(
            TimehistOptions { cpus, ..TimehistOptions::default() },
            expect![[r#"
                |           time    cpu  task name                       wait time  sch delay   run time|
                |                        [tid/pid]                          (msec)     (msec)     (msec)|
                |--------------- ------  ------------------------------  ---------  ---------  ---------|
                |       1.000250 [0000]  <idle>                              0.000      0.000      0.000 |
                |       1.001250 [0000]  make[71/70]                         0.000      0.150      1.000 |
                |       1.001750 [0000]  cc1[72]                             0.000      0.750      0.500 |
            "#]],
        );
        let tids = Some(vec![Pid(73)]);
        check(
            TimehistOptions { tids, wakeups: true, ..TimehistOptions::default() },
            expect![[r#"
                |           time    cpu  task name                       wait time  sch delay   run time|
                |                        [tid/pid]                          (msec)     (msec)     (msec)|
                |--------------- ------  ------------------------------  ---------  ---------  ---------|
                |       1.003000 [0001]  ld[73]                                                           awakened: cc1[72]|
                |       1.003100 [0001]  ld[73]                              0.000      0.000      3.100                                 |
                |       1.009100 [0001]  ld[73]                              1.000      0.000      5.000                                 |
            "#]],
        );
    }

    #[test]
    fn the_summary_adds_up() {
        let (_, summary) = timehist(&TimehistOptions::default());
        expect![[r#"
            ||
            |Runtime summary|
            |                          comm  parent   sched-in     run-time    min-run     avg-run     max-run  stddev  migrations|
            |                                          (count)       (msec)     (msec)      (msec)      (msec)       %|
            |---------------------------------------------------------------------------------------------------------------------|
            |                   make[71/70]      -1          1        1.000      1.000       1.000       1.000    0.00       0|
            |                        ld[73]      -1          2        8.100      3.100       4.050       5.000   23.46       0|
            ||
            |Terminated tasks:|
            |                       cc1[72]      70          2        1.500      0.500       0.750       1.000   33.33       1|
            ||
            |Idle stats:|
            |    CPU  0 idle for      0.000  msec  (  0.00%)|
            |    CPU  1 idle for      0.000  msec  (  0.00%)|
            ||
            |    Total number of unique tasks: 3|
            |Total number of context switches: 7|
            |           Total run time (msec): 10.600 |
            |    Total scheduling time (msec):  9.100  (x 2)|
        "#]].assert_eq(&barred(&summary.text()));
    }
}
