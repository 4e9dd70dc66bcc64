//! A plan as a file.
//!
//! A user's plan names its scenario; a plan in a store contains the scenario's text, and that of all files it
//! names.
//!
//! ```toml
//! scenario = "sis-util.toml"
//! sample = "latin:200"         # grid if not given
//! seeds = 10
//!
//! [vary]
//! machine = ["zen3-2s", "spr-2s"]
//! kernel = ["v6.1", "v6.1+NO_SIS_UTIL"]
//! "workload.workers" = "1,2,4..64:x2"
//! "kernel.base_slice_ns" = "100000..10000000:log"
//! ```

use std::collections::BTreeMap;

use schedlab::Files;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike};

use crate::axis::{Axis, Spread};
use crate::error::Error;
use crate::plan::{Draft, Plan, Sample};
use crate::value::Value;

impl Draft {
    /// Whether a text is a plan, not a scenario.
    pub fn is_plan(text: &str) -> bool {
        text.parse::<DocumentMut>().is_ok_and(|document| document.contains_key("vary"))
    }

    /// Reads a plan file. Its scenario is looked for in `files`.
    ///
    /// # Errors
    /// A sentence with file and line.
    pub fn parse(file: &str, text: &str, files: &dyn Files) -> Result<Draft, Error> {
        let read = Reader::new(file, text)?;
        read.only(&["scenario", "sample", "seeds", "seed", "chunk", "vary"])?;
        let name = read.text("scenario")?;
        let scenario = files.text(&name).map_err(|error| Error::new(format!("{file}: scenario: {error}")))?;
        Ok(Draft {
            file: name,
            text: scenario,
            axes: read.axes()?,
            sample: read.optional("sample").map_or(Ok(Sample::Grid), |text| Sample::parse(&text))?,
            seeds: read.number("seeds")?.map(|n| n.min(u64::from(u32::MAX)) as u32),
            seed: read.number("seed")?,
            chunk: read.number("chunk")?.map(|n| n.min(u64::from(u32::MAX)) as u32),
        })
    }
}

impl Plan {
    /// The plan in the form of a store.
    pub fn to_toml(&self) -> String {
        let mut document = DocumentMut::new();
        let mut put = |key: &str, item: Item| document.insert(key, item);
        put("engine", toml_edit::value(&self.engine));
        put("scenario", toml_edit::value(&self.file));
        put("sample", toml_edit::value(self.sample.to_string()));
        put("rows", toml_edit::value(self.rows.iter().collect::<Array>()));
        put("kernels", toml_edit::value(self.kernels.iter().collect::<Array>()));
        put("seeds", toml_edit::value(i64::from(self.seeds)));
        // As text, because TOML has no integers above 2^63.
        put("given-seeds", toml_edit::value(self.given_seeds.iter().map(u64::to_string).collect::<Array>()));
        put("seed", toml_edit::value(self.seed.to_string()));
        put("chunk", toml_edit::value(i64::from(self.chunk)));
        put("text", toml_edit::value(&self.text));
        let mut vary = Table::new();
        for axis in &self.axes {
            vary.insert(&axis.path, axis.to_item());
        }
        put("vary", Item::Table(vary));
        let mut files = Table::new();
        for (name, text) in &self.files {
            files.insert(name, toml_edit::value(text));
        }
        put("files", Item::Table(files));
        format!(
            "# A sweep of schedlab: the file that defines its points. Written by `schedlab sweep`.\n{document}"
        )
    }

    /// Reads what [`Plan::to_toml`] wrote.
    ///
    /// # Errors
    /// A sentence with file and line.
    pub fn from_toml(file: &str, text: &str) -> Result<Plan, Error> {
        let read = Reader::new(file, text)?;
        let missing =
            |key: &str| Error::new(format!("{file}: {key} is missing; is this a sweep's plan.toml?"));
        let number = |key| read.number(key)?.ok_or_else(|| missing(key));
        let small = |key| number(key).map(|n: u64| n.min(u64::from(u32::MAX)) as u32);
        let list = |key: &str| -> Result<Vec<String>, Error> {
            let array = read.document.get(key).and_then(Item::as_array).ok_or_else(|| missing(key))?;
            Ok(array.iter().filter_map(|value| value.as_str()).map(str::to_owned).collect())
        };
        let files = read.document.get("files").and_then(Item::as_table).ok_or_else(|| missing("files"))?;
        let text_of = |(name, item): (&str, &Item)| Some((name.to_owned(), item.as_str()?.to_owned()));
        let plan = Plan {
            engine: read.text("engine")?,
            file: read.text("scenario")?,
            text: read.text("text")?,
            files: files.iter().filter_map(text_of).collect::<BTreeMap<_, _>>(),
            axes: read.axes()?,
            sample: Sample::parse(&read.text("sample")?)?,
            rows: list("rows")?,
            kernels: list("kernels")?,
            seeds: small("seeds")?,
            given_seeds: list("given-seeds")?.iter().filter_map(|seed| seed.parse().ok()).collect(),
            seed: read.text("seed")?.parse().map_err(|_| missing("seed"))?,
            chunk: small("chunk")?.max(1),
        };
        if plan.rows.is_empty() || plan.kernels.is_empty() || (plan.seeds == 0 && plan.given_seeds.is_empty())
        {
            return Err(missing("a row, kernel or seed"));
        }
        Ok(plan)
    }
}

impl Axis {
    fn to_item(&self) -> Item {
        match &self.spread {
            Spread::List(values) => toml_edit::value(values.iter().map(to_toml).collect::<Array>()),
            Spread::Between { low, high, whole, log } => {
                let log = if *log { ":log" } else { "" };
                toml_edit::value(match whole {
                    true => format!("{low}..{high}{log}"),
                    false => format!("{low:?}..{high:?}{log}"),
                })
            }
        }
    }
}

fn to_toml(value: &Value) -> toml_edit::Value {
    match value {
        Value::Int(int) => (*int).into(),
        Value::Float(float) => (*float).into(),
        Value::Bool(truth) => (*truth).into(),
        Value::Text(text) => text.as_str().into(),
    }
}

/// A document with known positions.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    document: toml_edit::Document<String>,
}

impl Reader<'_> {
    fn new<'a>(file: &'a str, text: &'a str) -> Result<Reader<'a>, Error> {
        let document = toml_edit::Document::parse(text.to_owned());
        let document = document.map_err(|error: toml_edit::TomlError| {
            let line = 1 + text[..error.span().map_or(0, |span| span.start)].matches('\n').count();
            Error::new(format!("{file}:{line}: {}", error.message().trim_end().replace('\n', "; ")))
        })?;
        Ok(Reader { file, text, document })
    }

    fn at(&self, item: Option<&Item>, message: &str) -> Error {
        let start = item.and_then(Item::span).map_or(0, |span| span.start);
        let line = 1 + self.text[..start.min(self.text.len())].matches('\n').count();
        Error::new(format!("{}:{line}: {message}", self.file))
    }

    fn only(&self, keys: &[&str]) -> Result<(), Error> {
        match self.document.iter().find(|(key, _)| !keys.contains(key)) {
            None => Ok(()),
            Some((key, item)) => {
                Err(self.at(Some(item), &format!("a plan has no \"{key}\"; it has {}", keys.join(", "))))
            }
        }
    }

    fn optional(&self, key: &str) -> Option<String> {
        self.document.get(key)?.as_str().map(str::to_owned)
    }

    fn text(&self, key: &str) -> Result<String, Error> {
        let wrong = || self.at(self.document.get(key), &format!("{key} is a text, and must be given"));
        self.optional(key).ok_or_else(wrong)
    }

    fn number(&self, key: &str) -> Result<Option<u64>, Error> {
        let Some(item) = self.document.get(key) else { return Ok(None) };
        let number = item.as_integer().and_then(|int| u64::try_from(int).ok());
        match number.or_else(|| item.as_str()?.parse().ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(self.at(Some(item), &format!("{key} is a whole number from 0 on"))),
        }
    }

    fn axes(&self) -> Result<Vec<Axis>, Error> {
        let item = self.document.get("vary");
        let vary = item.and_then(Item::as_table_like);
        let vary = vary.ok_or_else(|| self.at(item, "[vary] names the parameters that vary"))?;
        let mut axes = Vec::new();
        self.axes_below("", vary, &mut axes)?;
        Ok(axes)
    }

    /// Paths in quotes, or as TOML tables: `workload.groups = [1, 2]`.
    fn axes_below(&self, above: &str, table: &dyn TableLike, axes: &mut Vec<Axis>) -> Result<(), Error> {
        for (key, item) in table.iter() {
            let path = format!("{above}{key}");
            if let Some(table) = item.as_table_like() {
                self.axes_below(&format!("{path}."), table, axes)?;
                continue;
            }
            if let Some(text) = item.as_str() {
                let axis = Axis::of(&path, text).map_err(|error| self.at(Some(item), &error.to_string()))?;
                axes.push(axis);
                continue;
            }
            let one = item.as_value().filter(|value| !value.is_array()).into_iter();
            let values: Option<Vec<Value>> =
                item.as_array().into_iter().flatten().chain(one).map(from_toml).collect();
            match values.filter(|values| !values.is_empty()) {
                Some(values) => axes.push(Axis { path, spread: Spread::List(values) }),
                None => {
                    let message =
                        format!("{path} is a list of numbers, truths or texts, or a text like \"1..64:x2\"");
                    return Err(self.at(Some(item), &message));
                }
            }
        }
        Ok(())
    }
}

fn from_toml(value: &toml_edit::Value) -> Option<Value> {
    Some(match value {
        toml_edit::Value::Integer(int) => Value::Int(*int.value()),
        toml_edit::Value::Float(float) => Value::Float(*float.value()),
        toml_edit::Value::Boolean(truth) => Value::Bool(*truth.value()),
        toml_edit::Value::String(text) => Value::Text(text.value().clone()),
        _ => return None,
    })
}
