//! Options of the subcommands that make or use a recording: `record`, `audit`, `replay`.

use std::path::PathBuf;

use clap::Args;

use super::TableFormat;
use crate::output::Format;

/// Options of `audit`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  schedlab audit recording\n  schedlab audit trace.dat --kernel v6.12 --machine zen3-2s"
)]
pub struct Audit {
    /// The recording: text of tracefs, trace-cmd or perf script, trace.dat, perf.data, Perfetto, compressed or not;
    /// or a folder that contains one (trace.dat, trace.txt), or one folder per recording.
    pub file: PathBuf,
    /// Kernel it was recorded on, e.g. v6.12; optional if facts/uname.txt is beside the recording, or the recording
    /// names it (trace.dat, perf.data). Recorded facts set its switches and tunables; additions here
    /// (v6.12+NO_SIS_UTIL) are applied last.
    #[arg(long)]
    pub kernel: Option<String>,
    /// Machine it was recorded on: a preset, a regular one (2x8x8x2), `host`, or a file.
    #[arg(long)]
    pub machine: Option<String>,
    /// Folder of recorded facts (topology.txt, sched_features.txt, debug_sched.txt); facts/ beside the recording
    /// or above its folder is found by default.
    #[arg(long)]
    pub facts: Option<PathBuf>,
    /// CPUs that tasks of a name may use, as in 'st-*=0,4,8,12'; may be repeated.
    #[arg(long, value_name = "NAME=CPUS")]
    pub affinity: Vec<String>,
    /// Number of disagreements reported for each kind and rule.
    #[arg(long, default_value_t = 2)]
    pub stories: usize,
    /// Print every verdict.
    #[arg(long)]
    pub verdicts: bool,
    /// Show how well the rules of other kernels explain a recording, on the decisions where kernels disagree; `auto`
    /// does so for one recording of up to 500000 events.
    #[arg(long, value_enum, default_value_t)]
    pub contest: Contest,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: AuditFormat,
    /// Write to this file instead of standard output.
    #[arg(long, short)]
    pub output: Option<PathBuf>,
    /// Also write a page for a browser to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// When an audit also uses the rules of other kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Contest {
    /// If it takes little time.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How an audit is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum AuditFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON value with the same numbers.
    Json,
    /// The recording as a Perfetto trace with each verdict as a point; also the text if there is an output
    /// file.
    Perfetto,
}

/// Options of `replay`.
#[derive(Debug, Args)]
#[command(after_help = REPLAY_EXAMPLE)]
pub struct Replay {
    /// The recording: text of tracefs, trace-cmd or perf script, trace.dat, perf.data, Perfetto; compressed or not.
    pub file: PathBuf,
    /// Machine to replay it on: a preset (zen3-2s), a regular one (2x8x8x2), `host`, or a file; its own if not given.
    #[arg(long)]
    pub machine: Option<String>,
    /// Kernel to replay it under, e.g. v6.12; its own if not given.
    #[arg(long)]
    pub kernel: Option<String>,
    /// Kernels to compare with that one.
    #[arg(long, value_delimiter = ',', value_name = "KERNEL")]
    pub vs: Vec<String>,
    /// Folder of facts about the machine it was recorded on (topology.txt, uname.txt, sched_features.txt,
    /// debug_sched.txt); one beside the recording is found by default.
    #[arg(long)]
    pub facts: Option<PathBuf>,
    /// Kernel it was recorded on, if neither the facts nor the recording name it; --kernel if not given.
    #[arg(long, value_name = "KERNEL")]
    pub as_recorded: Option<String>,
    /// Machine it was recorded on, if neither the facts nor the recording name it; --machine if not given.
    #[arg(long, value_name = "MACHINE")]
    pub recorded_on: Option<String>,
    /// CPUs that tasks of a name may use, as in 'st-*=0,4,8,12'; may be repeated.
    #[arg(long, value_name = "NAME=CPUS")]
    pub affinity: Vec<String>,
    /// Runs of each kernel, with consecutive seeds, and of the replay on the recorded machine. By default 16 of each
    /// kernel, and 16 to 64 on the recorded machine, until the means have settled.
    #[arg(long)]
    pub runs: Option<u32>,
    /// Seed of the first run.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Turn hardware mechanisms off, e.g. cache-warmth,smt.
    #[arg(long, value_name = "LIST")]
    pub without: Option<String>,
    /// Write the trace of the first run under the last kernel to this file: Perfetto (.pftrace), trace.dat (.dat), perf.data
    /// (.data), JSON lines (.json), or text of tracefs, with the decisions and their reasons.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Also print event counts of each column in the form of perf stat.
    #[arg(long)]
    pub stat: bool,
    /// Print the learned programs instead of running them.
    #[arg(long)]
    pub programs: bool,
    /// Rule for the star: t-2020, ci-2024, subci-2024, welch, rank or bootstrap.
    #[arg(long, default_value = "ci-2024")]
    pub rule: String,
    /// Threads to run on; 0 is one per processor. The result is the same on any number.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: TableFormat,
    /// Write to this file instead of standard output.
    #[arg(long)]
    pub output: Option<PathBuf>,
    /// Also write a page for a browser to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

const REPLAY_EXAMPLE: &str = "Example:
  trace-cmd record -e sched_switch -e sched_waking -e sched_wakeup_new -e sched_process_fork \\
      -e sched_process_exec -e sched_process_exit -e sched_wakeup -e sched_migrate_task make -j8
  schedlab replay trace.dat --recorded-on host --as-recorded v6.12 \\
      --machine zen3-2s --kernel v6.12 --vs v6.12+NO_SIS_UTIL";

/// Options of `record`.
#[derive(Debug, Args)]
#[command(after_help = RECORD_EXAMPLE)]
pub struct Record {
    /// Folder for the recording; it must be new or empty.
    #[arg(short, long, default_value = "recording")]
    pub output: PathBuf,
    /// How long, e.g. 10s; without this and without a command, until Ctrl-C.
    #[arg(short, long, conflicts_with = "command")]
    pub duration: Option<String>,
    /// Buffer size per CPU, KiB.
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u64).range(64..=1 << 22))]
    pub buffer: u64,
    /// Additional tracepoints: SYSTEM:NAME, a prefix ending in a star, or SYSTEM for all of it.
    #[arg(long, value_delimiter = ',')]
    pub events: Vec<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Run this command, as the user you are; the recording ends with it.
    #[arg(last = true)]
    pub command: Vec<String>,
}

const RECORD_EXAMPLE: &str = "Example:
  sudo schedlab record --output slow -- make -j8
  schedlab detect slow
  schedlab audit slow";
