//! The source that a kernel string names: a tree as it is, a commit of it, or either with patches.
//!
//! Nothing is ever written into the tree. A commit is extracted from git once and kept in the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use schedlab_kernel_tree::{Built, Cache, Tree};

use crate::kernels::PREFIX;
use crate::patched::Patched;

/// The parts of a commit that are needed.
const PARTS: [&str; 9] = [
    "kernel",
    "include",
    "lib",
    "init",
    "scripts",
    "Makefile",
    ":(glob)**/Kconfig*",
    ":(glob)mm/*.h",
    ":(glob)io_uring/*",
];

/// The parts of a string that names a tree.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    /// `DIR` or `DIR@REV`.
    place: &'a str,
    patches: Vec<&'a str>,
    /// Everything else after a plus sign.
    pub(crate) switches: Vec<&'a str>,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(text: &'a str) -> Parts<'a> {
        let text = text.trim();
        let mut parts = text.strip_prefix(PREFIX).unwrap_or(text).split('+').map(str::trim);
        let place = parts.next().unwrap_or_default();
        let (patches, switches) = parts.partition(|part| part.ends_with(".patch") || part.ends_with(".diff"));
        Parts { place, patches, switches }
    }
}

/// The source of a kernel. A patched tree exists as long as this does.
#[derive(Debug)]
pub struct Source {
    /// The tree to build, with its patches.
    pub tree: Tree,
    patched: Option<Patched>,
}

impl Source {
    /// Opens what `DIR`, `DIR@REV` or either with `+FILE.patch` names, with or without `tree:` before it.
    ///
    /// # Errors
    /// The folder is not a kernel tree, it has no such commit, a patch does not apply, or the string has switches, which
    /// act on a library, not on its source.
    pub fn open(text: &str) -> Result<Source, String> {
        let parts = Parts::of(text);
        if let Some(switch) = parts.switches.first() {
            return Err(format!(
                "+{switch} is not part of a source: only patches (FILE.patch, FILE.diff) can follow the tree here. A switch is \
                 set when a simulation runs the tree, as in `schedlab compare FILE.toml --kernel tree:DIR+NO_WA_IDLE`"
            ));
        }
        Source::of(&parts)
    }

    /// Opens the source that a string names.
    pub(crate) fn of(parts: &Parts<'_>) -> Result<Source, String> {
        let place = parts.place;
        let (folder, revision) = match place.rsplit_once('@') {
            Some((dir, revision)) if !home(place).is_dir() => {
                let cache = Cache::of_user().map_err(|error| error.to_string())?;
                (commit(&cache, &home(dir), revision)?, Some((home(dir), revision)))
            }
            _ => (home(place), None),
        };
        // Check that it is a tree before anything is copied.
        let mut tree = Tree::open(&folder).map_err(|error| error.to_string())?;
        let mut name = match revision {
            Some((dir, revision)) => format!("{}@{revision}", full(&dir).display()),
            None => tree.dir().display().to_string(),
        };
        let patches: Vec<PathBuf> = parts.patches.iter().map(|patch| home(patch)).collect();
        let patched = if patches.is_empty() { None } else { Some(Patched::new(&folder, &patches)?) };
        if let Some(patched) = &patched {
            tree = Tree::open(&patched.dir).map_err(|error| error.to_string())?;
            name.extend(patches.iter().map(|patch| format!("+{}", full(patch).display())));
        }
        Ok(Source { tree: tree.named(name.into()), patched })
    }

    /// Builds it. `step` gets each step, and where a patch needed fuzz.
    ///
    /// # Errors
    /// As [`Cache::build`].
    pub fn build(&self, step: &mut dyn FnMut(&str)) -> Result<Built, schedlab_kernel_tree::Error> {
        for note in self.patched.iter().flat_map(|patched| &patched.fuzzy) {
            step(note);
        }
        Cache::of_user()?.build(&self.tree, step)
    }

    /// The functions, structures and macros that its patches change.
    pub fn changes(&self) -> &[String] {
        self.patched.as_ref().map_or(&[], |patched| &patched.changes)
    }
}

/// A path with `~/` replaced by the user's home folder.
fn home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(below), Some(home)) => Path::new(&home).join(below),
        _ => PathBuf::from(path),
    }
}

/// A full path, if there is one.
fn full(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// The folder of a commit, extracted from a git tree if it does not exist.
fn commit(cache: &Cache, tree: &Path, revision: &str) -> Result<PathBuf, String> {
    let git = |args: &[&str]| {
        let done = Command::new("git").arg("-C").arg(tree).args(args).output();
        let done = done.map_err(|error| format!("cannot run git: {error}"))?;
        if done.status.success() {
            Ok(done.stdout)
        } else {
            Err(String::from_utf8_lossy(&done.stderr).trim().to_string())
        }
    };
    let wrong = |error: String| match error.as_str() {
        "" => format!("{}: it has no commit {revision}", tree.display()),
        error => format!("{}: no commit {revision}: {error}", tree.display()),
    };
    let id = git(&["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")]).map_err(wrong)?;
    let id = String::from_utf8_lossy(&id).trim().to_string();
    let folder = cache.dir().join("commits").join(&id);
    if folder.is_dir() {
        return Ok(folder);
    }
    let new = cache.dir().join("commits").join(format!("{id}.{}", std::process::id()));
    fs::create_dir_all(&new).map_err(|error| format!("{}: {error}", new.display()))?;
    let mut args = vec!["archive", "--format=tar", &id, "--"];
    // A path that a commit lacks would make git fail.
    args.extend(
        PARTS.iter().filter(|part| {
            part.starts_with(':') || git(&["cat-file", "-e", &format!("{id}:{part}")]).is_ok()
        }),
    );
    let packed =
        git(&args).map_err(|error| format!("{}: cannot take {revision} out: {error}", tree.display()))?;
    let mut tar = Command::new("tar").args(["-x", "-C"]).arg(&new).stdin(Stdio::piped()).spawn();
    let child = tar.as_mut().map_err(|error| format!("cannot run tar: {error}"))?;
    let written = std::io::Write::write_all(&mut child.stdin.take().expect("it is piped"), &packed);
    let unpacked = child.wait().is_ok_and(|status| status.success());
    if written.is_err() || !unpacked {
        let _ = fs::remove_dir_all(&new);
        return Err(format!("{}: cannot unpack {revision} into the cache", tree.display()));
    }
    if fs::rename(&new, &folder).is_err() {
        // Another process was faster.
        let _ = fs::remove_dir_all(&new);
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_names_a_tree_a_commit_and_patches() {
        let parts = |text| {
            let Parts { place, patches, switches } = Parts::of(text);
            (place, patches.join(" "), switches.join(" "))
        };
        let of = |place, patches: &str, switches: &str| (place, patches.to_string(), switches.to_string());
        assert_eq!(parts("tree:~/linux"), of("~/linux", "", ""));
        assert_eq!(parts(" ~/linux@v6.12+a.patch "), of("~/linux@v6.12", "a.patch", ""));
        assert_eq!(
            parts("tree:l+a.patch+NO_WA_IDLE+b.diff+preempt=lazy"),
            of("l", "a.patch b.diff", "NO_WA_IDLE preempt=lazy")
        );
    }

    #[test]
    fn a_switch_is_no_part_of_a_source() {
        let error = Source::open("tree:linux+a.patch+NO_WA_IDLE").unwrap_err();
        assert!(error.starts_with("+NO_WA_IDLE is not part of a source"), "{error}");
    }

    #[test]
    fn a_patched_tree_has_the_name_of_its_source() {
        let dir = std::env::temp_dir().join(format!("schedlab-named-{}", std::process::id()));
        let files = ["kernel/sched/core.c", "kernel/sched/fair.c", "scripts/kconfig/conf.c", "Kconfig"];
        for file in files {
            fs::create_dir_all(dir.join(file).parent().unwrap()).unwrap();
            fs::write(dir.join(file), "one\n").unwrap();
        }
        fs::write(dir.join("Makefile"), "VERSION = 6\nPATCHLEVEL = 12\n").unwrap();
        let patch = dir.join("a.patch");
        fs::write(&patch, "--- a/Kconfig\n+++ b/Kconfig\n@@ -1 +1 @@\n-one\n+two\n").unwrap();
        let source = Source::open(&format!("{}+{}", dir.display(), patch.display())).unwrap();
        let real = dir.canonicalize().unwrap();
        assert_eq!(source.tree.name().display().to_string(), format!("{0}+{0}/a.patch", real.display()));
        assert_ne!(source.tree.dir(), real);
        fs::remove_dir_all(&dir).unwrap();
    }
}
