//! Reads JSON the way rt-app's users write it, and records the place of every value.
//!
//! rt-app reads its files with json-c, which accepts comments, commas before a closing bracket, single quotes and
//! words in any case; its pre-pass workgen accepts keys that occur twice in one object, and `"suspend"` without a
//! value. All of that is accepted here. Entries keep their order, duplicates included, since an rt-app file depends on
//! order.

use crate::tree::{Entry, Kind, Position, Value};
use crate::{Place, WorkloadError};

/// Reads one value, after which only blanks and comments may follow.
pub(super) fn read(text: &str, file: &str) -> Result<Value, WorkloadError> {
    let mut reader = Reader { file, rest: text, at: (1, 1) };
    reader.blank()?;
    let value = reader.value(0)?;
    reader.blank()?;
    match reader.peek() {
        None => Ok(value),
        Some(c) => reader.fail(format!("'{c}' follows the end of the file's only object")),
    }
}

/// Deeper than any file a person writes.
const DEPTH_MAX: usize = 32;

struct Reader<'a> {
    file: &'a str,
    rest: &'a str,
    at: Position,
}

impl Reader<'_> {
    fn fail<T>(&self, what: impl Into<String>) -> Result<T, WorkloadError> {
        let (line, column) = self.at;
        let at = Place::File { file: self.file.to_string(), line, column };
        Err(WorkloadError::Syntax { at, what: what.into() })
    }

    fn expected<T>(&self, what: &str) -> Result<T, WorkloadError> {
        match self.peek() {
            Some(c) if c.is_control() => self.fail(format!("expected {what}, found {c:?}")),
            Some(c) => self.fail(format!("expected {what}, found '{c}'")),
            None => self.fail(format!("expected {what}, found the end of the file")),
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        self.at = if c == '\n' { (self.at.0 + 1, 1) } else { (self.at.0, self.at.1 + 1) };
        Some(c)
    }

    fn take_if(&mut self, wanted: char) -> bool {
        self.peek() == Some(wanted) && self.take().is_some()
    }

    /// Skips white space and comments.
    fn blank(&mut self) -> Result<(), WorkloadError> {
        loop {
            while self.peek().is_some_and(char::is_whitespace) {
                self.take();
            }
            let length = if self.rest.starts_with("//") {
                self.rest.find('\n').unwrap_or(self.rest.len())
            } else if self.rest.starts_with("/*") {
                match self.rest[2..].find("*/") {
                    Some(end) => end + 4,
                    None => return self.fail("this comment is never closed"),
                }
            } else {
                return Ok(());
            };
            let behind = self.rest.len() - length;
            while self.rest.len() > behind {
                self.take();
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, WorkloadError> {
        let at = self.at;
        if depth > DEPTH_MAX {
            return self.fail(format!("more than {DEPTH_MAX} brackets are open"));
        }
        let kind = match self.peek() {
            Some('{') => self.object(depth)?,
            Some('[') => self.array(depth)?,
            Some('"' | '\'') => Kind::String(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            Some(c) if c.is_ascii_alphabetic() => self.word()?,
            _ => return self.expected("a value"),
        };
        Ok(Value { at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Kind, WorkloadError> {
        self.take();
        let mut entries = Vec::new();
        loop {
            self.blank()?;
            if self.take_if('}') {
                return Ok(Kind::Object(entries));
            }
            let at = self.at;
            if !matches!(self.peek(), Some('"' | '\'')) {
                return self.expected("a key in quotes or '}'");
            }
            let key = self.string()?;
            self.blank()?;
            let value = if self.take_if(':') {
                self.blank()?;
                self.value(depth + 1)?
            } else if matches!(self.peek(), Some(',' | '}')) {
                Value { at, kind: Kind::Absent }
            } else {
                return self.expected("':'");
            };
            entries.push(Entry { key, at, value });
            self.blank()?;
            if !self.take_if(',') && self.peek() != Some('}') {
                return self.expected("',' or '}'");
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Kind, WorkloadError> {
        self.take();
        let mut values = Vec::new();
        loop {
            self.blank()?;
            if self.take_if(']') {
                return Ok(Kind::Array(values));
            }
            values.push(self.value(depth + 1)?);
            self.blank()?;
            if !self.take_if(',') && self.peek() != Some(']') {
                return self.expected("',' or ']'");
            }
        }
    }

    fn string(&mut self) -> Result<String, WorkloadError> {
        let quote = self.take();
        let mut string = String::new();
        loop {
            match self.take() {
                None => return self.fail("this string is never closed"),
                c if c == quote => return Ok(string),
                Some('\\') => string.push(self.escape()?),
                Some(c) => string.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, WorkloadError> {
        Ok(match self.take() {
            Some(c @ ('"' | '\'' | '\\' | '/')) => c,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let code = self.rest.get(..4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
                let Some(code) = code else { return self.fail("\\u must be followed by four hex digits") };
                for _ in 0..4 {
                    self.take();
                }
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => return self.fail("there is no such escape"),
        })
    }

    fn number(&mut self) -> Result<Kind, WorkloadError> {
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
        let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let digits = &self.rest[..length];
        let kind = match (digits.parse(), digits.parse()) {
            (Ok(int), _) => Kind::Int(int),
            (_, Ok(float)) if digits.contains(['.', 'e', 'E']) => Kind::Float(float),
            _ => return self.fail(format!("\"{digits}\" is not a number")),
        };
        for _ in 0..length {
            self.take();
        }
        Ok(kind)
    }

    fn word(&mut self) -> Result<Kind, WorkloadError> {
        let length = self.rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        let word = &self.rest[..length];
        let kind = match word.to_ascii_lowercase().as_str() {
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            "null" => Kind::Null,
            _ => return self.fail(format!("\"{word}\" is not a value; strings stand in quotes")),
        };
        for _ in 0..length {
            self.take();
        }
        Ok(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value on one line, keys with their places.
    fn show(value: &Value) -> String {
        match &value.kind {
            Kind::Absent => "-".to_string(),
            Kind::Null => "null".to_string(),
            Kind::Bool(b) => b.to_string(),
            Kind::Int(n) => n.to_string(),
            Kind::Float(x) => x.to_string(),
            Kind::String(s) => format!("{s:?}"),
            Kind::Array(values) => format!("[{}]", values.iter().map(show).collect::<Vec<_>>().join(" ")),
            Kind::Object(entries) => {
                let entry = |e: &Entry| format!("{}@{}:{}={}", e.key, e.at.0, e.at.1, show(&e.value));
                format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(" "))
            }
        }
    }

    fn check(text: &str, expected: &str) {
        let result = read(text, "f.json").map(|value| show(&value)).map_err(|error| error.to_string());
        assert_eq!(result.unwrap_or_else(|error| error), expected, "{text}");
    }

    /// Left: the text of the file; right: what is read. Each lenient case was seen to be accepted by json-c 0.16,
    /// those with duplicate or lone keys by workgen.
    #[test]
    fn what_json_c_and_workgen_take_is_taken() {
        check(r#"{"a":1,}"#, "{a@1:2=1}");
        check("[1,2,]", "[1 2]");
        check("{/* c */\"a\":1 // x\n}", "{a@1:9=1}");
        check("{'a':'b\"'}", r#"{a@1:2="b\""}"#);
        check("[True, FALSE, nuLL, 01, -5, 1.5]", "[true false null 1 -5 1.5]");
        check("{\n\t\"run\": 1,\n\t\"run\": 2\n}", "{run@2:2=1 run@3:2=2}");
        check(r#"{"suspend", "run": 1, "suspend"}"#, "{suspend@1:2=- run@1:13=1 suspend@1:23=-}");
        check(r#"{"a": "\u00e9\n"}"#, r#"{a@1:2="é\n"}"#);
    }

    #[test]
    fn what_cannot_be_read_is_reported_with_its_place() {
        check("{\n  a: 1 }", "f.json:2:3: expected a key in quotes or '}', found 'a'");
        check("[1,,2]", "f.json:1:4: expected a value, found ','");
        check("{\"a\" 1}", "f.json:1:6: expected ':', found '1'");
        check("{\"a\": 1 \"b\": 2}", "f.json:1:9: expected ',' or '}', found '\"'");
        check("{\"a\": yes}", "f.json:1:7: \"yes\" is not a value; strings stand in quotes");
        check("{\"a\": 0x10}", "f.json:1:8: expected ',' or '}', found 'x'");
        check("{\"a\": 1-2}", "f.json:1:7: \"1-2\" is not a number");
        check("{} }", "f.json:1:4: '}' follows the end of the file's only object");
        check("{ /* ", "f.json:1:3: this comment is never closed");
        check("\"abc", "f.json:1:5: this string is never closed");
        check("", "f.json:1:1: expected a value, found the end of the file");
        check(&"[".repeat(1_000), "f.json:1:34: more than 32 brackets are open");
    }
}
