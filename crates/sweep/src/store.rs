//! The folder of a sweep.
//!
//! ```text
//!  plan.toml               what the points are
//!  chunks/000007.parquet   the rows of a chunk, when all its points are done
//!  parts/000008-4711.txt   points of a chunk that was interrupted
//! ```
//!
//! Any number of runs may use it at once. At worst two of them write the same file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use schedlab_columns::{Cell, Kind, Reader, Table, Values, Writer};

use crate::error::Error;
use crate::figures::Figure;
use crate::plan::Plan;
use crate::point_text;

/// A folder with a plan and its results.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    plan: Plan,
    fingerprint: String,
}

/// The progress of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Points of the plan.
    pub points: u64,
    /// Points in finished chunks, including failed ones.
    pub done: u64,
    /// Points of unfinished chunks that an interrupted run has left.
    pub in_parts: u64,
    /// Points that failed.
    pub failed: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Files that are not a whole chunk of this plan, and will be written again.
    pub damaged: Vec<PathBuf>,
}

impl Store {
    /// A folder for a plan: a new or empty one, or one that has this plan already.
    ///
    /// # Errors
    /// A folder with another plan or with other files, or a file that cannot be written.
    pub fn create(folder: &Path, plan: Plan) -> Result<Store, Error> {
        let path = folder.join("plan.toml");
        match fs::read_to_string(&path) {
            Ok(text) if text == plan.to_toml() => return Store::open(folder),
            Ok(text) => {
                let known = Plan::from_toml(&path.display().to_string(), &text)?;
                let why =
                    if known.engine == plan.engine { "another plan" } else { "the plan of another version" };
                return Err(Error::new(format!(
                    "{}: this folder has {why}; give another folder, or go on with that one: schedlab sweep run {}",
                    folder.display(),
                    folder.display()
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::file(&path, &error)),
        }
        let holds_something = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        if holds_something {
            return Err(Error::new(format!(
                "{}: this folder has other files and no plan.toml; give a new folder",
                folder.display()
            )));
        }
        fs::create_dir_all(folder.join("chunks")).map_err(|error| Error::file(folder, &error))?;
        write_beside(&path, plan.to_toml().as_bytes()).map_err(|error| Error::file(&path, &error))?;
        Store::open(folder)
    }

    /// A folder that has a plan.
    ///
    /// # Errors
    /// A folder without a plan, or with one that cannot be parsed.
    pub fn open(folder: &Path) -> Result<Store, Error> {
        let path = folder.join("plan.toml");
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::new(format!(
                "{}: there is no plan.toml, so this is not the folder of a sweep; `schedlab sweep run FILE --vary .. \
                 --output {}` begins one",
                folder.display(),
                folder.display()
            )),
            _ => Error::file(&path, &error),
        })?;
        let plan = Plan::from_toml(&path.display().to_string(), &text)?;
        let fingerprint = plan.fingerprint();
        Ok(Store { folder: folder.to_path_buf(), plan, fingerprint })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Refuses to add points of this engine to those of another.
    ///
    /// # Errors
    /// The sweep was begun by another version.
    pub fn check_engine(&self) -> Result<(), Error> {
        if self.plan.engine == crate::ENGINE {
            return Ok(());
        }
        Err(Error::new(format!(
            "{}: version {} began this sweep and this is {}, whose figures may differ; go on with that version, or \
             begin in a new folder",
            self.folder.display(),
            self.plan.engine,
            crate::ENGINE
        )))
    }

    fn chunk_path(&self, chunk: u64) -> PathBuf {
        self.folder.join("chunks").join(format!("{chunk:06}.parquet"))
    }

    /// Opens a finished chunk. `None` if it is not there, or is not whole, or of another plan.
    fn chunk(&self, chunk: u64) -> Option<Reader> {
        let reader = Reader::open(&self.chunk_path(chunk)).ok()?;
        let points = self.plan.points_of(chunk);
        let ours = reader.head().note("schedlab.plan") == Some(&self.fingerprint);
        (ours && reader.rows() == points.end - points.start).then_some(reader)
    }

    /// Whether a chunk is finished, and how many of its points failed.
    pub fn is_done(&self, chunk: u64) -> Option<u64> {
        failed(&self.chunk(chunk)?)
    }

    /// Writes the bytes of a finished chunk to its file.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn put(&self, chunk: u64, bytes: &[u8]) -> Result<(), Error> {
        let path = self.chunk_path(chunk);
        let folder = path.parent().expect("inside the folder");
        let written = fs::create_dir_all(folder).and_then(|()| write_beside(&path, bytes));
        written.map_err(|error| Error::file(&path, &error))?;
        for part in self.parts_of(chunk) {
            let _ = fs::remove_file(part);
        }
        Ok(())
    }

    /// Stores the finished points of an unfinished chunk.
    pub(crate) fn put_part(&self, chunk: u64, points: &[(String, Vec<Figure>)]) -> Result<(), Error> {
        let path = self.folder.join("parts").join(format!("{chunk:06}-{}.txt", unique()));
        let mut text = String::new();
        for (id, figures) in points {
            text += &format!("point {id}\n{}end\n", point_text::lines(figures));
        }
        let made = fs::create_dir_all(path.parent().expect("inside the folder"));
        made.and_then(|()| write_beside(&path, text.as_bytes())).map_err(|error| Error::file(&path, &error))
    }

    /// The finished points of an unfinished chunk, by id.
    pub(crate) fn part(&self, chunk: u64) -> BTreeMap<String, Vec<Figure>> {
        let mut points = BTreeMap::new();
        for path in self.parts_of(chunk) {
            let text = fs::read_to_string(path).unwrap_or_default();
            for point in text.split_inclusive("\nend\n") {
                let Some((head, rest)) = point.split_once('\n') else { continue };
                let (Some(id), Some(lines)) = (head.strip_prefix("point "), rest.strip_suffix("end\n"))
                else {
                    continue;
                };
                if let Some(figures) = lines.lines().map(point_text::figure).collect() {
                    points.insert(id.to_owned(), figures);
                }
            }
        }
        points
    }

    fn parts_of(&self, chunk: u64) -> Vec<PathBuf> {
        let begins = format!("{chunk:06}-");
        let entries = fs::read_dir(self.folder.join("parts")).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&begins));
        let mut paths: Vec<PathBuf> = ours.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }

    /// How far it is.
    pub fn status(&self) -> Status {
        let mut status = Status {
            points: self.plan.points(),
            done: 0,
            in_parts: 0,
            failed: 0,
            bytes: 0,
            damaged: Vec::new(),
        };
        for chunk in 0..self.plan.chunks() {
            let path = self.chunk_path(chunk);
            match self.chunk(chunk) {
                Some(reader) => {
                    status.done += reader.rows();
                    status.failed += failed(&reader).unwrap_or(0);
                    status.bytes += fs::metadata(&path).map_or(0, |meta| meta.len());
                }
                None if path.exists() => status.damaged.push(path),
                None => status.in_parts += self.part(chunk).len() as u64,
            }
        }
        status
    }

    /// The finished chunks, one table after the other.
    ///
    /// # Errors
    /// Errors of `take`, and a damaged file.
    pub fn each(&self, mut take: impl FnMut(Table) -> Result<(), Error>) -> Result<(), Error> {
        for chunk in 0..self.plan.chunks() {
            if let Some(reader) = self.chunk(chunk) {
                for group in 0..reader.groups() {
                    take(reader.group(group)?)?;
                }
            }
        }
        Ok(())
    }

    /// The columns of all finished chunks together.
    pub fn columns(&self) -> Table {
        let mut all = Table::default();
        let mut measures: Vec<String> = Vec::new();
        for head in (0..self.plan.chunks()).filter_map(|chunk| Some(self.chunk(chunk)?.head())) {
            for line in head.note("schedlab.measures").unwrap_or_default().lines() {
                if !measures.iter().any(|known| known == line) {
                    measures.push(line.to_owned());
                }
            }
            for column in head.columns {
                match all.columns.iter_mut().find(|known| known.name == column.name) {
                    None => all.columns.push(column),
                    Some(known) if known.kind() == Kind::Int && column.kind() == Kind::Float => {
                        *known = column
                    }
                    Some(_) => {}
                }
            }
        }
        all.notes = vec![
            ("schedlab.engine".into(), self.plan.engine.clone()),
            ("schedlab.plan".into(), self.fingerprint.clone()),
            ("schedlab.measures".into(), measures.join("\n")),
        ];
        all
    }

    /// Writes all finished rows into one file, in the order of the points, and returns their number.
    ///
    /// # Errors
    /// What cannot be read or written.
    pub fn gather(&self, path: &Path) -> Result<u64, Error> {
        let beside = beside(path);
        let all = self.columns();
        if all.columns.is_empty() {
            return Err(Error::new(format!("{}: no chunk is finished yet", self.folder.display())));
        }
        let columns = all.columns.iter().map(|column| (column.name.clone(), column.kind())).collect();
        let write = || -> Result<u64, Error> {
            let mut writer = Writer::create(&beside, columns, &all.notes)?;
            let mut rows = 0;
            self.each(|table| {
                rows += table.rows as u64;
                Ok(writer.write(&table)?)
            })?;
            writer.finish()?;
            fs::rename(&beside, path).map_err(|error| Error::file(path, &error))?;
            Ok(rows)
        };
        write().inspect_err(|_| drop(fs::remove_file(&beside)))
    }

    /// Up to `most` failed points, with the error of each.
    ///
    /// # Errors
    /// A damaged file.
    pub fn failures(&self, most: usize) -> Result<Vec<(u64, String)>, Error> {
        let mut found = Vec::new();
        for reader in (0..self.plan.chunks()).filter_map(|chunk| self.chunk(chunk)) {
            if failed(&reader) == Some(0) {
                continue;
            }
            for group in 0..reader.groups() {
                let table = reader.group(group)?;
                let (Some(points), Some(errors)) = (table.column("point"), table.column("error")) else {
                    continue;
                };
                for row in 0..table.rows {
                    if let (Values::Int(points), Cell::Text(error)) = (&points.values, errors.cell(row)) {
                        found.push((points[row].unwrap_or(0) as u64, error));
                        if found.len() == most {
                            return Ok(found);
                        }
                    }
                }
            }
        }
        Ok(found)
    }
}

/// How many points of a file failed.
fn failed(reader: &Reader) -> Option<u64> {
    reader.head().note("schedlab.failed")?.parse().ok()
}

/// A temporary name beside a file.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", unique()))
}

/// Writes a file under a temporary name and renames it.
pub(crate) fn write_beside(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = beside(path);
    let write = || {
        fs::write(&beside, bytes)?;
        fs::rename(&beside, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// A name that no other process writing to the same folder uses.
fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{}-{now:x}-{count}", std::process::id())
}
