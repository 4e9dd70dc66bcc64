//! Which of our kernels a tree is compared with.

use schedlab_kernel_tree::Tree;
use schedlab_sched::{Kernel, KernelError};

/// The newest of our kernels that is not newer than a tree.
pub fn nearest(tree: &Tree) -> &'static str {
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
    for part in ["NO_HRTICK", "NO_SCHED_CACHE", "preempt=full"] {
        rules.switch(part)?;
    }
    Ok(rules)
}
