//! From a point to what runs: scenario, row, kernel, seed, id.
//!
//! Neighbouring points share their scenario, so the last one is kept.

use std::rc::Rc;

use schedlab::machine::Machine;
use schedlab::sched::Kernel;
use schedlab::{Files, Limits, Overrides, Row, Scenario, Setting};
use toml_edit::DocumentMut;

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
    /// The hash of everything that determines the run: 32 hexadecimal digits.
    pub id: String,
}

impl Resolved {
    /// The machine it runs on.
    pub fn machine(&self) -> &Machine {
        self.loaded.scenario.machine_of(self.row())
    }

    /// What runs.
    pub fn row(&self) -> &Row {
        &self.loaded.scenario.rows[self.row]
    }

    /// Runs it.
    pub(crate) fn measure(&self) -> Result<Vec<Figure>, String> {
        figures::measure(self.machine(), &self.kernel, self.row(), self.limits())
    }

    /// The limits and the seed of the run.
    pub fn limits(&self) -> Limits {
        Limits { seed: self.seed, ..self.loaded.scenario.limits_of(self.row()) }
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
    /// Anything that cannot be parsed, or is inconsistent.
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
        let kernel = loaded.scenario.kernel_of(&kernel, &rows[row])?;
        let load = &loaded.loads[row];
        let seed = point.seed.unwrap_or_else(|| id::seed(load, self.plan.seed, point.repeat));
        let id = id::of(load, &kernel, seed);
        Ok(Resolved { loaded, row, kernel, seed, id })
    }

    fn load(&self, settings: &[(String, Value)]) -> Result<Loaded, Error> {
        let scenario = self.scenario_with(settings, &PlanFiles(self.plan))?;
        let machine = self.machine_of(settings);
        let loads =
            scenario.rows.iter().map(|row| id::load(&machine, row, scenario.limits_of(row))).collect();
        Ok(Loaded { scenario, loads })
    }

    /// Everything that determines the machine: its name or the text of its file, and the constants set.
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
        // The expectations of the file are about other values.
        document.remove("expect");
        let mut over = Overrides::default();
        // Kernels are the plan's, not the scenario's.
        for (path, value) in settings.iter().filter(|(path, _)| !path.starts_with("kernel.")) {
            over.settings.push(setting(path, value)?);
        }
        Ok(Scenario::parse_with(&self.plan.file, &document.to_string(), files, &over)?)
    }

    /// A kernel with the parts that a combination adds.
    pub(crate) fn kernel(&self, name: &str, settings: &[(String, Value)]) -> Result<Kernel, Error> {
        let mut text = name.to_owned();
        for (path, value) in settings {
            text.extend(setting(path, value)?.kernel_part());
        }
        Ok(schedlab::kernels::kernel(&text, &mut |_| {})?)
    }
}

/// A parameter, set as by every other command.
fn setting(path: &str, value: &Value) -> Result<Setting, Error> {
    let value = match value {
        Value::Text(text) => toml_edit::Value::from(text.as_str()).to_string(),
        value => value.to_string(),
    };
    Ok(Setting::parse(&format!("{path}={value}"))?)
}

/// The files that a plan contains.
struct PlanFiles<'a>(&'a Plan);

impl Files for PlanFiles<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        let found = self.0.files.get(name).cloned();
        found.ok_or_else(|| {
            format!("{name}: the plan has no such file; was the plan made by another version?")
        })
    }
}
