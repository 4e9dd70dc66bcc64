//! Errors in user input: a sentence with its place.

/// Bad input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    /// A sentence.
    pub fn new(message: impl Into<String>) -> Error {
        Error(message.into())
    }

    /// Says what is wrong with a scenario text, with the line and the way out.
    ///
    /// The parser's own message often concerns a single character, so a line that is not TOML is quoted.
    pub(crate) fn toml(file: &str, text: &str, offset: Option<usize>, message: &str) -> Error {
        if text.trim().is_empty() {
            return Error::new(format!(
                "{file}: the file is empty; a scenario has machine, kernels and [workload] (docs/scenarios.md)"
            ));
        }
        let before = &text.as_bytes()[..offset.unwrap_or(0).min(text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        let message = message.trim_end().replace('\n', "; ");
        let Err(_) = text.parse::<toml::Table>() else { return Error::at(file, line, &message) };
        let quoted = text.lines().nth(line - 1).unwrap_or_default().trim().chars();
        let quoted: String = quoted.filter(|c| !c.is_control()).take(60).collect();
        let message = if message.is_empty() { "it cannot be read".to_owned() } else { message };
        let way_out = match message.contains("array") {
            true => open_array(text, line),
            false => "write key = value, text in double quotes".to_owned(),
        };
        Error::at(file, line, &format!("\"{quoted}\" is not TOML: {message}; {way_out}"))
    }

    /// A sentence about a line of a file.
    pub fn at(file: &str, line: usize, message: &str) -> Error {
        Error(format!("{file}:{line}: {message}"))
    }
}

/// How to close an array that is still open in a line, and where it begins.
fn open_array(text: &str, line: usize) -> String {
    let lines: Vec<&str> = text.lines().take(line).collect();
    let begins =
        |line: &&str| line.split_once('=').is_some_and(|(_, value)| value.trim_start().starts_with('['));
    match lines.iter().rposition(begins) {
        Some(at) => {
            format!("close the array that begins in line {} with ], a comma between its values", at + 1)
        }
        None => "close the array with ], a comma between its values".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_scenario_is_quoted_with_its_line_and_the_way_out() {
        for (text, expected) in [
            (
                "\n \n",
                "a.toml: the file is empty; a scenario has machine, kernels and [workload] (docs/scenarios.md)",
            ),
            (
                "a = 1\n= 2\n",
                "a.toml:2: \"= 2\" is not TOML: unquoted keys cannot be empty, expected letters, numbers, `-`, `_`; write key = value, text in double quotes",
            ),
            ("a = 1", "a.toml:1: missing field `machine`"),
            (
                "a = 1\nb = [\"c\",\n  \"d\"\n\ne = 2\n",
                "a.toml:5: \"e = 2\" is not TOML: missing comma between array elements, expected `,`; close the array that begins in line 2 with ], a comma between its values",
            ),
            (
                "a = [1, 2",
                "a.toml:1: \"a = [1, 2\" is not TOML: unclosed array, expected `]`; close the array that begins in line 1 with ], a comma between its values",
            ),
        ] {
            let error = toml::from_str::<Machine>(text).unwrap_err();
            let error = Error::toml("a.toml", text, error.span().map(|span| span.start), error.message());
            assert_eq!(error.to_string(), expected);
        }
        let silent = Error::toml("a.toml", "\u{7}", Some(0), "");
        assert_eq!(
            silent.to_string(),
            "a.toml:1: \"\" is not TOML: it cannot be read; write key = value, text in double quotes"
        );
    }

    #[derive(Debug, serde::Deserialize)]
    struct Machine {
        #[serde(rename = "machine")]
        _machine: String,
    }
}
