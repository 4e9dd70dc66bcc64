//! The event vocabulary, and its formats in and out.
//!
//! A trace is the only output of a run, and the only input of a report. Its events have the names and fields of the
//! kernel's tracepoints, so recorded and simulated traces are equivalent. Everything here streams: a [`Sink`] takes
//! events one by one, readers feed one, writers are one.

mod args;
mod binary;
mod comm;
mod decision;
mod event;
mod fields;
mod flags;
mod follow;
mod hotplug;
mod idle_exits;
mod kept;
mod kernel_state;
mod keys;
mod kthread;
mod late_states;
mod pairs;
mod perfetto;
mod proto;
mod sink;
mod state;
mod switching;
mod unknown;
mod unseen;

pub mod read;
pub mod write;

pub use comm::{COMM_LEN, Comm, Label};
pub use decision::{
    Affinity, Balance, Candidate, Decided, Group, How, IdleType, Name, Newidle, Number, Pick, Placement,
    Preemption, Resched, What,
};
pub use event::{CLONE_THREAD, Event, IDLE_EXIT, Kind, Softirq};
pub use fields::Value;
pub use flags::Flags;
pub use follow::QueueLengths;
pub use hotplug::{Hotplug, Hotplugs};
pub use idle_exits::IdleExits;
pub use kept::Kept;
pub use kernel_state::{About, State};
pub use keys::Keys;
pub use kthread::{bound_kthread, is_disproved, is_kworker};
pub use late_states::LateStates;
pub use schedlab_sched::Reason;
pub use sink::{Each, Filter, NullSink, Sink, Tee};
pub use state::TaskState;
pub use switching::Switching;
pub use unknown::Unknown;
pub use unseen::UnseenSwitches;
