//! Prints a workload in readable form.
//!
//! Ops are written in the syntax of scenario files, so that a printed program can be pasted into one.

mod op;

use core::fmt::{self, Write as _};

use schedlab_units::Duration;

use self::op::{attr_text, dist_text, name, op_text};
use crate::{
    Completion, Measure, MeasureRule, Naming, Op, Process, ProgramId, QueueKind, SpecId, Start, TaskEntry,
    Trigger, Workload,
};

impl Workload {
    /// The workload in words: its parts, and each program op by op.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        describe(self, &mut out).expect("writing to a string does not fail");
        out
    }

    /// An op in the syntax of scenario files. Control flow is written with its target; see
    /// [`describe`](Workload::describe) for whole programs.
    pub fn op_text(&self, op: Op) -> String {
        let mut out = String::new();
        op_text(self, op, &mut out).expect("writing to a string does not fail");
        out
    }
}

fn describe(w: &Workload, out: &mut String) -> fmt::Result {
    let roots = w.roots().count();
    write!(out, "{}: {}, {} of them from the start", w.name, many(w.tasks.len(), "task"), roots)?;
    match w.duration {
        Some(duration) => writeln!(out, "; killed after {duration}")?,
        None => writeln!(out)?,
    }
    objects(w, out)?;
    writeln!(out, "tasks")?;
    for run in runs(&w.tasks) {
        task(w, run, out)?;
    }
    for id in (0..w.programs.len() as u32).map(ProgramId) {
        program(w, id, out)?;
    }
    for measure in &w.measures {
        measure_text(w, measure, out)?;
    }
    Ok(())
}

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Neighbours that differ only in their names are described together.
fn runs(tasks: &[TaskEntry]) -> Vec<(SpecId, &[TaskEntry])> {
    let mut first = 0;
    tasks
        .chunk_by(|a, b| a.is_like(b))
        .map(|run| {
            let id = SpecId(first);
            first += run.len() as u32;
            (id, run)
        })
        .collect()
}

fn objects(w: &Workload, out: &mut String) -> fmt::Result {
    let o = &w.objects;
    for mutex in &o.mutexes {
        let kind = match mutex.kind {
            crate::MutexKind::Futex => String::new(),
            crate::MutexKind::Kernel => " of the kernel".to_string(),
            crate::MutexKind::Spin { spin, sleep: Duration::ZERO } => format!(", spun for {spin}"),
            crate::MutexKind::Spin { spin, sleep } => format!(", spun for {spin}, then sleeping {sleep}"),
        };
        let pi = if mutex.pi { ", with priority inheritance" } else { "" };
        writeln!(out, "mutex {}{kind}{pi}", name(&mutex.name))?;
    }
    for cond in &o.conds {
        writeln!(out, "condition {}", name(cond))?;
    }
    for sem in &o.sems {
        let owes = if sem.owes { ", its posts owed" } else { "" };
        let sync = if sem.sync { ", woken synchronously" } else { "" };
        writeln!(out, "semaphore {} from {}{owes}{sync}", name(&sem.name), sem.initial)?;
    }
    for b in &o.barriers {
        writeln!(out, "barrier {} for {}, spinning {}", name(&b.name), b.parties, b.spin)?;
    }
    for c in &o.channels {
        let kind = match c.kind {
            crate::ChannelKind::Pipe => "pipe",
            crate::ChannelKind::Socket => "socket",
        };
        writeln!(out, "{kind} {} of {} bytes", name(&c.name), c.capacity)?;
    }
    for timer in &o.timers {
        writeln!(out, "timer {}", name(timer))?;
    }
    for word in &o.words {
        writeln!(out, "word {} = {}", name(&word.name), word.initial)?;
    }
    for d in &o.devices {
        let service = dist_text(&w.dists[d.service.index()]);
        let by = match d.completion {
            Completion::IrqSubmitter => "by interrupt at the submitter's CPU".to_string(),
            Completion::IrqAt(cpu) => format!("by interrupt at CPU {cpu}"),
            Completion::Worker { queue, work, softirq } => {
                let how = if softirq { ", notified by softirq" } else { "" };
                format!("by a worker of {}, work {work}{how}", name(&o.queues[queue.index()].name))
            }
        };
        writeln!(out, "device {}: {} at once, service {service}, completed {by}", name(&d.name), d.depth)?;
    }
    for q in &o.queues {
        let kind = match q.kind {
            QueueKind::PerCpu => "bound",
            QueueKind::PerCpuHighPri => "bound, high priority",
            QueueKind::Unbound => "unbound",
        };
        writeln!(out, "workqueue {}: {kind}", name(&q.name))?;
    }
    for r in &o.regions {
        writeln!(out, "region {} of {} bytes", name(&r.name), r.bytes)?;
    }
    for s in &o.sources {
        let when = match s.trigger {
            Trigger::Every(dist) => format!("every {}", dist_text(&w.dists[dist.index()])),
            Trigger::Raised(dist) => format!("{} after it is raised", dist_text(&w.dists[dist.index()])),
        };
        write!(out, "interrupt {} on CPU {} {when}: {} hard, {} soft", name(&s.name), s.cpu, s.hard, s.soft)?;
        match s.posts {
            Some(sem) => writeln!(out, ", posts {}", name(&o.sems[sem.index()].name))?,
            None => writeln!(out)?,
        }
    }
    for g in &w.groups {
        write!(out, "group {}: shares {}", g.path, g.shares)?;
        if let Some(quota) = g.quota {
            write!(out, ", {} in {}", quota.quota, quota.period)?;
        }
        if let Some(min) = g.util_min {
            write!(out, ", utilisation at least {min}")?;
        }
        if let Some(max) = g.util_max {
            write!(out, ", utilisation at most {max}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn task(w: &Workload, (first, run): (SpecId, &[TaskEntry]), out: &mut String) -> fmt::Result {
    let (one, last) = (&run[0], &run[run.len() - 1]);
    match run.len() {
        1 => write!(out, "  {first:>4} {}", one.name())?,
        n => write!(out, "  {first:>4} {} .. {} ({n})", one.name(), last.name())?,
    }
    match one.start {
        Start::At(Duration::ZERO) => write!(out, ", from the start")?,
        Start::At(at) => write!(out, ", from {at}")?,
        Start::ByFork => write!(out, ", forked")?,
    }
    if let Some(cpu) = one.start_cpu {
        write!(out, " on CPU {cpu}")?;
    }
    match one.process {
        Process::Thread(process) => write!(out, ", thread of process {process}")?,
        Process::Own if one.kthread => write!(out, ", kernel thread")?,
        Process::Own => {}
    }
    if let Some(attr) = one.attr {
        write!(out, ", {}", attr_text(&w.attrs[attr.index()]))?;
    }
    if let Some(cpus) = one.cpus {
        write!(out, ", cpus {}", w.cpu_lists[cpus.index()])?;
    }
    if let Some(group) = one.group {
        write!(out, ", group {}", w.groups[group.index()].path)?;
    }
    if let Naming::Counted { .. } = one.naming {
        write!(out, ", numbered")?;
    }
    if one.footprint > 0 {
        write!(out, ", footprint {}", one.footprint)?;
    }
    if one.memory_bound {
        write!(out, ", memory bound")?;
    }
    if one.background {
        write!(out, ", in the background")?;
    }
    if one.lives_on {
        write!(out, ", lives on")?;
    }
    writeln!(out, ": program {}", name(&w.programs[one.program.index()].name))
}

fn program(w: &Workload, id: ProgramId, out: &mut String) -> fmt::Result {
    let entry = w.programs[id.index()].entry;
    let ops = w.ops(id);
    writeln!(out, "program {}", name(&w.programs[id.index()].name))?;
    let mut targets: Vec<u32> = ops.iter().filter_map(|&op| target(op)).map(|pc| pc - entry.0).collect();
    targets.sort_unstable();
    let mut depth = 1;
    for (i, &op) in (0u32..).zip(ops) {
        if targets.binary_search(&i).is_ok() {
            writeln!(out, "{:1$}label L{i}", "", 2 * depth)?;
        }
        // The exit at the end is implied.
        if i + 1 == ops.len() as u32 && op == Op::Exit {
            break;
        }
        depth -= usize::from(matches!(op, Op::EndLoop { .. }));
        let text = match target(op) {
            Some(pc) => w.op_text(op).replace(&format!("@{pc}"), &format!("L{}", pc - entry.0)),
            None => w.op_text(op),
        };
        writeln!(out, "{:1$}{text}", "", 2 * depth)?;
        depth += usize::from(matches!(op, Op::Loop { .. }));
    }
    Ok(())
}

/// Where a jump leads.
fn target(op: Op) -> Option<u32> {
    match op {
        Op::Jump { to } | Op::JumpIf { to, .. } | Op::JumpOdds { to, .. } => Some(to.0),
        _ => None,
    }
}

fn measure_text(w: &Workload, measure: &Measure, out: &mut String) -> fmt::Result {
    let label = |label: crate::LabelId| name(&w.labels[label.index()]);
    let better = if measure.lower_is_better { "lower" } else { "higher" };
    write!(out, "measure {} in {}, {better} is better: ", name(&measure.name), measure.unit)?;
    match measure.rule {
        MeasureRule::Elapsed { from, to } => {
            writeln!(out, "from the first {} to the last {}", label(from), label(to))
        }
        MeasureRule::Spans { from, to } => writeln!(out, "each {} to the next {}", label(from), label(to)),
        MeasureRule::SpanAt { from, to, permille } => {
            writeln!(
                out,
                "of each {} to the next {} what {permille} of 1000 do not exceed",
                label(from),
                label(to)
            )
        }
        MeasureRule::BestRate { from, to, amount, skip } => {
            writeln!(
                out,
                "{amount} by the shortest {} to {}, without the first {skip}",
                label(from),
                label(to)
            )
        }
        MeasureRule::Whole { label: l, whole } => {
            writeln!(out, "time until the sum of {} were {whole}, by its rate", label(l))
        }
        MeasureRule::Values { label: l, permille: None } => writeln!(out, "mean value of {}", label(l)),
        MeasureRule::Values { label: l, permille: Some(permille) } => {
            writeln!(out, "of the values of {} what {permille} of 1000 do not exceed", label(l))
        }
        MeasureRule::Rate { label: l } => writeln!(out, "sum of {} per second", label(l)),
    }
}
