//! Options of `tune`.

use clap::Args;

/// Options of `tune`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct Tune {
    /// What to tune; `schedlab tune --help` lists it.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}
