//! Cell by cell: what was published beside what was simulated.

use schedlab_report::Direction;
use schedlab_stats::Moments;
use serde::Serialize;

use super::figure::Figure;
use super::published::{Block, Given, Kind, Published, Row, Use, derived};
use super::simulate::{Answers, Key};

/// One cell.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Table, as `schedlab reproduce` calls it.
    pub table: String,
    /// Which part of it.
    pub block: String,
    /// Row.
    pub row: String,
    /// Column.
    pub column: String,
    /// Unit of both figures; % for changes.
    pub unit: String,
    /// The published value, if it was a number.
    pub published: Option<Figure>,
    /// The simulated value: the mean of the runs, or the most frequent list.
    pub simulated: Option<Figure>,
    /// Standard error of that mean.
    pub standard_error: Option<f64>,
    /// How far off it is, in `error_unit`.
    pub error: Option<f64>,
    /// `%` of the published number; percentage points, `pp`, for changes and recovered shares.
    pub error_unit: &'static str,
    /// What the published number is used for.
    #[serde(rename = "use")]
    pub used: Use,
    /// The required closeness.
    pub tolerance: String,
    /// Whether it is that close.
    pub inside: Option<bool>,
    /// Whether the published change was marked as significant; `None` if it is not a change.
    pub significant: Option<bool>,
    /// Whether the direction of a significant change is right; a change smaller than its own standard error
    /// has no direction.
    pub sign_right: Option<bool>,
}

/// Whether a change is for better or worse, or smaller than its own standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// For better.
    Better,
    /// For worse.
    Worse,
    /// Smaller than its own standard error.
    None,
}

impl Word {
    /// Of a change in percent.
    pub fn of(change: f64, standard_error: f64, direction: Direction) -> Word {
        if change == 0.0 || change.abs() <= standard_error {
            Word::None
        } else if (change < 0.0) == (direction == Direction::Lower) {
            Word::Better
        } else {
            Word::Worse
        }
    }

    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Word::Better => "better",
            Word::Worse => "worse",
            Word::None => "none",
        }
    }
}

/// The simulated result for one cell.
#[derive(Clone, Debug)]
pub struct Found {
    /// The mean, or the most frequent list.
    pub figure: Figure,
    /// Standard error of the mean.
    pub standard_error: Option<f64>,
}

/// All cells of the rows that were simulated.
pub fn cells(published: &Published, wanted: impl Fn(&Block, &Row) -> bool, answers: &Answers) -> Vec<Cell> {
    let mut cells = Vec::new();
    for block in &published.blocks {
        for row in block.rows.iter().filter(|row| wanted(block, row)) {
            let found: Vec<Option<Found>> =
                (0..block.columns.len()).map(|column| find(block, row, column, answers)).collect();
            let signs: Vec<Option<bool>> =
                (0..block.columns.len()).map(|column| sign(block, row, column, &found)).collect();
            for (index, column) in block.columns.iter().enumerate() {
                let Some(given) = &row.cells[index] else { continue };
                // The cell that changes has the sign of its change.
                let sign_right = match column.kind {
                    Kind::Value { .. } => change_of(block, index).and_then(|change| signs[change]),
                    _ => signs[index],
                };
                let simulated = found[index].as_ref().map(|f| f.figure.clone());
                let judged = found[index].as_ref().map(|found| judged(&column.kind, found));
                cells.push(Cell {
                    table: published.name.clone(),
                    block: block.name.clone(),
                    row: row.key.clone(),
                    column: column.name.clone(),
                    unit: unit(block, &column.kind).to_string(),
                    error: error(&column.kind, given, simulated.as_ref()),
                    error_unit: error_unit(&column.kind),
                    standard_error: found[index].as_ref().and_then(|f| f.standard_error),
                    used: given.used,
                    tolerance: given.tolerance.to_string(),
                    inside: given.tolerance.judge(given.figure.as_ref(), judged.as_ref(), sign_right),
                    significant: matches!(column.kind, Kind::Change { .. }).then_some(given.significant),
                    published: given.figure.clone(),
                    simulated,
                    sign_right,
                });
            }
        }
    }
    cells
}

/// The figure that a tolerance judges: a change smaller than its own standard error counts as zero.
fn judged(kind: &Kind, found: &Found) -> Figure {
    let noise = found.standard_error.unwrap_or(0.0);
    match (kind, &found.figure) {
        (Kind::Change { .. }, Figure::Number(change)) if change.abs() < noise => Figure::Number(0.0),
        (_, figure) => figure.clone(),
    }
}

/// The column that shows the change of this one.
fn change_of(block: &Block, column: usize) -> Option<usize> {
    block.columns.iter().position(|c| matches!(c.kind, Kind::Change { of, .. } if of == column))
}

fn unit<'a>(block: &'a Block, kind: &Kind) -> &'a str {
    match kind {
        Kind::Value { .. } => &block.unit,
        Kind::Change { .. } | Kind::Recovered { .. } => "%",
        Kind::Ratio { .. } => "",
    }
}

fn error(kind: &Kind, given: &Given, simulated: Option<&Figure>) -> Option<f64> {
    let (published, simulated) = (given.figure.as_ref()?.number()?, simulated?.number()?);
    Some(match kind {
        Kind::Value { .. } | Kind::Ratio { .. } => 100.0 * (simulated / published - 1.0),
        Kind::Change { .. } | Kind::Recovered { .. } => simulated - published,
    })
}

/// The unit of [`error`]. A value that is a percentage itself, such as a share of cycles, has a relative error like all
/// values.
fn error_unit(kind: &Kind) -> &'static str {
    match kind {
        Kind::Value { .. } | Kind::Ratio { .. } => "%",
        Kind::Change { .. } | Kind::Recovered { .. } => "pp",
    }
}

/// The samples of a value column, seed by seed, in the unit of the block.
pub fn samples(block: &Block, row: &str, column: usize, answers: &Answers) -> Vec<Option<Figure>> {
    let column = &block.columns[column];
    let (Some(key), Kind::Value { scale, row_over, .. }) = (column.key(row), &column.kind) else {
        return Vec::new();
    };
    let in_unit = |figure: &Figure| match figure {
        Figure::Number(n) => Figure::Number(match row_over {
            Some(over) => over * row.parse::<f64>().unwrap_or(1.0) / n,
            None => n * scale,
        }),
        cpus @ Figure::Cpus(_) => cpus.clone(),
    };
    let of = |key: &Key| answers.get(key).map(Vec::as_slice).unwrap_or_default();
    of(&key).iter().map(|figure| figure.as_ref().map(in_unit)).collect()
}

/// The simulated result for a cell.
pub fn find(block: &Block, row: &Row, column: usize, answers: &Answers) -> Option<Found> {
    let numbers = |column: usize| -> Vec<f64> {
        samples(block, &row.key, column, answers).iter().filter_map(|f| f.as_ref()?.number()).collect()
    };
    let mean = |column: usize| {
        let numbers = numbers(column);
        (!numbers.is_empty()).then(|| moments(&numbers).mean())
    };
    match block.columns[column].kind {
        Kind::Value { .. } => {
            let all = samples(block, &row.key, column, answers);
            let lists: Vec<&Vec<u16>> = all
                .iter()
                .filter_map(|f| match f {
                    Some(Figure::Cpus(cpus)) => Some(cpus),
                    _ => None,
                })
                .collect();
            if let Some(most) = lists.iter().rev().max_by_key(|one| lists.iter().filter(|o| o == one).count())
            {
                return Some(Found { figure: Figure::Cpus((*most).clone()), standard_error: None });
            }
            let moments = moments(&numbers(column));
            let enough = (moments.n() > 1).then(|| moments.stderr());
            (moments.n() > 0)
                .then(|| Found { figure: Figure::Number(moments.mean()), standard_error: enough })
        }
        ref kind @ (Kind::Change { of, against } | Kind::Ratio { of, against }) => {
            let value = derived(kind, mean)?;
            // The runs of one seed belong together.
            let pairs: Vec<f64> = numbers(of).iter().zip(numbers(against)).map(|(a, b)| a / b).collect();
            let scale = if matches!(kind, Kind::Change { .. }) { 100.0 } else { 1.0 };
            let error = (pairs.len() > 1).then(|| scale * moments(&pairs).stderr());
            Some(Found { figure: Figure::Number(value), standard_error: error })
        }
        ref kind @ Kind::Recovered { .. } => {
            derived(kind, mean).map(|value| Found { figure: Figure::Number(value), standard_error: None })
        }
    }
}

fn moments(numbers: &[f64]) -> Moments {
    let mut moments = Moments::default();
    numbers.iter().for_each(|&n| moments.push(n));
    moments
}

/// Whether the direction of a change is right, if it was marked as significant.
fn sign(block: &Block, row: &Row, column: usize, found: &[Option<Found>]) -> Option<bool> {
    let given = row.cells[column].as_ref().filter(|g| g.significant)?;
    let published = given.figure.as_ref()?.number()?;
    let word = word(block, column, found[column].as_ref()?)?;
    Some(word == Word::of(published, 0.0, block.direction))
}

/// The word for a change column.
pub fn word(block: &Block, column: usize, found: &Found) -> Option<Word> {
    matches!(block.columns[column].kind, Kind::Change { .. }).then_some(())?;
    Some(Word::of(found.figure.number()?, found.standard_error.unwrap_or(0.0), block.direction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::tolerance::Tolerance;

    #[test]
    fn a_change_within_its_noise_is_judged_as_none() {
        let judge = |change, error| {
            let found = Found { figure: Figure::Number(change), standard_error: Some(error) };
            judged(&Kind::Change { of: 1, against: 0 }, &found)
        };
        assert_eq!(judge(0.3, 0.4), Figure::Number(0.0));
        assert_eq!(judge(-0.3, 0.2), Figure::Number(-0.3));
    }

    /// A share of cycles of 4 % that was published as 5 % is a fifth too low, and a change of -4 % is one point above
    /// one of -5 %.
    #[test]
    fn only_what_follows_from_other_columns_is_off_by_points() {
        let given = |number| Given {
            figure: Some(Figure::Number(number)),
            significant: false,
            used: Use::Pred,
            tolerance: Tolerance::parse("-").unwrap(),
        };
        let off = |kind: &Kind, published, simulated| {
            let error = error(kind, &given(published), Some(&Figure::Number(simulated))).unwrap();
            (error.round(), error_unit(kind))
        };
        let of = |figure: &str| Key {
            scenario: String::new(),
            row: String::new(),
            kernel: String::new(),
            figure: figure.to_string(),
        };
        let share = Kind::Value { key: of("update_load_avg node 0"), scale: 1.0, row_over: None };
        assert_eq!(off(&share, 5.0, 4.0), (-20.0, "%"));
        assert_eq!(off(&Kind::Change { of: 1, against: 0 }, -5.0, -4.0), (1.0, "pp"));
    }
}
