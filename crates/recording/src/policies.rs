//! Policies that no event shows: which of the policies with the same priority a task has.
//!
//! Events show a priority. The fair policies share their priorities, and so do the two real-time policies; `tasks.txt`
//! contains the policy (see [`super::tasks`]). Children inherit their parent's. The file also contains the priority
//! itself, which no event may show for a long time while a task runs.

use std::collections::BTreeMap;

use schedlab_trace::Comm;
use schedlab_units::Pid;

use super::policy_kind::PolicyKind;
use super::tasks::{SeenTask, seen_tasks};

/// Policies of the tasks that existed when a recording was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies(BTreeMap<Pid, SeenTask>);

impl Policies {
    /// Reads `tasks.txt`.
    pub fn of_tasks(tasks: &str) -> Policies {
        Policies(seen_tasks(tasks).flatten().map(|task| (task.pid, task)).collect())
    }

    /// The policy of a task. The name is compared too, because a number may have been reused.
    pub fn of(&self, pid: Pid, comm: &Comm) -> PolicyKind {
        self.seen(pid, comm).map_or(PolicyKind::Usual, |task| task.policy)
    }

    /// Its priority as traces print it, if recorded.
    pub fn prio(&self, pid: Pid, comm: &Comm) -> Option<i32> {
        self.seen(pid, comm)?.prio
    }

    fn seen(&self, pid: Pid, comm: &Comm) -> Option<&SeenTask> {
        self.0.get(&pid).filter(|task| comm.as_bytes() == task.comm.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_sched::Policy;

    #[test]
    fn a_number_and_a_name_identify_a_policy() {
        let tasks = "# tid pid policy nice rt_priority cpus cgroup comm\n\
                     1 1 OTHER 0 0 0-3 / init\n7 7 IDLE 0 0 0-3 /a low prio\n8 8 RR 0 5 0-3 / rr\n9 9 BATCH 3 0 0-3 / b\n";
        let policies = Policies::of_tasks(tasks);
        let of = |pid, comm: &str, prio| policies.of(Pid(pid), &Comm::from(comm)).policy(prio);
        assert_eq!(of(1, "init", 120), Policy::Normal);
        assert_eq!(of(7, "low prio", 120), Policy::Idle);
        assert_eq!(of(7, "another", 120), Policy::Normal);
        assert_eq!((of(8, "rr", 94), of(8, "rr", 120)), (Policy::Rr(5), Policy::Normal));
        assert_eq!((of(9, "b", 123), of(9, "b", 89)), (Policy::Batch, Policy::Fifo(10)));
        let prio = |pid, comm: &str| policies.prio(Pid(pid), &Comm::from(comm));
        assert_eq!((prio(1, "init"), prio(8, "rr"), prio(9, "b")), (Some(120), Some(94), Some(123)));
        assert_eq!((prio(9, "another"), prio(10, "b")), (None, None));
    }
}
