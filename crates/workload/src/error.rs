//! What can be wrong with a workload, and where.

use core::fmt;

use crate::Fault;

/// A place in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A place in a file.
    File {
        /// Its name as the user gave it.
        file: String,
        /// Line from 1.
        line: u32,
        /// Column from 1, in characters.
        column: u32,
    },
    /// An op of a program that was not read from a file.
    Op {
        /// The program's name.
        program: String,
        /// The op's number in it, from 0.
        op: u32,
    },
    /// A part of the workload, by name.
    Part(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Place::Op { program, op } => write!(f, "program \"{program}\", op {op}"),
            Place::Part(part) => f.write_str(part),
        }
    }
}

/// A workload that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// The text violates its format.
    #[error("{at}: {what}")]
    Syntax {
        /// Where.
        at: Place,
        /// The value found and the expected one.
        what: String,
    },
    /// An unknown key.
    #[error("{at}: unknown key \"{key}\" in {within}; known keys are {known}")]
    UnknownKey {
        /// Where.
        at: Place,
        /// The key.
        key: String,
        /// The table or object that contains it.
        within: String,
        /// The keys allowed there.
        known: String,
    },
    /// A key that is known but not modelled.
    #[error("{at}: \"{key}\" is not modelled: {why}")]
    Refused {
        /// Where.
        at: Place,
        /// The key.
        key: String,
        /// Why, and what may help.
        why: String,
    },
    /// A value that does not fit its key.
    #[error("{at}: \"{key}\": {why}")]
    BadValue {
        /// Where.
        at: Place,
        /// The key.
        key: String,
        /// What is wrong with it.
        why: String,
    },
    /// The workload contradicts itself.
    #[error("{at}: {fault}")]
    Fault {
        /// Where.
        at: Place,
        /// How.
        fault: Fault,
    },
}

impl WorkloadError {
    /// Where it is wrong.
    pub fn place(&self) -> &Place {
        match self {
            WorkloadError::Syntax { at, .. }
            | WorkloadError::UnknownKey { at, .. }
            | WorkloadError::Refused { at, .. }
            | WorkloadError::BadValue { at, .. }
            | WorkloadError::Fault { at, .. } => at,
        }
    }
}

/// Names in quotes with commas between them, for error messages.
pub(crate) fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}
