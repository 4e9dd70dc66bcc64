//! What each task may do: its policy, nice, CPUs and group. A trace does not tell.

use std::collections::BTreeMap;

use schedlab::trace::Comm;
use schedlab::units::Pid;

use super::host::Host;

/// Tasks by number, each as it was when last seen.
#[derive(Default)]
pub struct Tasks(BTreeMap<i32, Task>);

struct Task {
    tgid: i32,
    nice: i64,
    policy: i64,
    rt_priority: i64,
    cpus: String,
    cgroup: String,
    comm: String,
}

impl Tasks {
    /// Looks at all tasks that there are; those seen before and gone now stay.
    pub fn look(&mut self, host: &Host) {
        for (_, process) in host.numbered("/proc", "") {
            let place = format!("/proc/{process}/task");
            for (tid, thread) in host.numbered(&place, "") {
                if let Some(task) = task(host, &process, &format!("{place}/{thread}")) {
                    self.0.insert(tid as i32, task);
                }
            }
        }
    }

    /// Their names.
    pub fn comms(&self) -> BTreeMap<Pid, Comm> {
        self.0.iter().map(|(tid, task)| (Pid(*tid), Comm::from(task.comm.as_str()))).collect()
    }

    /// A line for each, its name last because that may contain anything.
    pub fn lines(&self) -> String {
        let mut lines = "# tid pid policy nice rt_priority cpus cgroup comm\n".to_owned();
        for (tid, task) in &self.0 {
            let Task { tgid, nice, rt_priority, cpus, cgroup, comm, .. } = task;
            let policy = policy(task.policy);
            lines += &format!("{tid} {tgid} {policy} {nice} {rt_priority} {cpus} {cgroup} {comm}\n");
        }
        lines
    }
}

/// None when the task has ended meanwhile.
fn task(host: &Host, process: &str, place: &str) -> Option<Task> {
    let stat = host.text(&format!("{place}/stat"))?;
    // A name may hold spaces and brackets, so the last bracket ends it.
    let (head, rest) = stat.rsplit_once(") ")?;
    let (_, comm) = head.split_once(" (")?;
    let number = |field: usize| rest.split(' ').nth(field - 3)?.parse().ok();
    let status = host.text(&format!("{place}/status"))?;
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    // Version 2 has one group, version 1 one for each controller.
    let groups = host.text(&format!("{place}/cgroup")).unwrap_or_default();
    let group = |controller: &str| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            parts.next()?.split(',').any(|name| name == controller).then(|| parts.next())?
        })
    };
    let cgroup = group("cpu").or_else(|| group("")).unwrap_or("-").replace(' ', "\\x20");
    Some(Task {
        tgid: process.parse().ok()?,
        nice: number(19)?,
        rt_priority: number(40)?,
        policy: number(41)?,
        cpus: cpus.trim().to_owned(),
        cgroup,
        comm: comm.replace('\n', " "),
    })
}

/// The name of a policy by its number.
///
/// Kernel: SCHED_NORMAL, include/uapi/linux/sched.h.
fn policy(number: i64) -> &'static str {
    const NAMES: [&str; 8] = ["OTHER", "FIFO", "RR", "BATCH", "ISO", "IDLE", "DEADLINE", "EXT"];
    usize::try_from(number).ok().and_then(|number| NAMES.get(number)).copied().unwrap_or("UNKNOWN")
}
