//! The figure that a row of the score compares: one number of a run, named in the row.
//!
//! Most are already counted for every run ([`schedlab::Folds`]). Those of a kind of task are computed by a separate
//! sink, which follows the tasks whose comm begins with the word in the figure.

use std::collections::{BTreeMap, BTreeSet};

use schedlab::Run;
use schedlab::report::metrics::Wakes;
use schedlab::topology::CpuId;
use schedlab::trace::{Comm, Event, Kind, Sink};
use schedlab::units::{Pid, Time};
use schedlab::workload::Workload;
use schedlab_stats::{Direction, Histogram, Moments};

/// A figure as a row names it.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// `measure NAME`: a measure of the workload's marks, with the direction that it defines.
    Measure(String),
    /// `elapsed`: seconds of the run.
    Elapsed,
    /// `balance-max`: the longest balance pass, us.
    BalanceMax,
    /// `switches`, `task-switches`, `involuntary`, `wakeups`, `migrations`, `ipis`; with `/s` per second.
    Count { what: Count, per_second: bool },
    /// `switches per MEASURE`, and likewise for other counts: per unit of a rate of the workload.
    Per { what: Count, measure: String },
    /// `latency PERCENT COMM`: a percentile of the wait of tasks from wake-up to run, us; `mean` for the mean.
    Latency { percent: Option<f64>, of: String },
    /// `run COMM`: how long such a task runs at a time on average, ms.
    Stint(String),
    /// `wait COMM`: how long it waits while runnable on average, ms.
    Wait(String),
    /// `switches of COMM`: how often such tasks leave a CPU.
    SwitchesOf(String),
    /// `used COMM`: CPU time of such tasks, ms per second.
    Used(String),
    /// `fairness COMM`: the least CPU time of such tasks, in percent of the largest.
    Fairness(String),
    /// `share COMM`: CPU time of such tasks in percent of that of all tasks.
    Share(String),
    /// `cpu COMM`: the CPU on which such a task begins to run after its last wake-up.
    LastCpu(String),
    /// `spread N`: on how many CPUs the first N new tasks are placed.
    Spread(usize),
    /// `reason KIND NAME`: how many of 100 decisions of a kind (wakeup, fork, balance, preemption) had that reason.
    Reason { kind: String, name: String },
    /// `tried NAME`: percent of the wake-ups reaching a step of the search for a CPU that this step placed.
    Tried(String),
}

/// The quantity that is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Count {
    /// All, as `perf stat -a` counts them.
    Switches,
    /// Those away from a task, as `perf stat COMMAND` counts them.
    TaskSwitches,
    Involuntary,
    Wakeups,
    Migrations,
    Ipis,
}

impl Count {
    fn of(self, run: &Run) -> f64 {
        let count = match self {
            Count::Switches => run.folds.counts.switches,
            Count::TaskSwitches => run.folds.counts.task_switches(),
            Count::Involuntary => run.folds.counts.involuntary,
            Count::Wakeups => run.folds.counts.wakeups,
            Count::Migrations => run.folds.migrations.total(),
            Count::Ipis => run.ipis,
        };
        count as f64
    }
}

impl Figure {
    /// Parses the figure of a row.
    pub fn parse(text: &str) -> Result<Figure, String> {
        let mut words = text.split(' ');
        let verb = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        let (name, per_second) = verb.strip_suffix("/s").map_or((verb, false), |name| (name, true));
        let count = |what| Figure::Count { what, per_second };
        Ok(match (name, &rest[..]) {
            ("measure", [name, ..]) => {
                Figure::Measure(text.split_once(' ').map_or(*name, |(_, n)| n).to_string())
            }
            ("elapsed", []) => Figure::Elapsed,
            ("balance-max", []) => Figure::BalanceMax,
            ("switches", ["of", of]) => Figure::SwitchesOf(of.to_string()),
            ("switches", []) => count(Count::Switches),
            ("task-switches", []) => count(Count::TaskSwitches),
            ("involuntary", []) => count(Count::Involuntary),
            ("wakeups", []) => count(Count::Wakeups),
            ("migrations", []) => count(Count::Migrations),
            ("ipis", []) => count(Count::Ipis),
            (_, ["per", ..]) => {
                let Ok(Figure::Count { what, per_second: false }) = Figure::parse(verb) else {
                    return Err(format!("\"{text}\": only a count can be so many per something"));
                };
                Figure::Per { what, measure: rest[1..].join(" ") }
            }
            ("latency", ["mean", of]) => Figure::Latency { percent: None, of: of.to_string() },
            ("latency", [percent, of]) => {
                let percent = percent.strip_prefix('p').and_then(|p| p.parse().ok());
                let percent =
                    percent.ok_or_else(|| format!("\"{text}\": write it like latency p99 worker"))?;
                Figure::Latency { percent: Some(percent), of: of.to_string() }
            }
            ("run", [of]) => Figure::Stint(of.to_string()),
            ("wait", [of]) => Figure::Wait(of.to_string()),
            ("used", [of]) => Figure::Used(of.to_string()),
            ("fairness", [of]) => Figure::Fairness(of.to_string()),
            ("share", [of]) => Figure::Share(of.to_string()),
            ("cpu", [of]) => Figure::LastCpu(of.to_string()),
            ("spread", [n]) => {
                Figure::Spread(n.parse().map_err(|_| format!("\"{n}\" is not a number of new tasks"))?)
            }
            ("reason", [kind, name]) => Figure::Reason { kind: kind.to_string(), name: name.to_string() },
            ("tried", [name]) => Figure::Tried(name.to_string()),
            _ => return Err(format!("\"{text}\" is no figure; the file of figures in xtask lists them")),
        })
    }

    /// Whether more is better. A figure without a direction is judged as a plain number.
    pub fn direction(&self, workload: &Workload) -> Direction {
        match self {
            Figure::Measure(name) => {
                let lower = workload.measures.iter().any(|m| m.name == *name && m.lower_is_better);
                if lower { Direction::Lower } else { Direction::Higher }
            }
            _ => Direction::Lower,
        }
    }

    /// The sink that must follow the run.
    pub fn sink(&self) -> OfKind {
        let of = match self {
            Figure::Latency { of, .. }
            | Figure::Stint(of)
            | Figure::Wait(of)
            | Figure::SwitchesOf(of)
            | Figure::Used(of)
            | Figure::Fairness(of)
            | Figure::Share(of)
            | Figure::LastCpu(of) => Some(of.clone()),
            _ => None,
        };
        OfKind {
            of,
            wakes: Wakes::default(),
            latencies: Histogram::new(),
            stints: Moments::default(),
            waits: Moments::default(),
            wait_max: 0,
            tasks: BTreeMap::new(),
            last_cpu: None,
            last: Time::ZERO,
        }
    }

    /// The figure of a run; `None` if it has none.
    pub fn value(&self, run: &Run, of_kind: &OfKind, workload: &Workload) -> Option<f64> {
        let seconds = run.elapsed.0 as f64 / 1e9;
        match self {
            Figure::Measure(name) => {
                let at = workload.measures.iter().position(|m| m.name == *name)?;
                run.folds.marks[at].value()
            }
            Figure::Elapsed => Some(seconds),
            Figure::BalanceMax => Some(run.engine.balance_max_ns as f64 / 1e3),
            Figure::Count { what, per_second } => {
                let count = what.of(run);
                Some(if *per_second { count / seconds } else { count })
            }
            Figure::Per { what, measure } => {
                let at = workload.measures.iter().position(|m| m.name == *measure)?;
                let rate = run.folds.marks[at].value()?;
                (rate > 0.0).then(|| what.of(run) / seconds / rate)
            }
            Figure::Latency { percent, .. } => {
                let latencies = &of_kind.latencies;
                let ns = match percent {
                    Some(percent) => latencies.percentile(*percent)? as f64,
                    None => (latencies.n() > 0).then(|| latencies.mean())?,
                };
                Some(ns / 1e3)
            }
            Figure::Stint(_) => (of_kind.stints.n() > 0).then(|| of_kind.stints.mean() / 1e6),
            Figure::Wait(_) => of_kind.wait_ns().map(|ns| ns / 1e6),
            Figure::SwitchesOf(_) => Some(of_kind.stints.n() as f64),
            Figure::Used(_) => Some(of_kind.ran().sum::<u64>() as f64 / 1e6 / seconds),
            Figure::Fairness(_) => {
                let (least, most) = (of_kind.ran().min()?, of_kind.ran().max()?);
                Some(100.0 * least as f64 / most as f64)
            }
            Figure::Share(_) => {
                Some(100.0 * of_kind.ran().sum::<u64>() as f64 / run.folds.busy.total().0 as f64)
            }
            Figure::LastCpu(_) => of_kind.last_cpu.map(|cpu| f64::from(cpu.0)),
            Figure::Spread(n) => {
                let tasks = run.folds.placements.tasks.iter().take(*n);
                Some(tasks.map(|task| task.to).collect::<BTreeSet<_>>().len() as f64)
            }
            Figure::Tried(name) => {
                let tried = schedlab::figures::tried(run);
                Some(tried.iter().find(|(rule, _)| rule == name).map_or(0.0, |(_, percent)| *percent))
            }
            Figure::Reason { kind, name } => {
                let all = run.folds.reasons.of(kind);
                let total: u64 = all.iter().map(|(_, n)| n).sum();
                let of_name: u64 = all.iter().filter(|(reason, _)| reason == name).map(|(_, n)| n).sum();
                (total > 0).then(|| 100.0 * of_name as f64 / total as f64)
            }
        }
    }
}

/// What the tasks of a kind do. Needs `sched_switch` and the events of wake-ups.
#[derive(Clone, Debug)]
pub struct OfKind {
    of: Option<String>,
    wakes: Wakes,
    latencies: Histogram,
    /// Lengths of runs and of waits while runnable, ns.
    stints: Moments,
    waits: Moments,
    wait_max: u64,
    tasks: BTreeMap<Pid, OneTask>,
    last_cpu: Option<CpuId>,
    last: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct OneTask {
    since: Time,
    runs: bool,
    waits: bool,
    woken: bool,
    ran: u64,
}

impl OfKind {
    fn is_of(&self, comm: &Comm) -> bool {
        self.of.as_ref().is_some_and(|of| comm.to_string().starts_with(of.as_str()))
    }

    /// The mean wait, ns. A wait that has not ended counts if it is longer than all that have.
    fn wait_ns(&self) -> Option<f64> {
        let waiting = self.tasks.values().filter(|task| task.waits).map(|task| self.last.since(task.since).0);
        let mut waits = self.waits;
        for ns in waiting {
            if ns > self.wait_max {
                waits.push(ns as f64);
            }
        }
        (waits.n() > 0).then(|| waits.mean())
    }

    /// CPU time of each, including those that never left their CPU.
    fn ran(&self) -> impl Iterator<Item = u64> {
        self.tasks.values().map(|task| task.ran + if task.runs { self.last.since(task.since).0 } else { 0 })
    }
}

impl Sink for OfKind {
    fn event(&mut self, event: &Event) {
        if self.of.is_none() {
            return;
        }
        let now = event.time;
        self.last = now;
        let latency = self.wakes.event(event);
        match event.kind {
            Kind::SchedWakeup { comm, pid, .. } | Kind::SchedWakeupNew { comm, pid, .. }
                if self.is_of(&comm) =>
            {
                let task = self.tasks.entry(pid).or_default();
                task.woken = matches!(event.kind, Kind::SchedWakeup { .. });
                if !task.runs && !task.waits {
                    (task.since, task.waits) = (now, true);
                }
            }
            Kind::SchedSwitch { prev_comm, prev_pid, prev_state, next_comm, next_pid, .. } => {
                if self.is_of(&prev_comm) {
                    let task = self.tasks.entry(prev_pid).or_default();
                    if std::mem::take(&mut task.runs) {
                        let ns = now.since(task.since).0;
                        task.ran += ns;
                        self.stints.push(ns as f64);
                    }
                    (task.since, task.waits) = (now, prev_state.is_runnable());
                }
                if self.is_of(&next_comm) {
                    let task = self.tasks.entry(next_pid).or_default();
                    if std::mem::take(&mut task.waits) {
                        let ns = now.since(task.since).0;
                        self.waits.push(ns as f64);
                        self.wait_max = self.wait_max.max(ns);
                    }
                    (task.since, task.runs) = (now, true);
                    if std::mem::take(&mut task.woken) {
                        self.last_cpu = Some(event.cpu);
                    }
                    if let Some(latency) = latency {
                        self.latencies.record(latency.0);
                    }
                }
            }
            _ => {}
        }
    }

    fn wants_decisions(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_and_others_refused() {
        for text in [
            "measure copy rate",
            "elapsed",
            "switches/s",
            "switches of massive",
            "switches per netperf messages",
            "latency p99.9 worker",
            "latency mean cyclictest",
            "run idle",
            "fairness t",
            "cpu wakee",
            "spread 4",
            "reason wakeup RECENT_USED_CPU",
            "tried RECENT_USED_CPU",
            "balance-max",
        ] {
            Figure::parse(text).unwrap_or_else(|e| panic!("{e}"));
        }
        assert_eq!(Figure::parse("measure copy rate"), Ok(Figure::Measure("copy rate".to_string())));
        for text in [
            "",
            "elapsed per op",
            "switches/s per op",
            "latency worker",
            "latency 99 worker",
            "runs x",
            "spread four",
        ] {
            assert!(Figure::parse(text).is_err(), "{text}");
        }
    }
}
