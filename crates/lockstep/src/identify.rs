//! Finds which of our rules a tree has: those under which both sides stay equal the longest.
//!
//! A few short runs are made with the nearest of our kernels. If one ends in a difference, each rule is toggled in
//! turn, and the toggle is kept that makes that run longest without making other runs shorter. This is repeated until
//! all runs are equal or no rule helps. A rule that affects no run stays as in the nearest kernel.

use schedlab_kernel_tree::{Fault, Library};
use schedlab_sched::{Feature, Kernel, KernelError, Rules};
use schedlab_topology::{Topology, TopologyError};

use crate::{Difference, Plan, prepared, run};

/// Runs that distinguish rules: machine, tasks, load. The cheapest come first.
const RUNS: [(&str, usize, &str); 8] = [
    ("1x1x4", 8, "plain"),
    ("1x1x4", 12, "nice"),
    ("1x2x4", 12, "nohz"),
    ("1x2x4", 24, "sync,yield"),
    ("1x1x4", 12, "groups"),
    ("2x2x4", 30, "nohz"),
    ("2x2x2x2", 40, "nohz,affinity"),
    ("1x2x4", 16, "batch,exit,kthread"),
];

/// How long a run was equal.
#[derive(Clone, Debug)]
pub struct Length {
    /// Tasks, machine and loads of the run.
    pub name: String,
    /// Operations until both sides differed.
    pub equal: u64,
    /// The first difference, if any.
    pub differs: Option<Difference>,
}

/// The result.
#[derive(Clone, Debug)]
pub struct Identified {
    /// The kernel string under which runs are equal the longest.
    pub kernel: String,
    /// How long each run was equal.
    pub runs: Vec<Length>,
    /// Number of rules that were tried.
    pub tried: usize,
}

impl Identified {
    /// Whether all runs were equal to the end.
    pub fn equal(&self) -> bool {
        self.runs.iter().all(|run| run.differs.is_none())
    }
}

/// An identification that is not possible.
#[derive(Clone, Debug)]
pub struct CannotIdentify(String);

impl std::fmt::Display for CannotIdentify {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotIdentify {}

impl From<KernelError> for CannotIdentify {
    fn from(error: KernelError) -> CannotIdentify {
        CannotIdentify(error.to_string())
    }
}

impl From<Fault> for CannotIdentify {
    fn from(fault: Fault) -> CannotIdentify {
        CannotIdentify(fault.to_string())
    }
}

impl From<TopologyError> for CannotIdentify {
    fn from(error: TopologyError) -> CannotIdentify {
        CannotIdentify(error.to_string())
    }
}

/// Identifies the rules of a library, starting from one of our kernels, with `steps` operations per run. `heard` is
/// called with each rule that helps.
///
/// # Errors
/// The kernel string cannot be parsed, or the library raised a fault.
pub fn identify(
    library: &Library,
    begin: &str,
    steps: u64,
    heard: &mut dyn FnMut(&str),
) -> Result<Identified, CannotIdentify> {
    let mut kernel = begin.to_string();
    let mut plans = Vec::new();
    for (shape, tasks, loads) in RUNS {
        let loads = loads.parse().map_err(CannotIdentify)?;
        let (library, machine) = (library.clone(), Topology::preset_or_regular(shape)?);
        plans.push(Plan { library, rules: prepared(&kernel)?, machine, tasks, steps, seed: 1, loads });
    }
    let mut tried = 0;
    let mut runs = lengths(&mut plans, &kernel)?;
    while let Some(worst) = runs.iter().position(|run| run.differs.is_some()) {
        let mut best: Option<(u64, String)> = None;
        for part in candidates(&prepared(&kernel)?) {
            tried += 1;
            let changed = format!("{kernel}+{part}");
            let length = length(&mut plans[worst], &changed)?.0;
            if length > best.as_ref().map_or(runs[worst].equal, |(best, _)| *best) {
                best = Some((length, changed));
            }
        }
        let Some((length, changed)) = best else { break };
        let now = lengths(&mut plans, &changed)?;
        let total = |runs: &[Length]| runs.iter().map(|run| run.equal).sum::<u64>();
        if total(&now) <= total(&runs) {
            break;
        }
        heard(&format!(
            "{changed}: {} is equal for {length} steps, before for {}",
            runs[worst].name, runs[worst].equal
        ));
        (kernel, runs) = (changed, now);
    }
    Ok(Identified { kernel, runs, tried })
}

/// The number of operations for which both sides are equal, and the first difference.
fn length(plan: &mut Plan, kernel: &str) -> Result<(u64, Option<Difference>), CannotIdentify> {
    plan.rules = prepared(kernel)?;
    let ended = run(plan)?;
    Ok((ended.counts.steps, ended.differ.first().cloned()))
}

fn lengths(plans: &mut [Plan], kernel: &str) -> Result<Vec<Length>, CannotIdentify> {
    let mut all = Vec::new();
    for plan in plans {
        let (equal, differs) = length(plan, kernel)?;
        let name = format!("{} tasks on {}, {}", plan.tasks, plan.machine.name, plan.loads);
        all.push(Length { name, equal, differs });
    }
    Ok(all)
}

/// Each rule toggled, except those that the library is built for.
fn candidates(rules: &Kernel) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for row in Rules::TABLE {
        let now = (row.get)(&rules.rules);
        parts
            .extend(row.forms.iter().filter(|form| **form != now).map(|form| format!("{}={form}", row.name)));
    }
    for row in Feature::TABLE.iter().filter(|row| !["HRTICK", "SCHED_CACHE"].contains(&row.name)) {
        let no = if rules.has(row.feature) { "NO_" } else { "" };
        parts.push(format!("{no}{}", row.name));
    }
    parts.retain(|part| rules.is_turned_by(part));
    parts
}
