//! What a user names as a recording: a file, or a folder that contains one.
//!
//! Facts about its machine and kernel may be beside a recording: `facts/`, in the folder of the recording or
//! the one above, and the recorded command in `cmd.txt`. A folder of a machine contains `facts/` and one
//! folder per recording. Facts need not name the machine: the user may name it, and the other facts are still
//! used.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use schedlab::recording::FactTexts;
use schedlab::topology::Topology;

use crate::error::Error;
use crate::machine;
use crate::recording::{Recording, is_read_once};

/// Names of recordings in a folder, without the suffix of compression.
const NAMES: [&str; 4] = ["trace.dat", "trace.txt", "perf.data", "trace.pftrace"];

/// Suffixes of compression.
const ENDINGS: [&str; 3] = ["", ".gz", ".zst"];

/// Names of files beside a recording that describe its machine.
const DESCRIPTIONS: [&str; 6] =
    ["lscpu.txt", "lscpu-p.txt", "topology.txt", "sysfs", "sysfs.tar", "sysfs.tar.gz"];

/// The file of facts that describes the machine.
pub const MACHINE: &str = "topology.txt";

/// A recording and the files beside it.
pub struct Recorded {
    /// The trace.
    pub trace: PathBuf,
    /// Folder of facts: one that includes the machine, otherwise one with other facts.
    pub facts: Option<PathBuf>,
    /// File with the command.
    pub command: Option<PathBuf>,
    /// Opened for queries, and not yet read: a compressed file is decompressed for it.
    opened: RefCell<Option<Recording>>,
    /// Whether it was handed over for reading.
    given: Cell<bool>,
}

impl Recorded {
    /// The recordings that a path names: one, or all those of a machine, by name.
    pub fn find(path: &Path) -> Result<Vec<Recorded>, Error> {
        if !path.is_dir() {
            if !is_read_once(path) {
                // Checked before anything is reported about the facts beside it.
                path.metadata().map_err(|error| Error::file(path, &error))?;
            }
            return Ok(vec![Recorded::of(path.to_path_buf())]);
        }
        if let Some(trace) = trace_in(path) {
            return Ok(vec![Recorded::of(trace)]);
        }
        let folders = std::fs::read_dir(path).map_err(|error| Error::file(path, &error))?;
        let mut folders: Vec<PathBuf> = folders.filter_map(|entry| Some(entry.ok()?.path())).collect();
        folders.sort();
        let traces: Vec<PathBuf> = folders.iter().filter_map(|folder| trace_in(folder)).collect();
        if traces.is_empty() {
            return Err(Error::new(format!(
                "{}: there is no recording in it, nor one folder below; it is looked for as {}, also with .gz \
                 or .zst; name the file",
                path.display(),
                NAMES.join(", ")
            )));
        }
        Ok(traces.into_iter().map(Recorded::of).collect())
    }

    fn of(trace: PathBuf) -> Recorded {
        let folder = match trace.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let above = match folder.parent() {
            Some(above) if folder.file_name().is_some() => above.join("facts"),
            _ => folder.join("../facts"),
        };
        let facts = [folder.join("facts"), above];
        let has = |facts: &&PathBuf, name: &str| facts.join(name).is_file();
        let facts = facts
            .iter()
            .find(|facts| has(facts, MACHINE))
            .or_else(|| facts.iter().find(|facts| FactTexts::names().any(|name| has(facts, name))))
            .cloned();
        let command = Some(folder.join("cmd.txt")).filter(|file| file.is_file());
        Recorded { trace, facts, command, opened: RefCell::default(), given: Cell::default() }
    }

    /// Opens the recording for reading, unless it is open.
    pub fn open(&self) -> Result<Recording, Error> {
        self.given.set(true);
        self.opened.take().map_or_else(|| Recording::open(&self.trace), Ok)
    }

    /// Opens it for a command that shows what perf shows, without decisions.
    pub fn open_without_decisions(&self) -> Result<Recording, Error> {
        self.given.set(true);
        self.opened.take().map_or_else(|| Recording::open_without_decisions(&self.trace), Ok)
    }

    /// Queries the recording; one that can be read only once has no answer after it was read.
    fn ask<T>(&self, what: impl FnOnce(&Recording) -> Option<T>) -> Result<Option<T>, Error> {
        if self.given.get() && is_read_once(&self.trace) {
            return Ok(None);
        }
        let mut opened = self.opened.borrow_mut();
        let recording = match opened.take() {
            Some(recording) => recording,
            None => Recording::open(&self.trace)?,
        };
        let told = what(&recording);
        *opened = Some(recording);
        Ok(told)
    }

    /// The release of the recorded kernel, if the recording itself contains it.
    pub fn release(&self) -> Result<Option<String>, Error> {
        self.ask(|recording| recording.release().map(str::to_owned))
    }

    /// The single recording that a path names.
    pub fn one(path: &Path) -> Result<Recorded, Error> {
        let mut found = Recorded::find(path)?;
        match found.len() {
            1 => Ok(found.remove(0)),
            several => Err(Error::new(format!(
                "{}: there are {several} recordings in it, and one is wanted; name one of the folders in it",
                path.display()
            ))),
        }
    }

    /// A file beside the recording that describes the machine: `lscpu -p` text or a saved sysfs.
    fn description(&self) -> Option<PathBuf> {
        let mut beside = self.trace.clone().into_os_string();
        beside.push(".lscpu");
        let folder = self.trace.parent().unwrap_or(Path::new(""));
        let others = DESCRIPTIONS.iter().map(|name| folder.join(name));
        std::iter::once(PathBuf::from(beside)).chain(others).find(|path| path.exists())
    }

    /// The machine by the files beside the recording or by its content; `None` if neither describes it.
    pub fn machine(&self) -> Result<Option<Topology>, Error> {
        if let Some(facts) = self.facts.as_ref().filter(|facts| facts.join(MACHINE).is_file()) {
            return machine::folder(facts).map(Some);
        }
        if let Some(path) = self.description() {
            return Ok(Some(machine::machine(&path.display().to_string())?.topology));
        }
        Ok(self.ask(Recording::machine)?.transpose()?)
    }
}

fn trace_in(folder: &Path) -> Option<PathBuf> {
    let names = NAMES.iter().flat_map(|name| ENDINGS.map(|ending| format!("{name}{ending}")));
    // A folder written by perf has a file for each thread beside the first.
    let of_perf = Some(folder.join("data")).filter(|_| folder.join("data.0").is_file());
    names.map(|name| folder.join(name)).chain(of_perf).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use schedlab::trace::NullSink;

    use super::*;

    #[test]
    fn a_folder_stands_for_the_recordings_in_it() {
        let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
        let one = Recorded::find(&traces.join("6.1/1x1x8/fork")).unwrap();
        assert_eq!(one.len(), 1);
        assert!(one[0].trace.ends_with("fork/trace.txt.gz") && one[0].command.is_some());
        assert!(one[0].facts.as_ref().unwrap().ends_with("1x1x8/facts"));
        let all = Recorded::find(&traces.join("6.1/1x1x8")).unwrap();
        assert_eq!(all.len(), 13);
        assert!(all[0].trace.ends_with("barrier/trace.txt.gz"), "by name");
        let none = Recorded::find(&traces.join("6.1/1x1x8/facts")).err().expect("an error").to_string();
        assert!(none.contains("there is no recording in it"), "{none}");
    }

    #[test]
    fn a_folder_of_perf_stands_for_the_file_in_it_that_says_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("data"), "").unwrap();
        assert!(Recorded::find(folder.path()).is_err());
        std::fs::write(folder.path().join("data.0"), "").unwrap();
        assert_eq!(Recorded::one(folder.path()).unwrap().trace, folder.path().join("data"));
    }

    #[test]
    fn a_recording_is_opened_once_to_be_asked_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("perf.data.gz");
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/data/perf-sched.data.gz");
        std::fs::copy(from, &file).unwrap();
        let recorded = Recorded::one(&file).unwrap();
        assert!(recorded.machine().unwrap().is_some());
        std::fs::remove_file(&file).unwrap();
        assert_eq!(recorded.release().unwrap(), None, "that was taken out of the file");
        assert!(recorded.open().unwrap().feed(&mut NullSink, || false).unwrap().wakings);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_asked_before_it_is_read() {
        use std::os::fd::AsRawFd;

        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/data/perf-sched.data.gz");
        let bytes = std::fs::read(from).unwrap();
        let (reader, mut writer) = std::io::pipe().unwrap();
        let written = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &bytes));
        let recorded = Recorded::one(Path::new(&format!("/dev/fd/{}", reader.as_raw_fd()))).unwrap();
        assert!(recorded.machine().unwrap().is_some());
        assert!(recorded.open().unwrap().feed(&mut NullSink, || false).unwrap().wakings);
        assert!(recorded.machine().unwrap().is_none(), "it is gone");
        written.join().unwrap().unwrap();
    }
}
