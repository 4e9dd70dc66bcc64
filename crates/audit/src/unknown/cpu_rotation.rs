//! Which of several suitable CPUs for a real-time or deadline task is next in rotation.
//!
//! Each CPU picks the one after its previous pick, which is known once a pick was seen.

use schedlab_sched::{Placement, Reason, Wakeup};
use schedlab_topology::CpuId;

use super::Shadow;
use super::about::About;

pub(super) const ABOUT: About =
    About::new("CPU_ROTATION", "which of several suitable CPUs was next in rotation");

impl Shadow {
    /// Whether the previous pick of a CPU is unknown, so that any of several suitable CPUs may be next.
    pub fn rotation_is_open(&self, of: CpuId) -> bool {
        !self.any_cpu_known[of]
    }

    /// A CPU was seen to pick one of several suitable ones.
    pub fn rotation_is_shown(&mut self, of: CpuId) {
        self.any_cpu_known[of] = true;
    }
}

/// The CPUs of which any may be next for a woken real-time task: the nearest that run something of lower priority.
pub fn others(shadow: &Shadow, wakeup: &Wakeup) -> Vec<Placement> {
    let (sched, this) = (&shadow.sched, wakeup.this_cpu);
    let nearest = sched.lowest_for_woken(wakeup.task, this);
    let open = nearest.filter(|nearest| nearest.in_turn && shadow.rotation_is_open(this));
    let at = |cpu| Placement { in_turn: true, ..Placement::new(cpu, Reason::LowestRt) };
    open.iter().flat_map(|nearest| nearest.cpus.iter()).map(at).collect()
}
