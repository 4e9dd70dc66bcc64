//! Which of several suitable CPUs for a real-time or deadline task is next in rotation.
//!
//! Each CPU picks the one after its previous pick, which is known once a pick was seen.

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
