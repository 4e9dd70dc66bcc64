//! Kernel strings that name a tree: `tree:DIR`, `tree:DIR@REV`, either followed by `+FILE.patch`, `+NAME` or `+NO_NAME`
//! of the tree's own features, `+NAME=VALUE` of its tunables, `+preempt=MODEL` of those that the tree has, and
//! `+rules=NAME` for our rules beside the tree.
//!
//! After a tree was opened, it is known by its string: a [`Kernel`] with that name runs its code.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use schedlab_kernel_tree::{Library, Tree};
use schedlab_sched::{Kernel, Took, Tunables};
use schedlab_topology::Topology;

use crate::source::{Parts, Source};
use crate::{Followed, Followers, TreeSched, Warned, tunables};

/// Prefix of such a string.
pub const PREFIX: &str = "tree:";

/// A tree that was opened.
#[derive(Debug)]
pub struct TreeKernel {
    library: Library,
    release: [u32; 3],
    nearest: Kernel,
    features: Vec<(String, bool)>,
    tunables: Vec<&'static str>,
    followed: Followers,
    warned: Warned,
    changes: Vec<String>,
}

static OPEN: Mutex<BTreeMap<String, Arc<TreeKernel>>> = Mutex::new(BTreeMap::new());

/// Parses a kernel string that names a tree, and builds its library if necessary. `step` is called with each build
/// step. The kernel has the rules nearest to the tree, and the string as its name.
///
/// # Errors
/// The folder is not a kernel tree, a patch does not apply, the source does not compile, or a switch does not exist.
pub fn open(text: &str, step: &mut dyn FnMut(&str)) -> Result<Kernel, String> {
    let text = text.trim();
    if let Some(known) = of(text) {
        return Ok(Kernel { name: text.to_string(), ..known.nearest.clone() });
    }
    let parts = Parts::of(text);
    let source = Source::of(&parts)?;
    let tree = &source.tree;
    let mut nearest = nearest(tree);
    let known: Vec<String> = tree.features().into_iter().map(|(name, _)| name).collect();
    let (mut features, mut tunables) = (Vec::new(), Vec::new());
    for part in parts.switches {
        if let Some(model) = part.strip_prefix("preempt=") {
            set_preempt(&mut nearest, tree, model)?;
            continue;
        }
        if let Some(part) = part.strip_prefix("rules=") {
            nearest.switch(part).map_err(|error| error.to_string())?;
            nearest.name += &format!("+{part}");
            continue;
        }
        if part.contains('=') {
            tunables.push(tunables::parse(part, &mut nearest)?);
            continue;
        }
        let (name, on) = part.strip_prefix("NO_").map_or((part, true), |name| (name, false));
        if name == "SCHED_CACHE" && tree.has_sched_cache() {
            nearest.switch(part).map_err(|error| error.to_string())?;
            nearest.name += &format!("+{part}");
            continue;
        }
        if !known.iter().any(|known| known == name) {
            return Err(format!(
                "this tree has no feature \"{part}\": those of its kernel/sched/features.h can be named, a FILE.patch, \
                 a tunable as base_slice_ns=3000000{}, and preempt={}. It has {}",
                if tree.has_sched_cache() { ", NO_SCHED_CACHE" } else { "" },
                or(tree.preempt_models()),
                known.join(", ")
            ));
        }
        // Our rules follow if they have the same switch; they need not have it.
        let _ = nearest.switch(part);
        features.push((name.to_string(), on));
    }
    let built = source.build(step).map_err(|error| error.to_string())?;
    let library = Library::load(&built).map_err(|error| error.to_string())?;
    let tree = Arc::new(TreeKernel {
        library,
        release: tree.numbers(),
        nearest: nearest.clone(),
        features,
        tunables,
        followed: Followers::default(),
        warned: Warned::default(),
        changes: source.changes().to_vec(),
    });
    OPEN.lock().expect("nobody fails here").insert(text.to_string(), tree);
    Ok(Kernel { name: text.to_string(), ..nearest })
}

/// The tree with this kernel name, if it was opened.
pub fn of(name: &str) -> Option<Arc<TreeKernel>> {
    if !name.starts_with(PREFIX) {
        return None;
    }
    OPEN.lock().expect("nobody fails here").get(name).cloned()
}

/// What the trees that were opened have warned about since the last call: a sentence for each tree and place.
pub fn take_warnings() -> Vec<String> {
    let open = OPEN.lock().expect("nobody fails here");
    let taken = open.iter().map(|(name, tree)| {
        let warned = std::mem::take(&mut *tree.warned.lock().expect("nobody fails here"));
        (name, warned)
    });
    let sentence = |name: &String, place: &String, runs: u64| {
        let runs = if runs == 1 { "one run".to_string() } else { format!("{runs} runs") };
        format!("{name}: a WARN() of the kernel at {place}, the first in {runs}")
    };
    taken
        .flat_map(|(name, warned)| {
            warned.iter().map(|(place, &runs)| sentence(name, place, runs)).collect::<Vec<_>>()
        })
        .collect()
}

impl TreeKernel {
    /// A scheduler of this kernel for a machine; `seed` seeds the kernel's random numbers.
    ///
    /// # Errors
    /// The machine is too large.
    pub fn boot(&self, topology: &Topology, took: Took, seed: u64) -> Result<TreeSched, String> {
        let mut sched = TreeSched::boot(
            &self.library,
            topology,
            &self.nearest,
            &self.features,
            &self.tunables,
            took,
            seed,
        )?;
        sched.followed = self.followed.clone();
        sched.warned = self.warned.clone();
        Ok(sched)
    }

    /// The numbers of its release: 6, 12, 117.
    pub fn release(&self) -> [u32; 3] {
        self.release
    }

    /// How far our rules followed in the last explained run.
    pub fn followed(&self) -> Followed {
        self.followed.lock().expect("nobody fails here").clone()
    }

    /// The functions, structures and macros that its patches change.
    pub fn changes(&self) -> &[String] {
        &self.changes
    }

    /// The identity of the library's content, and the switches set in it.
    pub fn code(&self) -> String {
        let switches =
            self.features.iter().map(|(name, on)| format!("+{}{name}", if *on { "" } else { "NO_" }));
        let set = |name: &&str| {
            let tunable = Tunables::named(name).expect("it was read by this name");
            format!("+{name}={}", (tunable.get)(&self.nearest.tunables))
        };
        let tunables: String = self.tunables.iter().map(set).collect();
        self.library.key() + &switches.collect::<String>() + &tunables
    }

    /// Our nearest rules.
    pub fn nearest(&self) -> &Kernel {
        &self.nearest
    }
}

/// Our rules nearest to a tree, with the settings of the library.
fn nearest(tree: &Tree) -> Kernel {
    let mut name = schedlab_lockstep::nearest(tree);
    let mut kernel = Kernel::parse(&name).expect("a name that is known");
    let cache = if tree.has_sched_cache() { "SCHED_CACHE" } else { "NO_SCHED_CACHE" };
    for part in ["NO_IRQ_TIME_ACCOUNTING", "NO_HRTICK", "NO_HRTICK_DL", cache] {
        if kernel.is_turned_by(part) && kernel.switch(part).is_ok() {
            name += &format!("+{part}");
        }
    }
    let mut kernel = Kernel { name, ..kernel };
    let models = tree.preempt_models();
    if !models.contains(&kernel.preempt.model.name()) {
        let last = models[models.len() - 1];
        set_preempt(&mut kernel, tree, last).expect("one of its models");
    }
    kernel
}

/// Sets the preemption model of our rules nearest to a tree, and so of the tree.
fn set_preempt(nearest: &mut Kernel, tree: &Tree, model: &str) -> Result<(), String> {
    let part = format!("preempt={model}");
    let mut turned = nearest.clone();
    turned.switch(&part).map_err(|error| error.to_string())?;
    let models = tree.preempt_models();
    if !models.contains(&model) {
        return Err(format!(
            "the library of Linux {} cannot run {part}, only preempt={}; our rules can: {}+{part}",
            tree.release(),
            or(models),
            nearest.name.split('+').next().unwrap_or_default(),
        ));
    }
    if turned != *nearest {
        turned.name += &format!("+{part}");
        *nearest = turned;
    }
    Ok(())
}

/// `a, b or c`.
fn or(names: &[&str]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
