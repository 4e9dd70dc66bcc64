//! The settings of each task: its policy, nice, CPUs and group. A trace does not contain them.

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
    autogroup: Option<Autogroup>,
    comm: String,
}

/// The group of a session, and the nice value it was given.
#[derive(Clone, Copy)]
struct Autogroup {
    number: u32,
    nice: i32,
}

impl Tasks {
    /// Reads all existing tasks; tasks that have ended since stay in the list. Returns the groups of the
    /// existing tasks: a line for the hierarchy with the CPU controller, then one for each task.
    pub fn look(&mut self, host: &Host) -> String {
        let mut groups = format!("hierarchy {}\n# tid pid cgroup autogroup nice comm\n", hierarchy(host));
        for (_, process) in host.numbered("/proc", "") {
            let autogroup = autogroup(host, &process);
            let place = format!("/proc/{process}/task");
            for (tid, thread) in host.numbered(&place, "") {
                if let Some(task) = task(host, &process, &format!("{place}/{thread}"), autogroup) {
                    groups += &task.groups(tid);
                    self.0.insert(tid as i32, task);
                }
            }
        }
        groups
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

impl Task {
    /// `812 810 /user.slice 47 0 make`; a task of no session's group has `-` for its number.
    fn groups(&self, tid: usize) -> String {
        let Task { tgid, cgroup, comm, .. } = self;
        match self.autogroup {
            Some(Autogroup { number, nice }) => format!("{tid} {tgid} {cgroup} {number} {nice} {comm}\n"),
            None => format!("{tid} {tgid} {cgroup} - 0 {comm}\n"),
        }
    }
}

/// The number of the hierarchy with the CPU controller, as in `cgroup_attach_task`; version 2 has 0.
fn hierarchy(host: &Host) -> String {
    let own = host.text("/proc/self/cgroup").unwrap_or_default();
    let with_cpu = |line: &str| {
        let mut parts = line.split(':');
        let (number, controllers) = (parts.next()?, parts.next()?);
        controllers.split(',').any(|name| name == "cpu").then(|| number.to_owned())
    };
    own.lines().find_map(with_cpu).unwrap_or_else(|| "0".to_owned())
}

/// `/autogroup-47 nice 0`; empty for tasks without a session, such as kernel threads.
fn autogroup(host: &Host, process: &str) -> Option<Autogroup> {
    let text = host.text(&format!("/proc/{process}/autogroup"))?;
    let (number, nice) = text.strip_prefix("/autogroup-")?.split_once(" nice ")?;
    Some(Autogroup { number: number.parse().ok()?, nice: nice.parse().ok()? })
}

/// `None` if the task has ended meanwhile.
fn task(host: &Host, process: &str, place: &str, autogroup: Option<Autogroup>) -> Option<Task> {
    let stat = host.text(&format!("{place}/stat"))?;
    // A name may contain spaces and brackets, so the last bracket ends it.
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
        autogroup,
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
