//! The recording's folder, which appears whole or not at all.
//!
//! It is filled as `NAME.partial` beside its final place, and renamed at the end. If anything fails before
//! that, the folder is removed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// A folder being filled.
pub struct Partial {
    place: PathBuf,
    partial: PathBuf,
}

impl Partial {
    /// Creates it, unless something is in its place.
    pub fn new(place: &Path) -> Result<Partial, Error> {
        let shown = place.display();
        if place == Path::new("-") {
            return Err(Error::new(
                "a recording is a folder and does not go to standard output; name one with --output",
            ));
        }
        if place.exists() {
            let is_empty =
                place.is_dir() && fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_none());
            if !is_empty {
                return Err(Error::new(format!(
                    "{shown} exists and is not an empty folder; name another one with --output"
                )));
            }
        }
        let Some(name) = place.file_name() else {
            return Err(Error::new(format!("{shown} cannot be made; name a new folder with --output")));
        };
        if let Some(parent) = place.parent().filter(|parent| *parent != Path::new("") && !parent.is_dir()) {
            let parent = parent.display();
            return Err(Error::new(format!(
                "{parent} is not a folder, so {shown} cannot be made in it; make it first or name another place with --output"
            )));
        }
        let mut name = name.to_owned();
        name.push(".partial");
        let partial = place.with_file_name(name);
        if partial.exists() {
            let shown = partial.display();
            return Err(Error::new(format!(
                "{shown} is left from a recording that was killed; remove it first"
            )));
        }
        fs::create_dir(&partial).map_err(|error| Error::file(&partial, &error))?;
        Ok(Partial { place: place.to_owned(), partial })
    }

    /// Where it is filled.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// Writes a file in it.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.partial.join(name);
        let folder = path.parent().expect("a file lies in a folder");
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| Error::file(&path, &error))
    }

    /// Moves it to its place, or to `NAME-2` and so on if something has appeared there meanwhile. Returns its path.
    pub fn finish(self) -> Result<PathBuf, Error> {
        let mut place = self.place.clone();
        for number in 2..100 {
            match fs::rename(&self.partial, &place) {
                Ok(()) => return Ok(place),
                Err(_) if place.exists() => {
                    let mut name = self.place.file_name().expect("it has a name").to_owned();
                    name.push(format!("-{number}"));
                    place = self.place.with_file_name(name);
                }
                Err(error) => return Err(Error::file(&self.place, &error)),
            }
        }
        Err(Error::new(format!(
            "{} and all of its names up to {} are taken",
            self.place.display(),
            place.display()
        )))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After the rename there is nothing here.
        let _ = fs::remove_dir_all(&self.partial);
    }
}
