//! The kernel's tracing, through a separate instance.
//!
//! An instance has its own buffers, events and clock, so it does not affect what the user traces at the same
//! time. It is removed when the recording ends. The next recording removes an instance that a killed one
//! left.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::events::{EVENTS, INDISPENSABLE};
use super::host::Host;
use crate::error::Error;

/// The name of our instance.
const NAME: &str = "schedlab";

/// Finds tracefs, as a path of the host.
pub fn find(host: &Host) -> Result<String, Error> {
    let place =
        host.mounted("tracefs").or_else(|| host.mounted("debugfs").map(|place| format!("{place}/tracing")));
    let Some(place) = place.filter(|place| host.path(place).join("events").is_dir()) else {
        return Err(Error::new(
            "tracefs is not mounted, so nothing can be recorded; `mount -t tracefs tracefs /sys/kernel/tracing` \
             mounts it, outside of containers and where the kernel has CONFIG_FTRACE",
        ));
    };
    if host.path(&place).join("events").join(INDISPENSABLE).is_dir() {
        Ok(place)
    } else {
        Err(Error::new(format!(
            "{place} has no {INDISPENSABLE}: the kernel was built without its tracepoints"
        )))
    }
}

/// Our own part of the tracing.
pub struct Instance<'a> {
    host: &'a Host,
    /// A path of the host.
    pub place: String,
    /// The events that are recorded.
    pub events: Vec<String>,
    /// The kernel releases it however the recording ends, so a later recording can detect that this one is
    /// over.
    _lock: Option<File>,
}

/// Locks an instance; `None` if another process holds the lock.
pub fn lock(path: &Path) -> Option<File> {
    let folder = File::open(path).ok()?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(folder)
}

impl<'a> Instance<'a> {
    /// Creates the instance, with the given KiB per CPU, and selects events; nothing is recorded yet.
    pub fn new(
        host: &'a Host,
        tracefs: &str,
        buffer_kb: u64,
        more: &[String],
    ) -> Result<Instance<'a>, Error> {
        let place = format!("{tracefs}/instances/{NAME}");
        let path = host.path(&place);
        if path.exists() {
            if lock(&path).is_none() {
                return Err(Error::new(format!(
                    "{place} is there already, as another recording runs; wait until it is over"
                )));
            }
            say!("{place} is left from a recording that was killed, and still traced; it is removed");
            let _ = fs::write(path.join("tracing_on"), "0");
            (host.remove_instance)(&path).map_err(|error| {
                Error::new(format!("{place}: {error}; something else reads it, end that and `rmdir {place}`"))
            })?;
        }
        (host.make_instance)(&path).map_err(|error| {
            let hint = "a locked-down kernel or a container without the right forbids it";
            Error::new(format!("{place}: {error}; {hint}"))
        })?;
        let lock = lock(&path);
        let mut instance = Instance { host, place, events: Vec::new(), _lock: lock };
        instance.write("tracing_on", "0")?;
        instance.write("buffer_size_kb", &buffer_kb.to_string())?;
        instance.write("trace_clock", "mono")?;
        for event in EVENTS {
            if instance.file(&format!("events/{event}")).is_dir() {
                instance.choose(event)?;
            }
        }
        for wanted in more {
            let found = instance.tracepoints(wanted);
            if found.is_empty() {
                return Err(Error::new(format!(
                    "--events {wanted}: this kernel has no such tracepoint; {tracefs}/available_events lists them"
                )));
            }
            for event in found {
                instance.choose(&event)?;
            }
        }
        Ok(instance)
    }

    /// The tracepoints selected by `irq:irq_handler_entry`, or by `irq:softirq_*`, `irq:*` or `irq`, in order.
    fn tracepoints(&self, wanted: &str) -> Vec<String> {
        let (system, name) = wanted.split_once([':', '/']).unwrap_or((wanted, "*"));
        let fits = |event: &String| match name.strip_suffix('*') {
            Some(begin) => event.starts_with(begin),
            None => event == name,
        };
        let names = self.host.names(&format!("{}/events/{system}", self.place)).into_iter().filter(fits);
        let events = names.map(|event| format!("{system}/{event}"));
        events.filter(|event| self.file(&format!("events/{event}/enable")).is_file()).collect()
    }

    fn choose(&mut self, event: &str) -> Result<(), Error> {
        self.write(&format!("events/{event}/enable"), "1")?;
        if !self.events.iter().any(|chosen| chosen == event) {
            self.events.push(event.to_owned());
        }
        Ok(())
    }

    /// Starts recording.
    pub fn start(&self) -> Result<(), Error> {
        self.write("tracing_on", "1")
    }

    /// Stops recording; the recorded data can still be read.
    pub fn stop(&self) -> Result<(), Error> {
        self.write("tracing_on", "0")
    }

    /// Where a file of the instance is.
    pub fn file(&self, name: &str) -> PathBuf {
        self.host.path(&self.place).join(name)
    }

    /// The text of a file of the instance.
    pub fn text(&self, name: &str) -> Option<String> {
        self.host.text(&format!("{}/{name}", self.place))
    }

    /// The CPUs that have a buffer.
    pub fn cpus(&self) -> Vec<usize> {
        self.host
            .numbered(&format!("{}/per_cpu", self.place), "cpu")
            .into_iter()
            .map(|(cpu, _)| cpu)
            .collect()
    }

    fn write(&self, name: &str, value: &str) -> Result<(), Error> {
        let path = self.file(name);
        fs::write(&path, value)
            .map_err(|error| Error::new(format!("{}: {error}, writing {value}", path.display())))
    }
}

impl Drop for Instance<'_> {
    fn drop(&mut self) {
        let stopped = self.stop();
        if let Err(error) = (self.host.remove_instance)(&self.host.path(&self.place)) {
            let why = stopped.err().map_or(String::new(), |error| format!("; {error}"));
            say!("{}: {error}{why}; remove it with rmdir", self.place);
        }
    }
}
