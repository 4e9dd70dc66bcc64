//! Invariants of domains, their groups and the counts that balancing reads.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::differ;
use crate::Sched;

/// Longest interval when all tasks are bound, ms.
const MAX_PINNED_INTERVAL: u64 = 512;

pub(super) fn capacity(sched: &Sched) -> Option<String> {
    sched.domains.sgs.iter().find_map(|group| {
        let sgc = &sched.domains.sgcs[group.sgc as usize];
        let weight = u64::from(group.group_weight);
        let holds = sgc.min_capacity * weight <= sgc.capacity && sgc.capacity <= sgc.max_capacity * weight;
        (!holds).then(|| format!("group {:?} has {sgc:?}", group.span))
    })
}

pub(super) fn intervals(sched: &Sched) -> Option<String> {
    sched.domains.sds.iter().find_map(|sd| {
        let longest = 2 * sd.max_interval.max(MAX_PINNED_INTERVAL);
        let interval = sd.balance_interval;
        (interval < sd.min_interval || interval > longest)
            .then(|| format!("{} of CPU {} has {interval} of {}", sd.name, sd.cpu, sd.min_interval))
    })
}

pub(super) fn nr_busy_cpus(sched: &Sched) -> Option<String> {
    sched.domains.shared.iter().take(sched.domains.nr_llcs).enumerate().find_map(|(n, shared)| {
        let here = sched
            .rqs
            .iter()
            .filter(|(cpu, _)| sched.domains.per_cpu[*cpu].llc_shared.is_some_and(|llc| llc.0 as usize == n));
        let idle = here.filter(|(cpu, _)| sched.domains.per_cpu[*cpu].nohz_idle).count();
        differ(format!("cache {n}"), shared.nr_busy_cpus, shared.nr_cpus - idle as i32)
    })
}

pub(super) fn tickless(sched: &Sched) -> Option<String> {
    sched.rqs.iter().find_map(|(cpu, rq)| {
        let counts_as_idle = sched.domains.per_cpu[cpu].nohz_idle;
        differ(format!("cpu {cpu}"), sched.nohz_idle_cpus.contains(cpu), rq.nohz_tick_stopped)
            .or_else(|| (counts_as_idle && !rq.nohz_tick_stopped).then(|| format!("cpu {cpu} has a tick")))
    })
}

pub(super) fn llc_counts(sched: &Sched) -> Option<String> {
    sched.rqs.iter().find_map(|(cpu, rq)| {
        let mut counted = vec![0; rq.llc_counts.len()];
        let mut at_home = 0;
        for task in sched.cfs_tasks(cpu).map(|id| sched.task(id)) {
            let Some(preferred) = task.preferred_llc else { continue };
            let llc = usize::from(preferred);
            counted.resize(counted.len().max(llc + 1), 0);
            counted[llc] += 1;
            at_home += u32::from(task.pref_llc_queued && !task.se.sched_delayed);
        }
        // New domains do not count the tasks that are queued when they are built.
        let most: Vec<u32> =
            rq.llc_counts.iter().zip(&counted).map(|(kept, counted)| *kept.min(counted)).collect();
        let kept = (rq.llc_counts.clone(), rq.nr_pref_llc_running);
        differ(format!("cpu {cpu}"), kept, (most, at_home))
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::check::tests::broken;

    #[test]
    fn each_is_noticed() {
        expect!["a group's capacity lies between its smallest and largest"]
            .assert_eq(&broken(|sched| sched.domains.sgcs[0].capacity += 1));
        expect!["balance intervals stay in their bounds"]
            .assert_eq(&broken(|sched| sched.domains.sds[0].balance_interval = 0));
        expect!["a cache's busy CPUs are those that did not stop their tick in its domains"]
            .assert_eq(&broken(|sched| sched.domains.shared[0].nr_busy_cpus -= 1));
        expect!["the idle CPUs to be balanced for are those without"]
            .assert_eq(&broken(|sched| sched.nohz_idle_cpus.set(CpuId(1))));
        expect!["a CPU's preferred caches are those of its tasks"]
            .assert_eq(&broken(|sched| sched.rqs[CpuId(0)].llc_counts = alloc::vec![1]));
    }
}
