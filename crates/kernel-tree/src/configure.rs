//! The configuration: the tree's own Kconfig with our architecture, and the headers that a build of the tree generates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::build::Build;
use crate::compile::{dependencies, flags};
use crate::tools::run;
use crate::{Error, overlay};

/// Builds the tree's `conf` outside the tree.
pub(crate) fn conf(build: &Build<'_>) -> Result<PathBuf, Error> {
    let key = crate::cache::hash(&[build.tools.cc_version.as_bytes()]);
    if let Some(done) = build.cache.find("conf", &key, &build.contents) {
        return Ok(done.join("conf"));
    }
    let tree = build.tree.dir();
    let made = build.cache.scratch()?;
    let kconfig = tree.join("scripts/kconfig");
    let mut flex = Command::new("flex");
    flex.current_dir(&made).arg("-olexer.lex.c").arg("-L").arg(kconfig.join("lexer.l"));
    run(&mut flex, "Kconfig's lexer")?;
    let mut bison = Command::new("bison");
    bison.current_dir(&made).args(["-oparser.tab.c", "--defines=parser.tab.h", "-t", "-l"]);
    run(bison.arg(kconfig.join("parser.y")), "Kconfig's parser")?;
    let parser = fs::read_to_string(kconfig.join("parser.y")).unwrap_or_default();
    // Old trees include some of these files in the parser.
    let apart = |name: &&&str| {
        !parser.contains(&format!("include \"{name}.c\"")) && kconfig.join(format!("{name}.c")).is_file()
    };
    let mut cc = Command::new(&build.tools.cc);
    cc.current_dir(&made).args(["-O1", "-w", "-D_GNU_SOURCE", "-I.", "-o", "conf"]);
    cc.arg("-I").arg(tree.join("scripts/include")).arg("-I").arg(&kconfig);
    for name in ["conf", "confdata", "expr", "menu", "preprocess", "symbol", "util"].iter().filter(apart) {
        cc.arg(kconfig.join(format!("{name}.c")));
    }
    run(cc.args(["lexer.lex.c", "parser.tab.c"]), "Kconfig")?;
    let sources = fs::read_dir(&kconfig).into_iter().flatten().flatten();
    let names = sources.filter_map(|entry| entry.file_name().into_string().ok());
    let read = names.filter(|name| [".c", ".h", ".l", ".y"].iter().any(|end| name.ends_with(end)));
    let read = read.map(|name| format!("scripts/kconfig/{name}")).collect();
    Ok(build.cache.keep("conf", &key, &build.contents, read, &made)?.join("conf"))
}

/// Creates the configuration and its headers: a folder with `.config`, `include` and the wrappers in `asm`.
pub(crate) fn configure(build: &Build<'_>) -> Result<PathBuf, Error> {
    let (tree, cache) = (build.tree, build.cache);
    let generic = [tree.headers("include/asm-generic"), tree.headers("include/uapi/asm-generic")].concat();
    let key = crate::cache::hash(&[
        build.overlay_key.as_bytes(),
        build.tools.cc_version.as_bytes(),
        tree.release().as_bytes(),
        generic.join(" ").as_bytes(),
    ]);
    if let Some(done) = cache.find("config", &key, &build.contents) {
        return Ok(done);
    }
    let conf = conf(build)?;
    let made = cache.scratch()?;
    let folder = |name: &str| {
        let dir = made.join(name);
        fs::create_dir_all(&dir).map_err(|error| Error::io("make it", &dir, &error)).map(|()| dir)
    };
    folder("include/config")?;
    let generated = folder("include/generated")?;
    let uapi = folder("include/generated/uapi/linux")?;
    let wrappers = folder("asm/asm")?;
    let write = |dir: &Path, name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).map_err(|error| Error::io("write it", &path, &error))
    };
    run_conf(build, &conf, &made)?;
    // Headers that the overlay lacks come from asm-generic, as in kbuild.
    for name in generic.iter().filter(|name| !overlay::has_header(name)) {
        write(&wrappers, name, &format!("#include <asm-generic/{name}>\n"))?;
    }
    let [version, patch, sub] = tree.numbers();
    let code = version * 65536 + patch * 256 + sub.min(255);
    write(
        &uapi,
        "version.h",
        &format!(
            "#define LINUX_VERSION_CODE {code}\n\
             #define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + ((c) > 255 ? 255 : (c)))\n\
             #define LINUX_VERSION_MAJOR {version}\n#define LINUX_VERSION_PATCHLEVEL {patch}\n\
             #define LINUX_VERSION_SUBLEVEL {sub}\n"
        ),
    )?;
    write(&generated, "utsrelease.h", &format!("#define UTS_RELEASE \"{}\"\n", tree.release()))?;
    write(&generated, "asm-offsets.h", "")?;
    write(&generated, "timeconst.h", &time_constants(build, &made)?)?;
    let mut read = vec!["Makefile".to_string(), "kernel/time/timeconst.bc".to_string()];
    for (source, header) in [("kernel/bounds.c", "bounds.h"), ("kernel/sched/rq-offsets.c", "rq-offsets.h")] {
        if tree.has(source) {
            let (text, files) = constants(build, &made, source)?;
            write(&generated, header, &text)?;
            read.extend(files);
        }
    }
    let command = fs::read_to_string(made.join("include/config/auto.conf.cmd")).unwrap_or_default();
    let kconfig = command.split_whitespace().filter(|word| word.contains("Kconfig"));
    let root = format!("{}/", tree.dir().display());
    read.extend(
        kconfig.map(|file| file.strip_prefix(&root).unwrap_or(file).trim_end_matches(':').to_string()),
    );
    cache.keep("config", &key, &build.contents, read, &made)
}

fn run_conf(build: &Build<'_>, conf: &Path, made: &Path) -> Result<(), Error> {
    let tree = build.tree.dir();
    let cc = &build.tools.cc;
    for mode in ["--allnoconfig", "--syncconfig"] {
        let mut command = Command::new(conf);
        command.current_dir(made).arg(mode).arg(tree.join("Kconfig"));
        command.env("srctree", tree).env("SRCARCH", from_arch(tree, &build.overlay.join("arch")));
        command
            .env("ARCH", "schedlab")
            .env("CC", cc)
            .env("HOSTCC", cc)
            .env("CC_VERSION_TEXT", &build.tools.cc_version);
        for (name, value) in [
            ("LD", "ld"),
            ("AR", "ar"),
            ("NM", "nm"),
            ("OBJCOPY", "objcopy"),
            ("READELF", "readelf"),
            ("STRIP", "strip"),
            ("HOSTCXX", "false"),
            ("RUSTC", "false"),
            ("BINDGEN", "false"),
            ("PAHOLE", "false"),
            ("CONFIG_SHELL", "/bin/sh"),
            ("CLANG_FLAGS", ""),
            ("KBUILD_KCONFIG", ""),
            ("RUSTC_BOOTSTRAP", "1"),
            ("RUSTC_VERSION_TEXT", ""),
            ("RUSTC_VERSION", "0"),
            ("RUSTC_LLVM_VERSION", "0"),
            ("PAHOLE_VERSION", "0"),
            ("KCONFIG_CONFIG", ".config"),
            ("KCONFIG_AUTOCONFIG", "include/config/auto.conf"),
            ("KCONFIG_AUTOHEADER", "include/generated/autoconf.h"),
            ("KCONFIG_RUSTCCFG", "include/generated/rustc_cfg"),
        ] {
            command.env(name, value);
        }
        command.env("KERNELVERSION", build.tree.release());
        command.env("KCONFIG_ALLCONFIG", build.overlay.join("arch/schedlab.config"));
        run(&mut command, "the tree's configuration")?;
    }
    Ok(())
}

/// The path of our architecture's folder relative to the tree's `arch`, so that Kconfig finds it outside the tree. In the
/// copy of a patched tree `arch` is a link, and `..` leads up from where it points.
fn from_arch(tree: &Path, ours: &Path) -> PathBuf {
    let arch = tree.join("arch");
    let ups = arch.canonicalize().unwrap_or(arch).components().count() - 1;
    let mut path: PathBuf = std::iter::repeat_n("..", ups).collect();
    path.extend(ours.components().skip(1));
    path
}

fn time_constants(build: &Build<'_>, made: &Path) -> Result<String, Error> {
    let config = fs::read_to_string(made.join(".config")).unwrap_or_default();
    let hz = config.lines().find_map(|line| line.strip_prefix("CONFIG_HZ=")).unwrap_or("250");
    let script = build.tree.dir().join("kernel/time/timeconst.bc");
    let mut command = Command::new("sh");
    command.args(["-c", "echo \"$1\" | bc -q \"$2\"", "sh", hz]).arg(script);
    run(&mut command, "constants of time")
}

/// Constants that only the compiler knows, extracted from its assembly as in the kernel's own build.
fn constants(build: &Build<'_>, made: &Path, source: &str) -> Result<(String, Vec<String>), Error> {
    let (assembly, read) = (made.join("constants.s"), made.join("constants.d"));
    let mut command = Command::new(&build.tools.cc);
    command.current_dir(build.tree.dir()).args(flags(build, made)).args(["-S", "-fno-pic", "-MD", "-MF"]);
    command.arg(&read).arg("-o").arg(&assembly).arg(source);
    run(&mut command, source)?;
    let text = fs::read_to_string(&assembly).map_err(|error| Error::io("read it", &assembly, &error))?;
    let mut header = String::new();
    for line in text.lines().filter(|line| line.trim_start().starts_with(".ascii")) {
        let Some((_, marked)) = line.split_once("\"->") else { continue };
        let mut words = marked.split(['"', ' ']);
        if let (Some(name), Some(value)) = (words.next().filter(|name| !name.is_empty()), words.next()) {
            header += &format!("#define {name} {}\n", value.trim_start_matches(['$', '#']));
        }
    }
    Ok((header, dependencies(&read)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_architecture_is_found_from_a_tree_and_from_a_copy_that_links_to_it() {
        let folder = std::env::temp_dir().join(format!("schedlab-from-arch-{}", std::process::id()));
        let (tree, copy, ours) = (folder.join("a/deep/tree"), folder.join("copy"), folder.join("ours"));
        for made in [&tree.join("arch"), &copy, &ours] {
            fs::create_dir_all(made).unwrap();
        }
        std::os::unix::fs::symlink(tree.join("arch"), copy.join("arch")).unwrap();
        fs::write(ours.join("Kconfig"), "").unwrap();
        for tree in [&tree, &copy] {
            let found = tree.join("arch").join(from_arch(tree, &ours)).join("Kconfig");
            assert!(found.exists(), "{}", found.display());
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
