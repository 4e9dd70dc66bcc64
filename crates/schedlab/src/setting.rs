//! Any parameter of a scenario by its path: `workload.groups=4`.
//!
//! | path | what it sets |
//! |---|---|
//! | `machine`, `kernels`, `limit`, `runs`, `seed` | that key of the file |
//! | `kernel` | the only kernel |
//! | `kernel.SIS_UTIL`, `kernel.base_slice_ns` | a switch (`on`, `off`), a rule or a number of every kernel |
//! | `machine.cost.syscall_ns` | a constant of the machine |
//! | `workload.groups` | a parameter of the model, or any key of `[workload]` |
//! | `workload.task.w.count`, `workload.task.0.count`, `workload.task.*.nice` | a key of the task of that name or place, or of all |
//!
//! Variants, rows and sweeps all set parameters here. The text is changed and then parsed as if it had been
//! written that way, so a value is checked like one in a file.

use std::fmt;

use schedlab_machine::Machine;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Value};

use crate::error::Error;

/// A parameter and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The path, part by part.
    path: Vec<String>,
    /// The value as TOML writes it: `4`, `"3ms"`, `[1, 2]`.
    value: String,
}

impl Setting {
    /// A parameter with the text of its value; anything that is not a TOML value is a string, such as `3ms`.
    pub fn new(path: Vec<String>, value: &str) -> Setting {
        let value = value.trim();
        let value = match value.parse::<Value>() {
            Ok(parsed) if !matches!(parsed, Value::Datetime(_)) => value.to_string(),
            _ => Value::from(value).to_string(),
        };
        Setting { path, value }
    }

    /// Reads `PATH=VALUE`. Parts of a path that contain a dot are put in double quotes:
    /// `workload.group."/a.b".weight`.
    ///
    /// # Errors
    /// What is missing.
    pub fn parse(text: &str) -> Result<Setting, Error> {
        let Some((path, value)) = split_outside_quotes(text, '=') else {
            return Err(Error::new(format!(
                "\"{text}\" sets no value; write PATH=VALUE, as in workload.groups=4"
            )));
        };
        Ok(Setting::new(parse_path(path)?, value))
    }

    /// Reads `PATH=VALUE,VALUE,..` as one setting for each value. A value that contains a comma is put in double
    /// quotes.
    ///
    /// # Errors
    /// What is missing.
    pub fn parse_list(text: &str) -> Result<Vec<Setting>, Error> {
        let Some((path, values)) = split_outside_quotes(text, '=') else {
            return Err(Error::new(format!(
                "\"{text}\" has no values; write PATH=VALUE,VALUE, as in workload.groups=1,4"
            )));
        };
        let path = parse_path(path)?;
        let mut settings = Vec::new();
        let mut rest = Some(values);
        while let Some(values) = rest {
            let (value, more) = match split_outside_quotes(values, ',') {
                Some((value, more)) => (value, Some(more)),
                None => (values, None),
            };
            if value.trim().is_empty() {
                return Err(Error::new(format!("a value of \"{text}\" is empty")));
            }
            settings.push(Setting::new(path.clone(), value));
            rest = more;
        }
        Ok(settings)
    }

    /// Its path as written.
    pub fn path(&self) -> String {
        let part = |part: &String| {
            if part.contains(['.', '=', '"']) { format!("\"{part}\"") } else { part.clone() }
        };
        self.path.iter().map(part).collect::<Vec<_>>().join(".")
    }

    /// Its value for display: strings without quotes.
    pub fn shown(&self) -> String {
        match self.value.parse::<Value>() {
            Ok(Value::String(text)) => text.into_value(),
            _ => self.value.clone(),
        }
    }

    /// Whether it changes machine, kernel or limit, not the workload.
    pub(crate) fn is_beside_workload(&self) -> bool {
        self.path.first().is_none_or(|first| first != "workload")
    }

    /// What a setting of `kernel.NAME` adds to a kernel's name: `+NAME=3`, `+NO_NAME`; `None` for any other
    /// path.
    pub fn kernel_part(&self) -> Option<String> {
        let path = self.path();
        Some(kernel_part(path.strip_prefix("kernel.")?, &self.shown()))
    }

    fn value(&self) -> Value {
        self.value.parse().expect("it was made of a value")
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.path(), self.shown())
    }
}

fn split_outside_quotes(text: &str, at: char) -> Option<(&str, &str)> {
    let mut quoted = false;
    let place = text.char_indices().find(|&(_, c)| {
        quoted ^= c == '"';
        c == at && !quoted
    })?;
    Some((&text[..place.0], &text[place.0 + at.len_utf8()..]))
}

fn parse_path(text: &str) -> Result<Vec<String>, Error> {
    let mut parts = Vec::new();
    let mut rest = Some(text.trim());
    while let Some(path) = rest {
        let (part, more) = match split_outside_quotes(path, '.') {
            Some((part, more)) => (part, Some(more)),
            None => (path, None),
        };
        let part = part.trim().trim_matches('"');
        if part.is_empty() {
            return Err(Error::new(format!(
                "the path \"{text}\" has an empty part; write it like workload.groups"
            )));
        }
        parts.push(part.to_string());
        rest = more;
    }
    Ok(parts)
}

/// The text of a scenario with parameters set, in order.
///
/// # Errors
/// A text that is not TOML, or a path that does not exist.
pub(crate) fn with_settings(file: &str, text: &str, settings: &[Setting]) -> Result<String, Error> {
    let mut doc: DocumentMut = text.parse().map_err(|e: toml_edit::TomlError| {
        Error::toml(file, text, e.span().map(|span| span.start), e.message())
    })?;
    for setting in settings {
        let result = match setting.path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["kernel"] => {
                doc["kernels"] = Item::Value(Value::Array(Array::from_iter([setting.shown()])));
                Ok(())
            }
            ["kernel", ..] => switch_kernels(&mut doc, setting),
            ["machine", _, ..] => Ok(()),
            _ => set(doc.as_item_mut(), &setting.path, &setting.value()),
        };
        result.map_err(|why| Error::new(format!("{file}: {setting}: {why}")))?;
    }
    Ok(doc.to_string())
}

/// Sets the named constants of a machine.
///
/// # Errors
/// An unknown name, or a value that is not a number.
pub(crate) fn set_constants(machine: &mut Machine, settings: &[Setting]) -> Result<(), Error> {
    for setting in settings {
        if let [first, name @ ..] = &setting.path[..]
            && first == "machine"
            && !name.is_empty()
        {
            let shown = setting.shown();
            let value = shown.parse().ok().or_else(|| crate::parse_duration(&shown).ok().map(|d| d.0));
            let value = value.ok_or_else(|| {
                Error::new(format!(
                    "{setting}: a constant of a machine is a whole number, or a span like 3us"
                ))
            })?;
            machine.set(&name.join("."), value).map_err(|e| Error::new(format!("{setting}: {e}")))?;
        }
    }
    Ok(())
}

/// What a setting of `kernel.NAME` adds to the name of a kernel.
fn switch_kernels(doc: &mut DocumentMut, setting: &Setting) -> Result<(), String> {
    let part = setting.kernel_part().ok_or("a kernel's switch is expected")?;
    let kernels = doc.get_mut("kernels").and_then(Item::as_array_mut).ok_or("kernels are missing")?;
    for kernel in kernels.iter_mut() {
        let name = kernel.as_str().ok_or("kernels are texts")?;
        *kernel = Value::from(format!("{name}{part}"));
    }
    Ok(())
}

/// A value of `kernel.NAME` in the form used in kernel names.
pub(crate) fn kernel_part(name: &str, value: &str) -> String {
    match value {
        "on" | "true" => format!("+{name}"),
        "off" | "false" => format!("+NO_{name}"),
        value => format!("+{name}={value}"),
    }
}

fn set(item: &mut Item, path: &[String], value: &Value) -> Result<(), String> {
    let Some((key, rest)) = path.split_first() else {
        return replace(item, value);
    };
    if let Some(tables) = item.as_array_of_tables_mut() {
        let names: Vec<Option<String>> =
            tables.iter().map(|t| t.get("name").and_then(Item::as_str).map(str::to_string)).collect();
        for at in chosen(key, &names)? {
            let mut part = Item::Table(tables.get(at).expect("it was counted").clone());
            set(&mut part, rest, value)?;
            *tables.get_mut(at).expect("it was counted") = part.into_table().expect("a table stays one");
        }
        return Ok(());
    }
    if let Some(array) = item.as_array_mut() {
        let name = |v: &Value| v.as_inline_table()?.get("name")?.as_str().map(str::to_string);
        let names: Vec<Option<String>> = array.iter().map(name).collect();
        for at in chosen(key, &names)? {
            let mut part = Item::Value(array.get(at).expect("it was counted").clone());
            set(&mut part, rest, value)?;
            *array.get_mut(at).expect("it was counted") =
                part.into_value().map_err(|_| "a value is expected")?;
        }
        return Ok(());
    }
    let Some(table) = item.as_table_like_mut() else {
        return Err(format!("there is nothing named \"{key}\" inside a value"));
    };
    if !table.contains_key(key) {
        let fresh = if rest.is_empty() { value.clone() } else { Value::InlineTable(InlineTable::new()) };
        table.insert(key, Item::Value(fresh));
    }
    set(table.get_mut(key).expect("it is there"), rest, value)
}

/// The indices in an array that a part of a path selects: a number, a name, or `*` for all.
fn chosen(key: &str, names: &[Option<String>]) -> Result<Vec<usize>, String> {
    if key == "*" {
        return Ok((0..names.len()).collect());
    }
    let named: Vec<usize> =
        names.iter().enumerate().filter(|(_, n)| n.as_deref() == Some(key)).map(|(at, _)| at).collect();
    if !named.is_empty() {
        return Ok(named);
    }
    match key.parse::<usize>() {
        Ok(at) if at < names.len() => Ok(vec![at]),
        _ => {
            let known: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
            let known =
                if known.is_empty() { format!("0 to {}", names.len().max(1) - 1) } else { known.join(", ") };
            Err(format!("there is no \"{key}\"; there are {known}, and * for all"))
        }
    }
}

/// Replaces a value. If the old value was a string, a number becomes a string.
fn replace(item: &mut Item, value: &Value) -> Result<(), String> {
    if item.is_table() || item.is_array_of_tables() {
        return Err("this is a table; name a key of it".to_string());
    }
    let mut value = value.clone();
    let is_plain = matches!(value, Value::Integer(_) | Value::Float(_) | Value::Boolean(_));
    if is_plain && item.as_str().is_some() {
        value = Value::from(value.to_string().trim());
    }
    if let Some(old) = item.as_value() {
        *value.decor_mut() = old.decor().clone();
    }
    *item = Item::Value(value);
    Ok(())
}

/// The leaves of a table of a file as settings: each path with its value.
pub(crate) fn leaves(table: &dyn toml_edit::TableLike, path: &[String], out: &mut Vec<Setting>) {
    for (key, item) in table.iter() {
        let mut path = path.to_vec();
        path.push(key.to_string());
        match item.as_table_like() {
            Some(table) => leaves(table, &path, out),
            None => {
                let mut value = item.as_value().cloned().unwrap_or_else(|| Value::Array(Array::new()));
                value.decor_mut().clear();
                out.push(Setting { path, value: value.to_string() });
            }
        }
    }
}

impl Setting {
    /// The settings of one axis: an array has one for each of its values.
    pub(crate) fn each(&self) -> Vec<Setting> {
        match self.value() {
            Value::Array(values) => {
                let one = |value: &Value| {
                    let mut value = value.clone();
                    value.decor_mut().clear();
                    Setting { path: self.path.clone(), value: value.to_string() }
                };
                values.iter().map(one).collect()
            }
            _ => vec![self.clone()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "machine = \"2x4\" # small\nkernels = [\"v6.1\", \"v6.12\"]\nlimit = \"1s\"\n[workload]\nname = \"a\"\n\
                        [[workload.task]]\nname = \"w\"\ncount = 1\n[[workload.task]]\nname = \"p\"\ncpus = \"3\"\n";

    fn with(settings: &[&str]) -> Result<String, String> {
        let settings: Vec<Setting> = settings.iter().map(|s| Setting::parse(s).unwrap()).collect();
        with_settings("f", TEXT, &settings).map_err(|e| e.to_string())
    }

    #[test]
    fn any_key_is_set_by_its_path_and_the_rest_stays() {
        for (settings, was, is) in [
            (&["machine=2x8"][..], "machine = \"2x4\" # small", "machine = \"2x8\" # small"),
            (&["workload.task.w.count=4"], "count = 1", "count = 4"),
            (&["workload.task.0.count=4"], "count = 1", "count = 4"),
            (&["workload.task.p.cpus=0"], "cpus = \"3\"", "cpus = \"0\""),
            (&["limit=300ms"], "limit = \"1s\"", "limit = \"300ms\""),
            (&["kernel=v5.5"], "[\"v6.1\", \"v6.12\"]", "[\"v5.5\"]"),
            (
                &["kernel.SIS_UTIL=off"],
                "[\"v6.1\", \"v6.12\"]",
                "[\"v6.1+NO_SIS_UTIL\",\"v6.12+NO_SIS_UTIL\"]",
            ),
            (&["kernel.base_slice_ns=3ms"], "\"v6.12\"]", "\"v6.12+base_slice_ns=3ms\"]"),
        ] {
            let expected = TEXT.replace(was, is);
            let compact = |text: &str| text.replace(", ", ",");
            let got = with(settings).unwrap();
            let expected = if settings[0].contains("slice") {
                expected.replace("\"v6.1\"", "\"v6.1+base_slice_ns=3ms\"")
            } else {
                expected
            };
            assert_eq!(compact(&got), compact(&expected), "{settings:?}");
        }
        let text = with(&["workload.group.\"/a.b\".weight=7", "workload.task.*.nice=5"]).unwrap();
        assert!(text.contains("\"/a.b\" = { weight = 7 }"), "{text}");
        assert_eq!(text.matches("nice = 5").count(), 2);
    }

    #[test]
    fn what_leads_nowhere_is_named() {
        for (setting, part) in [
            ("workload.task.x.count=1", "there is no \"x\"; there are w, p, and * for all"),
            ("workload.name.x=1", "there is nothing named \"x\" inside a value"),
            ("workload.task=1", "this is a table"),
        ] {
            let error = with(&[setting]).unwrap_err();
            assert!(error.contains(part) && error.contains(setting), "{error}");
        }
        for text in ["workload.groups", "workload..x=1", "=1"] {
            assert!(Setting::parse(text).is_err(), "{text}");
        }
        assert!(Setting::parse_list("a=1,,2").is_err());
    }

    #[test]
    fn lists_are_split_outside_quotes() {
        let list = |text: &str| {
            let settings = Setting::parse_list(text).unwrap();
            settings.iter().map(Setting::shown).collect::<Vec<_>>()
        };
        assert_eq!(list("workload.groups=1,4"), ["1", "4"]);
        assert_eq!(list("workload.cpus=\"0-3,8\",all"), ["0-3,8", "all"]);
        assert_eq!(Setting::parse("a.\"b.c\"=x").unwrap().to_string(), "a.\"b.c\"=x");
    }
}
