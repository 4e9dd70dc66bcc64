//! Keeps tasks in their groups.
//!
//! A group is created when the first task in it is seen. A task is in its cgroup, or, if that is the root, in the group
//! of its session, which it leaves when it exits. A task that begins a session of its own usually does so between its
//! birth and its exec. Where no event shows the time, the task enters the session in which it was last seen at its
//! exec.

use schedlab_sched::{Feature, LOAD_SHIFT, TgId, WEIGHT_IDLEPRIO};
use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Group};
use schedlab_units::{Pid, TaskId, Time};

use super::grouping::InGroups;
use super::shadow::Shadow;
use super::watch::Watch;
use schedlab_recording::moves_with;

impl<W: Watch> Shadow<W> {
    /// The groups of a task at its first event: the listed ones, or its parent's, unless it was moved before.
    pub fn groups_of(&mut self, pid: Pid, comm: &Comm, parent: Option<TaskId>) -> InGroups {
        let mut groups = match parent {
            Some(parent) => self.grouping.of_child(pid, &self.known(parent).groups),
            None => self.grouping.of_old(pid, comm),
        };
        if let Some(cgroup) = self.grouping.ahead.remove(&pid) {
            groups.cgroup = cgroup;
        }
        groups
    }

    /// The task group of a task.
    pub fn tg_of(&mut self, groups: &InGroups, now: Time) -> TgId {
        let cgroup = self.cgroup(&groups.cgroup, now);
        match groups.session.filter(|_| cgroup == TgId::ROOT && self.grouping.facts.autogroup) {
            Some(session) => self.session(session, now),
            None => cgroup,
        }
    }

    /// A simulated trace reports the settings of a cgroup before any task is in it. The group is created at that
    /// moment, because its settings change the weights of the groups above.
    pub fn given(&mut self, told: &Group, now: Time) {
        if let Some((path, given)) = self.grouping.made.given(told) {
            let path = path.to_owned();
            self.grouping.facts.cgroups.insert(path.clone(), given);
            self.cgroup(&path, now);
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
        let limit = if given.quota.is_some() { Some(tg) } else { self.grouping.limits.get(&parent).copied() };
        self.grouping.limits.extend(limit.map(|limit| (tg, limit)));
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

    /// Puts a task into its current group.
    fn regroup(&mut self, task: TaskId, now: Time) {
        let groups = self.known(task).groups.clone();
        let tg = self.tg_of(&groups, now);
        if self.sched.task(task).tg != tg {
            self.put_into(task, tg, now);
        }
    }

    fn put_into(&mut self, task: TaskId, tg: TgId, now: Time) {
        let runs = self.runs(task);
        if runs {
            self.unpin(task);
        }
        self.sched.move_task_to_group(task, tg, now);
        if runs {
            self.pin(task);
        }
        self.generation += 1;
    }

    /// A task executes another program, in memory of its own.
    pub fn new_program(&mut self, task: TaskId, now: Time) {
        let known = self.known_mut(task);
        known.groups.memory = known.pid;
        let process = known.groups.process();
        self.sched.sched_cache_exec(task, process, now);
        self.settled(task, now);
    }

    /// A task executes another program or leaves a CPU for the first time: by now it has begun the session in which it
    /// was last seen.
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

    /// A task exits, so it is no longer in the group of its session. Most kernels dequeue and enqueue it even if its
    /// group stays the same (`REGROUP_SAME`).
    ///
    /// Kernel: sched_autogroup_exit_task(), kernel/sched/autogroup.c, v6.1, v6.12.
    pub fn left_session(&mut self, task: TaskId, now: Time) {
        let before = self.sched.task(task).tg;
        let groups = &mut self.known_mut(task).groups;
        (groups.session, groups.later) = (None, None);
        let groups = groups.clone();
        let tg = self.tg_of(&groups, now);
        self.put_into(task, tg, now);
        self.known_mut(task).groups.left = tg != before;
    }

    /// Whether an exiting task is preempted as it leaves its session's group.
    ///
    /// Kernel: sched_autogroup_exit_task(), kernel/sched/autogroup.c, v6.1, v6.12.
    pub fn made_way_to_end(&self, task: TaskId) -> bool {
        let has = |feature| self.sched.kernel.has(feature);
        let moved = has(Feature::RegroupSame) || self.known(task).groups.left;
        self.sched.task(task).exiting && moved && has(Feature::RegroupAsks)
    }

    /// A process, named by its leader, or a single thread is moved to another cgroup.
    pub fn attached(&mut self, hierarchy: i32, named: Pid, path: &str, now: Time) {
        if hierarchy != self.grouping.facts.hierarchy {
            return;
        }
        let cgroup = self.grouping.facts.group_of(path);
        self.grouping.attach_unmet(named, &cgroup);
        if self.find(named).is_none() {
            self.grouping.ahead.insert(named, cgroup.clone());
        }
        for task in self.moved_with(named) {
            self.known_mut(task).groups.cgroup = cgroup.clone();
            self.regroup(task, now);
        }
    }

    /// All moved tasks that have been seen and have not exited.
    fn moved_with(&self, named: Pid) -> Vec<TaskId> {
        let tasks = (0..self.sched.tasks.len() as u32).map(TaskId);
        let alive = |task: &TaskId| !self.sched.task(*task).exiting;
        let moves = |task: &TaskId| {
            let known = self.known(*task);
            moves_with(known.pid, known.groups.process, named)
        };
        tasks.filter(moves).filter(alive).collect()
    }
}
