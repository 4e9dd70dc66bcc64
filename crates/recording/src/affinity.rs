//! Which CPUs a task may use, as far as its name or the user says.
//!
//! No tracepoint shows a CPU mask. Per-CPU kernel threads carry the CPU's number in their name
//! ([`schedlab_trace::bound_kthread`]). For any other task the user can give the mask (`--affinity 'st-*=0,4,8,12'`),
//! or a list of tasks made with the recording does; both take precedence over the name. A task without a known mask is
//! assumed to be free to use any CPU. A recording can contradict this, and it can contradict a name too, when the task
//! runs on another CPU.

use schedlab_topology::CpuMask;
use schedlab_trace::Comm;

/// The CPUs that tasks with a given name may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffinityHint {
    /// Name of the tasks; a `*` at the end matches any suffix.
    pub comm: String,
    /// Their CPUs.
    pub allowed: CpuMask,
}

impl AffinityHint {
    /// Whether this hint applies to a task with that name.
    pub fn matches(&self, comm: &Comm) -> bool {
        match self.comm.strip_suffix('*') {
            Some(prefix) => comm.as_bytes().starts_with(prefix.as_bytes()),
            None => comm.as_bytes() == self.comm.as_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_may_end_in_a_star() {
        let hint = AffinityHint { comm: "st-*".to_owned(), allowed: CpuMask::all(4) };
        assert!(hint.matches(&Comm::from("st-main")) && !hint.matches(&Comm::from("st")));
    }
}
