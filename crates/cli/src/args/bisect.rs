//! Options of `bisect`.

use clap::Args;

use crate::output::Format;

/// Options of `bisect`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Bisect {
    /// The good kernel, the bad one, and a scenario (.toml) or an rt-app file (.json); with --between only the file.
    #[arg(value_names = ["GOOD", "BAD", "FILE"], num_args = 1..=3, required = true)]
    pub what: Vec<String>,
    /// The figure: a measure of the workload, or a count such as migrations; the first measure if not given.
    #[arg(long)]
    pub metric: Option<String>,
    /// First find the two released kernels between which it changes, as in v6.3..v6.12.
    #[arg(long, value_name = "OLD..NEW")]
    pub between: Option<String>,
    /// Row of the scenario; the first one if not given.
    #[arg(long)]
    pub row: Option<String>,
    /// Run on this machine instead: a preset, a regular one (2x8x8x2), `host`, or a file.
    #[arg(long)]
    pub machine: Option<String>,
    /// End each run after this much virtual time, e.g. 10s or 300ms.
    #[arg(long, value_parser = schedlab::parse_limit)]
    pub limit: Option<schedlab::units::Duration>,
    /// Seed of the first run.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Seeds to begin with; more are used if the figure varies.
    #[arg(long, default_value_t = 8)]
    pub seeds: u64,
    /// Maximum number of seeds.
    #[arg(long, default_value_t = 64)]
    pub seeds_max: u64,
    /// Threads to run on; 0 is one per processor. The result is the same on any number.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

const EXAMPLE: &str = "Example:
  schedlab bisect v6.1 v6.12 scenarios/sis-util.toml --metric migrations
  schedlab bisect --between v6.1..v7.2 scenarios/preempt-hackbench.toml";
