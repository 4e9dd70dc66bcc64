//! The rows of the score as `predictions/rows.tsv` has them: adding one is data only.

use std::path::Path;

use schedlab::{Files, Scenario};

use super::figure::Figure;
use super::verdict::Published;
use crate::source::read;

/// The columns of the file, in order.
const COLUMNS: [&str; 13] = [
    "id",
    "class",
    "kind",
    "quick",
    "machine",
    "workload",
    "change",
    "scenario",
    "row",
    "kernels",
    "figure",
    "published",
    "chosen",
];

/// Kinds of effect, in the order of the totals.
pub const CLASSES: [&str; 4] = ["placement", "counts", "cost", "absolute"];

/// One published figure and how it is simulated.
#[derive(Clone, Debug)]
pub struct Row {
    pub id: String,
    /// One of [`CLASSES`].
    pub class: String,
    /// Whether the quick form runs it.
    pub quick: bool,
    pub machine: String,
    pub workload: String,
    pub change: String,
    /// Files below `predictions/scenarios`: one, or one for each side.
    scenarios: Vec<String>,
    /// The row of the scenario's tables; empty if there is only one.
    key: String,
    /// Which kernels of the scenario are compared, counted from 1; one for a state.
    kernels: Vec<usize>,
    pub figure: Figure,
    pub named: String,
    pub published: Published,
    pub said: String,
    /// Which constant was chosen with this row in view, if any; such a row does not count.
    pub chosen: String,
}

/// One side of a row: a scenario with one kernel, and its row.
pub struct Side {
    pub scenario: Scenario,
    pub row: schedlab::Row,
}

/// Reads files beside the scenarios.
struct Beside<'a>(&'a Path);

impl Files for Beside<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        read(&self.0.join(name))
    }
}

/// Reads the file.
///
/// # Errors
/// The first line that cannot be parsed.
pub fn parse(file: &str, text: &str) -> Result<Vec<Row>, String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty());
    let head = lines.next().map_or("", |(_, line)| line);
    if head != COLUMNS.join("\t") {
        return Err(format!(
            "{file}: the first line that is no comment names the columns {}",
            COLUMNS.join(" ")
        ));
    }
    let mut rows: Vec<Row> = Vec::new();
    for (at, line) in lines {
        let row = one(line).map_err(|why| format!("{file}:{}: {why}", at + 1))?;
        if rows.iter().any(|known| known.id == row.id) {
            return Err(format!("{file}:{}: there is another row {}", at + 1, row.id));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn one(line: &str) -> Result<Row, String> {
    let cells: Vec<&str> = line.split('\t').collect();
    let cells: [&str; COLUMNS.len()] = cells
        .try_into()
        .map_err(|cells: Vec<_>| format!("{} columns, not {}", cells.len(), COLUMNS.len()))?;
    let [
        id,
        class,
        kind,
        quick,
        machine,
        workload,
        change,
        scenario,
        key,
        kernels,
        figure,
        published,
        chosen,
    ] = cells;
    let [key, chosen] = [key, chosen].map(|cell| if cell == "-" { "" } else { cell });
    if !CLASSES.contains(&class) {
        return Err(format!("\"{class}\" is none of {}", CLASSES.join(", ")));
    }
    let numbers: Option<Vec<usize>> =
        kernels.split(' ').map(|word| word.parse().ok().filter(|&n| n > 0)).collect();
    let kernels =
        numbers.ok_or_else(|| format!("\"{kernels}\" are no numbers of kernels, counted from 1"))?;
    let sides = if kind == "state" { 1 } else { 2 };
    if kernels.len() != sides {
        return Err(format!("a {kind} has {sides} kernels, not {}", kernels.len()));
    }
    Ok(Row {
        id: id.to_string(),
        class: class.to_string(),
        quick: quick == "yes",
        machine: machine.to_string(),
        workload: workload.to_string(),
        change: change.to_string(),
        scenarios: scenario.split(' ').map(str::to_string).collect(),
        key: key.to_string(),
        kernels,
        figure: Figure::parse(figure)?,
        named: figure.to_string(),
        published: Published::parse(kind, published)?,
        said: published.to_string(),
        chosen: chosen.to_string(),
    })
}

impl Row {
    /// The runs for it: before and after, or a single one for a state.
    ///
    /// # Errors
    /// A scenario that cannot be read, or has no such row or kernel.
    pub fn sides(&self, folder: &Path) -> Result<Vec<Side>, String> {
        let say = |why: String| format!("{}: {why}", self.id);
        let side = |(nth, &kernel): (usize, &usize)| {
            let name = self.scenarios.get(nth).or(self.scenarios.first()).expect("split gives one at least");
            let text = read(&folder.join(name))?;
            let mut scenario =
                Scenario::parse(name, &text, &Beside(folder)).map_err(|e| say(e.to_string()))?;
            let nr = scenario.kernels.len();
            if kernel > nr {
                return Err(say(format!("{name} has {nr} kernels, not {kernel}")));
            }
            scenario.kernels = vec![scenario.kernels.swap_remove(kernel - 1)];
            let row = scenario.rows.iter().find(|row| row.key == self.key).cloned();
            let row = row.ok_or_else(|| say(format!("{name} has no row \"{}\"", self.key)))?;
            Ok(Side { scenario, row })
        };
        self.kernels.iter().enumerate().map(side).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_line_is_said_with_its_number() {
        let head = COLUMNS.join("\t");
        let line = "A\tcost\tchange\tyes\tm\tw\tc\ta.toml\t-\t1 2\telapsed\t+3 %\t-";
        assert_eq!(parse("rows", &format!("# a\n{head}\n{line}\n")).unwrap()[0].kernels, [1, 2]);
        for (from, to, why) in [
            ("cost", "price", "rows:2: \"price\" is none of placement, counts, cost, absolute"),
            ("1 2", "1", "rows:2: a change has 2 kernels, not 1"),
            ("1 2", "0 1", "rows:2: \"0 1\" are no numbers of kernels, counted from 1"),
            ("elapsed\t", "", "rows:2: 12 columns, not 13"),
            ("elapsed", "time", "rows:2: \"time\" is no figure; the file of figures in xtask lists them"),
        ] {
            let text = format!("{head}\n{}\n", line.replace(from, to));
            assert_eq!(parse("rows", &text).unwrap_err(), why);
        }
        assert!(parse("rows", &format!("{head}\n{line}\n{line}\n")).unwrap_err().contains("another row A"));
        assert!(parse("rows", line).unwrap_err().contains("names the columns"));
    }
}
