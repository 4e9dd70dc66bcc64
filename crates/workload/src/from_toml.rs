//! The `[workload]` table of a scenario file.
//!
//! It names a model and sets its parameters, or describes tasks op by op, or names
//! an rt-app file. A list where a parameter has one value gives a row for each:
//! `clients = [1, 2, 4]`. The grammar is in `docs/scenarios.md`.

mod common;
mod inline;
mod names;
mod node;
mod objects;
mod op;
mod program;
mod words;

use common::Common;

use crate::error::quoted;
use crate::models::Model;
use crate::tree::{Entry, File, Kind, Object};
use crate::{ParamValue, TASKS_MAX, Workload, WorkloadBuilder, WorkloadError};

/// What a table describes.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadRead {
    /// To read this rt-app file.
    RtApp(String),
    /// To run these, one row each.
    Rows(Vec<WorkloadRow>),
}

/// One workload of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadRow {
    /// The values that differ from row to row, as `8` or `8 pipe`; empty for a single row.
    pub key: String,
    /// The workload.
    pub workload: Workload,
}

impl WorkloadRead {
    /// Reads the `[workload]` of a scenario; `file` is its name, for the places in errors.
    ///
    /// # Errors
    /// The first thing that cannot be understood, with file and line.
    pub fn parse(text: &str, file: &str) -> Result<WorkloadRead, WorkloadError> {
        let value = node::entry(File(file), text, "workload")?.value;
        let table = Object::new(File(file), &value, "[workload]".to_string())?;
        let kinds = ["model", "rt-app", "task"];
        let given: Vec<&Entry> = table.entries.iter().filter(|e| kinds.contains(&e.key.as_str())).collect();
        match given[..] {
            [entry] => match entry.key.as_str() {
                "rt-app" => {
                    table.only(&["rt-app"])?;
                    Ok(WorkloadRead::RtApp(table.file.string(entry)?.to_string()))
                }
                "model" => rows_of_model(&table, entry).map(WorkloadRead::Rows),
                _ => {
                    let workload = inline::read(&table)?;
                    Ok(WorkloadRead::Rows(vec![WorkloadRow { key: String::new(), workload }]))
                }
            },
            [] => {
                let why = format!("say what runs by one of {}", quoted(kinds));
                Err(table.file.bad(table.at, "workload", why))
            }
            [_, second, ..] => {
                let why = format!("only one of {} can be given", quoted(kinds));
                Err(table.file.bad(second.at, &second.key, why))
            }
        }
    }
}

/// A model with the lists that its parameters were given.
struct Swept {
    model: Tuned,
    axes: Vec<Axis>,
}

/// A model, and the settings of all its tasks.
#[derive(Clone)]
struct Tuned {
    model: Model,
    common: Common,
}

impl Tuned {
    /// Sets a parameter of the model, or else one common to all models.
    fn set(&mut self, name: &str, value: &ParamValue) -> Option<Result<(), String>> {
        self.model.set(name, value).or_else(|| self.common.set(name, value))
    }

    fn add(&self, w: &mut WorkloadBuilder, group: Option<&str>, background: bool) -> Result<(), String> {
        let first = w.next_task();
        if background {
            self.model.add_in_background(w);
        } else {
            self.model.add(w);
        }
        self.common.give(w, first, group)
    }
}

/// A parameter with its values.
struct Axis {
    name: String,
    values: Vec<ParamValue>,
}

fn rows_of_model(table: &Object, entry: &Entry) -> Result<Vec<WorkloadRow>, WorkloadError> {
    let main = swept(table, entry, &["name", "duration", "with", "group"])?;
    let background = background(table)?;
    let name = table.string("name")?.unwrap_or(main.model.model.name()).to_string();
    let duration = duration(table)?;
    let mut rows = Vec::new();
    // The last axis turns fastest, as in nested loops written in file order.
    let axes: Vec<&Axis> = main.axes.iter().chain(background.iter().flat_map(|b| &b.axes)).collect();
    let nr_rows: usize = axes.iter().map(|axis| axis.values.len()).product();
    for row in 0..nr_rows {
        let mut rest = row;
        let mut picks = vec![0; axes.len()];
        for (pick, axis) in picks.iter_mut().zip(&axes).rev() {
            *pick = rest % axis.values.len();
            rest /= axis.values.len();
        }
        let key = axes.iter().zip(&picks).map(|(axis, &pick)| show(&axis.values[pick]));
        let key = key.collect::<Vec<_>>().join(" ");
        let mut w = WorkloadBuilder::new(name.clone());
        let mut picks = picks.into_iter();
        let main = main.picked(&mut picks);
        let others: Vec<Tuned> = background.iter().map(|other| other.picked(&mut picks)).collect();
        for model in others.iter().map(|tuned| &tuned.model).chain([&main.model]) {
            let tasks = model.nr_tasks();
            if tasks > u64::from(TASKS_MAX) {
                let why = format!(
                    "{} of {tasks} tasks is too large: Linux numbers no more than {TASKS_MAX}",
                    model.name()
                );
                return Err(table.file.bad(entry.value.at, "model", why));
            }
        }
        let bad = |why: String| table.file.bad(entry.at, "model", why);
        // A model runs in the only group described, unless it names one.
        let described = groups(table, &mut w)?;
        let group = if let [one] = &described[..] { Some(one.as_str()) } else { None };
        main.add(&mut w, group, false).map_err(bad)?;
        for other in others {
            other.add(&mut w, None, true).map_err(bad)?;
        }
        if let Some(duration) = duration {
            w.stop_after(duration);
        }
        let workload = w.finish().map_err(|error| table.file.bad(entry.at, "model", error.to_string()))?;
        rows.push(WorkloadRow { key, workload });
    }
    Ok(rows)
}

impl Swept {
    /// The model with one value for each of its axes.
    fn picked(&self, picks: &mut impl Iterator<Item = usize>) -> Tuned {
        let mut model = self.model.clone();
        for (axis, pick) in self.axes.iter().zip(picks) {
            let set = model.set(&axis.name, &axis.values[pick]);
            set.expect("the parameter was set before").expect("the value was tried before");
        }
        model
    }
}

/// The models of `with`, which run together with the measured one.
fn background(table: &Object) -> Result<Vec<Swept>, WorkloadError> {
    let Some(entry) = table.get("with")? else { return Ok(Vec::new()) };
    let values = match &entry.value.kind {
        Kind::Array(values) => &values[..],
        _ => std::slice::from_ref(&entry.value),
    };
    let one = |value| {
        let object = Object::new(table.file, value, "[workload.with]".to_string())?;
        let model = object.get("model")?;
        let missing = || table.file.bad(object.at, "with", "\"model\" is missing");
        swept(&object, model.ok_or_else(missing)?, &[])
    };
    values.iter().map(one).collect()
}

/// Reads a model's parameters; `others` are keys that do not belong to it.
fn swept(table: &Object, name: &Entry, others: &[&str]) -> Result<Swept, WorkloadError> {
    let file = table.file;
    let text = file.string(name)?;
    let model = Model::named(text).ok_or_else(|| {
        let known = quoted(Model::NAMES.iter().copied());
        file.bad(name.value.at, "model", format!("there is no model \"{text}\"; there are {known}"))
    })?;
    let mut swept = Swept { model: Tuned { model, common: Common::default() }, axes: Vec::new() };
    for entry in table.entries {
        let key = entry.key.as_str();
        if key == "model" || others.contains(&key) {
            continue;
        }
        let values = match &entry.value.kind {
            Kind::Array(values) if values.is_empty() => {
                return Err(file.bad(entry.value.at, key, "the list is empty, so there is nothing to run"));
            }
            Kind::Array(values) => &values[..],
            _ => std::slice::from_ref(&entry.value),
        };
        let mut read = Vec::new();
        for value in values {
            let param = match &value.kind {
                Kind::Int(n) => ParamValue::Int(*n),
                Kind::Bool(b) => ParamValue::Bool(*b),
                Kind::String(text) => ParamValue::Text(text.clone()),
                kind => {
                    let why = format!("a number, text or true or false is expected, not {}", kind.name());
                    return Err(file.bad(value.at, key, why));
                }
            };
            match swept.model.set(key, &param) {
                Some(Ok(())) => read.push(param),
                Some(Err(why)) => return Err(file.bad(value.at, key, why)),
                None => {
                    let params = swept.model.model.params();
                    let known = params.iter().map(|p| p.name).chain(Common::KEYS.iter().copied());
                    let known: Vec<&str> = known.chain(others.iter().copied()).collect();
                    return Err(table.unknown(entry, &known));
                }
            }
        }
        if matches!(entry.value.kind, Kind::Array(_)) {
            swept.axes.push(Axis { name: key.to_string(), values: read });
        }
    }
    // Each key was checked when it was read; this checks whether they fit each other.
    let attr = swept.model.common.attr();
    attr.map_err(|why| file.bad(name.at, "policy", why))?;
    Ok(swept)
}

/// The groups that are described: their paths.
fn groups(table: &Object, w: &mut WorkloadBuilder) -> Result<Vec<String>, WorkloadError> {
    let mut names = names::Names::new(w);
    if let Some(entry) = table.get("group")?
        && let Ok(path) = table.file.string(entry)
    {
        let why =
            format!("[workload.group] describes groups; a model is put into one by cgroup = \"{path}\"");
        return Err(table.file.bad(entry.value.at, "group", why));
    }
    let entries = table.entries_of("group")?;
    for entry in &entries {
        objects::group(table.file, entry, &mut names)?;
    }
    Ok(entries.iter().map(|entry| entry.key.clone()).collect())
}

fn duration(table: &Object) -> Result<Option<schedlab_units::Duration>, WorkloadError> {
    table.read("duration", |entry| match table.file.param(entry)? {
        schedlab_units::Duration::ZERO => {
            let why = "the time is zero; give it a span like \"10s\", or leave it out";
            Err(table.file.bad(entry.value.at, "duration", why))
        }
        duration => Ok(duration),
    })
}

fn show(value: &ParamValue) -> String {
    match value {
        ParamValue::Int(n) => n.to_string(),
        ParamValue::Bool(b) => b.to_string(),
        ParamValue::Text(text) => text.clone(),
    }
}

#[cfg(test)]
mod tests;
