//! `cargo xtask lockstep-random [KERNEL=TREE..] [sets=N] [from=N] [steps=N]`: kernel trees against our rules, with random sets
//! of loads.
//!
//! The matrix of `cargo xtask lockstep` has chosen sets. A random one has 1 to 16 of the loads and runs on one of eleven
//! machines; each tree gets a seed of its own. Sets are numbered, so `from` continues where another run ended. Where CPUs go
//! offline beside deadline tasks, trees have the patch for that (`crates/lockstep/patches`); 5.10 then has no tasks bound to
//! one CPU, as it stops if that is offline. The section goes into `docs/fidelity/lockstep.md`.

use rayon::prelude::*;
use schedlab::lockstep::{Counts, LOADS, Loads, Plan, run};
use schedlab_stats::Rng;

use crate::lockstep::{Built, Machine, RECENT, counted, machine, matrix, trees};
use crate::source::Section;

const SECTION: Section =
    Section { document: "docs/fidelity/lockstep.md", name: "random", command: "lockstep-random" };

/// Small machines of many shapes, so that runs are short.
const MACHINES: [Machine; 11] = [
    machine("1x1x1", 5, 1),
    machine("1x1x3", 9, 1),
    machine("1x2x2x2", 20, 1),
    machine("3x1x4", 30, 1),
    machine("2x2x3", 30, 1),
    machine("1x2x4:capacity=0-3/400", 20, 1),
    machine("2x3x2:capacity=0-2/300", 30, 1),
    machine("1x2x8:cluster=4", 40, 1),
    machine("4x1x2", 20, 1),
    machine("1x1x6:capacity=1-2/700", 14, 1),
    machine("2x2x2x2", 40, 1),
];

/// Maximum number of loads in a set.
const MOST: usize = 16;

/// A set of loads, where it runs, and a seed.
struct Set {
    machine: Machine,
    loads: Vec<&'static str>,
    seed: u64,
}

impl Set {
    /// The set of a number, for one of the trees.
    fn of(number: u64, tree: usize) -> Set {
        let mut random = Rng::new(number, "set");
        let machine = MACHINES[random.below(MACHINES.len())];
        let mut known: Vec<&str> = LOADS.iter().map(|(name, _)| *name).collect();
        let loads = (0..=random.below(MOST)).map(|_| known.swap_remove(random.below(known.len()))).collect();
        let seed = Rng::new(number, &format!("tree {tree}")).below(1_000_000) as u64;
        Set { machine, loads, seed }
    }

    /// Whether a CPU that goes offline can stop the kernel.
    fn needs_patch(&self) -> bool {
        self.loads.contains(&"hotplug") && self.loads.contains(&"deadline")
    }
}

/// Runs the sets and writes the section.
///
/// # Errors
/// A tree cannot be fetched or built, or an argument is not understood.
pub fn random(words: &[String]) -> Result<(), String> {
    let (mut sets, mut from, mut of_matrix) = (200, 1, vec!["steps=5000".to_string()]);
    for word in words {
        let number = |value: &str| value.parse().map_err(|_| format!("{word}: a number is wanted"));
        match word.split_once('=') {
            Some(("sets", value)) => sets = number(value)?,
            Some(("from", value)) => from = number(value)?,
            _ => of_matrix.push(word.clone()),
        }
    }
    let mut matrix = matrix(&of_matrix, &RECENT)?;
    let plain = trees(&matrix)?;
    matrix.patched = true;
    let patched = trees(&matrix)?;

    let numbers: Vec<(u64, usize)> =
        (from..from + sets).flat_map(|number| (0..plain.len()).map(move |tree| (number, tree))).collect();
    let one = |&(number, tree): &(u64, usize)| -> Result<Option<(Counts, Option<String>)>, String> {
        let mut set = Set::of(number, tree);
        let patch = set.needs_patch();
        let built = if patch { &patched[tree] } else { &plain[tree] };
        set.loads.retain(|load| fits(built, load, patch));
        if set.loads.is_empty() {
            return Ok(None);
        }
        done(built, &set, matrix.steps).map(Some)
    };
    let runs: Vec<_> = numbers.par_iter().map(one).collect::<Result<Vec<_>, _>>()?;
    let runs: Vec<_> = runs.into_iter().flatten().collect();

    let mut sum = Counts::default();
    runs.iter().for_each(|(counts, _)| sum += *counts);
    let differ: Vec<&String> = runs.iter().filter_map(|(_, differ)| differ.as_ref()).collect();
    let equal = runs.len() - differ.len();
    let mut text = format!(
        "{} runs of {} steps, sets {from} to {}: {equal} are equal to the end. {}\n",
        runs.len(),
        matrix.steps,
        from + sets - 1,
        counted(sum)
    );
    if !differ.is_empty() {
        text += "\n| kernel | machine | loads | seed | what differs first |\n|---|---|---|---|---|\n";
        differ.iter().for_each(|row| text += row);
    }
    SECTION.write(&text)
}

/// Whether a tree has everything for a load, and goes on with it.
fn fits(built: &Built, load: &str, patch: bool) -> bool {
    let recent = matches!(load, "lazy" | "cache");
    let fits = !recent || built.fits[usize::from(load == "cache")];
    let stops = patch && built.release.starts_with("5.10") && matches!(load, "affinity" | "kthread");
    fits && !stops
}

/// Makes a run. Returns its counts, and a row of the table if it differs.
fn done(built: &Built, set: &Set, steps: u64) -> Result<(Counts, Option<String>), String> {
    let loads: Loads = set.loads.join(",").parse()?;
    let plan = Plan {
        library: built.library.clone(),
        rules: built.rules.clone(),
        machine: set.machine.topology()?,
        tasks: set.machine.tasks,
        steps,
        seed: set.seed,
        loads,
    };
    let (counts, differs) = match run(&plan) {
        Ok(ended) => {
            let first = ended.differ.first().map(|first| format!("{}, after {}", first.field, ended.at_work));
            (ended.counts, first)
        }
        Err(fault) => (Counts::default(), Some(fault.to_string())),
    };
    let row = differs.map(|what| {
        let (release, machine, loads) = (&built.release, set.machine.name, set.loads.join(","));
        format!("| {release} | {machine} | {loads} | {} | {what} |\n", set.seed)
    });
    Ok((counts, row))
}
