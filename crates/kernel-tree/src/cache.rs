//! The build cache: each step of a build is stored by the contents of all files that it read.
//!
//! A step has a name and a key (its inputs: flags, versions, results of earlier steps), and reads files of the tree
//! that only the step itself knows: headers, Kconfig files. A result is in `steps/NAME/KEY/N/`, with the files that the
//! step read and their hashes in `read`. It is reused for another tree, or for the same one later, if all those files
//! are equal there.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use xxhash_rust::xxh3::xxh3_128;

use crate::{Error, Tree};

/// A folder in which built kernels are kept.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: PathBuf,
}

/// A library that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The shared library.
    pub library: PathBuf,
    /// Its name: equal for equal source, configuration and compiler.
    pub key: String,
    /// The kernel's version, `6.12.117`.
    pub release: String,
    /// The tree that it was last built from.
    pub tree: PathBuf,
}

/// A library in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The library.
    pub built: Built,
    /// Its size, bytes.
    pub size: u64,
    /// When it was last used.
    pub used: SystemTime,
}

/// A hash of contents.
pub(crate) fn hash(parts: &[&[u8]]) -> String {
    let mut all = Vec::new();
    for part in parts {
        all.extend_from_slice(&(part.len() as u64).to_le_bytes());
        all.extend_from_slice(part);
    }
    format!("{:032x}", xxh3_128(&all))
}

/// The files of one tree, each read and hashed once.
pub(crate) struct Contents<'a> {
    tree: &'a Tree,
    known: Mutex<HashMap<String, Option<u128>>>,
}

impl<'a> Contents<'a> {
    pub(crate) fn new(tree: &'a Tree) -> Contents<'a> {
        Contents { tree, known: Mutex::new(HashMap::new()) }
    }

    /// Hash of a file by its name in the tree; `None` if it does not exist.
    fn of(&self, file: &str) -> Option<u128> {
        if let Some(known) = self.known.lock().expect("no thread fails here").get(file) {
            return *known;
        }
        let hash = fs::read(self.tree.dir().join(file)).ok().map(|bytes| xxh3_128(&bytes));
        self.known.lock().expect("no thread fails here").insert(file.to_string(), hash);
        hash
    }
}

impl Cache {
    /// The user's cache: `$SCHEDLAB_CACHE`, or `schedlab` in `$XDG_CACHE_HOME` or `~/.cache`.
    ///
    /// # Errors
    /// None of these variables is set.
    pub fn of_user() -> Result<Cache, Error> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let dir = set("SCHEDLAB_CACHE")
            .or_else(|| set("XDG_CACHE_HOME").map(|dir| dir.join("schedlab")))
            .or_else(|| set("HOME").map(|dir| dir.join(".cache/schedlab")))
            .ok_or_else(|| {
                Error::new("there is no HOME to keep kernels in; name a folder in SCHEDLAB_CACHE")
            })?;
        Ok(Cache::at(&dir))
    }

    /// A cache in a folder, which need not exist yet.
    pub fn at(dir: &Path) -> Cache {
        Cache { dir: dir.join("kernels") }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn library_dir(&self, key: &str) -> PathBuf {
        self.dir.join("libraries").join(key)
    }

    /// A folder with the overlay's files, written if it does not exist.
    pub(crate) fn overlay(&self, key: &str, files: &[(&str, &str)]) -> Result<PathBuf, Error> {
        let dir = self.dir.join("overlay").join(key);
        if !dir.is_dir() {
            let new = self.scratch()?;
            for (name, text) in files {
                let path = new.join(name);
                let parent = path.parent().expect("a file is in a folder");
                fs::create_dir_all(parent).map_err(|error| Error::io("make it", parent, &error))?;
                fs::write(&path, text).map_err(|error| Error::io("write it", &path, &error))?;
            }
            put(&new, &dir)?;
        }
        Ok(dir)
    }

    /// An empty folder for temporary files.
    pub(crate) fn scratch(&self) -> Result<PathBuf, Error> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = self.dir.join("work").join(format!("{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).map_err(|error| Error::io("make it", &dir, &error))?;
        Ok(dir)
    }

    /// A result of a step that read the same files as this tree has.
    pub(crate) fn find(&self, step: &str, key: &str, contents: &Contents<'_>) -> Option<PathBuf> {
        let entries = fs::read_dir(self.dir.join("steps").join(step).join(key)).ok()?;
        let mut outcomes: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        outcomes.sort();
        outcomes.into_iter().find(|outcome| {
            let Ok(read) = fs::read_to_string(outcome.join("read")) else { return false };
            read.lines().all(|line| {
                let Some((hash, file)) = line.split_once(' ') else { return false };
                contents.of(file).is_some_and(|now| format!("{now:032x}") == hash)
            })
        })
    }

    /// Stores the result of a step, a folder that [`Cache::scratch`] made, with the files of the tree that the step
    /// read.
    pub(crate) fn keep(
        &self,
        step: &str,
        key: &str,
        contents: &Contents<'_>,
        mut read: Vec<String>,
        made: &Path,
    ) -> Result<PathBuf, Error> {
        read.sort();
        read.dedup();
        let lines = read.iter().filter_map(|file| Some(format!("{:032x} {file}\n", contents.of(file)?)));
        let text: String = lines.collect();
        let path = made.join("read");
        fs::write(&path, &text).map_err(|error| Error::io("write it", &path, &error))?;
        let dir = self.dir.join("steps").join(step).join(key).join(&hash(&[text.as_bytes()])[..16]);
        put(made, &dir)?;
        Ok(dir)
    }

    /// All libraries, the most recently used first.
    pub fn list(&self) -> Vec<Kept> {
        let entries = fs::read_dir(self.dir.join("libraries")).into_iter().flatten().flatten();
        let mut all: Vec<Kept> = entries.filter_map(|entry| kept(&entry.path())).collect();
        all.sort_by(|a, b| b.used.cmp(&a.used).then_with(|| a.built.key.cmp(&b.built.key)));
        all
    }

    /// Removes a library selected by the start of its key or its release, or all libraries with their build results.
    /// Returns how many.
    ///
    /// # Errors
    /// There is no such library, or a file cannot be removed.
    pub fn remove(&self, which: Option<&str>) -> Result<usize, Error> {
        let gone = |dir: &Path| fs::remove_dir_all(dir).map_err(|error| Error::io("remove it", dir, &error));
        let Some(which) = which else {
            let count = self.list().len();
            if self.dir.is_dir() {
                gone(&self.dir)?;
            }
            return Ok(count);
        };
        let is = |kept: &Kept| kept.built.key.starts_with(which) || kept.built.release == which;
        let found: Vec<Kept> = self.list().into_iter().filter(|kept| !which.is_empty() && is(kept)).collect();
        if found.is_empty() {
            return Err(Error::new(format!(
                "no kernel \"{which}\" is kept; `schedlab kernel list` shows them"
            )));
        }
        for kept in &found {
            gone(&self.library_dir(&kept.built.key))?;
        }
        Ok(found.len())
    }
}

/// Moves a finished folder into place; another process may just have done the same.
fn put(made: &Path, dir: &Path) -> Result<(), Error> {
    let parent = dir.parent().expect("it is in a folder");
    fs::create_dir_all(parent).map_err(|error| Error::io("make it", parent, &error))?;
    match fs::rename(made, dir) {
        Err(_) if dir.is_dir() => {
            fs::remove_dir_all(made).map_err(|error| Error::io("remove it", made, &error))
        }
        done => done.map_err(|error| Error::io("make it", dir, &error)),
    }
}

/// The content of `about` beside a library.
pub(crate) fn about(built: &Built) -> String {
    format!("{}\n{}\n", built.release, built.tree.display())
}

fn kept(dir: &Path) -> Option<Kept> {
    let library = dir.join("liblab.so");
    let about = dir.join("about");
    let text = fs::read_to_string(&about).ok()?;
    let mut lines = text.lines();
    let built = Built {
        key: dir.file_name()?.to_str()?.to_string(),
        release: lines.next()?.to_string(),
        tree: PathBuf::from(lines.next()?),
        library,
    };
    let size = fs::metadata(&built.library).ok()?.len();
    Some(Kept { built, size, used: fs::metadata(&about).ok()?.modified().ok()? })
}

pub(crate) fn finish(cache: &Cache, made: &Path, built: &Built) -> Result<(), Error> {
    put(made, &cache.library_dir(&built.key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_taken_where_all_that_was_read_is_the_same() {
        let dir = std::env::temp_dir().join(format!("schedlab-cache-{}", std::process::id()));
        let tree = |name: &str, header: &str| {
            let at = dir.join(name);
            for (file, text) in [
                ("Makefile", "VERSION = 6\nPATCHLEVEL = 12\n"),
                ("Kconfig", ""),
                ("kernel/sched/core.c", ""),
                ("kernel/sched/fair.c", ""),
                ("scripts/kconfig/conf.c", ""),
                ("include/a.h", header),
            ] {
                let path = at.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Tree::open(&at).unwrap()
        };
        let (one, same, other) = (tree("one", "1"), tree("same", "1"), tree("other", "2"));
        let cache = Cache::at(&dir.join("cache"));
        let made = cache.scratch().unwrap();
        fs::write(made.join("outcome"), "").unwrap();
        let contents = Contents::new(&one);
        assert_eq!(cache.find("step", "key", &contents), None);
        let kept = cache.keep("step", "key", &contents, vec!["include/a.h".into()], &made).unwrap();
        assert!(kept.join("outcome").is_file() && !made.exists());
        assert_eq!(cache.find("step", "key", &Contents::new(&same)), Some(kept));
        assert_eq!(cache.find("step", "key", &Contents::new(&other)), None);
        assert_eq!(cache.find("step", "another key", &Contents::new(&same)), None);
        assert_eq!(
            cache.remove(Some("6.12")).unwrap_err().to_string(),
            "no kernel \"6.12\" is kept; `schedlab kernel list` shows them"
        );
        fs::remove_dir_all(&dir).unwrap();
    }
}
