//! The finding of a detector: one problem, with tasks, times and a remedy.

use serde::Serialize;

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{Duration, Time};

use crate::metrics::kind_name;

/// One problem.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// When it began, ns.
    pub from_ns: u64,
    /// When it ended, ns.
    pub to_ns: u64,
    /// Time it lost, ns; 0 if the trace does not show it.
    pub lost_ns: u64,
    /// How often it happened in that time.
    pub count: u64,
    /// The CPUs it is about.
    pub cpus: Vec<u16>,
    /// The CPUs that distinguish causes; all CPUs of the finding if empty.
    #[serde(skip)]
    pub place: Vec<u16>,
    /// The tasks it is about, the one that suffers first.
    pub tasks: Vec<Task>,
    /// A sentence.
    pub what: String,
    /// The steps that led there, oldest first.
    pub chain: Vec<String>,
    /// The rule at work; if the trace does not explain decisions, the rules that the remedies change.
    pub rule: Option<String>,
    /// What would avoid it.
    pub avoid: Vec<Avoid>,
    /// Whether the remedy is only a suggestion, as the trace does not show the rule.
    pub guessed: bool,
    /// Conditions that the trace does not show.
    pub provided: Vec<String>,
    /// How many others have the same cause: the same rule, CPUs and kind of task; on any CPUs if the rule is a guess.
    #[serde(skip_serializing_if = "is_none")]
    pub alike: u64,
    /// Time they lost, ns.
    #[serde(skip_serializing_if = "is_none")]
    pub alike_lost_ns: u64,
}

fn is_none(n: &u64) -> bool {
    *n == 0
}

/// A task by number and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    /// Its number.
    pub pid: i32,
    /// Its name.
    pub comm: String,
}

/// A switch to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Avoid {
    /// As kernel strings spell it: `SIS_KTHREAD_STACK`, `preempt=lazy`.
    pub switch: &'static str,
    /// What it does.
    pub does: &'static str,
}

impl Avoid {
    /// The rule that it changes: `SIS_UTIL` for `NO_SIS_UTIL`, `the lack of HRTICK` for `HRTICK`.
    fn rule(self) -> String {
        let Avoid { switch, .. } = self;
        match (switch.strip_prefix("NO_").or(switch.strip_suffix("=off")), switch.split_once('=')) {
            (Some(rule), _) => rule.to_owned(),
            (None, Some(("preempt", model))) => format!("a model other than preempt={model}"),
            (None, _) => format!("the lack of {switch}"),
        }
    }
}

/// The findings of one detector.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Findings {
    /// The detector.
    pub detector: &'static str,
    /// What it looks for, with its thresholds.
    pub looks_for: String,
    /// Why it could not run, if it could not.
    pub blind: Option<String>,
    /// How often it found something.
    pub count: u64,
    /// Time lost in all of them, ns.
    pub lost_ns: u64,
    /// Other figures.
    pub figures: Option<String>,
    /// The worst of them, worst first.
    pub worst: Vec<Finding>,
}

impl std::fmt::Display for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[{}]", self.comm, self.pid)
    }
}

impl Finding {
    /// Whether another has the same cause: rule, CPUs, remedies, and the kind of the affected task. A guess is the same
    /// on any CPU.
    fn has_cause_of(&self, other: &Finding) -> bool {
        let kind = |found: &Finding| found.tasks.first().map(|task| kind_name(&task.comm).to_owned());
        // A number in a rule is a detail, not a cause.
        let rule = |found: &Finding| {
            found.rule.as_ref().map(|rule| rule.split(',').next().unwrap_or(rule).to_owned())
        };
        let place = |found: &Finding| match (found.guessed, found.place.is_empty()) {
            (true, _) => Vec::new(),
            (false, true) => found.cpus.clone(),
            (false, false) => found.place.clone(),
        };
        let cause = |found: &Finding| (rule(found), place(found), kind(found));
        !self.tasks.is_empty()
            && self.rule.is_some()
            && cause(self) == cause(other)
            && self.avoid == other.avoid
    }

    /// The trace does not show the rule: it may be one that the remedies change.
    fn guess_rule(&mut self) {
        let rules: Vec<String> = self.avoid.iter().map(|avoid| avoid.rule()).collect();
        self.rule = (!rules.is_empty()).then(|| format!("not in the trace; it may be {}", rules.join(", ")));
    }
}

impl Findings {
    /// Drops remedies that change nothing, and updates what depends on them.
    pub(super) fn keep_ways(&mut self, turns: &dyn Fn(&str) -> bool) {
        for found in &mut self.worst {
            found.avoid.retain(|avoid| turns(avoid.switch));
            if found.guessed {
                found.guess_rule();
            }
        }
    }
}

/// Factor by which more causes are kept than are shown.
const CAUSES: usize = 8;

/// Keeps the worst findings and counts all.
#[derive(Clone, Debug)]
pub(super) struct Worst {
    kept: Vec<Finding>,
    room: usize,
    pub count: u64,
    pub lost: Duration,
}

impl Worst {
    pub fn new(room: usize) -> Worst {
        Worst { kept: Vec::new(), room, count: 0, lost: Duration::ZERO }
    }

    /// Counts a finding by its lost time and number, and creates it if it is among the worst.
    pub fn add(&mut self, lost: Duration, count: u64, make: impl FnOnce() -> Finding) {
        self.count += 1;
        self.lost += lost;
        let mut found = Finding { lost_ns: lost.0, count, ..make() };
        if found.rule.is_none() {
            found.guess_rule();
        }
        self.fold(found);
    }

    /// Keeps a finding, or counts it with the worst of the same cause.
    fn fold(&mut self, mut found: Finding) {
        if let Some(at) = self.kept.iter().position(|kept| kept.has_cause_of(&found)) {
            let mut known = self.kept.remove(at);
            if (known.lost_ns, known.count) < (found.lost_ns, found.count) {
                std::mem::swap(&mut known, &mut found);
            }
            known.alike += found.alike + 1;
            known.alike_lost_ns += found.alike_lost_ns + found.lost_ns;
            found = known;
        }
        let place =
            self.kept.partition_point(|kept| (kept.lost_ns, kept.count) >= (found.lost_ns, found.count));
        self.kept.insert(place, found);
        // More causes than are shown are kept, since a cause may occur again.
        self.kept.truncate(self.room.max(1) * CAUSES);
    }

    /// An empty one of the same size.
    pub fn another(&self) -> Worst {
        Worst::new(self.room)
    }

    /// Takes what another one found.
    pub fn merge(&mut self, other: Worst) {
        self.count += other.count;
        self.lost += other.lost;
        other.kept.into_iter().for_each(|found| self.fold(found));
    }

    pub fn into_kept(mut self) -> Vec<Finding> {
        self.kept.truncate(self.room);
        self.kept
    }
}

/// `12.345 ms`.
pub(super) fn ms(span: Duration) -> String {
    format!("{}.{:03} ms", span.0 / 1_000_000, span.0 % 1_000_000 / 1_000)
}

/// Seconds with microseconds, as other reports show times.
pub(super) fn at(time: Time) -> String {
    format!("{}.{:06}", time.0 / 1_000_000_000, time.0 % 1_000_000_000 / 1_000)
}

/// `1 wake-up` or `3 wake-ups`.
pub(super) fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// `CPU 3` or `CPUs 3-5`.
pub(super) fn cpus(mask: &CpuMask) -> String {
    format!("{} {mask}", if mask.weight() == 1 { "CPU" } else { "CPUs" })
}

/// `CPU 3 was` or `CPUs 3-5 were`.
pub(super) fn were(mask: &CpuMask) -> String {
    format!("{} {}", cpus(mask), if mask.weight() == 1 { "was" } else { "were" })
}

pub(super) fn numbers(mask: &CpuMask) -> Vec<u16> {
    mask.iter().map(|CpuId(cpu)| cpu).collect()
}

impl Findings {
    /// The text block.
    pub fn text(&self) -> String {
        let mut out = format!("{}: ", self.detector);
        if let Some(blind) = &self.blind {
            return out + &format!("not looked for: {blind}\n");
        }
        if self.count == 0 {
            out += "nothing found";
        } else {
            out += &format!("{} found", self.count);
            if self.lost_ns > 0 {
                out += &format!(", {} lost", ms(Duration(self.lost_ns)));
            }
        }
        if let Some(figures) = &self.figures {
            out += &format!(" ({figures})");
        }
        out += &format!("\n  {}\n", self.looks_for);
        for finding in &self.worst {
            out += &finding.text();
        }
        let told: u64 = self.worst.iter().map(|found| 1 + found.alike).sum();
        if told < self.count {
            out += &format!("\n  and {} more\n", self.count - told);
        }
        out
    }
}

impl Finding {
    /// The text lines.
    pub(super) fn text(&self) -> String {
        let (from, to) = (at(Time(self.from_ns)), at(Time(self.to_ns)));
        let mut out = format!("\n  {from} .. {to}  {}\n", self.what);
        for step in &self.chain {
            out += &format!("      {step}\n");
        }
        for (word, line) in self.remarks() {
            out += &format!("    {word:6} {line}\n");
        }
        out
    }

    /// Remarks besides its sentence and its steps, each with a keyword: `rule`, `try` or `avoid`, `alike`, `if`.
    pub fn remarks(&self) -> Vec<(&'static str, String)> {
        let mut remarks: Vec<(&str, String)> = self.rule.iter().map(|rule| ("rule", rule.clone())).collect();
        let verb = if self.guessed { "try" } else { "avoid" };
        remarks.extend(self.avoid.iter().map(|avoid| (verb, format!("{}: {}", avoid.switch, avoid.does))));
        if self.alike > 0 {
            let lost = match self.alike_lost_ns {
                0 => String::new(),
                lost => format!(", {} lost in them", ms(Duration(lost))),
            };
            remarks.push(("alike", format!("{} more of the same cause{lost}", self.alike)));
        }
        for (i, provided) in self.provided.iter().enumerate() {
            remarks.push((if i == 0 { "if" } else { "and if" }, provided.clone()));
        }
        remarks
    }
}
