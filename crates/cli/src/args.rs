//! The command line. The help of an option is its doc comment.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::output::Format;

/// Where will each task go, why there, and what does it cost, before and after the change?
#[derive(Debug, Parser)]
#[command(name = "schedlab", version, max_term_width = 110, arg_required_else_help = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the rules of a kernel with their defaults in every preset.
    Features(Features),
    /// Say what a rule, a reason or a kernel is.
    Explain(Explain),
    /// Show a machine and the scheduling domains a kernel builds on it.
    Topo(Topo),
    /// Print completions for a shell.
    Completions(Completions),
    /// Print the man page.
    Man,
}

/// Options of `features`.
#[derive(Debug, Args)]
pub struct Features {
    /// Kernel, e.g. v6.12 or v6.1+NO_SIS_UTIL.
    #[arg(long, default_value = "v7.2")]
    pub kernel: String,
    /// Only rules whose name or sentence contains this.
    pub search: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// A rule (SIS_UTIL), a reason (PREV_IDLE) or a kernel (v6.12).
    pub name: String,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell.
    pub shell: clap_complete::Shell,
}

/// Options of `topo`.
#[derive(Debug, Args)]
pub struct Topo {
    /// The machine: a preset (zen3-2s), a regular one (2x8x8x2), `host`, or a file: a machine's TOML, a saved
    /// sysfs folder or tar, `lscpu -p` output, hwloc XML.
    #[arg(default_value = "host")]
    pub machine: String,
    /// Kernel that builds the domains.
    #[arg(long, default_value = "v7.2")]
    pub kernel: String,
    /// Show the domains of this CPU alone.
    #[arg(long)]
    pub cpu: Option<u16>,
    /// Take the machine from a folder of recorded facts (topology.txt, domains.txt, schedstat.txt).
    #[arg(long, conflicts_with = "machine")]
    pub facts: Option<PathBuf>,
    /// Compare with the domains the recorded kernel built; exit status 1 if they differ.
    #[arg(long, requires = "facts")]
    pub check: bool,
    /// Write the machine itself in another form instead.
    #[arg(long, value_enum)]
    pub export: Option<Export>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Forms in which a machine can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Export {
    /// `path value` lines of sysfs.
    Sysfs,
    /// `lscpu -p` output.
    Lscpu,
    /// hwloc XML.
    Hwloc,
}
