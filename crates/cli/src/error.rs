//! Errors at the command line: one sentence each, exit status 2.

use std::fmt::{self, Write};
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
        let way_out = match error.kind() {
            io::ErrorKind::NotFound => "",
            io::ErrorKind::PermissionDenied => "permission denied; look at its mode and those of its folders",
            io::ErrorKind::IsADirectory => "this is a folder; name a file in it",
            io::ErrorKind::InvalidInput => {
                "it cannot be read or written as a file; is it a special one of /proc or /sys?"
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "there is no room left for it; free some, or write somewhere else"
            }
            _ => return Error(format!("{name}: {error}")),
        };
        if !way_out.is_empty() {
            return Error(format!("{name}: {way_out}"));
        }
        Error(match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
            Some(folder) => format!(
                "{name}: there is no folder {}; check its spelling, or create it first",
                folder.display()
            ),
            None => format!("{name}: there is no such file; check its spelling and location"),
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names come from files; control characters in them must not reach the terminal.
        for letter in self.0.chars() {
            match letter {
                '\n' | '\t' => f.write_char(letter)?,
                _ if letter.is_control() => write!(f, "{}", letter.escape_unicode())?,
                _ => f.write_char(letter)?,
            }
        }
        Ok(())
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
    schedlab::recording::FactsError,
    schedlab::kernel_tree::Error,
    schedlab::machine::MachineError,
    schedlab::sched::KernelError,
    schedlab_sweep::Error,
    schedlab::topology::TopologyError
);

/// How a command ended that did what was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Everything is as expected.
    Done,
    /// An expectation was missed, or two things that were compared differ.
    Missed,
    /// It was interrupted; finished work is kept.
    Interrupted,
}

impl Status {
    /// The exit status.
    pub fn code(self) -> u8 {
        match self {
            Status::Done => 0,
            Status::Missed => 1,
            Status::Interrupted => 130,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(status.code())
    }
}
