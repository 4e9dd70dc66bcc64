//! Tasks described in the scenario itself, with the objects that they share.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{AnyTask, Names};
use super::objects::{self, missing};
use super::op::SchedWords;
use super::program::{self, Source};
use crate::tree::{Kind, Object};
use crate::{
    CpuList, Measure, MeasureRule, Op, Process, ProcessId, ProgramId, SpecId, Start, TASKS_MAX, TaskSpec,
    Workload, WorkloadBuilder, WorkloadError,
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
    "fresh_domains",
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

/// More tasks of a kind than any machine can run; a typing error should not use up the memory.
const COUNT_MAX: i64 = 1_000_000;

/// Reads a `[workload]` with inline tasks.
pub(super) fn read(table: &Object) -> Result<Workload, WorkloadError> {
    table.only(KEYS)?;
    let mut w = WorkloadBuilder::new(table.string("name")?.unwrap_or("tasks"));
    w.file(table.file.0);
    if let Some(duration) = super::duration(table)? {
        w.stop_after(duration);
    }
    w.workload_mut().fresh_domains = table.bool("fresh_domains")?.unwrap_or(false);
    let mut names = Names::new(&mut w);
    objects::read(table, &mut names)?;
    let described = described(table, &mut names)?;
    let programs = programs(table, &mut names)?;
    tasks(&described, &mut names, &programs)?;
    measures(table, &mut names)?;
    w.finish()
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

/// A `[[workload.task]]` after the first pass.
struct Described<'a> {
    object: Object<'a>,
    name: String,
    count: u32,
    forked: bool,
    first: SpecId,
}

/// Assigns ids first, so that programs can fork tasks described further down.
fn described<'a>(table: &'a Object, names: &mut Names) -> Result<Vec<Described<'a>>, WorkloadError> {
    let mut described: Vec<Described> = Vec::new();
    let mut next = names.w.next_task().0;
    for object in table.tables_of("task")? {
        let known: Vec<&str> = TASK_KEYS.iter().chain(SchedWords::KEYS).copied().collect();
        object.only(&known)?;
        let name = object.string("name")?.ok_or_else(|| missing(&object, "name"))?.to_string();
        let count = object.read("count", |entry| object.file.int(entry, 0..=COUNT_MAX))?.unwrap_or(1) as u32;
        let forked = object.bool("forked")?.unwrap_or(false);
        let first = SpecId(next);
        // Other tasks may change it; if several have one name, the last described is meant.
        names.declare(&name, AnyTask(first));
        for nth in (0..count).filter(|_| count > 1) {
            names.declare(&format!("{name}-{nth}"), AnyTask(SpecId(next + nth)));
        }
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
        if next > TASKS_MAX {
            let why = format!("so there are {next} tasks, and Linux numbers no more than {TASKS_MAX}");
            return Err(object.file.bad(object.at, "count", why));
        }
        described.push(Described { object, name, count, forked, first });
    }
    Ok(described)
}

fn tasks(described: &[Described], names: &mut Names, programs: &Programs) -> Result<(), WorkloadError> {
    let sources =
        described.iter().map(|task| sources(task, names, programs)).collect::<Result<Vec<_>, _>>()?;
    for barrier in names.counting.clone() {
        let mut parties = 0;
        for (task, sources) in described.iter().zip(&sources) {
            let users = sources.iter().filter(|source| source.does(Op::Barrier { barrier })).count() as u32;
            if users == 0 {
                continue;
            }
            if task.forked {
                let why = "forked tasks come here too; say in [workload.barrier] how many are to meet";
                return Err(task.object.file.bad(task.object.at, "barrier", why));
            }
            parties += if sources.len() == 1 { task.count } else { users };
        }
        names.w.workload_mut().objects.barriers[barrier.index()].parties = parties.max(1);
    }
    let mut processes: Vec<(String, ProcessId)> = Vec::new();
    for (task, sources) in described.iter().zip(&sources) {
        add(task, sources, names, &mut processes)?;
    }
    Ok(())
}

/// The programs of a task with a count: one, or one for each instance if its text contains `{n}`, so that each has
/// channels and words of its own.
fn sources(task: &Described, names: &mut Names, programs: &Programs) -> Result<Vec<Source>, WorkloadError> {
    let entry = task.object.get("program")?.ok_or_else(|| missing(&task.object, "program"))?;
    let numbered = |kind: &Kind| matches!(kind, Kind::String(text) if program::is_numbered(text));
    let each = match &entry.value.kind {
        Kind::Array(values) => values.iter().any(|value| numbered(&value.kind)),
        kind => numbered(kind),
    };
    if !each {
        return Ok(vec![source(task, names, programs)?]);
    }
    if task.forked {
        let why = "{n} is the number of one of several tasks, and a forked task has none";
        return Err(task.object.file.bad(entry.value.at, "program", why));
    }
    let read = |nth| program::read_numbered(task.object.file, entry, names, Some((nth, task.count)));
    (0..task.count).map(read).collect()
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
    sources: &[Source],
    names: &mut Names,
    processes: &mut Vec<(String, ProcessId)>,
) -> Result<(), WorkloadError> {
    let o = &task.object;
    let file = o.file;
    let first = if task.count == 1 { task.name.clone() } else { format!("{}-0", task.name) };
    names.w.described_at(format!("task \"{first}\""), o.at.0, o.at.1);
    let written: Vec<_> = sources.iter().map(|source| source.write(names, &task.name, task.forked)).collect();
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
        ..TaskSpec::root(task.name.clone(), written.first().copied().unwrap_or(ProgramId(0)))
    };
    debug_assert_eq!(names.w.next_task(), task.first);
    for i in 0..task.count {
        let spec = TaskSpec { program: written[i as usize % written.len()], ..spec.clone() };
        if task.count == 1 {
            names.w.task(spec);
        } else {
            names.w.numbered_task(spec, i);
        }
    }
    Ok(())
}

/// `at = "p99.9"`: a percentile of spans instead of their mean.
fn permille(o: &Object) -> Result<Option<u16>, WorkloadError> {
    let Some(text) = o.string("at")? else { return Ok(None) };
    let percent =
        if text == "max" { Some(100.0) } else { text.strip_prefix('p').and_then(|p| p.parse::<f64>().ok()) };
    let permille = percent.map(|percent| (percent * 10.0).round()).filter(|p| (0.0..=1000.0).contains(p));
    match permille {
        Some(permille) => Ok(Some(permille as u16)),
        None => Err(o.file.bad(
            o.at,
            "at",
            format!("\"{text}\" is not a percentile; write it like p50, p99.9 or max"),
        )),
    }
}

fn measures(table: &Object, names: &mut Names) -> Result<(), WorkloadError> {
    let mut taken = BTreeSet::new();
    for o in table.tables_of("measure")? {
        o.only(&["name", "rule", "from", "to", "label", "amount", "skip", "better", "at"])?;
        let name = o.string("name")?.ok_or_else(|| missing(&o, "name"))?.to_string();
        if !taken.insert(name.clone()) {
            return Err(o.file.bad(o.at, "name", format!("there is another measure \"{name}\"")));
        }
        names.w.described_at(format!("measure \"{name}\""), o.at.0, o.at.1);
        let mut label = |key: &str| {
            let text = o.string(key)?.ok_or_else(|| missing(&o, key))?;
            Ok::<_, WorkloadError>(names.w.label(text))
        };
        let (unit, lower, rule) = match o.string("rule")?.unwrap_or("elapsed") {
            "elapsed" => ("s", true, MeasureRule::Elapsed { from: label("from")?, to: label("to")? }),
            "spans" => {
                let (from, to) = (label("from")?, label("to")?);
                let rule = match permille(&o)? {
                    None => MeasureRule::Spans { from, to },
                    Some(permille) => MeasureRule::SpanAt { from, to, permille },
                };
                ("ns", true, rule)
            }
            "values" => ("ns", true, MeasureRule::Values { label: label("label")?, permille: permille(&o)? }),
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
                let why = format!("\"{other}\" is not one of elapsed, spans, values, rate, best-rate");
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
