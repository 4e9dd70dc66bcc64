//! Takes one table out of a TOML text, with the place of every value.

use core::ops::Range;

use toml_edit::{Document, Item, TableLike};

use crate::tree::{Entry, File, Kind, Position, Value};
use crate::{Place, WorkloadError};

/// The entry of a key at the top of a text.
pub(super) fn entry(file: File, text: &str, key: &str) -> Result<Entry, WorkloadError> {
    let document = Document::parse(text).map_err(|error| {
        let (line, column) = Lines::new(text).position(error.span().map_or(0, |span| span.start));
        let at = Place::File { file: file.0.to_string(), line, column };
        WorkloadError::Syntax { at, what: error.message().to_string() }
    })?;
    match document.get_key_value(key) {
        Some((name, item)) => {
            let reader = Reader { file, lines: Lines::new(text) };
            reader.entry(name.get(), name.span(), item, (1, 1))
        }
        None => Err(file.bad((1, 1), key, format!("the file has no [{key}]"))),
    }
}

struct Reader<'a> {
    file: File<'a>,
    lines: Lines<'a>,
}

impl Reader<'_> {
    /// An entry. A value without a place of its own (a table that only its children imply) gets the place of its key,
    /// or `around`.
    fn entry(
        &self,
        key: &str,
        span: Option<Range<usize>>,
        item: &Item,
        around: Position,
    ) -> Result<Entry, WorkloadError> {
        let at = span.map_or(around, |span| self.lines.position(span.start));
        Ok(Entry { key: key.to_string(), at, value: self.item(key, item, at)? })
    }

    fn item(&self, key: &str, item: &Item, around: Position) -> Result<Value, WorkloadError> {
        let at = item.span().map_or(around, |span| self.lines.position(span.start));
        let kind = match item {
            Item::None => Kind::Absent,
            Item::Value(value) => return self.value(key, value, around),
            Item::Table(table) => self.table(table, at)?,
            Item::ArrayOfTables(tables) => {
                let table = |table: &toml_edit::Table| {
                    let at = table.span().map_or(at, |span| self.lines.position(span.start));
                    Ok(Value { at, kind: self.table(table, at)? })
                };
                Kind::Array(tables.iter().map(table).collect::<Result<_, WorkloadError>>()?)
            }
        };
        Ok(Value { at, kind })
    }

    fn table(&self, table: &dyn TableLike, at: Position) -> Result<Kind, WorkloadError> {
        let mut entries = Vec::new();
        for (key, item) in table.iter() {
            let span = table.key(key).and_then(|key| key.span());
            entries.push(self.entry(key, span, item, at)?);
        }
        Ok(Kind::Object(entries))
    }

    fn value(&self, key: &str, value: &toml_edit::Value, around: Position) -> Result<Value, WorkloadError> {
        use toml_edit::Value as Toml;
        let at = value.span().map_or(around, |span| self.lines.position(span.start));
        let kind = match value {
            Toml::String(string) => Kind::String(string.value().clone()),
            Toml::Integer(n) => Kind::Int(*n.value()),
            Toml::Float(x) => Kind::Float(*x.value()),
            Toml::Boolean(b) => Kind::Bool(*b.value()),
            Toml::Datetime(_) => return Err(self.file.bad(at, key, "a date has no meaning here")),
            Toml::Array(values) => {
                Kind::Array(values.iter().map(|value| self.value(key, value, at)).collect::<Result<_, _>>()?)
            }
            Toml::InlineTable(table) => self.table(table, at)?,
        };
        Ok(Value { at, kind })
    }
}

/// Where the lines of a text begin, computed once: every value needs a place.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Lines<'a> {
        let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        Lines { text, starts: std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect() }
    }

    /// Line and column of a byte of the text.
    fn position(&self, byte: usize) -> Position {
        let byte = byte.min(self.text.len());
        let line = self.starts.partition_point(|&start| start <= byte);
        let before = &self.text[self.starts[line - 1]..byte];
        (line as u32, before.chars().count() as u32 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_values_keep_their_order_and_places() {
        let text = "x = 1\n[workload]\nmodel = \"m\"\nb = [1, [2.5]]\n[[workload.task]]\na = true\n";
        let entry = entry(File("s.toml"), text, "workload").unwrap();
        let Kind::Object(entries) = entry.value.kind else { panic!("a table") };
        let seen: Vec<_> = entries.iter().map(|e| (e.key.as_str(), e.at, e.value.at)).collect();
        assert_eq!(seen, [("model", (3, 1), (3, 9)), ("b", (4, 1), (4, 5)), ("task", (5, 12), (5, 1))]);
        let Kind::Array(values) = &entries[1].value.kind else { panic!("a list") };
        assert_eq!(values[1].at, (4, 9));
        assert!(matches!(&values[1].kind, Kind::Array(inner) if inner[0].kind == Kind::Float(2.5)));
    }

    #[test]
    fn a_place_is_a_line_and_a_column_in_characters() {
        let lines = Lines::new("a\nü = x\n\n");
        let at = [0, 1, 2, 4, 7, 8, 9, 100].map(|byte| lines.position(byte));
        assert_eq!(at, [(1, 1), (1, 2), (2, 1), (2, 2), (2, 5), (2, 6), (3, 1), (4, 1)]);
    }

    #[test]
    fn a_table_that_is_only_implied_has_a_place_too() {
        let text = "\n[workload.interrupt.nic]\ncpu = 3\n";
        let entry = entry(File("s.toml"), text, "workload").unwrap();
        assert_eq!((entry.at, entry.value.at), ((2, 2), (2, 2)));
    }

    #[test]
    fn broken_text_is_reported_with_its_place() {
        let error = entry(File("s.toml"), "[workload]\nmodel = \n", "workload").unwrap_err();
        assert!(error.to_string().starts_with("s.toml:2:9: "), "{error}");
        let error = entry(File("s.toml"), "x = 1\n", "workload").unwrap_err();
        assert_eq!(error.to_string(), "s.toml:1:1: \"workload\": the file has no [workload]");
    }
}
