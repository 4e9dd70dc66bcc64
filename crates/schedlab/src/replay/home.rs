//! Where a recording was made: the machine and the kernel on which its replay must reproduce it.

use schedlab_sched::Kernel;
use schedlab_sim::Past;
use schedlab_topology::Topology;

use super::Recorded;
use crate::error::Error;

/// A recording with the machine and the kernel that it was made on.
#[derive(Debug)]
pub struct Home<'a> {
    pub(super) recorded: &'a Recorded,
    pub(super) topology: &'a Topology,
    pub(super) kernel: &'a Kernel,
    /// What the recording shows about the state it began from.
    pub(super) past: Past,
    /// Seed of the first replay.
    pub(super) seed: u64,
    pub(super) threads: usize,
}

impl Recorded {
    /// The recording on its own machine. Replays use `threads` threads (0: one per processor), and seeds from `seed`
    /// on.
    ///
    /// # Errors
    /// A replay that cannot be made.
    pub fn at_home<'a>(
        &'a self,
        topology: &'a Topology,
        kernel: &'a Kernel,
        seed: u64,
        threads: usize,
    ) -> Result<Home<'a>, Error> {
        let past = self.past(topology, kernel)?;
        Ok(Home { recorded: self, topology, kernel, past, seed, threads })
    }
}
