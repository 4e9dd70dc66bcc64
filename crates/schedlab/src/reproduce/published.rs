//! Published tables as data: the files under `published/`.
//!
//! A file contains the source of its numbers, one or more blocks, and a line that names the counted figures that
//! explain why the change helps. A block is a table in text: the first column is the key of the row, each other cell is
//! `PUBLISHED USE TOLERANCE` (see `docs/reproduce.md`).

use std::collections::BTreeMap;

use schedlab_report::Direction;
use serde::{Deserialize, Serialize};

use super::copies::Spans;
use super::figure::Figure;
use super::simulate::Key;
use super::tolerance::Tolerance;
use crate::error::Error;

/// A published table, in one or more blocks.
#[derive(Clone, Debug)]
pub struct Published {
    /// What `schedlab reproduce NAME` calls it.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// Where the numbers were published.
    pub source: String,
    /// The kernel of the publication.
    pub kernel: String,
    /// Required shares of right signs and of predicted cells inside.
    pub floor: Floor,
    /// Runs of the quick form.
    pub quick_runs: u32,
    /// Runs of a verdict that may have turned with a constant pushed or a mechanism off.
    pub end_runs: u32,
    /// Parameters of scenarios that are smaller for those runs.
    pub shorter: BTreeMap<String, toml::Table>,
    /// Scenarios that are repeated from copies of warm runs.
    pub copied: BTreeMap<String, Spans>,
    /// Its parts.
    pub blocks: Vec<Block>,
    /// The figures that explain why the change helps.
    pub why: Vec<Why>,
    /// Name of its file.
    pub file: String,
}

/// Required minimum, as fractions.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// Right signs of changes that were marked as significant.
    #[serde(default)]
    pub signs: f64,
    /// Predicted cells inside their tolerance.
    #[serde(default)]
    pub inside: f64,
}

/// One table of a publication.
#[derive(Clone, Debug)]
pub struct Block {
    /// A short name for it.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Unit of its values.
    pub unit: String,
    /// Which direction is better.
    pub direction: Direction,
    /// What the rows are.
    pub rows_are: String,
    /// Keys of the rows that the quick form runs; all if empty.
    pub quick: Vec<String>,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// A row.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its key.
    pub key: String,
    /// One cell per column; `None` where nothing was published.
    pub cells: Vec<Option<Given>>,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it contains.
    pub kind: Kind,
}

/// What a column shows.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A simulated figure.
    Value {
        /// The figure that the simulator provides, with `{row}` for the key of the row.
        key: Key,
        /// What the figure is multiplied by.
        scale: f64,
        /// If given, the value is this, times the key of the row, over the figure.
        row_over: Option<f64>,
    },
    /// Change of one column against another, in percent.
    Change {
        /// The column.
        of: usize,
        /// Against this one.
        against: usize,
    },
    /// One column over another.
    Ratio {
        /// The column.
        of: usize,
        /// Over this one.
        against: usize,
    },
    /// The recovered part of the difference between two columns, in percent.
    Recovered {
        /// The column that recovers a part.
        of: usize,
        /// The column with the loss.
        against: usize,
        /// The column without a loss.
        whole: usize,
    },
}

/// What a published number is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// A constant of the machine or model was calibrated on it.
    Cal,
    /// It is predicted.
    Pred,
    /// It is printed for reference.
    Info,
}

impl Use {
    /// As files write it.
    pub fn name(self) -> &'static str {
        match self {
            Use::Cal => "cal",
            Use::Pred => "pred",
            Use::Info => "info",
        }
    }
}

/// One cell of a publication.
#[derive(Clone, Debug)]
pub struct Given {
    /// The number; `None` if only a description was published.
    pub figure: Option<Figure>,
    /// Whether a change was marked as significant.
    pub significant: bool,
    /// What it is used for.
    pub used: Use,
    /// How close the simulated one must be.
    pub tolerance: Tolerance,
}

/// Counts that explain why the change helps.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// What they are about.
    pub about: String,
    /// The scenario.
    pub scenario: String,
    /// Its row.
    #[serde(default)]
    pub row: String,
    /// Kernels before and after.
    pub kernels: Vec<String>,
    /// Names of figures.
    pub figures: Vec<String>,
}

impl Why {
    /// The figures that the simulator provides for one of its figures: one key per kernel.
    pub fn keys(&self, figure: &str) -> Vec<Key> {
        let key = |kernel: &String| Key {
            scenario: self.scenario.clone(),
            row: self.row.clone(),
            kernel: kernel.clone(),
            figure: figure.to_string(),
        };
        self.kernels.iter().map(key).collect()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    source: String,
    kernel: String,
    #[serde(default)]
    floor: Floor,
    #[serde(default = "quick_runs")]
    quick_runs: u32,
    #[serde(default = "end_runs")]
    end_runs: u32,
    #[serde(default)]
    shorter: BTreeMap<String, toml::Table>,
    #[serde(default)]
    copied: BTreeMap<String, Spans>,
    block: Vec<FileBlock>,
    #[serde(default)]
    why: Vec<Why>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileBlock {
    name: String,
    title: String,
    #[serde(default)]
    unit: String,
    better: Better,
    /// Defaults of the columns.
    #[serde(default)]
    scenario: String,
    #[serde(default)]
    figure: String,
    #[serde(default = "one")]
    scale: f64,
    row_over: Option<f64>,
    #[serde(default)]
    quick: Vec<String>,
    columns: Vec<FileColumn>,
    cells: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Better {
    Lower,
    Higher,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileColumn {
    name: String,
    scenario: Option<String>,
    kernel: Option<String>,
    figure: Option<String>,
    row: Option<String>,
    scale: Option<f64>,
    change: Option<String>,
    ratio: Option<String>,
    recovered: Option<String>,
    against: Option<String>,
    whole: Option<String>,
}

fn quick_runs() -> u32 {
    3
}

fn end_runs() -> u32 {
    4
}

fn one() -> f64 {
    1.0
}

impl Published {
    /// Reads a file.
    ///
    /// # Errors
    /// A sentence with the file and the part that cannot be parsed.
    pub fn parse(file: &str, text: &str) -> Result<Published, Error> {
        let raw: File =
            toml::from_str(text).map_err(|e| Error::new(format!("{file}: {}", e.message().trim())))?;
        let blocks = raw.block.into_iter().map(|block| {
            let name = block.name.clone();
            block.read().map_err(|e| Error::new(format!("{file}: block \"{name}\": {e}")))
        });
        let blocks = blocks.collect::<Result<Vec<_>, _>>()?;
        Ok(Published {
            name: raw.name,
            title: raw.title,
            source: raw.source,
            kernel: raw.kernel,
            floor: raw.floor,
            quick_runs: raw.quick_runs.max(1),
            end_runs: raw.end_runs.max(2),
            shorter: raw.shorter,
            copied: raw.copied,
            blocks,
            why: raw.why,
            file: file.to_string(),
        })
    }

    /// Everything to simulate for these rows: names, no numbers.
    pub fn keys(&self, wanted: impl Fn(&Block, &Row) -> bool) -> Vec<Key> {
        let mut keys = Vec::new();
        for block in &self.blocks {
            for row in block.rows.iter().filter(|row| wanted(block, row)) {
                keys.extend(block.columns.iter().filter_map(|column| column.key(&row.key)));
            }
        }
        keys
    }

    /// The text of a scenario with the smaller parameters used to repeat verdicts.
    pub fn shortened(&self, scenario: &str, text: &str) -> String {
        let Some(smaller) = self.shorter.get(scenario) else { return text.to_string() };
        let mut table: toml::Table = text.parse().expect("scenarios of the project are read by a test");
        let workload = table.get_mut("workload").and_then(|table| table.as_table_mut());
        workload.expect("a scenario has a workload").extend(smaller.clone());
        table.to_string()
    }

    /// Everything to simulate for the changes in these rows, and nothing else.
    pub fn keys_of_changes(&self, wanted: impl Fn(&Block, &Row) -> bool) -> Vec<Key> {
        let mut keys = Vec::new();
        for block in &self.blocks {
            for row in block.rows.iter().filter(|row| wanted(block, row)) {
                let given = block.columns.iter().zip(&row.cells).filter(|(_, cell)| cell.is_some());
                for (column, _) in given {
                    let Kind::Change { of, against } = column.kind else { continue };
                    keys.extend([of, against].iter().filter_map(|&at| block.columns[at].key(&row.key)));
                }
            }
        }
        keys
    }
}

impl Column {
    /// The value that this column needs from the simulator in a row.
    pub fn key(&self, row: &str) -> Option<Key> {
        let Kind::Value { key, .. } = &self.kind else { return None };
        let fill = |text: &str| text.replace("{row}", row);
        let named = [&key.scenario, &key.kernel, &key.figure].iter().any(|text| text.contains("{row}"));
        // A row key that is used elsewhere in the column is not also the scenario's row.
        let own = if named { String::new() } else { row.to_string() };
        Some(Key {
            scenario: fill(&key.scenario),
            row: if key.row.is_empty() { own } else { fill(key.row.trim()) },
            kernel: fill(&key.kernel),
            figure: fill(&key.figure),
        })
    }
}

impl FileBlock {
    fn read(self) -> Result<Block, String> {
        let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
        let columns = self.columns.iter().map(|c| self.column(c, &names)).collect::<Result<Vec<_>, _>>()?;
        let mut lines = self.cells.lines().map(str::trim).filter(|line| !line.is_empty());
        let split = |line: &str| -> Vec<String> { line.split('|').map(|c| c.trim().to_string()).collect() };
        let head = split(lines.next().unwrap_or_default());
        if head.get(1..).unwrap_or_default() != names {
            return Err(format!("the head of cells is to be \"{} | {}\"", head[0], names.join(" | ")));
        }
        let rows = lines.map(|line| row(&split(line), &columns)).collect::<Result<Vec<Row>, _>>()?;
        if let Some(key) = self.quick.iter().find(|key| !rows.iter().any(|r| &r.key == *key)) {
            return Err(format!("there is no row \"{key}\""));
        }
        Ok(Block {
            direction: match self.better {
                Better::Lower => Direction::Lower,
                Better::Higher => Direction::Higher,
            },
            rows_are: head[0].clone(),
            name: self.name,
            title: self.title,
            unit: self.unit,
            quick: self.quick,
            columns,
            rows,
        })
    }

    fn column(&self, raw: &FileColumn, names: &[&str]) -> Result<Column, String> {
        let at = |name: &Option<String>| -> Result<usize, String> {
            let name = name.as_deref().unwrap_or_default();
            let found = names.iter().position(|known| *known == name);
            found.ok_or_else(|| format!("column \"{}\" names a column \"{name}\"", raw.name))
        };
        let kind = match (&raw.kernel, &raw.change, &raw.ratio, &raw.recovered) {
            (Some(kernel), None, None, None) => Kind::Value {
                key: Key {
                    scenario: raw.scenario.clone().unwrap_or_else(|| self.scenario.clone()),
                    row: raw.row.clone().unwrap_or_default(),
                    kernel: kernel.clone(),
                    figure: raw.figure.clone().unwrap_or_else(|| self.figure.clone()),
                },
                scale: raw.scale.unwrap_or(self.scale),
                row_over: self.row_over,
            },
            (None, of @ Some(_), None, None) => Kind::Change { of: at(of)?, against: at(&raw.against)? },
            (None, None, of @ Some(_), None) => Kind::Ratio { of: at(of)?, against: at(&raw.against)? },
            (None, None, None, of @ Some(_)) => {
                Kind::Recovered { of: at(of)?, against: at(&raw.against)?, whole: at(&raw.whole)? }
            }
            _ => {
                return Err(format!("column \"{}\" has one of kernel, change, ratio, recovered", raw.name));
            }
        };
        Ok(Column { name: raw.name.clone(), kind })
    }
}

fn row(texts: &[String], columns: &[Column]) -> Result<Row, String> {
    let key = texts[0].clone();
    if texts.len() != columns.len() + 1 {
        return Err(format!("row \"{key}\" has {} cells for {} columns", texts.len() - 1, columns.len()));
    }
    let mut cells = Vec::new();
    for (text, column) in texts[1..].iter().zip(columns) {
        let cell = given(text, &column.kind, &cells);
        cells.push(cell.map_err(|e| format!("row \"{key}\", column \"{}\": {e}", column.name))?);
    }
    Ok(Row { key, cells })
}

/// Reads `58.69 cal 3%`, `32,48,0 pred first3` or, if derived from other cells, `* pred 8pp`.
fn given(text: &str, kind: &Kind, before: &[Option<Given>]) -> Result<Option<Given>, String> {
    let Some((first, rest)) = text.split_once(' ') else {
        return if text.is_empty() {
            Ok(None)
        } else {
            Err(format!("\"{text}\" is not VALUE USE TOLERANCE"))
        };
    };
    let (used, tolerance) = rest.trim().split_once(' ').unwrap_or((rest.trim(), "-"));
    let used = match used {
        "cal" => Use::Cal,
        "pred" => Use::Pred,
        "info" => Use::Info,
        _ => return Err(format!("\"{used}\" is not cal, pred or info")),
    };
    let number =
        |at: usize| before.get(at).and_then(|c| c.as_ref()).and_then(|c| c.figure.as_ref()?.number());
    let figure = match *kind {
        Kind::Value { .. } if first == "-" => None,
        Kind::Value { .. } if first.contains(',') => {
            let cpus = first.split(',').map(str::parse).collect::<Result<Vec<u16>, _>>();
            Some(Figure::Cpus(cpus.map_err(|_| format!("\"{first}\" is not a list of CPUs"))?))
        }
        Kind::Value { .. } => {
            Some(Figure::Number(first.parse().map_err(|_| format!("\"{first}\" is not a number"))?))
        }
        _ if first != "*" && first != "-" => {
            return Err(
                "it follows from other columns; write * where it was marked significant, else -".into()
            );
        }
        _ => derived(kind, number).map(Figure::Number),
    };
    let tolerance = Tolerance::parse(tolerance)?;
    Ok(Some(Given { figure, significant: first == "*", used, tolerance }))
}

/// A figure derived from other columns.
pub fn derived(kind: &Kind, number: impl Fn(usize) -> Option<f64>) -> Option<f64> {
    match *kind {
        Kind::Value { .. } => None,
        Kind::Change { of, against } => Some(100.0 * (number(of)? / number(against)? - 1.0)),
        Kind::Ratio { of, against } => Some(number(of)? / number(against)?),
        Kind::Recovered { of, against, whole } => {
            let lost = number(whole)? - number(against)?;
            Some(100.0 * (number(of)? - number(against)?) / lost)
        }
    }
}
