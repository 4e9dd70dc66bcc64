//! Builds a workload.
//!
//! Objects are made by methods that return their ids; programs are written op by
//! op into a [`ProgramBuilder`]; [`finish`](WorkloadBuilder::finish) checks the whole.
//!
//! ```
//! use schedlab_units::Duration;
//! use schedlab_workload::{TaskSpec, WorkloadBuilder};
//!
//! let mut w = WorkloadBuilder::new("two that share a lock");
//! let lock = w.mutex("lock");
//! let program = w.program("worker", |p| {
//!     p.repeat(100, |p| {
//!         p.lock(lock).run(Duration::micros(50)).unlock(lock);
//!         p.sleep(Duration::millis(1));
//!     });
//! });
//! w.task(TaskSpec::root("a", program));
//! w.task(TaskSpec::root("b", program));
//! let workload = w.finish()?;
//! assert_eq!(workload.tasks.len(), 2);
//! # Ok::<(), schedlab_workload::WorkloadError>(())
//! ```

mod program;

pub use program::{Label, ProgramBuilder};

use std::collections::BTreeMap;

use schedlab_units::Duration;

use crate::check::{self, Finding, Site};
use crate::{
    AccessId, AccessSpec, AttrId, BarrierId, BarrierSpec, ChannelId, ChannelKind, ChannelSpec, CommId,
    CondId, CpuList, CpuListId, DeviceId, DeviceSpec, Dist, DistId, GroupId, GroupSpec, LabelId, Measure,
    MutexId, MutexKind, MutexSpec, PartId, Pc, Place, ProcessId, Program, ProgramId, QueueId, QueueKind,
    QueueSpec, RegionId, RegionSpec, SchedAttr, SemId, SemSpec, SourceId, SourceSpec, SpecId, TaskSpec,
    TimerId, WordId, WordSpec, Workload, WorkloadError,
};

/// A workload under construction.
#[derive(Debug, Default)]
pub struct WorkloadBuilder {
    workload: Workload,
    nr_processes: u32,
    comms: BTreeMap<String, CommId>,
    labels: BTreeMap<String, LabelId>,
    /// By path.
    groups: BTreeMap<String, GroupId>,
    /// Where each op came from, if from a file.
    lines: BTreeMap<Pc, (u32, u32)>,
    /// Where each part with a name was described, if in a file.
    parts: BTreeMap<String, (u32, u32)>,
    file: Option<String>,
}

impl From<Workload> for WorkloadBuilder {
    /// Starts from a finished workload, to add to it.
    fn from(workload: Workload) -> WorkloadBuilder {
        let named = |names: &[String]| names.iter().cloned().zip(0..).collect::<Vec<(String, u32)>>();
        WorkloadBuilder {
            nr_processes: workload.nr_processes(),
            comms: named(&workload.comms).into_iter().map(|(name, id)| (name, CommId(id))).collect(),
            groups: workload
                .groups
                .iter()
                .zip(0..)
                .map(|(group, id)| (group.path.clone(), GroupId(id)))
                .collect(),
            labels: named(&workload.labels).into_iter().map(|(name, id)| (name, LabelId(id))).collect(),
            workload,
            ..WorkloadBuilder::default()
        }
    }
}

impl WorkloadBuilder {
    /// An empty workload.
    pub fn new(name: impl Into<String>) -> WorkloadBuilder {
        let workload = Workload { name: name.into(), ..Workload::default() };
        WorkloadBuilder { workload, ..WorkloadBuilder::default() }
    }

    /// Names the file that ops are read from, for the places in errors.
    pub fn file(&mut self, file: impl Into<String>) {
        self.file = Some(file.into());
    }

    /// Says where in the file a part is described: `barrier "b"`, `task "a"`.
    pub fn described_at(&mut self, part: impl Into<String>, line: u32, column: u32) {
        self.parts.entry(part.into()).or_insert((line, column));
    }

    /// A mutex of user space.
    pub fn mutex(&mut self, name: impl Into<String>) -> MutexId {
        self.mutex_of(MutexSpec { name: name.into(), kind: MutexKind::Futex, pi: false })
    }

    /// A mutex of any kind.
    pub fn mutex_of(&mut self, spec: MutexSpec) -> MutexId {
        MutexId(push(&mut self.workload.objects.mutexes, spec))
    }

    /// A condition variable.
    pub fn cond(&mut self, name: impl Into<String>) -> CondId {
        CondId(push(&mut self.workload.objects.conds, name.into()))
    }

    /// A semaphore with its count at the start.
    pub fn sem(&mut self, name: impl Into<String>, initial: u32) -> SemId {
        SemId(push(
            &mut self.workload.objects.sems,
            SemSpec { name: name.into(), initial, owes: false, sync: false },
        ))
    }

    /// A barrier for `parties`, each spinning for `spin` before it sleeps.
    pub fn barrier(&mut self, name: impl Into<String>, parties: u32, spin: Duration) -> BarrierId {
        BarrierId(push(&mut self.workload.objects.barriers, BarrierSpec { name: name.into(), parties, spin }))
    }

    /// A pipe of the default size: 16 pages.
    pub fn pipe(&mut self, name: impl Into<String>) -> ChannelId {
        self.channel(name, ChannelKind::Pipe, PIPE_BYTES)
    }

    /// One direction of a pair of unix sockets, for small messages.
    pub fn socket(&mut self, name: impl Into<String>) -> ChannelId {
        self.channel(name, ChannelKind::Socket, SOCKET_BYTES)
    }

    /// A pipe or a socket.
    pub fn channel(&mut self, name: impl Into<String>, kind: ChannelKind, capacity: u32) -> ChannelId {
        ChannelId(push(
            &mut self.workload.objects.channels,
            ChannelSpec { name: name.into(), kind, capacity },
        ))
    }

    /// A timer that several tasks share.
    pub fn timer(&mut self, name: impl Into<String>) -> TimerId {
        TimerId(push(&mut self.workload.objects.timers, name.into()))
    }

    /// A word of memory with its value at the start.
    pub fn word(&mut self, name: impl Into<String>, initial: i32) -> WordId {
        WordId(push(&mut self.workload.objects.words, WordSpec { name: name.into(), initial }))
    }

    /// A block device.
    pub fn device(&mut self, spec: DeviceSpec) -> DeviceId {
        DeviceId(push(&mut self.workload.objects.devices, spec))
    }

    /// A workqueue.
    pub fn queue(&mut self, name: impl Into<String>, kind: QueueKind) -> QueueId {
        QueueId(push(&mut self.workload.objects.queues, QueueSpec { name: name.into(), kind }))
    }

    /// A stretch of memory.
    pub fn region(&mut self, name: impl Into<String>, bytes: u64) -> RegionId {
        RegionId(push(&mut self.workload.objects.regions, RegionSpec { name: name.into(), bytes }))
    }

    /// A pass over a region.
    pub fn access(&mut self, spec: AccessSpec) -> AccessId {
        AccessId(find_or_push(&mut self.workload.objects.accesses, spec))
    }

    /// A source of interrupts.
    pub fn source(&mut self, spec: SourceSpec) -> SourceId {
        SourceId(push(&mut self.workload.objects.sources, spec))
    }

    /// A distribution.
    pub fn dist(&mut self, dist: Dist) -> DistId {
        DistId(find_or_push(&mut self.workload.dists, dist))
    }

    /// A set of allowed CPUs.
    pub fn cpus(&mut self, cpus: CpuList) -> CpuListId {
        CpuListId(find_or_push(&mut self.workload.cpu_lists, cpus))
    }

    /// Scheduling attributes.
    pub fn attr(&mut self, attr: SchedAttr) -> AttrId {
        AttrId(find_or_push(&mut self.workload.attrs, attr))
    }

    /// The group at a path like `/a/b`, created with its parents if it does not exist yet; `None` for the
    /// root, `/` or an empty path.
    pub fn group(&mut self, path: &str) -> Option<GroupId> {
        let mut group = None;
        let mut reached = String::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            reached.push('/');
            reached.push_str(part);
            group = Some(match self.groups.get(&reached) {
                Some(&known) => known,
                None => {
                    let new =
                        GroupId(push(&mut self.workload.groups, GroupSpec::new(reached.clone(), group)));
                    self.groups.insert(reached.clone(), new);
                    new
                }
            });
        }
        group
    }

    /// A group, to change its parameters.
    pub fn group_mut(&mut self, group: GroupId) -> &mut GroupSpec {
        &mut self.workload.groups[group.index()]
    }

    /// A comm.
    pub fn comm(&mut self, comm: &str) -> CommId {
        let comms = &mut self.workload.comms;
        *self.comms.entry(comm.to_string()).or_insert_with(|| CommId(push(comms, comm.to_string())))
    }

    /// The text of a mark.
    pub fn label(&mut self, label: &str) -> LabelId {
        let labels = &mut self.workload.labels;
        *self.labels.entry(label.to_string()).or_insert_with(|| LabelId(push(labels, label.to_string())))
    }

    /// A part of a kernel string.
    pub fn part(&mut self, part: &str) -> PartId {
        let parts = &mut self.workload.parts;
        match parts.iter().position(|known| known == part) {
            Some(at) => PartId(at as u32),
            None => PartId(push(parts, part.to_string())),
        }
    }

    /// A process for threads to share.
    pub fn process(&mut self) -> ProcessId {
        self.nr_processes += 1;
        ProcessId(self.nr_processes - 1)
    }

    /// A program; an exit is added at its end.
    pub fn program(&mut self, name: impl Into<String>, write: impl FnOnce(&mut ProgramBuilder)) -> ProgramId {
        let name = name.into();
        let entry = Pc(self.workload.code.len() as u32);
        program::write(&mut self.workload.code, &mut self.lines, write);
        let len = self.workload.code.len() as u32 - entry.0;
        ProgramId(push(&mut self.workload.programs, Program { name, entry, len }))
    }

    /// A task.
    pub fn task(&mut self, spec: TaskSpec) -> SpecId {
        self.workload.add_task(spec, None)
    }

    /// A task that is one of several of this name, from which its number distinguishes it.
    pub fn numbered_task(&mut self, spec: TaskSpec, number: u32) -> SpecId {
        self.workload.add_task(spec, Some(number))
    }

    /// The id that the next [`task`](WorkloadBuilder::task) gets, to fork it before it is described.
    pub fn next_task(&self) -> SpecId {
        SpecId(self.workload.tasks.len() as u32)
    }

    /// A figure computed from the marks.
    pub fn measure(&mut self, measure: Measure) {
        self.workload.measures.push(measure);
    }

    /// Kills everything after `duration`.
    pub fn stop_after(&mut self, duration: Duration) {
        self.workload.duration = Some(duration);
    }

    /// The workload as it is, to change what has no method here.
    pub fn workload_mut(&mut self) -> &mut Workload {
        &mut self.workload
    }

    /// The workload, checked.
    ///
    /// # Errors
    /// The first [`Fault`](crate::Fault) found, with its place.
    pub fn finish(self) -> Result<Workload, WorkloadError> {
        match check::check(&self.workload) {
            Ok(()) => Ok(self.workload),
            Err(Finding { fault, at }) => Err(WorkloadError::Fault { at: self.place(at), fault }),
        }
    }

    fn place(&self, site: Site) -> Place {
        let part = match site {
            Site::Workload => format!("workload \"{}\"", self.workload.name),
            Site::Task(spec) => format!("task \"{}\"", self.workload.task_name(spec)),
            Site::Part(part) => part,
            Site::Op(pc) => return self.place_of_op(pc),
        };
        match (&self.file, self.parts.get(&part)) {
            (Some(file), Some((line, column))) => Place::Part(format!("{file}:{line}:{column}: {part}")),
            (Some(file), None) => Place::Part(format!("{file}: {part}")),
            (None, _) => Place::Part(part),
        }
    }

    fn place_of_op(&self, pc: Pc) -> Place {
        if let (Some(file), Some(&(line, column))) = (&self.file, self.lines.get(&pc)) {
            return Place::File { file: file.clone(), line, column };
        }
        let holds = |p: &&Program| (p.entry..Pc(p.entry.0 + p.len)).contains(&pc);
        match self.workload.programs.iter().find(holds) {
            Some(program) => Place::Op { program: program.name.clone(), op: pc.0 - program.entry.0 },
            None => Place::Part(format!("op {pc}")),
        }
    }
}

/// How many bytes a unix socket holds in messages of 100 bytes: each counts as 768 of 212992.
pub(crate) const SOCKET_BYTES: u32 = 212_992 / 768 * 100;

/// The capacity of a new pipe.
const PIPE_BYTES: u32 = 16 * 4096;

fn push<T>(table: &mut Vec<T>, value: T) -> u32 {
    table.push(value);
    table.len() as u32 - 1
}

fn find_or_push<T: PartialEq>(table: &mut Vec<T>, value: T) -> u32 {
    match table.iter().position(|known| *known == value) {
        Some(index) => index as u32,
        None => push(table, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_that_is_done_can_be_added_to() {
        let mut w = WorkloadBuilder::new("two");
        let process = w.process();
        let (comm, label) = (w.comm("a"), w.label("done"));
        let program = w.program("a", |_| {});
        w.task(TaskSpec::root("a", program).thread_of(process));
        let mut w = WorkloadBuilder::from(w.finish().unwrap());
        assert_ne!(w.process(), process, "nobody joins it unasked");
        assert_eq!((w.comm("a"), w.label("done")), (comm, label));
        assert_ne!((w.comm("b"), w.label("more")), (comm, label));
        let more = w.program("b", |_| {});
        w.task(TaskSpec::root("b", more));
        let workload = w.finish().unwrap();
        let names: Vec<_> = workload.tasks.iter().map(|task| task.name()).collect();
        assert_eq!(names, ["a", "b"]);
    }
}
