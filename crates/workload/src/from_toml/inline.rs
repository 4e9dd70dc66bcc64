//! Tasks described in the scenario itself, with what they share.

use std::collections::BTreeMap;

use schedlab_units::Duration;

use super::names::{Named, Names};
use super::op::{SchedWords, read_dist};
use super::program::{self, Source};
use crate::tree::{Entry, File, Kind, Object};
use crate::{
    ChannelKind, Completion, CpuList, DeviceSpec, Measure, MeasureRule, MutexKind, MutexSpec, Op, Process,
    ProcessId, QueueKind, Quota, SourceSpec, SpecId, Start, TaskSpec, Trigger, Workload, WorkloadBuilder,
    WorkloadError,
};

const KEYS: &[&str] = &[
    "name",
    "duration",
    "task",
    "program",
    "mutex",
    "sem",
    "barrier",
    "pipe",
    "socket",
    "word",
    "region",
    "queue",
    "device",
    "interrupt",
    "group",
    "measure",
];

const TASK_KEYS: &[&str] = &[
    "name",
    "count",
    "program",
    "forked",
    "start",
    "start_cpu",
    "process",
    "kthread",
    "cpus",
    "group",
    "policy",
    "footprint",
    "memory_bound",
    "background",
];

/// Reads a `[workload]` with inline tasks.
pub(super) fn read(table: &Object) -> Result<Workload, WorkloadError> {
    table.only(KEYS)?;
    let mut w = WorkloadBuilder::new(table.string("name")?.unwrap_or("tasks"));
    w.file(table.file.0);
    if let Some(duration) = super::duration(table)? {
        w.stop_after(duration);
    }
    let mut names = Names::new(&mut w);
    objects(table, &mut names)?;
    let described = described(table, &mut names)?;
    let programs = programs(table, &mut names)?;
    tasks(&described, &mut names, &programs)?;
    measures(table, &mut names)?;
    w.finish()
}

impl Object<'_> {
    /// The entries of a table of this table: `[workload.sem]`.
    fn entries_of(&self, key: &str) -> Result<Vec<&Entry>, WorkloadError> {
        let Some(entry) = self.get(key)? else { return Ok(Vec::new()) };
        match &entry.value.kind {
            Kind::Object(entries) => Ok(entries.iter().collect()),
            _ => Err(self.file.wrong_type(entry, "a table")),
        }
    }

    /// The tables of a list of tables: `[[workload.task]]`.
    fn tables_of(&self, key: &str) -> Result<Vec<Object<'_>>, WorkloadError> {
        let Some(entry) = self.get(key)? else { return Ok(Vec::new()) };
        let values = match &entry.value.kind {
            Kind::Array(values) => &values[..],
            _ => std::slice::from_ref(&entry.value),
        };
        values.iter().map(|value| Object::new(self.file, value, format!("[[workload.{key}]]"))).collect()
    }
}

fn objects(table: &Object, names: &mut Names) -> Result<(), WorkloadError> {
    let file = table.file;
    for entry in table.entries_of("mutex")? {
        let o = fields(file, entry, &["pi", "kernel"])?;
        let kind = if o.bool("kernel")?.unwrap_or(false) { MutexKind::Kernel } else { MutexKind::Futex };
        let spec = MutexSpec { name: entry.key.clone(), kind, pi: o.bool("pi")?.unwrap_or(false) };
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
        let barrier = names.w.barrier(&entry.key, parties, spin);
        names.declare(&entry.key, barrier);
    }
    for (key, kind) in [("pipe", ChannelKind::Pipe), ("socket", ChannelKind::Socket)] {
        for entry in table.entries_of(key)? {
            let bytes: u64 = file.param(entry)?;
            let bytes =
                u32::try_from(bytes).map_err(|_| file.bad(entry.value.at, &entry.key, "is too big"))?;
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
                let why = format!("\"{other}\" is none of bound, bound-high-priority, unbound");
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

/// Programs described by name, for kworkers and for several kinds of task.
type Programs = BTreeMap<String, Source>;

fn programs(table: &Object, names: &mut Names) -> Result<Programs, WorkloadError> {
    let mut programs = BTreeMap::new();
    for entry in table.entries_of("program")? {
        let source = program::read(table.file, entry, names)?;
        // Kworkers use this one; tasks have copies of their own.
        let program = source.write(names, &entry.key, false);
        names.declare(&entry.key, program);
        programs.insert(entry.key.clone(), source);
    }
    Ok(programs)
}

/// The fields of an object described in a table of its own.
fn fields<'a>(file: File<'a>, entry: &'a Entry, known: &[&str]) -> Result<Object<'a>, WorkloadError> {
    let object = Object::new(file, &entry.value, format!("\"{}\"", entry.key))?;
    object.only(known)?;
    Ok(object)
}

fn missing(object: &Object, key: &str) -> WorkloadError {
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
        (None, Some(cpu)) => Completion::IrqAt(schedlab_topology::CpuId(cpu as u16)),
        (None, None) => Completion::IrqSubmitter,
        (Some(_), Some(_)) => {
            return Err(file.bad(o.at, "queue", "a request ends by a queue or at a CPU, not both"));
        }
    };
    let spec = DeviceSpec {
        name: entry.key.clone(),
        service: names.w.dist(service),
        depth: o.param("depth")?.unwrap_or(1),
        completion,
    };
    let device = names.w.device(spec);
    names.declare(&entry.key, device);
    Ok(())
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
    let posts = o.string("posts")?.map(|sem| names.made(sem));
    let source = names.w.source(SourceSpec {
        name: entry.key.clone(),
        cpu: schedlab_topology::CpuId(cpu),
        trigger,
        hard: o.param("hard")?.unwrap_or_default(),
        soft: o.param("soft")?.unwrap_or_default(),
        posts,
    });
    names.declare(&entry.key, source);
    Ok(())
}

fn group(file: File, entry: &Entry, names: &mut Names) -> Result<(), WorkloadError> {
    let o = fields(file, entry, &["shares", "weight", "quota", "period", "burst", "idle", "cpus"])?;
    let Some(group) = names.w.group(&entry.key) else {
        return Err(file.bad(entry.at, &entry.key, "the root group has no parameters"));
    };
    let cpus: Option<CpuList> = o.param::<Option<CpuList>>("cpus")?.flatten();
    let cpus = cpus.map(|cpus| names.w.cpus(cpus));
    let weight: Option<u32> = o.param("weight")?;
    let quota: Option<Duration> = o.param("quota")?;
    let period = o.param("period")?.unwrap_or(Duration::millis(100));
    let burst = o.param("burst")?.unwrap_or_default();
    let spec = names.w.group_mut(group);
    if let Some(weight) = weight {
        spec.shares = (u64::from(weight) * 1024).div_ceil(100).max(2);
    }
    spec.shares = o.param("shares")?.unwrap_or(spec.shares);
    spec.quota = quota.map(|quota| Quota { quota, period, burst });
    spec.idle = o.bool("idle")?.unwrap_or(false);
    spec.cpus = cpus;
    Ok(())
}

/// A `[[workload.task]]` that was looked at once.
struct Described<'a> {
    object: Object<'a>,
    name: String,
    count: u32,
    forked: bool,
    first: SpecId,
}

/// Gives out ids first, so that programs can fork what is described further down.
fn described<'a>(table: &'a Object, names: &mut Names) -> Result<Vec<Described<'a>>, WorkloadError> {
    let mut described: Vec<Described> = Vec::new();
    let mut next = names.w.next_task().0;
    for object in table.tables_of("task")? {
        let known: Vec<&str> = TASK_KEYS.iter().chain(SchedWords::KEYS).copied().collect();
        object.only(&known)?;
        let name = object.string("name")?.ok_or_else(|| missing(&object, "name"))?.to_string();
        let count = object.param("count")?.unwrap_or(1);
        let forked = object.bool("forked")?.unwrap_or(false);
        let first = SpecId(next);
        if forked {
            if count != 1 {
                let why = "a forked task stands for one at each fork; fork it more often instead";
                return Err(object.file.bad(object.at, "count", why));
            }
            if !names.declare(&name, first) {
                return Err(object.file.bad(
                    object.at,
                    "name",
                    format!("there is another forked task \"{name}\""),
                ));
            }
        }
        next += count;
        described.push(Described { object, name, count, forked, first });
    }
    Ok(described)
}

fn tasks(described: &[Described], names: &mut Names, programs: &Programs) -> Result<(), WorkloadError> {
    let sources =
        described.iter().map(|task| source(task, names, programs)).collect::<Result<Vec<_>, _>>()?;
    for barrier in names.counting.clone() {
        let users = described.iter().zip(&sources).filter(|(_, source)| source.does(Op::Barrier { barrier }));
        let mut parties = 0;
        for (task, _) in users {
            if task.forked {
                let why = "forked tasks come here too; say in [workload.barrier] how many are to meet";
                return Err(task.object.file.bad(task.object.at, "barrier", why));
            }
            parties += task.count;
        }
        names.w.workload_mut().objects.barriers[barrier.index()].parties = parties.max(1);
    }
    let mut processes: Vec<(String, ProcessId)> = Vec::new();
    for (task, source) in described.iter().zip(&sources) {
        add(task, source, names, &mut processes)?;
    }
    Ok(())
}

/// A task's program: its own ops, or those of a program described by name.
fn source(task: &Described, names: &mut Names, programs: &Programs) -> Result<Source, WorkloadError> {
    let entry = task.object.get("program")?.ok_or_else(|| missing(&task.object, "program"))?;
    if let Kind::String(name) = &entry.value.kind
        && let Some(source) = programs.get(name)
    {
        return Ok(source.clone());
    }
    program::read(task.object.file, entry, names)
}

fn add(
    task: &Described,
    source: &Source,
    names: &mut Names,
    processes: &mut Vec<(String, ProcessId)>,
) -> Result<(), WorkloadError> {
    let o = &task.object;
    let file = o.file;
    let program = source.write(names, &task.name, task.forked);
    let mut sched = SchedWords::default();
    let mut has_sched = o.get("policy")?.is_some();
    for &key in SchedWords::KEYS {
        if let Some(entry) = o.get(key)? {
            has_sched = true;
            sched.set(key, &file.word(entry)?).map_err(|why| file.bad(entry.value.at, key, why))?;
        }
    }
    let attr =
        sched.attr(o.string("policy")?.unwrap_or("other")).map_err(|why| file.bad(o.at, "policy", why))?;
    let process = match o.string("process")? {
        None => Process::Own,
        Some(name) => match processes.iter().find(|(known, _)| known == name) {
            Some((_, process)) => Process::Thread(*process),
            None => {
                let process = names.w.process();
                processes.push((name.to_string(), process));
                Process::Thread(process)
            }
        },
    };
    let start = o.param("start")?;
    if task.forked && start.is_some() {
        return Err(file.bad(o.at, "start", "a forked task starts when it is forked"));
    }
    let cpus: Option<CpuList> = o.param::<Option<CpuList>>("cpus")?.flatten();
    let spec = TaskSpec {
        start: if task.forked { Start::ByFork } else { Start::At(start.unwrap_or_default()) },
        start_cpu: o.param("start_cpu")?.flatten(),
        process,
        kthread: o.bool("kthread")?.unwrap_or(false),
        attr: has_sched.then(|| names.w.attr(attr)),
        cpus: cpus.map(|cpus| names.w.cpus(cpus)),
        group: o.string("group")?.and_then(|path| names.w.group(path)),
        footprint: o.param("footprint")?.unwrap_or(0),
        memory_bound: o.bool("memory_bound")?.unwrap_or(false),
        background: o.bool("background")?.unwrap_or(false),
        ..TaskSpec::root(task.name.clone(), program)
    };
    debug_assert_eq!(names.w.next_task(), task.first);
    for i in 0..task.count {
        let name = if task.count == 1 { task.name.clone() } else { format!("{}-{i}", task.name) };
        names.w.task(TaskSpec { name, ..spec.clone() });
    }
    Ok(())
}

fn measures(table: &Object, names: &mut Names) -> Result<(), WorkloadError> {
    for o in table.tables_of("measure")? {
        o.only(&["name", "rule", "from", "to", "label", "amount", "skip", "better"])?;
        let name = o.string("name")?.ok_or_else(|| missing(&o, "name"))?.to_string();
        let mut label = |key: &str| {
            let text = o.string(key)?.ok_or_else(|| missing(&o, key))?;
            Ok::<_, WorkloadError>(names.w.label(text))
        };
        let (unit, lower, rule) = match o.string("rule")?.unwrap_or("elapsed") {
            "elapsed" => ("s", true, MeasureRule::Elapsed { from: label("from")?, to: label("to")? }),
            "spans" => ("ns", true, MeasureRule::Spans { from: label("from")?, to: label("to")? }),
            "rate" => ("/s", false, MeasureRule::Rate { label: label("label")? }),
            "best-rate" => {
                let (from, to) = (label("from")?, label("to")?);
                let amount = o.param("amount")?.ok_or_else(|| missing(&o, "amount"))?;
                (
                    "M/s",
                    false,
                    MeasureRule::BestRate { from, to, amount, skip: o.param("skip")?.unwrap_or(0) },
                )
            }
            other => {
                let why = format!("\"{other}\" is none of elapsed, spans, rate, best-rate");
                return Err(o.file.bad(o.at, "rule", why));
            }
        };
        let lower_is_better = match o.string("better")? {
            None => lower,
            Some("lower") => true,
            Some("higher") => false,
            Some(other) => {
                return Err(o.file.bad(o.at, "better", format!("\"{other}\" is neither lower nor higher")));
            }
        };
        names.w.measure(Measure { name, unit, lower_is_better, rule });
    }
    Ok(())
}

impl Object<'_> {
    /// A span that may be drawn.
    fn dist(&self, key: &str) -> Result<Option<crate::Dist>, WorkloadError> {
        self.read(key, |entry| {
            let text = self.file.string(entry)?.replace(' ', "");
            read_dist(&text).map_err(|why| self.file.bad(entry.value.at, key, why))
        })
    }

    /// A value of any type that models' parameters can have.
    fn param<T: crate::Param>(&self, key: &str) -> Result<Option<T>, WorkloadError> {
        self.read(key, |entry| self.file.param(entry))
    }
}
