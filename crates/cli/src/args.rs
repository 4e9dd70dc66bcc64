//! The command line. The help of an option is its doc comment.

mod bench;
pub mod bisect;
mod kernel;
mod recording;
mod sched;
pub mod sweep;
pub mod tune;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use self::bench::{Bench, New, Scenarios};
pub use self::kernel::*;
pub use self::recording::{Audit, AuditFormat, Contest, Record, Replay};
pub use self::sched::{Latency, Like, Map, Sched, SchedReport, Stats, Timehist};
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
    /// Run a scenario under its kernels and compare them.
    Compare(Compare),
    /// Run a scenario, or an rt-app file, under one kernel.
    Run(Compare),
    /// Run a scenario thousands of times: many machines, loads, parameters and kernels.
    Sweep(sweep::Sweep),
    /// Find which rules between two kernels change a figure.
    Bisect(bisect::Bisect),
    /// Run the benchmarks of mails to the scheduler list under several kernels, and print one table.
    Bench(Bench),
    /// List the built-in scenarios.
    Scenarios(Scenarios),
    /// Write a commented scenario to begin with.
    New(New),
    /// Search for better tunables and switches.
    Tune(tune::Tune),
    /// Simulate published tables and print both, cell by cell.
    Reproduce(Reproduce),
    /// Write the trace of one run to standard output.
    Trace(Trace),
    /// Explain the decisions of one run in sentences.
    Why(Why),
    /// Compare two traces of one program: the first decision that differs, and the consequences.
    Diff(Diff),
    /// Draw a recording as a timeline, on one page for a browser.
    View(View),
    /// Print the reports of perf sched from a recording.
    Sched(Sched),
    /// Say what is wrong in a recording.
    Detect(Detect),
    /// Judge each decision of a recorded kernel by our rules.
    Audit(Audit),
    /// Run what was recorded on another machine or kernel.
    Replay(Replay),
    /// Record what the scheduler of this host does, with everything that an audit needs. Needs root.
    Record(Record),
    /// Measure this host and write a machine file for it, in about a minute.
    Measure(Measure),
    /// List the rules of a kernel with their defaults in every preset.
    Features(Features),
    /// Say what a rule, a reason, a kernel, a row of an audit or a detector is.
    Explain(Explain),
    /// Show a machine and the scheduling domains a kernel builds on it.
    Topo(Topo),
    /// Run a kernel tree's own scheduler and our rules side by side and compare their states.
    Lockstep(Lockstep),
    /// Build the scheduler of a kernel tree, and list or remove builds.
    #[command(
        subcommand,
        after_help = "Examples:\n  schedlab kernel identify ~/linux\n  schedlab kernel build ~/linux\n  schedlab kernel list"
    )]
    Kernel(KernelVerb),
    /// Print completions for a shell.
    Completions(Completions),
    /// Print the man page.
    Man(Man),
}

/// Options of `measure`.
#[derive(Debug, Args)]
#[command(after_help = MEASURE_EXAMPLE)]
pub struct Measure {
    /// Write the machine file here instead of to standard output.
    #[arg(long, short)]
    pub output: Option<PathBuf>,
    /// Measure nothing; run `perf bench sched pipe` and `messaging` here and print their times beside those
    /// predicted from this machine file.
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub check: Option<PathBuf>,
    /// Kernel whose rules this host has, e.g. v6.12; derived from its release if not given.
    #[arg(long)]
    pub kernel: Option<String>,
}

/// The default kernel.
pub fn newest() -> &'static str {
    schedlab::sched::PRESETS.last().expect("there are presets")
}

const MEASURE_EXAMPLE: &str = "Example:
  schedlab measure --output mine.toml
  schedlab run scenarios/preempt-hackbench.toml --machine mine.toml --kernel v6.12
  schedlab measure --check mine.toml";

/// Options of `features`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  schedlab features --kernel v6.1\n  schedlab features slice")]
pub struct Features {
    /// Kernel, e.g. v6.12 or v6.1+NO_SIS_UTIL; the newest preset if not given.
    #[arg(long)]
    pub kernel: Option<String>,
    /// Only rules whose name or sentence contains this; or the kernel.
    pub search: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `explain`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  schedlab explain SIS_UTIL\n  schedlab explain v6.3\n  schedlab explain select_idle_cpu\n  schedlab explain e496132ebedd\n  schedlab explain throttle"
)]
pub struct Explain {
    /// A rule (SIS_UTIL), a reason (PREV_IDLE), a kernel (v6.12), a function of it (select_idle_cpu), a commit (e496132ebedd), a
    /// row of an audit (LOADS), a detector (pile-up), or a word (newidle, throttle, slice).
    pub name: String,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `completions`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  schedlab completions bash > ~/.local/share/bash-completion/completions/schedlab"
)]
pub struct Completions {
    /// The shell.
    pub shell: clap_complete::Shell,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `man`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  schedlab man | man -l -\n  schedlab man --output /usr/local/share/man/man1"
)]
pub struct Man {
    /// Write a page for each subcommand to this folder.
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `topo`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  schedlab topo zen3-2s --kernel v5.18\n  schedlab topo 2x8x8x2 --cpu 3\n  schedlab topo --facts recording/facts --check"
)]
pub struct Topo {
    /// The machine: a preset (zen3-2s), a regular one (2x8x8x2), `host`, or a file: a machine's TOML, a saved
    /// sysfs folder or tar, `lscpu -p` output, hwloc XML.
    #[arg(default_value = "host")]
    pub machine: String,
    /// Kernel that builds the domains.
    #[arg(long, default_value = newest())]
    pub kernel: String,
    /// Show only the domains of this CPU.
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

/// The workload, for all subcommands that run something.
#[derive(Debug, Args)]
pub struct What {
    /// A scenario (.toml) or an rt-app file (.json).
    pub scenario: String,
    /// Run on this machine instead: a preset, a regular one (2x8x8x2), `host`, or a file.
    #[arg(long)]
    pub machine: Option<String>,
    /// Set any parameter of the scenario, e.g. workload.groups=4, workload.task.w.nice=5, kernel.SIS_UTIL=off,
    /// machine.cost.syscall_ns=300; may be repeated.
    #[arg(long, value_name = "PATH=VALUE", value_parser = schedlab::Setting::parse)]
    pub set: Vec<schedlab::Setting>,
    /// End each run after this much virtual time, e.g. 10s or 300ms.
    #[arg(long, value_parser = schedlab::parse_limit)]
    pub limit: Option<schedlab::units::Duration>,
    /// Seed of the first run.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Turn hardware mechanisms off, e.g. cache-warmth,smt.
    #[arg(long, value_name = "LIST")]
    pub without: Option<String>,
}

/// Options of `compare` and `run`.
#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLE)]
pub struct Compare {
    #[command(flatten)]
    pub what: What,
    /// More scenarios or recordings, one column each; a folder of recordings is one column with one run per
    /// recording.
    pub more: Vec<String>,
    /// A column for each value of a parameter, e.g. workload.task.w.nice=0,5; may be repeated.
    #[arg(long, value_name = "PATH=VALUE,..")]
    pub vary: Vec<String>,
    /// A row for each value of a parameter, e.g. workload.groups=1,4,16; may be repeated.
    #[arg(long, value_name = "PATH=VALUE,..")]
    pub rows: Vec<String>,
    /// Figures to print instead of the usual ones: names, prefixes ending in `*`, or `all`; with `:KIND` only for one
    /// kind of task; `list` lists them.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub metric: Vec<String>,
    /// Compare every column with every other, not only with the first.
    #[arg(long)]
    pub pairwise: bool,
    /// Also print event counts of each column in the form of perf stat.
    #[arg(long)]
    pub stat: bool,
    /// Also print where the time of each CPU went, in percent.
    #[arg(long)]
    pub per_cpu: bool,
    /// Make more runs until no figure of the tables has too few, up to this many per column.
    #[arg(long, value_name = "RUNS", num_args = 0..=1, default_missing_value = "100")]
    pub until_sure: Option<u32>,
    /// Show which rules and hardware mechanisms account for the difference, by switching each off on both sides.
    #[arg(long)]
    pub attribute: bool,
    /// Constants of the machine to set to both ends of their ranges, to find the bounds of a change: `few`, or `all`,
    /// one at a time.
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, default_missing_value = "all", conflicts_with = "attribute")]
    pub ends: Option<EndsOf>,
    /// Do not check whether starred changes depend on idle states, turbo or uncertain prices.
    #[arg(long, conflicts_with_all = ["ends", "attribute"])]
    pub no_ends: bool,
    /// Kernels to run instead of the scenario's, the baseline first.
    #[arg(long, value_delimiter = ',')]
    pub kernel: Vec<String>,
    /// Runs of each kernel, with consecutive seeds.
    #[arg(long)]
    pub runs: Option<u32>,
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

const COMPARE_EXAMPLE: &str = "Examples:
  schedlab compare sis-util --kernel v6.12,v6.12+NO_SIS_UTIL
  schedlab compare preempt-hackbench --rows workload.groups=1,4 --until-sure
  schedlab compare mine.toml --vary workload.task.w.slice=100us,3ms --metric latency-*,cpu-jain
  schedlab compare before.toml after.toml --pairwise
  schedlab compare recordings-before/ recordings-after/
  schedlab compare mine.toml --kernel v6.12,v7.2 --attribute
  schedlab compare mine.toml --kernel v6.12,v7.2 --ends all";

/// Constants that are set to the ends of their ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EndsOf {
    /// Those of one part of the time, and only for starred changes; the default.
    Few,
    /// Every constant that was used, one at a time.
    All,
}

/// Options of `reproduce`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  schedlab reproduce\n  schedlab reproduce numa-affinity --quick")]
pub struct Reproduce {
    /// Tables to reproduce, e.g. numa-affinity; all if none is named.
    pub table: Vec<String>,
    /// Fewer rows and runs, and no repetition at the ends of the ranges of costs.
    #[arg(long)]
    pub quick: bool,
    /// Show the verdicts without these hardware mechanisms, each switched off on its own, e.g.
    /// cache-warmth,smt; `all` is every one.
    #[arg(long, value_delimiter = ',', value_name = "MECHANISM")]
    pub without: Vec<String>,
    /// Run a kernel, or a kernel tree, instead of one that the scenarios name, e.g. v5.18=tree:~/linux; may be
    /// repeated.
    #[arg(long, value_name = "KERNEL=KERNEL")]
    pub instead: Vec<String>,
    /// Runs of each figure instead of the scenarios' own number.
    #[arg(long)]
    pub runs: Option<u32>,
    /// Threads to run on; 0 is one per processor. The result is the same on any number.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// How to print: text, or a JSON array with one object per cell.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// How tables are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum TableFormat {
    /// As mail to the scheduler list prints them, with the reasons behind the difference.
    #[default]
    Text,
    /// One JSON value with the same numbers.
    Json,
    /// One line per row and kernel.
    Csv,
    /// Tables for a web page.
    Md,
}

/// Options of `trace`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  schedlab trace sis-util --events sched_switch,sched_wakeup\n  schedlab trace sis-util --output run.pftrace\n  schedlab trace sis-util --events 'pelt_*,schedlab_se' --output state.txt"
)]
pub struct Trace {
    #[command(flatten)]
    pub what: What,
    /// Kernel; the scenario's last one if not given.
    #[arg(long)]
    pub kernel: Option<String>,
    /// Row of the scenario; the first one if not given.
    #[arg(long)]
    pub row: Option<String>,
    /// Only these events: names, or prefixes ending in `*`. State of the scheduler (pelt_cfs, pelt_se,
    /// sched_util_est_cfs, sched_update_nr_running, schedlab_se ..) is written only if it is named.
    #[arg(long, value_delimiter = ',')]
    pub events: Vec<String>,
    /// Format; by default from the ending of --output (.pftrace, .dat, .data, .json), otherwise text of tracefs.
    #[arg(long, value_enum)]
    pub format: Option<TraceFormat>,
    /// Write to this file instead of standard output.
    #[arg(long)]
    pub output: Option<PathBuf>,
}

/// How traces are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TraceFormat {
    /// The text of tracefs.
    Ftrace,
    /// The text of tracefs, with the decisions and their reasons.
    FtraceDecisions,
    /// The file of trace-cmd and KernelShark.
    TraceDat,
    /// The same with the decisions and their reasons, more than twice as large.
    TraceDatDecisions,
    /// The file of perf, with the decisions and their reasons.
    PerfData,
    /// Perfetto protobuf, with the decisions, their reasons and candidates attached.
    Perfetto,
    /// One JSON object per line, decisions included.
    Json,
}

/// Options of `why`.
#[derive(Debug, Args)]
#[command(after_help = WHY_EXAMPLE)]
pub struct Why {
    #[command(flatten)]
    pub what: What,
    /// Kernel; the scenario's last one if not given.
    #[arg(long)]
    pub kernel: Option<String>,
    /// Row of the scenario; the first one if not given.
    #[arg(long)]
    pub row: Option<String>,
    /// Only decisions about this task (name or pid).
    #[arg(long)]
    pub task: Option<String>,
    /// Only from this time on, e.g. 1.5s or 300us.
    #[arg(long)]
    pub from: Option<String>,
    /// Only up to this time.
    #[arg(long)]
    pub to: Option<String>,
    /// Only decisions of this kind.
    #[arg(long, value_parser = ["wakeup", "fork", "exec", "push", "pull", "move", "balance", "newidle", "preemption", "pick"])]
    pub kind: Option<String>,
    /// Show instead where the decisions of two kernels first differ, and which reasons have different shares.
    #[arg(long, num_args = 2, value_names = ["KERNEL", "KERNEL"], conflicts_with = "kernel")]
    pub diff: Vec<String>,
    /// Maximum number of decisions to print.
    #[arg(long, default_value_t = 40)]
    pub most: usize,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

const WHY_EXAMPLE: &str = "Examples:
  schedlab why stream-pinned-numa --kernel v5.18 --kind fork
  schedlab why sis-util --task sl-w3 --from 1.2s --to 1.3s
  schedlab why sis-util --diff v6.12 v6.12+NO_SIS_UTIL";

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

/// Options of `diff`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  schedlab diff before.dat after.dat\n  schedlab diff before.dat after.dat --html parted.html"
)]
pub struct Diff {
    /// The first: a recording or a simulated trace of any format, compressed or not.
    pub a: PathBuf,
    /// The second, of the same program.
    pub b: PathBuf,
    /// The machine of both: a preset (zen3-2s), a regular one (2x8x8x2), `host`, or a file.
    #[arg(long)]
    pub machine: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Also write a page with the comparison and both timelines to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write to this file instead of standard output.
    #[arg(long, short)]
    pub output: Option<PathBuf>,
}

/// Options of `view`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  schedlab view trace.dat\n  schedlab view trace.dat --from 1.2s --to 1.3s --output part.html"
)]
pub struct View {
    /// A recording or a simulated trace of any format, compressed or not; `-` is standard input.
    pub file: PathBuf,
    /// The machine it was made on: a preset (zen3-2s), a regular one (2x8x8x2), `host`, or a file.
    #[arg(long)]
    pub machine: Option<String>,
    /// Take the machine from a folder of recorded facts (topology.txt).
    #[arg(long, conflicts_with = "machine")]
    pub facts: Option<PathBuf>,
    /// Keep single events only from this time on, e.g. 1.5s or 300us, counted from the first event; the coarse
    /// picture always shows the whole trace.
    #[arg(long)]
    pub from: Option<String>,
    /// Keep single events only up to this time.
    #[arg(long)]
    pub to: Option<String>,
    /// Write the page to this file; by default to one named after the recording, in the current folder.
    #[arg(long, short, conflicts_with = "serve")]
    pub output: Option<PathBuf>,
    /// Serve the page on this host only, for traces that are too large for one file; ends with Ctrl-C.
    #[arg(long, conflicts_with_all = ["from", "to"])]
    pub serve: bool,
    /// Port to serve on; 0 takes any free port.
    #[arg(long, default_value_t = 0, requires = "serve")]
    pub port: u16,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Options of `detect`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  schedlab detect recording\n  schedlab detect trace.dat --machine host")]
pub struct Detect {
    /// A recording of any format, compressed or not; `-` is standard input. Or a scenario, which is run: then each
    /// remedy is run too, and its effect is reported.
    pub file: PathBuf,
    /// The machine it was made on: a preset (zen3-2s), a regular one (2x8x8x2), `host`, or a file.
    #[arg(long)]
    pub machine: Option<String>,
    /// Take the machine from a folder of recorded facts (topology.txt).
    #[arg(long, conflicts_with = "machine")]
    pub facts: Option<PathBuf>,
    /// The kernel that was recorded, if the recording does not contain it: remedies that change nothing there are left
    /// out.
    #[arg(long)]
    pub kernel: Option<String>,
    /// CPUs that tasks may use, by pid or name, e.g. 812=0-3 or stream=0,16; recordings do not contain masks.
    #[arg(long, value_name = "TASK=LIST")]
    pub affinity: Vec<String>,
    /// Number of findings shown per detector, the worst first.
    #[arg(long, default_value_t = 5)]
    pub most: usize,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Also write a page for a browser to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_help_of_every_verb_has_an_example() {
        // The help of some comes from Python.
        let has_help = |verb: &&clap::Command| !verb.is_disable_help_flag_set();
        let arguments = Arguments::command();
        for verb in arguments.get_subcommands().filter(has_help) {
            let own =
                [verb].into_iter().filter(|verb| !verb.has_subcommands() || verb.get_after_help().is_some());
            for verb in own.chain(verb.get_subcommands().filter(|verb| verb.get_name() != "help")) {
                let after = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(after.contains("Example"), "{}", verb.get_name());
            }
        }
    }
}
