//! Options of `sweep`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::output::Format;

/// Options of `sweep`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Sweep {
    /// What to do.
    #[command(subcommand)]
    pub verb: SweepVerb,
}

const EXAMPLE: &str = "Example:
  schedlab sweep plan scenarios/sis-util.toml --vary workload.workers=1,2,4..32:x2 \\
      --vary kernel=v6.1,v6.1+NO_SIS_UTIL --seeds 10
  schedlab sweep run scenarios/sis-util.toml .. --output sis
  schedlab sweep report sis
  schedlab sweep gather sis --output sis.parquet";

/// What to do with a sweep.
#[derive(Debug, Subcommand)]
pub enum SweepVerb {
    /// Count the points of a plan, show ten, and estimate time and size.
    Plan(SweepPlan),
    /// Run the remaining points, continuing where an earlier run stopped.
    Run(SweepRun),
    /// Show the progress of a sweep, and what failed.
    Status(SweepStatus),
    /// Write all finished rows into one Parquet file.
    Gather(SweepGather),
    /// Report where a kernel is better or worse than another.
    Report(SweepReport),
    /// Write the file that starts a sweep on a cluster.
    Submit(SweepSubmit),
}

/// What varies.
#[derive(Debug, Args)]
pub struct Points {
    /// A parameter and its values, e.g. workload.groups=1,2,4..64:x2, machine=zen3-2s,spr-2s,
    /// kernel=v6.1,v6.12, kernel.base_slice_ns=1000000..8000000:x2 or machine.cost.syscall_ns=100..400:+100;
    /// may be repeated.
    #[arg(long, value_name = "PATH=VALUES")]
    pub vary: Vec<String>,
    /// Seeds of each combination; as many as the scenario has runs if not given.
    #[arg(long)]
    pub seeds: Option<u32>,
    /// Which combinations: grid, random:N or latin:N (a Latin hypercube).
    #[arg(long)]
    pub sample: Option<String>,
    /// Seed of all seeds and samples; the scenario's if not given.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Points per file; by default 64 files, but at most 256 points each.
    #[arg(long)]
    pub chunk: Option<u32>,
}

/// Options of `sweep plan`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  schedlab sweep plan scenarios/sis-util.toml --vary workload.workers=1,2,4..32:x2 --seeds 10"
)]
pub struct SweepPlan {
    /// A scenario (.toml), a plan (.toml with a [vary] table), an rt-app file (.json, with --vary machine=..), or the
    /// folder of a sweep.
    pub what: PathBuf,
    #[command(flatten)]
    pub points: Points,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `sweep run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  schedlab sweep run scenarios/sis-util.toml --vary workload.workers=8,16,32 --output sis"
)]
pub struct SweepRun {
    /// A scenario (.toml), a plan (.toml with a [vary] table), an rt-app file (.json, with --vary machine=..), or the
    /// folder of a sweep.
    pub what: PathBuf,
    #[command(flatten)]
    pub points: Points,
    /// Folder of the sweep; NAME.sweep here if not given.
    #[arg(long, short)]
    pub output: Option<PathBuf>,
    /// Only count and estimate, like `sweep plan`.
    #[arg(long)]
    pub dry_run: bool,
    /// Run only one share, the ith of N, i from 0. Only N inside a Slurm array or a Kubernetes Indexed Job.
    #[arg(long, value_name = "i/N")]
    pub shard: Option<String>,
    /// Run failed points again.
    #[arg(long)]
    pub retry: bool,
    /// Folder of finished points that all plans share; the user's cache if not given.
    #[arg(long, value_name = "FOLDER")]
    pub cache: Option<PathBuf>,
    /// Maximum size of the cache, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    pub cache_limit: u64,
    /// Neither use nor store finished points in the cache.
    #[arg(long, conflicts_with = "cache")]
    pub no_cache: bool,
    /// Threads to run on; 0 is one per processor. The result is the same on any number.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `sweep status`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  schedlab sweep status sis")]
pub struct SweepStatus {
    /// Folder of the sweep.
    pub folder: PathBuf,
    /// Number of failed points shown.
    #[arg(long, default_value_t = 20)]
    pub most: usize,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `sweep gather`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  schedlab sweep gather sis --output sis.parquet")]
pub struct SweepGather {
    /// Folder of the sweep.
    pub folder: PathBuf,
    /// The file to write; FOLDER.parquet if not given.
    #[arg(long, short)]
    pub output: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `sweep report`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  schedlab sweep report sis --metric latency-p99")]
pub struct SweepReport {
    /// Folder of the sweep.
    pub folder: PathBuf,
    /// The figure: a measure of the workload or another column; the first measure if not given.
    #[arg(long)]
    pub metric: Option<String>,
    /// The kernel that the others are compared with; the plan's first if not given.
    #[arg(long, value_name = "KERNEL")]
    pub against: Option<String>,
    /// Number of combinations shown at either end.
    #[arg(long, default_value_t = 5)]
    pub most: usize,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short)]
    pub output: Option<PathBuf>,
    /// Also write a page for a browser to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON value.
    Json,
    /// One line per combination and kernel.
    Csv,
}

/// Options of `sweep submit`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  schedlab sweep submit sis --for slurm --shards 16")]
pub struct SweepSubmit {
    /// Folder of the sweep, on a shared file system.
    pub folder: PathBuf,
    /// The engine.
    #[arg(long = "for", value_enum, value_name = "ENGINE")]
    pub engine: Engine,
    /// Number of shares.
    #[arg(long)]
    pub shards: u64,
    /// CPUs per share.
    #[arg(long, default_value_t = 1)]
    pub cpus: u32,
    /// Container image with schedlab, for Kubernetes.
    #[arg(long, default_value = "schedlab:latest")]
    pub image: String,
    /// The file to write; standard output if not given.
    #[arg(long, short)]
    pub output: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// An engine that starts shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// A job array, for sbatch.
    Slurm,
    /// An Indexed Job, for kubectl.
    K8s,
}
