//! Errors in a file of columns: a sentence that names the file and the way out.

use std::path::Path;

/// A file that cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Error {
        Error(message.into())
    }

    pub(crate) fn file(path: &Path, error: &dyn std::fmt::Display) -> Error {
        Error(format!("{}: {error}", path.display()))
    }
}
