//! Parses kernel strings and runs kernels: our rules, or the code of a kernel tree.

use schedlab_machine::Machine;
use schedlab_sched::Kernel;
use schedlab_sim::{Outcome, Simulation, took};
use schedlab_trace::Sink;
pub use schedlab_tree_sched::{Followed, Source};
use schedlab_tree_sched::{guarded, kernels, watched};

use crate::Error;

/// Prefix of a kernel string that names a tree.
pub const TREE: &str = kernels::PREFIX;

/// Reads a kernel string: `v6.12+NO_SIS_UTIL`, or `tree:DIR` with patches and switches. A tree is built if necessary;
/// `step` is called with each build step.
///
/// # Errors
/// A sentence that names the unknown part, or what is wrong with the tree.
pub fn kernel(text: &str, step: &mut dyn FnMut(&str)) -> Result<Kernel, Error> {
    if text.trim_start().starts_with(kernels::PREFIX) {
        return kernels::open(text, step).map_err(Error::new);
    }
    Kernel::parse(text).map_err(|error| Error::new(error.to_string()))
}

/// Whether the code of a tree decides, not our rules.
pub fn is_tree(kernel: &Kernel) -> bool {
    kernel.name.starts_with(kernels::PREFIX)
}

/// The identity of a tree's code, if a tree decides: its library and the switches set in it.
pub fn code(kernel: &Kernel) -> Option<String> {
    Some(kernels::of(&kernel.name)?.code())
}

/// The first two numbers of a kernel's release, whether rules or a tree decide: 6 and 12.
pub fn release(kernel: &Kernel) -> Option<(u32, u32)> {
    match kernels::of(&kernel.name).map(|tree| tree.release()) {
        Some([version, patch, _]) => Some((version, patch)),
        None => Kernel::version(&kernel.name),
    }
}

/// The kernel string of our rules nearest to a tree, if a tree decides.
pub fn nearest(kernel: &Kernel) -> Option<String> {
    Some(kernels::of(&kernel.name)?.nearest().name.clone())
}

/// Parses the string of a kernel whose rules are needed; a tree's code has no such rules. `why` completes the
/// sentence "... needs rules of ours".
///
/// # Errors
/// As [`kernel`], and a tree, naming the rules nearest to it.
pub fn rules(text: &str, why: &str) -> Result<Kernel, Error> {
    let kernel = kernel(text, &mut |_| {})?;
    match nearest(&kernel) {
        Some(near) => Err(Error::new(format!(
            "{}: {why} needs rules of ours, which the code of a tree does not say: the nearest are {near}, and \
             `schedlab kernel identify DIR` says which a tree has",
            kernel.name
        ))),
        None => Ok(kernel),
    }
}

/// How far our nearest rules followed the code of a tree in its last explained run.
pub fn followed(kernel: &Kernel) -> Option<Followed> {
    Some(kernels::of(&kernel.name)?.followed())
}

/// What trees have warned about since the last call, as sentences.
pub fn take_warnings() -> Vec<String> {
    kernels::take_warnings()
}

/// The functions, structures and macros that the patches of a tree change.
pub fn changes(kernel: &Kernel) -> Vec<String> {
    kernels::of(&kernel.name).map(|tree| tree.changes().to_vec()).unwrap_or_default()
}

/// Runs a simulation under its kernel.
///
/// # Errors
/// A machine that is too large for a library, or a kernel that cannot continue.
pub(crate) fn run(
    simulation: &Simulation<'_>,
    machine: &Machine,
    kernel: &Kernel,
    seed: u64,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let Some(tree) = kernels::of(&kernel.name) else { return Ok(simulation.run(sink)) };
    let run = || {
        let sched = tree.boot(&machine.topology, took(machine), seed)?;
        let heart = sched.heart();
        Ok::<_, String>(watched(&heart, || simulation.run_on(sched, sink)))
    };
    guarded(run).map_err(|fault| Error::new(fault.to_string()))?.map_err(Error::new)
}
