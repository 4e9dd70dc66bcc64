//! The Rust part of the Python package: calls of the command, columns for Arrow, chunks of sweeps.
//!
//! The package's types are Python; they call these functions. No other crate depends on Python.

mod call;
mod columns;
mod events;
mod sweep;

use pyo3::prelude::*;

pyo3::create_exception!(
    schedlab,
    Error,
    pyo3::exceptions::PyValueError,
    "Bad input: what is wrong, where, and the way out."
);

/// An exception with this sentence.
fn error(sentence: impl std::fmt::Display) -> PyErr {
    Error::new_err(sentence.to_string())
}

#[pymodule]
fn _schedlab(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Error", module.py().get_type::<Error>())?;
    module.add("engine", schedlab_sweep::ENGINE)?;
    module.add_class::<columns::Columns>()?;
    module.add_class::<sweep::SweepPlan>()?;
    module.add_class::<sweep::SweepStore>()?;
    module.add_function(wrap_pyfunction!(call::call, module)?)?;
    module.add_function(wrap_pyfunction!(call::command_line, module)?)?;
    module.add_function(wrap_pyfunction!(call::mean_interval, module)?)?;
    module.add_function(wrap_pyfunction!(call::to_toml, module)?)?;
    module.add_function(wrap_pyfunction!(events::read_trace, module)?)?;
    Ok(())
}
