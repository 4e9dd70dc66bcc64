//! What was known of tasks and groups beside the trace: policies, masks, processes, shares.
//!
//! `tasks.txt` has a line for each task, `tid pid policy nice rt_priority cpus cgroup comm`;
//! `cgroups.txt` one for each file of a group, `/user.slice/cpu.weight 200`; `groups-before.txt` says in which
//! groups tasks were, sessions' groups included. `schedlab record` writes all of them.

use std::collections::BTreeMap;

use schedlab_audit::{Groups, shares_of_weight, shares_within};
use schedlab_topology::CpuMask;
use schedlab_units::{Duration, Pid};
use schedlab_workload::{GroupSpec, Policy, Quota};

/// CPUs that a mask may name.
const NR_CPUS: usize = 4096;

/// What was known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    tasks: BTreeMap<Pid, KnownTask>,
    /// Files of each group with their text.
    groups: BTreeMap<String, Vec<(String, String)>>,
    /// In which groups tasks were, if they were listed.
    members: Option<Groups>,
}

/// What leads the path of a session's group.
const SESSION: &str = "/autogroup-";

/// What was known of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTask {
    /// Its process.
    pub process: Pid,
    /// The name of its policy.
    policy: String,
    /// CPUs it may use.
    pub allowed: CpuMask,
    /// Its group; none is the root.
    pub group: Option<String>,
    /// Its name.
    pub comm: String,
}

/// A line that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {why}")]
pub struct BadFacts {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl Known {
    /// Reads `tasks.txt`.
    ///
    /// # Errors
    /// The first line that is not one of a task.
    pub fn tasks(&mut self, text: &str) -> Result<(), BadFacts> {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let (pid, task) = task(line).map_err(|why| BadFacts { line: index + 1, why })?;
            self.tasks.insert(pid, task);
        }
        Ok(())
    }

    /// In which groups tasks were, from `groups-before.txt` and what belongs to it.
    pub fn members(&mut self, groups: Groups) {
        self.members = Some(groups).filter(|groups| !groups.before.is_empty());
    }

    /// Reads `cgroups.txt`. Lines of files that say nothing of CPU time are passed over.
    pub fn groups(&mut self, text: &str) {
        for line in text.lines() {
            let file = ["cpu.weight", "cpu.max", "cpu.idle", "cpu.shares"];
            let found = file.iter().find_map(|file| Some((*file, line.split_once(&format!("/{file} "))?)));
            if let Some((file, (group, value))) = found {
                self.groups
                    .entry(group.to_owned())
                    .or_default()
                    .push((file.to_owned(), value.trim().to_owned()));
            }
        }
    }

    /// What was known of the task of this number, if it is the one of this name.
    pub fn task(&self, pid: Pid, had_name: impl Fn(&str) -> bool) -> Option<&KnownTask> {
        self.tasks.get(&pid).filter(|task| had_name(&task.comm))
    }

    /// The group in which the task of this number was when the recording began, if it is the one of this name; none is
    /// the root.
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

    /// The group that shares out CPUs among which a task is when it is moved to a cgroup: that or one above it.
    pub fn shared_by(&self, cgroup: &str) -> String {
        self.members.as_ref().map_or(cgroup.to_owned(), |members| members.group_of(cgroup))
    }

    /// Gives a group what was known of it.
    pub fn limit(&self, group: &mut GroupSpec) {
        let session = group.path.strip_prefix(SESSION).and_then(|number| number.parse().ok());
        if let (Some(session), Some(members)) = (session, &self.members) {
            // Shares are in the scale of cgroups, 1024 for nice 0.
            group.shares = members.session_shares(session) >> 10;
        }
        for (file, value) in self.groups.get(&group.path).into_iter().flatten() {
            let number = value.parse::<u64>();
            match (file.as_str(), number) {
                ("cpu.weight", Ok(weight)) => group.shares = shares_of_weight(weight),
                ("cpu.shares", Ok(shares)) => group.shares = shares_within(shares),
                ("cpu.idle", Ok(idle)) => group.idle = idle != 0,
                ("cpu.max", _) => group.quota = quota(value),
                _ => {}
            }
        }
    }
}

/// `50000 100000`; none for `max 100000`.
fn quota(text: &str) -> Option<Quota> {
    let (quota, period) = text.split_once(' ')?;
    let us = |text: &str| text.trim().parse().ok().map(Duration::micros);
    Some(Quota { quota: us(quota)?, period: us(period)?, burst: Duration::ZERO })
}

fn task(line: &str) -> Result<(Pid, KnownTask), String> {
    let mut words = line.splitn(8, ' ');
    let mut word = |what: &str| words.next().ok_or(format!("there is no {what} in it"));
    let number = |text: &str, what: &str| text.parse().map_err(|_| format!("{what} \"{text}\" is no number"));
    let tid = number(word("tid")?, "tid")?;
    let process = number(word("pid")?, "pid")?;
    let policy = word("policy")?.to_owned();
    // Nice values and priorities are in the trace.
    word("nice")?;
    word("rt_priority")?;
    let cpus = word("cpus")?;
    let allowed = CpuMask::parse_list(cpus, NR_CPUS).map_err(|e| format!("cpus \"{cpus}\": {e}"))?;
    let group = word("cgroup")?.replace("\\x20", " ");
    let group = Some(group).filter(|group| group != "/" && group != "-");
    let comm = word("comm")?.to_owned();
    Ok((Pid(tid), KnownTask { process: Pid(process), policy, allowed, group, comm }))
}

impl KnownTask {
    /// The policy of a priority as the kernel prints it.
    pub fn policy(&self, prio: i32) -> Policy {
        match (self.policy.as_str(), usual_policy(prio)) {
            ("BATCH", Policy::Normal { nice }) => Policy::Batch { nice },
            ("IDLE", Policy::Normal { nice }) => Policy::Idle { nice },
            ("RR", Policy::Fifo { priority }) => Policy::Rr { priority },
            (_, usual) => usual,
        }
    }
}

/// The usual policy of a priority, when nothing more is known.
pub fn usual_policy(prio: i32) -> Policy {
    match prio {
        ..=99 => Policy::Fifo { priority: 99i32.saturating_sub(prio).clamp(1, 99) as u8 },
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
        // A deadline task comes before all others.
        assert_eq!([-1, i32::MIN].map(usual_policy), [Policy::Fifo { priority: 99 }; 2]);
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
        let before = "hierarchy 0\n1 1 / - 0 init\n7 7 /a/deep 47 0 make\n9 9 /c 48 -5 sh\n";
        let files = schedlab_audit::GroupFiles {
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
        assert_eq!((known.shared_by("/a/x").as_str(), known.shared_by("/c").as_str()), ("/a", ""));
        let mut session = GroupSpec::new(group(9).unwrap(), None);
        known.limit(&mut session);
        assert_eq!((session.path.as_str(), session.shares), ("/autogroup-48", 3121));
    }

    #[test]
    fn a_line_that_is_none_is_told_by_its_number() {
        let bad = |text: &str| Known::default().tasks(text).unwrap_err().to_string();
        assert_eq!(bad("# x\n8 7 OTHER"), "2: there is no nice in it");
        assert_eq!(bad("x 7 OTHER 0 0 0 / a"), "1: tid \"x\" is no number");
        assert!(bad("8 7 OTHER 0 0 9-1 / a").starts_with("1: cpus \"9-1\": "));
    }
}
