//! What would have had to be different to explain the kernel's choice, in words and with its size.

use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// A value of a hidden fact that would lead our rules to the kernel's choice, and by how much it is off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otherwise {
    /// The name of what would have had to be different: the fact's own or a further one.
    pub name: &'static str,
    /// What had been so.
    pub had: String,
    /// By how much, in ns of time or of virtual time, if it has a size.
    pub ns: Option<u64>,
    /// The size in multiples of its error, rounded up. For the state of a CPU the error is the time within which events
    /// of different CPUs overlap; averages and virtual times have errors of their own.
    pub times: Option<u64>,
}

impl Otherwise {
    /// Size, in errors, assumed for values without one.
    const PLAIN: u64 = 4;

    /// A value without a size.
    pub(crate) fn plain(name: &'static str, had: impl Into<String>) -> Otherwise {
        Otherwise { name, had: had.into(), ns: None, times: None }
    }

    /// The same value, off by `ns`, of which `error` is the uncertainty; 0 if all of it is known.
    pub(crate) fn by(self, ns: u64, error: u64) -> Otherwise {
        Otherwise { ns: Some(ns), times: (error > 0).then(|| ns.div_ceil(error).max(1)), ..self }
    }

    /// Sort key for the order in which values are tried. A value without a size comes after those that are off by a few
    /// errors.
    pub(crate) fn distance(&self) -> (u64, u64) {
        (self.times.unwrap_or(Self::PLAIN), self.ns.unwrap_or(0))
    }

    /// Whether it cannot hold together with another value, or is the same with another size.
    pub(crate) fn excludes(&self, other: &Otherwise) -> bool {
        self.name == other.name && (self.had == other.had || self.times.is_none())
    }
}

impl fmt::Display for Otherwise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.had)?;
        if let Some(ns) = self.ns {
            write!(f, " by {}", Micros(ns))?;
        }
        match self.times {
            None => Ok(()),
            Some(1) => f.write_str(", within its error"),
            Some(times) => write!(f, ", {times} times its error"),
        }
    }
}

struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Micros(ns) = *self;
        if ns < 10_000 {
            write!(f, "{}.{} us", ns / 1000, ns % 1000 / 100)
        } else {
            write!(f, "{} us", ns / 1000)
        }
    }
}

/// The nearest value that would make our rules lead to what the kernel did; two values if no single one does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The value.
    pub first: Otherwise,
    /// The second value.
    pub second: Option<Otherwise>,
}

impl Nearest {
    /// A single value.
    pub(crate) fn alone(first: Otherwise) -> Nearest {
        Nearest { first, second: None }
    }

    /// Its name, or both names.
    pub fn name(&self) -> String {
        match &self.second {
            None => self.first.name.to_owned(),
            Some(second) => {
                let mut names = [self.first.name, second.name];
                names.sort_unstable();
                names.join("+")
            }
        }
    }
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        self.second.as_ref().map_or(Ok(()), |second| write!(f, " and {second}"))
    }
}

impl Serialize for Nearest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Nearest", 4)?;
        fields.serialize_field("fact", &self.name())?;
        fields.serialize_field("sentence", &self.to_string())?;
        fields.serialize_field("ns", &self.first.ns)?;
        fields.serialize_field("times_error", &self.first.times)?;
        fields.end()
    }
}
