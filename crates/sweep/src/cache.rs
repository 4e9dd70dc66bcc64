//! Finished points by their id, for all plans to share.
//!
//! A file for each point, written under a temporary name and renamed, contains its figures as text, with numbers that
//! parse back to the last bit. A process that finds the cache too large deletes the oldest files. A file that vanishes
//! or is damaged counts as not found, never as an error.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::figures::Figure;
use crate::point_text;
use crate::store::write_beside;

/// First line of each file.
const HEAD: &str = "schedlab point 1";
/// A block of a file system: the size of a small file.
const BLOCK: u64 = 4096;

/// A folder of finished points with a limit.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    limit: u64,
    written: AtomicU64,
}

impl Cache {
    /// The cache in a folder, which is created when the first point is stored. `limit` is its maximum size in
    /// bytes.
    pub fn new(folder: &Path, limit: u64) -> Cache {
        Cache { folder: folder.to_path_buf(), limit, written: AtomicU64::new(0) }
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(&id[..2]).join(&id[2..])
    }

    /// The stored figures of a point.
    pub(crate) fn get(&self, id: &str) -> Option<Vec<Figure>> {
        let text = fs::read_to_string(self.path(id)).ok()?;
        let text = text.strip_prefix(HEAD)?.strip_prefix('\n')?.strip_suffix("end\n")?;
        text.lines().map(point_text::figure).collect()
    }

    /// Stores a point. A failed write is ignored.
    pub(crate) fn put(&self, id: &str, figures: &[Figure]) {
        let path = self.path(id);
        let text = format!("{HEAD}\n{}end\n", point_text::lines(figures));
        let kept = fs::create_dir_all(path.parent().expect("inside the folder"))
            .and_then(|()| write_beside(&path, text.as_bytes()));
        // Tidying up reads the whole folder; once per 16th of the limit is often enough.
        if kept.is_ok() && self.written.fetch_add(BLOCK, Ordering::Relaxed) > self.limit / 16 {
            self.written.store(0, Ordering::Relaxed);
            self.tidy();
        }
    }

    /// Deletes the oldest points until nine tenths of the limit are left.
    pub fn tidy(&self) {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        for file in entries(&self.folder).flat_map(|group| entries(&group.path())) {
            let known = |meta: fs::Metadata| -> io::Result<_> {
                Ok((meta.modified()?, meta.len().div_ceil(BLOCK) * BLOCK, file.path()))
            };
            files.extend(file.metadata().and_then(known));
        }
        let mut size: u64 = files.iter().map(|file| file.1).sum();
        if size <= self.limit {
            return;
        }
        files.sort();
        for (_, length, path) in files {
            if size <= self.limit / 10 * 9 {
                break;
            }
            // Another process may have been faster.
            let _ = fs::remove_file(path);
            size -= length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_columns::Cell;

    fn figures(value: f64) -> Vec<Figure> {
        vec![
            Figure { name: "load file".into(), unit: Some(("ms".into(), true)), cell: Cell::Float(value) },
            Figure { name: "none".into(), unit: Some((String::new(), false)), cell: Cell::Nothing },
            Figure { name: "switches".into(), unit: None, cell: Cell::Int(-3) },
        ]
    }

    #[test]
    fn what_is_kept_comes_back_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), 1 << 20);
        let value = 0.1 + 0.2;
        assert_eq!(cache.get("abcd"), None);
        cache.put("abcd", &figures(value));
        assert_eq!(cache.get("abcd"), Some(figures(value)));
        let path = cache.path("abcd");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 2]).unwrap();
        assert_eq!(cache.get("abcd"), None, "half a file is none");
    }

    #[test]
    fn the_limit_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), 40 * BLOCK);
        for nth in 0..100 {
            cache.put(&format!("{nth:02}ff"), &figures(1.0));
        }
        cache.tidy();
        let kept = (0..100).filter(|nth| cache.get(&format!("{nth:02}ff")).is_some()).count();
        assert!((30..=40).contains(&kept), "{kept}");
        assert!(cache.get("99ff").is_some(), "the newest stays");
    }
}
