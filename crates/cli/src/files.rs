//! Files that a scenario names, relative to it.

use std::io::Read;
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
        read(&path).map_err(|error| error.to_string())
    }
}

/// The bytes of a file the user named; `-` is standard input.
pub fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let read = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    read.map_err(|error| Error::file(path, &error))
}

/// The text of a file the user named, without the byte order mark that some editors put before it.
pub fn read(path: &Path) -> Result<String, Error> {
    let (bytes, name) = (bytes(path)?, path.display());
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(Error::new(format!(
            "{name}: this is text in UTF-16, which is not read; convert it first: iconv -f UTF-16 -t UTF-8"
        )));
    }
    let mut text = String::from_utf8(bytes)
        .map_err(|_| Error::new(format!("{name}: this is no text; is it damaged, or another file?")))?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}
