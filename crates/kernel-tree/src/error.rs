//! Errors before a kernel runs.

use std::fmt;
use std::path::Path;

/// A sentence, perhaps followed by a compiler's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    pub(crate) fn new(text: impl Into<String>) -> Error {
        Error(text.into())
    }

    pub(crate) fn io(what: &str, path: &Path, error: &std::io::Error) -> Error {
        Error(format!("{}: cannot {what}: {error}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
