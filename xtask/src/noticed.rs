//! `cargo xtask noticed [KERNEL=TREE..] [steps=N] [seeds=N] [machines=A,B] [loads=A+B]`: which rules lockstep would notice.
//!
//! The control of `cargo xtask lockstep`: each rule in force is switched off, or given another of its forms, and the runs of
//! the matrix are made until one differs. A rule without such a run is not tested by lockstep. Runs that differ with the
//! tree's own rules are left out. The table goes into `docs/fidelity/lockstep.md`.

use std::fmt::Write as _;

use rayon::prelude::*;
use schedlab::Rulebook;
use schedlab::lockstep::{Plan, run};
use schedlab::sched::Kernel;

use crate::lockstep::{MATRIX, Matrix, matrix, rules, trees};
use crate::source::Section;

const SECTION: Section =
    Section { document: "docs/fidelity/lockstep.md", name: "noticed", command: "noticed" };

/// What is run without other words: small machines of each shape, and loads that have all operations between them.
const SHORT: [&str; 4] = [
    "steps=9000",
    "seeds=2",
    "machines=1x2x4,1x1x4,1x2x4:capacity=0-3/400,2x2x4,1x2x8:cluster=4,2x2x4x2",
    "loads=all+all,hrtick+all,lazy+all,cache+exit,kthread+sync,irq+affinity+nohz+nice+groups,deadline,rt+user,quota+idle-groups+hotplug",
];

/// Another form of a rule in force.
struct Change {
    /// As in a kernel string: `NO_WA_IDLE`, `SLICE_SCALE=per_llc`.
    part: String,
    sentence: &'static str,
}

/// Switches each rule of each tree, and writes the section.
///
/// # Errors
/// A tree cannot be fetched or built, or an argument is not understood.
pub fn noticed(words: &[String]) -> Result<(), String> {
    let short = SHORT.map(String::from).into_iter();
    let key = |word: &str| word.split('=').next().unwrap_or_default().to_string();
    let all: Vec<String> = short
        .filter(|short| words.iter().all(|word| key(word) != key(short)))
        .chain(words.iter().cloned())
        .collect();
    let matrix = matrix(&all, &MATRIX)?;
    let (mut table, mut lists) = (String::new(), String::new());
    for (release, ours, plans) in plans(&matrix)? {
        let same = |kernel: &Kernel, plan: &Plan| {
            run(&Plan { rules: kernel.clone(), ..plan.clone() }).is_ok_and(|ended| ended.equal())
        };
        let own = rules(&ours)?;
        let plans: Vec<Plan> = plans.into_par_iter().filter(|plan| same(&own, plan)).collect();
        let changes = changes(&own);
        let changed = |change: &Change| rules(&format!("{ours}+{}", change.part));
        let changed: Vec<Kernel> = changes.iter().map(changed).collect::<Result<_, _>>()?;
        let seen: Vec<bool> =
            changed.par_iter().map(|rules| plans.iter().any(|plan| !same(rules, plan))).collect();
        let count = seen.iter().filter(|seen| **seen).count();
        let _ = writeln!(table, "| {release} and {ours} | {} | {count} of {} |", plans.len(), changes.len());
        let _ = writeln!(lists, "\nNot noticed in {release}:\n");
        for (change, _) in changes.iter().zip(&seen).filter(|(_, seen)| !**seen) {
            let _ = writeln!(lists, "- `{}`. {}", change.part, change.sentence);
        }
        eprintln!("{release}: done");
    }
    SECTION.write(&format!("| tree and rules | runs | noticed |\n|---|---|---|\n{table}{lists}"))
}

/// Each tree, its rules, and the runs to make, the first seeds first.
fn plans(matrix: &Matrix) -> Result<Vec<(String, String, Vec<Plan>)>, String> {
    let mut all = Vec::new();
    for tree in trees(matrix)? {
        let mut plans = Vec::new();
        for seed in 1..=matrix.seeds {
            for machine in &matrix.machines {
                let fitting = tree.fits.iter().zip(&matrix.loads).filter(|(fits, _)| **fits);
                for (_, loads) in fitting {
                    plans.push(Plan {
                        library: tree.library.clone(),
                        rules: tree.rules.clone(),
                        machine: machine.topology()?,
                        tasks: machine.tasks,
                        steps: matrix.steps(*machine),
                        seed,
                        loads: loads.parse()?,
                    });
                }
            }
        }
        all.push((tree.release, tree.ours, plans));
    }
    Ok(all)
}

/// Every other form of every rule that is on.
fn changes(kernel: &Kernel) -> Vec<Change> {
    let mut changes = Vec::new();
    for entry in Rulebook::of(kernel).entries {
        let sentence = entry.sentence;
        match entry.kind {
            "feature" if entry.value == "on" => {
                changes.push(Change { part: format!("NO_{}", entry.name), sentence });
            }
            "rule" => {
                let others = entry.forms.iter().filter(|form| **form != entry.value);
                changes
                    .extend(others.map(|form| Change { part: format!("{}={form}", entry.name), sentence }));
            }
            _ => {}
        }
    }
    changes
}
