//! From a point to what runs: scenario, row, kernel, seed, id.
//!
//! Neighbouring points share their scenario, so the last one is kept.

use std::rc::Rc;

use schedlab::machine::Machine;
use schedlab::sched::Kernel;
use schedlab::{Files, Limits, Row, Scenario};
use toml_edit::{DocumentMut, Item, Table};

use crate::error::Error;
use crate::figures::{self, Figure};
use crate::id::{self, Hash};
use crate::plan::Plan;
use crate::point::{Point, Settings};
use crate::value::Value;

/// Reads points of one plan.
pub struct Resolver<'a> {
    plan: &'a Plan,
    last: Option<(Settings, Rc<Loaded>)>,
}

/// A scenario with the hash of each row.
struct Loaded {
    scenario: Scenario,
    loads: Vec<[u8; 32]>,
}

/// What a point runs.
pub struct Resolved {
    loaded: Rc<Loaded>,
    row: usize,
    /// The kernel with all its parts.
    pub kernel: Kernel,
    /// The seed of the run.
    pub seed: u64,
    /// The hash of all that determines the run: 32 hexadecimal digits.
    pub id: String,
}

impl Resolved {
    /// The machine it runs on.
    pub fn machine(&self) -> &Machine {
        &self.loaded.scenario.machine
    }

    /// What runs.
    pub fn row(&self) -> &Row {
        &self.loaded.scenario.rows[self.row]
    }

    /// Runs it.
    pub(crate) fn measure(&self) -> Result<Vec<Figure>, String> {
        figures::measure(self.machine(), &self.kernel, self.row(), self.limits())
    }

    /// How the run is limited and seeded.
    pub fn limits(&self) -> Limits {
        Limits { seed: self.seed, ..self.loaded.scenario.limits() }
    }
}

impl<'a> Resolver<'a> {
    /// A reader of this plan's points.
    pub fn new(plan: &'a Plan) -> Resolver<'a> {
        Resolver { plan, last: None }
    }

    /// What a point runs.
    ///
    /// # Errors
    /// What cannot be understood, or does not go together.
    pub fn resolve(&mut self, point: &Point) -> Result<Resolved, Error> {
        let loaded = match &self.last {
            Some((settings, loaded)) if *settings == point.settings => loaded.clone(),
            _ => {
                let loaded = Rc::new(self.load(&point.settings)?);
                self.last = Some((point.settings.clone(), loaded.clone()));
                loaded
            }
        };
        let rows = &loaded.scenario.rows;
        let row = match rows.iter().position(|row| row.key == point.row) {
            Some(row) => row,
            None if rows.len() == 1 => 0,
            None => {
                let keys: Vec<&str> = rows.iter().map(|row| row.key.as_str()).collect();
                return Err(Error::new(format!(
                    "there is no row \"{}\" here; there are {}",
                    point.row,
                    keys.join(", ")
                )));
            }
        };
        let kernel = self.kernel(&point.kernel, &point.settings)?;
        let load = &loaded.loads[row];
        let seed = point.seed.unwrap_or_else(|| id::seed(load, self.plan.seed, point.repeat));
        let id = id::of(load, &kernel, seed);
        Ok(Resolved { loaded, row, kernel, seed, id })
    }

    fn load(&self, settings: &[(String, Value)]) -> Result<Loaded, Error> {
        let scenario = self.scenario_with(settings, &PlanFiles(self.plan))?;
        let machine = self.machine_of(settings);
        let loads = scenario.rows.iter().map(|row| id::load(&machine, row, scenario.limits())).collect();
        Ok(Loaded { scenario, loads })
    }

    /// All that determines the machine: its name or the text of its file, and the constants that are set.
    fn machine_of(&self, settings: &[(String, Value)]) -> String {
        let document: Option<DocumentMut> = self.plan.text.parse().ok();
        let written = document.as_ref().and_then(|document| document.get("machine")?.as_str());
        let varied = settings.iter().find(|(path, _)| path == "machine").map(|(_, value)| value.to_string());
        let name = varied.unwrap_or_else(|| written.unwrap_or_default().to_owned());
        let mut hash = Hash::new();
        match self.plan.files.get(&name) {
            Some(text) => hash.part("file", text),
            None => hash.part("preset", &name),
        }
        for (path, value) in settings.iter().filter(|(path, _)| path.starts_with("machine.")) {
            hash.part(path, &value.to_string());
        }
        hash.hex()
    }

    /// The scenario of a combination.
    pub(crate) fn scenario_with(
        &self,
        settings: &[(String, Value)],
        files: &dyn Files,
    ) -> Result<Scenario, Error> {
        let mut document: DocumentMut =
            self.plan.text.parse().map_err(|error| Error::new(format!("{}: {error}", self.plan.file)))?;
        // What the file expects was said of other values.
        document.remove("expect");
        for (path, value) in settings {
            if !path.starts_with("kernel.") && !path.starts_with("machine.") {
                set(document.as_table_mut(), path, value)?;
            }
        }
        let mut scenario = Scenario::parse(&self.plan.file, &document.to_string(), files)?;
        for (path, value) in settings {
            if let Some(constant) = path.strip_prefix("machine.") {
                let Value::Int(number @ 0..) = value else {
                    return Err(Error::new(format!("{path} is a whole number, not {value}")));
                };
                let set = scenario.machine.set(constant, *number as u64);
                set.map_err(|error| Error::new(error.to_string()))?;
            }
        }
        Ok(scenario)
    }

    /// A kernel with the parts that a combination adds.
    pub(crate) fn kernel(&self, name: &str, settings: &[(String, Value)]) -> Result<Kernel, Error> {
        let mut text = name.to_owned();
        for (path, value) in settings {
            if let Some(part) = path.strip_prefix("kernel.") {
                let value = value.to_string();
                text += &match value.as_str() {
                    "on" | "true" => format!("+{part}"),
                    "off" | "false" => format!("+NO_{part}"),
                    _ => format!("+{part}={value}"),
                };
            }
        }
        Kernel::parse(&text).map_err(|error| Error::new(error.to_string()))
    }
}

fn set(table: &mut Table, path: &str, value: &Value) -> Result<(), Error> {
    let mut parts: Vec<&str> = path.split('.').collect();
    let key = parts.pop().unwrap_or_default();
    let mut table: &mut dyn toml_edit::TableLike = table;
    for part in parts {
        table = table
            .get_mut(part)
            .and_then(Item::as_table_like_mut)
            .ok_or_else(|| Error::new(format!("{path}: the scenario has no table \"{part}\"")))?;
    }
    let is_text = table.get(key).is_some_and(Item::is_str);
    let value = match value {
        Value::Text(text) => toml_edit::value(text.as_str()),
        value if is_text => toml_edit::value(value.to_string()),
        Value::Int(int) => toml_edit::value(*int),
        Value::Float(float) => toml_edit::value(*float),
        Value::Bool(truth) => toml_edit::value(*truth),
    };
    table.insert(key, value);
    Ok(())
}

/// The files that a plan carries.
struct PlanFiles<'a>(&'a Plan);

impl Files for PlanFiles<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        let found = self.0.files.get(name).cloned();
        found.ok_or_else(|| {
            format!("{name}: the plan has no such file; was the plan made by another version?")
        })
    }
}
