//! Tasks as they were seen while the recording was made: `tasks.txt`.
//!
//! It has a line for each task: its number, its process, policy, nice, priority, the CPUs it may use, its group and last
//! its name.

use std::collections::BTreeMap;

use schedlab_topology::{CpuMask, NR_CPUS_MAX};
use schedlab_trace::{Comm, bound_kthread};
use schedlab_units::Pid;

use super::policies::PolicyKind;
use crate::affinity::AffinityHint;

/// A task as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenTask {
    /// Its number.
    pub pid: Pid,
    /// Its process.
    pub process: Pid,
    /// Its policy, of those that share its priority.
    pub policy: PolicyKind,
    /// Its priority as traces print it: 120 is nice 0, below 100 is real time, -1 a deadline. None if it makes no sense.
    pub prio: Option<i32>,
    /// CPUs it may use.
    pub allowed: CpuMask,
    /// The path of its cgroup; `/` is the root, and `-` says that there are none.
    pub cgroup: String,
    /// Its name.
    pub comm: String,
}

/// A line of a file of facts that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {why}")]
pub struct BadLine {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// The tasks of `tasks.txt`, line by line.
pub fn seen_tasks(tasks: &str) -> impl Iterator<Item = Result<SeenTask, BadLine>> {
    let lines = tasks.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    lines.map(|(index, line)| seen_task(line).map_err(|why| BadLine { line: index + 1, why }))
}

/// One line.
pub fn seen_task(line: &str) -> Result<SeenTask, String> {
    let mut words = line.splitn(8, ' ');
    let mut word = |what: &str| words.next().ok_or(format!("there is no {what} in it"));
    let number = |text: &str, what: &str| text.parse().map_err(|_| format!("{what} \"{text}\" is no number"));
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

/// What the list says of names. Of tasks that share a name but not their CPUs it says nothing, nor of those that may use
/// every CPU, unless their name is that of a thread which may not.
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

/// Whether the list has tasks in different groups.
pub fn has_groups(tasks: &str) -> bool {
    let mut groups = seen_tasks(tasks).flatten().map(|task| task.cgroup);
    groups.next().is_some_and(|first| groups.any(|other| other != first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_cpus_of_all_who_have_it() {
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
    fn a_line_that_is_none_is_told_by_its_number() {
        let bad = |text: &str| {
            seen_tasks(text).find_map(Result::err).map(|bad| bad.to_string()).unwrap_or_default()
        };
        assert_eq!(bad("# x\n8 7 OTHER"), "2: there is no nice in it");
        assert_eq!(bad("x 7 OTHER 0 0 0 / a"), "1: tid \"x\" is no number");
        assert!(bad("8 7 OTHER 0 0 9-1 / a").starts_with("1: cpus \"9-1\": "));
        assert_eq!(bad("8 7 OTHER 0 0 1-9 /a\\x20b a (b) c"), "");
    }
}
