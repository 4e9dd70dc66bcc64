//! `cargo xtask effects`: what a switch changes, in recorded kernels and in the simulator.
//!
//! A kernel ran the same programs with a feature or tunable unchanged and changed, in rounds, all in each boot
//! (`groundtruth/guest/effects.sh`). With `--recorded` and the folders of such boots their figures go into
//! `groundtruth/effects.tsv`; the recordings are too large for the tree. Without it, models of the programs run with
//! the same switch on the same machine, and so do the programs learned from one recording without the switch; a
//! section of `docs/switches.md` shows the changes side by side.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use schedlab::Run;
use schedlab::machine::Machine;
use schedlab::recording::apply_tunables;
use schedlab::sched::Kernel;
use schedlab::workload::Flips;
use schedlab_closed_loop::{self as closed_loop, ROWS};

use crate::change::{Change, Tally};
use crate::recording::{Learned, Recording};
use crate::source::{self, Section, folders_in, head, name, read};
use crate::spread;
use crate::switches::{FOLDER, PLAIN};

const FILE: &str = "groundtruth/effects.tsv";
const SECTION: Section = Section { document: "docs/switches.md", name: "effects", command: "effects" };

/// The machine. The recordings beside those of [`crate::switches`] show how programs begin on it.
const MACHINE: &str = "2x1x4";

/// Simulated runs of each load and setting.
const SEEDS: u64 = 16;

/// The figures that are compared: those of [`ROWS`] that depend on which tasks run where and when, and the sum of all
/// moves.
const FIGURES: [&str; 6] =
    ["voluntary", "involuntary", "wake-ups", "migrations", "latency p50 us", "latency p99 us"];

type Figures = [f64; FIGURES.len()];

/// The figures among those of a row.
fn figures(row: &[f64; ROWS.len()]) -> Figures {
    let of = |name: &str| row[ROWS.iter().position(|row| *row == name).expect("it is a row")];
    let moved: f64 = ROWS.iter().zip(row).filter(|(name, _)| name.starts_with("moved")).map(|(_, n)| n).sum();
    FIGURES.map(|name| if name == "migrations" { moved } else { of(name) })
}

/// Kernel, setting, load.
type Key = [String; 3];

/// The rounds of each load under each setting, or the runs.
type Rounds = BTreeMap<Key, Vec<Figures>>;

/// The predictions of the models, and of the replays.
type Foretold = [Rounds; 2];

/// Measures recordings, or writes the section.
///
/// # Errors
/// A file that cannot be read or written, or a run that cannot be made.
pub fn run(args: &[String]) -> Result<(), String> {
    if let Some(("--recorded", folders)) = args.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return measure(folders);
    }
    let recorded = parse(&read(&source::root().join(FILE))?)?;
    let [simulated, replayed] = foretell(&recorded)?;
    SECTION.write(&text(&recorded, &[("simulated", simulated), ("replayed", replayed)]))
}

/// Measures what `effects.sh` left in folders, `KERNEL/SETTING/LOAD-ROUND`, and writes the file.
fn measure(folders: &[String]) -> Result<(), String> {
    let mut recordings: Vec<(Key, [String; 2], PathBuf)> = Vec::new();
    for folder in folders {
        for kernel in folders_in(Path::new(folder))? {
            let boot = spread::seed(&read(&kernel.join("qemu.cmd"))?);
            for setting in folders_in(&kernel)? {
                for recording in folders_in(&setting)?.into_iter().filter(|r| r.join("cmd.txt").is_file()) {
                    let of = name(&recording);
                    let (load, round) = of.split_once('-').ok_or(format!("{of} is no load and round"))?;
                    let key = [name(&kernel), name(&setting), load.to_string()];
                    recordings.push((key, [boot.clone(), round.to_string()], recording));
                }
            }
        }
    }
    recordings.sort();
    let line = |(key, [boot, round], folder): &(Key, [String; 2], PathBuf)| {
        let facts = folder.join("../../facts/topology.txt");
        let machine = closed_loop::machine(MACHINE, &read(&facts)?).map_err(|e| e.to_string())?;
        let kernel = Kernel::parse(&key[0]).map_err(|e| e.to_string())?;
        let (_, measured) = spread::recording(folder, &machine, &kernel)?;
        let words = figures(&measured.row()).map(|figure| ((figure * 10.0).round() / 10.0).to_string());
        Ok(format!("{}\t{boot}\t{round}\t{}\n", key.join("\t"), words.join("\t")))
    };
    let lines: Vec<String> = recordings.par_iter().map(line).collect::<Result<_, String>>()?;
    let head = format!(
        "# Programs under switches turned over, each setting in several rounds of each boot on {MACHINE}: groundtruth/guest/effects.sh.\n\
         # Written by `cargo xtask effects --recorded FOLDER..`.\n\
         kernel\tsetting\tload\tseed\tround\t{}\n",
        FIGURES.join("\t")
    );
    let path = source::root().join(FILE);
    fs::write(&path, head + &lines.concat()).map_err(|e| format!("{}: {e}", path.display()))
}

fn parse(text: &str) -> Result<Rounds, String> {
    let mut recorded = Rounds::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with(['#', 'k'])) {
        let words: Vec<&str> = line.split('\t').collect();
        let numbers: Option<Vec<f64>> =
            words.get(5..).unwrap_or_default().iter().map(|w| w.parse().ok()).collect();
        let row = numbers.and_then(|numbers| Figures::try_from(numbers).ok());
        let row = row.ok_or_else(|| format!("{FILE}:{}: not a recording", at + 1))?;
        recorded.entry([words[0], words[1], words[2]].map(str::to_string)).or_default().push(row);
    }
    Ok(recorded)
}

/// Runs every load under every setting that was recorded: as a model of the program, and as learned from a recording.
fn foretell(recorded: &Rounds) -> Result<Foretold, String> {
    let mut settings: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for [kernel, setting, load] in recorded.keys() {
        settings.entry((kernel, load)).or_default().push(setting);
    }
    let runs = |((kernel, load), settings): ((&str, &str), Vec<&str>)| {
        let folder = source::root().join("traces").join(kernel).join(FOLDER).join(format!("{PLAIN}-{load}"));
        let learned = Recording::of(&folder)?.learn()?;
        let kernels: Vec<Kernel> =
            settings.iter().map(|setting| under(setting, &learned)).collect::<Result<_, _>>()?;
        let by_kernel = [simulated(&folder, &learned, &kernels)?, replayed(&learned, kernels)?];
        let keyed = |runs: Vec<Vec<Figures>>| -> Rounds {
            let key = |setting: &&str| [kernel, setting, load].map(str::to_string);
            settings.iter().map(key).zip(runs).collect()
        };
        Ok(by_kernel.map(keyed))
    };
    let all: Vec<Foretold> = settings.into_par_iter().map(runs).collect::<Result<_, String>>()?;
    let mut foretold = Foretold::default();
    for runs in all {
        for (foretold, runs) in foretold.iter_mut().zip(runs) {
            foretold.extend(runs);
        }
    }
    Ok(foretold)
}

/// The kernel of a recording with a setting.
fn under(setting: &str, learned: &Learned) -> Result<Kernel, String> {
    let mut kernel = learned.kernel.clone();
    match setting.split_once('=') {
        _ if setting == PLAIN => {}
        Some((number, value)) => {
            // As debugfs shows it: the current choice in brackets.
            let shown = if number == "preempt" { format!("({value})") } else { value.to_string() };
            let line = format!("/{number} {shown}");
            apply_tunables(&mut kernel, &line, learned.topology.online().weight());
        }
        None => kernel.switch(setting).map_err(|e| e.to_string())?,
    }
    Ok(kernel)
}

/// Runs of the program's model by kernel, with the initial state of a recording, except the flips from
/// before.
fn simulated(folder: &Path, learned: &Learned, kernels: &[Kernel]) -> Result<Vec<Vec<Figures>>, String> {
    let facts = read(&folder.join("../facts/topology.txt"))?;
    let machine = closed_loop::machine(MACHINE, &facts).map_err(|e| e.to_string())?;
    let (program, mut recorded) = spread::recording(folder, &machine, &learned.kernel)?;
    recorded.begun.flips = flips(folder, &machine, learned)?;
    let run = |kernel: &Kernel, seed| {
        closed_loop::simulated(&machine, kernel, &program, &recorded.begun, seed)
            .map(|run| figures(&run.row()))
            .map_err(|e| e.to_string())
    };
    kernels.iter().map(|kernel| (1..=SEEDS).map(|seed| run(kernel, seed)).collect()).collect()
}

/// Wakee flips from before: the median of what the recordings of a load show, under any setting, because a single
/// recording is the first of its boot and says nothing about others.
fn flips(folder: &Path, machine: &Machine, learned: &Learned) -> Result<Option<Flips>, String> {
    let plain = name(folder);
    let load = plain.strip_prefix(PLAIN).unwrap_or_default();
    let mut all = Vec::new();
    for recording in folders_in(folder.parent().unwrap_or(folder))? {
        if let Some(setting) = name(&recording).strip_suffix(load) {
            let (_, recorded) = spread::recording(&recording, machine, &under(setting, learned)?)?;
            all.extend(recorded.begun.flips);
        }
    }
    all.sort_by_key(|flips| flips.count);
    Ok(all.get(all.len() / 2).copied())
}

/// Runs of the programs learned from a recording, by kernel, on the recorded machine.
fn replayed(learned: &Learned, kernels: Vec<Kernel>) -> Result<Vec<Vec<Figures>>, String> {
    let Learned { recorded, topology, kernel } = learned;
    let runs = || {
        let form = recorded.at_home(topology, kernel, 1, 1)?.fit()?;
        let place = recorded.own(topology.clone(), form);
        recorded.scenario(place, kernels, SEEDS as u32, 1)?.run(1, |_, _| {})
    };
    let results = runs().map_err(|e: schedlab::Error| e.to_string())?;
    let row = |run: &Run| {
        let (counts, latency) = (&run.folds.counts, &run.folds.latency.histogram);
        let us = |percent| latency.percentile(percent).unwrap_or(0) as f64 / 1e3;
        let [voluntary, involuntary, wakeups] =
            [counts.voluntary, counts.involuntary, counts.wakeups].map(|count| count as f64);
        [voluntary, involuntary, wakeups, run.folds.migrations.total() as f64, us(50.0), us(99.0)]
    };
    Ok(results.runs[0].iter().map(|runs| runs.iter().map(row).collect()).collect())
}

/// How one of the figures changes between two settings.
fn change(rounds: &Rounds, plain: &Key, with: &Key, at: usize) -> Change {
    let values = |key: &Key| -> Vec<f64> { rounds[key].iter().map(|round| round[at]).collect() };
    Change::of(&values(plain), &values(with))
}

/// The section.
fn text(recorded: &Rounds, foretold: &[(&str, Rounds)]) -> String {
    let mut rows = String::new();
    let mut tallies: BTreeMap<(&str, &str), Tally> = BTreeMap::new();
    for key @ [kernel, setting, load] in recorded.keys().filter(|[_, setting, _]| setting != PLAIN) {
        let plain = [kernel.clone(), PLAIN.to_string(), load.clone()];
        for (at, figure) in FIGURES.iter().enumerate() {
            let change = |rounds: &Rounds| change(rounds, &plain, key, at);
            let said = change(recorded);
            let ours: Vec<Change> = foretold.iter().map(|(_, runs)| change(runs)).collect();
            for ((how, _), ours) in foretold.iter().zip(&ours) {
                tallies.entry((how, load)).or_default().add(&said, ours);
            }
            if said.stands_out() || ours[0].stands_out() && said.rules_out(&ours[0]) {
                let cells: Vec<String> = [&said].into_iter().chain(&ours).map(Change::cell).collect();
                _ = writeln!(rows, "| {kernel} | {setting} | {load} | {figure} | {} |", cells.join(" | "));
            }
        }
    }
    let mut tally = String::new();
    for (how, _) in foretold {
        tally.extend(
            tallies.iter().filter(|((of, _), _)| of == how).map(|((how, load), of)| of.row(how, load)),
        );
    }
    let mut columns = vec!["kernel", "setting", "load", "figure", "recorded"];
    columns.extend(foretold.iter().map(|(how, _)| *how));
    format!(
        "{}{tally}\n{}{rows}",
        head(&[
            "foretold by",
            "load",
            "changes recorded",
            "same sign",
            "of which stand out",
            "within a factor of two",
            "foretold alone",
            "of which ruled out"
        ]),
        head(&columns),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_and_replays_change_as_the_kernel_did() {
        let mut recorded = parse(&read(&source::root().join(FILE)).unwrap()).unwrap();
        let loads = [("6.12", "sleepers"), ("7.2", "hogs")];
        let settings = ["NO_WAKEUP_PREEMPTION", "NO_DELAY_DEQUEUE", "NO_PLACE_LAG", "base_slice_ns=12000000"];
        recorded.retain(|[kernel, setting, load], _| {
            loads.contains(&(kernel.as_str(), load.as_str()))
                && (setting == PLAIN || settings.contains(&setting.as_str()))
        });
        let foretold = foretell(&recorded).unwrap();
        let mut nr_held = 0;
        for key @ [kernel, setting, load] in recorded.keys() {
            let plain = [kernel.clone(), PLAIN.to_string(), load.clone()];
            let at = FIGURES.iter().position(|figure| *figure == "involuntary").unwrap();
            let said = change(&recorded, &plain, key, at);
            for ours in foretold.iter().map(|runs| change(runs, &plain, key, at)) {
                let same = said.part().signum() == ours.part().signum();
                assert!(
                    !said.stands_out() || same,
                    "{kernel} {setting} {load}: {} for {}",
                    ours.cell(),
                    said.cell()
                );
                nr_held += usize::from(said.stands_out());
            }
        }
        assert_eq!(nr_held, 8, "four changes, foretold in two ways");
    }

    #[test]
    fn lines_that_are_no_recording_are_named() {
        let text = "# made so\nkernel\tsetting\n6.1\tplain\tpipes\t7\t1\t1\t2\t3\t4\t5\t6\n6.1\tplain\tpipes\t7\t2\t1\n";
        assert_eq!(parse(text).unwrap_err(), "groundtruth/effects.tsv:4: not a recording");
    }
}
