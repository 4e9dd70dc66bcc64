//! Options about kernel trees.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::output::Format;

/// What to do with kernel trees.
#[derive(Debug, Subcommand)]
pub enum KernelVerb {
    /// Build the scheduler of a kernel tree into a library, which is kept.
    Build(KernelBuild),
    /// List what is built.
    List(KernelList),
    /// Remove what is built.
    Remove(KernelRemove),
}

/// Options of `kernel build`.
#[derive(Debug, Args)]
pub struct KernelBuild {
    /// The tree: a folder with the source of a kernel. It is not written to.
    pub tree: PathBuf,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `kernel list`.
#[derive(Debug, Args)]
pub struct KernelList {
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `kernel remove`.
#[derive(Debug, Args)]
pub struct KernelRemove {
    /// The beginning of a key, or a release such as 6.12.117.
    pub kernel: Option<String>,
    /// All of them, and all that was compiled for them.
    #[arg(long, conflicts_with = "kernel")]
    pub all: bool,
}
