//! The `schedlab` command.

fn main() -> std::process::ExitCode {
    schedlab_cli::main()
}
