//! Values read from a file, with their places, for both JSON and TOML.

mod fields;

pub(crate) use fields::{File, Object};

/// Line and column, both from 1.
pub(crate) type Position = (u32, u32);

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    pub at: Position,
    pub kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A key without a value.
    Absent,
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(String),
    Array(Vec<Value>),
    Object(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub key: String,
    /// The place of the key.
    pub at: Position,
    pub value: Value,
}

impl Kind {
    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Absent => "nothing",
            Kind::Null => "null",
            Kind::Bool(_) => "a boolean",
            Kind::Int(_) => "an integer",
            Kind::Float(_) => "a fraction",
            Kind::String(_) => "a string",
            Kind::Array(_) => "an array",
            Kind::Object(_) => "an object",
        }
    }
}
