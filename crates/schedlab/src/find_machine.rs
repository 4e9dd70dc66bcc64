//! Finds the machine that a scenario names.

use schedlab_machine::Machine;

use crate::error::Error;
use crate::scenario::Files;

/// A preset (`zen3-2s`), a regular machine (`2x8x8x2`) or a machine file (`mine.toml`).
///
/// # Errors
/// What is wrong with the name or the file, and what would be valid.
pub fn find_machine(name: &str, files: &dyn Files) -> Result<Machine, Error> {
    let machine = if name.ends_with(".toml") {
        let text = files.text(name).map_err(Error::new)?;
        Machine::from_toml(name, &text)
    } else {
        Machine::preset(name)
    };
    machine.map_err(|e| Error::new(e.to_string()))
}
