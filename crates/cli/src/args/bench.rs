//! Options of `bench`, `scenarios` and `new`.

use std::path::PathBuf;

use clap::Args;

use crate::output::Format;

/// Options of `bench`.
#[derive(Debug, Args)]
#[command(after_help = BENCH_EXAMPLE)]
pub struct Bench {
    /// The machine: a preset (zen3-2s), a regular one (2x8x8x2), `host`, or a file; `host` if not given.
    pub machine: Option<String>,
    /// The kernels, the baseline first.
    #[arg(long, value_delimiter = ',')]
    pub kernel: Vec<String>,
    /// Only these benchmarks: names (`hackbench` is all its forms), or prefixes ending in `*`.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub only: Vec<String>,
    /// List the benchmarks.
    #[arg(long)]
    pub list: bool,
    /// Runs of each kernel, with consecutive seeds.
    #[arg(long, default_value_t = 3)]
    pub runs: u32,
    /// Seed of the first run.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Threads to run on; 0 is one per processor. The result is the same on any number.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Also write a page for a browser to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

const BENCH_EXAMPLE: &str = "Examples:
  schedlab bench 1x8x2 --kernel v6.12,v7.2
  schedlab bench zen3-2s --kernel v6.12,v6.12+NO_SIS_UTIL --only hackbench-*,netperf-tcp-rr
  schedlab bench --list";

/// Options of `scenarios`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  schedlab scenarios\n  schedlab scenarios hackbench")]
pub struct Scenarios {
    /// Only those that mention this.
    pub search: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `new`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  schedlab new mine.toml\n  schedlab new --model hackbench > mine.toml")]
pub struct New {
    /// Write to this file, which must not exist yet, instead of standard output.
    pub file: Option<PathBuf>,
    /// With this model of a benchmark and all its parameters, instead of custom tasks.
    #[arg(long)]
    pub model: Option<String>,
}
