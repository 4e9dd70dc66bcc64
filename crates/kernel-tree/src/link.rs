//! Links all objects, stubs for undefined symbols, and the sections whose bounds the kernel refers to.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;
use crate::build::Build;
use crate::compile::flags;
use crate::tools::run;

/// Symbols that the host's C library or the linker script provides.
const KNOWN: &[&str] = &[
    "getcontext",
    "makecontext",
    "swapcontext",
    "abort",
    "mmap",
    "munmap",
    "_GLOBAL_OFFSET_TABLE_",
    "memcpy",
    "memset",
    "memmove",
    "memcmp",
    "strlen",
    "__sched_class_highest",
    "__sched_class_lowest",
    "__begin_sched_classes",
    "__end_sched_classes",
    "__sched_text_start",
    "__sched_text_end",
    "__cpuidle_text_start",
    "__cpuidle_text_end",
    "__per_cpu_start",
    "__per_cpu_end",
    "__lab_early_start",
    "__lab_early_end",
    "__lab_vars_start",
    "__lab_vars_end",
];

/// Creates `liblab.so` in a folder.
pub(crate) fn link(build: &Build<'_>, config: &Path, objects: &[PathBuf], made: &Path) -> Result<(), Error> {
    let cc = &build.tools.cc;
    let all = made.join("all.o");
    run(Command::new("ld").args(["-r", "-o"]).arg(&all).args(objects), "linking the scheduler")?;
    let mut cpp = Command::new(cc);
    cpp.current_dir(build.tree.dir()).args(["-E", "-P"]).args(flags(build, config));
    cpp.args(["-D__ASSEMBLY__", "-DLINKER_SCRIPT", "-x", "assembler-with-cpp"]);
    let script = run(cpp.arg(build.overlay.join("shim/lab.lds.S")), "the linker script")?;
    let write = |name: &str, text: &str| {
        let path = made.join(name);
        fs::write(&path, text).map_err(|error| Error::io("write it", &path, &error))
    };
    write("lab.lds", &script)?;
    let symbols = run(Command::new("nm").arg("-u").arg(&all), "what is undefined")?;
    let undefined = symbols.lines().filter_map(|line| line.trim().strip_prefix("U "));
    let undefined = undefined.filter(|name| !KNOWN.contains(name));
    let mut stubs = String::from("void lab_missing(const char *name, const void *where);\n");
    for name in undefined {
        let _ = writeln!(
            stubs,
            "__attribute__((weak)) void {name}(void) {{ lab_missing(\"{name}\", __builtin_return_address(0)); }}"
        );
    }
    write("stubs.c", &stubs)?;
    let mut compile = Command::new(cc);
    compile.current_dir(made).args(["-O1", "-fPIC", "-w", "-fno-builtin", "-ffreestanding"]);
    compile.args(["-fasynchronous-unwind-tables", "-c", "-o", "stubs.o", "stubs.c"]);
    run(&mut compile, "stubs for what is undefined")?;
    write("lab.map", "{ global: lab_*; local: *; };\n")?;
    let mut link = Command::new(cc);
    link.current_dir(made).args(["-shared", "-o", "liblab.so", "all.o", "stubs.o"]);
    link.args(["-Wl,-T,lab.lds", "-Wl,-Bsymbolic", "-Wl,--version-script=lab.map", "-Wl,-z,notext"]);
    link.args(["-Wl,--no-warn-rwx-segments", "-Wl,-z,max-page-size=4096"]);
    run(&mut link, "linking the library")?;
    for name in ["all.o", "stubs.o", "lab.lds", "lab.map"] {
        let _ = fs::remove_file(made.join(name));
    }
    Ok(())
}
