//! A value of a parameter on an axis.

use std::fmt;

/// A number, a boolean or a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// Anything else: a name, a list of CPUs, a length of time.
    Text(String),
}

impl Value {
    /// Parses a value as on the command line: `4`, `0.5`, `true`, `zen3-2s`.
    pub fn read(text: &str) -> Value {
        let text = text.trim();
        let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        if let Some(quoted) = quoted {
            return Value::Text(quoted.to_owned());
        }
        if let Ok(int) = text.parse() {
            return Value::Int(int);
        }
        match text.parse::<f64>() {
            Ok(float) if float.is_finite() && text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                Value::Float(float)
            }
            _ => match text {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                _ => Value::Text(text.to_owned()),
            },
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(int) => write!(f, "{int}"),
            Value::Float(float) => write!(f, "{float:?}"),
            Value::Bool(truth) => write!(f, "{truth}"),
            Value::Text(text) => f.write_str(text),
        }
    }
}
