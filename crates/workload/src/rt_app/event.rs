//! One event of a phase: a key, recognised by its prefix, with its value.

use schedlab_units::Duration;

use crate::tree::{Entry, File, Kind, Object, Position};
use crate::{Pattern, WorkloadError};

/// An event with the key and the place it was read from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    pub key: String,
    pub at: Position,
    pub what: What,
}

/// The action. Resources are still names.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    Run(Duration),
    Runtime(Duration),
    Sleep(Duration),
    Timer { timer: String, period: Duration, absolute: bool },
    Lock(String),
    Unlock(String),
    Wait { cond: String, mutex: String },
    Sync { cond: String, mutex: String },
    Signal(String),
    Broadcast(String),
    Barrier(String),
    Suspend(String),
    Resume(String),
    SemPost(String),
    SemWait(String),
    Mem(u64),
    MemRun(MemRun),
    IoRun(u64),
    Yield,
    Fork(String),
}

/// A pass over a buffer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MemRun {
    /// The buffer's name; `None` is the thread's own.
    pub buffer: Option<String>,
    pub size: u64,
    pub pattern: Pattern,
    pub read: u64,
    pub write: u64,
    pub stride: u32,
}

/// Prefixes of event keys. The first match decides, so if one is a prefix of another the longer comes first.
const PREFIXES: &[&str] = &[
    "runtime", "run", "sleep", "memrun", "mem", "iorun", "lock", "unlock", "signal", "broad", "wait", "sync",
    "barrier", "timer", "resume", "suspend", "yield", "fork", "sem_post", "sem_wait",
];

/// The length that -1 stands for: more than an hour.
const ENDLESS: Duration = Duration::micros(u32::MAX as u64);

/// The kind of event a key stands for, if any.
pub(super) fn kind(key: &str) -> Option<&'static str> {
    PREFIXES.iter().find(|prefix| key.starts_with(*prefix)).copied()
}

impl Event {
    /// Reads the event of a task named `task`.
    pub fn read(file: File, entry: &Entry, kind: &str, task: &str) -> Result<Event, WorkloadError> {
        let us = || file.count(entry).map(|us| Duration::micros(us.into()));
        let name = || file.string(entry).map(str::to_string);
        // rt-app converts -1 to its unsigned type: the thread runs until the end of the use case.
        let endless = || {
            let us = file.int(entry, -1..=i64::from(i32::MAX))?;
            Ok(if us < 0 { ENDLESS } else { Duration::micros(us as u64) })
        };
        let what = match kind {
            "run" => What::Run(endless()?),
            "runtime" => What::Runtime(endless()?),
            "sleep" => What::Sleep(us()?),
            "mem" => What::Mem(file.count(entry)?.into()),
            "iorun" => What::IoRun(file.count(entry)?.into()),
            "memrun" => What::MemRun(memrun(file, entry)?),
            "lock" => What::Lock(name()?),
            "unlock" => What::Unlock(name()?),
            "signal" => What::Signal(name()?),
            "broad" => What::Broadcast(name()?),
            "wait" | "sync" => {
                let (cond, mutex) = cond_and_mutex(file, entry)?;
                if kind == "wait" { What::Wait { cond, mutex } } else { What::Sync { cond, mutex } }
            }
            "barrier" => What::Barrier(name()?),
            "timer" => timer(file, entry)?,
            "resume" => What::Resume(name()?),
            // workgen inserts the task's name if the value is missing or empty.
            "suspend" => match &entry.value.kind {
                Kind::Absent => What::Suspend(task.to_string()),
                Kind::String(name) if name.is_empty() => What::Suspend(task.to_string()),
                _ => What::Suspend(name()?),
            },
            "yield" => What::Yield,
            "fork" => What::Fork(name()?),
            "sem_post" => What::SemPost(name()?),
            "sem_wait" => What::SemWait(name()?),
            _ => unreachable!("\"{kind}\" is not the beginning of an event"),
        };
        Ok(Event { key: entry.key.clone(), at: entry.at, what })
    }

    /// The number that rt-app's markers give this type of event.
    pub fn type_number(&self) -> u32 {
        match &self.what {
            What::Signal(_) => 3,
            What::Broadcast(_) => 4,
            What::Sleep(_) => 5,
            What::Run(_) => 6,
            What::Sync { .. } => 7,
            What::Lock(_) => 8,
            What::Unlock(_) => 9,
            What::Wait { .. } => 2,
            What::Timer { timer, .. } => 10 + u32::from(timer.starts_with("unique")),
            What::Suspend(_) => 12,
            What::Resume(_) => 13,
            What::Mem(_) => 14,
            What::IoRun(_) => 15,
            What::Runtime(_) => 16,
            What::Yield => 17,
            What::Barrier(_) => 18,
            What::Fork(_) => 19,
            What::SemPost(_) => 20,
            What::SemWait(_) => 21,
            What::MemRun(_) => 22,
        }
    }
}

fn cond_and_mutex(file: File, entry: &Entry) -> Result<(String, String), WorkloadError> {
    let object = Object::new(file, &entry.value, format!("\"{}\"", entry.key))?;
    object.only(&["ref", "mutex"])?;
    let or_unknown = |name: Option<&str>| name.unwrap_or("unknown").to_string();
    Ok((or_unknown(object.string("ref")?), or_unknown(object.string("mutex")?)))
}

fn timer(file: File, entry: &Entry) -> Result<What, WorkloadError> {
    let object = Object::new(file, &entry.value, format!("\"{}\"", entry.key))?;
    object.only(&["ref", "period", "mode"])?;
    let absolute = match object.string("mode")? {
        None | Some("relative") => false,
        Some("absolute") => true,
        Some(mode) => {
            return Err(file.bad(entry.at, "mode", format!("\"{mode}\" is neither relative nor absolute")));
        }
    };
    let timer = object.string("ref")?.unwrap_or("unknown").to_string();
    let period = Duration::micros(object.count("period")?.unwrap_or(0).into());
    Ok(What::Timer { timer, period, absolute })
}

fn memrun(file: File, entry: &Entry) -> Result<MemRun, WorkloadError> {
    let object = Object::new(file, &entry.value, format!("\"{}\"", entry.key))?;
    object.only(&["type", "size", "count", "stride", "pattern", "ref"])?;
    let needed = |key: &str| file.bad(entry.at, &entry.key, format!("\"{key}\" is missing"));
    let count = u64::from(object.count("count")?.ok_or_else(|| needed("count"))?);
    let size = u64::from(object.count("size")?.ok_or_else(|| needed("size"))?);
    let stride = object.count("stride")?.unwrap_or(64);
    let random = match object.string("pattern")? {
        None | Some("random") => true,
        Some("sequential") => false,
        Some(other) => {
            return Err(file.bad(
                entry.at,
                "pattern",
                format!("\"{other}\" is neither random nor sequential"),
            ));
        }
    };
    let plain = if random { Pattern::Random } else { Pattern::Sequential };
    let chase = if random { Pattern::Chase } else { Pattern::ChaseSequential };
    let (pattern, read, write) = match object.string("type")?.ok_or_else(|| needed("type"))? {
        "read" => (plain, count, 0),
        "write" => (plain, 0, count),
        "chase" => (chase, count * u64::from(stride), 0),
        other => {
            return Err(file.bad(entry.at, "type", format!("\"{other}\" is not one of read, write, chase")));
        }
    };
    Ok(MemRun { buffer: object.string("ref")?.map(str::to_string), size, pattern, read, write, stride })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_how_they_begin() {
        let cases = [
            ("run0", Some("run")),
            ("run_big", Some("run")),
            ("runtime1", Some("runtime")),
            ("memrun", Some("memrun")),
            ("memory", Some("mem")),
            ("iorun", Some("iorun")),
            ("unlock-a", Some("unlock")),
            ("lock-a", Some("lock")),
            ("broadcast", Some("broad")),
            ("sem_post2", Some("sem_post")),
            ("loop", None),
            ("priority", None),
            ("sem", None),
        ];
        for (key, expected) in cases {
            assert_eq!(kind(key), expected, "{key}");
        }
    }
}
