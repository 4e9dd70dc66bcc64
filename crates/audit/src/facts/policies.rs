//! Policies that no event tells: of those with one priority, which a task has.
//!
//! Events show a priority. The fair policies share theirs, and so do the two of real time; `tasks.txt` says which it was
//! (see [`super::tasks`]). Children have their parent's.

use std::collections::BTreeMap;

use schedlab_sched::Policy;
use schedlab_trace::Comm;
use schedlab_units::Pid;

use super::tasks::seen_tasks;

/// Which of the policies of a priority a task has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyKind {
    /// The usual one: SCHED_OTHER, or SCHED_FIFO.
    #[default]
    Usual,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_RR.
    Rr,
}

impl PolicyKind {
    /// That of a policy by its name, `BATCH`.
    pub fn named(name: &str) -> PolicyKind {
        match name {
            "BATCH" => PolicyKind::Batch,
            "IDLE" => PolicyKind::Idle,
            "RR" => PolicyKind::Rr,
            _ => PolicyKind::Usual,
        }
    }

    /// The policy with a priority as traces print it, below 140 and not a stopper's or a deadline.
    pub fn policy(self, prio: i32) -> Policy {
        let real_time = (99 - prio).max(1) as u8;
        match self {
            PolicyKind::Rr if prio < 100 => Policy::Rr(real_time),
            _ if prio < 100 => Policy::Fifo(real_time),
            PolicyKind::Batch => Policy::Batch,
            PolicyKind::Idle => Policy::Idle,
            PolicyKind::Usual | PolicyKind::Rr => Policy::Normal,
        }
    }
}

/// Policies of tasks that were there when a recording was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies(BTreeMap<Pid, (String, PolicyKind)>);

impl Policies {
    /// What `tasks.txt` says of those whose policy is not the usual one.
    pub fn of_tasks(tasks: &str) -> Policies {
        let unusual = seen_tasks(tasks).flatten().filter(|task| task.policy != PolicyKind::Usual);
        Policies(unusual.map(|task| (task.pid, (task.comm, task.policy))).collect())
    }

    /// That of a task; a number may have been used again by another name.
    pub fn of(&self, pid: Pid, comm: &Comm) -> PolicyKind {
        match self.0.get(&pid) {
            Some((name, kind)) if comm.as_bytes() == name.as_bytes() => *kind,
            _ => PolicyKind::Usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_name_tell_a_policy() {
        let tasks = "# tid pid policy nice rt_priority cpus cgroup comm\n\
                     1 1 OTHER 0 0 0-3 / init\n7 7 IDLE 0 0 0-3 /a low prio\n8 8 RR 0 5 0-3 / rr\n9 9 BATCH 3 0 0-3 / b\n";
        let policies = Policies::of_tasks(tasks);
        let of = |pid, comm: &str, prio| policies.of(Pid(pid), &Comm::from(comm)).policy(prio);
        assert_eq!(of(1, "init", 120), Policy::Normal);
        assert_eq!(of(7, "low prio", 120), Policy::Idle);
        assert_eq!(of(7, "another", 120), Policy::Normal);
        assert_eq!((of(8, "rr", 94), of(8, "rr", 120)), (Policy::Rr(5), Policy::Normal));
        assert_eq!((of(9, "b", 123), of(9, "b", 89)), (Policy::Batch, Policy::Fifo(10)));
    }
}
