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

    /// A sentence about a line of a file.
    pub fn at(file: &str, line: usize, message: &str) -> Error {
        Error(format!("{file}:{line}: {message}"))
    }
}
