//! The `global` object: what holds for the whole use case.

use schedlab_topology::{CpuId, nearest};
use schedlab_units::Duration;

use super::sched::PolicyName;
use crate::WorkloadError;
use crate::tree::{File, Kind, Object, Position, Value};

/// The contents of `global`.
#[derive(Clone, Debug)]
pub(super) struct Global {
    pub duration: Option<Duration>,
    pub calibration: Calibration,
    pub default_policy: PolicyName,
    pub pi_enabled: bool,
    pub ftrace: Markers,
    /// The path with its place in the file, if it is not `/dev/null`.
    pub io_device: Option<(String, Position)>,
    pub mem_buffer_size: u64,
}

/// How lengths of `run` become work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calibration {
    /// They were measured on this CPU.
    Cpu(CpuId),
    /// They are done in loops of this many nanoseconds.
    NsPerLoop(u64),
}

/// Which markers are written into the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Markers {
    pub main: bool,
    pub task: bool,
    pub run_loop: bool,
    pub event: bool,
}

const KEYS: &[&str] = &[
    "duration",
    "calibration",
    "default_policy",
    "pi_enabled",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
    "frag",
    "fragment",
];

/// Keys that change what the real tool writes or locks, but not what its threads do.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("lock_pages", "pages are always resident here"),
    ("logdir", "rt-app's own log files are not written"),
    ("log_basename", "rt-app's own log files are not written"),
    ("log_size", "rt-app's own log files are not written"),
    ("gnuplot", "rt-app's plot files are not written"),
    ("cumulative_slack", "rt-app's own log files are not written"),
    ("frag", "it belonged to the AQuoSA scheduler"),
    ("fragment", "it belonged to the AQuoSA scheduler"),
];

impl Global {
    /// Reads the object, or takes the defaults if there is none.
    pub fn read(file: File, value: Option<&Value>, notes: &mut Vec<String>) -> Result<Global, WorkloadError> {
        let empty = Value { at: (1, 1), kind: Kind::Object(Vec::new()) };
        let object = Object::new(file, value.unwrap_or(&empty), "\"global\"".to_string())?;
        if let Some(entry) = object.get("spacing")? {
            return Err(file.refused(entry.at, "spacing", "use \"delay\" in each task"));
        }
        for entry in object.entries.iter().filter(|entry| !KEYS.contains(&entry.key.as_str())) {
            let nearest = nearest(&entry.key, KEYS.iter().copied());
            let meant = nearest.map_or_else(String::new, |key| format!("; did you mean \"{key}\"?"));
            notes.push(format!(
                "{}:{}: \"{}\" of \"global\" is not known, and ignored as rt-app does{meant}",
                file.0, entry.at.0, entry.key
            ));
        }
        for (key, why) in WITHOUT_EFFECT {
            if let Some(entry) = object.get(key)? {
                notes.push(format!("{}:{}: \"{key}\" has no effect: {why}", file.0, entry.at.0));
            }
        }
        for key in ["lock_pages", "gnuplot", "cumulative_slack"] {
            object.bool(key)?;
        }
        for key in ["logdir", "log_basename"] {
            object.string(key)?;
        }
        let seconds = object.read("duration", |entry| file.int(entry, -1..=i64::from(i32::MAX)))?;
        let io_device = object.read("io_device", |e| file.string(e).map(|path| (path.to_string(), e.at)))?;
        Ok(Global {
            duration: seconds.filter(|&s| s > 0).map(|s| Duration::secs(s as u64)),
            calibration: calibration(&object)?,
            default_policy: PolicyName::read(&object, "default_policy")?.unwrap_or(PolicyName::Other),
            pi_enabled: object.bool("pi_enabled")?.unwrap_or(false),
            ftrace: markers(&object, notes)?,
            io_device: io_device.filter(|(path, _)| path != "/dev/null"),
            mem_buffer_size: object.count("mem_buffer_size")?.map_or(4 << 20, u64::from),
        })
    }
}

fn calibration(object: &Object) -> Result<Calibration, WorkloadError> {
    let Some(entry) = object.get("calibration")? else { return Ok(Calibration::Cpu(CpuId(0))) };
    if let Kind::String(name) = &entry.value.kind {
        let cpu = name.strip_prefix("CPU").and_then(|number| number.parse().ok());
        let wrong = || object.file.bad(entry.value.at, "calibration", "a CPU is written like \"CPU0\"");
        return cpu.map(|cpu| Calibration::Cpu(CpuId(cpu))).ok_or_else(wrong);
    }
    let ns = object.file.int(entry, 0..=i64::from(i32::MAX))?;
    // rt-app takes 0 as "not given" and measures.
    Ok(if ns == 0 { Calibration::Cpu(CpuId(0)) } else { Calibration::NsPerLoop(ns as u64) })
}

fn markers(object: &Object, notes: &mut Vec<String>) -> Result<Markers, WorkloadError> {
    let all = Markers { main: true, task: true, run_loop: true, event: true };
    let Some(entry) = object.get("ftrace")? else { return Ok(Markers::default()) };
    let mut unwritten = |what: &str| {
        notes
            .push(format!("{}:{}: \"ftrace\": no \"{what}\" markers are written", object.file.0, entry.at.0));
    };
    if let Kind::Bool(on) = entry.value.kind {
        if on {
            unwritten("stats");
        }
        return Ok(if on { all } else { Markers::default() });
    }
    let mut markers = Markers::default();
    for category in object.file.string(entry)?.split(',').map(str::trim).filter(|c| !c.is_empty()) {
        match category {
            "main" => markers.main = true,
            "task" => markers.task = true,
            "loop" => markers.run_loop = true,
            "event" | "run" => markers.event = true,
            "none" => {}
            "stats" | "attrs" => unwritten(category),
            _ => {
                let why =
                    format!("\"{category}\" is not one of main, task, loop, event, run, stats, attrs, none");
                return Err(object.file.bad(entry.value.at, "ftrace", why));
            }
        }
    }
    Ok(markers)
}
