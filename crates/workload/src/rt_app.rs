//! Reads rt-app's JSON: the common language for describing loads to schedulers.
//!
//! Every key is honoured, refused by name, or listed in the notes with the reason why it changes nothing here. Where
//! rt-app differs from its manual, this follows rt-app: a `sync` expects its mutex to be held, a phase with `loop` 0
//! runs for ever, a barrier counts references.
//!
//! The text of a `suspend` names the condition to wait on; if it is missing, that is the task's own name: the
//! tool's example files depend on that.
//!
//! Left out: the tool's log files and its `stats` markers; a thread whose name is
//! longer than 15 bytes keeps its beginning (the tool leaves it the name `rt-app`);
//! a forked thread without `cpus` that comes back from a phase with `cpus` may
//! then run on every CPU, not on those of its parent. Since `memrun` does not say
//! what it does without a `pattern`, it is random.
//!
//! Adopted from scx-sim: `cpus` as a number or a list, `taskgroup` as an object with `cpu.max` and
//! `cpu.weight`, `kthread`, and tasks named `irq_gen*`, which become interrupts.

mod event;
mod global;
mod json;
mod resource;
mod sched;
mod task;
mod thread;

use std::collections::{BTreeMap, BTreeSet};

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use self::event::What;
use self::global::{Calibration, Global};
use self::resource::Resources;
use self::task::Task;
use self::thread::{Role, Threads};
use crate::tree::{File, Object};
use crate::{
    Dist, Naming, Process, SourceSpec, SpecId, TASKS_MAX, TaskSpec, Trigger, Workload, WorkloadBuilder,
    WorkloadError,
};

/// A workload read from a file, with what the reader should know about it.
#[derive(Clone, Debug)]
pub struct RtApp {
    /// The workload.
    pub workload: Workload,
    /// Keys that were read but change nothing, each with its place and the reason.
    pub notes: Vec<String>,
}

impl RtApp {
    /// Reads the text of a file; `file` is its name, for the places in errors.
    ///
    /// # Errors
    /// The first thing that cannot be read or is not simulated, by name, with file and line.
    pub fn parse(text: &str, file: &str) -> Result<RtApp, WorkloadError> {
        let root = json::read(text, file)?;
        let file = File(file);
        let root = Object::new(file, &root, "the file".to_string())?;
        root.only(&["global", "tasks", "resources"])?;
        let mut notes = Vec::new();
        let global = Global::read(file, root.get("global")?.map(|e| &e.value), &mut notes)?;
        if let Some(entry) = root.get("resources")? {
            resource::check_section(file, &entry.value)?;
        }
        let Some(tasks) = root.get("tasks")? else {
            return Err(file.bad(root.at, "tasks", "the file describes no tasks"));
        };
        let tasks = task::read(file, &tasks.value, &global, &mut notes)?;
        let (interrupts, tasks): (Vec<Task>, Vec<Task>) = tasks.into_iter().partition(Task::is_irq_generator);
        let mut w = WorkloadBuilder::new(base_name(file.0));
        w.file(file.0);
        for task in &interrupts {
            add_interrupts(&mut w, file, task, &mut notes)?;
        }
        add_threads(&mut w, file, &global, &tasks)?;
        w.workload_mut().duration = global.duration;
        if let Calibration::Cpu(cpu) = global.calibration {
            w.workload_mut().calibrated_on = Some(cpu);
        }
        Ok(RtApp { workload: w.finish()?, notes })
    }
}

/// The main thread and all others. Specs are numbered: initial threads in file
/// order, then one for each task that is forked, then the main thread.
fn add_threads(
    w: &mut WorkloadBuilder,
    file: File,
    global: &Global,
    tasks: &[Task],
) -> Result<(), WorkloadError> {
    let nr_threads = tasks.iter().fold(0u32, |sum, task| sum.saturating_add(task.instances));
    if nr_threads > TASKS_MAX {
        return Err(file.bad(
            tasks[0].at,
            "instance",
            format!("{nr_threads} threads are more than {TASKS_MAX}"),
        ));
    }
    if nr_threads == 0 {
        let Some(task) = tasks.first() else {
            return Err(file.bad((1, 1), "tasks", "the file describes no tasks"));
        };
        return Err(file.bad(task.at, "instance", "every task has 0 instances, so nothing starts"));
    }
    let process = w.process();
    let start = w.barrier("threads_barrier", nr_threads, Duration::ZERO);
    let resources = Resources::new(global.pi_enabled, global.mem_buffer_size, tasks);
    let forks = tasks.iter().flat_map(Task::events).filter_map(|event| match &event.what {
        What::Fork(name) => Some(name.as_str()),
        _ => None,
    });
    let forks: BTreeSet<&str> = forks.collect();
    let is_forked = |task: &&Task| forks.contains(task.name.as_str());
    let mut forked = BTreeMap::new();
    for (task, spec) in tasks.iter().filter(is_forked).zip((nr_threads..).map(SpecId)) {
        // If several have one name, the first is meant.
        forked.entry(task.name.clone()).or_insert(spec);
    }
    let mut threads = Threads { file, global, resources, forked, start };
    // The threads that the main thread creates: kernel threads are there already.
    let mut created = Vec::new();
    for task in tasks {
        let mut first = None;
        let mut initial = None;
        for _ in 0..task.instances {
            let index = w.next_task().0;
            let (role, program) =
                if index == 0 { (Role::First, &mut first) } else { (Role::Initial, &mut initial) };
            let program = match *program {
                Some(program) => program,
                None => *program.insert(threads.program(w, task, role)?),
            };
            let name = task.name.clone();
            let spec = if task.kthread {
                TaskSpec { kthread: true, process: Process::Own, ..TaskSpec::root(name, program) }
            } else {
                created.push(w.next_task());
                TaskSpec::forked(name, program).thread_of(process)
            };
            w.numbered_task(spec, index);
        }
    }
    for task in tasks.iter().filter(is_forked) {
        let program = threads.program(w, task, Role::Forked)?;
        let naming = Naming::Counted { first: nr_threads };
        w.task(TaskSpec { naming, ..TaskSpec::forked(task.name.clone(), program).thread_of(process) });
    }
    let main = main_program(w, global, &created);
    w.task(TaskSpec::root("rt-app", main).thread_of(process));
    Ok(())
}

/// The main thread creates the others one by one and waits for them.
fn main_program(w: &mut WorkloadBuilder, global: &Global, threads: &[SpecId]) -> crate::ProgramId {
    let begins = global.ftrace.main.then(|| w.label("rtapp_main: event=start"));
    let ends = global.ftrace.main.then(|| w.label("rtapp_main: event=end"));
    w.program("main", |p| {
        if let Some(label) = begins {
            p.mark(label, 0);
        }
        for &thread in threads {
            p.fork(thread);
        }
        for &thread in threads {
            p.join(thread);
        }
        if let Some(label) = ends {
            p.mark(label, 0);
        }
    })
}

/// A task that runs and sleeps in turn, as interrupts that steal that time.
fn add_interrupts(
    w: &mut WorkloadBuilder,
    file: File,
    task: &Task,
    notes: &mut Vec<String>,
) -> Result<(), WorkloadError> {
    let pinned = task.settings.cpus.as_ref().or(task.phases[0].settings.cpus.as_ref());
    let cpu: CpuId = match pinned.map(|cpus| cpus.cpus()) {
        Some([cpu]) => *cpu,
        _ => return Err(file.bad(task.at, &task.name, "a source of interrupts needs one CPU in \"cpus\"")),
    };
    let sum = |pick: fn(&What) -> Option<Duration>| {
        task.events().filter_map(|e| pick(&e.what)).fold(Duration::ZERO, |sum, span| sum + span)
    };
    let soft = sum(|what| if let What::Run(span) = what { Some(*span) } else { None });
    let idle = sum(|what| if let What::Sleep(span) = what { Some(*span) } else { None });
    let every = w.dist(Dist::Constant(soft + idle));
    let trigger = Trigger::Every(every);
    let name = task.name.clone();
    w.source(SourceSpec { name, cpu, trigger, hard: Duration::ZERO, soft, posts: None });
    notes.push(format!(
        "{}:{}: \"{}\" is taken for softirqs of {soft} every {} on CPU {cpu}, not for a task",
        file.0,
        task.at.0,
        task.name,
        soft + idle
    ));
    Ok(())
}

/// The file's name without folders and extension.
fn base_name(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".json").unwrap_or(name)
}

#[cfg(test)]
mod tests;
