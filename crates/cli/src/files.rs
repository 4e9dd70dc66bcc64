//! Files that the user named.

use std::path::Path;

use crate::error::Error;

/// The text of a file.
pub fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|e| Error::file(path, &e))
}
