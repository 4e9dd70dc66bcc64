//! Options about kernel trees.

use clap::{Args, Subcommand};

use crate::output::Format;

/// What to do with kernel trees.
#[derive(Debug, Subcommand)]
pub enum KernelVerb {
    /// Build the scheduler of a kernel tree into a library, which is cached.
    Build(KernelBuild),
    /// Find which of our rules a kernel tree has, by running both in lockstep.
    Identify(KernelIdentify),
    /// List builds.
    List(KernelList),
    /// Remove builds.
    Remove(KernelRemove),
}

/// Options of `kernel build`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  schedlab kernel build ~/linux\n  schedlab kernel build ~/linux@v6.12+my.patch"
)]
pub struct KernelBuild {
    /// The tree: a folder with the source of a kernel, a commit of it (DIR@REV), or either with +FILE.patch. It is not
    /// written to.
    pub tree: String,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `kernel list`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  schedlab kernel list")]
pub struct KernelList {
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `kernel remove`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  schedlab kernel remove 6.12.117")]
pub struct KernelRemove {
    /// The beginning of a key, or a release such as 6.12.117.
    pub kernel: Option<String>,
    /// All of them, and everything that was compiled for them.
    #[arg(long, conflicts_with = "kernel")]
    pub all: bool,
}

/// Options of `kernel identify`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  schedlab kernel identify ~/linux")]
pub struct KernelIdentify {
    /// The tree: a folder with the source of a kernel, a commit of it (DIR@REV), or either with +FILE.patch.
    pub tree: String,
    /// Our kernel to begin with; the nearest if not given.
    #[arg(long)]
    pub kernel: Option<String>,
    /// Operations of each run.
    #[arg(long, default_value_t = 1500)]
    pub steps: u64,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `lockstep`.
#[derive(Debug, Args)]
#[command(after_help = LOADS)]
pub struct Lockstep {
    /// The kernel tree: a folder with the source of a kernel, a commit of it (DIR@REV), or either with +FILE.patch. It is
    /// not written to.
    #[arg(long)]
    pub tree: String,
    /// Our kernel, e.g. v6.12 or v6.12+NO_SIS_UTIL; the nearest to the tree if not given.
    #[arg(long)]
    pub kernel: Option<String>,
    /// Machine: a preset, a regular one (2x8x8x2), `host`, or a file.
    #[arg(long, default_value = "2x2x4")]
    pub machine: String,
    /// Maximum number of tasks at a time.
    #[arg(long, default_value_t = 30)]
    pub tasks: usize,
    /// Operations, each after a pause.
    #[arg(long, default_value_t = 10_000)]
    pub steps: u64,
    /// Seed of the random operations.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Loads to add besides running and sleeping, separated by commas.
    #[arg(long, default_value = "plain")]
    pub load: String,
    /// Maximum number of runs to shrink a failing one.
    #[arg(long, default_value_t = 300)]
    pub shrink: usize,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

const LOADS: &str = "Examples:
  schedlab lockstep --tree ~/linux
  schedlab lockstep --tree ~/linux --kernel v6.12 --load nice,groups --steps 100000
  schedlab lockstep --tree ~/linux+my.patch         # the first state that a patch changes

Loads: plain, all, nohz, sync, irq, yield, exit, kthread, nice, affinity, groups, shares, quota, idle-groups,
slice, freq, batch, rt, deadline, exec, steal, hotplug, lazy, hrtick. All of them are in all but hotplug, lazy, which changes the
preemption model, and hrtick, which turns the slice timer on.
Exit status: 0 both sides are equal, 1 they differ, 2 wrong usage.";
