//! Files that a scenario names, relative to it.

use std::path::{Path, PathBuf};

use schedlab::Files;

use crate::error::Error;

/// Reads relative to a folder.
pub struct Folder(PathBuf);

impl Folder {
    /// The folder a file lies in.
    pub fn of(file: &Path) -> Folder {
        Folder(file.parent().unwrap_or(Path::new("")).to_path_buf())
    }
}

impl Files for Folder {
    fn text(&self, name: &str) -> Result<String, String> {
        let path = self.0.join(name);
        std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    }
}

/// The text of a file the user named.
pub fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => {
            Error::new(format!("{}: this is no text; is it damaged, or another file?", path.display()))
        }
        _ => Error::file(path, &error),
    })
}
