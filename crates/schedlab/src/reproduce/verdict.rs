//! Verdicts under other assumptions: with a mechanism of the hardware off, and with a
//! constant at an end of its range.

use schedlab_report::Direction;
use serde::Serialize;

use super::cell::{Word, find, word};
use super::figure::Figure;
use super::published::{Block, Published, Row};
use super::simulate::{Answers, End};

/// What a change column says about a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Block of the table.
    pub block: String,
    /// Row of the block.
    pub row: String,
    /// The column.
    pub column: String,
    /// Which direction is better.
    #[serde(skip)]
    pub direction: Direction,
    /// Change in percent.
    pub change: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The word for it.
    pub word: Word,
}

impl Verdict {
    /// Whether both are about the same cell.
    pub fn is_of_same(&self, other: &Verdict) -> bool {
        (&self.block, &self.row, &self.column) == (&other.block, &other.row, &other.column)
    }
}

/// A verdict that changes under some setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Turned {
    /// The constant, or the mechanism that was off.
    pub by: String,
    /// The end of its range, for a constant.
    pub end: Option<&'static str>,
    /// The verdict without the setting.
    pub was: Verdict,
    /// The verdict with it.
    pub is: Verdict,
}

/// The verdicts of the rows that were simulated.
pub fn verdicts(
    published: &Published,
    wanted: impl Fn(&Block, &Row) -> bool,
    answers: &Answers,
) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for block in &published.blocks {
        for row in block.rows.iter().filter(|row| wanted(block, row)) {
            for (index, column) in block.columns.iter().enumerate() {
                if row.cells[index].is_none() {
                    continue;
                }
                let Some(found) = find(block, row, index, answers) else { continue };
                let (Some(word), Figure::Number(change)) = (word(block, index, &found), &found.figure) else {
                    continue;
                };
                verdicts.push(Verdict {
                    block: block.name.clone(),
                    row: row.key.clone(),
                    column: column.name.clone(),
                    direction: block.direction,
                    change: *change,
                    standard_error: found.standard_error.unwrap_or(0.0),
                    word,
                });
            }
        }
    }
    verdicts
}

/// The verdicts that change under a setting, by more than twice the standard error of the difference.
pub fn turned(by: &str, end: Option<End>, was: &[Verdict], is: &[Verdict]) -> Vec<Turned> {
    let pairs = was.iter().filter_map(|was| is.iter().find(|is| is.is_of_same(was)).map(|is| (was, is)));
    pairs
        .filter(|(was, is)| was.word != is.word)
        .filter(|(was, is)| {
            (was.change - is.change).abs() > 2.0 * was.standard_error.hypot(is.standard_error)
        })
        .map(|(was, is)| Turned {
            by: by.to_string(),
            end: end.map(End::name),
            was: was.clone(),
            is: is.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(row: &str, change: f64, word: Word) -> Verdict {
        Verdict {
            block: "b".into(),
            row: row.into(),
            column: "change".into(),
            direction: Direction::Lower,
            change,
            standard_error: 1.0,
            word,
        }
    }

    #[test]
    fn a_verdict_turns_when_its_word_does() {
        let was = [
            verdict("1", -9.0, Word::Better),
            verdict("2", -8.0, Word::Better),
            verdict("3", -2.0, Word::Better),
        ];
        let is =
            [verdict("1", -3.0, Word::Better), verdict("2", 0.1, Word::None), verdict("3", 0.1, Word::None)];
        let turned = turned("cost.syscall_ns", Some(End::High), &was, &is);
        assert_eq!(turned.len(), 1);
        assert_eq!((turned[0].end, &turned[0].is), (Some("highest"), &is[1]));
    }
}
