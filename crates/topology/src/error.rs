//! What is wrong with a description of a machine, where, and the way out.

use core::fmt;

/// A machine that cannot be: `machines/mine.toml:4: CPU 9 is in two packages; name each CPU once`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError {
    place: Option<String>,
    line: Option<usize>,
    what: String,
    way_out: String,
}

impl TopologyError {
    /// A fault and what the user can do about it, each a clause without a full stop.
    pub(crate) fn new(what: impl Into<String>, way_out: impl Into<String>) -> TopologyError {
        TopologyError { place: None, line: None, what: what.into(), way_out: way_out.into() }
    }

    /// Names the file, machine or option the fault is in, unless that is known already.
    pub(crate) fn in_place(mut self, place: impl Into<String>) -> TopologyError {
        self.place.get_or_insert(place.into());
        self
    }

    /// Names the line, counted from 1, unless that is known already.
    pub(crate) fn at_line(mut self, line: usize) -> TopologyError {
        self.line.get_or_insert(line);
        self
    }

    /// Makes this the fault of a line that quotes the place it was in.
    pub(crate) fn quoted_at_line(mut self, line: usize) -> TopologyError {
        if let Some(place) = self.place.take() {
            self.what = format!("{place}: {}", self.what);
        }
        self.line = Some(line);
        self
    }
}

impl std::error::Error for TopologyError {}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}:")?;
        }
        if let Some(line) = self.line {
            if self.place.is_none() {
                f.write_str("line ")?;
            }
            write!(f, "{line}:")?;
        }
        if self.place.is_some() || self.line.is_some() {
            f.write_str(" ")?;
        }
        write!(f, "{}; {}", self.what, self.way_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_comes_first_and_the_innermost_is_kept() {
        let error = TopologyError::new("CPU 9 is twice here", "name it once");
        assert_eq!(error.to_string(), "CPU 9 is twice here; name it once");
        assert_eq!(error.clone().at_line(3).to_string(), "line 3: CPU 9 is twice here; name it once");
        let error = error.in_place("a.toml").at_line(3).in_place("b.toml").at_line(4);
        assert_eq!(error.to_string(), "a.toml:3: CPU 9 is twice here; name it once");
    }
}
