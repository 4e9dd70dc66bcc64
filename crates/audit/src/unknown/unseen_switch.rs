//! Which tasks run or wait on a CPU since a switch that is not in the trace.
//!
//! The shadow notes where it lost sight (`follow/unseen.rs`).

use schedlab_topology::CpuId;

use super::Shadow;
use super::about::About;

pub(super) const ABOUT: About = About::new(
    "UNSEEN_SWITCH",
    "which tasks ran and waited on the CPU after a switch that is not in the trace",
);

impl Shadow {
    /// Whether a CPU switched unseen since it was last seen idle.
    pub fn switched_unseen_on(&self, cpu: CpuId) -> bool {
        self.unseen[cpu]
    }
}
