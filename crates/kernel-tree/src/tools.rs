//! Programs that a build needs, and the Debian package of each.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;

/// Programs and their packages.
const NEEDED: [(&str, &str); 6] = [
    ("ld", "binutils"),
    ("nm", "binutils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("sh", "dash"),
];

/// The programs that a build calls.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    /// The C compiler.
    pub(crate) cc: PathBuf,
    /// The first line of its `--version`.
    pub(crate) cc_version: String,
}

impl Tools {
    /// Finds all of them.
    ///
    /// # Errors
    /// Programs are missing; the error lists them with their packages.
    pub(crate) fn find() -> Result<Tools, Error> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Tools::find_in(&path, std::env::var_os("CC").as_deref())
    }

    fn find_in(path: &OsStr, wanted: Option<&OsStr>) -> Result<Tools, Error> {
        let which = |name: &Path| {
            let mut folders = std::env::split_paths(path);
            folders.find_map(|dir| Some(dir.join(name)).filter(|file| file.is_file()))
        };
        let cc = match wanted {
            Some(name) => which(Path::new(name)),
            None => which(Path::new("gcc")).or_else(|| which(Path::new("clang"))),
        };
        let mut missing: Vec<(&str, &str)> =
            NEEDED.into_iter().filter(|(name, _)| which(Path::new(name)).is_none()).collect();
        if cc.is_none() {
            missing.insert(0, ("gcc or clang", "gcc"));
        }
        let Some(cc) = cc.filter(|_| missing.is_empty()) else {
            let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
            let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
            packages.dedup();
            return Err(Error::new(format!(
                "a kernel tree cannot be built without {}; on Debian: apt install {}",
                names.join(", "),
                packages.join(" ")
            )));
        };
        let version = run(Command::new(&cc).arg("--version"), "the compiler's version")?;
        Ok(Tools { cc, cc_version: version.lines().next().unwrap_or_default().to_string() })
    }
}

/// Runs a program and returns its output.
///
/// # Errors
/// The program's own message, if it fails.
pub(crate) fn run(command: &mut Command, what: &str) -> Result<String, Error> {
    let name = Path::new(command.get_program()).display().to_string();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| Error::new(format!("{what}: cannot run {name}: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = [output.stderr, output.stdout].concat();
    let words = String::from_utf8_lossy(&words);
    let first: Vec<&str> = words.lines().take(30).collect();
    Err(Error::new(format!("{what}: {name} says\n{}", first.join("\n"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let error = Tools::find_in(OsStr::new("/nonexistent"), None).unwrap_err().to_string();
        assert_eq!(
            error,
            "a kernel tree cannot be built without gcc or clang, ld, nm, flex, bison, bc, sh; \
             on Debian: apt install gcc binutils flex bison bc dash"
        );
    }
}
