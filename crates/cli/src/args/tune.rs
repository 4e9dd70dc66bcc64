//! Options of `tune`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::output::Format;

/// Options of `tune`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Tune {
    /// The scenarios (.toml); the figure of each is a goal of its own.
    #[arg(required = true)]
    pub scenario: Vec<PathBuf>,
    /// A tunable, switch or rule to search over: base_slice_ns, base_slice_ns=100000..10000000, SIS_UTIL.
    #[arg(long, required = true, value_name = "NAME[=VALUES]")]
    pub param: Vec<String>,
    /// The kernel whose defaults are to be beaten.
    #[arg(long)]
    pub kernel: String,
    /// Run on this machine instead: a preset, a regular one (2x8x8x2), `host`, or a file.
    #[arg(long)]
    pub machine: Option<String>,
    /// The figure of each scenario, in their order; the first measure if not given.
    #[arg(long)]
    pub metric: Vec<String>,
    /// Number of candidates.
    #[arg(long, default_value_t = 64)]
    pub trials: u32,
    /// Paired seeds of each candidate.
    #[arg(long, default_value_t = 4)]
    pub seeds: u32,
    /// Fresh seeds that judge each finalist.
    #[arg(long, default_value_t = 16)]
    pub final_seeds: u32,
    /// Maximum number of finalists.
    #[arg(long, default_value_t = 4)]
    pub finalists: u32,
    /// Seed of all random choices of the search.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder of the search. A search that was stopped continues there.
    #[arg(long, value_name = "FOLDER")]
    pub output: PathBuf,
    /// Where candidates run: local, ray[:ADDRESS] or dask[:ADDRESS].
    #[arg(long, default_value = "local")]
    pub executor: String,
    /// Threads to run on; 0 is one per processor. The result is the same on any number.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

const EXAMPLE: &str = "Example:
  schedlab tune scenarios/sis-util.toml --kernel v6.12 --param base_slice_ns --param SIS_UTIL \\
      --output tuned";

impl Tune {
    /// The same options for the Python package.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut all: Vec<OsString> = Vec::new();
        let mut option = |name: &str, value: OsString| {
            // Joined, so that a value may begin with a dash.
            let mut joined = OsString::from(format!("--{name}="));
            joined.push(value);
            all.push(joined);
        };
        for param in &self.param {
            option("param", param.into());
        }
        option("kernel", OsString::from(&self.kernel));
        if let Some(machine) = &self.machine {
            option("machine", machine.into());
        }
        for metric in &self.metric {
            option("metric", metric.into());
        }
        option("trials", self.trials.to_string().into());
        option("seeds", self.seeds.to_string().into());
        option("final-seeds", self.final_seeds.to_string().into());
        option("finalists", self.finalists.to_string().into());
        option("seed", self.seed.to_string().into());
        option("output", self.output.clone().into());
        option("executor", OsString::from(&self.executor));
        option("threads", self.threads.to_string().into());
        let format = match self.format {
            Format::Text => "text",
            Format::Json => "json",
        };
        option("format", format.into());
        all.push("--".into());
        all.extend(self.scenario.iter().map(OsString::from));
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{CommandFactory, Parser};

    use super::Tune;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        tune: Tune,
    }

    /// The options that the Python package reads.
    fn of_python() -> BTreeSet<String> {
        let text = include_str!("../../../../python/schedlab/tune.py");
        let named = text.split("add_argument(\"--").skip(1);
        named.map(|rest| rest.split('"').next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn the_options_are_those_of_the_python_package_and_all_are_handed_over() {
        let ours = Cli::command();
        let ours: BTreeSet<String> =
            ours.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect();
        assert_eq!(ours, of_python());
        let line =
            "tune a.toml b.toml --param SIS_UTIL --kernel v6.12 --machine 2x8 --metric time --output out";
        let given = Cli::parse_from(line.split(' ')).tune.arguments();
        let given: Vec<String> = given.into_iter().map(|word| word.into_string().unwrap()).collect();
        for name in &ours {
            assert!(given.iter().any(|word| word.starts_with(&format!("--{name}="))), "{name}: {given:?}");
        }
        assert!(given.ends_with(&["--".to_owned(), "a.toml".to_owned(), "b.toml".to_owned()]), "{given:?}");
    }
}
