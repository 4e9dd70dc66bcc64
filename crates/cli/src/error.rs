//! What goes wrong at the command line: one sentence each, exit status 2.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// A sentence that names the place and the way out.
#[derive(Debug)]
pub struct Error(String);

impl Error {
    /// An error with its sentence.
    pub fn new(sentence: impl Into<String>) -> Error {
        Error(sentence.into())
    }

    /// A file that cannot be read or written.
    pub fn file(path: &Path, error: &io::Error) -> Error {
        let name = path.display();
        if error.kind() != io::ErrorKind::NotFound {
            return Error(format!("{name}: {error}"));
        }
        Error(match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
            Some(folder) => format!(
                "{name}: there is no folder {}; look how it is spelled, or make it first",
                folder.display()
            ),
            None => format!("{name}: there is no such file; look how it is spelled and where it lies"),
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! from_display {
    ($($source:ty),*) => {
        $(impl From<$source> for Error {
            fn from(error: $source) -> Error {
                Error(error.to_string())
            }
        })*
    };
}

from_display!(
    schedlab::Error,
    schedlab::audit::FactsError,
    schedlab::machine::MachineError,
    schedlab::sched::KernelError,
    schedlab::topology::TopologyError
);

/// How a command ended, when it did what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// All is as it should be.
    Done,
    /// An expectation was missed, or two things that were compared differ.
    Missed,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        match status {
            Status::Done => ExitCode::SUCCESS,
            Status::Missed => ExitCode::from(1),
        }
    }
}
