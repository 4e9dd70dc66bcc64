//! What can be wrong with a machine file.

use schedlab_topology::TopologyError;

/// A machine that cannot be built, with the place and a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// Its topology.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A line of its file.
    #[error("{file}:{line}: {problem}")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// A constant set by name.
    #[error("{0}")]
    Constant(String),
}
