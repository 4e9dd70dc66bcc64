//! Published tables beside simulated ones, cell by cell.
//!
//! ```text
//! published/*.toml --- keys: scenario, row, kernel, figure ---> simulate ---> figures
//!        |                                                                       |
//!        +---- published numbers, use, tolerance ----> cells <-------------------+
//! ```
//!
//! The simulating side takes names and returns figures. Published numbers are only used in the printed cells.

mod cell;
mod copies;
mod depends;
mod figure;
mod published;
mod render;
mod simulate;
mod tolerance;
mod verdict;

use serde::Serialize;

pub use cell::{Cell, Word};
pub use copies::{Copies, Spans};
pub use depends::Depends;
pub use figure::{FIGURES, Figure};
pub use published::{Block, Column, Floor, Given, Kind, Published, Row, Use, Why};
pub use simulate::{Answers, End, Key, Scenarios, Setting};
pub use tolerance::Tolerance;
pub use verdict::{Turned, Verdict};

use crate::embedded::{embedded_published, embedded_scenario};
use crate::error::Error;
use schedlab_machine::{Mechanism, Without};
use schedlab_sched::Kernel;

/// How tables are reproduced.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Fewer rows and runs, and nothing about what the verdicts depend on.
    pub quick: bool,
    /// Runs instead of the scenarios' own numbers.
    pub runs: Option<u32>,
    /// Mechanisms that are switched off, one at a time.
    pub without: Vec<Mechanism>,
    /// Threads; 0 is one per processor.
    pub threads: usize,
    /// Kernels that run instead of those that the scenarios name. What the verdicts depend on is left out then.
    pub instead: Vec<(String, Kernel)>,
}

/// A table with what was simulated.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduced {
    /// Its name.
    pub table: String,
    /// The text printed above it.
    #[serde(skip)]
    pub published: Published,
    /// Runs of each figure; `None` uses the scenarios' numbers.
    pub runs: Option<u32>,
    /// Which kernels ran instead of others: `v5.18: tree:linux`.
    pub instead: Vec<String>,
    /// Its cells.
    pub cells: Vec<Cell>,
    /// Number of right signs of significant changes, and the total.
    pub signs: (usize, usize),
    /// Number of predicted cells inside their tolerance, and the total.
    pub inside: (usize, usize),
    /// Why the change helps, in counted figures.
    pub why: Vec<String>,
    /// Verdicts with a mechanism off.
    pub without: Vec<(String, Vec<(Verdict, Verdict)>)>,
    /// What the verdicts depend on; not in the quick form.
    pub depends: Option<Depends>,
    /// Whether the table reaches its minimum.
    pub met: bool,
}

/// The tables that come with the project.
///
/// # Panics
/// If a file of the project cannot be read, which a test excludes.
pub fn published() -> Vec<Published> {
    let read = |(file, text): &(&str, &str)| Published::parse(&format!("published/{file}"), text);
    embedded_published().iter().map(|one| read(one).expect("the project's own files are right")).collect()
}

/// Simulates a table and puts it beside what was published.
///
/// # Errors
/// A name in the table that no scenario has, or a run that could not be finished.
pub fn reproduce(
    published: &Published,
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Reproduced, Error> {
    let quick = options.quick;
    let wanted = |block: &Block, row: &Row| {
        !quick || block.quick.is_empty() || block.quick.iter().any(|key| key == &row.key)
    };
    let mut keys = published.keys(wanted);
    for why in &published.why {
        keys.extend(why.figures.iter().flat_map(|figure| why.keys(figure)));
    }
    let scenarios = Scenarios::read(&keys, |name| embedded_scenario(name).map(str::to_string))?;
    let scenarios = scenarios.instead(&options.instead)?;
    let runs = options.runs.or(quick.then_some(published.quick_runs));
    let mut asked = vec![(Setting { runs, ..Setting::default() }, keys.clone())];
    for &mechanism in &options.without {
        let setting = Setting { runs, without: Without::NOTHING.with(mechanism), constant: None };
        asked.push((setting, keys.clone()));
    }
    let simulated = scenarios.simulate(&Copies::default(), &asked, options.threads, progress)?;
    let answers = &simulated[0].answers;
    let cells = cell::cells(published, wanted, answers);
    let base = verdict::verdicts(published, wanted, answers);
    let without = options.without.iter().zip(&simulated[1..]).map(|(mechanism, then)| {
        let then = verdict::verdicts(published, wanted, &then.answers);
        (mechanism.name().to_string(), base.iter().cloned().zip(then).collect())
    });
    let depends = match quick || !options.instead.is_empty() {
        true => None,
        false => {
            let text = |name: &str| Some(published.shortened(name, embedded_scenario(name)?));
            let scenarios = Scenarios::read(&keys, text)?;
            Some(depends::depends(published, &scenarios, &base, options.threads, progress)?)
        }
    };
    let (signs, inside) = (count_signs(&cells), count_inside(&cells));
    let share = |(n, m): (usize, usize)| if m == 0 { 1.0 } else { n as f64 / m as f64 };
    Ok(Reproduced {
        table: published.name.clone(),
        published: published.clone(),
        instead: options.instead.iter().map(|(name, kernel)| format!("{name}: {}", kernel.name)).collect(),
        runs,
        signs,
        inside,
        why: published.why.iter().filter_map(|why| render::why(why, answers)).collect(),
        without: without.collect(),
        depends,
        met: share(signs) >= published.floor.signs && share(inside) >= published.floor.inside,
        cells,
    })
}

/// Changes marked as significant: how many have the right sign, and the total. Those for reference are
/// derived from others and do not count twice.
fn count_signs(cells: &[Cell]) -> (usize, usize) {
    let counts = |c: &&Cell| c.significant == Some(true) && c.used != Use::Info;
    let marked: Vec<&Cell> = cells.iter().filter(counts).collect();
    (marked.iter().filter(|c| c.sign_right == Some(true)).count(), marked.len())
}

/// Predicted cells: how many are inside their tolerance, and how many have one.
fn count_inside(cells: &[Cell]) -> (usize, usize) {
    let judged: Vec<bool> = cells.iter().filter(|c| c.used == Use::Pred).filter_map(|c| c.inside).collect();
    (judged.iter().filter(|inside| **inside).count(), judged.len())
}
