//! Lines of cells, padded into columns.

/// The alignment of a column's cells.
#[derive(Clone, Copy, Debug)]
pub enum Lean {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Pads each cell to the widest of its column and joins them with `gap`.
///
/// A line may have fewer cells than there are columns.
pub fn columns(lines: &[Vec<String>], leans: &[Lean], gap: &str) -> String {
    let width = |column: usize| {
        lines.iter().filter_map(|l| l.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..leans.len()).map(width).collect();
    let mut out = String::new();
    for line in lines {
        let cells = line.iter().zip(leans).zip(&widths).map(|((cell, lean), &width)| match lean {
            Lean::Left => format!("{cell:<width$}"),
            Lean::Right => format!("{cell:>width$}"),
        });
        out.push_str(cells.collect::<Vec<_>>().join(gap).trim_end());
        out.push('\n');
    }
    out
}
