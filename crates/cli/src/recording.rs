//! A recording that the user named: opened whatever its format, read with progress.
//!
//! What was lost and what could not be understood is told on standard error when
//! the reading is over, so that figures are not taken for more than they are.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use schedlab::topology::{Topology, TopologyError};
use schedlab::trace::read::{self, Record, Summary};
use schedlab::trace::{Event, Kind, Sink};

use crate::error::Error;
use crate::progress::Progress;

/// A recording about to be read.
pub struct Recording {
    name: String,
    reader: read::Reader,
    /// Read already, because text says only with it how many CPUs there are.
    first: Option<Result<Record, read::Error>>,
    /// The furthest byte that was read, and how many there are.
    place: Arc<AtomicU64>,
    size: u64,
    machine: Option<Limit>,
}

/// The machine on which a recording is to be understood.
struct Limit {
    name: String,
    nr_cpus: usize,
}

/// Records between two looks at the progress.
const LOOK_EVERY: u64 = 1 << 14;

impl Recording {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Recording, Error> {
        let name = path.display().to_string();
        let file = if name == "-" { standard_input() } else { File::open(path) };
        let file = file.map_err(|error| Error::file(path, &error))?;
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        let place = Arc::new(AtomicU64::new(0));
        let input = Watched { file, at: 0, place: Arc::clone(&place) };
        let mut reader = read::open(input, tempfile::tempfile).map_err(|error| in_file(&name, &error))?;
        let first = reader.next();
        if first.is_none() {
            return Err(no_event(&name));
        }
        Ok(Recording { name, reader, first, place, size, machine: None })
    }

    /// How many CPUs the machine had, if the recording says.
    pub fn nr_cpus(&self) -> Option<u16> {
        self.reader.nr_cpus().and_then(|nr_cpus| u16::try_from(nr_cpus).ok())
    }

    /// The machine it was made on, if the recording says.
    pub fn machine(&self) -> Option<Result<Topology, TopologyError>> {
        self.reader.machine(&self.name)
    }

    /// Refuses events on CPUs that this machine does not have.
    pub fn on_machine(self, name: &str, nr_cpus: usize) -> Recording {
        Recording { machine: Some(Limit { name: name.to_owned(), nr_cpus }), ..self }
    }

    /// Feeds every event to a sink, until `stop` says that nobody wants more.
    pub fn feed(mut self, sink: &mut impl Sink, stop: impl Fn() -> bool) -> Result<(), Error> {
        let progress = Progress::of_bytes(&format!("reading {}", self.name));
        let mut summary = Summary::default();
        let mut next = self.first.take();
        let mut count = 0u64;
        while let Some(record) = next.take().or_else(|| self.reader.next()) {
            if count.is_multiple_of(LOOK_EVERY) {
                progress.at(self.place.load(Ordering::Relaxed) as usize, self.size as usize);
            }
            count += 1;
            let record = record.map_err(|error| in_file(&self.name, &error))?;
            summary.count(&record);
            if let Record::Event(event) = record {
                self.fits(&event)?;
                sink.event(&event);
            }
            if stop() {
                return Ok(());
            }
        }
        drop(progress);
        warn(&self.name, &summary);
        if summary.events == 0 {
            return Err(no_event(&self.name));
        }
        Ok(())
    }
}

impl Recording {
    /// Whether the machine has the CPUs that an event names.
    fn fits(&self, event: &Event) -> Result<(), Error> {
        let Some(Limit { name, nr_cpus }) = &self.machine else { return Ok(()) };
        let target = match event.kind {
            Kind::SchedWakeup { target_cpu, .. } | Kind::SchedWakeupNew { target_cpu, .. } => target_cpu,
            Kind::SchedMigrateTask { dest_cpu, .. } => dest_cpu,
            _ => event.cpu,
        };
        let cpu = event.cpu.max(target);
        if cpu.index() < *nr_cpus {
            return Ok(());
        }
        let place =
            self.reader.place().map_or_else(|| format!("at {}", event.time), |place| place.to_string());
        Err(Error::new(format!(
            "{}: {place}: CPU {cpu} is not in machine {name} (0-{}); name the machine that was recorded with \
             --machine, or the folder of its topology.txt with --facts",
            self.name,
            nr_cpus - 1
        )))
    }
}

fn no_event(name: &str) -> Error {
    Error::new(format!("{name}: there is no event in it; was the recording started?"))
}

fn in_file(name: &str, error: &read::Error) -> Error {
    Error::new(format!("{name}: {error}"))
}

/// Tells what is missing.
fn warn(name: &str, summary: &Summary) {
    if summary.losses > 0 {
        let lost = match summary.lost {
            0 => "an unknown number of events was lost".to_owned(),
            lost => format!("{lost} events were lost"),
        };
        eprintln!(
            "schedlab: {name}: {lost} in recording, in {} places; counts and times around them are not to be trusted, \
             and a larger buffer loses fewer",
            summary.losses
        );
    }
    if let Some(gap) = summary.first_gaps.first() {
        eprintln!("schedlab: {name}: {} parts were not understood; the first: {gap}", summary.gaps);
    }
}

/// Standard input as a file, because most formats are not read from front to end.
fn standard_input() -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// A file that tells how far it was read.
struct Watched {
    file: File,
    at: u64,
    place: Arc<AtomicU64>,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.at += read as u64;
        self.place.fetch_max(self.at, Ordering::Relaxed);
        Ok(read)
    }
}

impl Seek for Watched {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = self.file.seek(to)?;
        Ok(self.at)
    }
}
