//! Figures of a point as lines of text, with numbers that parse back to the last bit.

use crate::figures::Figure;
use schedlab_columns::Cell;

/// A line for each figure: name, unit, `lower` or `higher`, value.
pub(crate) fn lines(figures: &[Figure]) -> String {
    let mut text = String::new();
    for figure in figures {
        let cell = match &figure.cell {
            Cell::Nothing => "-".to_owned(),
            Cell::Int(int) => format!("i{int}"),
            Cell::Float(float) => format!("f{float:?}"),
            Cell::Text(said) => format!("t{said}"),
        };
        let (unit, better) = match &figure.unit {
            Some((unit, true)) => (unit.as_str(), "lower"),
            Some((unit, false)) => (unit.as_str(), "higher"),
            None => ("", ""),
        };
        text += &format!("{}\t{unit}\t{better}\t{cell}\n", figure.name);
    }
    text
}

/// Reads a line.
pub(crate) fn figure(line: &str) -> Option<Figure> {
    let mut parts = line.splitn(4, '\t');
    let (name, unit, better, cell) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let unit = (!better.is_empty()).then(|| (unit.to_owned(), better == "lower"));
    let cell = match cell.split_at_checked(1)? {
        ("-", "") => Cell::Nothing,
        ("i", int) => Cell::Int(int.parse().ok()?),
        ("f", float) => Cell::Float(float.parse().ok()?),
        ("t", said) => Cell::Text(said.to_owned()),
        _ => return None,
    };
    Some(Figure { name: name.to_owned(), unit, cell })
}
