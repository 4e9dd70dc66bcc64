//! What was known about tasks and groups besides the trace: policies, masks, processes, shares.
//!
//! `tasks.txt` has a line for each task, `cgroups.txt` contains the settings of groups, and `groups-before.txt`
//! contains the groups of tasks, including session groups. `schedlab record` writes all of them.

use std::collections::BTreeMap;

use schedlab_recording::{
    BadLine, FactTexts, FactsError, Given, Groups, PolicyKind, SeenTask, cgroups, seen_tasks,
};
use schedlab_topology::{CpuId, CpuMask, Topology};
use schedlab_trace::Comm;
use schedlab_units::{Duration, Pid};
use schedlab_workload::{Deadline, GroupSpec, Policy, Quota};

use crate::learned::Task;

/// What was known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    tasks: BTreeMap<Pid, KnownTask>,
    /// Settings of groups.
    groups: BTreeMap<String, Given>,
    /// Which groups tasks were in, if they were listed.
    members: Option<Groups>,
    /// Capacities of the CPUs of its machine, out of 1024; empty if it is not known.
    capacities: Vec<u16>,
}

/// Prefix of the path of a session's group.
const SESSION: &str = "/autogroup-";

/// What was known about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTask {
    /// Its process.
    pub process: Pid,
    policy: PolicyKind,
    /// CPUs it may use.
    pub allowed: CpuMask,
    /// Its group; `None` is the root.
    pub group: Option<String>,
    /// Its name.
    pub comm: String,
}

impl Known {
    /// Reads the files beside a recording; `groups` was read from them before.
    ///
    /// # Errors
    /// A line of `tasks.txt` does not describe a task.
    pub fn of(texts: &FactTexts, groups: Groups) -> Result<Known, FactsError> {
        let mut known = Known::default();
        texts.tasks()?.into_iter().for_each(|task| known.saw(task));
        known.groups(texts.text("cgroups.txt"));
        known.members(groups);
        Ok(known)
    }

    /// The same, recorded on this machine: time on a small CPU is less work than on a large one.
    #[must_use]
    pub fn on(mut self, topology: &Topology) -> Known {
        self.capacities = topology.cpus().map(|(_, cpu)| cpu.capacity).collect();
        self
    }

    /// Capacities of the CPUs of its machine, out of 1024; empty if it is not known.
    pub fn capacities(&self) -> &[u16] {
        &self.capacities
    }

    /// Reads `tasks.txt`.
    ///
    /// # Errors
    /// The first line that does not describe a task.
    pub fn tasks(&mut self, text: &str) -> Result<(), BadLine> {
        seen_tasks(text).try_for_each(|task| task.map(|task| self.saw(task)))
    }

    fn saw(&mut self, task: SeenTask) {
        let SeenTask { pid, process, policy, allowed, cgroup, comm, .. } = task;
        let group = Some(cgroup).filter(|group| group != "/" && group != "-");
        self.tasks.insert(pid, KnownTask { process, policy, allowed, group, comm });
    }

    /// Sets the groups of tasks, from `groups-before.txt` and the files that belong to it.
    pub fn members(&mut self, groups: Groups) {
        self.members = Some(groups).filter(|groups| !groups.before.is_empty());
    }

    /// Reads `cgroups.txt`.
    pub fn groups(&mut self, text: &str) {
        self.groups = cgroups(text);
    }

    /// What was known about the task with this pid, if it has this name.
    pub fn task(&self, pid: Pid, had_name: impl Fn(&str) -> bool) -> Option<&KnownTask> {
        self.tasks.get(&pid).filter(|task| had_name(&task.comm))
    }

    /// The group of the task with this pid when the recording began, if it has this name; `None` is the root.
    pub fn group_of(&self, pid: Pid, had_name: impl Fn(&str) -> bool) -> Option<String> {
        let Some(members) = &self.members else {
            return self.task(pid, had_name).and_then(|task| task.group.clone());
        };
        let member = members.before.get(&pid).filter(|member| had_name(&member.comm))?;
        match member.session.filter(|_| members.autogroup && member.cgroup.is_empty()) {
            Some(session) => Some(format!("{SESSION}{session}")),
            None => Some(member.cgroup.clone()).filter(|group| !group.is_empty()),
        }
    }

    /// What was known about a learned task.
    pub fn of_task(&self, task: &Task) -> Option<&KnownTask> {
        self.task(task.pid, |name| task.had_name(name))
    }

    /// The process of a task that existed before it was seen: its own, if nothing is known about it.
    pub fn process_of(&self, pid: Pid, comm: &Comm) -> Pid {
        let member = self.members.as_ref().and_then(|members| members.member(pid, comm));
        let seen = || self.task(pid, |name| *comm == name);
        member.map(|member| member.process).or_else(|| Some(seen()?.process)).unwrap_or(pid)
    }

    /// Whether a hierarchy has the CPU controller. Others of version 1, such as `name=systemd`, do not.
    pub fn shares_out(&self, hierarchy: i32) -> bool {
        self.members.as_ref().map_or(0, |members| members.hierarchy) == hierarchy
    }

    /// The task group of a task that is moved to a cgroup: the lowest one with the CPU controller at or above it.
    pub fn shared_by(&self, cgroup: &str) -> String {
        self.members.as_ref().map_or(cgroup.to_owned(), |members| members.group_of(cgroup))
    }

    /// Applies the known settings to a group.
    pub fn limit(&self, group: &mut GroupSpec) {
        let session = group.path.strip_prefix(SESSION).and_then(|number| number.parse().ok());
        if let (Some(session), Some(members)) = (session, &self.members) {
            // Shares are in the scale of cgroups, 1024 for nice 0.
            group.shares = members.session_shares(session) >> 10;
        }
        if let Some(given) = self.groups.get(&group.path) {
            give(group, given);
        }
    }
}

/// Applies settings to a group.
pub(crate) fn give(group: &mut GroupSpec, given: &Given) {
    if given.weighed {
        group.shares = given.cpu_shares();
    }
    group.idle = given.idle;
    group.quota = given.quota.map(|of| Quota { quota: of.quota, period: of.period, burst: of.burst });
}

impl KnownTask {
    /// Whether it may use only that CPU.
    pub fn is_bound_to(&self, cpu: CpuId) -> bool {
        self.allowed.weight() == 1 && self.allowed.contains(cpu)
    }

    /// The policy for a priority as the kernel prints it.
    pub fn policy(&self, prio: i32) -> Policy {
        match (self.policy, usual_policy(prio)) {
            (PolicyKind::Batch, Policy::Normal { nice }) => Policy::Batch { nice },
            (PolicyKind::Idle, Policy::Normal { nice }) => Policy::Idle { nice },
            (PolicyKind::Rr, Policy::Fifo { priority }) => Policy::Rr { priority },
            (_, usual) => usual,
        }
    }
}

/// The usual policy for a priority, if nothing more is known. A deadline task then never runs out of budget.
pub fn usual_policy(prio: i32) -> Policy {
    match prio {
        ..0 => {
            let always = Duration::secs(1);
            Policy::Deadline(Deadline { runtime: always, deadline: always, period: always })
        }
        0..=99 => Policy::Fifo { priority: (99 - prio).max(1) as u8 },
        _ => Policy::Normal { nice: (prio - 120).clamp(-20, 19) as i8 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_have_a_process_a_policy_a_mask_and_a_group() {
        let mut known = Known::default();
        known
            .tasks("# tid pid ...\n8 7 BATCH 5 0 0-1,6 /user.slice/a\\x20b a (b) c\n9 9 RR 0 3 0-7 / rt\n")
            .unwrap();
        let task = known.task(Pid(8), |name| name == "a (b) c").unwrap();
        assert_eq!((task.process, task.allowed.to_string().as_str()), (Pid(7), "0-1,6"));
        assert_eq!(task.group.as_deref(), Some("/user.slice/a b"));
        assert_eq!(task.policy(125), Policy::Batch { nice: 5 });
        assert_eq!(known.task(Pid(9), |_| true).unwrap().policy(96), Policy::Rr { priority: 3 });
        assert_eq!(known.task(Pid(9), |name| name == "other"), None, "a number that was used again");
    }

    #[test]
    fn every_number_is_some_priority() {
        assert_eq!(
            [0, 96, 200].map(usual_policy),
            [Policy::Fifo { priority: 99 }, Policy::Fifo { priority: 3 }, Policy::Normal { nice: 19 }]
        );
        for prio in [-1, i32::MIN] {
            assert!(matches!(usual_policy(prio), Policy::Deadline(_)));
        }
    }

    #[test]
    fn a_group_gets_its_shares_and_quota() {
        let mut known = Known::default();
        known.groups(
            "/a/cpu.weight 200\n/a/cpu.max 50000 100000\n/a/cpuset.cpus 0-3\n/b/cpu.max max 100000\n",
        );
        let of = |known: &Known, path: &str| {
            let mut group = GroupSpec::new(path.to_owned(), None);
            known.limit(&mut group);
            (group.shares, group.quota.map(|quota| (quota.quota, quota.period)))
        };
        assert_eq!(of(&known, "/a"), (2048, Some((Duration::millis(50), Duration::millis(100)))));
        assert_eq!(of(&known, "/b"), (1024, None));
        let most = u64::MAX;
        known.groups(&format!("/c/cpu.weight {most}\n/c/cpu.max {most} {most}\n"));
        assert_eq!(of(&known, "/c"), (1 << 18, Some((Duration::MAX, Duration::MAX))));
    }

    #[test]
    fn tasks_are_in_the_group_that_shares_out_cpus_or_in_that_of_their_session() {
        let mut known = Known::default();
        let before =
            "hierarchy 0\n1 1 / - 0 init\n7 7 /a/deep 47 0 make\n9 9 /c 48 -5 sh\n10 9 /c 48 -5 make\n";
        let files = schedlab_recording::GroupFiles {
            before,
            after: before,
            cgroups: "/a/cpu.weight 50\n",
            sysctl: "/proc/sys/kernel/sched_autogroup_enabled 1\n",
            ..Default::default()
        };
        known.members(Groups::read(&files).unwrap().0);
        let group = |pid: i32| known.group_of(Pid(pid), |_| true);
        assert_eq!([group(1), group(7), group(8)], [None, Some("/a".to_string()), None]);
        assert_eq!(known.group_of(Pid(7), |name| name == "sh"), None, "a number that was used again");
        let process = |pid, comm| known.process_of(Pid(pid), &Comm::from(comm)).0;
        assert_eq!(
            [process(7, "make"), process(10, "make"), process(8, "cc1"), process(6, "x")],
            [7, 9, 8, 6]
        );
        assert_eq!([0, 3].map(|hierarchy| known.shares_out(hierarchy)), [true, false]);
        assert_eq!((known.shared_by("/a/x").as_str(), known.shared_by("/c").as_str()), ("/a", ""));
        let mut session = GroupSpec::new(group(9).unwrap(), None);
        known.limit(&mut session);
        assert_eq!((session.path.as_str(), session.shares), ("/autogroup-48", 3121));
    }
}
