//! The command, called from Python.

use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error;

/// How often signals are checked.
const BEAT: Duration = Duration::from_millis(50);

/// Runs work in a separate thread without the GIL, so that other Python threads run and Ctrl-C is handled.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (send, receive) = mpsc::channel();
    let worker = thread::spawn(move || drop(send.send(work())));
    // Only so that it can be accessed without the GIL; no other thread does.
    let receive = Mutex::new(receive);
    let wait = |time| receive.lock().expect("no holder panics").recv_timeout(time);
    loop {
        match py.detach(|| wait(BEAT)) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    // Runs end at their next progress report; work without progress reports continues in the
                    // background.
                    schedlab_cli::cancel(true);
                    py.detach(|| drop(wait(Duration::from_secs(2))));
                    schedlab_cli::cancel(false);
                    return Err(signal);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                let said = worker.join().err();
                let said = said.and_then(|panic| panic.downcast::<String>().ok().map(|said| *said));
                let said = said.unwrap_or_else(|| "without a word".to_owned());
                return Err(PyRuntimeError::new_err(format!("schedlab stopped: {said}; please report this")));
            }
        }
    }
}

/// Calls the command: its exit status and what it would print.
#[pyfunction]
pub fn call(py: Python<'_>, arguments: Vec<String>) -> PyResult<(u8, String)> {
    let (status, printed) = interruptible(py, move || schedlab_cli::call(&arguments))?.map_err(error)?;
    Ok((status, String::from_utf8_lossy(&printed).into_owned()))
}

/// Acts as the command, with the arguments and signals of this process.
#[pyfunction]
pub fn command_line(py: Python<'_>, arguments: Vec<String>) -> u8 {
    py.detach(|| schedlab_cli::main_with(arguments))
}

/// A JSON object as the text of a TOML file.
#[pyfunction]
pub fn to_toml(json: &str) -> PyResult<String> {
    let value: toml::Table = serde_json::from_str(json).map_err(|e| error(format!("no table: {e}")))?;
    toml::to_string(&value).map_err(|e| error(format!("what TOML cannot hold: {e}")))
}

/// Mean of values, and its interval at this confidence.
#[pyfunction]
pub fn mean_interval(values: Vec<f64>, confidence: f64) -> PyResult<(f64, f64, f64)> {
    let estimate = schedlab_sweep::mean_t(&values, confidence);
    let estimate = estimate.ok_or_else(|| error("an interval needs at least two values"))?;
    Ok((estimate.value, estimate.interval.low, estimate.interval.high))
}
