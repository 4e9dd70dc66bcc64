//! Compiles the files that are needed, each only if something that it includes has changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::build::Build;
use crate::cache::hash;
use crate::tools::run;
use crate::{Error, overlay};

/// Files of the tree: all of the scheduler, and the code it calls that is worth compiling unchanged.
const SOURCES: [&str; 27] = [
    "kernel/sched/fair.c",
    "kernel/sched/core.c",
    "kernel/sched/build_policy.c",
    "kernel/sched/build_utility.c",
    "kernel/time/hrtimer.c",
    "kernel/smp.c",
    "kernel/stop_machine.c",
    "kernel/irq_work.c",
    "init/init_task.c",
    "lib/cpumask.c",
    "lib/find_bit.c",
    "lib/bitmap.c",
    "lib/rbtree.c",
    "lib/plist.c",
    "lib/timerqueue.c",
    "lib/llist.c",
    "lib/hweight.c",
    "lib/sort.c",
    "lib/string.c",
    "lib/vsprintf.c",
    "lib/ctype.c",
    "lib/kstrtox.c",
    "lib/bsearch.c",
    "lib/math/div64.c",
    "lib/math/gcd.c",
    "lib/math/int_sqrt.c",
    "kernel/time/time.c",
];

/// Before 5.18 there is no `build_policy.c` that includes these.
const APART: [&str; 16] = [
    "rt",
    "deadline",
    "idle",
    "stop_task",
    "topology",
    "pelt",
    "loadavg",
    "clock",
    "cputime",
    "completion",
    "swait",
    "wait",
    "wait_bit",
    "cpupri",
    "cpudeadline",
    "isolation",
];

/// The files of a tree that are compiled.
pub(crate) fn sources(build: &Build<'_>) -> Vec<String> {
    let mut all: Vec<String> = SOURCES.map(String::from).into();
    if !build.tree.has("kernel/sched/build_policy.c") {
        all.extend(APART.map(|name| format!("kernel/sched/{name}.c")));
    }
    all.retain(|file| build.tree.has(file));
    all
}

/// The flags of kbuild, as far as they matter; the working directory is the tree.
pub(crate) fn flags(build: &Build<'_>, config: &Path) -> Vec<String> {
    let at = |dir: PathBuf| format!("-I{}", dir.display());
    let mut flags: Vec<String> = vec!["-nostdinc".into()];
    flags.extend(["-isystem".into(), build.compiler_headers.display().to_string()]);
    flags.push(at(build.overlay.join("asm")));
    flags.push(at(config.join("asm")));
    flags.push(at(config.join("include")));
    flags.push("-Iinclude".into());
    flags.push(at(config.join("include/generated/uapi")));
    flags.push("-Iinclude/uapi".into());
    for header in ["compiler-version.h", "kconfig.h", "compiler_types.h"] {
        let header = format!("include/linux/{header}");
        if build.tree.has(&header) {
            flags.extend(["-include".into(), header]);
        }
    }
    flags.extend(plain_flags(build));
    flags
}

/// The flags that contain no paths. The preemption model is chosen by keys, but not by Kconfig's word for that, which
/// would want code that patches itself.
fn plain_flags(build: &Build<'_>) -> Vec<String> {
    let plain = "-D__KERNEL__ -std=gnu11 -O2 -g1 -fPIC -fno-strict-aliasing -fno-common -fshort-wchar -fno-strict-overflow \
        -fno-builtin -ffreestanding -fno-delete-null-pointer-checks -fms-extensions -fno-stack-protector -fcf-protection=none \
        -fasynchronous-unwind-tables -Werror=implicit-function-declaration -w -D__KBUILD_MODNAME=lab \
        -DCONFIG_HAVE_PREEMPT_DYNAMIC_KEY=1";
    let mut flags: Vec<String> = plain.split_whitespace().map(String::from).collect();
    for name in ["KBUILD_MODFILE", "KBUILD_MODNAME", "KBUILD_BASENAME"] {
        flags.push(format!("-D{name}=\"lab\""));
    }
    // Stable kernels backport changes, so the tree's content is checked instead of its version.
    for (name, file, word) in [
        ("LAB_SET_CPUS_ALLOWED_FORCE", "include/linux/sched.h", "set_cpus_allowed_force"),
        ("LAB_SCHED_CGROUP_FORK", "include/linux/sched/task.h", "sched_cgroup_fork"),
        ("LAB_SERVER_IDLE", "include/linux/sched.h", "dl_defer_idle"),
        ("LAB_ZERO_VRUNTIME", "kernel/sched/sched.h", "zero_vruntime"),
        ("LAB_SCHED_CACHE", "kernel/sched/fair.c", "sched_cache_exit_mm"),
        ("LAB_OVERLOADED", "kernel/sched/sched.h", "get_rd_overloaded"),
    ] {
        if build.tree.mentions(file, word) {
            flags.push(format!("-D{name}"));
        }
    }
    flags
}

/// The flags of one file alone.
fn own_flags(source: &str) -> &'static [&'static str] {
    match source {
        // It measures its searches and newidle passes by the clock.
        "kernel/sched/fair.c" => &["-include", "asm/fair_clock.h"],
        _ => &[],
    }
}

/// The cache key of an object.
fn key(build: &Build<'_>, config: &Path, source: &str) -> String {
    let config_name = config.file_name().unwrap_or_default().to_string_lossy();
    let plain = plain_flags(build).join(" ");
    let mut key = vec![config_name.as_bytes(), source.as_bytes(), plain.as_bytes()];
    key.extend(own_flags(source).iter().map(|flag| flag.as_bytes()));
    let ours = [source, "shim/shim.h", "shim/lab.h"];
    let shim = overlay::FILES.iter().filter(|(name, _)| source.starts_with("shim/") && ours.contains(name));
    key.extend(shim.map(|(_, text)| text.as_bytes()));
    hash(&key)
}

/// The object of a file, if it is in the cache.
pub(crate) fn kept(build: &Build<'_>, config: &Path, source: &str) -> Option<PathBuf> {
    let done = build.cache.find("object", &key(build, config, source), &build.contents)?;
    Some(done.join("o.o"))
}

/// Compiles one file: of the tree, or of the overlay if its name begins with `shim/`.
pub(crate) fn compile(build: &Build<'_>, config: &Path, source: &str) -> Result<PathBuf, Error> {
    let made = build.cache.scratch()?;
    let mut command = Command::new(&build.tools.cc);
    command.current_dir(build.tree.dir());
    if source == "shim/bare.c" {
        command.args([
            "-O2",
            "-fPIC",
            "-w",
            "-fno-builtin",
            "-ffreestanding",
            "-fasynchronous-unwind-tables",
        ]);
    } else {
        command.args(flags(build, config));
        command.arg(format!("-fdebug-prefix-map={}=.", build.tree.dir().display()));
        command.args(["-Ikernel/sched", "-MD", "-MF"]).arg(made.join("o.d"));
        command.args(own_flags(source));
    }
    command.args(["-c", "-o"]).arg(made.join("o.o"));
    match source.starts_with("shim/") {
        true => command.arg(build.overlay.join(source)),
        false => command.arg(source),
    };
    if let Err(error) = run(&mut command, source) {
        let _ = fs::remove_dir_all(&made);
        return Err(error);
    }
    let read = if made.join("o.d").is_file() { dependencies(&made.join("o.d"))? } else { Vec::new() };
    Ok(build.cache.keep("object", &key(build, config, source), &build.contents, read, &made)?.join("o.o"))
}

/// The files of the tree in a compiler's dependency list: those with relative names.
pub(crate) fn dependencies(list: &Path) -> Result<Vec<String>, Error> {
    let text = fs::read_to_string(list).map_err(|error| Error::io("read it", list, &error))?;
    let words = text
        .split_whitespace()
        .filter(|word| *word != "\\" && !word.ends_with(':') && !word.starts_with('/'));
    Ok(words.map(String::from).collect())
}
