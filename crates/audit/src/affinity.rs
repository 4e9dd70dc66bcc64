//! Which CPUs a task may use, as far as its name or the user tells.
//!
//! No tracepoint shows a mask. Kernel threads of one CPU carry its number in their name
//! ([`schedlab_trace::bound_kthread`]); of any task the user may say (`--affinity 'st-*=0,4,8,12'`), or a list of tasks made
//! with the recording, and both come before the name. Who is not named so is taken to be free, which a recording can
//! contradict; and so it can a name, where its task runs on another CPU.

use schedlab_topology::CpuMask;
use schedlab_trace::Comm;

/// The CPUs that tasks of a name may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffinityHint {
    /// Name of the tasks; a `*` at the end stands for any rest.
    pub comm: String,
    /// Their CPUs.
    pub allowed: CpuMask,
}

impl AffinityHint {
    /// Whether it speaks of a task.
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
