//! Which of our kernels a tree is compared with.

use schedlab_kernel_tree::Tree;
use schedlab_sched::{Feature, Kernel, KernelError};

/// The newest of our kernels that is not newer than a tree, with the switches whose defaults are others in this tree:
/// stable releases change defaults too.
pub fn nearest(tree: &Tree) -> String {
    let preset = preset(tree);
    let mut name = preset.to_string();
    let Ok(rules) = prepared(preset) else { return name };
    for (feature, on) in tree.features() {
        let ours = Feature::TABLE.iter().find(|row| row.name == feature);
        if ours.is_some_and(|row| rules.has(row.feature) != on) {
            name += if on { "+" } else { "+NO_" };
            name += &feature;
        }
    }
    name
}

fn preset(tree: &Tree) -> &'static str {
    let release = tree.numbers();
    let mut names = Kernel::names().into_iter().rev();
    let not_newer = names.find(|name| {
        let mut numbers =
            name.trim_start_matches('v').split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        [0; 3].map(|_| numbers.next().unwrap_or(0)) <= release
    });
    not_newer.unwrap_or("v4.13")
}

/// A kernel with the settings of the library: full preemption, no slice timer, no cache-aware balancing.
///
/// # Errors
/// The kernel string cannot be parsed.
pub fn prepared(kernel: &str) -> Result<Kernel, KernelError> {
    let mut rules = Kernel::parse(kernel)?;
    for part in ["NO_HRTICK", "NO_HRTICK_DL", "NO_SCHED_CACHE", "preempt=full"] {
        rules.switch(part)?;
    }
    Ok(rules)
}
