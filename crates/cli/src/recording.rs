//! A recording that the user named: opened whatever its format, read with progress.
//!
//! Lost events and parts that could not be parsed are reported on standard error at the end of the reading, so that
//! figures are not trusted more than they deserve.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use schedlab::sched::{Feature, Kernel};
use schedlab::topology::{CpuId, CpuMask, Topology, TopologyError};
use schedlab::trace::read::{self, Record, Summary};
use schedlab::trace::{Event, IdleExits, Kind, LateStates, Sink, Switching};
use schedlab::units::{Duration, Time};
use serde::Serialize;

use crate::count::{are_switches, counted, switches, were};
use crate::error::Error;
use crate::files::{Stream, Waiting};
use crate::progress::Progress;

/// A recording about to be read.
pub struct Recording {
    name: String,
    reader: read::Reader,
    /// Already read, because only the first record of a text shows the number of CPUs.
    first: Option<Result<Record, read::Error>>,
    /// The furthest byte read so far, and the total.
    place: Arc<AtomicU64>,
    size: u64,
    machine: Option<Limit>,
    /// Set for a kernel that reads states late.
    late: Option<LateStates>,
    /// Whether the command reports missing switches itself.
    counts_switches: bool,
    /// Whether an earlier reading has already reported its problems.
    is_repeated: bool,
}

/// The machine that events must fit.
struct Limit {
    name: String,
    nr_cpus: usize,
    /// The option that names it.
    option: &'static str,
}

/// The content of a recording, for commands that need certain events.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    switches: bool,
    /// Whether it has beginnings of wake-ups.
    pub wakings: bool,
    /// What is missing in it.
    pub missing: Missing,
    first: Option<Time>,
    last: Time,
    /// The CPUs that have events.
    cpus: Vec<bool>,
}

/// What is missing or wrong in a recording, so that figures are not trusted more than they deserve.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Missing {
    /// Number of lost events, if counted.
    pub lost_events: u64,
    /// Number of places where events were lost.
    pub losses: u64,
    /// Number of parts that could not be parsed.
    pub not_understood: u64,
    /// How often the clock goes back.
    pub clock_goes_back: u64,
    /// Number of switches that must be missing, as events show other tasks running than were switched to.
    pub unseen_switches: u64,
    /// Number of missing switches from idle that were restored where later events show them.
    pub restored_switches: u64,
    /// The same for the ends of wake-ups.
    pub restored_wakeups: u64,
}

impl Seen {
    /// Notes an event. Returns how far the clock went back.
    fn see(&mut self, event: &Event) -> Option<Duration> {
        match event.kind {
            Kind::SchedSwitch { .. } => self.switches = true,
            Kind::SchedWaking { .. } => self.wakings = true,
            _ => {}
        }
        let back = self.last.since(event.time);
        self.last = event.time;
        self.first.get_or_insert(event.time);
        let cpu = event.cpu.index();
        if cpu >= self.cpus.len() {
            self.cpus.resize(cpu + 1, false);
        }
        self.cpus[cpu] = true;
        (back > Duration::ZERO).then_some(back)
    }

    /// The extent: `events from 1.000000 to 2.500000 of CPUs 0-3`.
    pub fn extent(&self) -> String {
        let seconds =
            |time: Time| format!("{}.{:06}", time.0 / 1_000_000_000, time.0 % 1_000_000_000 / 1_000);
        let mut cpus = CpuMask::new(self.cpus.len());
        let seen = self.cpus.iter().enumerate().filter(|(_, seen)| **seen);
        seen.for_each(|(cpu, _)| cpus.set(CpuId(cpu as u16)));
        let noun = if cpus.weight() == 1 { "CPU" } else { "CPUs" };
        let (first, last) = (seconds(self.first.unwrap_or_default()), seconds(self.last));
        format!("events from {first} to {last} of {noun} {cpus}")
    }
}

/// Number of records between two progress reports.
const LOOK_EVERY: u64 = 1 << 14;

impl Recording {
    /// Opens a file or a pipe, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Recording, Error> {
        Recording::open_with(path, true)
    }

    /// The same without decisions, for commands that show what perf shows.
    pub fn open_without_decisions(path: &Path) -> Result<Recording, Error> {
        Recording::open_with(path, false)
    }

    fn open_with(path: &Path, decisions: bool) -> Result<Recording, Error> {
        let name = path.display().to_string();
        let file = if name == "-" {
            kept(path, || Ok(io::stdin().lock()))?
        } else if is_read_once(path) {
            kept(path, || File::open(path))?
        } else {
            File::open(path).map_err(|error| Error::file(path, &error))?
        };
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        let place = Arc::new(AtomicU64::new(0));
        let input = Watched { file, at: 0, place: Arc::clone(&place) };
        let mut reader = read::open(input, tempfile::tempfile).map_err(|error| in_file(&name, &error))?;
        if !decisions {
            reader.without_decisions();
        }
        let first = reader.next();
        if first.is_none() {
            return Err(no_event(&name));
        }
        Ok(Recording {
            name,
            reader,
            first,
            place,
            size,
            machine: None,
            late: None,
            counts_switches: false,
            is_repeated: false,
        })
    }

    /// Number of CPUs of the machine, if the recording contains it.
    pub fn nr_cpus(&self) -> Option<u16> {
        self.reader.nr_cpus().and_then(|nr_cpus| u16::try_from(nr_cpus).ok())
    }

    /// The recorded machine, if the recording describes it.
    pub fn machine(&self) -> Option<Result<Topology, TopologyError>> {
        self.reader.machine(&self.name)
    }

    /// The release of the recorded kernel, if the recording contains it.
    pub fn release(&self) -> Option<&str> {
        self.reader.release()
    }

    /// Refuses events on CPUs that this machine does not have; `option` is the option that names it.
    pub fn on_machine(self, name: &str, nr_cpus: usize, option: &'static str) -> Recording {
        Recording { machine: Some(Limit { name: name.to_owned(), nr_cpus, option }), ..self }
    }

    /// Interprets the events as this kernel writes them.
    pub fn of_kernel(self, kernel: &Kernel) -> Recording {
        Recording { late: (!kernel.has(Feature::SwitchStatePassed)).then(LateStates::default), ..self }
    }

    /// Lets the command report missing switches itself.
    pub fn whose_switches_are_counted(self) -> Recording {
        Recording { counts_switches: true, ..self }
    }

    /// Reads it once more: its problems have already been reported.
    pub fn once_more(self) -> Recording {
        Recording { is_repeated: true, ..self }
    }

    /// Feeds every event to a sink, until `stop` returns true.
    ///
    /// # Errors
    /// Nothing can be read, or it contains no switch, without which no analysis is possible.
    pub fn feed(mut self, sink: &mut impl Sink, stop: impl Fn() -> bool) -> Result<Seen, Error> {
        let progress = Progress::of_bytes(&format!("reading {}", self.name));
        let mut summary = Summary::default();
        let mut next = self.first.take();
        let mut count = 0u64;
        let mut seen = Seen::default();
        let mut back = Back::default();
        let mut switching = Switching::default();
        let mut exits = IdleExits::default();
        while let Some(record) = next.take().or_else(|| self.reader.next()) {
            if count.is_multiple_of(LOOK_EVERY) {
                progress.at(self.place.load(Ordering::Relaxed) as usize, self.size as usize);
            }
            count += 1;
            let record = record.map_err(|error| in_file(&self.name, &error))?;
            summary.count(&record);
            if let Record::Event(mut event) = record {
                self.fits(&event)?;
                switching.event(&mut event);
                if let Some(step) = seen.see(&event) {
                    back.count(step, || self.place_of(&event));
                }
                let mut pass = |event| exits.pass(event, |event| sink.take(event));
                match &mut self.late {
                    None => pass(event),
                    Some(late) => {
                        late.push(event);
                        std::iter::from_fn(|| late.pop(false)).for_each(pass);
                    }
                }
            } else if let Record::Lost(lost) = record {
                exits.lost();
                sink.lost(&lost);
            }
            if stop() {
                return Ok(seen);
            }
        }
        if let Some(mut late) = self.late.take() {
            std::iter::from_fn(|| late.pop(true))
                .for_each(|event| exits.pass(event, |event| sink.take(event)));
        }
        exits.end(|event| sink.take(event));
        drop(progress);
        seen.missing = Missing {
            lost_events: summary.lost,
            losses: summary.losses,
            not_understood: summary.gaps,
            clock_goes_back: back.count,
            unseen_switches: exits.unseen_switches(),
            restored_switches: exits.switches(),
            restored_wakeups: exits.wakeups(),
        };
        if !self.is_repeated {
            warn(&self.name, &summary, &back);
            tell_restored(&self.name, &seen.missing);
        }
        if !self.counts_switches && !self.is_repeated {
            tell_unseen_switches(&self.name, &seen.missing);
        }
        match summary.events {
            0 if summary.gaps > 0 => {
                Err(Error::new(format!("{}: there is no event in it that can be read", self.name)))
            }
            0 => Err(no_event(&self.name)),
            _ if !seen.switches => Err(Error::new(format!("{}: {NO_SWITCH}", self.name))),
            _ => Ok(seen),
        }
    }

    /// The place of an event: its line, or its time.
    fn place_of(&self, event: &Event) -> String {
        self.reader.place().map_or_else(|| format!("at {}", event.time), |place| place.to_string())
    }
}

impl Recording {
    /// Whether the machine has the CPUs that an event names.
    #[inline]
    fn fits(&self, event: &Event) -> Result<(), Error> {
        match &self.machine {
            None => Ok(()),
            Some(limit) => self.fits_machine(event, limit),
        }
    }

    fn fits_machine(&self, event: &Event, limit: &Limit) -> Result<(), Error> {
        let Limit { name, nr_cpus, option } = limit;
        let cpu = event.highest_cpu();
        if cpu.index() < *nr_cpus {
            return Ok(());
        }
        let place = self.place_of(event);
        Err(Error::new(format!(
            "{}: {place}: CPU {cpu} is not in machine {name} (0-{}); name the machine that was recorded with \
             {option}, or the folder of its topology.txt with --facts",
            self.name,
            nr_cpus - 1
        )))
    }
}

const NO_SWITCH: &str = "there is no sched_switch in it, so nothing shows how long tasks ran; record it again with \
                         `trace-cmd record -e sched_switch -e sched_waking -e sched_wakeup -e sched_wakeup_new \
                         -e sched_migrate_task -e sched_process_fork -e sched_process_exec -e sched_process_exit`";

fn no_event(name: &str) -> Error {
    Error::new(format!(
        "{name}: there is no event of a tracepoint in it; was the recording started, and were events of \
         the scheduler asked for (-e 'sched:*')?"
    ))
}

fn in_file(name: &str, error: &read::Error) -> Error {
    Error::new(format!("{name}: {error}"))
}

/// Where the clock goes back, which never happens in a single recording.
#[derive(Debug, Default)]
struct Back {
    count: u64,
    first: Option<(String, Duration)>,
}

impl Back {
    fn count(&mut self, step: Duration, place: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(|| (place(), step));
    }
}

/// Warns about what is missing.
fn warn(name: &str, summary: &Summary, back: &Back) {
    if let Some((place, step)) = &back.first {
        say!(
            "{name}: the clock goes back in {}, first by {step}, {place}; times and waits around \
             them are wrong. Are these several recordings in one, or times since the last event?",
            counted(back.count, "place")
        );
    }
    if summary.losses > 0 {
        let lost = match summary.lost {
            0 => "an unknown number of events was lost".to_owned(),
            lost => were(lost, "event") + " lost",
        };
        say!(
            "{name}: {lost} in recording, in {}; counts and times around them are not to be trusted, \
             and a larger buffer loses fewer",
            counted(summary.losses, "place")
        );
    }
    if let Some(gap) = summary.first_gaps.first() {
        let last = summary.last_gap.as_ref().filter(|last| *last != gap);
        let last = last.map_or_else(String::new, |last| format!("; the last: {last}"));
        let parts = were(summary.gaps, "part");
        say!("{name}: {parts} not understood; the first: {gap}{last}");
    }
}

fn tell_restored(name: &str, missing: &Missing) {
    if missing.restored_switches == 0 {
        return;
    }
    let wakeups = match missing.restored_wakeups {
        0 => String::new(),
        1 => " and the end of a wake-up".to_owned(),
        n => format!(" and the ends of {n} wake-ups"),
    };
    say!(
        "{name}: an idle task left no events; restored from later events: {} away from it{wakeups}",
        switches(missing.restored_switches)
    );
}

fn tell_unseen_switches(name: &str, missing: &Missing) {
    // In several merged recordings each CPU runs different tasks.
    if missing.unseen_switches == 0 || missing.clock_goes_back > 0 {
        return;
    }
    let why = match missing.losses {
        0 => ". Was one task recorded (perf record without -a), or were events filtered?",
        _ => "; they may be among those that were lost",
    };
    say!(
        "{name}: {} missing, as events show tasks that no switch let run: times and waits around them are \
         wrong{why}",
        are_switches(missing.unseen_switches)
    );
}

/// Whether a file can be read only once: standard input, a pipe.
pub fn is_read_once(path: &Path) -> bool {
    path == Path::new("-") || path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Stores a stream as a file, because most formats are not read sequentially. Input that does not begin like a
/// recording is refused at once: it may be endless.
fn kept<R: Read>(path: &Path, open: impl FnOnce() -> io::Result<R>) -> Result<File, Error> {
    let wrong = |error: io::Error| Error::file(path, &error);
    // Even opening a pipe waits for the other end.
    let waiting = Waiting::new(path);
    let mut stream = Stream::waited_for(waiting, open().map_err(wrong)?);
    let mut start = Vec::new();
    stream.by_ref().take(read::LOOK).read_to_end(&mut start).map_err(wrong)?;
    read::may_be_one(&start).map_err(|error| in_file(&path.display().to_string(), &error))?;
    let mut file = tempfile::tempfile().map_err(wrong)?;
    file.write_all(&start).and_then(|()| io::copy(&mut stream, &mut file)).map_err(wrong)?;
    file.seek(SeekFrom::Start(0)).map_err(wrong)?;
    Ok(file)
}

/// A file that reports how far it has been read.
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
