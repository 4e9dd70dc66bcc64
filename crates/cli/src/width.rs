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

/// A line behind its name, broken between words; what follows stands under its beginning.
pub fn wrapped(name: &str, line: &str, width: usize) -> String {
    let (mut text, mut column) = (name.to_string(), name.len());
    let mut is_first = true;
    for word in line.split(' ') {
        let length = word.chars().count();
        if !is_first && column + 1 + length > width {
            text.push('\n');
            text.push_str(&" ".repeat(name.len()));
            column = name.len();
        } else if !is_first {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
        is_first = false;
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("why  ", "a long line of words", 14), "why  a long\n     line of\n     words\n");
        assert_eq!(wrapped("why  ", "averyverylongword b", 10), "why  averyverylongword\n     b\n");
        assert_eq!(wrapped("why  ", "a b", usize::MAX), "why  a b\n");
    }
}
