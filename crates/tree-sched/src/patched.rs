//! A kernel tree with patches: a folder of links into it, with copies of the files that the patches change.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of links that is removed when it is no longer needed.
#[derive(Debug)]
pub(crate) struct Patched {
    pub(crate) dir: PathBuf,
    /// What the patches change: functions, structures and macros.
    pub(crate) changes: Vec<String>,
    /// Where a patch was applied although its context is not that of the tree.
    pub(crate) fuzzy: Vec<String>,
}

impl Drop for Patched {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Patched {
    /// A tree with patches applied, one after the other.
    pub(crate) fn new(tree: &Path, patches: &[PathBuf]) -> Result<Patched, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("schedlab-patched-{}-{number}", std::process::id()));
        let mut patched = Patched { dir, changes: Vec::new(), fuzzy: Vec::new() };
        let wrong = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        let tree = tree.canonicalize().map_err(|error| wrong(tree, error))?;
        fs::create_dir_all(&patched.dir).map_err(|error| wrong(&patched.dir, error))?;
        link_all(&tree, &patched.dir).map_err(|error| wrong(&tree, error))?;
        for patch in patches {
            let text = fs::read_to_string(patch).map_err(|error| wrong(patch, error))?;
            let touched = touched(&text);
            if touched.is_empty() {
                return Err(format!(
                    "{}: it is not a patch: no line begins with \"+++ b/\"",
                    patch.display()
                ));
            }
            for file in &touched {
                unlink(&tree, &patched.dir, file).map_err(|error| wrong(&patched.dir.join(file), error))?;
            }
            let said = apply(&patched.dir, patch)?;
            patched.fuzzy.extend(fuzzy(patch, &said));
            for name in changes(&patched.dir, &text, &said) {
                if !patched.changes.contains(&name) {
                    patched.changes.push(name);
                }
            }
        }
        Ok(patched)
    }
}

/// The files that a patch names, old and new, without the part before the first slash.
fn touched(patch: &str) -> BTreeSet<PathBuf> {
    let names =
        patch.lines().filter_map(|line| line.strip_prefix("--- ").or_else(|| line.strip_prefix("+++ ")));
    let names = names
        .map(|name| name.split('\t').next().unwrap_or_default().trim())
        .filter(|name| *name != "/dev/null");
    let below = names.filter_map(|name| name.split_once('/')).map(|(_, below)| PathBuf::from(below));
    // Paths that lead out of the tree are left for `patch` to refuse.
    below.filter(|path| path.components().all(|part| matches!(part, Component::Normal(_)))).collect()
}

/// Links everything in a folder.
fn link_all(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        symlink(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Replaces a linked file, and the folders above it, by a copy in the folder.
fn unlink(tree: &Path, folder: &Path, file: &Path) -> std::io::Result<()> {
    let mut at = PathBuf::new();
    for part in file.parent().into_iter().flat_map(Path::components) {
        at.push(part);
        let own = folder.join(&at);
        if own.is_symlink() {
            fs::remove_file(&own)?;
            fs::create_dir(&own)?;
            link_all(&tree.join(&at), &own)?;
        } else if !own.exists() {
            fs::create_dir(&own)?;
        }
    }
    let own = folder.join(file);
    if own.is_symlink() {
        let text = fs::read(&own)?;
        fs::remove_file(&own)?;
        fs::write(&own, text)?;
    }
    Ok(())
}

/// Applies a patch, and returns the output of the command.
fn apply(folder: &Path, patch: &Path) -> Result<String, String> {
    let patch = patch.canonicalize().map_err(|error| format!("{}: {error}", patch.display()))?;
    let done = Command::new("patch")
        .args(["-p1", "--batch", "--forward", "--no-backup-if-mismatch", "--reject-file=-", "-i"])
        .arg(&patch)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run patch: {error}; install the package patch"))?;
    let said = String::from_utf8_lossy(&done.stdout);
    if done.status.success() {
        return Ok(said.into_owned());
    }
    let said: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).take(12).collect();
    Err(format!("{}: it does not apply to this tree:\n{}", patch.display(), said.join("\n")))
}

/// The hunks for which `patch` ignored a part of the context, as sentences.
fn fuzzy(patch: &Path, said: &str) -> Vec<String> {
    let mut file = "";
    let mut found = Vec::new();
    for line in said.lines() {
        if let Some(name) = line.strip_prefix("patching file ") {
            file = name;
        } else if line.contains(" with fuzz ") {
            found.push(format!("{}: {file}: {line} Check that it is in the right place.", patch.display()));
        }
    }
    found
}

/// Names of what an applied patch changes, in its order. `said` is the output of `patch`, which contains the offsets of
/// hunks.
fn changes(folder: &Path, patch: &str, said: &str) -> Vec<String> {
    let mut names = Vec::new();
    let (mut file, mut source) = ("", Vec::new());
    let (mut hunk, mut at) = (0, 0usize);
    for line in patch.lines() {
        if let Some(name) = line.strip_prefix("+++ ") {
            file = name.split('\t').next().unwrap_or_default().split_once('/').map_or("", |(_, below)| below);
            let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
            (source, hunk) = (text.lines().map(str::to_string).collect(), 0);
        } else if let Some(header) = line.strip_prefix("@@ ") {
            hunk += 1;
            let new = header.split('+').nth(1).and_then(|new| new.split([',', ' ']).next()?.parse().ok());
            at = slipped(said, file, hunk).or(new).unwrap_or(1);
        } else if line.starts_with('+') || line.starts_with('-') && !line.starts_with("--- ") {
            names.extend(enclosing(&source, at));
            at += usize::from(line.starts_with('+'));
        } else if line.starts_with(' ') || line.is_empty() {
            at += 1;
        }
    }
    names.dedup();
    names
}

/// The line at which `patch` reports that a hunk of a file was applied.
fn slipped(said: &str, file: &str, hunk: usize) -> Option<usize> {
    let of_file = said.split("patching file ").find(|part| part.lines().next() == Some(file))?;
    let line = of_file.lines().find_map(|line| line.strip_prefix(&format!("Hunk #{hunk} succeeded at ")))?;
    line.split([' ', '.']).next()?.parse().ok()
}

/// The function, structure or macro around a line, counted from 1, as `diff -p` finds it.
fn enclosing(source: &[String], at: usize) -> Option<String> {
    let above = source.get(..at.min(source.len()))?.iter().rev();
    let begins = |line: &&String| {
        line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '#') && !line.ends_with(':')
    };
    let line = above.filter(begins).find(|line| !line.starts_with('#') || line.starts_with("#define "))?;
    let word = |text: &str| {
        text.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default().to_string()
    };
    match line.strip_prefix("#define ") {
        Some(name) => Some(name.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()),
        None => match line.split_once('(') {
            Some((before, _)) => Some(word(before.trim_end()) + "()"),
            None => Some(line.trim_end_matches([' ', '{', '\t']).to_string()),
        },
    }
    .filter(|name| name != "()")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("schedlab-source-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("kernel/sched")).unwrap();
        fs::create_dir_all(dir.join("lib")).unwrap();
        fs::write(dir.join("kernel/sched/fair.c"), "one\ntwo\nthree\n").unwrap();
        fs::write(dir.join("kernel/sched/core.c"), "core\n").unwrap();
        dir
    }

    const PATCH: &str =
        "--- a/kernel/sched/fair.c\n+++ b/kernel/sched/fair.c\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n";

    #[test]
    fn a_patch_changes_a_copy_and_not_the_tree() {
        let tree = tree("copy");
        let patch = tree.join("a.patch");
        fs::write(&patch, PATCH).unwrap();
        let patched = Patched::new(&tree, std::slice::from_ref(&patch)).unwrap();
        let read = |dir: &Path, file: &str| fs::read_to_string(dir.join(file)).unwrap();
        assert_eq!(read(&patched.dir, "kernel/sched/fair.c"), "one\nzwei\nthree\n");
        assert_eq!(read(&patched.dir, "kernel/sched/core.c"), "core\n");
        assert!(patched.dir.join("lib").is_symlink() && patched.dir.join("kernel/sched/core.c").is_symlink());
        assert_eq!(read(&tree, "kernel/sched/fair.c"), "one\ntwo\nthree\n");
        let dir = &patched.dir.to_path_buf();
        drop(patched);
        assert!(!dir.exists());
        fs::remove_dir_all(&tree).unwrap();
    }

    #[test]
    fn a_patch_that_does_not_apply_says_why() {
        let tree = tree("wrong");
        let patch = tree.join("b.patch");
        fs::write(&patch, PATCH.replace("-two", "-deux")).unwrap();
        let error = Patched::new(&tree, std::slice::from_ref(&patch)).unwrap_err();
        assert!(error.contains("b.patch: it does not apply to this tree:\n"), "{error}");
        assert!(error.contains("kernel/sched/fair.c") && error.contains("FAILED"), "{error}");
        fs::write(&patch, "nothing\n").unwrap();
        let error = Patched::new(&tree, std::slice::from_ref(&patch)).unwrap_err();
        assert!(error.ends_with("b.patch: it is not a patch: no line begins with \"+++ b/\""), "{error}");
        fs::remove_dir_all(&tree).unwrap();
    }

    #[test]
    fn what_a_patch_changes_is_named() {
        let folder = std::env::temp_dir().join(format!("schedlab-changes-{}", std::process::id()));
        fs::create_dir_all(folder.join("kernel")).unwrap();
        let source = "#define STEP 4\n\nstruct shared {\n\tint one;\n\tint two;\n};\n\nstatic int\nfirst(int cpu)\n{\n\
                      again:\n\treturn cpu;\n}\n\nint second(void)\n{\n\treturn 2;\n}\n";
        fs::write(folder.join("kernel/a.c"), source).unwrap();
        let patch = "--- a/kernel/a.c\n+++ b/kernel/a.c\n@@ -4,1 +4,2 @@\n \tint one;\n+\tint two;\n\
                     @@ -7,1 +12,1 @@\n-\treturn 1;\n+\treturn cpu;\n@@ -16,1 +27,1 @@\n-\treturn 3;\n+\treturn 2;\n";
        let said = "patching file kernel/a.c\nHunk #3 succeeded at 17 (offset -10 lines).\n";
        assert_eq!(changes(&folder, patch, said), ["struct shared", "first()", "second()"]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
