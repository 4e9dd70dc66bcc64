//! The resources that events name, made on first use as in rt-app.
//!
//! Each kind has its own names: a mutex `a` and a condition `a` are two objects.

use std::collections::BTreeMap;

use schedlab_units::Duration;

use super::event::{MemRun, What};
use super::task::Task;
use crate::tree::{File, Object, Value};
use crate::{
    AccessId, AccessSpec, BarrierId, CondId, Miss, MutexId, MutexKind, MutexSpec, OWN_TIMERS_MAX, Pattern,
    RegionId, SemId, Timer, TimerId, WordId, WorkloadBuilder, WorkloadError,
};

/// Ids by name.
#[derive(Debug, Default)]
pub(super) struct Resources {
    pi: bool,
    mem_buffer_size: u64,
    mutexes: BTreeMap<String, MutexId>,
    conds: BTreeMap<String, CondId>,
    sems: BTreeMap<String, SemId>,
    barriers: BTreeMap<String, BarrierId>,
    timers: BTreeMap<String, TimerId>,
    regions: BTreeMap<String, (RegionId, u64)>,
    fork_counts: BTreeMap<String, WordId>,
    /// Users of each barrier: the sum of instances over all references.
    parties: BTreeMap<String, u32>,
    /// Shared timers that any reference calls absolute.
    absolute: BTreeMap<String, bool>,
}

impl Resources {
    /// Scans all tasks for the properties that depend on every reference.
    pub fn new(pi: bool, mem_buffer_size: u64, tasks: &[Task]) -> Resources {
        let mut resources = Resources { pi, mem_buffer_size, ..Resources::default() };
        for task in tasks {
            for event in task.events() {
                match &event.what {
                    What::Barrier(name) => {
                        let parties = resources.parties.entry(name.clone()).or_default();
                        *parties = parties.saturating_add(task.instances);
                    }
                    What::Timer { timer, absolute, .. } => {
                        *resources.absolute.entry(timer_key(task, timer)).or_default() |= absolute;
                    }
                    _ => {}
                }
            }
        }
        resources
    }

    pub fn mutex(&mut self, w: &mut WorkloadBuilder, name: &str) -> MutexId {
        let spec = MutexSpec { name: name.to_string(), kind: MutexKind::Futex, pi: self.pi };
        *self.mutexes.entry(name.to_string()).or_insert_with(|| w.mutex_of(spec))
    }

    pub fn cond(&mut self, w: &mut WorkloadBuilder, name: &str) -> CondId {
        *self.conds.entry(name.to_string()).or_insert_with(|| w.cond(name))
    }

    pub fn sem(&mut self, w: &mut WorkloadBuilder, name: &str) -> SemId {
        *self.sems.entry(name.to_string()).or_insert_with(|| w.sem(name, 0))
    }

    pub fn barrier(&mut self, w: &mut WorkloadBuilder, name: &str) -> BarrierId {
        let parties = self.parties[name].max(1);
        *self.barriers.entry(name.to_string()).or_insert_with(|| w.barrier(name, parties, Duration::ZERO))
    }

    /// The timer of a reference, with the effect of a miss. A name that begins with `unique` is one timer per
    /// thread.
    pub fn timer(&mut self, w: &mut WorkloadBuilder, task: &Task, name: &str) -> Option<(Timer, Miss)> {
        let miss = if self.absolute[&timer_key(task, name)] { Miss::KeepGrid } else { Miss::Rebase };
        if !is_unique(name) {
            let timer = *self.timers.entry(name.to_string()).or_insert_with(|| w.timer(name));
            return Some((Timer::Shared(timer), miss));
        }
        let mut own: Vec<&str> = Vec::new();
        for event in task.events() {
            if let What::Timer { timer, .. } = &event.what
                && is_unique(timer)
                && !own.contains(&timer.as_str())
            {
                own.push(timer);
            }
        }
        let slot = own.iter().position(|timer| *timer == name)?;
        (slot < OWN_TIMERS_MAX).then_some((Timer::Own(slot as u8), miss))
    }

    /// The buffer of `mem`, which all instances of a task share.
    pub fn own_buffer(&mut self, w: &mut WorkloadBuilder, task: &Task) -> RegionId {
        let size = self.mem_buffer_size;
        self.region(w, &format!("mem of {}", task.name), size).0
    }

    fn region(&mut self, w: &mut WorkloadBuilder, name: &str, size: u64) -> (RegionId, u64) {
        *self.regions.entry(name.to_string()).or_insert_with(|| (w.region(name, size), size))
    }

    pub fn mem(&mut self, w: &mut WorkloadBuilder, task: &Task, bytes: u64) -> AccessId {
        let region = self.own_buffer(w, task);
        let spec = AccessSpec {
            region,
            pattern: Pattern::Sequential,
            read_bytes: 0,
            write_bytes: bytes,
            stride: 64,
            streaming: false,
        };
        w.access(spec)
    }

    /// The access of a `memrun`; all that share a buffer must agree on its size.
    pub fn memrun(&mut self, w: &mut WorkloadBuilder, task: &Task, run: &MemRun) -> Result<AccessId, u64> {
        let name = run.buffer.clone().unwrap_or_else(|| format!("memrun of {}", task.name));
        let (region, size) = self.region(w, &name, run.size);
        if size != run.size {
            return Err(size);
        }
        let (read_bytes, write_bytes) = (run.read, run.write);
        Ok(w.access(AccessSpec {
            region,
            pattern: run.pattern,
            read_bytes,
            write_bytes,
            stride: run.stride,
            streaming: false,
        }))
    }

    /// Counts how often a task was forked.
    pub fn fork_count(&mut self, w: &mut WorkloadBuilder, name: &str) -> WordId {
        *self.fork_counts.entry(name.to_string()).or_insert_with(|| w.word(format!("forks of {name}"), 0))
    }
}

fn is_unique(timer: &str) -> bool {
    timer.starts_with("unique")
}

/// A timer's name, with its task's if it is one per thread.
fn timer_key(task: &Task, timer: &str) -> String {
    if is_unique(timer) { format!("{}/{timer}", task.name) } else { timer.to_string() }
}

/// The old `resources` object. Resources are made on first use, so it only has to be valid.
pub(super) fn check_section(file: File, value: &Value) -> Result<(), WorkloadError> {
    let object = Object::new(file, value, "\"resources\"".to_string())?;
    for entry in object.entries {
        let resource = Object::new(file, &entry.value, format!("resource \"{}\"", entry.key))?;
        if let Some(target) = resource.get("target")? {
            let why = "it belongs to the grammar before rt-app 1.0; name the resource in an event";
            return Err(file.refused(target.at, "target", why));
        }
        resource.only(&["type"])?;
        match resource.string("type")? {
            None | Some("mutex" | "timer" | "wait" | "mem" | "iorun" | "barrier" | "fork" | "sem") => {}
            Some(other) => {
                return Err(file.bad(entry.at, "type", format!("\"{other}\" is not a type of resource")));
            }
        }
    }
    Ok(())
}
