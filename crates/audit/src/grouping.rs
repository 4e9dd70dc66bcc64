//! Keeping tasks in their groups.
//!
//! Groups are made when the first task is met in them. A task is in its cgroup, or, if that
//! is the root, in the group of its session; when it ends it leaves the latter. Who begins a
//! session of his own does so as a rule between his birth and the program he goes on with:
//! where no event tells, it is then that a task enters the session in which it was last seen.

use std::collections::BTreeMap;

use schedlab_sched::{LOAD_SHIFT, TgId, WEIGHT_IDLEPRIO};
use schedlab_topology::CpuId;
use schedlab_trace::Comm;
use schedlab_units::{Pid, TaskId, Time};

use crate::groups::{Groups, Member};
use crate::runtime;
use crate::shadow::Shadow;

/// Bit of a clone that makes a thread. Kernel: CLONE_THREAD, include/uapi/linux/sched.h.
const CLONE_THREAD: u64 = 0x10000;

/// The groups that were made.
#[derive(Clone, Debug, Default)]
pub struct Grouping {
    facts: Groups,
    cgroups: BTreeMap<String, TgId>,
    sessions: BTreeMap<u32, TgId>,
    /// Sessions without a number, which began in the trace.
    unnumbered: u32,
    /// The trace tells when sessions begin.
    told: bool,
    /// Who was cloned last, and is a thread.
    thread: Option<Pid>,
}

/// The groups of a task: what it is in follows from both.
#[derive(Clone, Debug, Default)]
pub struct InGroups {
    process: Pid,
    cgroup: String,
    session: Option<u32>,
    /// The session in which it will have been seen.
    later: Option<u32>,
}

impl Grouping {
    /// Groups as the files tell.
    pub fn new(facts: Groups) -> Grouping {
        Grouping { facts, ..Grouping::default() }
    }

    /// Those of a task that lived before it was met.
    pub fn of_old(&self, pid: Pid, comm: &Comm) -> InGroups {
        let facts = &self.facts;
        let of = |members: &BTreeMap<Pid, Member>| members.get(&pid).cloned();
        let named = |member: &Member| member.comm.as_bytes() == comm.as_bytes();
        // Of a number that was used twice the name decides.
        let member = match (of(&facts.before), of(&facts.after)) {
            (Some(before), Some(after)) if !named(&before) && named(&after) => after,
            (Some(member), _) | (None, Some(member)) => member,
            (None, None) => return InGroups { process: pid, ..InGroups::default() },
        };
        InGroups { process: member.process, cgroup: member.cgroup, session: member.session, later: None }
    }

    /// Those of a new task: its parent's, until it begins a session.
    pub fn of_child(&self, child: Pid, parent: &InGroups) -> InGroups {
        let later = self.facts.after.get(&child).filter(|_| !self.facts.before.contains_key(&child));
        let later =
            later.and_then(|member| member.session).filter(|&session| Some(session) != parent.session);
        let process = if self.thread == Some(child) { parent.process } else { child };
        InGroups { process, later, ..parent.clone() }
    }

    /// A task is cloned.
    pub fn cloned(&mut self, pid: Pid, clone_flags: u64) {
        self.thread = (clone_flags & CLONE_THREAD != 0).then_some(pid);
    }

    /// Tasks of a process that were not met yet are in another group by now.
    fn attach_unmet(&mut self, process: Pid, cgroup: &str) {
        for member in self.facts.before.values_mut().filter(|member| member.process == process) {
            member.cgroup = cgroup.to_owned();
        }
    }
}

impl Shadow {
    /// The group that a task is in.
    pub fn tg_of(&mut self, groups: &InGroups, now: Time) -> TgId {
        let cgroup = self.cgroup(&groups.cgroup, now);
        match groups.session.filter(|_| cgroup == TgId::ROOT && self.grouping.facts.autogroup) {
            Some(session) => self.session(session, now),
            None => cgroup,
        }
    }

    fn cgroup(&mut self, path: &str, now: Time) -> TgId {
        if path.is_empty() {
            return TgId::ROOT;
        }
        if let Some(&tg) = self.grouping.cgroups.get(path) {
            return tg;
        }
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        let above = self.grouping.facts.group_of(above);
        let parent = self.cgroup(&above, now);
        let given = self.grouping.facts.cgroups.get(path).copied().unwrap_or_default();
        let shares = if given.idle { WEIGHT_IDLEPRIO << LOAD_SHIFT } else { given.shares };
        let tg = self.sched.new_group(parent, shares, CpuId(0), now);
        if given.idle {
            self.sched.set_idle_group(tg, true, now);
        }
        self.grouping.cgroups.insert(path.to_owned(), tg);
        tg
    }

    fn session(&mut self, session: u32, now: Time) -> TgId {
        if let Some(&tg) = self.grouping.sessions.get(&session) {
            return tg;
        }
        let shares = self.grouping.facts.session_shares(session);
        let tg = self.sched.new_group(TgId::ROOT, shares, CpuId(0), now);
        self.grouping.sessions.insert(session, tg);
        tg
    }

    /// Puts a task into the group that it is in by now.
    fn regroup(&mut self, task: TaskId, now: Time) {
        let groups = self.known(task).groups.clone();
        let tg = self.tg_of(&groups, now);
        if self.sched.task(task).tg == tg {
            return;
        }
        let runs = self.runs(task);
        if runs {
            runtime::unpin(self, task);
        }
        self.sched.move_task_to_group(task, tg, now);
        if runs {
            runtime::pin(self, task);
        }
        self.generation += 1;
    }

    /// A task goes on with another program, or leaves a CPU for the first time: by now it has
    /// begun the session in which it was last seen.
    pub fn settled(&mut self, task: TaskId, now: Time) {
        let told = self.grouping.told;
        let groups = &mut self.known_mut(task).groups;
        if let Some(session) = groups.later.take()
            && !told
        {
            groups.session = Some(session);
            self.regroup(task, now);
        }
    }

    /// A task has begun a session of its own.
    pub fn began_session(&mut self, task: TaskId, now: Time) {
        self.grouping.told = true;
        self.grouping.unnumbered += 1;
        let unnumbered = u32::MAX - self.grouping.unnumbered;
        let groups = &mut self.known_mut(task).groups;
        let session = groups.later.take().unwrap_or(unnumbered);
        groups.session = Some(session);
        self.regroup(task, now);
    }

    /// A task ends: it is no longer in the group of its session.
    pub fn left_session(&mut self, task: TaskId, now: Time) {
        let groups = &mut self.known_mut(task).groups;
        (groups.session, groups.later) = (None, None);
        self.regroup(task, now);
    }

    /// A process is moved to another cgroup.
    pub fn attached(&mut self, hierarchy: i32, process: Pid, path: &str, now: Time) {
        if hierarchy != self.grouping.facts.hierarchy {
            return;
        }
        let cgroup = self.grouping.facts.group_of(path);
        self.grouping.attach_unmet(process, &cgroup);
        for task in self.tasks_of(process) {
            self.known_mut(task).groups.cgroup = cgroup.clone();
            self.regroup(task, now);
        }
    }

    /// The tasks of a process that were met and have not ended.
    fn tasks_of(&self, process: Pid) -> Vec<TaskId> {
        let tasks = (0..self.sched.tasks.len() as u32).map(TaskId);
        let alive = |task: &TaskId| !self.sched.task(*task).exiting;
        tasks.filter(|&task| self.known(task).groups.process == process).filter(alive).collect()
    }
}
