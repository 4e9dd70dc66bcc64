//! What a run contains besides running and sleeping.

use std::fmt;
use std::str::FromStr;

use schedlab_kernel_tree::Tree;

/// Loads that are not among "all": three change a setting of the whole run, hotplug stops kernels beside deadline tasks, and
/// starving takes long.
const APART: [&str; 5] = ["lazy", "hrtick", "hotplug", "cache", "starve"];

/// Loads that do nothing without another.
const NEEDS: [(&str, &str); 5] = [
    ("shares", "groups"),
    ("quota", "groups"),
    ("idle-groups", "groups"),
    ("cache", "user"),
    ("starve", "rt"),
];

/// Names of loads, and what each adds.
pub const LOADS: [(&str, &str); 25] = [
    ("nohz", "idle CPUs stop their ticks and others balance for them"),
    ("sync", "wake-ups with the sync flag"),
    ("irq", "wake-ups from interrupts"),
    ("yield", "sched_yield()"),
    ("exit", "tasks that end"),
    ("kthread", "kernel threads, some of them bound to a CPU"),
    ("nice", "nice values that change"),
    ("affinity", "masks that change"),
    ("groups", "four groups, nested, and tasks that move between them"),
    ("shares", "groups whose shares change"),
    ("quota", "groups with a quota"),
    ("idle-groups", "groups that become idle (cpu.idle) and stop being so"),
    ("slice", "tasks that ask for a slice"),
    ("freq", "clock rates that change"),
    ("batch", "SCHED_BATCH and SCHED_IDLE"),
    ("rt", "SCHED_FIFO and SCHED_RR"),
    (
        "starve",
        "real-time tasks that keep fair ones waiting for one to two seconds: RT throttling and the fair server",
    ),
    ("deadline", "SCHED_DEADLINE"),
    (
        "user",
        "tasks that return to user mode, and do what waits for that: leaving their queue without quota (from 6.18 on)",
    ),
    ("exec", "tasks that execute another program, and are moved for that"),
    ("steal", "time that a hypervisor takes from CPUs"),
    ("hotplug", "CPUs that go offline and come back"),
    ("lazy", "preempt=lazy, and CPUs that honour lazy requests (from 6.13 on)"),
    ("hrtick", "slices and budgets end by a timer (HRTICK, HRTICK_DL)"),
    ("cache", "processes of several threads, and cache-aware balancing (SCHED_CACHE, from 7.2 on)"),
];

/// A set of loads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loads(Vec<&'static str>);

impl Loads {
    /// Whether a load is included.
    pub fn has(&self, name: &str) -> bool {
        debug_assert!(LOADS.iter().any(|(known, _)| *known == name), "{name}");
        self.0.contains(&name)
    }

    /// Whether a tree has what the loads need.
    ///
    /// # Errors
    /// A sentence that names what it lacks.
    pub fn fit(&self, tree: &Tree) -> Result<(), String> {
        if self.has("lazy") && !tree.has_preempt_lazy() {
            return Err(format!(
                "Linux {} has no lazy preemption, so there is no load lazy for it",
                tree.release()
            ));
        }
        if self.has("cache") && !tree.has_sched_cache() {
            return Err(format!(
                "Linux {} has no cache-aware balancing, so there is no load cache for it",
                tree.release()
            ));
        }
        Ok(())
    }

    /// Each load alone, and the plain run.
    pub fn each() -> Vec<Loads> {
        let mut all = vec![Loads::default()];
        all.extend(LOADS.iter().map(|(name, _)| Loads(vec![name])));
        all
    }
}

impl fmt::Display for Loads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("plain") } else { f.write_str(&self.0.join(",")) }
    }
}

impl FromStr for Loads {
    type Err = String;

    fn from_str(text: &str) -> Result<Loads, String> {
        let mut loads = Loads::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty() && *part != "plain") {
            if part == "all" {
                let all = LOADS.iter().map(|(name, _)| *name);
                loads.0 = all.filter(|name| !APART.contains(name) || loads.has(name)).collect();
                continue;
            }
            let Some((name, _)) = LOADS.iter().find(|(name, _)| *name == part) else {
                let names: Vec<&str> = LOADS.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "there is no load \"{part}\"; known are plain, all, {}",
                    names.join(", ")
                ));
            };
            if !loads.0.contains(name) {
                loads.0.push(name);
            }
        }
        for (load, needed) in NEEDS {
            if loads.has(load) && !loads.has(needed) {
                loads.0.push(needed);
            }
        }
        Ok(loads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_named() {
        assert_eq!("nohz, nice".parse::<Loads>().unwrap().to_string(), "nohz,nice");
        assert_eq!("plain".parse::<Loads>().unwrap().to_string(), "plain");
        assert!("quota".parse::<Loads>().unwrap().has("groups"));
        assert_eq!("quota,nice,shares".parse::<Loads>().unwrap().to_string(), "quota,nice,shares,groups");
        assert_eq!("groups,nice,quota".parse::<Loads>().unwrap().to_string(), "groups,nice,quota");
        let lazy = |text: &str| text.parse::<Loads>().unwrap().has("lazy");
        assert_eq!(["all", "all,lazy", "lazy,all", "hrtick,all"].map(lazy), [false, true, true, false]);
        assert_eq!(
            "nhz".parse::<Loads>().unwrap_err(),
            "there is no load \"nhz\"; known are plain, all, nohz, sync, irq, yield, exit, kthread, nice, affinity, groups, \
             shares, quota, idle-groups, slice, freq, batch, rt, starve, deadline, user, exec, steal, hotplug, lazy, hrtick, cache"
        );
    }
}
