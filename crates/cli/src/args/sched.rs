//! Options of the reports of `sched`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::output::Format;

/// Options of `sched`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  schedlab sched latency trace.dat\n  schedlab sched timehist perf.data --summary\n  schedlab sched map trace.dat --compact"
)]
pub struct Sched {
    /// Which report.
    #[command(subcommand)]
    pub report: SchedReport,
}

/// The reports of `sched`.
#[derive(Debug, Subcommand)]
pub enum SchedReport {
    /// Run time and wait time per task.
    Latency(Latency),
    /// At each switch, the task that runs on every CPU.
    Map(Map),
    /// Each run of a task, and how long it had waited before.
    Timehist(Timehist),
    /// /proc/schedstat of a simulated run, a report of it, or the difference of two.
    Stats(Stats),
}

/// Options of `sched stats`.
#[derive(Debug, Args)]
#[command(after_help = STATS_EXAMPLE)]
pub struct Stats {
    /// A scenario, a recording with decisions, or a file of /proc/schedstat; or `diff` and two of them.
    #[arg(required = true, num_args = 1..=3)]
    pub what: Vec<String>,
    /// Kernel; the scenario's last one if not given.
    #[arg(long)]
    pub kernel: Option<String>,
    /// Run on this machine instead; or the one a recording was made on.
    #[arg(long)]
    pub machine: Option<String>,
    /// Row of the scenario; the first one if not given.
    #[arg(long)]
    pub row: Option<String>,
    /// Seed of the run.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Print the file as the kernel does, not the report.
    #[arg(long)]
    pub schedstat: bool,
    /// Version of the file: 15, 16 or 17; that of the kernel if not given.
    #[arg(long, value_name = "NUMBER")]
    pub version: Option<u32>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

const STATS_EXAMPLE: &str = "Examples:
  schedlab sched stats sis-util --kernel v6.12
  schedlab sched stats sis-util --schedstat --version 17 > schedstat.txt
  schedlab sched stats diff /proc/schedstat mine.toml";

/// Options of `sched latency`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  schedlab sched latency trace.dat --sort max")]
pub struct Latency {
    /// A recording of any format, compressed or not; `-` is standard input.
    pub file: PathBuf,
    /// One line per task instead of one per name.
    #[arg(short, long)]
    pub pids: bool,
    /// Sort by these, the largest first: avg, max, switch, runtime, pid.
    #[arg(short, long, value_delimiter = ',', default_value = "avg,max,switch,runtime")]
    pub sort: Vec<String>,
    /// Which perf decides where a delay begins.
    #[arg(long, value_enum, default_value_t)]
    pub like: Like,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Versions of perf that read a trace differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Like {
    /// As 6.1 if the recording has sched_wakeup, otherwise as 6.9.
    #[default]
    Auto,
    /// At sched_wakeup; a task marked as preempted (R+) does not wait.
    #[value(name = "6.1")]
    V6_1,
    /// At sched_waking; a preempted task waits.
    #[value(name = "6.9")]
    V6_9,
}

/// Options of `sched map`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  schedlab sched map trace.dat --compact")]
pub struct Map {
    /// A recording of any format, compressed or not; `-` is standard input.
    pub file: PathBuf,
    /// Columns only for CPUs that switch, in the order of their first switches.
    #[arg(long)]
    pub compact: bool,
    /// Only these CPUs, e.g. 0-3,8.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `sched timehist`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  schedlab sched timehist perf.data --summary")]
pub struct Timehist {
    /// A recording of any format, compressed or not; `-` is standard input.
    pub file: PathBuf,
    /// Show wake-ups.
    #[arg(short, long)]
    pub wakeups: bool,
    /// Show migrations.
    #[arg(short = 'M', long)]
    pub migrations: bool,
    /// Show the next task.
    #[arg(short, long)]
    pub next: bool,
    /// Show the state in which a task left.
    #[arg(long)]
    pub state: bool,
    /// Show only the summary per task and CPU.
    #[arg(short, long)]
    pub summary: bool,
    /// Show all lines and the summary.
    #[arg(short = 'S', long)]
    pub with_summary: bool,
    /// Only these CPUs, e.g. 0-3,8.
    #[arg(short = 'C', long, value_name = "LIST")]
    pub cpu: Option<String>,
    /// Only these tasks, by number, e.g. 812,813.
    #[arg(short, long, value_name = "LIST")]
    pub tid: Option<String>,
    /// Only this span of the recording's clock, in seconds; either end may be left out.
    #[arg(long, value_name = "START,STOP")]
    pub time: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}
