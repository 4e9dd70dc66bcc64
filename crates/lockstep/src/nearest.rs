//! Which of our kernels a tree is compared with.

use schedlab_kernel_tree::Tree;
use schedlab_sched::{Kernel, KernelError};

/// Changes that stable releases take over from later ones, or do without for a while: a file, a phrase in it, and the
/// switch that follows. Their version does not say which they have.
const BACKPORTS: [(&str, &str, &str); 3] = [
    ("kernel/sched/sched.h", "zero_vruntime", "AVG_REFERENCE=zero_vruntime"),
    ("kernel/sched/core.c", "prev_steal_time_rq = prev_steal", "NO_STEAL_CATCHES_UP"),
    // 7.2.12; in 7.2.13 no call looks whether the class became a higher one.
    ("kernel/sched/core.c", "if (sched_class_above(p->sched_class, ctx->class))", "NO_CLASS_CHANGE_ASKS"),
];

/// The newest of our kernels that is not newer than a tree, with the changes that the tree has taken over, and with the
/// switches whose defaults are others in this tree: stable releases change defaults too.
pub fn nearest(tree: &Tree) -> String {
    let preset = preset(tree);
    let mut name = preset.to_string();
    let Ok(mut rules) = prepared(preset) else { return name };
    let found = BACKPORTS.iter().filter(|(file, phrase, _)| tree.mentions(file, phrase));
    let mut parts: Vec<String> = found.map(|(.., part)| part.to_string()).collect();
    parts.extend(tree.features().into_iter().map(|(name, on)| if on { name } else { format!("NO_{name}") }));
    for part in parts {
        // Most are so already, and our rules do not have every switch.
        if rules.is_turned_by(&part) && rules.switch(&part).is_ok() {
            name += &format!("+{part}");
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
