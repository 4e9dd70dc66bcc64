//! What differs between two traces.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_stats::Histogram;
use schedlab_topology::{CpuId, Topology};
use serde::Serialize;

use crate::chance::Chance;
use crate::matching::{Match, matched};
use crate::side::{Side, Step, TaskOfSide};

/// Two traces compared. `a` and `b` in names of fields are the first and the second.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// Names of the traces.
    pub names: [String; 2],
    /// Length of each, s.
    pub seconds: [f64; 2],
    /// Tasks that both have.
    pub matched: usize,
    /// Names of tasks that only the first has, and how many of each.
    pub only_a: BTreeMap<String, usize>,
    /// Names of tasks that only the second has, and how many of each.
    pub only_b: BTreeMap<String, usize>,
    /// The first decision on which the traces differ, by the clock of the first trace; `None` if no task differs.
    pub first: Option<Parting>,
    /// Number of matched tasks that differ somewhere.
    pub parted: usize,
    /// Reasons of decisions whose share changed, the largest change first; empty unless both traces contain decisions.
    pub reasons: Vec<ReasonShare>,
    /// Kinds of tasks that both traces have, the one that ran longest first.
    pub kinds: Vec<KindOfTask>,
    /// How often things happened, per second.
    pub counts: Vec<Counted>,
}

/// A decision on which the traces differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parting {
    /// The task, with its pid in each trace.
    pub task: String,
    /// Its pids.
    pub pids: [i32; 2],
    /// The number of the decision about this task, counted from 1; earlier ones are alike.
    pub step: usize,
    /// When, s since the start of each trace.
    pub at: [f64; 2],
    /// The decision in each trace, in words.
    pub what: [String; 2],
}

/// How often a rule decided.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReasonShare {
    /// The kind of decision.
    pub kind: String,
    /// The rule.
    pub reason: String,
    /// How often, in each trace.
    pub counts: [u64; 2],
    /// Its share of the decisions of that kind in each, percent.
    pub shares: [f64; 2],
    /// The change in percentage points, compared with chance.
    pub chance: Chance,
}

/// Tasks with the same name, except for a number at its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindOfTask {
    /// The name: `stream-*` for `stream-1` and `stream-2`.
    pub name: String,
    /// Number of matched tasks.
    pub tasks: usize,
    /// CPU time in each trace, ms.
    pub ran_ms: [f64; 2],
    /// Wake-ups after which it ran.
    pub wakeups: [u64; 2],
    /// Median of the wait from wake-up to run, us; `None` without a wake-up.
    pub wait_p50_us: [Option<f64>; 2],
    /// 99th percentile of it, us.
    pub wait_p99_us: [Option<f64>; 2],
    /// How often they were preempted.
    pub preempted: [u64; 2],
    /// How often they were moved.
    pub moved: [u64; 2],
    /// Share of CPU time that was spent on other CPUs (LLCs if the machine is known) than in the other trace, percent.
    pub elsewhere: f64,
    /// CPUs, or LLCs, with the largest shares of their time, percent, in each trace.
    pub places: [Vec<(String, f64)>; 2],
}

/// How often something happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counted {
    /// What.
    pub what: String,
    /// How often in each.
    pub counts: [u64; 2],
    /// Per second in each.
    pub rates: [f64; 2],
    /// The change of the rate, compared with chance.
    pub chance: Chance,
}

/// How many places are printed for a kind of task.
const PLACES: usize = 4;

/// The kind of a name: the part before the number at its end.
fn kind_of(name: &str) -> String {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':' || c == '/');
    if stem.is_empty() || stem == name { name.to_owned() } else { format!("{stem}*") }
}

impl Difference {
    /// Compares two traces. The machine, if it is known and the same for both, names places by LLC.
    pub fn of(names: [String; 2], a: &Side, b: &Side, machine: Option<&Topology>) -> Difference {
        let matches = matched(a, b);
        let sides = [a, b];
        let seconds = sides.map(Side::seconds);
        let (mut taken_a, mut taken_b) = (vec![false; a.tasks.len()], vec![false; b.tasks.len()]);
        matches.iter().for_each(|pair| (taken_a[pair.a], taken_b[pair.b]) = (true, true));
        let partings: Vec<(usize, Match)> = matches
            .iter()
            .filter_map(|&pair| Some((Side::parts(&a.tasks[pair.a], &b.tasks[pair.b])?, pair)))
            .collect();
        let first = partings.iter().min_by_key(|(step, pair)| (a.tasks[pair.a].steps[*step].0, pair.a));
        Difference {
            names,
            seconds,
            matched: matches.len(),
            only_a: unmatched(a, &taken_a),
            only_b: unmatched(b, &taken_b),
            first: first.map(|&(step, pair)| parting(a, b, step, pair)),
            parted: partings.len(),
            reasons: reasons(a, b),
            kinds: kinds(a, b, &matches, machine),
            counts: counts(a, b, seconds),
        }
    }
}

fn unmatched(side: &Side, taken: &[bool]) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for (task, _) in side.tasks.iter().zip(taken).filter(|(_, taken)| !**taken) {
        *names.entry(kind_of(&task.comm.to_str_lossy())).or_default() += 1;
    }
    names
}

fn parting(a: &Side, b: &Side, step: usize, pair: Match) -> Parting {
    let (task_a, task_b) = (&a.tasks[pair.a], &b.tasks[pair.b]);
    let at = |side: &Side, task: &TaskOfSide| {
        let start = side.span.map_or(schedlab_units::Time::ZERO, |(start, _)| start);
        task.steps[step].0.since(start).0 as f64 / 1e9
    };
    Parting {
        task: task_a.comm.to_str_lossy().into_owned(),
        pids: [task_a.pid.0, task_b.pid.0],
        step: step + 1,
        at: [at(a, task_a), at(b, task_b)],
        what: [words(&task_a.steps[step].1), words(&task_b.steps[step].1)],
    }
}

/// A step in words.
fn words(step: &Step) -> String {
    match step {
        Step::Placed { born, cpu, reason } => {
            let by = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            let how = if *born { "starts" } else { "is woken" };
            format!("{how} on CPU {cpu}{by}")
        }
        Step::Moved(cpu) => format!("is moved to CPU {cpu}"),
        Step::Preempted => "is preempted".to_owned(),
        Step::Left => "leaves its CPU by itself".to_owned(),
    }
}

fn reasons(a: &Side, b: &Side) -> Vec<ReasonShare> {
    let mut found = Vec::new();
    for kind in ["wakeup", "fork", "exec", "balance", "preemption"] {
        let (of_a, of_b) = (a.reasons.of(kind), b.reasons.of(kind));
        let total = |list: &[(&str, u64)]| list.iter().map(|(_, count)| count).sum::<u64>();
        let (total_a, total_b) = (total(&of_a), total(&of_b));
        if total_a == 0 || total_b == 0 {
            continue;
        }
        let names: BTreeSet<&str> = of_a.iter().chain(&of_b).map(|(name, _)| *name).collect();
        for name in names {
            let count =
                |list: &[(&str, u64)]| list.iter().find(|(n, _)| *n == name).map_or(0, |(_, count)| *count);
            let (in_a, in_b) = (count(&of_a), count(&of_b));
            found.push(ReasonShare {
                kind: kind.to_owned(),
                reason: name.to_owned(),
                counts: [in_a, in_b],
                shares: [100.0 * in_a as f64 / total_a as f64, 100.0 * in_b as f64 / total_b as f64],
                chance: Chance::of_shares(in_a, total_a, in_b, total_b),
            });
        }
    }
    // A stable sort keeps kinds and names in order if changes are equal.
    found.sort_by(|x, y| y.chance.difference.abs().total_cmp(&x.chance.difference.abs()));
    found
}

/// Sums over the matched tasks of one kind in one trace.
#[derive(Default)]
struct Sum {
    waits: Option<Histogram>,
    preempted: u64,
    moved: u64,
    places: BTreeMap<(u16, &'static str), u64>,
}

impl Sum {
    fn add(&mut self, task: &TaskOfSide, machine: Option<&Topology>) {
        self.waits.get_or_insert_with(Histogram::new).merge(&task.waits);
        self.preempted += task.preempted;
        self.moved += task.moved;
        for (&cpu, &ran) in &task.ran_on {
            *self.places.entry(place(cpu, machine)).or_default() += ran;
        }
    }

    fn ran(&self) -> u64 {
        self.places.values().sum()
    }

    fn share(&self, place: &(u16, &'static str)) -> f64 {
        100.0 * self.places.get(place).copied().unwrap_or(0) as f64 / self.ran().max(1) as f64
    }

    fn wakeups(&self) -> u64 {
        self.waits.as_ref().map_or(0, Histogram::n)
    }

    fn percentile(&self, percent: f64) -> Option<f64> {
        self.waits.as_ref()?.percentile(percent).map(|ns| ns as f64 / 1e3)
    }

    fn top(&self) -> Vec<(String, f64)> {
        let mut places: Vec<_> = self.places.keys().map(|place| (place, self.share(place))).collect();
        places.sort_by(|x, y| y.1.total_cmp(&x.1).then(x.0.cmp(y.0)));
        places
            .into_iter()
            .take(PLACES)
            .map(|((number, of), share)| (format!("{of} {number}"), share))
            .collect()
    }
}

fn place(cpu: CpuId, machine: Option<&Topology>) -> (u16, &'static str) {
    match machine.filter(|machine| cpu.index() < machine.nr_cpus() && machine.llcs().len() > 1) {
        Some(machine) => (machine.cpu(cpu).llc, "LLC"),
        None => (cpu.0, "CPU"),
    }
}

fn kinds(a: &Side, b: &Side, matches: &[Match], machine: Option<&Topology>) -> Vec<KindOfTask> {
    let mut sums: BTreeMap<String, (usize, Sum, Sum)> = BTreeMap::new();
    for pair in matches {
        let (task_a, task_b) = (&a.tasks[pair.a], &b.tasks[pair.b]);
        let (tasks, sum_a, sum_b) = sums.entry(kind_of(&task_a.comm.to_str_lossy())).or_default();
        *tasks += 1;
        sum_a.add(task_a, machine);
        sum_b.add(task_b, machine);
    }
    let mut kinds: Vec<KindOfTask> = sums
        .into_iter()
        .map(|(name, (tasks, a, b))| {
            let places: BTreeSet<_> = a.places.keys().chain(b.places.keys()).collect();
            let moved: f64 = places.into_iter().map(|place| (a.share(place) - b.share(place)).abs()).sum();
            KindOfTask {
                name,
                tasks,
                ran_ms: [&a, &b].map(|sum| sum.ran() as f64 / 1e6),
                wakeups: [&a, &b].map(Sum::wakeups),
                wait_p50_us: [&a, &b].map(|sum| sum.percentile(50.0)),
                wait_p99_us: [&a, &b].map(|sum| sum.percentile(99.0)),
                preempted: [a.preempted, b.preempted],
                moved: [a.moved, b.moved],
                elsewhere: if a.ran() == 0 || b.ran() == 0 { 0.0 } else { moved / 2.0 },
                places: [a.top(), b.top()],
            }
        })
        .filter(|kind| kind.ran_ms[0] + kind.ran_ms[1] > 0.0)
        .collect();
    kinds.sort_by(|x, y| (y.ran_ms[0] + y.ran_ms[1]).total_cmp(&(x.ran_ms[0] + x.ran_ms[1])));
    kinds
}

fn counts(a: &Side, b: &Side, seconds: [f64; 2]) -> Vec<Counted> {
    let each = [
        ("switches", [a.counts.switches, b.counts.switches]),
        ("preemptions", [a.counts.preemptions, b.counts.preemptions]),
        ("wake-ups", [a.counts.wakeups, b.counts.wakeups]),
        ("forks", [a.counts.forks, b.counts.forks]),
        ("migrations", [a.counts.migrations, b.counts.migrations]),
    ];
    each.map(|(what, counts)| Counted {
        what: what.to_owned(),
        counts,
        rates: [0, 1].map(|at| counts[at] as f64 / seconds[at].max(1e-9)),
        chance: Chance::of_rates(counts[0], seconds[0], counts[1], seconds[1]),
    })
    .into()
}
