//! Hardware that costs time: caches, shared cores, memory, clocks, idle states, interrupts.
//!
//! The scheduler says what it touched; the machine says what it cost. Each constant is a [`Cost`] with value,
//! range and source; a [`Machine`] is read from one file and can run without a mechanism ([`Without`]) to
//! show which results depend on it. `docs/models.md` has the equations. Nothing here knows a scheduler.

mod bandwidth;
mod cache;
mod cacheline;
mod capacity;
mod cost;
mod error;
mod file;
mod fixed;
mod freq;
mod idle_state;
mod ipi;
mod irq;
mod machine;
mod readers;
mod shared;
mod smt;
mod without;

pub use bandwidth::{Bandwidth, ByteRate, Flow, latency};
pub use cache::{CachePrices, Caches, EvictionClock, Warmth};
pub use cacheline::{Line, LinePrices};
pub use capacity::{Crowd, at_random, swept};
pub use cost::{Constants, Cost, KernelCosts, Row, Unit};
pub use error::MachineError;
pub use fixed::{ONE, Rate, Work, decay};
pub use freq::{Clock, ClockDomain, Freq, Law};
pub use idle_state::{IdlePredictor, IdlePrices, IdleState, IdleStates};
pub use ipi::Ipi;
pub use irq::{Burst, Softirq};
pub use machine::Machine;
pub use shared::{SharedLines, Step, Took};
pub use smt::Smt;
pub use without::{Mechanism, Without};
