//! Masks of tasks as they were seen while the recording was made.
//!
//! `tasks.txt` has a line for each task: its number, its process, policy, nice, priority,
//! the CPUs it may use, its group and last its name.

use std::collections::BTreeMap;

use schedlab_topology::CpuMask;

use crate::affinity::AffinityHint;

/// The words of each line that has them all.
pub fn rows(tasks: &str) -> impl Iterator<Item = [&str; 8]> {
    let lines = tasks.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.splitn(8, ' ').collect::<Vec<_>>().try_into().ok())
}

/// What the list says of names. Of tasks that share a name but not their CPUs it says
/// nothing, nor of those that may use every CPU.
pub fn hints_of_tasks(tasks: &str, nr_cpus: usize) -> Vec<AffinityHint> {
    let mut masks: BTreeMap<&str, Option<CpuMask>> = BTreeMap::new();
    for [_, _, _, _, _, cpus, _, comm] in rows(tasks) {
        let Ok(mask) = CpuMask::parse_list(cpus, nr_cpus) else { continue };
        masks
            .entry(comm)
            .and_modify(|known| {
                if known.as_ref() != Some(&mask) {
                    *known = None;
                }
            })
            .or_insert(Some(mask));
    }
    let hint = |(comm, mask): (&str, Option<CpuMask>)| {
        let allowed = mask.filter(|mask| !mask.is_empty() && mask.weight() < nr_cpus)?;
        Some(AffinityHint { comm: comm.to_owned(), allowed })
    };
    masks.into_iter().filter_map(hint).collect()
}

/// Whether the list has tasks in different groups.
pub fn has_groups(tasks: &str) -> bool {
    let mut groups = rows(tasks).map(|[.., group, _]| group);
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
                     half a line\n";
        let hints = hints_of_tasks(tasks, 4);
        let told: Vec<_> = hints.iter().map(|hint| (hint.comm.as_str(), hint.allowed.to_string())).collect();
        assert_eq!(told, [("db writer", "0,2".to_owned())]);
        assert!(has_groups(tasks), "/ and /a");
        assert!(!has_groups("# tid\n1 1 OTHER 0 0 0-3 / init\n2 1 OTHER 0 0 0-3 / init\n"));
    }
}
