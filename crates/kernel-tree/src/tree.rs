//! A kernel tree: checks that it is one, and reads its version.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;

/// Kernels whose trees are known to work.
const KNOWN: &str = "5.10, 6.1, 6.12, 7.2 and 7.3";

/// The oldest of them.
const OLDEST: (u32, u32) = (5, 10);

/// A folder with the source of a kernel.
#[derive(Clone, Debug)]
pub struct Tree {
    dir: PathBuf,
    name: PathBuf,
    release: [u32; 3],
}

impl Tree {
    /// Checks that a folder is a kernel tree that can be built.
    ///
    /// # Errors
    /// It is not a tree, or it is too old.
    pub fn open(dir: &Path) -> Result<Tree, Error> {
        let wrong = |why: &str| Error::new(format!("{} is not a kernel tree: {why}", dir.display()));
        let full = dir.canonicalize().map_err(|error| Error::io("open it", dir, &error))?;
        let Ok(makefile) = fs::read_to_string(full.join("Makefile")) else {
            let packed = fs::read_dir(&full).into_iter().flatten().flatten();
            let mut names = packed.filter_map(|entry| entry.file_name().into_string().ok());
            return Err(
                match names.find(|name| name.starts_with("linux-source-") && name.contains(".tar")) {
                    Some(name) => {
                        wrong(&format!("it has {name}; unpack that, and name the resulting folder"))
                    }
                    None => wrong("it has no Makefile"),
                },
            );
        };
        let number = |name: &str| {
            let lines = makefile.lines().take(20).filter_map(|line| line.split_once('='));
            let mut values = lines.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
            values.next().and_then(|value| value.parse().ok())
        };
        let (Some(version), Some(patch)) = (number("VERSION"), number("PATCHLEVEL")) else {
            return Err(wrong("its Makefile does not begin with VERSION and PATCHLEVEL"));
        };
        for file in ["Kconfig", "kernel/sched/core.c", "kernel/sched/fair.c", "scripts/kconfig/conf.c"] {
            if !full.join(file).is_file() {
                return Err(wrong(&format!("it has no {file}")));
            }
        }
        if (version, patch) < OLDEST {
            return Err(Error::new(format!(
                "{}: Linux {version}.{patch} is too old; trees of {KNOWN} are known to work",
                dir.display()
            )));
        }
        Ok(Tree { name: full.clone(), dir: full, release: [version, patch, number("SUBLEVEL").unwrap_or(0)] })
    }

    /// Its full path.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What the user calls it: its full path if it was not renamed.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// The same tree under the name of what it was made from, as its folder exists only for a while.
    #[must_use]
    pub fn named(self, name: PathBuf) -> Tree {
        Tree { name, ..self }
    }

    /// `6.12.117`.
    pub fn release(&self) -> String {
        let [version, patch, sub] = self.release;
        format!("{version}.{patch}.{sub}")
    }

    /// Version, patch level and sublevel.
    pub fn numbers(&self) -> [u32; 3] {
        self.release
    }

    /// The switches of its `kernel/sched/features.h` and their defaults. Of two defaults the last counts: the one without
    /// the configuration that the first is for (`CONFIG_PREEMPT_RT`), which libraries are not built with.
    pub fn features(&self) -> Vec<(String, bool)> {
        features(&fs::read_to_string(self.dir.join("kernel/sched/features.h")).unwrap_or_default())
    }

    /// Whether it has lazy preemption: releases from 6.13 on.
    pub fn has_preempt_lazy(&self) -> bool {
        self.mentions("kernel/Kconfig.preempt", "config PREEMPT_LAZY")
    }

    /// Whether it has cache-aware balancing in the form that its library can run.
    pub fn has_sched_cache(&self) -> bool {
        self.mentions("kernel/sched/fair.c", "sched_cache_exit_mm")
    }

    /// The preemption models that its library can run. A kernel with lazy preemption has only that and full, apart from
    /// the first ones that had it.
    pub fn preempt_models(&self) -> &'static [&'static str] {
        if !self.has_preempt_lazy() {
            &["none", "voluntary", "full"]
        } else if self.mentions("kernel/sched/core.c", "defined(CONFIG_ARCH_HAS_PREEMPT_LAZY))") {
            &["full", "lazy"]
        } else {
            &["none", "voluntary", "full", "lazy"]
        }
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        self.dir.join(file).is_file()
    }

    /// Whether one of its files contains a word: stable kernels backport changes, so the version is not enough.
    pub fn mentions(&self, file: &str, word: &str) -> bool {
        fs::read(self.dir.join(file)).is_ok_and(|text| String::from_utf8_lossy(&text).contains(word))
    }

    /// Names of the headers in one of its folders.
    pub(crate) fn headers(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.dir.join(folder)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".h")).collect();
        names.sort();
        names
    }
}

fn features(text: &str) -> Vec<(String, bool)> {
    let mut found: Vec<(String, bool)> = Vec::new();
    for line in text.lines() {
        let of = line.trim_start().strip_prefix("SCHED_FEAT(").and_then(|rest| rest.split_once(','));
        let Some((name, rest)) = of else { continue };
        let (name, on) = (name.trim(), rest.trim_start().starts_with("true"));
        match found.iter_mut().find(|(known, _)| known == name) {
            Some(known) => known.1 = on,
            None => found.push((name.to_string(), on)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("schedlab-tree-{}-{name}", std::process::id()));
        for (file, text) in files {
            let path = dir.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    const FILES: [(&str, &str); 4] = [
        ("Kconfig", ""),
        ("kernel/sched/core.c", ""),
        ("kernel/sched/fair.c", ""),
        ("scripts/kconfig/conf.c", ""),
    ];

    fn opened(name: &str, makefile: &str, files: &[(&str, &str)]) -> Result<String, String> {
        let mut all = files.to_vec();
        if !makefile.is_empty() {
            all.push(("Makefile", makefile));
        }
        let dir = folder(name, &all);
        let tree = Tree::open(&dir);
        fs::remove_dir_all(&dir).unwrap();
        tree.map(|tree| tree.release())
            .map_err(|error| error.to_string().replace(dir.to_str().unwrap(), "DIR"))
    }

    #[test]
    fn what_is_no_tree_is_reported() {
        let new = "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\n";
        let old = "VERSION = 4\nPATCHLEVEL = 19\nSUBLEVEL = 1\n";
        assert_eq!(opened("a", new, &FILES), Ok("7.3.4".into()));
        let error = |result: Result<String, String>| result.unwrap_err();
        assert_eq!(
            error(opened("b", old, &FILES)),
            "DIR: Linux 4.19 is too old; trees of 5.10, 6.1, 6.12, 7.2 and 7.3 are known to work"
        );
        assert_eq!(
            error(opened("c", new, &FILES[..2])),
            "DIR is not a kernel tree: it has no kernel/sched/fair.c"
        );
        assert_eq!(error(opened("d", "", &FILES)), "DIR is not a kernel tree: it has no Makefile");
        assert_eq!(
            error(opened("e", "", &[("linux-source-6.12.tar.xz", "")])),
            "DIR is not a kernel tree: it has linux-source-6.12.tar.xz; unpack that, and name the resulting folder"
        );
        assert_eq!(
            error(opened("f", "all:\n", &FILES)),
            "DIR is not a kernel tree: its Makefile does not begin with VERSION and PATCHLEVEL"
        );
    }

    /// 6.12, the first with lazy preemption, and 7.2.
    #[test]
    fn preemption_models_are_those_of_the_source() {
        let (config, code) = ("kernel/Kconfig.preempt", "kernel/sched/core.c");
        let models = |name: &str, files: &[(&str, &str)]| {
            let dir = folder(name, files);
            let models = Tree { name: dir.clone(), dir: dir.clone(), release: [7, 2, 0] }.preempt_models();
            fs::remove_dir_all(&dir).unwrap();
            models
        };
        let lazy = (config, "config PREEMPT_LAZY\n");
        let restricted = "# if !(defined(CONFIG_PREEMPT_RT) || defined(CONFIG_ARCH_HAS_PREEMPT_LAZY))\n";
        assert_eq!(models("m", &[(config, "config PREEMPT\n"), (code, "")]), ["none", "voluntary", "full"]);
        assert_eq!(models("n", &[lazy, (code, "")]), ["none", "voluntary", "full", "lazy"]);
        assert_eq!(models("o", &[lazy, (code, restricted)]), ["full", "lazy"]);
    }

    #[test]
    fn switches_have_the_default_of_a_kernel_that_is_not_for_real_time() {
        let text = "\
SCHED_FEAT(PLACE_LAG, true)
#ifdef HAVE_RT_PUSH_IPI
# ifdef CONFIG_PREEMPT_RT
SCHED_FEAT(RT_PUSH_IPI, true)
# else
SCHED_FEAT(RT_PUSH_IPI, false)
# endif
#endif
  SCHED_FEAT( NI_RATE ,true)
";
        let found: Vec<String> =
            features(text).into_iter().map(|(name, on)| format!("{name} {on}")).collect();
        assert_eq!(found, ["PLACE_LAG true", "RT_PUSH_IPI false", "NI_RATE true"]);
    }
}
