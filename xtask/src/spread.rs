//! How the kernel itself varies from boot to boot: `groundtruth/spread.tsv`.
//!
//! Repeated recordings of the same programs, under the same kernel on the same machine, measured by the folds of the
//! closed loop. The file contains their figures; the recordings are too large for the tree. Figures of one recording
//! are not a standard if another boot would have given others. The simulator uses none of this.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Cursor;
use std::path::Path;

use schedlab::machine::Machine;
use schedlab::sched::Kernel;
use schedlab::units::Duration;
use schedlab_closed_loop::{Company, Figures, Program, ROWS, SESSION, machine, recorded};

use crate::source::{self, folders_in, name, read};

const FILE: &str = "groundtruth/spread.tsv";

/// Nice values of hogs, and pairs of them that share a CPU.
const NICE: [i8; 3] = [-5, 0, 5];
const PAIRS: [(i8, i8); 3] = [(-5, 0), (-5, 5), (0, 5)];

/// One load of one recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Again {
    /// In the order of [`ROWS`].
    pub figures: [f64; ROWS.len()],
    /// Shares of hogs by nice value, from the lowest on; empty for other loads.
    pub shares: Vec<f64>,
    /// For each pair the share of the first, and how long both were together, ms.
    pub pairs: Vec<(f64, f64)>,
}

/// The repeated recordings, by kernel, machine and load.
#[derive(Default)]
pub struct Spread {
    loads: BTreeMap<[String; 3], Vec<Again>>,
}

impl Spread {
    /// Reads the file.
    ///
    /// # Errors
    /// A file that cannot be read, or a line that is not valid.
    pub fn read() -> Result<Spread, String> {
        Spread::parse(&read(&source::root().join(FILE))?)
    }

    fn parse(text: &str) -> Result<Spread, String> {
        let mut spread = Spread::default();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with(['#', 'k'])) {
            let (key, again) = parsed(line).ok_or_else(|| format!("{FILE}:{}: not a recording", at + 1))?;
            spread.loads.entry(key).or_default().push(again);
        }
        Ok(spread)
    }

    /// Those of a load; empty if it was recorded only once.
    pub fn of(&self, kernel: &str, machine: &str, load: &str) -> &[Again] {
        self.loads.get(&[kernel, machine, load].map(str::to_string)).map_or(&[], Vec::as_slice)
    }

    /// For a kernel's hogs: the share of the first of each pair over all repeated recordings, and how long both were
    /// together, ms.
    pub fn pairs(&self, kernel: &str) -> Vec<((i8, i8), f64, f64)> {
        let all = || self.loads.iter().filter(|(key, _)| key[0] == kernel).flat_map(|(_, again)| again);
        let of = |(at, pair): (usize, (i8, i8))| {
            let (first, both) = all()
                .filter_map(|again| again.pairs.get(at))
                .fold((0.0, 0.0), |(first, both), (share, together)| {
                    (first + share * together, both + together)
                });
            (pair, first / both, both)
        };
        PAIRS.into_iter().enumerate().map(of).collect()
    }
}

fn parsed(line: &str) -> Option<([String; 3], Again)> {
    let mut words = line.split('\t');
    let key = [words.next()?, words.next()?, words.next()?].map(str::to_string);
    words.next()?;
    let numbers: Vec<f64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let (figures, rest) = numbers.split_first_chunk::<{ ROWS.len() }>()?;
    let (shares, pairs) = rest.split_at_checked(NICE.len()).unwrap_or_default();
    let pairs = pairs.chunks_exact(2).map(|of| (of[0], of[1])).collect();
    Some((key, Again { figures: *figures, shares: shares.to_vec(), pairs }))
}

/// Measures all recordings in folders that `groundtruth/record.sh` made, and writes the file.
///
/// # Errors
/// A file that cannot be read or written.
pub fn write(folders: &[String]) -> Result<(), String> {
    let mut lines: BTreeMap<(String, String, usize, String), String> = BTreeMap::new();
    let mut builds: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for folder in folders {
        for kernel in folders_in(Path::new(folder))? {
            for place in folders_in(&kernel)? {
                let kernel = name(&kernel);
                builds
                    .entry(kernel.clone())
                    .or_default()
                    .insert(build(&read(&place.join("facts/uname.txt"))?));
                let of = name(&place).replace("2x2x2x2", "2x2x2x2-smt");
                let boot = seed(&read(&place.join("qemu.cmd"))?);
                for (at, load) in SESSION.iter().enumerate().filter(|(_, load)| !load.starts_with("stream")) {
                    let line = format!(
                        "{kernel}\t{of}\t{load}\t{boot}\t{}\n",
                        measured(&place, &kernel, &of, load)?
                    );
                    lines.insert((kernel.clone(), of.clone(), at, boot.clone()), line);
                }
            }
        }
    }
    let mut text = String::from(
        "# Recordings made again, each of a boot of its own: SEED=N groundtruth/record.sh KERNEL MACHINE FOLDER.\n\
         # Written by `cargo xtask fidelity-loop --recorded FOLDER..`; a line for each load of each recording.\n",
    );
    for (kernel, builds) in builds {
        let builds: Vec<String> = builds.into_iter().collect();
        _ = writeln!(text, "# {kernel}: {}", builds.join(", "));
    }
    let mut columns = ["kernel", "machine", "load", "seed"].map(str::to_string).to_vec();
    columns.extend(ROWS.map(str::to_string));
    columns.extend(NICE.map(|nice| format!("share of nice {nice}")));
    columns.extend(
        PAIRS
            .iter()
            .flat_map(|(a, b)| [format!("share of {a} beside {b}"), format!("{a} and {b} together ms")]),
    );
    _ = writeln!(text, "{}", columns.join("\t"));
    text.extend(lines.into_values());
    let path = source::root().join(FILE);
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// A load as it was recorded in a folder.
///
/// # Errors
/// A file that cannot be read.
pub fn recording(folder: &Path, machine: &Machine, kernel: &Kernel) -> Result<(Program, Figures), String> {
    let program = Program::parse(&read(&folder.join("cmd.txt"))?).map_err(|e| e.to_string())?;
    let path = folder.join("trace.txt.gz");
    let trace = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let figures = recorded(Cursor::new(trace), &program, machine, kernel)
        .map_err(|e| format!("{}: {e}", path.display()))?;
    Ok((program, figures))
}

/// The figures of a load, separated by tabs.
fn measured(place: &Path, kernel: &str, of: &str, load: &str) -> Result<String, String> {
    let machine = machine(of, &read(&place.join("facts/topology.txt"))?).map_err(|e| e.to_string())?;
    let kernel = Kernel::parse(kernel).map_err(|e| e.to_string())?;
    let (program, figures) = recording(&place.join(load), &machine, &kernel)?;
    let again = again(&program, &figures);
    let places = |number: f64, places: i32| (number * 10f64.powi(places)).round() / 10f64.powi(places);
    let mut words: Vec<String> = again.figures.iter().map(|&figure| places(figure, 1).to_string()).collect();
    words.extend(again.shares.iter().map(|&share| places(share, 4).to_string()));
    for &(share, together) in &again.pairs {
        words.extend([places(share, 4), places(together, 1)].map(|number| number.to_string()));
    }
    Ok(words.join("\t"))
}

fn again(program: &Program, figures: &Figures) -> Again {
    let nice = program.nice();
    let (mut shares, mut pairs) = (Vec::new(), Vec::new());
    if !nice.is_empty() {
        shares = figures.shares(program.prefix(), &nice).into_iter().map(|(_, share)| share).collect();
        pairs = PAIRS.map(|pair| pair_of(&figures.company, pair)).to_vec();
    }
    Again { figures: figures.row(), shares, pairs }
}

fn pair_of(company: &Company, pair: (i8, i8)) -> (f64, f64) {
    let found = company.shares().into_iter().find(|(of, _, _)| *of == pair);
    let (_, share, together) = found.unwrap_or((pair, 0.0, Duration::ZERO));
    (share, together.0 as f64 / 1e6)
}

/// `Debian 6.1.176-1 (2026-07-02)` from the output of `uname -a`.
fn build(uname: &str) -> String {
    let from = uname.find("Debian").unwrap_or(0);
    uname[from..].split(" x86_64").next().unwrap_or_default().trim().to_string()
}

/// The seed of the emulator's random numbers.
pub fn seed(qemu: &str) -> String {
    let mut words = qemu.split_whitespace().skip_while(|&word| word != "-seed");
    words.nth(1).unwrap_or("-").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hogs_of_all_machines_make_the_pairs_of_a_kernel() {
        let figures = ["1"; ROWS.len()].join("\t");
        let text = format!(
            "# made so\nkernel\tmachine\tload\n6.1\ta\thogs\t2\t{figures}\t0.3\t0.5\t0.2\t0.8\t100\t0\t0\t0.6\t50\n\
             6.1\tb\thogs\t2\t{figures}\t0.3\t0.5\t0.2\t0.7\t300\t0.9\t40\t0\t0\n7.2\ta\tfork\t2\t{figures}\n"
        );
        let spread = Spread::parse(&text).unwrap();
        let [first, second, third] = spread.pairs("6.1").try_into().unwrap();
        assert_eq!((first.0, first.2), ((-5, 0), 400.0));
        assert!((first.1 - 0.725).abs() < 1e-9, "{first:?}");
        assert_eq!((second, third), (((-5, 5), 0.9, 40.0), ((0, 5), 0.6, 50.0)));
        let fork = spread.of("7.2", "a", "fork");
        assert_eq!((fork.len(), fork[0].shares.len(), fork[0].pairs.len()), (1, 0, 0));
        assert!(spread.of("7.2", "b", "fork").is_empty());
        assert!(Spread::parse("6.1\ta\thogs\t2\tmany\n").is_err_and(|wrong| wrong.contains(":1:")));
    }

    #[test]
    fn kernel_builds_and_seeds_are_read_from_facts() {
        let uname = "Linux (none) 7.2 #1 SMP PREEMPT_DYNAMIC Debian 7.2.13-1 (2026-10-28) x86_64 GNU/Linux\n";
        assert_eq!(build(uname), "Debian 7.2.13-1 (2026-10-28)");
        assert_eq!(seed("qemu-system-x86_64 -m 1024 -seed 3 -display none"), "3");
    }
}
