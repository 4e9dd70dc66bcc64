//! Typed access to the keys of a JSON object or a TOML table; every refusal names
//! key, file and line.

use core::ops::RangeInclusive;

use super::{Entry, Kind, Position, Value};
use crate::error::quoted;
use crate::{Param, ParamValue, Place, WorkloadError};

/// The file, for the places in errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File<'a>(pub &'a str);

impl File<'_> {
    fn place(&self, (line, column): Position) -> Place {
        Place::File { file: self.0.to_string(), line, column }
    }

    pub fn bad(&self, at: Position, key: &str, why: impl Into<String>) -> WorkloadError {
        WorkloadError::BadValue { at: self.place(at), key: key.to_string(), why: why.into() }
    }

    pub fn refused(&self, at: Position, key: &str, why: impl Into<String>) -> WorkloadError {
        WorkloadError::Refused { at: self.place(at), key: key.to_string(), why: why.into() }
    }

    pub fn wrong_type(&self, entry: &Entry, wanted: &str) -> WorkloadError {
        self.bad(entry.value.at, &entry.key, format!("{wanted} is expected, not {}", entry.value.kind.name()))
    }

    pub fn string<'v>(&self, entry: &'v Entry) -> Result<&'v str, WorkloadError> {
        match &entry.value.kind {
            Kind::String(string) => Ok(string),
            _ => Err(self.wrong_type(entry, "a string")),
        }
    }

    /// An integer in a range.
    pub fn int(&self, entry: &Entry, range: RangeInclusive<i64>) -> Result<i64, WorkloadError> {
        match entry.value.kind {
            Kind::Int(n) if range.contains(&n) => Ok(n),
            Kind::Int(n) => {
                let why = format!("{n} is outside {} to {}", range.start(), range.end());
                Err(self.bad(entry.value.at, &entry.key, why))
            }
            _ => Err(self.wrong_type(entry, "an integer")),
        }
    }

    /// An integer from 0 on that fits rt-app's 32 bits.
    pub fn count(&self, entry: &Entry) -> Result<u32, WorkloadError> {
        self.int(entry, 0..=i64::from(i32::MAX)).map(|n| n as u32)
    }

    /// A value of any type that models' parameters can have.
    pub fn param<T: Param>(&self, entry: &Entry) -> Result<T, WorkloadError> {
        let value = match &entry.value.kind {
            Kind::Int(n) => ParamValue::Int(*n),
            Kind::Bool(b) => ParamValue::Bool(*b),
            Kind::String(text) => ParamValue::Text(text.clone()),
            _ => return Err(self.wrong_type(entry, "a number, text or true or false")),
        };
        T::read(&value).map_err(|why| self.bad(entry.value.at, &entry.key, why))
    }

    /// A number or text, as a word.
    pub fn word(&self, entry: &Entry) -> Result<String, WorkloadError> {
        match &entry.value.kind {
            Kind::Int(n) => Ok(n.to_string()),
            Kind::String(text) => Ok(text.clone()),
            _ => Err(self.wrong_type(entry, "a number or text")),
        }
    }

    pub fn bool(&self, entry: &Entry) -> Result<bool, WorkloadError> {
        match entry.value.kind {
            Kind::Bool(b) => Ok(b),
            _ => Err(self.wrong_type(entry, "true or false")),
        }
    }
}

/// An object of the file, with its name in messages.
#[derive(Clone, Debug)]
pub(crate) struct Object<'a> {
    pub file: File<'a>,
    /// What it is: `task "a"`.
    pub within: String,
    pub at: Position,
    pub entries: &'a [Entry],
}

impl<'a> Object<'a> {
    pub fn new(file: File<'a>, value: &'a Value, within: String) -> Result<Object<'a>, WorkloadError> {
        match &value.kind {
            Kind::Object(entries) => Ok(Object { file, within, at: value.at, entries }),
            kind => Err(file.bad(value.at, &within, format!("an object is expected, not {}", kind.name()))),
        }
    }

    /// The entry of a key that may occur once.
    pub fn get(&self, key: &str) -> Result<Option<&'a Entry>, WorkloadError> {
        let mut found = self.entries.iter().filter(|entry| entry.key == key);
        let first = found.next();
        match found.next() {
            Some(again) => Err(self.file.bad(again.at, key, "stands twice here")),
            None => Ok(first),
        }
    }

    /// The entry of a key, read in some way.
    pub fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&'a Entry) -> Result<T, WorkloadError>,
    ) -> Result<Option<T>, WorkloadError> {
        self.get(key)?.map(read).transpose()
    }

    pub fn string(&self, key: &str) -> Result<Option<&'a str>, WorkloadError> {
        self.read(key, |entry| self.file.string(entry))
    }

    pub fn count(&self, key: &str) -> Result<Option<u32>, WorkloadError> {
        self.read(key, |entry| self.file.count(entry))
    }

    pub fn bool(&self, key: &str) -> Result<Option<bool>, WorkloadError> {
        self.read(key, |entry| self.file.bool(entry))
    }

    /// Refuses a key that is not known here.
    pub fn unknown(&self, entry: &Entry, known: &[&str]) -> WorkloadError {
        WorkloadError::UnknownKey {
            at: self.file.place(entry.at),
            key: entry.key.clone(),
            within: self.within.clone(),
            known: quoted(known.iter().copied()),
        }
    }

    /// Refuses every key that is not among the known ones.
    pub fn only(&self, known: &[&str]) -> Result<(), WorkloadError> {
        match self.entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
            Some(entry) => Err(self.unknown(entry, known)),
            None => Ok(()),
        }
    }
}
