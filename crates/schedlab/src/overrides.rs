//! Reads a scenario with parameters set, and its rows and variants over any parameter.
//!
//! ```toml
//! [rows]                            # a row for each value; of several parameters for each pair
//! workload.task.w.count = [1, 4]
//!
//! [[variant]]                       # a column each, instead of one for each kernel
//! name = "nice 5"
//! workload.task.w.nice = 5
//! ```

use schedlab_machine::{Machine, Without};
use schedlab_sched::Kernel;
use toml_edit::{DocumentMut, TableLike};

use crate::error::Error;
use crate::experiment::Limits;
use crate::scenario::{Files, Over, Overrides, Row, Scenario};
use crate::setting::{self, Setting};

/// Maximum rows of one scenario; more is a typing error.
const ROWS_MAX: usize = 10_000;

/// A column of its own: what it sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name in tables.
    pub name: String,
    /// What it sets, in order.
    pub settings: Vec<Setting>,
}

impl Variant {
    /// The variants that a scenario describes.
    ///
    /// # Errors
    /// What is wrong with one.
    pub fn of(file: &str, text: &str) -> Result<Vec<Variant>, Error> {
        let Ok(doc) = text.parse::<DocumentMut>() else { return Ok(Vec::new()) };
        let Some(tables) = doc.get("variant").and_then(|item| item.as_array_of_tables()) else {
            return Ok(Vec::new());
        };
        let mut variants: Vec<Variant> = Vec::new();
        for table in tables.iter() {
            let mut settings = Vec::new();
            setting::leaves(table, &[], &mut settings);
            settings.retain(|setting| setting.path() != "name");
            let name = table.get("name").and_then(|name| name.as_str()).map(str::to_string);
            let variant = Variant::new(name, settings);
            if variants.iter().any(|known| known.name == variant.name) {
                return Err(Error::new(format!("{file}: there are two variants \"{}\"", variant.name)));
            }
            variants.push(variant);
        }
        Ok(variants)
    }

    /// A variant; without a name it is named after its settings.
    pub fn new(name: Option<String>, settings: Vec<Setting>) -> Variant {
        let told = || match &settings[..] {
            [] => "as it is".to_string(),
            all => all.iter().map(told).collect::<Vec<_>>().join(" "),
        };
        Variant { name: name.unwrap_or_else(told), settings }
    }
}

/// A setting as shown in a heading: by the last part of its path.
fn told(setting: &Setting) -> String {
    let path = setting.path();
    match path.as_str() {
        "kernel" | "machine" => setting.shown(),
        _ => format!("{}={}", path.rsplit('.').next().unwrap_or(&path), setting.shown()),
    }
}

impl Scenario {
    /// Reads a scenario with parameters set first, and more rows.
    ///
    /// # Errors
    /// As [`Scenario::parse`], and what is wrong with a parameter.
    pub fn parse_with(
        file: &str,
        text: &str,
        files: &dyn Files,
        over: &Overrides,
    ) -> Result<Scenario, Error> {
        let set = match &over.settings[..] {
            [] => text.to_string(),
            settings => setting::with_settings(file, text, settings)?,
        };
        let named = |error: Error| match &over.settings[..] {
            [] => error,
            settings => {
                let list: Vec<String> = settings.iter().map(Setting::to_string).collect();
                Error::new(format!("with {}: {error}", list.join(", ")))
            }
        };
        let mut scenario = Scenario::parse_text(file, &set, files).map_err(named)?;
        setting::set_constants(&mut scenario.machine, &over.settings)?;
        scenario.settings = over.settings.clone();
        let mut axes = axes_of(&set);
        axes.extend(over.rows.iter().cloned());
        if !axes.is_empty() {
            scenario.rows = scenario.spread(&set, files, &axes)?;
        }
        if over.settings.iter().any(|setting| setting.path() == "kernels") {
            // Expectations about a kernel that does not run do not apply.
            let kernels = &scenario.kernels;
            let runs = |name: &String| kernels.iter().any(|kernel| &kernel.name == name);
            scenario.expect.retain(|expect| expect.kernel.as_ref().is_none_or(runs));
        }
        scenario.check_expectations()?;
        Ok(scenario)
    }

    /// A row for each choice of values, the last axis turning fastest.
    fn spread(&self, text: &str, files: &dyn Files, axes: &[Vec<Setting>]) -> Result<Vec<Row>, Error> {
        let total = axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.len())).unwrap_or(usize::MAX);
        if total == 0 || total > ROWS_MAX {
            let message = format!("{}: {total} rows; there can be 1 to {ROWS_MAX}", self.file);
            return Err(Error::new(message));
        }
        let mut rows = Vec::new();
        for nth in 0..total {
            let mut rest = nth;
            let mut chosen: Vec<Setting> = Vec::new();
            for axis in axes.iter().rev() {
                chosen.insert(0, axis[rest % axis.len()].clone());
                rest /= axis.len();
            }
            let mut beside: Vec<Setting> = chosen.clone();
            beside.retain(Setting::is_beside_workload);
            if let Some(kernel) = beside.iter().find(|s| matches!(s.path().as_str(), "kernel" | "kernels")) {
                return Err(Error::new(format!(
                    "{}: {kernel}: kernels are columns, not rows; kernel.NAME can be a row",
                    self.file
                )));
            }
            let set = setting::with_settings(&self.file, text, &chosen)?;
            let list: Vec<String> = chosen.iter().map(Setting::to_string).collect();
            let read = Scenario::parse_text(&self.file, &set, files);
            let mut read = read.map_err(|e| Error::new(format!("with {}: {e}", list.join(", "))))?;
            setting::set_constants(&mut read.machine, &self.settings)?;
            setting::set_constants(&mut read.machine, &chosen)?;
            let mut key: Vec<String> = chosen.iter().map(Setting::shown).collect();
            let parts = beside.iter().filter_map(Setting::kernel_part).collect::<String>();
            for mut row in read.rows {
                if !row.key.is_empty() {
                    key.push(row.key);
                }
                row.key = key.join(" ");
                key.truncate(chosen.len());
                row.over = (!beside.is_empty()).then(|| {
                    let (machine, limit) = (read.machine.clone(), read.limit);
                    Box::new(Over { settings: beside.clone(), machine, parts: parts.clone(), limit })
                });
                rows.push(row);
            }
        }
        if let Some(double) = rows.iter().enumerate().find(|(i, r)| rows[..*i].iter().any(|o| o.key == r.key))
        {
            return Err(Error::new(format!("{}: row \"{}\" stands twice", self.file, double.1.key)));
        }
        Ok(rows)
    }

    /// The same on another machine.
    ///
    /// # Errors
    /// A CPU that a task requests and the machine does not have.
    pub fn set_machine(&mut self, mut machine: Machine) -> Result<(), Error> {
        setting::set_constants(&mut machine, &self.settings)?;
        for row in &mut self.rows {
            if let Some(over) = &mut row.over
                && !over.settings.iter().any(|s| s.path() == "machine")
            {
                over.machine = machine.clone();
                setting::set_constants(&mut over.machine, &over.settings)?;
            }
            let machine = row.over.as_ref().map_or(&machine, |over| &over.machine);
            crate::rows::check_cpus(&self.file, "", &row.workload, machine)?;
        }
        self.machine = machine;
        // The expectations of the file are about another machine.
        self.expect.clear();
        Ok(())
    }

    /// The same with hardware mechanisms off.
    pub fn set_without(&mut self, without: Without) {
        self.machine = self.machine.clone().without(without);
        for over in self.rows.iter_mut().filter_map(|row| row.over.as_mut()) {
            over.machine = over.machine.clone().without(without);
        }
    }

    /// Sets a constant of every row's machine.
    ///
    /// # Errors
    /// An unknown name.
    pub fn set_constant(&mut self, name: &str, value: u64) -> Result<(), schedlab_machine::MachineError> {
        self.machine.set(name, value)?;
        for over in self.rows.iter_mut().filter_map(|row| row.over.as_mut()) {
            over.machine.set(name, value)?;
        }
        Ok(())
    }

    /// Ends every run after a limit.
    pub fn set_limit(&mut self, limit: schedlab_units::Duration) {
        self.limit = Some(limit);
        for over in self.rows.iter_mut().filter_map(|row| row.over.as_mut()) {
            over.limit = Some(limit);
        }
    }

    /// The machine of a row.
    pub fn machine_of<'a>(&'a self, row: &'a Row) -> &'a Machine {
        row.over.as_ref().map_or(&self.machine, |over| &over.machine)
    }

    /// A kernel with what a row adds to it.
    ///
    /// # Errors
    /// A switch that this kernel does not have.
    pub fn kernel_of(&self, kernel: &Kernel, row: &Row) -> Result<Kernel, Error> {
        match row.over.as_ref().map_or("", |over| over.parts.as_str()) {
            "" => Ok(kernel.clone()),
            parts => crate::kernels::kernel(&format!("{}{parts}", kernel.name), &mut |_| {}),
        }
    }

    /// The limits of a row.
    pub fn limits_of(&self, row: &Row) -> Limits {
        let limit = row.over.as_ref().map_or(self.limit, |over| over.limit);
        Limits { limit, ..self.limits() }
    }
}

impl Over {
    /// What it sets of machine, kernel and limit.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }
}

/// `[rows]` as axes.
fn axes_of(text: &str) -> Vec<Vec<Setting>> {
    let Ok(doc) = text.parse::<DocumentMut>() else { return Vec::new() };
    let mut settings = Vec::new();
    if let Some(table) = doc.get("rows").and_then(|item| item.as_table_like()) {
        let table: &dyn TableLike = table;
        setting::leaves(table, &[], &mut settings);
    }
    settings.iter().map(Setting::each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::NoFiles;

    const TEXT: &str = "machine = \"2x2\"\nkernels = [\"v6.12\"]\nlimit = \"10ms\"\n[workload]\n[[workload.task]]\n\
                        name = \"w\"\nprogram = \"loop forever; run 1ms; end\"\n";

    fn parse(more: &str) -> Result<Scenario, String> {
        Scenario::parse("f", &format!("{TEXT}{more}"), &NoFiles).map_err(|e| e.to_string())
    }

    #[test]
    fn rows_turn_over_any_parameter() {
        let more =
            "[rows]\nworkload.task.w.count = [1, 3]\nkernel.base_slice_ns = [\"700000\", \"3000000\"]\n";
        let scenario = parse(more).unwrap();
        let keys: Vec<&str> = scenario.rows.iter().map(|row| row.key.as_str()).collect();
        assert_eq!(keys, ["1 700000", "1 3000000", "3 700000", "3 3000000"]);
        assert_eq!(scenario.rows[2].workload.tasks.len(), 3);
        let kernel = scenario.kernel_of(&scenario.kernels[0], &scenario.rows[1]).unwrap();
        assert_eq!(kernel.tunables.base_slice_ns, 3_000_000);
        assert!(parse("[rows]\nkernel = [\"v6.1\"]\n").unwrap_err().contains("columns"));
        assert!(parse("[rows]\nlimit = [\"1ms\", \"1ms\"]\n").unwrap_err().contains("twice"));
    }

    #[test]
    fn variants_have_names_or_are_called_after_what_they_set() {
        let more = "[[variant]]\n[[variant]]\nworkload.task.w.nice = 5\n[[variant]]\nname = \"n\"\nkernel = \"v6.1\"\n";
        let variants = Variant::of("f", &format!("{TEXT}{more}")).unwrap();
        let names: Vec<&str> = variants.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names, ["as it is", "nice=5", "n"]);
        let over = Overrides { settings: variants[1].settings.clone(), ..Overrides::default() };
        let scenario = Scenario::parse_with("f", TEXT, &NoFiles, &over).unwrap();
        assert_eq!(scenario.rows[0].workload.attrs.len(), 1);
        assert!(parse(more).is_ok());
    }

    #[test]
    fn a_wrong_value_is_named_with_its_path() {
        let over =
            Overrides { settings: vec![Setting::parse("workload.task.w.nice=99").unwrap()], rows: vec![] };
        let error = Scenario::parse_with("f", TEXT, &NoFiles, &over).unwrap_err().to_string();
        assert!(error.starts_with("with workload.task.w.nice=99: f:"), "{error}");
    }

    #[test]
    fn constants_of_the_machine_stay_set_on_another() {
        let over = Overrides {
            settings: vec![Setting::parse("machine.cost.syscall_ns=777").unwrap()],
            rows: vec![],
        };
        let mut scenario = Scenario::parse_with("f", TEXT, &NoFiles, &over).unwrap();
        let of = |machine: &Machine| machine.cost.syscall_ns.get();
        assert_eq!(of(&scenario.machine), 777);
        scenario.set_machine(Machine::preset("zen3-2s").unwrap()).unwrap();
        assert_eq!(of(&scenario.machine), 777);
    }

    #[test]
    fn what_was_expected_of_a_kernel_that_does_not_run_is_left_out() {
        let text = format!("{TEXT}\n[[expect]]\nkernel = \"v6.12\"\nforks = [1]\n");
        let with = |kernels: &str| {
            let settings = vec![Setting::new(vec!["kernels".to_string()], kernels)];
            let over = Overrides { settings, rows: Vec::new() };
            Scenario::parse_with("f", &text, &NoFiles, &over).unwrap().expect.len()
        };
        assert_eq!((with("[\"v6.12\"]"), with("[\"v6.1\"]")), (1, 0));
    }
}
