//! Keeps tasks in their groups.
//!
//! A group is created when the first task in it is seen. A task is in its cgroup, or, if that is the root, in the group
//! of its session, which it leaves when it exits. A task that begins a session of its own usually does so between its
//! birth and its exec. Where no event shows the time, the task enters the session in which it was last seen at its
//! exec.

use std::collections::BTreeMap;

use schedlab_sched::{Feature, LOAD_SHIFT, TgId, WEIGHT_IDLEPRIO};
use schedlab_topology::CpuId;
use schedlab_trace::{CLONE_THREAD, Comm, Group};
use schedlab_units::{Pid, TaskId, Time};

use crate::facts::cgroups::MadeGroups;
use crate::facts::groups::{Groups, moves_with};
use crate::runtime;
use crate::shadow::Shadow;

/// The groups that exist.
#[derive(Clone, Debug, Default)]
pub struct Grouping {
    facts: Groups,
    cgroups: BTreeMap<String, TgId>,
    made: MadeGroups,
    /// Cgroups of tasks that were moved there before their first event.
    ahead: BTreeMap<Pid, String>,
    /// For each group below a quota, the lowest group with a quota at or above it.
    limits: BTreeMap<TgId, TgId>,
    sessions: BTreeMap<u32, TgId>,
    /// Number of sessions that began in the trace and have no number.
    unnumbered: u32,
    /// Whether the trace shows when sessions begin.
    told: bool,
    clones: Clones,
}

/// Which tasks are threads of their parent's process, as `task_newtask` reports just before a birth.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clones {
    /// The task that was cloned last, and whether as a thread.
    last: Option<(Pid, bool)>,
}

impl Clones {
    /// A task is cloned.
    pub fn cloned(&mut self, pid: Pid, clone_flags: u64) {
        self.last = Some((pid, clone_flags & CLONE_THREAD != 0));
    }

    /// Whether a task that is born now is a thread; `None` if no event showed it.
    pub fn is_thread(&self, child: Pid) -> Option<bool> {
        self.last.filter(|&(pid, _)| pid == child).map(|(_, is_thread)| is_thread)
    }

    /// Whether any event shows threads.
    pub fn tell(&self) -> bool {
        self.last.is_some()
    }
}

/// The groups of a task; both together determine its task group.
#[derive(Clone, Debug, Default)]
pub struct InGroups {
    process: Pid,
    /// The process whose memory it uses. Where no event distinguishes threads from children, a task that executes no
    /// program counts as a thread.
    memory: Pid,
    cgroup: String,
    session: Option<u32>,
    /// The session in which it will be seen later.
    later: Option<u32>,
    /// It left the group of a session when it exited.
    left: bool,
}

impl InGroups {
    /// The process whose memory the task uses, as numbered in the scheduler.
    pub fn process(&self) -> u32 {
        self.memory.0 as u32
    }
}

/// Whether the return of setsid() shows that a session began: it returns the session's number, or a negative number on
/// failure. `0x1f4` or `__syscall_nr=112 ret=500`.
pub fn is_session(text: &str) -> bool {
    let given = text.rsplit(['=', ' ']).next().unwrap_or_default();
    let number = match given.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => given.parse().ok(),
    };
    number.is_some_and(|number| (1..1 << 31).contains(&number))
}

impl Grouping {
    /// Creates the groups from the fact files.
    pub fn new(facts: Groups) -> Grouping {
        Grouping { facts, ..Grouping::default() }
    }

    /// The groups of a task that existed before its first event.
    fn of_old(&self, pid: Pid, comm: &Comm) -> InGroups {
        let Some(member) = self.facts.member(pid, comm) else {
            return InGroups { process: pid, memory: pid, ..InGroups::default() };
        };
        InGroups {
            process: member.process,
            memory: member.process,
            cgroup: member.cgroup.clone(),
            session: member.session,
            ..InGroups::default()
        }
    }

    /// The groups of a new task: its parent's, until it begins a session.
    fn of_child(&self, child: Pid, parent: &InGroups) -> InGroups {
        let later = self.facts.after.get(&child).filter(|_| !self.facts.before.contains_key(&child));
        let later =
            later.and_then(|member| member.session).filter(|&session| Some(session) != parent.session);
        let is_thread = self.clones.is_thread(child) == Some(true);
        let process = if is_thread { parent.process } else { child };
        let memory = if is_thread || !self.clones.tell() { parent.memory } else { child };
        InGroups { process, memory, later, ..parent.clone() }
    }

    /// The lowest group with a quota at or above a group.
    pub fn limit(&self, tg: TgId) -> Option<TgId> {
        if self.limits.is_empty() { None } else { self.limits.get(&tg).copied() }
    }

    /// A task is cloned.
    pub fn cloned(&mut self, pid: Pid, clone_flags: u64) {
        self.clones.cloned(pid, clone_flags);
    }

    /// A cgroup is created.
    pub fn made(&mut self, hierarchy: i32, id: u64, path: &str) {
        if hierarchy == self.facts.hierarchy {
            self.made.made(id, path);
        }
    }

    /// Records the new cgroup of tasks that have not been seen yet.
    fn attach_unmet(&mut self, named: Pid, cgroup: &str) {
        let members = self.facts.before.iter_mut();
        for (_, member) in members.filter(|(pid, member)| moves_with(**pid, member.process, named)) {
            member.cgroup = cgroup.to_owned();
        }
    }
}

impl Shadow {
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
            runtime::unpin(self, task);
        }
        self.sched.move_task_to_group(task, tg, now);
        if runs {
            runtime::pin(self, task);
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

    /// Whether an exiting task makes way as it leaves its session's group.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Audit;
    use crate::facts::groups::GroupFiles;
    use crate::options::Options;
    use schedlab_sched::Kernel;
    use schedlab_topology::Topology;
    use schedlab_trace::Sink;
    use schedlab_trace::read::{Record, ftrace};

    const CGROUPS: &str = "/a/cpu.weight 300\n";
    const BEFORE: &str = "hierarchy 0\n10 10 / 47 0 sh\n";
    const AFTER: &str = "hierarchy 0\n10 10 /a/below 47 0 sh\n11 11 / 50 0 daemon\n12 10 /a 47 0 sh\n";
    const SYSCTL: &str = "/proc/sys/kernel/sched_autogroup_enabled 1\n";

    /// Follows the lines up to each empty one and then prints something about each of tasks 10 to 12.
    fn of_each(trace: &str, of: fn(&Shadow, Pid) -> String) -> Vec<String> {
        let files = GroupFiles {
            before: BEFORE,
            after: AFTER,
            cgroups: CGROUPS,
            cgroups_after: CGROUPS,
            sysctl: SYSCTL,
        };
        let options = Options { groups: Groups::read(&files).unwrap().0, ..Options::default() };
        let topology = Topology::regular("1x1x2").unwrap();
        let mut audit = Audit::new(&topology, &Kernel::parse("v6.12").unwrap(), options);
        let mut told = Vec::new();
        for part in trace.split("\n\n") {
            // Events wait for later ones, so a late event releases the others.
            let end = format!(
                "{part}\n x-9 [001] ..... {}.050000: sched_process_wait: comm=x pid=9 prio=120\n",
                told.len() + 3
            );
            for record in ftrace::Reader::new(end.as_bytes()) {
                let Record::Event(event) = record.unwrap() else { continue };
                audit.event(&event);
            }
            told.push([10, 11, 12].map(|pid| of(&audit.shadow, Pid(pid))).join(" "));
        }
        told
    }

    fn group(shadow: &Shadow, pid: Pid) -> String {
        let Some(task) = shadow.find(pid) else { return "-".to_owned() };
        let (grouping, tg) = (&shadow.grouping, shadow.sched.task(task).tg);
        let cgroup = grouping.cgroups.iter().find(|(_, made)| **made == tg).map(|(path, _)| path.clone());
        let session =
            || grouping.sessions.iter().find(|(_, made)| **made == tg).map(|(number, _)| number.to_string());
        cgroup.or_else(session).unwrap_or_else(|| "root".to_owned())
    }

    #[test]
    fn a_session_begins_where_its_number_is_given() {
        let texts =
            ["0x1f4", "__syscall_nr=112 ret=500", "0xffffffffffffffff", "__syscall_nr=112 ret=-1", ""];
        assert_eq!(texts.map(is_session), [true, true, false, false, false]);
    }

    #[test]
    fn tasks_follow_their_parents_until_they_are_moved_or_begin_a_session() {
        let told = of_each(
            "\
  <idle>-0 [000] d..2. 2.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=sh next_pid=10 next_prio=120
      sh-10 [000] ..... 2.000100: task_newtask: pid=11 comm=sh clone_flags=1200000 oom_score_adj=0
      sh-10 [000] ..... 2.000101: sched_process_fork: comm=sh pid=10 child_comm=sh child_pid=11
      sh-10 [000] d..2. 2.000102: sched_wakeup_new: comm=sh pid=11 prio=120 target_cpu=000
      sh-10 [000] ..... 2.000200: task_newtask: pid=12 comm=sh clone_flags=3d0f00 oom_score_adj=0
      sh-10 [000] ..... 2.000201: sched_process_fork: comm=sh pid=10 child_comm=sh child_pid=12
      sh-10 [000] d..2. 2.000202: sched_wakeup_new: comm=sh pid=12 prio=120 target_cpu=000

      sh-10 [000] d..2. 3.100000: sched_switch: prev_comm=sh prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=sh next_pid=11 next_prio=120
      sh-11 [000] ..... 3.100200: sched_process_exec: filename=/bin/daemon pid=11 old_pid=11

      sh-11 [000] d..1. 4.100000: cgroup_attach_task: dst_root=1 dst_id=5 dst_level=1 dst_path=/a pid=11 comm=sh
      sh-11 [000] d..1. 4.100100: cgroup_attach_task: dst_root=0 dst_id=5 dst_level=2 dst_path=/a/below pid=10 comm=sh

      sh-11 [000] d..1. 5.100000: cgroup_attach_task: dst_root=0 dst_id=1 dst_level=0 dst_path=/ pid=12 comm=sh

      sh-11 [000] ..... 6.100000: sched_process_exit: comm=sh pid=11 prio=120
",
            group,
        );
        assert_eq!(told, ["47 47 47", "47 50 47", "/a 50 /a", "/a 50 47", "/a root 47"]);
    }

    #[test]
    fn a_simulated_trace_shows_groups_and_the_groups_of_new_tasks() {
        let trace = |given: &str| {
            format!(
                "\
  <idle>-0 [000] d..1. 2.000000: cgroup_mkdir: root=0 id=7 level=1 path=/t
{given}  <idle>-0 [000] d..2. 2.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=sh next_pid=10 next_prio=120
      sh-10 [000] ..... 2.000100: cgroup_attach_task: dst_root=0 dst_id=7 dst_level=1 dst_path=/t pid=11 comm=sh
      sh-10 [000] ..... 2.000100: sched_process_fork: comm=sh pid=10 child_comm=sh child_pid=11
      sh-10 [000] d..2. 2.000100: sched_wakeup_new: comm=sh pid=11 prio=120 target_cpu=000
      sh-10 [000] ..... 2.000200: sched_process_fork: comm=sh pid=10 child_comm=sh child_pid=12
      sh-10 [000] d..2. 2.000200: sched_wakeup_new: comm=sh pid=12 prio=120 target_cpu=000
"
            )
        };
        let shares = |shadow: &Shadow, pid: Pid| {
            let tg = shadow.find(pid).map(|task| shadow.sched.task(task).tg);
            tg.map_or(0, |tg| shadow.sched.tg(tg).shares >> LOAD_SHIFT).to_string()
        };
        let given = |number: u64| {
            format!("  <idle>-0 [000] d..1. 2.000000: schedlab_group: id={number} shares=300 idle=0\n")
        };
        assert_eq!(of_each(&trace(&given(7)), group), ["47 /t 47"]);
        assert_eq!(of_each(&trace(&given(7)), shares), ["1024 300 1024"]);
        assert_eq!(of_each(&trace(&given(8)), group), ["47 47 47"], "a group that was not made");
    }

    #[test]
    fn a_task_that_executes_no_program_shares_memory_with_its_parent_unless_clones_are_recorded() {
        let process = |shadow: &Shadow, pid: Pid| {
            shadow.find(pid).map_or("-".to_owned(), |task| shadow.sched.task(task).process.to_string())
        };
        let forks = |clones: [&str; 2]| {
            format!(
                "\
  <idle>-0 [000] d..2. 2.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=sh next_pid=10 next_prio=120
{}      sh-10 [000] ..... 2.000101: sched_process_fork: comm=sh pid=10 child_comm=sh child_pid=11
      sh-10 [000] d..2. 2.000102: sched_wakeup_new: comm=sh pid=11 prio=120 target_cpu=000
{}      sh-10 [000] ..... 2.000201: sched_process_fork: comm=sh pid=10 child_comm=sh child_pid=12
      sh-10 [000] d..2. 2.000202: sched_wakeup_new: comm=sh pid=12 prio=120 target_cpu=000

      sh-10 [000] d..2. 3.100000: sched_switch: prev_comm=sh prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=sh next_pid=11 next_prio=120
      sh-11 [000] ..... 3.100200: sched_process_exec: filename=/bin/daemon pid=11 old_pid=11
",
                clones[0], clones[1]
            )
        };
        assert_eq!(of_each(&forks([""; 2]), process), ["10 10 10", "10 11 10"]);
        let child = "      sh-10 [000] ..... 2.000100: task_newtask: pid=11 comm=sh clone_flags=1200000 oom_score_adj=0\n";
        let thread = "      sh-10 [000] ..... 2.000200: task_newtask: pid=12 comm=sh clone_flags=3d0f00 oom_score_adj=0\n";
        assert_eq!(of_each(&forks([child, thread]), process), ["10 11 10", "10 11 10"]);
    }
}
