//! What tasks do: programs of run, sleep, wake and wait.
//!
//! A [`Workload`] is data that the engine executes. It knows neither scheduler nor machine: it defines what each task
//! does, not where or for how long.

mod builder;
mod check;
mod cpu_list;
mod cursor;
mod describe;
mod dist;
mod entry;
mod error;
mod from_toml;
mod id;
mod minus_ln;
pub mod models;
mod object;
mod param;
mod program;
#[cfg(test)]
mod rehearsal;
mod rt_app;
mod tree;
mod workload;

pub(crate) use builder::SOCKET_BYTES;
pub use builder::{Label, ProgramBuilder, WorkloadBuilder};
pub use check::Fault;
pub use cpu_list::CpuList;
pub use cursor::Cursor;
pub use dist::{Dist, exponential};
pub use entry::TaskEntry;
pub use error::{Place, WorkloadError};
pub use from_toml::{WorkloadRead, WorkloadRow};
pub use id::*;
pub use object::*;
pub use param::{Param, ParamInfo, ParamValue};
pub use program::{
    Expected, FOREVER, GroupAct, LOOP_DEPTH_MAX, Miss, OWN_TIMERS_MAX, Op, Plug, Program, Section, TaskAct,
    Test, Timer,
};
pub use rt_app::RtApp;
pub use workload::{
    Deadline, Did, Flips, GroupSpec, HALF, Measure, MeasureRule, Naming, Placed, Policy, Process, Quota,
    STEADY, SchedAttr, Start, TASKS_MAX, TaskSpec, Workload, shares_of_weight,
};
