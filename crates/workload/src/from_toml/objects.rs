//! Objects with parameters that inline tasks share.

use core::ops::RangeInclusive;

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use super::names::{Named, Names};
use super::op::read_dist;
use crate::tree::{Entry, File, Kind, Object};
use crate::{
    ChannelKind, Completion, CpuList, DeviceSpec, MutexKind, MutexSpec, Param, QueueKind, Quota, SourceSpec,
    Trigger, WorkloadError, shares_of_weight,
};

/// Reads the tables of a `[workload]` that describe objects.
pub(super) fn read(table: &Object, names: &mut Names) -> Result<(), WorkloadError> {
    let file = table.file;
    for entry in table.entries_of("mutex")? {
        let o = fields(file, entry, &["pi", "kernel", "spin", "sleep"])?;
        let spec =
            MutexSpec { name: entry.key.clone(), kind: mutex_kind(&o)?, pi: o.bool("pi")?.unwrap_or(false) };
        let mutex = names.w.mutex_of(spec);
        names.declare(&entry.key, mutex);
    }
    for entry in table.entries_of("sem")? {
        let sem = names.w.sem(&entry.key, file.param(entry)?);
        names.declare(&entry.key, sem);
    }
    for entry in table.entries_of("word")? {
        let word = names.w.word(&entry.key, file.int(entry, i32::MIN.into()..=i32::MAX.into())? as i32);
        names.declare(&entry.key, word);
    }
    for entry in table.entries_of("barrier")? {
        let (parties, spin) = match entry.value.kind {
            Kind::Object(_) => {
                let o = fields(file, entry, &["parties", "spin"])?;
                (
                    o.param("parties")?.ok_or_else(|| missing(&o, "parties"))?,
                    o.param("spin")?.unwrap_or_default(),
                )
            }
            _ => (file.param(entry)?, Duration::ZERO),
        };
        names.w.described_at(format!("barrier \"{}\"", entry.key), entry.at.0, entry.at.1);
        let barrier = names.w.barrier(&entry.key, parties, spin);
        names.declare(&entry.key, barrier);
    }
    for (key, kind) in [("pipe", ChannelKind::Pipe), ("socket", ChannelKind::Socket)] {
        for entry in table.entries_of(key)? {
            let bytes: u64 = file.param(entry)?;
            let bytes =
                u32::try_from(bytes).map_err(|_| file.bad(entry.value.at, &entry.key, "is too big"))?;
            names.w.described_at(format!("channel \"{}\"", entry.key), entry.at.0, entry.at.1);
            let channel = names.w.channel(&entry.key, kind, bytes);
            declare(file, names, entry, channel)?;
        }
    }
    for entry in table.entries_of("region")? {
        let region = names.w.region(&entry.key, file.param(entry)?);
        names.declare(&entry.key, region);
    }
    for entry in table.entries_of("queue")? {
        let kind = match file.string(entry)? {
            "bound" => QueueKind::PerCpu,
            "bound-high-priority" => QueueKind::PerCpuHighPri,
            "unbound" => QueueKind::Unbound,
            other => {
                let why = format!("\"{other}\" is not one of bound, bound-high-priority, unbound");
                return Err(file.bad(entry.value.at, &entry.key, why));
            }
        };
        let queue = names.w.queue(&entry.key, kind);
        names.declare(&entry.key, queue);
    }
    for entry in table.entries_of("device")? {
        device(file, entry, names)?;
    }
    for entry in table.entries_of("interrupt")? {
        interrupt(file, entry, names)?;
    }
    for entry in table.entries_of("group")? {
        group(file, entry, names)?;
    }
    Ok(())
}

/// How tasks wait for a mutex that is taken.
fn mutex_kind(o: &Object) -> Result<MutexKind, WorkloadError> {
    let kernel = o.bool("kernel")?.unwrap_or(false);
    let spin = match o.get("spin")? {
        Some(entry) if matches!(o.file.string(entry), Ok("forever")) => Some(Duration(u64::MAX)),
        _ => o.param("spin")?,
    };
    let sleep: Option<Duration> = o.param("sleep")?;
    match (kernel, spin, sleep) {
        (false, None, None) => Ok(MutexKind::Futex),
        (true, None, None) => Ok(MutexKind::Kernel),
        (true, ..) => Err(o.file.bad(
            o.at,
            "spin",
            "the kernel's mutex spins as the kernel does; leave out kernel or spin",
        )),
        (false, None, Some(_)) => Err(missing(o, "spin")),
        (false, Some(spin), sleep) => Ok(MutexKind::Spin { spin, sleep: sleep.unwrap_or_default() }),
    }
}

/// The fields of an object described in a table of its own.
fn fields<'a>(file: File<'a>, entry: &'a Entry, known: &[&str]) -> Result<Object<'a>, WorkloadError> {
    let object = Object::new(file, &entry.value, format!("\"{}\"", entry.key))?;
    object.only(known)?;
    Ok(object)
}

pub(super) fn missing(object: &Object, key: &str) -> WorkloadError {
    object.file.bad(object.at, key, format!("is missing in {}", object.within))
}

fn declare<T: Named>(file: File, names: &mut Names, entry: &Entry, id: T) -> Result<(), WorkloadError> {
    if names.declare(&entry.key, id) {
        return Ok(());
    }
    Err(file.bad(entry.at, &entry.key, format!("there is another {} of this name", T::WHAT)))
}

/// A name looked up for a key of an object.
fn lookup<T: Named>(object: &Object, key: &str, name: &str, names: &mut Names) -> Result<T, WorkloadError> {
    names.known(name).map_err(|why| object.file.bad(object.at, key, why))
}

fn device(file: File, entry: &Entry, names: &mut Names) -> Result<(), WorkloadError> {
    let o = fields(file, entry, &["service", "depth", "cpu", "queue", "work", "softirq"])?;
    let service = o.dist("service")?.ok_or_else(|| missing(&o, "service"))?;
    let completion = match (o.string("queue")?, o.count("cpu")?) {
        (Some(queue), None) => Completion::Worker {
            queue: lookup(&o, "queue", queue, names)?,
            work: o.param("work")?.unwrap_or_default(),
            softirq: o.bool("softirq")?.unwrap_or(false),
        },
        (None, Some(cpu)) => Completion::IrqAt(CpuId(cpu as u16)),
        (None, None) => Completion::IrqSubmitter,
        (Some(_), Some(_)) => {
            return Err(file.bad(o.at, "queue", "a request ends by a queue or at a CPU, not both"));
        }
    };
    let spec = DeviceSpec {
        name: entry.key.clone(),
        service: names.w.dist(service),
        depth: between(&o, "depth", 1..=u32::MAX)?.unwrap_or(1),
        completion,
    };
    let device = names.w.device(spec);
    names.declare(&entry.key, device);
    Ok(())
}

/// A value between two others, which messages show as a file writes them.
fn between<T: Param + PartialOrd>(
    o: &Object,
    key: &str,
    range: RangeInclusive<T>,
) -> Result<Option<T>, WorkloadError> {
    o.read(key, |entry| {
        let value: T = o.file.param(entry)?;
        if range.contains(&value) {
            return Ok(value);
        }
        let (least, most) = (range.start().show(), range.end().show());
        Err(o.file.bad(entry.value.at, key, format!("{} is outside {least} to {most}", value.show())))
    })
}

fn interrupt(file: File, entry: &Entry, names: &mut Names) -> Result<(), WorkloadError> {
    let o = fields(file, entry, &["cpu", "every", "after", "hard", "soft", "posts"])?;
    let cpu: u16 = o.param("cpu")?.ok_or_else(|| missing(&o, "cpu"))?;
    let trigger = match (o.dist("every")?, o.dist("after")?) {
        (Some(every), None) => Trigger::Every(names.w.dist(every)),
        (None, Some(after)) => Trigger::Raised(names.w.dist(after)),
        _ => {
            return Err(file.bad(o.at, "every", "say one of \"every\" and \"after\" (an op that raises it)"));
        }
    };
    names.w.described_at(format!("interrupt source \"{}\"", entry.key), entry.at.0, entry.at.1);
    let posts = o.string("posts")?.map(|sem| names.made(sem));
    let source = names.w.source(SourceSpec {
        name: entry.key.clone(),
        cpu: CpuId(cpu),
        trigger,
        hard: o.param("hard")?.unwrap_or_default(),
        soft: o.param("soft")?.unwrap_or_default(),
        posts,
    });
    names.declare(&entry.key, source);
    Ok(())
}

pub(super) fn group(file: File, entry: &Entry, names: &mut Names) -> Result<(), WorkloadError> {
    let o = fields(
        file,
        entry,
        &["shares", "weight", "quota", "period", "burst", "idle", "util_min", "util_max", "cpus"],
    )?;
    let Some(group) = names.w.group(&entry.key) else {
        return Err(file.bad(entry.at, &entry.key, "the root group has no parameters"));
    };
    let cpus: Option<CpuList> = o.param::<Option<CpuList>>("cpus")?.flatten();
    let cpus = cpus.map(|cpus| names.w.cpus(cpus));
    let weight = between(&o, "weight", 1..=10_000u32)?;
    let shares = between(&o, "shares", 2..=262_144u64)?;
    // As much in a period as all CPUs that can be, for a year.
    let quota = between(&o, "quota", Duration::millis(1)..=Duration::secs(365 * 86_400))?;
    let period = between(&o, "period", Duration::millis(1)..=Duration::secs(1))?;
    let period = period.unwrap_or(Duration::millis(100));
    let burst = o.param("burst")?.unwrap_or_default();
    let (util_min, util_max) = (between(&o, "util_min", 0..=1024)?, between(&o, "util_max", 0..=1024)?);
    let spec = names.w.group_mut(group);
    (spec.util_min, spec.util_max) = (util_min, util_max);
    if let Some(weight) = weight {
        spec.shares = shares_of_weight(weight);
    }
    spec.shares = shares.unwrap_or(spec.shares);
    spec.quota = quota.map(|quota| Quota { quota, period, burst });
    spec.idle = o.bool("idle")?.unwrap_or(false);
    spec.cpus = cpus;
    Ok(())
}

impl Object<'_> {
    /// The entries of a table of this table: `[workload.sem]`.
    pub(super) fn entries_of(&self, key: &str) -> Result<Vec<&Entry>, WorkloadError> {
        let Some(entry) = self.get(key)? else { return Ok(Vec::new()) };
        match &entry.value.kind {
            Kind::Object(entries) => Ok(entries.iter().collect()),
            _ => Err(self.file.wrong_type(entry, "a table")),
        }
    }

    /// The tables of a list of tables: `[[workload.task]]`.
    pub(super) fn tables_of(&self, key: &str) -> Result<Vec<Object<'_>>, WorkloadError> {
        let Some(entry) = self.get(key)? else { return Ok(Vec::new()) };
        let values = match &entry.value.kind {
            Kind::Array(values) => &values[..],
            _ => std::slice::from_ref(&entry.value),
        };
        values.iter().map(|value| Object::new(self.file, value, format!("[[workload.{key}]]"))).collect()
    }

    /// A span that may be drawn.
    fn dist(&self, key: &str) -> Result<Option<crate::Dist>, WorkloadError> {
        self.read(key, |entry| {
            let text = self.file.string(entry)?.replace(' ', "");
            read_dist(&text).map_err(|why| self.file.bad(entry.value.at, key, why))
        })
    }

    /// A value of any type that models' parameters can have.
    pub(super) fn param<T: crate::Param>(&self, key: &str) -> Result<Option<T>, WorkloadError> {
        self.read(key, |entry| self.file.param(entry))
    }
}
