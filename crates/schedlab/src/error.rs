//! What can be wrong with what a user gives: a sentence with its place.

/// Bad input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    /// A sentence.
    pub fn new(message: impl Into<String>) -> Error {
        Error(message.into())
    }

    /// What is wrong with a text that should be a scenario, with the line and the way out.
    ///
    /// The parser's own message is often a word about a character; so a line that is not TOML is quoted.
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
        Error::at(
            file,
            line,
            &format!("\"{quoted}\" is not TOML: {message}; write key = value, text in double quotes"),
        )
    }

    /// A sentence about a line of a file.
    pub fn at(file: &str, line: usize, message: &str) -> Error {
        Error(format!("{file}:{line}: {message}"))
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
