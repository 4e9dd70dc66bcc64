//! Loads what is to be run: a scenario file, or an rt-app file with a machine and kernels.

use std::path::{Path, PathBuf};

use schedlab::machine::Without;
use schedlab::sched::Kernel;
use schedlab::topology::nearest;
use schedlab::{Overrides, Row, Scenario, Setting, Variant};

use crate::args::What;
use crate::error::Error;
use crate::files::{self, Folder};
use crate::machine;
use crate::recorded::Recorded;
use crate::recording::is_read_once;

/// A file that describes what is run, read once.
pub struct Source {
    path: PathBuf,
    text: String,
    /// Whether it is an rt-app file.
    is_rt_app: bool,
}

impl Source {
    /// Reads a scenario file, a built-in scenario by its name, or an rt-app file.
    pub fn read(file: &str, what: &What) -> Result<Source, Error> {
        let path = Path::new(file);
        let text = match embedded(path) {
            Some(text) => text.to_string(),
            None => files::read(path).map_err(|error| hinted(unknown(error, path), path))?,
        };
        // Input from a pipe has no name that shows its format.
        let is_rt_app = is_rt_app(path) || (is_read_once(path) && text.trim_start().starts_with('{'));
        let source = Source { path: path.to_path_buf(), text, is_rt_app };
        if source.is_rt_app && !what.set.is_empty() {
            return Err(Error::new(format!("{file}: an rt-app file has no parameters that --set could set")));
        }
        Ok(source)
    }

    /// The variants it describes.
    pub fn variants(&self) -> Result<Vec<Variant>, Error> {
        if self.is_rt_app {
            return Ok(Vec::new());
        }
        Ok(Variant::of(&self.path.display().to_string(), &self.text)?)
    }

    /// The scenario with the overrides of the command line, and with additional parameters and rows.
    pub fn scenario(
        &self,
        what: &What,
        kernels: &[String],
        settings: &[Setting],
        rows: &[Vec<Setting>],
    ) -> Result<Scenario, Error> {
        let scenario = self.described(what, kernels, settings, rows);
        let mut scenario = scenario.map_err(|error| hinted(error, &self.path))?;
        if let Some(machine) = &what.machine
            && !settings.iter().any(|setting| setting.path() == "machine")
        {
            scenario.set_machine(machine::machine(machine)?)?;
        }
        if let Some(list) = &what.without {
            let without = Without::parse(list).map_err(|e| Error::new(format!("--without: {e}")))?;
            scenario.set_without(without);
        }
        if let Some(limit) = what.limit {
            scenario.set_limit(limit);
        }
        if let Some(seed) = what.seed {
            scenario.seed = seed;
        }
        if !kernels.is_empty() || !settings.is_empty() || !rows.is_empty() || !what.set.is_empty() {
            // The expectations of the file are about something else.
            scenario.expect.clear();
        }
        for note in scenario.rows.iter().flat_map(|row| &row.notes) {
            say!("note: {note}");
        }
        Ok(scenario)
    }

    /// The content of the file, with parameters set.
    fn described(
        &self,
        what: &What,
        kernels: &[String],
        settings: &[Setting],
        rows: &[Vec<Setting>],
    ) -> Result<Scenario, Error> {
        let name = self.path.display().to_string();
        let told = |k: &String| schedlab::kernels::kernel(k, &mut |step| say!("{k}: {step}"));
        let parsed = || kernels.iter().map(told).collect::<Result<Vec<_>, _>>();
        if self.is_rt_app {
            if !settings.is_empty() || !rows.is_empty() {
                return Err(Error::new(format!("{name}: an rt-app file has no parameters to vary")));
            }
            let machine = machine::machine(what.machine.as_deref().unwrap_or("host"))?;
            let mut scenario = Scenario::from_rt_app(&name, &self.text, machine)?;
            if !kernels.is_empty() {
                scenario.kernels = parsed()?;
            }
            return Ok(scenario);
        }
        let mut all = Vec::new();
        if !kernels.is_empty() {
            parsed()?;
            let list: Vec<String> = kernels.iter().map(|kernel| format!("\"{kernel}\"")).collect();
            all.push(Setting::new(vec!["kernels".to_string()], &format!("[{}]", list.join(", "))));
        }
        all.extend(what.set.iter().chain(settings).cloned());
        let over = Overrides { settings: all, rows: rows.to_vec() };
        Ok(Scenario::parse_with(&name, &self.text, &Folder::of(&self.path), &over)?)
    }
}

/// Reads the file and applies the overrides of the command line.
pub fn load(what: &What) -> Result<Scenario, Error> {
    Source::read(&what.scenario, what)?.scenario(what, &[], &[], &[])
}

/// A name that is not a file may be similar to that of a built-in scenario.
fn unknown(error: Error, path: &Path) -> Error {
    let name = path.to_string_lossy();
    let meant = nearest(name.trim_end_matches(".toml"), schedlab::scenario_names());
    match meant.filter(|_| !path.exists()) {
        Some(meant) => {
            Error::new(format!("{error}; did you mean the scenario {meant}? `schedlab scenarios` lists them"))
        }
        None => error,
    }
}

/// The error, and what to do if the file is a recording. A file that can be read only once has been read already.
fn hinted(error: Error, path: &Path) -> Error {
    // The first line of an rt-app file may look like one of a trace.
    let is_recording = !is_rt_app(path)
        && !is_read_once(path)
        && Recorded::find(path).is_ok_and(|found| found[0].open().is_ok());
    if !is_recording {
        return error;
    }
    Error::new(format!(
        "{error}. It looks like a recording: `schedlab audit`, `detect`, `sched` and `replay` take those, and \
         `schedlab audit FILE --format perfetto` makes a Perfetto trace of one"
    ))
}

/// Whether a file is one of rt-app's.
pub fn is_rt_app(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

/// A built-in scenario by its path in the project, for use if the file does not exist.
pub fn embedded(path: &Path) -> Option<&'static str> {
    if path.exists() || path == Path::new("-") {
        return None;
    }
    schedlab::embedded_scenario(path.file_name()?.to_str()?)
}

/// The kernel that a user names. Prints the steps of building a tree's library, and a note if the kernel's rules are
/// not known and others are used.
pub fn named_kernel(name: &str) -> Result<Kernel, Error> {
    let kernel = schedlab::kernels::kernel(name, &mut |step| say!("{name}: {step}"))?;
    tell_stand_in(&kernel);
    Ok(kernel)
}

/// Notes which rules a kernel uses, if not its own.
pub fn tell_stand_in(kernel: &Kernel) {
    if let Some(known) = kernel.stand_in() {
        say!(
            "{}: there are no rules of that release: those of {known}, the nearest that is known, are taken; \
             `schedlab kernel identify DIR` says which rules a kernel tree has",
            kernel.name
        );
    }
}

/// The kernel named, or the last of the scenario.
pub fn kernel(scenario: &Scenario, name: Option<&str>) -> Result<Kernel, Error> {
    match name {
        Some(name) => named_kernel(name),
        None => Ok(scenario.kernels.last().expect("a scenario has a kernel").clone()),
    }
}

/// The row of a key, or the first.
pub fn row<'a>(scenario: &'a Scenario, key: Option<&str>) -> Result<&'a Row, Error> {
    let Some(key) = key else { return Ok(&scenario.rows[0]) };
    scenario.rows.iter().find(|row| row.key == key).ok_or_else(|| {
        let keys: Vec<&str> =
            scenario.rows.iter().map(|r| r.key.as_str()).filter(|key| !key.is_empty()).collect();
        let has =
            if keys.is_empty() { "one without a name: leave --row out".to_owned() } else { keys.join(", ") };
        Error::new(format!("{} has no row \"{key}\"; it has {has}", scenario.file))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenarios_of_the_findings_are_sound() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/findings");
        let mut scenarios = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let text = files::read(&path).unwrap();
            // Their own machines are in the same folder.
            if text.contains("\nkernels = ") {
                let scenario = Scenario::parse(&path.display().to_string(), &text, &Folder::of(&path));
                assert!(scenario.is_ok_and(|scenario| !scenario.rows.is_empty()), "{}", path.display());
                scenarios += 1;
            }
        }
        assert!(scenarios >= 9);
    }
}
