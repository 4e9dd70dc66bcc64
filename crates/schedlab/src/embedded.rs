//! Files that are built into the command: scenarios and published tables.

macro_rules! files {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../", $folder, "/", $name)))),*]
    };
}

const SCENARIOS: &[(&str, &str)] = files![
    "scenarios":
    "irq-capacity-barrier-quiet.toml",
    "irq-capacity-barrier.toml",
    "irq-capacity-hackbench-quiet.toml",
    "irq-capacity-hackbench.toml",
    "kthread-stack-ext4.toml",
    "kthread-stack-numa.toml",
    "kthread-stack-uma.toml",
    "load-avg-instances.toml",
    "load-avg-per-node-swapped.toml",
    "load-avg-per-node.toml",
    "numa-affinity-icelake.toml",
    "numa-affinity-icelake-unpinned.toml",
    "numa-affinity-zen3-unpinned.toml",
    "preempt-auto-batch-graph500.toml",
    "preempt-auto-batch-hashjoin.toml",
    "preempt-auto-batch-nas.toml",
    "preempt-auto-batch-xsbench.toml",
    "preempt-auto-hackbench-milan.toml",
    "preempt-auto-hackbench-power320.toml",
    "preempt-auto-hackbench-power96.toml",
    "preempt-auto-oltp-local.toml",
    "preempt-auto-oltp-remote.toml",
    "preempt-hackbench.toml",
    "sis-util.toml",
    "stream-pinned-numa.toml",
];

const PUBLISHED: &[(&str, &str)] = files![
    "published":
    "irq-capacity.toml",
    "kthread-stack.toml",
    "load-avg-per-node.toml",
    "numa-affinity.toml",
    "preempt-auto.toml",
];

/// The text of a scenario by its file name, with or without its ending.
pub fn embedded_scenario(name: &str) -> Option<&'static str> {
    let name = name.strip_suffix(".toml").unwrap_or(name);
    SCENARIOS.iter().find(|(known, _)| known.strip_suffix(".toml") == Some(name)).map(|(_, text)| *text)
}

/// The names of all scenarios that come with the project.
pub fn scenario_names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(name, _)| name.strip_suffix(".toml").unwrap_or(name))
}

/// File name and text of each published table, in the order of their tables.
pub(crate) fn embedded_published() -> &'static [(&'static str, &'static str)] {
    PUBLISHED
}
