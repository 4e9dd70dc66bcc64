//! What `compare` and `run` compare: kernels, variants, several scenarios, recordings.

use std::path::{Path, PathBuf};

use schedlab::sched::{Kernel, PRESETS};
use schedlab::workload::Workload;
use schedlab::{Column, Experiment, Folds, Results, Run, Scenario, Setting, Variant};

use crate::args::Compare;
use crate::error::Error;
use crate::recorded::Recorded;
use crate::scenario::{Source, tell_stand_in};

/// An experiment, with results if it was recorded.
pub struct Compared {
    /// What is compared.
    pub experiment: Experiment,
    /// The runs of recordings.
    pub recorded: Option<Results>,
}

/// Loads what is compared, including recordings if `reads` is set.
pub fn load(args: &Compare, reads: bool) -> Result<Compared, Error> {
    let files: Vec<&String> = std::iter::once(&args.what.scenario).chain(&args.more).collect();
    let recordings = files.iter().filter(|file| reads && is_recording(file)).count();
    if recordings == files.len() {
        return recorded(args, &files);
    }
    if recordings > 0 {
        return Err(Error::new(
            "recordings are compared with recordings; `schedlab replay` runs one elsewhere",
        ));
    }
    let rows = args.rows.iter().map(|text| Setting::parse_list(text)).collect::<Result<Vec<_>, _>>()?;
    let mut columns: Vec<Column> = Vec::new();
    for (file, stem) in files.iter().zip(stems(&files)) {
        let source = Source::read(file, &args.what)?;
        let mut variants = variants(args, &source)?;
        if variants.is_empty() {
            variants.push(Variant::new(Some(String::new()), Vec::new()));
        }
        let mut loaded = Vec::new();
        for variant in variants {
            let scenario = source.scenario(&args.what, &args.kernel, &variant.settings, &rows)?;
            loaded.push((variant.name, scenario));
        }
        let several = loaded.iter().any(|(_, scenario)| scenario.kernels.len() > 1);
        let file = if files.len() > 1 { stem } else { String::new() };
        for (variant, scenario) in loaded {
            for kernel in &scenario.kernels {
                let kernel_named = several || (file.is_empty() && variant.is_empty());
                let parts =
                    [file.as_str(), variant.as_str(), if kernel_named { kernel.name.as_str() } else { "" }];
                let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                let scenario = scenario.under(vec![kernel.clone()]);
                columns.push(Column::new(parts.join(" "), scenario));
            }
        }
    }
    set_runs(args, &mut columns)?;
    tell_stand_ins(&columns);
    tell_unheeded(&columns);
    Ok(Compared { experiment: Experiment::new(columns), recorded: None })
}

/// All columns have the number of runs and the seed of the first, so that runs form pairs.
fn set_runs(args: &Compare, columns: &mut [Column]) -> Result<(), Error> {
    let (runs, seed) = (columns[0].scenario.runs, columns[0].scenario.seed);
    let runs = match args.runs {
        Some(runs) => super::command::compare::checked(runs)?,
        None => runs,
    };
    for column in columns {
        (column.scenario.runs, column.scenario.seed) = (runs, seed);
    }
    Ok(())
}

/// The variants of a file, each with each value of `--vary`.
fn variants(args: &Compare, source: &Source) -> Result<Vec<Variant>, Error> {
    let mut variants = source.variants()?;
    for text in &args.vary {
        let axis = Setting::parse_list(text)?;
        let with = |variant: Option<&Variant>, setting: &Setting| {
            let mut settings = variant.map_or(Vec::new(), |variant| variant.settings.clone());
            settings.push(setting.clone());
            let one = Variant::new(None, vec![setting.clone()]).name;
            Variant::new(Some(variant.map_or(one.clone(), |v| format!("{} {one}", v.name))), settings)
        };
        variants = match &variants[..] {
            [] => axis.iter().map(|setting| with(None, setting)).collect(),
            known => known.iter().flat_map(|v| axis.iter().map(|setting| with(Some(v), setting))).collect(),
        };
    }
    Ok(variants)
}

/// The names of files without folders and endings; with as many folders as tell two of one name apart.
fn stems(files: &[&String]) -> Vec<String> {
    let parts: Vec<Vec<String>> = files
        .iter()
        .map(|file| {
            let stem = Path::new(file).with_extension("");
            let path = if Path::new(file).is_dir() { Path::new(file) } else { &stem };
            path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
        })
        .collect();
    let ending = |of: &[String], count: usize| of[of.len().saturating_sub(count)..].join("/");
    let is_alone = |at: usize, count: usize| {
        let others = parts.iter().enumerate().filter(|(other, _)| *other != at);
        others.map(|(_, other)| ending(other, count)).all(|other| other != ending(&parts[at], count))
    };
    (0..parts.len())
        .map(|at| {
            let most = parts[at].len();
            let count = (1..most).find(|&count| is_alone(at, count)).unwrap_or(most);
            // One file given twice has one name.
            ending(&parts[at], if is_alone(at, count) { count } else { 1 })
        })
        .collect()
}

/// Notes which rules kernels use, if not their own: once for each.
fn tell_stand_ins(columns: &[Column]) {
    let mut told: Vec<&str> = Vec::new();
    for kernel in columns.iter().map(Column::kernel) {
        if !told.contains(&kernel.name.as_str()) {
            told.push(&kernel.name);
            tell_stand_in(kernel);
        }
    }
}

/// Notes which parts of a kernel's name have no effect in it.
fn tell_unheeded(columns: &[Column]) {
    let mut told: Vec<String> = Vec::new();
    for column in columns {
        let name = &column.kernel().name;
        let mut parts = name.split('+');
        let Some(Ok(mut kernel)) = parts.next().map(Kernel::parse) else { continue };
        for part in parts {
            let is_told = told.iter().any(|known| known == name);
            if !kernel.is_turned_by(part) && !is_told {
                say!("note: {name}: {part} changes nothing in {}: {}", kernel.name, kernel.unturned(part));
                told.push(name.clone());
            }
            let _ = kernel.switch(part);
        }
    }
}

fn is_recording(file: &str) -> bool {
    let path = Path::new(file);
    let is_described = path.extension().is_some_and(|e| e == "toml" || e == "json");
    !is_described
        && (path.is_dir() || path.exists() && Recorded::find(path).is_ok_and(|found| found[0].open().is_ok()))
}

/// The recordings of a side: one, those of a folder of recordings, or each file of a folder that is named like a trace.
fn runs_of(path: &Path) -> Result<Vec<Recorded>, Error> {
    let found = Recorded::find(path);
    if found.is_ok() || !path.is_dir() {
        return found;
    }
    let files = std::fs::read_dir(path).map_err(|error| Error::file(path, &error))?;
    let mut files: Vec<PathBuf> = files.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let is_trace = |file: &PathBuf| {
        let name = file.to_string_lossy();
        let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
        [".dat", ".data", ".txt", ".pftrace"].iter().any(|ending| name.ends_with(ending)) && file.is_file()
    };
    let traces: Vec<PathBuf> = files.into_iter().filter(is_trace).collect();
    if traces.is_empty() {
        return found;
    }
    traces.iter().map(|file| Ok(Recorded::find(file)?.remove(0))).collect()
}

/// Recordings side by side: they have no seeds, so runs are paired in the order of their names.
fn recorded(args: &Compare, files: &[&String]) -> Result<Compared, Error> {
    let is_set = !args.kernel.is_empty()
        || !args.what.set.is_empty()
        || !args.vary.is_empty()
        || !args.rows.is_empty()
        || args.what.machine.is_some()
        || args.what.limit.is_some()
        || args.runs.is_some()
        || args.until_sure.is_some()
        || args.attribute
        || args.ends.is_some();
    if is_set {
        return Err(Error::new(
            "a recording is read as it is: --kernel, --machine, --set, --vary, --rows, --runs, --limit, --until-sure, \
             --attribute and --ends change what is run; `schedlab replay` runs a recording again",
        ));
    }
    let mut columns = Vec::new();
    let mut sides = Vec::new();
    for (file, stem) in files.iter().zip(stems(files)) {
        let workload = Workload { name: stem.clone(), ..Workload::default() };
        let kernel = Kernel::preset(PRESETS.len() - 1);
        columns.push(Column::new(stem, Scenario::recorded(file, kernel, workload.clone())));
        let mut runs = Vec::new();
        for (nth, one) in runs_of(Path::new(file))?.into_iter().enumerate() {
            let mut folds = Folds::new(&workload).with_figures();
            one.open()?.feed(&mut folds, || false)?;
            runs.push(Run::recorded(nth as u64, folds));
        }
        sides.push(runs);
    }
    let most = sides.iter().map(Vec::len).max().unwrap_or(0);
    let mut experiment = Experiment::new(columns);
    experiment.title = Some(format!("recordings, {most} of a side"));
    Ok(Compared { experiment, recorded: Some(Results { runs: vec![sides] }) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_name_have_their_folders_too() {
        let of = |files: &[&str]| {
            let files: Vec<String> = files.iter().map(|&file| file.to_owned()).collect();
            stems(&files.iter().collect::<Vec<_>>())
        };
        assert_eq!(of(&["a/x.dat", "b/y.dat"]), ["x", "y"]);
        assert_eq!(of(&["t/6.1/2x4/x.dat", "t/6.12/2x4/x.dat", "y"]), ["6.1/2x4/x", "6.12/2x4/x", "y"]);
        assert_eq!(of(&["x.dat", "x.dat"]), ["x", "x"]);
        assert_eq!(of(&["x.dat", "b/x.dat"]), ["x", "b/x"]);
    }
}
