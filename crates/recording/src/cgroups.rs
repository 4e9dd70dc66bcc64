//! Settings of cgroups: from `cgroups.txt`, or from the events of a simulated trace.
//!
//! The file has a line for each file of a group, such as `/user.slice/cpu.weight 200`, of cgroup version 2 or 1. Lines
//! that do not concern CPU time are ignored. So are those of the root, which shares with no other group.

use std::collections::BTreeMap;

use schedlab_sched::{LOAD_SHIFT, NICE_0_LOAD};
use schedlab_trace::Group;
use schedlab_units::Duration;

/// Settings of a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Its weight, in 64-bit scale.
    pub shares: u64,
    /// Its weight is recorded, so it is a task group.
    pub weighed: bool,
    /// It counts as SCHED_IDLE.
    pub idle: bool,
    /// Its CPU limit.
    pub quota: Option<GivenQuota>,
}

/// CPU time allowed in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenQuota {
    /// The CPU time.
    pub quota: Duration,
    /// The period.
    pub period: Duration,
    /// Unused time that may be saved up.
    pub burst: Duration,
}

impl GivenQuota {
    fn new(quota: Duration, period: Duration) -> GivenQuota {
        GivenQuota { quota, period, burst: Duration::ZERO }
    }
}

impl Default for Given {
    fn default() -> Given {
        Given { shares: NICE_0_LOAD, weighed: false, idle: false, quota: None }
    }
}

impl Given {
    fn told(told: &Group) -> Given {
        let duration = |ns: Option<u64>| ns.map(Duration);
        let quota = duration(told.quota_ns).map(|quota| GivenQuota {
            burst: duration(told.burst_ns).unwrap_or_default(),
            ..GivenQuota::new(quota, duration(told.period_ns).unwrap_or(PERIOD))
        });
        let mut given = Given { idle: told.idle, quota, ..Given::default() };
        given.weigh(told.shares);
        given
    }

    /// Its weight as in `cpu.shares`, 1024 for nice 0.
    pub fn cpu_shares(&self) -> u64 {
        self.shares >> LOAD_SHIFT
    }

    fn weigh(&mut self, shares: u64) {
        self.shares = shares_within(shares) << LOAD_SHIFT;
        self.weighed = true;
    }
}

/// Cgroups that are created in a simulated trace: each has a number, to which a later event with its settings refers.
#[derive(Clone, Debug, Default)]
pub struct MadeGroups(BTreeMap<u64, String>);

impl MadeGroups {
    /// A cgroup is created.
    pub fn made(&mut self, id: u64, path: &str) {
        self.0.insert(id, path.to_owned());
    }

    /// The path and settings of a cgroup; `None` if the trace does not contain its creation.
    pub fn given(&self, told: &Group) -> Option<(&str, Given)> {
        self.0.get(&told.id).map(|path| (path.as_str(), Given::told(told)))
    }
}

/// The period of a quota that does not state one.
///
/// Kernel: default_cfs_period(), kernel/sched/fair.c, v6.12.
const PERIOD: Duration = Duration::millis(100);

/// Settings of each cgroup, by path.
pub fn cgroups(text: &str) -> BTreeMap<String, Given> {
    const FILES: [&str; 6] =
        ["cpu.weight", "cpu.shares", "cpu.idle", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"];
    let mut groups: BTreeMap<String, Given> = BTreeMap::new();
    let mut periods: BTreeMap<&str, Duration> = BTreeMap::new();
    for line in text.lines() {
        let found = FILES.iter().find_map(|file| Some((*file, line.split_once(&format!("/{file} "))?)));
        let Some((file, (path, value))) = found.filter(|(_, (path, _))| !path.is_empty()) else { continue };
        let group = groups.entry(path.to_owned()).or_default();
        match (file, value.trim().parse::<u64>()) {
            ("cpu.weight", Ok(weight)) => group.weigh(shares_of_weight(weight)),
            ("cpu.shares", Ok(shares)) => group.weigh(shares),
            ("cpu.idle", Ok(idle)) => group.idle = idle != 0,
            ("cpu.max", _) => group.quota = quota(value),
            // A group without a quota has -1.
            ("cpu.cfs_quota_us", Ok(us)) => {
                group.quota = Some(GivenQuota::new(Duration::micros(us), PERIOD));
            }
            ("cpu.cfs_period_us", Ok(us)) => _ = periods.insert(path, Duration::micros(us)),
            _ => {}
        }
    }
    for (path, period) in periods {
        if let Some(quota) = groups.get_mut(path).and_then(|group| group.quota.as_mut()) {
            quota.period = period;
        }
    }
    groups
}

/// Parses `50000 100000`; `None` for `max 100000`.
fn quota(text: &str) -> Option<GivenQuota> {
    let (quota, period) = text.split_once(' ')?;
    let us = |text: &str| text.trim().parse().ok().map(Duration::micros);
    Some(GivenQuota::new(us(quota)?, us(period)?))
}

/// The shares that correspond to a `cpu.weight`.
///
/// Kernel: sched_weight_from_cgroup(), kernel/sched/sched.h, v6.12.
fn shares_of_weight(weight: u64) -> u64 {
    weight.saturating_mul(1024).saturating_add(50) / 100
}

/// Clamps shares to the range that a kernel accepts.
///
/// Kernel: MIN_SHARES and MAX_SHARES, kernel/sched/sched.h, v6.12.
fn shares_within(shares: u64) -> u64 {
    shares.clamp(2, 1 << 18)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_within_what_a_kernel_takes() {
        let most = u64::MAX;
        let text = format!(
            "/a/cpu.weight 1\n/b/cpu.weight 100\n/c/cpu.weight 10000\n/d/cpu.weight {most}\n/e/cpu.shares {most}\n\
             /f/cpu.shares 0\n/g/cpu.idle 0\n/cpu.weight 7\n"
        );
        let shares: Vec<u64> = cgroups(&text).values().map(Given::cpu_shares).collect();
        assert_eq!(shares, [10, 1024, 102_400, 1 << 18, 1 << 18, 2, 1024]);
        let weighed: Vec<bool> = cgroups(&text).values().map(|group| group.weighed).collect();
        assert_eq!(weighed, [true, true, true, true, true, true, false]);
    }

    #[test]
    fn events_and_files_give_the_same_settings() {
        let mut made = MadeGroups::default();
        made.made(7, "/q");
        let us = |us: u64| Some(us * 1000);
        let told = |id, burst_ns| Group {
            id,
            shares: 512,
            idle: false,
            quota_ns: us(50_000),
            period_ns: us(100_000),
            burst_ns,
        };
        let files = cgroups("/q/cpu.shares 512\n/q/cpu.max 50000 100000\n");
        assert_eq!(made.given(&told(7, None)), Some(("/q", files["/q"])));
        assert_eq!(made.given(&told(7, us(9))).unwrap().1.quota.unwrap().burst, Duration::micros(9));
        assert_eq!(made.given(&told(8, None)), None);
    }

    #[test]
    fn a_quota_is_one_in_both_versions() {
        let text = "/a/cpu.max 50000 100000\n/b/cpu.max max 100000\n/c/cpu.cfs_quota_us 20000\n\
                    /c/cpu.cfs_period_us 50000\n/d/cpu.cfs_quota_us -1\n/d/cpu.cfs_period_us 50000\n\
                    /e/cpu.cfs_quota_us 20000\n/f/cpuset.cpus 0-3\n";
        let ms = |quota: GivenQuota| (quota.quota.0 / 1_000_000, quota.period.0 / 1_000_000);
        let quotas: Vec<_> = cgroups(text).values().map(|group| group.quota.map(ms)).collect();
        assert_eq!(quotas, [Some((50, 100)), None, Some((20, 50)), None, Some((20, 100))]);
    }
}
