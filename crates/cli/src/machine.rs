//! Finding the machine a user means.

use schedlab::topology::Topology;

use crate::error::Error;

/// The topology behind a name: a preset or a regular machine.
pub fn topology(name: &str) -> Result<Topology, Error> {
    Ok(Topology::preset_or_regular(name)?)
}
