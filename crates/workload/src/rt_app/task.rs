//! The `tasks` object: threads, their phases, and the keys other than events.

use std::collections::BTreeSet;

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use super::event::{self, Event, What};
use super::global::Global;
use super::sched::{self, PolicyName, SchedKeys};
use crate::tree::{Entry, File, Kind, Object, Position, Value};
use crate::{CpuList, FOREVER, Quota, WorkloadError};

/// A thread object.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub name: String,
    pub at: Position,
    pub instances: u32,
    pub delay: Duration,
    pub kthread: bool,
    /// Rounds over all phases; [`FOREVER`] for ever.
    pub loops: u32,
    pub settings: Settings,
    pub phases: Vec<Phase>,
}

/// A phase, or a thread object without phases, which is a single phase.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    /// Rounds of this phase before the next; [`FOREVER`] for ever.
    pub loops: u32,
    pub settings: Settings,
    pub events: Vec<Event>,
}

/// Keys allowed on threads and on phases.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub sched: SchedKeys,
    pub cpus: Option<CpuList>,
    pub group: Option<TaskGroup>,
}

/// A task group, with the keys that scx-sim's files add to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TaskGroup {
    pub at: Position,
    pub path: String,
    pub weight: Option<u32>,
    pub quota: Option<Quota>,
}

const SETTINGS_KEYS: &[&str] = &["loop", "cpus", "taskgroup"];
const TASK_KEYS: &[&str] =
    &["instance", "delay", "phases", "runtime", "period", "deadline", "thread_of", "uid", "gid", "kthread"];

/// More threads than any machine can run; a typing error should not use up the memory.
const INSTANCES_MAX: i64 = 1_000_000;

/// Reads all thread objects. A name that occurs twice gets a number, as in workgen.
pub(super) fn read(
    file: File,
    value: &Value,
    global: &Global,
    notes: &mut Vec<String>,
) -> Result<Vec<Task>, WorkloadError> {
    let object = Object::new(file, value, "\"tasks\"".to_string())?;
    let mut taken = BTreeSet::new();
    let mut number = 1;
    let mut tasks = Vec::new();
    for entry in object.entries {
        let mut name = entry.key.clone();
        while !taken.insert(name.clone()) {
            name = format!("{}{number}", entry.key);
            if taken.contains(&name) {
                number += 1;
            }
        }
        let within = format!("task \"{name}\"");
        tasks.push(task(&Object::new(file, &entry.value, within)?, &name, entry.at, global, notes)?);
    }
    for entry in object.entries {
        if let Kind::Object(keys) = &entry.value.kind {
            thread_of(file, keys, &taken)?;
        }
    }
    Ok(tasks)
}

/// All threads of a file share a process, so `thread_of` can only name an existing one.
fn thread_of(file: File, keys: &[Entry], names: &BTreeSet<String>) -> Result<(), WorkloadError> {
    for entry in keys.iter().filter(|entry| entry.key == "thread_of") {
        let leader = file.string(entry)?;
        if !names.contains(leader) {
            return Err(file.bad(entry.value.at, "thread_of", format!("there is no task \"{leader}\"")));
        }
    }
    Ok(())
}

fn task(
    object: &Object,
    name: &str,
    at: Position,
    global: &Global,
    notes: &mut Vec<String>,
) -> Result<Task, WorkloadError> {
    let file = object.file;
    let phases_entry = object.get("phases")?;
    let mut settings = settings(object)?;
    for key in ["uid", "gid"] {
        if let Some(entry) = object.get(key)? {
            file.count(entry)?;
            notes.push(format!(
                "{}:{}: \"{key}\" has no effect: the scheduler does not look at it",
                file.0, entry.at.0
            ));
        }
    }
    // Without phases a `runtime` is an event too, so it may occur several times.
    let legacy = |key: &str| {
        let first = object.entries.iter().find(|entry| entry.key == key);
        first.map(|entry| file.count(entry)).transpose()
    };
    let policy = PolicyName::read(object, "policy")?.unwrap_or(global.default_policy);
    if policy == PolicyName::Deadline {
        settings.sched.legacy(legacy("runtime")?, legacy("deadline")?, legacy("period")?);
    } else {
        for key in ["period", "deadline"] {
            if let Some(entry) = object.get(key)? {
                file.count(entry)?;
                let why = "only SCHED_DEADLINE uses it";
                notes.push(format!("{}:{}: \"{key}\" has no effect: {why}", file.0, entry.at.0));
            }
        }
    }
    let (loops, phases) = match phases_entry {
        Some(entry) => {
            if let Some(event) =
                object.entries.iter().find(|e| event::kind(&e.key).is_some() && e.key != "runtime")
            {
                let why = "rt-app ignores events beside \"phases\"; move it into a phase";
                return Err(file.refused(event.at, &event.key, why));
            }
            let loops = object.read("loop", |entry| thread_loops(file, entry))?.unwrap_or(FOREVER);
            (loops, phases(file, entry, name)?)
        }
        None => {
            let phase = phase(object, name, Settings { sched: SchedKeys::default(), ..settings.clone() })?;
            // A count on the thread object is the count of its only phase.
            let counted = object.get("loop")?.is_some();
            (if counted { 1 } else { FOREVER }, vec![phase])
        }
    };
    known(object, [TASK_KEYS, SETTINGS_KEYS, sched::KEYS].concat())?;
    settings.sched = settings.sched.or_policy(global.default_policy);
    Ok(Task {
        name: name.to_string(),
        at,
        instances: object.read("instance", |entry| file.int(entry, 0..=INSTANCES_MAX))?.unwrap_or(1) as u32,
        delay: Duration::micros(object.count("delay")?.unwrap_or(0).into()),
        kthread: object.bool("kthread")?.unwrap_or(false),
        loops,
        settings,
        phases,
    })
}

fn phases(file: File, entry: &Entry, task: &str) -> Result<Vec<Phase>, WorkloadError> {
    let object = Object::new(file, &entry.value, format!("phases of task \"{task}\""))?;
    if object.entries.is_empty() {
        return Err(file.bad(entry.value.at, "phases", "a task must have at least one phase"));
    }
    let read = |entry: &Entry| {
        let within = format!("phase \"{}\" of task \"{task}\"", entry.key);
        let object = Object::new(file, &entry.value, within)?;
        let settings = settings(&object)?;
        let phase = phase(&object, task, settings)?;
        known(&object, [SETTINGS_KEYS, sched::KEYS].concat())?;
        Ok(phase)
    };
    object.entries.iter().map(read).collect()
}

fn phase(object: &Object, task: &str, settings: Settings) -> Result<Phase, WorkloadError> {
    let file = object.file;
    let events = object.entries.iter().filter_map(|e| event::kind(&e.key).map(|kind| (e, kind)));
    let events: Vec<Event> =
        events.map(|(entry, kind)| Event::read(file, entry, kind, task)).collect::<Result<_, _>>()?;
    if events.is_empty() {
        // Name the key that is wrong rather than the events that are missing.
        known(object, [TASK_KEYS, SETTINGS_KEYS, sched::KEYS].concat())?;
        return Err(file.bad(object.at, "events", format!("there are none in {}", object.within)));
    }
    let loops = object.read("loop", |entry| phase_loops(file, entry))?.unwrap_or(1);
    Ok(Phase { loops, settings, events })
}

/// Refuses keys that are neither events nor among the known.
fn known(object: &Object, known: Vec<&str>) -> Result<(), WorkloadError> {
    match object.entries.iter().find(|e| event::kind(&e.key).is_none() && !known.contains(&e.key.as_str())) {
        Some(entry) => Err(object.unknown(entry, &known)),
        None => Ok(()),
    }
}

/// Refuses keys that rt-app has or had, but whose meaning is not simulated.
fn not_simulated(object: &Object) -> Result<(), WorkloadError> {
    for entry in object.entries {
        let why = match entry.key.as_str() {
            "exec" | "exec jitter" | "lock_order" | "resources" | "hard_rsv" => {
                "it belongs to the grammar before rt-app 1.0; describe the task by events"
            }
            "dl-reclaim" => "deadline bandwidth is not reclaimed here",
            "nodes_membind" => "memory lies where it is first touched; bind the task with \"cpus\" instead",
            "parent" => "every thread is made by the main thread; use a \"fork\" event in the parent",
            key if key.starts_with("external_workload") => "the code of a shared library cannot be run here",
            _ => continue,
        };
        return Err(object.file.refused(entry.at, &entry.key, why));
    }
    Ok(())
}

/// On a phase the count is compared after the round, so 0 and less never match.
fn phase_loops(file: File, entry: &Entry) -> Result<u32, WorkloadError> {
    let loops = file.int(entry, i64::from(i32::MIN)..=i64::from(i32::MAX))?;
    Ok(if loops <= 0 { FOREVER } else { loops as u32 })
}

/// On a thread it is compared before the round, so 0 means none at all.
fn thread_loops(file: File, entry: &Entry) -> Result<u32, WorkloadError> {
    let loops = file.int(entry, i64::from(i32::MIN)..=i64::from(i32::MAX))?;
    Ok(if loops < 0 { FOREVER } else { loops as u32 })
}

fn settings(object: &Object) -> Result<Settings, WorkloadError> {
    not_simulated(object)?;
    Ok(Settings {
        sched: SchedKeys::read(object)?,
        cpus: object.read("cpus", |entry| cpus(object.file, entry))?,
        group: object.read("taskgroup", |entry| task_group(object.file, entry))?.flatten(),
    })
}

/// An array of CPUs; a number or a list as a string is scx-sim's.
fn cpus(file: File, entry: &Entry) -> Result<CpuList, WorkloadError> {
    let bad = |why: String| file.bad(entry.value.at, "cpus", why);
    let cpu = |value: &Value| match value.kind {
        Kind::Int(n @ 0..=4095) => Ok(CpuId(n as u16)),
        Kind::Int(n) => Err(bad(format!("{n} is not a CPU; they go from 0 to 4095"))),
        _ => Err(file.wrong_type(entry, "an array of integers")),
    };
    let list = match &entry.value.kind {
        Kind::Array(values) => CpuList::new(values.iter().map(cpu).collect::<Result<Vec<_>, _>>()?),
        Kind::Int(_) => CpuList::new([cpu(&entry.value)?]),
        Kind::String(list) => Some(list.parse().map_err(bad)?),
        _ => return Err(file.wrong_type(entry, "an array of integers")),
    };
    list.ok_or_else(|| bad("the list is empty, so the task could run nowhere".to_string()))
}

/// A path, or scx-sim's object; `None` for an empty path.
fn task_group(file: File, entry: &Entry) -> Result<Option<TaskGroup>, WorkloadError> {
    let group = match &entry.value.kind {
        Kind::String(path) => TaskGroup { at: entry.at, path: path.clone(), weight: None, quota: None },
        Kind::Object(_) => {
            let object = Object::new(file, &entry.value, "\"taskgroup\"".to_string())?;
            object.only(&["path", "name", "cpu.max", "cpu_max", "cpu.weight", "cpu_weight"])?;
            let weight = |key| object.read(key, |entry| file.int(entry, 1..=10_000).map(|n| n as u32));
            let quota = |key| object.read(key, |entry| cpu_max(file, entry));
            let path = object.string("path")?.or(object.string("name")?);
            let missing = || file.bad(entry.value.at, "taskgroup", "\"path\" is missing");
            TaskGroup {
                at: entry.at,
                path: path.ok_or_else(missing)?.to_string(),
                weight: weight("cpu.weight")?.or(weight("cpu_weight")?),
                quota: quota("cpu.max")?.or(quota("cpu_max")?).flatten(),
            }
        }
        _ => return Err(file.wrong_type(entry, "a string")),
    };
    if !group.path.is_empty() && !group.path.starts_with('/') {
        return Err(file.bad(entry.value.at, "taskgroup", format!("\"{}\" must begin with /", group.path)));
    }
    Ok((!group.path.is_empty()).then_some(group))
}

/// `QUOTA PERIOD` or `max PERIOD` in microseconds, as in cgroup v2's file.
fn cpu_max(file: File, entry: &Entry) -> Result<Option<Quota>, WorkloadError> {
    let text = file.string(entry)?;
    let bad =
        || file.bad(entry.value.at, &entry.key, format!("\"{text}\" is not QUOTA PERIOD or max PERIOD"));
    let us = |word: &str| word.parse().ok().filter(|&us| us > 0).map(Duration::micros).ok_or_else(bad);
    let (quota, period) = text.trim().split_once(' ').ok_or_else(bad)?;
    let period = us(period.trim())?;
    if quota == "max" {
        return Ok(None);
    }
    Ok(Some(Quota { quota: us(quota)?, period, burst: Duration::ZERO }))
}

impl Task {
    /// Every event of every phase.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.phases.iter().flat_map(|phase| &phase.events)
    }

    /// Whether scx-sim would take it for a source of interrupts: it runs and sleeps
    /// in turn, and its name says so.
    pub fn is_irq_generator(&self) -> bool {
        self.name.starts_with("irq_gen")
            && self.events().any(|e| matches!(e.what, What::Run(_)))
            && self.events().all(|e| matches!(e.what, What::Run(_) | What::Sleep(_)))
    }
}
