//! `schedlab tune`: the search uses Optuna, so the Python package does it.

use std::ffi::OsString;
use std::process::Command;

use crate::args::tune::Tune;
use crate::error::{Error, Status};

/// Hands over to the package.
pub fn run(args: &Tune) -> Result<Status, Error> {
    let python = std::env::var_os("SCHEDLAB_PYTHON").unwrap_or_else(|| OsString::from("python3"));
    let has = Command::new(&python).args(["-c", "import schedlab.tune, optuna"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        return Err(Error::new(format!(
            "tune searches with Optuna from Python, and {} has not both; run `pip install '.[tune]'` in the project's \
             folder, and set SCHEDLAB_PYTHON if that is another Python",
            python.display()
        )));
    }
    let status = Command::new(&python).args(["-m", "schedlab.tune"]).args(args.arguments()).status();
    let status = status.map_err(|error| Error::new(format!("{}: {error}", python.display())))?;
    match status.code() {
        Some(0) => Ok(Status::Done),
        Some(1) => Ok(Status::Missed),
        Some(130) => Ok(Status::Interrupted),
        _ => Err(Error::new("the search ended with an error")),
    }
}
