//! How wide what is printed may be.

use std::io::IsTerminal;

/// Columns of the terminal; as many as there are if standard output is none, unless COLUMNS says.
pub fn width() -> usize {
    let said =
        std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|&columns| columns >= 40);
    let found = || {
        let stdout = std::io::stdout();
        let size = stdout.is_terminal().then(terminal_size::terminal_size).flatten();
        size.map(|(width, _)| usize::from(width.0))
    };
    said.or_else(found).unwrap_or(usize::MAX)
}
