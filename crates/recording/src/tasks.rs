//! The tasks that existed while the recording was made: `tasks.txt`.
//!
//! The file has a line for each task: its number, process, policy, nice value, priority, allowed CPUs, group and name,
//! in this order.

use std::collections::BTreeMap;

use schedlab_topology::{CpuMask, NR_CPUS_MAX};
use schedlab_trace::{Comm, bound_kthread};
use schedlab_units::Pid;

use super::affinity::AffinityHint;
use super::policy_kind::PolicyKind;

/// A task as it was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenTask {
    /// Its number.
    pub pid: Pid,
    /// Its process.
    pub process: Pid,
    /// Its policy, among those that share its priority.
    pub policy: PolicyKind,
    /// Its priority as traces print it: 120 is nice 0, below 100 is real time, -1 is a deadline task. `None` if the
    /// value is not valid.
    pub prio: Option<i32>,
    /// CPUs it may use.
    pub allowed: CpuMask,
    /// Path of its cgroup; `/` is the root, and `-` means that there are no cgroups.
    pub cgroup: String,
    /// Its name.
    pub comm: String,
}

/// A line of a fact file that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {why}")]
pub struct BadLine {
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// The tasks of `tasks.txt`, line by line.
pub fn seen_tasks(tasks: &str) -> impl Iterator<Item = Result<SeenTask, BadLine>> {
    let lines = tasks.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    lines.map(|(index, line)| seen_task(line).map_err(|why| BadLine { line: index + 1, why }))
}

/// Parses one line.
pub fn seen_task(line: &str) -> Result<SeenTask, String> {
    let mut words = line.splitn(8, ' ');
    let mut word = |what: &str| words.next().ok_or(format!("{what} is missing"));
    let number =
        |text: &str, what: &str| text.parse().map_err(|_| format!("{what} \"{text}\" is not a number"));
    let pid = Pid(number(word("tid")?, "tid")?);
    let process = Pid(number(word("pid")?, "pid")?);
    let name = word("policy")?;
    let policy = PolicyKind::named(name);
    let (nice, priority) = (word("nice")?.parse(), word("rt_priority")?.parse());
    let prio = match name {
        "FIFO" | "RR" => {
            priority.ok().filter(|priority| (1..100).contains(priority)).map(|priority| 99 - priority)
        }
        "DEADLINE" => Some(-1),
        _ => nice.ok().filter(|nice| (-20..20).contains(nice)).map(|nice: i32| 120 + nice),
    };
    let cpus = word("cpus")?;
    let allowed = CpuMask::parse_list(cpus, NR_CPUS_MAX).map_err(|e| format!("cpus \"{cpus}\": {e}"))?;
    let cgroup = word("cgroup")?.replace("\\x20", " ");
    let comm = word("comm")?.to_owned();
    Ok(SeenTask { pid, process, policy, prio, allowed, cgroup, comm })
}

/// Masks by task name. Skips names whose tasks have different masks, and tasks that may use every CPU, unless the name
/// is that of a thread that usually may not.
pub fn hints_of_tasks(tasks: &str, nr_cpus: usize) -> Vec<AffinityHint> {
    let mut masks: BTreeMap<String, Option<CpuMask>> = BTreeMap::new();
    for SeenTask { allowed, comm, .. } in seen_tasks(tasks).flatten() {
        if allowed.next_from(nr_cpus).is_some() {
            continue;
        }
        let mask = CpuMask::of(nr_cpus, allowed.iter());
        masks
            .entry(comm)
            .and_modify(|known| {
                if known.as_ref() != Some(&mask) {
                    *known = None;
                }
            })
            .or_insert(Some(mask));
    }
    let hint = |(comm, mask): (String, Option<CpuMask>)| {
        let by_name = bound_kthread(&Comm::from(&*comm)).is_some();
        let allowed = mask.filter(|mask| !mask.is_empty() && (by_name || mask.weight() < nr_cpus))?;
        Some(AffinityHint { comm, allowed })
    };
    masks.into_iter().filter_map(hint).collect()
}

/// Whether the list contains tasks in different groups.
pub fn has_groups(tasks: &str) -> bool {
    let mut groups = seen_tasks(tasks).flatten().map(|task| task.cgroup);
    groups.next().is_some_and(|first| groups.any(|other| other != first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_determines_the_cpus_of_all_tasks_that_have_it() {
        let tasks = "# tid pid policy nice rt_priority cpus cgroup comm\n\
                     1 1 OTHER 0 0 0-3 / init\n\
                     7 7 OTHER 0 0 0,2 /a db writer\n\
                     8 7 OTHER 0 0 0,2 /a db writer\n\
                     9 9 OTHER 0 0 1 / make\n\
                     10 10 OTHER 0 0 0-3 / make\n\
                     11 11 OTHER 0 0 2-9 / of another machine\n\
                     12 12 OTHER 0 0 0-3 / watchdog/0\n\
                     half a line\n";
        let hints = hints_of_tasks(tasks, 4);
        let told: Vec<_> = hints.iter().map(|hint| (hint.comm.as_str(), hint.allowed.to_string())).collect();
        assert_eq!(told, [("db writer", "0,2".to_owned()), ("watchdog/0", "0-3".to_owned())]);
        assert!(has_groups(tasks), "/ and /a");
        assert!(!has_groups("# tid\n1 1 OTHER 0 0 0-3 / init\n2 1 OTHER 0 0 0-3 / init\n"));
    }

    #[test]
    fn a_bad_line_is_reported_by_its_number() {
        let bad = |text: &str| {
            seen_tasks(text).find_map(Result::err).map(|bad| bad.to_string()).unwrap_or_default()
        };
        assert_eq!(bad("# x\n8 7 OTHER"), "2: nice is missing");
        assert_eq!(bad("x 7 OTHER 0 0 0 / a"), "1: tid \"x\" is not a number");
        assert!(bad("8 7 OTHER 0 0 9-1 / a").starts_with("1: cpus \"9-1\": "));
        assert_eq!(bad("8 7 OTHER 0 0 1-9 /a\\x20b a (b) c"), "");
    }
}
