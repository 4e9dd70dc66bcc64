//! One file per subcommand.

pub mod audit;
pub mod bench;
pub mod bisect;
pub mod compare;
pub mod detect;
pub mod diff;
pub mod explain;
pub mod features;
pub mod kernel;
pub mod lockstep;
pub mod measure;
pub mod record;
pub mod replay;
pub mod reproduce;
pub mod scenarios;
pub mod sched;
pub mod schedstat;
pub mod shell;
pub mod sweep;
pub mod topo;
pub mod trace;
pub mod tune;
pub mod view;
pub mod why;
