//! A trace as typed columns with zoom levels, for display.
//!
//! [`Builder`] is a sink. It cuts the trace into chunks with about the same number of events and passes on each chunk
//! as soon as it is complete, so its memory does not grow with the length of the trace. At the end a [`Head`] remains:
//! the machine, the tasks, the names, and the whole trace at one coarse zoom level. Three levels are computed while the
//! trace streams by:
//!
//! ```text
//! Head::overview     the whole span in at most 4,096 bins per CPU
//! Class::Summary     each chunk in 256 bins per CPU, where it has many more switches than that
//! the other classes  every switch, wake-up and decision of the chunk
//! ```
//!
//! A view uses the finest level that has no more cells than the view has pixels. Nothing here knows how the columns are
//! drawn or stored.

mod builder;
mod chunk;
mod columns;
mod cpu;
mod decision;
mod head;
mod names;
mod overview;
mod tasks;
mod wakes;

pub use builder::Builder;
pub use chunk::{Chunk, Class};
pub use columns::{Columns, Reader};
pub use head::{ChunkHead, Cpus, Head, TaskColumns};
pub use tasks::{IDLE, UNKNOWN};
