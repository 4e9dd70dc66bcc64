//! The width of the output.

use std::io::IsTerminal;
use std::os::fd::AsFd;

/// Columns of the terminal; unlimited if standard output is not a terminal, unless COLUMNS is set.
pub fn width() -> usize {
    let said =
        std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|&columns| columns >= 40);
    said.or_else(|| of_terminal(std::io::stdout())).unwrap_or(usize::MAX)
}

/// Columns of the terminal behind a stream, if there is one.
pub fn of_terminal(stream: impl IsTerminal + AsFd) -> Option<usize> {
    let size = stream.is_terminal().then(|| terminal_size::terminal_size_of(&stream)).flatten();
    size.map(|(width, _)| usize::from(width.0))
}

/// A line after its name, broken between words; continuation lines are aligned with its beginning.
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

/// Breaks a line into lines of this width, without the newline. If a line has a name or number and one gap, its
/// continuation is aligned after the gap; a line of a table, with several gaps, is not broken.
pub fn fitted(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start().len();
    let begin = line.rfind("  ").map_or(0, |at| at + 2).max(indent);
    let gaps = line[indent..begin].split("  ").filter(|part| !part.trim().is_empty()).count();
    let column = line[..begin].chars().count();
    let (begin, column) = match gaps {
        0 => (indent, indent + 2),
        1 | 2 if 2 * column <= width => (begin, column),
        1 => (indent, indent + 2),
        _ => return line.to_owned(),
    };
    let mut text = line[..begin].to_owned();
    let mut at = text.chars().count();
    for (nth, word) in line[begin..].split(' ').enumerate() {
        let length = word.chars().count();
        if nth > 0 && at + 1 + length > width {
            text.push('\n');
            text.push_str(&" ".repeat(column));
            at = column;
        } else if nth > 0 {
            text.push(' ');
            at += 1;
        }
        text.push_str(word);
        at += length;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_fitted_and_tables_are_not() {
        let check = |line: &str, width, expected: &str| assert_eq!(fitted(line, width), expected);
        check("short", 10, "short");
        check("a sentence of words", 12, "a sentence\n  of words");
        check("  name  what it is about", 18, "  name  what it is\n        about");
        check("on  NAME  what it is about", 20, "on  NAME  what it is\n          about");
        check("a  1  2  3  4  5  6  7", 10, "a  1  2  3  4  5  6  7");
        check("a long name of it  what it is", 20, "a long name of it \n  what it is");
        check("----------------", 10, "----------------");
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("why  ", "a long line of words", 14), "why  a long\n     line of\n     words\n");
        assert_eq!(wrapped("why  ", "averyverylongword b", 10), "why  averyverylongword\n     b\n");
        assert_eq!(wrapped("why  ", "a b", usize::MAX), "why  a b\n");
    }
}
