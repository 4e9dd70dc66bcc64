//! Finds the machine that a user names.
//!
//! `host`, a preset, a regular machine, or something on disk: a folder of recorded facts, a saved sysfs folder or tar,
//! `lscpu -p` output, hwloc XML, a machine's TOML. Files are distinguished by their content.

use std::fs;
use std::path::Path;

use schedlab::machine::Machine;
use schedlab::topology::{Architecture, SavedSysfs, Topology};

use crate::error::Error;
use crate::recording::is_read_once;

/// The machine behind a name. Changes made by its reader are reported on standard error.
pub fn machine(name: &str) -> Result<Machine, Error> {
    let machine = found(name)?;
    for note in &machine.topology.notes {
        say!("note: {note}");
    }
    Ok(machine)
}

fn found(name: &str) -> Result<Machine, Error> {
    let path = Path::new(name);
    if name == "host" {
        return Ok(Machine::of(sysfs("host", Path::new("/"))?));
    }
    if path.is_dir() {
        return Ok(Machine::of(folder(path)?.named(&crate::files::label(path))));
    }
    if !path.exists() && name != "-" {
        return Machine::preset(name).map_err(|error| {
            let hint = if name.contains(['/', '.']) { "; there is no such file either" } else { "" };
            Error::new(format!("{error}{hint}"))
        });
    }
    let mut machine = in_file(name, path)?;
    // A machine file may contain its own name.
    if machine.topology.name == name {
        machine.topology = machine.topology.named(&crate::files::label(path));
    }
    Ok(machine)
}

fn in_file(name: &str, path: &Path) -> Result<Machine, Error> {
    let bytes = crate::files::bytes(path)?;
    let Ok(text) = std::str::from_utf8(&bytes) else { return tar(name, &bytes) };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // Input from a pipe has no name that shows its format.
    if path.extension().is_some_and(|e| e == "toml") || (is_read_once(path) && text.contains("[topology]")) {
        return Ok(Machine::from_toml(name, text)?);
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return tar(name, &bytes);
    }
    let topology = match text.trim_start() {
        t if t.starts_with('<') => Topology::from_hwloc(name, text),
        t if t.starts_with("/sys/") => Topology::from_sysfs_lines(name, text),
        _ => {
            tell_invented(name, text);
            Topology::from_lscpu(name, text)
        }
    };
    Ok(Machine::of(topology?))
}

fn tar(name: &str, bytes: &[u8]) -> Result<Machine, Error> {
    Ok(Machine::of(Topology::from_sysfs(name, &SavedSysfs::from_tar(name, bytes)?)?))
}

/// Warns about what a table of `lscpu -p` leaves open about a machine, and says what is assumed.
fn tell_invented(name: &str, text: &str) {
    let headers = text.lines().filter_map(|line| line.trim().strip_prefix('#'));
    let names = |header: &str| -> Vec<String> {
        header.split([',', ':']).map(|name| name.trim().to_ascii_lowercase()).collect()
    };
    let columns = headers.map(names).rfind(|names| names.contains(&"cpu".to_owned())).unwrap_or_default();
    let has = |column: &str| columns.iter().any(|name| name == column);
    let has_cache =
        columns.iter().any(|name| name.strip_prefix('l').is_some_and(|level| level.parse::<u32>().is_ok()));
    let missing: Vec<&str> = [
        (has("core"), "cores (each CPU is taken for one)"),
        (has("socket"), "sockets (one is assumed for all)"),
        (has("node"), "nodes (one is assumed for all)"),
        (has_cache, "caches (the CPUs of a package in one node are assumed to share the last one)"),
    ]
    .into_iter()
    .filter_map(|(has, what)| (!has).then_some(what))
    .collect();
    // A table without a header, or without CPUs, is refused.
    if !columns.is_empty() && !missing.is_empty() {
        say!("{name} does not contain {}; the whole output of lscpu -p does", missing.join(", "));
    }
}

/// A folder of facts has a `topology.txt`; any other is assumed to be a saved sysfs.
pub fn folder(path: &Path) -> Result<Topology, Error> {
    let name = path.display().to_string();
    let facts = path.join("topology.txt");
    if !facts.is_file() {
        return sysfs(&name, path);
    }
    let text = crate::files::read(&facts)?;
    let mut saved = SavedSysfs::from_lines(&facts.display().to_string(), &text)?;
    if let Some(architecture) = architecture(path) {
        saved.set_architecture(architecture);
    }
    Ok(Topology::from_sysfs(&name, &saved)?)
}

/// The architecture by `uname -a`, if recorded: the last word that names one.
fn architecture(facts: &Path) -> Option<Architecture> {
    let text = fs::read_to_string(facts.join("uname.txt")).ok()?;
    text.split_whitespace().rev().find_map(Architecture::named)
}

fn sysfs(name: &str, root: &Path) -> Result<Topology, Error> {
    let read = |path: &str| fs::read_to_string(root.join(path.trim_start_matches('/'))).ok();
    Ok(Topology::from_sysfs(name, &read)?)
}
