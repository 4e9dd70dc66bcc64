//! Benchmarks as models: one file each, with what is modelled and what is not.
//!
//! A model is a struct of parameters with defaults. [`Model`] finds one by name
//! and sets parameters by name, as scenario files do; in code the structs are
//! filled in directly.

pub mod barrier;
pub mod batch;
pub mod copies;
pub mod dbench;
pub mod events;
pub mod fork_storm;
pub mod hackbench;
pub mod hogs;
pub mod io;
pub mod kernbench;
pub mod netperf;
pub mod oltp;
pub mod periodic;
pub mod ping;
pub mod pipes;
pub mod schbench;
pub mod sleepers;
pub mod spawn;
pub mod spinners;
pub mod stream;
pub mod sysbench;
pub mod tbench;
pub mod token;

pub use barrier::Barrier;
pub use batch::Batch;
pub use copies::Copies;
pub use dbench::Dbench;
pub use events::Events;
pub use fork_storm::ForkStorm;
pub use hackbench::Hackbench;
pub use hogs::Hogs;
pub use io::{DeviceKind, Io};
pub use kernbench::Kernbench;
pub use netperf::Netperf;
pub use oltp::Oltp;
pub use periodic::Periodic;
pub use ping::Ping;
pub use pipes::Pipes;
pub use schbench::Schbench;
pub use sleepers::Sleepers;
pub use spawn::Spawn;
pub use spinners::Spinners;
pub use stream::Stream;
pub use sysbench::Sysbench;
pub use tbench::Tbench;
pub use token::Token;

use crate::{ParamInfo, ParamValue, Workload, WorkloadBuilder, WorkloadError};

macro_rules! models {
    ($($(#[$doc:meta])* $model:ident,)*) => {
        /// A model with its parameters.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Model {
            $($(#[$doc])* $model($model),)*
        }

        impl Model {
            /// The names of all models.
            pub const NAMES: &'static [&'static str] = &[$($model::NAME),*];

            /// The model of a name, with its defaults.
            pub fn named(name: &str) -> Option<Model> {
                match name {
                    $($model::NAME => Some(Model::$model($model::default())),)*
                    _ => None,
                }
            }

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Model::$model(_) => $model::NAME,)*
                }
            }

            /// Its parameters with their values.
            pub fn params(&self) -> Vec<ParamInfo> {
                match self {
                    $(Model::$model(model) => model.params(),)*
                }
            }

            /// Sets a parameter; `None` if there is none of that name.
            pub fn set(&mut self, name: &str, value: &ParamValue) -> Option<Result<(), String>> {
                match self {
                    $(Model::$model(model) => model.set(name, value),)*
                }
            }

            /// Adds its tasks to a workload.
            pub fn add(&self, w: &mut WorkloadBuilder) {
                match self {
                    $(Model::$model(model) => model.add(w),)*
                }
            }
        }

        $(impl $model {
            /// A workload of this alone.
            ///
            /// # Errors
            /// Parameters that contradict each other.
            pub fn workload(&self) -> Result<Workload, WorkloadError> {
                let mut w = WorkloadBuilder::new($model::NAME);
                self.add(&mut w);
                w.finish()
            }
        })*
    };
}

models! {
    /// Threads that meet at a barrier.
    Barrier,
    /// A parallel program in phases.
    Batch,
    /// Copies of a program bound by memory.
    Copies,
    /// dbench on XFS.
    Dbench,
    /// sysbench cpu and threads.
    Events,
    /// Short-lived children.
    ForkStorm,
    /// hackbench.
    Hackbench,
    /// Processes that compute all the time.
    Hogs,
    /// Readers of a block device.
    Io,
    /// make -j.
    Kernbench,
    /// A database whose storage is across a network.
    Oltp,
    /// netperf.
    Netperf,
    /// cyclictest.
    Periodic,
    /// A ping flood.
    Ping,
    /// hackbench's pattern as recorded.
    Pipes,
    /// schbench.
    Schbench,
    /// schbench's pattern as recorded.
    Sleepers,
    /// Forks one after the other.
    Spawn,
    /// New threads that spin.
    Spinners,
    /// STREAM.
    Stream,
    /// sysbench on PostgreSQL.
    Sysbench,
    /// tbench.
    Tbench,
    /// Pairs and their pipes.
    Token,
}

impl Model {
    /// About how many tasks it makes, as far as its parameters multiply them.
    pub fn nr_tasks(&self) -> u64 {
        const COUNTS: [&str; 14] = [
            "clients",
            "copies",
            "groups",
            "hogs",
            "instances",
            "jobs",
            "messengers",
            "pairs",
            "parents",
            "readers",
            "threads",
            "users",
            "width",
            "workers",
        ];
        let is_count = |name: &str| COUNTS.contains(&name) && (self.name(), name) != ("hogs", "groups");
        let counts = self.params().into_iter().filter(|param| is_count(param.name));
        counts.filter_map(|param| param.value.parse().ok()).fold(1, u64::saturating_mul)
    }

    /// Adds its tasks as background tasks, for which a run does not wait.
    pub fn add_in_background(&self, w: &mut WorkloadBuilder) {
        let first = w.next_task();
        self.add(w);
        w.workload_mut().change_tasks(first, |task| task.background = true);
    }

    /// A workload of this alone.
    ///
    /// # Errors
    /// Parameters that contradict each other.
    pub fn workload(&self) -> Result<Workload, WorkloadError> {
        let mut w = WorkloadBuilder::new(self.name());
        self.add(&mut w);
        w.finish()
    }
}

#[cfg(test)]
mod tests;
