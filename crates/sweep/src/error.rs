//! Errors in a plan, a store or a point: a sentence that names the place and the way out.

use std::path::Path;

/// Bad input, or a file that cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    /// A sentence.
    pub fn new(message: impl Into<String>) -> Error {
        Error(message.into())
    }

    /// A sentence about a file.
    pub fn file(path: &Path, error: &dyn std::fmt::Display) -> Error {
        Error(format!("{}: {error}", path.display()))
    }
}

impl From<schedlab::Error> for Error {
    fn from(error: schedlab::Error) -> Error {
        Error(error.to_string())
    }
}

impl From<schedlab_columns::Error> for Error {
    fn from(error: schedlab_columns::Error) -> Error {
        Error(error.to_string())
    }
}
