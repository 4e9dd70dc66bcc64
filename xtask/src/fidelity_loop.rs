//! `cargo xtask fidelity-loop`: the recorded programs run again by the simulator, as a table.
//!
//! Writes how many figures are reproduced into `docs/fidelity.md` and the figures into `docs/fidelity/closed-loop.md`.
//! With `--recorded` and folders of repeated recordings it measures those instead (`spread.rs`).

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::io::Cursor;
use std::path::Path;

use schedlab::machine::Machine;
use schedlab::sched::Kernel;
use schedlab::topology::CpuId;
use schedlab_closed_loop::{
    Company, Figures, Placed, Program, ROWS, SESSION, Share, bare_machine, compare, courses,
    idle_balance_costs, learned, machine, shares, simulated,
};

use crate::near::{Tally, cell, told};
use crate::source::{self, Section, head, read};
use crate::spread::{self, Spread};

const SUMMARY: Section =
    Section { document: "docs/fidelity.md", name: "closed loop", command: "fidelity-loop" };
const FIGURES: Section =
    Section { document: "docs/fidelity/closed-loop.md", name: "closed loop", command: "fidelity-loop" };

const KERNELS: [&str; 3] = ["6.1", "6.12", "7.2"];
const MACHINES: [&str; 4] = ["1x1x8", "2x2x4", "2x2x2x2-smt", "2x1x8-cluster"];
const LOADS: [&str; 9] =
    ["pipes", "sleepers", "barrier", "barrier-nospin", "fork", "io-loop", "io-disk", "hogs", "hogs-runtime"];
const HOGS: [&str; 2] = ["hogs", "hogs-runtime"];
const STREAMS: [&str; 4] = ["stream-perllc-1", "stream-perllc-2", "stream-perllc-3", "stream-half"];

/// Seeds for the printed mean, and seeds that represent the hidden past.
const RUNS: u64 = 20;
const PASTS: u64 = 100;

/// Allowed deviation of a hog's share, relative to it, and of the share of one of two hogs, as a fraction of
/// a CPU.
const HOG: f64 = 0.02;
const PAIR: f64 = 0.02;

/// Runs everything and writes the tables; with names of loads, only prints those.
///
/// # Errors
/// A file that cannot be read or written, or a run that cannot be made.
pub fn run(only: &[String]) -> Result<(), String> {
    if let Some(("--recorded", folders)) = only.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return spread::write(folders);
    }
    let mut tables = Tables { spread: Spread::read()?, ..Tables::default() };
    for kernel in KERNELS {
        for name in MACHINES {
            let folder = source::root().join("traces").join(kernel).join(name);
            let facts = read(&folder.join("facts/topology.txt"))?;
            let machine = machine(name, &facts).map_err(|e| e.to_string())?;
            let place = Place { kernel, machine: &machine, folder: &folder };
            let mut runs = place.session(&mut tables)?;
            for load in LOADS.iter().filter(|l| only.is_empty() || only.iter().any(|o| o == *l)) {
                if let Some(runs) = runs.remove(load) {
                    place.counts(load, &runs, &mut tables);
                }
            }
            for load in HOGS.iter().filter(|l| only.is_empty() || only.iter().any(|o| o == *l)) {
                place.led(load, &facts, &mut tables)?;
            }
            for load in STREAMS.iter().filter(|l| only.is_empty() || only.iter().any(|o| o == *l)) {
                place.stream(load, &mut tables)?;
            }
        }
    }
    let (summary, figures) = (tables.summary(), tables.figures());
    if !only.is_empty() {
        print!("{summary}\n{figures}");
        return Ok(());
    }
    FIGURES.write(&figures)?;
    SUMMARY.write(&summary)
}

/// Number of items that reach their goal, and the total.
#[derive(Clone, Copy, Default)]
struct Reach {
    all: usize,
    reach_it: usize,
}

impl Reach {
    fn add(&mut self, all: usize, reach_it: usize) {
        self.all += all;
        self.reach_it += reach_it;
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.reach_it, self.all)
    }
}

/// Lines of the tables.
#[derive(Default)]
struct Tables {
    spread: Spread,
    tally: BTreeMap<&'static str, Tally>,
    counts: String,
    costs: String,
    shares: String,
    led: String,
    off: String,
    pairs: BTreeMap<&'static str, (Company, Company)>,
    streams: String,
    differences: String,
    /// Hogs led along the recording, and steps of new threads that were reached.
    hogs: Reach,
    steps: Reach,
}

impl Tables {
    /// The table of pairs, and how many simulated and repeated ones are close enough.
    fn pairs(&self) -> (String, [Reach; 2]) {
        let mut text = String::new();
        let mut near = [Reach::default(); 2];
        for (kernel, (recorded, simulated)) in &self.pairs {
            for ((a, b), share, time) in recorded.shares() {
                let ours = simulated.shares().into_iter().find(|s| s.0 == (a, b));
                let again = self.spread.pairs(kernel).into_iter().find(|s| s.0 == (a, b));
                if let (Some((_, ours, ours_ms)), Some((_, again, again_ms))) = (ours, again) {
                    for (near, share_of) in near.iter_mut().zip([ours, again]) {
                        near.add(1, usize::from((share_of - share).abs() <= PAIR));
                    }
                    _ = writeln!(
                        text,
                        "| {kernel} | {a}, {b} | {:.1} | {:.1} | {:.1} | {} | {again_ms:.0} | {} |",
                        share * 100.0,
                        again * 100.0,
                        ours * 100.0,
                        time.0 / 1_000_000,
                        ours_ms.0 / 1_000_000
                    );
                }
            }
        }
        (text, near)
    }

    /// Goals and results, and the reproduced rows of each load.
    fn summary(&self) -> String {
        let (rows, all) = self.tally();
        let (_, [pairs, pairs_again]) = self.pairs();
        format!(
            "{}{}| share of each of two hogs alone on a CPU | within {:.0} points of the recorded one | {pairs} pairs | {pairs_again} |\n\
             | share of each hog, moves made as recorded | within {:.0} % of the recorded one | {} hogs | - |\n\
             | CPU of each new thread | the recorded one, or one that differs in hidden facts alone | {} steps reached | - |\n\n\
             ### Rows whose counts come back\n\n{}{rows}",
            head(&["figure", "goal", "reached", "reached by recordings made again"]),
            all.goals(),
            PAIR * 100.0,
            HOG * 100.0,
            self.hogs,
            self.steps,
            head(&[
                "load",
                "rows",
                "within a tenth of the one recording",
                "of the mean of all recordings",
                "or as near as some recording",
                "recordings made again, within a tenth of the one",
            ]),
        )
    }

    fn tally(&self) -> (String, Tally) {
        let mut all = Tally::default();
        let mut text = String::new();
        for load in LOADS {
            let tally = self.tally.get(load).copied().unwrap_or_default();
            text += &tally.row(load);
            all += tally;
        }
        (text + &all.row("all"), all)
    }

    fn figures(&self) -> String {
        let mut columns = vec!["kernel", "machine", "load"];
        columns.extend(ROWS);
        let streams = ["kernel", "machine", "load", "steps", "exact", "in set", "differ", "not reached"];
        let (pairs, _) = self.pairs();
        format!(
            "## Counts: recorded, recorded again, simulated\n\n{}{}\n## Shares of hogs by nice value, percent: recorded, \
             recorded again, simulated\n\n{}{}\n## Shares of each hog, led along the recording\n\n{}{}\n{}\n\
             ## Shares of two hogs alone on a CPU, percent\n\n{}{pairs}\n\
             ## What CPUs take newly idle balancing to cost, us\n\n{}{}\n## New threads\n\n{}{}\n{}",
            head(&columns),
            self.counts,
            head(&["kernel", "machine", "load", "nice -5", "nice 0", "nice 5"]),
            self.shares,
            head(&["kernel", "machine", "load", "hogs", "within 2 %", "off by, mean", "at most", "that one"]),
            self.led,
            self.off,
            head(&[
                "kernel",
                "nice values",
                "recorded",
                "again",
                "simulated",
                "together, recorded ms",
                "again ms",
                "simulated ms"
            ]),
            head(&["kernel", "machine", "recorded: least, quartiles, most", "simulated"]),
            self.costs,
            head(&streams),
            self.streams,
            self.differences
        )
    }
}

/// A load as it was recorded, and its runs by seed.
struct Runs {
    program: Program,
    recorded: Figures,
    simulated: Vec<Figures>,
}

struct Place<'a> {
    kernel: &'static str,
    machine: &'a Machine,
    folder: &'a Path,
}

impl Place<'_> {
    fn kernel(&self) -> Result<Kernel, String> {
        Kernel::parse(self.kernel).map_err(|e| e.to_string())
    }

    fn recorded(&self, load: &str) -> Result<(Program, Figures), String> {
        spread::recording(&self.folder.join(load), self.machine, &self.kernel()?)
    }

    fn simulated(&self, program: &Program, recorded: &Figures, seed: u64) -> Result<Figures, String> {
        simulated(self.machine, &self.kernel()?, program, &recorded.begun, seed).map_err(|e| e.to_string())
    }

    fn head(&self, load: &str) -> String {
        format!("| {} | {} | {load} |", self.kernel, self.machine.name())
    }

    /// Runs all loads of a boot in their order, each on a machine that has already run the earlier ones.
    fn session(&self, tables: &mut Tables) -> Result<BTreeMap<&'static str, Runs>, String> {
        let kernel = self.kernel()?;
        let known = learned(&read(&self.folder.join("facts/domains.txt"))?, &kernel);
        let mut known = vec![known; RUNS as usize];
        let mut all = BTreeMap::new();
        for load in SESSION {
            if load == "io-disk" {
                // The scheduler's own file was written before it.
                let costs =
                    known.iter().flat_map(|known| known.cpus.iter().map(|of| of.max_idle_balance_cost));
                self.costs(costs.collect(), tables)?;
            }
            let (program, mut recorded) = self.recorded(load)?;
            let mut simulated = Vec::new();
            for (seed, known) in (1..).zip(&mut known) {
                recorded.begun.experience = Some(known.clone());
                let figures = self.simulated(&program, &recorded, seed)?;
                known.clone_from(&figures.left);
                simulated.push(figures);
            }
            all.insert(load, Runs { program, recorded, simulated });
        }
        Ok(all)
    }

    /// The CPUs' estimated cost of newly idle balancing after all loads except the last.
    fn costs(&self, simulated: Vec<u64>, tables: &mut Tables) -> Result<(), String> {
        let recorded = idle_balance_costs(&read(&self.folder.join("sched-debug-1.txt"))?);
        _ = writeln!(
            tables.costs,
            "| {} | {} | {} | {} |",
            self.kernel,
            self.machine.name(),
            quartiles(recorded),
            quartiles(simulated)
        );
        Ok(())
    }

    fn counts(&self, load: &'static str, runs: &Runs, tables: &mut Tables) {
        let Runs { program, recorded, simulated } = runs;
        let mut sum = [0.0; ROWS.len()];
        let mut shares = Vec::new();
        let nice = program.nice();
        for figures in simulated {
            for (sum, value) in sum.iter_mut().zip(figures.row()) {
                *sum += value / RUNS as f64;
            }
            if !nice.is_empty() {
                shares.push(figures.shares(program.prefix(), &nice));
                tables.pairs.entry(self.kernel).or_default().1.merge(&figures.company);
            }
        }
        let again = tables.spread.of(self.kernel, self.machine.name(), load);
        tables.counts += &self.head(load);
        for (at, (recorded, simulated)) in recorded.row().into_iter().zip(sum).enumerate() {
            let again: Vec<f64> = again.iter().map(|again| again.figures[at]).collect();
            tables.counts += &cell(recorded, &again, simulated);
        }
        tables.counts += "\n";
        let again: Vec<[f64; ROWS.len()]> = again.iter().map(|again| again.figures).collect();
        tables.tally.entry(load).or_default().add(recorded.row(), &again, sum);
        if !nice.is_empty() {
            tables.pairs.entry(self.kernel).or_default().0.merge(&recorded.company);
            tables.shares += &self.head(load);
            for (i, (_, share)) in recorded.shares(program.prefix(), &nice).into_iter().enumerate() {
                let mean = shares.iter().map(|s| s[i].1).sum::<f64>() / shares.len() as f64;
                let again = tables.spread.of(self.kernel, self.machine.name(), load);
                let again: Vec<f64> = again.iter().map(|again| again.shares[i] * 100.0).collect();
                _ = write!(tables.shares, " {} |", told(share * 100.0, &again, mean * 100.0, 1));
            }
            tables.shares += "\n";
        }
    }

    /// Shares of each hog when balancing follows the recording.
    fn led(&self, load: &str, facts: &str, tables: &mut Tables) -> Result<(), String> {
        let folder = self.folder.join(load);
        let program = Program::parse(&read(&folder.join("cmd.txt"))?).map_err(|e| e.to_string())?;
        let path = folder.join("trace.txt.gz");
        let trace = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let kernel = self.kernel()?;
        let machine = bare_machine(self.machine.name(), facts).map_err(|e| e.to_string())?;
        let shares = courses(Cursor::new(trace))
            .and_then(|courses| shares(&courses, &program, &machine, &kernel))
            .map_err(|e| format!("{}: {e}", path.display()))?;
        let mean = shares.iter().map(Share::off).sum::<f64>() / shares.len() as f64;
        let worst = shares.iter().max_by(|a, b| a.off().total_cmp(&b.off())).ok_or("no hog ran")?;
        let within = shares.iter().filter(|share| share.is_within(HOG)).count();
        tables.hogs.add(shares.len(), within);
        _ = writeln!(
            tables.led,
            "{} {} | {within} | {:.2} | {:.2} | {} |",
            self.head(load),
            shares.len(),
            mean * 100.0,
            worst.off() * 100.0,
            hog(worst)
        );
        for share in shares.iter().filter(|share| !share.is_within(HOG)) {
            _ = writeln!(tables.off, "- {} {} {load}: {}.", self.kernel, self.machine.name(), hog(share));
        }
        Ok(())
    }

    fn stream(&self, load: &str, tables: &mut Tables) -> Result<(), String> {
        let (program, recorded) = self.recorded(load)?;
        let recorded = recorded.alone();
        let forker = recorded.begun.cpu.ok_or("no thread was made")?;
        let cpus = |figures: &Figures| figures.placements.tasks.iter().map(|t| t.to).collect::<Vec<CpuId>>();
        let mut seeds = Vec::new();
        for seed in 1..=PASTS {
            seeds.push(cpus(&self.simulated(&program, &recorded, seed)?));
        }
        let steps = compare(&self.machine.topology, forker, &cpus(&recorded), &seeds);
        let count = |placed| steps.iter().filter(|s| s.placed() == placed).count();
        let good = count(Placed::Exact) + count(Placed::InSet);
        tables.steps.add(good + count(Placed::Differs), good);
        _ = writeln!(
            tables.streams,
            "{} {} | {} | {} | {} | {} |",
            self.head(load),
            steps.len(),
            count(Placed::Exact),
            count(Placed::InSet),
            count(Placed::Differs),
            count(Placed::NotReached)
        );
        for (at, step) in steps.iter().enumerate().filter(|(_, s)| s.placed() == Placed::Differs) {
            let chosen: Vec<String> =
                step.simulated.iter().map(|(cpu, n)| format!("{cpu} ({n} of {PASTS} seeds)")).collect();
            let all: Vec<String> = cpus(&recorded).iter().map(ToString::to_string).collect();
            _ = writeln!(
                tables.differences,
                "- {} {} {load}: recorded from CPU {forker} {}; thread {} went to {} (like {}), simulated like {}.",
                self.kernel,
                self.machine.name(),
                all.join(" "),
                at + 1,
                cpus(&recorded)[at],
                step.recorded,
                chosen.join(", ")
            );
        }
        Ok(())
    }
}

/// Minimum, quartiles and maximum of some times, in us.
fn quartiles(mut times: Vec<u64>) -> String {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    let at = |quarter: usize| times.get(last * quarter / 4).map_or(0, |ns| ns / 1000).to_string();
    [0, 1, 2, 3, 4].map(at).join(" ")
}

/// A hog with its shares in percent of a CPU.
fn hog(share: &Share) -> String {
    let (recorded, simulated) = (share.recorded * 100.0, share.simulated * 100.0);
    format!("hg-{} (nice {}): {recorded:.1}, {simulated:.1}", share.hog, share.nice)
}
