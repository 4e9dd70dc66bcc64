//! Which groups tasks were in, according to the files beside a recording.
//!
//! A cgroup with the CPU controller is a task group. A task in no such cgroup is in the group of its session, if the
//! kernel has autogroups. No scheduler event shows either, so `schedlab record` lists all tasks and groups before and
//! after. A new task is in the group of its parent. `cgroup_attach_task` reports tasks that are moved, and
//! `sys_exit_setsid`, if it was recorded, reports new sessions.

use std::collections::BTreeMap;

use schedlab_sched::{LOAD_SHIFT, prio_to_weight};
use schedlab_trace::Comm;
use schedlab_units::Pid;

use super::cgroups::{Given, cgroups};

/// Contents of the fact files, each empty if the file does not exist.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupFiles<'a> {
    /// `groups-before.txt`: the tasks and their groups at the start of the recording.
    pub before: &'a str,
    /// `groups-after.txt`: the same at the end.
    pub after: &'a str,
    /// `cgroups.txt`: settings of groups at the start of the recording.
    pub cgroups: &'a str,
    /// `cgroups-after.txt`: the same at the end.
    pub cgroups_after: &'a str,
    /// `sysctl.txt`, which shows whether sessions are groups.
    pub sysctl: &'a str,
}

impl GroupFiles<'_> {
    /// Whether sessions are groups.
    pub fn sessions_are_groups(&self) -> bool {
        self.sysctl.lines().any(|line| line.ends_with("sched_autogroup_enabled 1"))
    }
}

/// The process, groups and name of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its process.
    pub process: Pid,
    /// Its cgroup; empty for the root.
    pub cgroup: String,
    /// The number of its session's group.
    pub session: Option<u32>,
    /// Its name.
    pub comm: String,
}

/// Whether a `cgroup_attach_task` event that names `named` moves this task. If a process is moved as a whole, the event
/// names its leader; if one thread is moved, it names the thread.
///
/// Kernel: cgroup_attach_task(), kernel/cgroup/cgroup.c, v6.12.
pub fn moves_with(pid: Pid, process: Pid, named: Pid) -> bool {
    process == named || pid == named
}

/// The groups of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The hierarchy number of the CPU controller.
    pub hierarchy: i32,
    /// Whether sessions are groups.
    pub autogroup: bool,
    /// Tasks that existed when the recording began.
    pub before: BTreeMap<Pid, Member>,
    /// Tasks that existed when it ended.
    pub after: BTreeMap<Pid, Member>,
    /// Cgroups by path, without the root.
    pub cgroups: BTreeMap<String, Given>,
    /// Nice values of the sessions that have one.
    pub nice: BTreeMap<u32, i8>,
}

impl Groups {
    /// Reads the files; `None` if tasks were not listed. The second value is the reason why groups cannot be followed,
    /// if they cannot.
    pub fn read(files: &GroupFiles<'_>) -> Option<(Groups, Option<&'static str>)> {
        if files.before.is_empty() || files.after.is_empty() {
            return None;
        }
        let (cgroups, later) = (sharing(files.cgroups), sharing(files.cgroups_after));
        let mut hidden = None;
        if cgroups.iter().any(|(path, was)| later.get(path).is_some_and(|is| is_other(was, is))) {
            hidden = Some("settings of a cgroup changed during the recording, and no event shows when");
        }
        let mut groups = Groups { autogroup: files.sessions_are_groups(), cgroups, ..Groups::default() };
        groups.cgroups.extend(later);
        let mut nice = BTreeMap::new();
        groups.before = groups.members(files.before, &mut nice);
        groups.nice = std::mem::take(&mut nice);
        groups.after = groups.members(files.after, &mut nice);
        if groups.nice.iter().any(|(number, was)| nice.get(number).is_some_and(|is| is != was)) {
            hidden = Some("a session's nice value changed during the recording, and no event shows when");
        }
        groups.nice.extend(nice);
        let mut tasks = groups.before.values().chain(groups.after.values());
        if tasks.any(|task| task.cgroup.starts_with("/..")) {
            hidden =
                Some("the recording was made inside a cgroup namespace, which hides the groups around it");
        }
        Some((groups, hidden))
    }

    /// Parses the lines of tasks and the nice values of their sessions.
    fn members(&mut self, text: &str, nice: &mut BTreeMap<u32, i8>) -> BTreeMap<Pid, Member> {
        let mut members = BTreeMap::new();
        for line in text.lines() {
            if let Some(number) = line.strip_prefix("hierarchy ") {
                self.hierarchy = number.trim().parse().unwrap_or(0);
            }
            let mut words = line.splitn(6, ' ');
            let mut word = || words.next().unwrap_or_default();
            let (Ok(tid), Ok(process)) = (word().parse(), word().parse()) else { continue };
            let cgroup = self.group_of(&word().replace("\\x20", " "));
            let session: Option<u32> = word().parse().ok();
            if let (Some(session), Ok(given)) = (session, word().parse::<i8>()) {
                nice.insert(session, given);
            }
            let comm = words.next().unwrap_or_default().to_owned();
            members.insert(Pid(tid), Member { process: Pid(process), cgroup, session, comm });
        }
        members
    }

    /// The entry of a task that existed before its first event. If its number was used twice, the name decides.
    pub fn member(&self, pid: Pid, comm: &Comm) -> Option<&Member> {
        let named = |member: &Member| member.comm.as_bytes() == comm.as_bytes();
        match (self.before.get(&pid), self.after.get(&pid)) {
            (Some(before), Some(after)) if !named(before) && named(after) => Some(after),
            (Some(member), _) | (None, Some(member)) => Some(member),
            (None, None) => None,
        }
    }

    /// The lowest group with the CPU controller at or above a path; empty for the root.
    pub fn group_of(&self, path: &str) -> String {
        let mut path = path.trim_end_matches('/');
        while !path.is_empty() && !path.starts_with("/..") && !self.cgroups.contains_key(path) {
            path = path.rsplit_once('/').map_or("", |(above, _)| above);
        }
        path.to_owned()
    }

    /// The weight of a session's group.
    pub fn session_shares(&self, session: u32) -> u64 {
        prio_to_weight(self.nice.get(&session).copied().unwrap_or(0)) << LOAD_SHIFT
    }
}

/// The cgroups that have the CPU controller.
fn sharing(text: &str) -> BTreeMap<String, Given> {
    let mut groups = cgroups(text);
    groups.retain(|_, given| given.weighed);
    groups
}

/// Whether a change of settings affects the audit: another weight or another kind of limit.
fn is_other(was: &Given, is: &Given) -> bool {
    let of = |given: &Given| (given.shares, given.idle, given.quota.is_some());
    of(was) != of(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CGROUPS: &str = "/cpu.shares 1024\n/a/cpu.weight 300\n/a/cpu.max max 100000\n/a/b/cpu.weight 50\n\
                           /a/b/cpu.idle 0\n/c/cpuset.cpus 0-3\n";
    const BEFORE: &str = "hierarchy 3\n# tid pid cgroup autogroup nice comm\n1 1 / - 0 init\n\
                          7 7 /a/b/deep 47 0 a b\n8 7 /a 47 0 worker\n9 9 /c 48 -5 sh\n";
    const SYSCTL: &str = "/proc/sys/kernel/sched_autogroup_enabled 1\n";

    fn read(cgroups: &str, cgroups_after: &str) -> (Groups, Option<&'static str>) {
        let files = GroupFiles { before: BEFORE, after: BEFORE, cgroups, cgroups_after, sysctl: SYSCTL };
        Groups::read(&files).unwrap()
    }

    #[test]
    fn a_task_is_in_the_lowest_group_that_shares_out_cpus() {
        let (groups, hidden) = read(CGROUPS, CGROUPS);
        assert_eq!((groups.hierarchy, groups.autogroup, hidden), (3, true, None));
        let of: Vec<_> = groups.before.values().map(|task| (task.cgroup.as_str(), task.session)).collect();
        assert_eq!(of, [("", None), ("/a/b", Some(47)), ("/a", Some(47)), ("", Some(48))]);
        assert_eq!(groups.cgroups["/a"].shares >> LOAD_SHIFT, 3072);
        assert_eq!(groups.cgroups["/a/b"].shares >> LOAD_SHIFT, 512);
        assert_eq!(groups.cgroups["/a"].quota, None);
        let (groups, hidden) = read(&CGROUPS.replace("max 100000", "50000 100000"), "");
        assert!(groups.cgroups["/a"].quota.is_some() && hidden.is_none());
        assert_eq!(groups.session_shares(48) >> LOAD_SHIFT, 3121, "the weight of nice -5");
        assert_eq!(groups.before[&Pid(7)].comm, "a b");
    }

    #[test]
    fn groups_are_not_followed_after_changes_without_events() {
        let why = |cgroups: &str, after: &str| read(cgroups, after).1.unwrap_or_default();
        assert!(why(CGROUPS, "/a/cpu.weight 200\n").starts_with("settings of a cgroup changed"));
        assert_eq!(why("", ""), "", "no groups are no riddle");
        assert!(Groups::read(&GroupFiles { before: BEFORE, ..GroupFiles::default() }).is_none());
    }
}
