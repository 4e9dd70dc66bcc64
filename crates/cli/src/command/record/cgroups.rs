//! The settings of each control group: shares, quotas, CPUs.

use super::host::Host;

/// Files of a group, of version 2 and of version 1.
const FILES: [&str; 13] = [
    "cpu.weight",
    "cpu.max",
    "cpu.max.burst",
    "cpu.idle",
    "cpu.uclamp.min",
    "cpu.uclamp.max",
    "cpuset.cpus",
    "cpuset.cpus.effective",
    "cpuset.cpus.partition",
    "cpu.shares",
    "cpu.cfs_quota_us",
    "cpu.cfs_period_us",
    "cpu.cfs_burst_us",
];

/// Maximum depth of nested groups.
const DEPTH_MAX: usize = 32;

/// A line for each file: its path below the mount point, and its text.
pub fn cgroups(host: &Host) -> String {
    let has = |options: &str, controller: &str| options.split(',').any(|option| option == controller);
    let mut lines = String::new();
    for (place, kind, options) in host.mounts() {
        if kind == "cgroup2" || kind == "cgroup" && (has(&options, "cpu") || has(&options, "cpuset")) {
            walk(host, &place, "", DEPTH_MAX, &mut lines);
        }
    }
    lines
}

fn walk(host: &Host, place: &str, group: &str, depth: usize, lines: &mut String) {
    for file in FILES {
        if let Some(text) = host.text(&format!("{place}{group}/{file}")) {
            *lines += &format!("{group}/{file} {text}\n").replace("\\x20", " ");
        }
    }
    for name in host.names(&format!("{place}{group}")) {
        let below = format!("{group}/{name}");
        if depth > 0 && host.path(&format!("{place}{below}")).is_dir() {
            walk(host, place, &below, depth - 1, lines);
        }
    }
}
