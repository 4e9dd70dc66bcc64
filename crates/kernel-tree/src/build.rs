//! From a tree to a library: configuration, objects, link.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::cache::{self, Built, Cache, Contents};
use crate::compile::{compile, kept, sources};
use crate::configure::configure;
use crate::link::link;
use crate::overlay;
use crate::tools::{Tools, run};
use crate::{Error, Tree};

/// One build.
pub(crate) struct Build<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) cache: &'a Cache,
    pub(crate) contents: Contents<'a>,
    pub(crate) tools: Tools,
    pub(crate) overlay: PathBuf,
    pub(crate) overlay_key: String,
    pub(crate) compiler_headers: PathBuf,
}

impl Cache {
    /// Builds the library of a tree, or finds it in the cache. `step` is called with each step that is carried out.
    ///
    /// # Errors
    /// A tool is missing, the tree cannot be configured, or it does not compile: the compiler's own message, with the
    /// file.
    pub fn build(&self, tree: &Tree, step: &mut dyn FnMut(&str)) -> Result<Built, Error> {
        let tools = Tools::find()?;
        let headers = run(Command::new(&tools.cc).arg("-print-file-name=include"), "the compiler's headers")?;
        // The configuration depends on the headers; the shim does not affect it.
        let machine = overlay::FILES.iter().filter(|(name, _)| !name.starts_with("shim/"));
        let machine: Vec<&[u8]> =
            machine.flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()]).collect();
        let all: Vec<&[u8]> =
            overlay::FILES.iter().flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()]).collect();
        let build = Build {
            tree,
            cache: self,
            contents: Contents::new(tree),
            tools,
            overlay: self.overlay(&cache::hash(&all)[..16], &overlay::FILES)?,
            overlay_key: cache::hash(&machine),
            compiler_headers: PathBuf::from(headers.trim()),
        };
        let config = configure(&build)?;
        let objects = objects(&build, &config, step)?;
        let mut parts: Vec<&[u8]> = objects.iter().map(|path| path.as_os_str().as_encoded_bytes()).collect();
        let script = overlay::FILES.iter().find(|(name, _)| *name == "shim/lab.lds.S");
        parts.push(script.map_or(b"", |(_, text)| text.as_bytes()));
        let key = cache::hash(&parts)[..16].to_string();
        let library = self.library_dir(&key).join("liblab.so");
        let built = Built { library, key, release: tree.release(), tree: tree.name().to_path_buf() };
        if built.library.is_file() {
            let about = built.library.with_file_name("about");
            fs::write(&about, cache::about(&built)).map_err(|error| Error::io("write it", &about, &error))?;
            return Ok(built);
        }
        step("link");
        let made = self.scratch()?;
        link(&build, &config, &objects, &made)?;
        let about = made.join("about");
        fs::write(&about, cache::about(&built)).map_err(|error| Error::io("write it", &about, &error))?;
        cache::finish(self, &made, &built)?;
        Ok(built)
    }
}

/// All objects, in the order of their names; those not in the cache are compiled, several at once.
fn objects(
    build: &Build<'_>,
    config: &std::path::Path,
    step: &mut dyn FnMut(&str),
) -> Result<Vec<PathBuf>, Error> {
    let mut names = sources(build);
    names.extend(overlay::SHIM.map(String::from));
    names.push("shim/bare.c".to_string());
    let found: Vec<Option<PathBuf>> = names.iter().map(|name| kept(build, config, name)).collect();
    let missing: Vec<usize> = (0..names.len()).filter(|&i| found[i].is_none()).collect();
    if !missing.is_empty() {
        step(&format!(
            "compile {} of {} files of Linux {}",
            missing.len(),
            names.len(),
            build.tree.release()
        ));
    }
    let done: Mutex<Vec<Option<Result<PathBuf, Error>>>> =
        Mutex::new(found.into_iter().map(|object| object.map(Ok)).collect());
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(missing.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&i) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if failed.load(Ordering::Relaxed) {
                        break;
                    }
                    let made = compile(build, config, &names[i]);
                    failed.fetch_or(made.is_err(), Ordering::Relaxed);
                    done.lock().expect("no thread fails here")[i] = Some(made);
                }
            });
        }
    });
    let done = done.into_inner().expect("no thread fails here");
    // The first failure is reported; later files may not have been started.
    if let Some(Err(error)) = done.iter().flatten().find(|made| made.is_err()) {
        return Err(error.clone());
    }
    done.into_iter().map(|made| made.expect("all were begun")).collect()
}
