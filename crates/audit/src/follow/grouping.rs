//! The groups that exist, and the groups of tasks.

use std::collections::BTreeMap;

use schedlab_sched::TgId;
use schedlab_trace::Comm;
use schedlab_units::Pid;

use schedlab_recording::{Clones, Groups, MadeGroups, moves_with};

/// The groups that exist.
#[derive(Clone, Debug, Default)]
pub struct Grouping {
    pub(super) facts: Groups,
    pub(crate) cgroups: BTreeMap<String, TgId>,
    pub(super) made: MadeGroups,
    /// Cgroups of tasks that were moved there before their first event.
    pub(super) ahead: BTreeMap<Pid, String>,
    /// For each group below a quota, the lowest group with a quota at or above it.
    pub(super) limits: BTreeMap<TgId, TgId>,
    pub(crate) sessions: BTreeMap<u32, TgId>,
    /// Number of sessions that began in the trace and have no number.
    pub(super) unnumbered: u32,
    /// Whether the trace shows when sessions begin.
    pub(super) told: bool,
    clones: Clones,
}

/// The groups of a task; both together determine its task group.
#[derive(Clone, Debug, Default)]
pub struct InGroups {
    pub(super) process: Pid,
    /// The process whose memory it uses. Where no event distinguishes threads from children, a task that executes no
    /// program counts as a thread.
    pub(super) memory: Pid,
    pub(super) cgroup: String,
    pub(super) session: Option<u32>,
    /// The session in which it will be seen later.
    pub(super) later: Option<u32>,
    /// It left the group of a session when it exited.
    pub(super) left: bool,
}

impl InGroups {
    /// The process whose memory the task uses, as numbered in the scheduler.
    pub fn process(&self) -> u32 {
        self.memory.0 as u32
    }
}

/// Whether the return of setsid() shows that a session began: it returns the session's number, or a negative number on
/// failure. `0x1f4` or `__syscall_nr=112 ret=500`.
pub fn is_session(text: &str) -> bool {
    let given = text.rsplit(['=', ' ']).next().unwrap_or_default();
    let number = match given.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => given.parse().ok(),
    };
    number.is_some_and(|number| (1..1 << 31).contains(&number))
}

impl Grouping {
    /// Creates the groups from the fact files.
    pub fn new(facts: Groups) -> Grouping {
        Grouping { facts, ..Grouping::default() }
    }

    /// The groups of a task that existed before its first event.
    pub(super) fn of_old(&self, pid: Pid, comm: &Comm) -> InGroups {
        let Some(member) = self.facts.member(pid, comm) else {
            return InGroups { process: pid, memory: pid, ..InGroups::default() };
        };
        InGroups {
            process: member.process,
            memory: member.process,
            cgroup: member.cgroup.clone(),
            session: member.session,
            ..InGroups::default()
        }
    }

    /// The groups of a new task: its parent's, until it begins a session.
    pub(super) fn of_child(&self, child: Pid, parent: &InGroups) -> InGroups {
        let later = self.facts.after.get(&child).filter(|_| !self.facts.before.contains_key(&child));
        let later =
            later.and_then(|member| member.session).filter(|&session| Some(session) != parent.session);
        let is_thread = self.clones.is_thread(child) == Some(true);
        let process = if is_thread { parent.process } else { child };
        let memory = if is_thread || !self.clones.tell() { parent.memory } else { child };
        InGroups { process, memory, later, ..parent.clone() }
    }

    /// The lowest group with a quota at or above a group.
    pub fn limit(&self, tg: TgId) -> Option<TgId> {
        if self.limits.is_empty() { None } else { self.limits.get(&tg).copied() }
    }

    /// A task is cloned.
    pub fn cloned(&mut self, pid: Pid, clone_flags: u64) {
        self.clones.cloned(pid, clone_flags);
    }

    /// A cgroup is created.
    pub fn made(&mut self, hierarchy: i32, id: u64, path: &str) {
        if hierarchy == self.facts.hierarchy {
            self.made.made(id, path);
        }
    }

    /// Records the new cgroup of tasks that have not been seen yet.
    pub(super) fn attach_unmet(&mut self, named: Pid, cgroup: &str) {
        let members = self.facts.before.iter_mut();
        for (_, member) in members.filter(|(pid, member)| moves_with(**pid, member.process, named)) {
            member.cgroup = cgroup.to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_begins_where_its_number_is_given() {
        let texts =
            ["0x1f4", "__syscall_nr=112 ret=500", "0xffffffffffffffff", "__syscall_nr=112 ret=-1", ""];
        assert_eq!(texts.map(is_session), [true, true, false, false, false]);
    }
}
