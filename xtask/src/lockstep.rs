//! `cargo xtask lockstep [KERNEL=TREE..] [steps=N] [seeds=N] [machines=A,B] [loads=A+B]`: kernel trees against our rules.
//!
//! Without trees Debian's sources are fetched (`groundtruth/source.sh`). Every machine, load and seed is run until both sides
//! differ or to the end; the table goes into `docs/fidelity/lockstep.md` after each machine, from the smallest to the largest.
//! As a control the runs of the first two seeds are made with the preset before the tree's own too. Hotplug with deadline tasks
//! has a table of its own, of trees with the patches that it needs.
//!
//! `steps` are those of machines with up to 8 CPUs. Those with 16 to 64 CPUs have a quarter of them, larger ones an eighth: a
//! state takes longer to compare there.

use std::fmt::Write as _;
use std::process::Command;

use rayon::prelude::*;
use schedlab::kernel_tree::Library;
use schedlab::kernels::Source;
use schedlab::lockstep::{Counts, Difference, Ended, Loads, Operations, Plan, nearest, prepared, run};
use schedlab::sched::Kernel;
use schedlab::topology::Topology;

use crate::source::{self, Section};

/// Loads that are run together, and the table of them.
pub(crate) struct Part {
    section: Section,
    loads: &'static [&'static str],
    /// Trees have the patch that mends what stops a kernel under these loads (`crates/lockstep/patches`).
    patched: bool,
}

pub(crate) const MATRIX: Part = Part { section: section("matrix"), loads: &LOADS, patched: false };

const HOTPLUG_DEADLINE: Part = Part {
    section: section("hotplug-deadline"),
    loads: &["hotplug,deadline", "hotplug,deadline,rt,starve,groups,quota,nice,hrtick"],
    patched: true,
};

/// Loads that a tree may be too old for, for `lockstep-random`.
pub(crate) const RECENT: Part =
    Part { section: section("random"), loads: &["lazy", "cache"], patched: false };

const fn section(name: &'static str) -> Section {
    Section { document: "docs/fidelity/lockstep.md", name, command: "lockstep" }
}

/// Kernels from Debian that are fetched if no tree is named.
const KERNELS: [&str; 5] = ["5.10", "6.1", "6.12", "7.2", "7.3"];

/// A machine, and how much is run on it.
#[derive(Clone, Copy)]
pub(crate) struct Machine {
    pub(crate) name: &'static str,
    pub(crate) tasks: usize,
    /// Its runs have one in so many of the steps.
    steps_by: u64,
}

impl Machine {
    pub(crate) fn topology(&self) -> Result<Topology, String> {
        Topology::preset_or_regular(self.name).map_err(|error| error.to_string())
    }
}

pub(crate) const fn machine(name: &'static str, tasks: usize, steps_by: u64) -> Machine {
    Machine { name, tasks, steps_by }
}

/// Machines of 1 to 256 CPUs, two of them with CPUs of different capacity and one with clusters.
const MACHINES: [Machine; 11] = [
    machine("1x1x1", 5, 1),
    machine("1x1x4", 12, 1),
    machine("1x2x4", 20, 1),
    machine("1x2x4:capacity=0-3/400", 20, 1),
    machine("2x1x4:capacity=0-3/600", 30, 1),
    machine("2x2x4", 40, 4),
    machine("1x2x8:cluster=4", 40, 4),
    machine("2x2x4x2", 60, 4),
    machine("2x4x8", 120, 4),
    machine("2x8x8", 200, 8),
    machine("2x8x8x2", 300, 8),
];

/// Seeds of the control.
const CONTROL_SEEDS: u64 = 2;

/// Sets of loads.
const LOADS: [&str; 36] = [
    "plain",
    "nohz",
    "sync,irq",
    "yield",
    "exit,kthread",
    "nice",
    "affinity",
    "groups",
    "shares",
    "quota",
    "idle-groups",
    "slice",
    "freq",
    "batch",
    "rt",
    "starve",
    "starve,groups,quota,nice,hrtick",
    "deadline",
    "exec",
    "steal",
    "hrtick",
    "hrtick,deadline,rt,nice",
    "lazy",
    "nohz,nice,groups,rt,lazy",
    "groups,deadline,rt",
    "all",
    "all,lazy",
    "all,hrtick",
    "user,quota",
    "cache",
    "cache,exit,exec,kthread",
    "all,cache",
    "hotplug",
    "hotplug,nohz,groups,quota",
    "hotplug,affinity",
    "hotplug,starve",
];

/// The runs to make.
pub(crate) struct Matrix {
    pub(crate) patched: bool,
    trees: Vec<(String, String)>,
    pub(crate) steps: u64,
    pub(crate) seeds: u64,
    pub(crate) machines: Vec<Machine>,
    pub(crate) loads: Vec<String>,
}

impl Matrix {
    pub(crate) fn steps(&self, machine: Machine) -> u64 {
        self.steps.div_ceil(machine.steps_by)
    }
}

/// A tree that was built.
#[derive(Clone)]
pub(crate) struct Built {
    pub(crate) release: String,
    /// Our rules by name.
    pub(crate) ours: String,
    pub(crate) rules: Kernel,
    pub(crate) library: Library,
    /// Which of the matrix' loads it has everything for.
    pub(crate) fits: Vec<bool>,
}

/// Builds the trees of a matrix.
///
/// # Errors
/// A tree cannot be opened or built.
pub(crate) fn trees(matrix: &Matrix) -> Result<Vec<Built>, String> {
    let mut all = Vec::new();
    for (kernel, dir) in &matrix.trees {
        let mut source = Source::open(dir)?;
        if matrix.patched {
            let patch = match source.tree.numbers() {
                [5, 10, _] => "5.10",
                [..6, ..] | [6, ..11, _] => "6.1",
                _ => "6.12",
            };
            let patches = source::root().join("crates/lockstep/patches");
            source = Source::open(&format!("{dir}+{}/hotplug-deadline-{patch}.patch", patches.display()))?;
        }
        let tree = &source.tree;
        let built = source.build(&mut |step| eprintln!("{step}")).map_err(|error| error.to_string())?;
        let ours = if kernel.is_empty() { nearest(tree) } else { kernel.clone() };
        let fits = |text: &String| text.parse::<Loads>().map(|loads| loads.fit(tree).is_ok());
        all.push(Built {
            release: built.release.clone(),
            rules: rules(&ours)?,
            ours,
            library: Library::load(&built).map_err(|error| error.to_string())?,
            fits: matrix.loads.iter().map(fits).collect::<Result<_, _>>()?,
        });
    }
    Ok(all)
}

/// Our rules by name, as lockstep has them.
pub(crate) fn rules(kernel: &str) -> Result<Kernel, String> {
    prepared(kernel).map_err(|error| error.to_string())
}

/// One run, and its place in the table.
struct Done {
    tree: usize,
    machine: usize,
    load: usize,
    seed: u64,
    ended: Ended,
}

/// Runs the matrix and writes the sections.
///
/// # Errors
/// A tree cannot be fetched or built, or an argument is not understood.
pub fn lockstep(words: &[String]) -> Result<(), String> {
    for part in [&MATRIX, &HOTPLUG_DEADLINE] {
        let matrix = matrix(words, part)?;
        if !matrix.loads.is_empty() {
            run_part(&matrix, &part.section)?;
        }
    }
    Ok(())
}

fn run_part(matrix: &Matrix, section: &Section) -> Result<(), String> {
    let loads: Vec<Loads> = matrix.loads.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let mut libraries = trees(matrix)?;
    let mut controls = Vec::new();
    for tree in &libraries {
        if let Some(before) = preset_before(&tree.ours) {
            controls.push(Built { ours: before.into(), rules: rules(before)?, ..tree.clone() });
        }
    }
    let trees = libraries.len();
    libraries.extend(controls);
    let places = |machine: usize| {
        let seeds = |tree| if tree < trees { matrix.seeds } else { matrix.seeds.min(CONTROL_SEEDS) };
        let mut places = Vec::new();
        for (tree, Built { fits, .. }) in libraries.iter().enumerate() {
            for load in (0..matrix.loads.len()).filter(|load| fits[*load]) {
                places.extend((1..=seeds(tree)).map(|seed| (tree, machine, load, seed)));
            }
        }
        places
    };
    let one = |&(tree, machine, load, seed): &(usize, usize, usize, u64)| -> Result<Done, String> {
        let of = matrix.machines[machine];
        let plan = Plan {
            library: libraries[tree].library.clone(),
            rules: libraries[tree].rules.clone(),
            machine: of.topology()?,
            tasks: of.tasks,
            steps: matrix.steps(of),
            seed,
            loads: loads[load].clone(),
        };
        let mut ended = run(&plan).unwrap_or_else(|fault| {
            eprintln!("{} on {}, {}, seed {seed}: {fault}", libraries[tree].release, of.name, plan.loads);
            let differ = Difference {
                field: "fault",
                of: "the tree".into(),
                kernel: fault.to_string(),
                ours: "none".into(),
            };
            Ended { differ: vec![differ], at_work: fault.to_string(), ..Ended::default() }
        });
        ended.operations = Operations::new(); // the table does not need them
        Ok(Done { tree, machine, load, seed, ended })
    };
    let names: Vec<(&str, &str)> =
        libraries.iter().map(|tree| (tree.release.as_str(), tree.ours.as_str())).collect();
    let (mut done, mut controls) = (Vec::new(), Vec::new());
    for machine in 0..matrix.machines.len() {
        let runs: Vec<Done> = places(machine).par_iter().map(one).collect::<Result<_, _>>()?;
        let (own, before): (Vec<Done>, Vec<Done>) = runs.into_iter().partition(|run| run.tree < trees);
        done.extend(own);
        controls.extend(before);
        section.write(&(text(matrix, &names[..trees], &done) + &control(&names, trees, &controls)))?;
        eprintln!("{}: done", matrix.machines[machine].name);
    }
    Ok(())
}

/// The preset that comes before a kernel's.
fn preset_before(kernel: &str) -> Option<&'static str> {
    let names = Kernel::names();
    let own = names.iter().position(|name| Some(*name) == kernel.split('+').next())?;
    names[..own].last().copied()
}

/// How often the control runs were equal.
fn control(names: &[(&str, &str)], trees: usize, done: &[Done]) -> String {
    let mut text = String::from(
        "\nThe control: the runs of seeds 1 and 2, of a tree with the preset before its own.\n\n| tree | preset | equal |\n|---|---|---|\n",
    );
    for (tree, (release, preset)) in names.iter().enumerate().skip(trees) {
        let _ =
            writeln!(text, "| {release} | {preset} | {} |", cell(done.iter().filter(|run| run.tree == tree)));
    }
    text
}

/// The runs of a part that the words choose.
pub(crate) fn matrix(words: &[String], part: &Part) -> Result<Matrix, String> {
    let mut matrix = Matrix {
        patched: part.patched,
        trees: Vec::new(),
        steps: 8000,
        seeds: 10,
        machines: MACHINES.into(),
        loads: part.loads.iter().copied().map(String::from).collect(),
    };
    for word in words {
        let (key, value) =
            word.split_once('=').ok_or(format!("\"{word}\" is not KERNEL=TREE, steps=N or the like"))?;
        let number = || value.parse().map_err(|_| format!("{key} is a number, not \"{value}\""));
        match key {
            "steps" => matrix.steps = number()?,
            "seeds" => matrix.seeds = number()?,
            "machines" => {
                matrix.machines.retain(|machine| value.split(',').any(|wanted| wanted == machine.name));
                all_found(value, ',', matrix.machines.len())?;
            }
            "loads" => {
                let known = |wanted| LOADS.contains(&wanted) || HOTPLUG_DEADLINE.loads.contains(&wanted);
                all_found(value, '+', value.split('+').filter(|wanted| known(wanted)).count())?;
                matrix.loads.retain(|name| value.split('+').any(|wanted| wanted == name));
            }
            _ => {
                // KERNEL may have switches with a value, so the tree is after the last `=`.
                let (kernel, tree) = word.rsplit_once('=').expect("there is one");
                matrix.trees.push((kernel.to_string(), tree.to_string()));
            }
        }
    }
    if matrix.trees.is_empty() {
        for kernel in KERNELS {
            let script = source::root().join("groundtruth/source.sh");
            let output =
                Command::new(script).arg(kernel).output().map_err(|error| format!("source.sh: {error}"))?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).trim().to_string());
            }
            matrix.trees.push((String::new(), String::from_utf8_lossy(&output.stdout).trim().to_string()));
        }
    }
    Ok(matrix)
}

fn all_found(words: &str, between: char, found: usize) -> Result<(), String> {
    let wanted = words.split(between).count();
    if wanted == found { Ok(()) } else { Err(format!("of \"{words}\" only {found} are known")) }
}

fn text(matrix: &Matrix, names: &[(&str, &str)], done: &[Done]) -> String {
    let mut text = String::new();
    let mut sum = Counts::default();
    done.iter().for_each(|run| sum += run.ended.counts);
    let equal = done.iter().filter(|run| run.ended.equal()).count();
    let _ = writeln!(text, "{} runs: {equal} are equal to the end. {}\n", done.len(), counted(sum));
    let _ = writeln!(text, "Runs that are equal to the end, of all, by load:\n");
    let heads: Vec<String> = names.iter().map(|(release, ours)| format!("{release} and {ours}")).collect();
    let _ = writeln!(text, "| load | {} |\n|---|{}", heads.join(" | "), "---|".repeat(names.len()));
    for (load, name) in matrix.loads.iter().enumerate() {
        let cells =
            (0..names.len()).map(|tree| cell(done.iter().filter(|run| run.tree == tree && run.load == load)));
        let _ = writeln!(text, "| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    let _ = writeln!(
        text,
        "\nThe same by machine:\n\n| machine | {} |\n|---|{}",
        heads.join(" | "),
        "---|".repeat(names.len())
    );
    for (machine, of) in matrix.machines.iter().enumerate() {
        let runs = |tree| done.iter().filter(move |run| run.tree == tree && run.machine == machine);
        let cells: Vec<String> = (0..names.len()).map(|tree| cell(runs(tree))).collect();
        let (seeds, steps) = (matrix.seeds, matrix.steps(*of));
        let _ = writeln!(
            text,
            "| {}, {} tasks, {seeds} seeds, {steps} steps | {} |",
            of.name,
            of.tasks,
            cells.join(" | ")
        );
    }
    let differ = differences(matrix, names, done);
    if !differ.is_empty() {
        let _ = writeln!(text, "\nWhat differs first, where, and how often:\n\n{differ}");
    }
    text
}

/// What was done and compared, as a sentence.
pub(crate) fn counted(sum: Counts) -> String {
    format!(
        "{} operations (pauses among them, in which ticks and timers come), {} wake-ups, {} forks, {} picks, {} balance passes, \
         {} comparisons of the whole state.",
        sum.steps, sum.wakeups, sum.forks, sum.picks, sum.passes, sum.states
    )
}

fn cell<'a>(runs: impl Iterator<Item = &'a Done>) -> String {
    let (mut equal, mut all) = (0, 0);
    for run in runs {
        all += 1;
        equal += u32::from(run.ended.equal());
    }
    // A load that the tree is too old for.
    if all == 0 { "-".into() } else { format!("{equal} of {all}") }
}

/// For each kernel, load and field: how often it was the first difference, and the earliest.
fn differences(matrix: &Matrix, names: &[(&str, &str)], done: &[Done]) -> String {
    let mut rows: Vec<(usize, usize, &str, u32, &Done)> = Vec::new();
    for run in done.iter().filter(|run| !run.ended.equal()) {
        let field = run.ended.differ[0].field;
        let row = rows.iter_mut().find(|row| (row.0, row.1, row.2) == (run.tree, run.load, field));
        match row {
            Some(row) => {
                row.3 += 1;
                if run.ended.counts.steps < row.4.ended.counts.steps {
                    row.4 = run;
                }
            }
            None => rows.push((run.tree, run.load, field, 1, run)),
        }
    }
    rows.sort_by_key(|row| (row.0, row.1, std::cmp::Reverse(row.3)));
    let mut text = String::from("| kernel | load | field | runs | the earliest |\n|---|---|---|---|---|\n");
    for (tree, load, field, runs, first) in &rows {
        let _ = writeln!(
            text,
            "| {} | {} | {field} | {runs} | {} seed {}, after {} steps, {} |",
            names[*tree].0,
            matrix.loads[*load],
            matrix.machines[first.machine].name,
            first.seed,
            first.ended.counts.steps,
            first.ended.at_work
        );
    }
    if rows.is_empty() { String::new() } else { text }
}
