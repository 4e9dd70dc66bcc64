//! v7.2: gathering the threads of a process in one last-level cache.
//!
//! Threads of a process share data. For each process and CPU, the scheduler records how much the process ran there
//! lately. From time to time, the cache where it ran most becomes the one it prefers. Wake-up placement does not
//! change; only the balancer pulls tasks towards their cache, and it is slow to pull them away, while the cache is not
//! too full.
//!
//! NUMA balancing is not modelled, so memory footprints and preferred nodes play no part.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use schedlab_topology::{CpuId, CpuMask, PerCpu};
use schedlab_units::{TaskId, Time};

use super::numbers::Numbers;
use super::runtimes::{EpochTime, Runtimes};
use crate::task_work::TaskWork;
use crate::wakeup::fits_capacity;
use crate::{Curr, Domains, Feature, Kernel, NICE_0_LOAD, Sched, SharedId, Task};

/// The state of a process, as in `struct sched_cache_group`.
#[derive(Clone, Debug)]
pub struct CacheGroup {
    /// CPU where it ran most in the cache it prefers.
    pub cpu: Option<CpuId>,
    /// Epoch of the last scan.
    pub epoch: u64,
    /// Jiffy of the next scan.
    pub next_scan: u64,
    /// Slow average of the number of its threads that run.
    pub nr_running_avg: i64,
    /// Its threads.
    pub nr_threads: u32,
    /// Where it ran lately.
    pub runtime: Runtimes,
}

impl CacheGroup {
    /// A process with one thread has nothing to gather; one with too many threads does not fit.
    ///
    /// Kernel: invalid_llc_nr(), kernel/sched/fair.c, v7.2.
    pub(super) fn invalid_llc_nr(&self, kernel: &Kernel, domains: &Domains, cpu: CpuId) -> bool {
        if self.nr_threads <= 1 {
            return true;
        }
        let scale = match kernel.tunables.llc_aggr_tolerance {
            0 => 0,
            tolerance if tolerance >= 100 => return false,
            tolerance => tolerance,
        };
        let running = self.nr_running_avg.max(0) as u64 * u64::from(domains.smt_threads);
        !fits_capacity(running, scale * u64::from(domains.per_cpu[cpu].llc_size))
    }
}

/// Decays a CPU's time to its current epoch, and returns that epoch.
fn next_epoch(kernel: &Kernel, time: &mut EpochTime, next: &mut u64, jiffy: u64) -> u64 {
    if jiffy > *next {
        let period = kernel.tunables.llc_epoch_period.max(1);
        let passed = (jiffy - *next).div_ceil(period);
        time.age(time.epoch + passed);
        *next += passed * period;
    }
    time.epoch
}

/// All processes. A task remembers the place of its process, as each charge and each tick needs it.
#[derive(Clone, Debug, Default)]
pub struct CacheGroups {
    /// Places of processes that have no thread left are free.
    places: Vec<CacheGroup>,
    free: Vec<u32>,
    by_process: Numbers,
}

/// [`Task::cache_place`] of a task whose process is not recorded.
pub(crate) const NO_PLACE: u32 = u32::MAX;

impl CacheGroups {
    /// The state of a process.
    pub fn get(&self, process: u32) -> Option<&CacheGroup> {
        self.by_process.get(process).map(|place| &self.places[place as usize])
    }

    /// The same, mutable.
    pub fn get_mut(&mut self, process: u32) -> Option<&mut CacheGroup> {
        self.by_process.get(process).map(|place| &mut self.places[place as usize])
    }

    /// The place of a task's process. A kernel thread and a task that has ended have none.
    #[inline]
    fn place_of(&self, task: &Task) -> Option<usize> {
        (task.cache_place != NO_PLACE).then_some(task.cache_place as usize)
    }

    /// The place of a process; `group` creates its state if it is new.
    fn place_or_insert(&mut self, process: u32, group: impl FnOnce() -> CacheGroup) -> u32 {
        if let Some(place) = self.by_process.get(process) {
            return place;
        }
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = group();
                place
            }
            None => {
                self.places.push(group());
                self.places.len() as u32 - 1
            }
        };
        self.by_process.insert(process, place);
        place
    }

    fn remove(&mut self, process: u32) {
        self.free.extend(self.by_process.remove(process));
    }
}

/// All processes, and the epochs of all CPUs.
#[derive(Clone, Debug, Default)]
pub struct SchedCache {
    /// State of each process.
    pub groups: CacheGroups,
    /// Run time of each CPU, and its epoch.
    pub cpu: PerCpu<EpochTime>,
    /// Number of each CPU's last-level cache.
    pub llc_id: PerCpu<Option<u16>>,
    /// One more than the highest of them when domains were built.
    pub nr_llc_ids: usize,
    /// Jiffy at which a CPU's next epoch begins.
    pub epoch_next: PerCpu<u64>,
}

impl SchedCache {
    /// With epochs for all CPUs; if there are none yet, they begin at this jiffy.
    fn of(&mut self, nr_cpus: usize, jiffy: u64) -> &mut SchedCache {
        if self.cpu.len() != nr_cpus {
            self.cpu = PerCpu::new(nr_cpus, |_| EpochTime::default());
            self.epoch_next = PerCpu::new(nr_cpus, |_| jiffy);
        }
        self
    }
}

impl Sched {
    /// Whether cache-aware balancing is active: it is switched on, and there are several caches, one of them of several CPUs.
    ///
    /// Kernel: sched_cache_enabled(), kernel/sched/sched.h, sd_in_multi_llcs(), kernel/sched/topology.c, v7.2.
    #[inline]
    pub fn sched_cache_active(&self) -> bool {
        self.kernel.has(Feature::SchedCache) && self.domains.multi_llcs
    }

    /// The number of a CPU's last-level cache. It stays when domains are rebuilt.
    ///
    /// Kernel: llc_id(), kernel/sched/fair.c, v7.2.
    #[inline]
    pub(super) fn llc_id(&self, cpu: CpuId) -> Option<u16> {
        self.sched_cache.llc_id.values().get(cpu.index()).copied().flatten()
    }

    /// A CPU that domains are built with has the number of its cache, or the lowest that is free. A cache keeps its number as
    /// long as one of its CPUs has it.
    ///
    /// Kernel: build_sched_domains(), kernel/sched/topology.c, v7.2.
    pub(crate) fn number_llcs(&mut self) {
        if !self.kernel.has(Feature::SchedCache) {
            return;
        }
        let SchedCache { llc_id: ids, nr_llc_ids, .. } = &mut self.sched_cache;
        if ids.len() != self.rqs.len() {
            *ids = PerCpu::new(self.rqs.len(), |_| None);
        }
        let mut taken: BTreeSet<u16> = ids.iter().filter_map(|(_, id)| *id).collect();
        for cpu in self.domains.span.iter().filter(|&cpu| ids[cpu].is_none()).collect::<Vec<_>>() {
            let of_cache = self.topology.llc_mask(cpu).iter().find_map(|other| ids[other]);
            let id =
                of_cache.or_else(|| (0..).find(|id| !taken.contains(id))).expect("fewer caches than numbers");
            taken.insert(id);
            ids[cpu] = Some(id);
        }
        *nr_llc_ids = taken.last().map_or(0, |last| usize::from(*last) + 1);
    }

    /// A CPU that leaves gives up the number of its cache.
    ///
    /// Kernel: sched_domains_free_llc_id(), kernel/sched/topology.c, v7.2.
    pub(crate) fn free_llc_id(&mut self, cpu: CpuId) {
        if self.kernel.has(Feature::SchedCache) {
            self.sched_cache.llc_id[cpu] = None;
        }
    }

    /// The last-level cache of a CPU in the present domains.
    pub(super) fn llc_of(&self, cpu: CpuId) -> Option<SharedId> {
        self.domains.per_cpu[cpu].llc_shared
    }

    /// Number of queued tasks of a CPU that prefer the cache of another CPU, which is not its own.
    ///
    /// Kernel: update_sg_lb_stats(), kernel/sched/fair.c, v7.2: the part about llc_counts.
    pub(super) fn nr_prefer_llc_of(&self, cpu: CpuId, dst: CpuId) -> u32 {
        match self.llc_id(dst) {
            Some(llc) if self.llc_id(cpu) != Some(llc) => {
                self.rqs[cpu].llc_counts.get(usize::from(llc)).copied().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// The same, summed over several CPUs.
    #[inline]
    pub(super) fn nr_prefer_llc_among(&self, cpus: &[CpuId], dst: CpuId) -> u32 {
        let Some(llc) = self.llc_id(dst) else { return 0 };
        let count = |&cpu: &CpuId| match self.rqs[cpu].llc_counts.get(usize::from(llc)) {
            Some(&count) if count > 0 && self.llc_id(cpu) != Some(llc) => count,
            _ => 0,
        };
        cpus.iter().map(count).sum()
    }

    /// A task was queued: counts its preference.
    ///
    /// Kernel: account_llc_enqueue(), kernel/sched/fair.c, v7.2.
    pub fn account_llc_enqueue(&mut self, cpu: CpuId, task: TaskId) {
        let Some(preferred) = self.task(task).preferred_llc else { return };
        let at_home = self.llc_id(cpu) == Some(preferred);
        let p = self.task_mut(task);
        p.pref_llc_queued = at_home;
        let counts = at_home && !p.se.sched_delayed;
        let (has_domains, nr_llc_ids) = (self.has_domains(cpu), self.sched_cache.nr_llc_ids);
        let rq = &mut self.rqs[cpu];
        rq.nr_pref_llc_running += u32::from(counts);
        // The other count is that of a domain, for the caches that had numbers when it was built.
        let llc = usize::from(preferred);
        if !has_domains || llc >= nr_llc_ids {
            return;
        }
        if rq.llc_counts.len() <= llc {
            rq.llc_counts.resize(llc + 1, 0);
        }
        rq.llc_counts[llc] += 1;
    }

    /// A task leaves the queue: its preference is no longer counted.
    ///
    /// Kernel: account_llc_dequeue(), kernel/sched/fair.c, v7.2.
    pub fn account_llc_dequeue(&mut self, cpu: CpuId, task: TaskId) {
        let p = self.task_mut(task);
        let Some(preferred) = p.preferred_llc else { return };
        let counted = core::mem::take(&mut p.pref_llc_queued) && !p.se.sched_delayed;
        let rq = &mut self.rqs[cpu];
        rq.nr_pref_llc_running -= u32::from(counted);
        if let Some(count) = rq.llc_counts.get_mut(usize::from(preferred)) {
            *count = count.saturating_sub(1);
        }
    }

    /// A queued task falls asleep (`delayed`) or wakes without leaving its queue. Call
    /// before the mark is changed when it falls asleep, after it when it wakes.
    ///
    /// Kernel: set_delayed(), clear_delayed(), kernel/sched/fair.c, v7.2: the part about caches.
    pub fn account_llc_delayed(&mut self, task: TaskId, delayed: bool) {
        let p = self.task(task);
        let cpu = p.cpu;
        if p.pref_llc_queued {
            let running = &mut self.rqs[cpu].nr_pref_llc_running;
            *running = if delayed { *running - 1 } else { *running + 1 };
        }
    }

    /// Continues a CPU's epochs from those of a running kernel: the epoch, the jiffy of the next, and the CPU's run time, ns.
    pub fn begin_epoch(&mut self, cpu: CpuId, epoch: u64, next: u64, runtime: u64) {
        let cache = self.sched_cache.of(self.rqs.len(), 0);
        cache.cpu[cpu] = EpochTime { epoch, runtime };
        cache.epoch_next[cpu] = next;
    }

    /// A process gained a thread.
    ///
    /// Kernel: sched_cache_fork(), mm_init_sched(), kernel/sched/fair.c, v7.2.
    pub fn sched_cache_fork(&mut self, task: TaskId, now: Time) {
        // The kernel keeps this on machines of one cache too, where nothing ever reads it.
        let read = self.kernel.has(Feature::SchedCache) && self.topology.llcs().len() > 1;
        if self.task(task).kthread || !read {
            return;
        }
        let jiffy = self.jiffies(now);
        let process = self.task(task).process;
        let cache = self.sched_cache.of(self.rqs.len(), jiffy);
        let epochs = &cache.cpu;
        // The epoch of the last CPU, whatever the others have: a CPU that was idle for long is behind.
        let epoch = epochs.iter().last().map_or(0, |(_, time)| time.epoch);
        let place = cache.groups.place_or_insert(process, || CacheGroup {
            cpu: None,
            epoch,
            next_scan: jiffy,
            nr_running_avg: 0,
            nr_threads: 0,
            runtime: Runtimes::default(),
        });
        cache.groups.places[place as usize].nr_threads += 1;
        self.task_mut(task).cache_place = place;
    }

    /// A process lost a thread.
    ///
    /// Kernel: sched_cache_exit_mm(), kernel/sched/fair.c, v7.2.
    pub fn sched_cache_exit(&mut self, task: TaskId) {
        let groups = &mut self.sched_cache.groups;
        let p = &mut self.tasks[task.index()];
        let Some(place) = groups.place_of(p) else { return };
        p.cache_place = NO_PLACE;
        let group = &mut groups.places[place];
        group.nr_threads -= 1;
        if group.nr_threads == 0 {
            groups.remove(p.process);
        }
    }

    /// A task executes another program: its memory is new, and belongs to a process with this number.
    ///
    /// Kernel: mm_init_sched() for the memory that exec_mmap() gives the task, v7.2.
    pub fn sched_cache_exec(&mut self, task: TaskId, process: u32, now: Time) {
        self.sched_cache_exit(task);
        self.task_mut(task).process = process;
        self.sched_cache_fork(task, now);
    }

    /// The state of a task's process, if it is recorded.
    pub(super) fn cache_group_of(&self, task: TaskId) -> Option<&CacheGroup> {
        let groups = &self.sched_cache.groups;
        groups.place_of(self.task(task)).map(|place| &groups.places[place])
    }

    /// Decays a CPU's and a process's time to the CPU's current epoch; returns the process's, ns.
    ///
    /// Kernel: __update_mm_sched(), kernel/sched/fair.c, v7.2.
    fn update_mm_sched(&mut self, cpu: CpuId, place: usize, jiffy: u64) -> u64 {
        let SchedCache { groups, cpu: cpus, epoch_next, .. } = &mut self.sched_cache;
        let epoch = next_epoch(&self.kernel, &mut cpus[cpu], &mut epoch_next[cpu], jiffy);
        groups.places[place].runtime.age(cpu, epoch)
    }

    /// A thread of a process ran.
    ///
    /// Kernel: account_mm_sched(), kernel/sched/fair.c, v7.2.
    pub fn account_mm_sched(&mut self, cpu: CpuId, task: TaskId, delta: u64) {
        if !self.sched_cache_active() {
            return;
        }
        let Some(place) = self.sched_cache.groups.place_of(self.task(task)) else { return };
        let jiffy = self.jiffies(Time(self.rqs[cpu].clock));
        let SchedCache { groups, cpu: cpus, epoch_next, .. } = &mut self.sched_cache;
        let group = &mut groups.places[place];
        let epoch = next_epoch(&self.kernel, &mut cpus[cpu], &mut epoch_next[cpu], jiffy);
        cpus[cpu].runtime += delta;
        group.runtime.add(cpu, epoch, delta);
        let timeout = self.kernel.tunables.llc_epoch_affinity_timeout;
        let unsuitable = group.invalid_llc_nr(&self.kernel, &self.domains, cpu);
        if epoch as i64 - group.epoch as i64 > timeout as i64 || unsuitable {
            group.cpu = None;
        }
        let preferred = group.cpu.and_then(|cpu| self.llc_id(cpu));
        let p = self.task(task);
        if p.on_rq && p.preferred_llc != preferred {
            self.account_llc_dequeue(cpu, task);
            self.task_mut(task).preferred_llc = preferred;
            self.account_llc_enqueue(cpu, task);
        }
    }

    /// The tick of a thread: once per epoch, it must examine its process before it returns to user mode.
    ///
    /// Kernel: task_tick_cache(), kernel/sched/fair.c, v7.2.
    pub fn task_tick_cache(&mut self, cpu: CpuId, task: TaskId) {
        if !self.sched_cache_active() {
            return;
        }
        let Some(place) = self.sched_cache.groups.place_of(self.task(task)) else { return };
        let epoch = self.sched_cache.cpu[cpu].epoch;
        let group = &mut self.sched_cache.groups.places[place];
        if group.epoch < epoch && !self.tasks[task.index()].works.has(TaskWork::Cache) {
            group.epoch = epoch;
            self.tasks[task.index()].works.add(TaskWork::Cache);
        }
    }

    /// A thread that must examine its process does so on its way to user mode, unless another thread did lately.
    ///
    /// Kernel: task_cache_work(), kernel/sched/fair.c, v7.2.
    pub fn task_cache_work(&mut self, task: TaskId, now: Time) {
        if !self.tasks[task.index()].works.take(TaskWork::Cache) {
            return;
        }
        let Some(place) = self.sched_cache.groups.place_of(self.task(task)) else { return };
        let cpu = self.task(task).cpu;
        let jiffy = self.jiffies(now);
        let period = self.kernel.tunables.llc_epoch_period.max(1);
        let group = &mut self.sched_cache.groups.places[place];
        if self.tasks[task.index()].exiting || jiffy < group.next_scan {
            return;
        }
        group.next_scan = jiffy + period;
        if group.invalid_llc_nr(&self.kernel, &self.domains, cpu) {
            group.cpu = None;
            return;
        }
        self.find_preferred_llc(cpu, place, jiffy);
    }

    /// Finds the cache where a process ran most, and keeps it if it is clearly better than the current one.
    ///
    /// Kernel: task_cache_work(), kernel/sched/fair.c, v7.2.
    fn find_preferred_llc(&mut self, this_cpu: CpuId, place: usize, jiffy: u64) {
        let home = self.sched_cache.groups.places[place].cpu;
        let present = home.and_then(|cpu| self.llc_id(cpu));
        let (mut best, mut best_cpu, mut present_share, mut running) = (0, None, 0, 0);
        let mut seen = CpuMask::new(self.rqs.len());
        for index in 0..self.rqs.len() {
            let cpu = CpuId::from(index);
            if seen.contains(cpu) {
                continue;
            }
            let Some(llc) = self.domains.per_cpu[cpu].llc else { continue };
            let span = self.domains.sd(llc).span.clone();
            seen.or_with(&span);
            let (mut share, mut most, mut most_cpu) = (0, 0, None);
            for member in span.iter() {
                let here = self.update_mm_sched(member, place, jiffy);
                // As it is halved every epoch, it overflows only in a damaged recording; there it wraps, as in the
                // kernel.
                let part = NICE_0_LOAD.wrapping_mul(here) / (self.sched_cache.cpu[member].runtime + 1);
                share += part;
                if part > most {
                    (most, most_cpu) = (part, Some(member));
                }
                if let Curr::Task(curr) = self.rqs[member].curr {
                    let curr = self.task(curr);
                    running += i64::from(!curr.exiting && curr.cache_place == place as u32);
                }
            }
            if share > best {
                (best, best_cpu) = (share, most_cpu);
            }
            if self.llc_id(cpu) == present {
                present_share = share;
            }
        }
        let divisor = i64::from((self.domains.per_cpu[this_cpu].llc_size >> 2).clamp(2, 8));
        let group = &mut self.sched_cache.groups.places[place];
        if best > 2 * present_share {
            group.cpu = best_cpu;
        }
        group.nr_running_avg += (running - group.nr_running_avg) / divisor;
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::expect;
    use schedlab_topology::CpuId;
    use schedlab_units::{TaskId, Time};

    use crate::drawing::{Drawn, NOW, draw};

    const CPUS: [CpuId; 4] = [CpuId(0), CpuId(1), CpuId(4), CpuId(5)];

    /// Two threads of a process on each of two caches; how long each ran, in ms.
    fn ran(kernel: &str, ms: [u64; 4]) -> Drawn {
        let mut drawn = draw(kernel, "1x2x4 | 0[a*] 1[b*] 4[c*] 5[d*]");
        let sched = &mut drawn.sched;
        for ((task, cpu), ms) in CPUS.into_iter().enumerate().zip(ms) {
            sched.account_mm_sched(cpu, TaskId(task as u32), ms * 1_000_000);
        }
        drawn
    }

    #[test]
    fn a_process_prefers_the_cache_where_it_ran_most() {
        let home = |kernel: &str, ms| {
            let mut drawn = ran(kernel, ms);
            let sched = &mut drawn.sched;
            // Other threads ran as long on every CPU, so shares are those of the process.
            for cpu in CPUS {
                sched.sched_cache.cpu[cpu].runtime += 10_000_000;
            }
            let later = Time(NOW.0 + 20_000_000);
            for (task, cpu) in CPUS.into_iter().enumerate() {
                sched.update_rq_clock(cpu, later);
                sched.account_mm_sched(cpu, TaskId(task as u32), 1);
            }
            sched.task_tick_cache(CpuId(0), TaskId(0));
            sched.exit_to_user(TaskId(0), later);
            for (task, cpu) in CPUS.into_iter().enumerate() {
                sched.account_mm_sched(cpu, TaskId(task as u32), 1);
            }
            let group = sched.sched_cache.groups.get(0).unwrap();
            let prefers: alloc::vec::Vec<_> = sched.tasks.iter().map(|t| t.preferred_llc).collect();
            let at_home = sched.rqs.iter().map(|(_, rq)| rq.nr_pref_llc_running).sum::<u32>();
            format!(
                "cpu {:?}, running {}, tasks prefer {prefers:?}, {at_home} at home",
                group.cpu, group.nr_running_avg
            )
        };
        expect![
            "cpu Some(CpuId(0)), running 2, tasks prefer [Some(0), Some(0), Some(0), Some(0)], 2 at home"
        ]
        .assert_eq(&home("v7.2", [9, 1, 1, 1]));
        expect![
            "cpu Some(CpuId(4)), running 2, tasks prefer [Some(1), Some(1), Some(1), Some(1)], 2 at home"
        ]
        .assert_eq(&home("v7.2", [1, 1, 9, 9]));
        expect!["cpu None, running 0, tasks prefer [None, None, None, None], 0 at home"]
            .assert_eq(&home("v7.2+llc_aggr_tolerance=0", [9, 1, 1, 1]));
    }

    #[test]
    fn time_is_halved_each_epoch() {
        let mut drawn = ran("v7.2", [8, 0, 0, 0]);
        let sched = &mut drawn.sched;
        let runtime = |sched: &crate::Sched| sched.sched_cache.groups.get(0).unwrap().runtime.of(CpuId(0));
        assert_eq!(runtime(sched), 8_000_000);
        // An epoch is two jiffies: after 5 of them the third epoch has begun.
        let jiffy = sched.jiffies(NOW) + 5;
        let place = sched.sched_cache.groups.place_of(&sched.tasks[0]).unwrap();
        assert_eq!(sched.update_mm_sched(CpuId(0), place, jiffy), 1_000_000);
        assert_eq!(runtime(sched), 1_000_000);
        assert_eq!(sched.sched_cache.cpu[CpuId(0)].runtime, 1_000_000);
    }

    #[test]
    fn without_a_scan_the_preference_is_forgotten() {
        let mut drawn = ran("v7.2", [8, 0, 0, 0]);
        let sched = &mut drawn.sched;
        sched.sched_cache.groups.get_mut(0).unwrap().cpu = Some(CpuId(0));
        for (epochs, kept) in [(5, true), (6, false)] {
            let later = Time(NOW.0 + epochs * 2 * sched.tick_ns());
            sched.update_rq_clock(CpuId(0), later);
            sched.account_mm_sched(CpuId(0), TaskId(0), 1);
            assert_eq!(sched.sched_cache.groups.get(0).unwrap().cpu.is_some(), kept, "after {epochs} epochs");
        }
    }

    #[test]
    fn a_new_program_prefers_no_cache() {
        let mut drawn = ran("v7.2", [8, 1, 1, 1]);
        let sched = &mut drawn.sched;
        sched.sched_cache_exec(TaskId(0), 7, NOW);
        let threads = |process| sched.sched_cache.groups.get(process).map(|group| group.nr_threads);
        assert_eq!([threads(0), threads(7)], [Some(3), Some(1)]);
        assert_eq!(sched.sched_cache.groups.get(7).unwrap().runtime.of(CpuId(0)), 0);
    }

    #[test]
    fn the_last_run_of_a_task_that_ends_is_not_of_its_process() {
        let mut drawn = ran("v7.2", [8, 1, 1, 1]);
        let sched = &mut drawn.sched;
        let later = Time(NOW.0 + 2_000_000);
        sched.schedule(CpuId(0), crate::Deactivate::Exit, later);
        let group = sched.sched_cache.groups.get(0).unwrap();
        assert_eq!((group.nr_threads, group.runtime.of(CpuId(0))), (3, 8_000_000));
        assert_eq!(sched.sched_cache.cpu[CpuId(0)].runtime, 8_000_000);
    }

    #[test]
    fn caches_keep_their_numbers_when_a_cpu_leaves_and_tasks_what_they_prefer() {
        let mut drawn = draw("v7.2", "1x2x4 | 0[a*] 4[b*]");
        let sched = &mut drawn.sched;
        for task in [0, 1] {
            sched.account_llc_dequeue(CPUS[task * 2], TaskId(task as u32));
            sched.task_mut(TaskId(task as u32)).preferred_llc = Some(1);
            sched.account_llc_enqueue(CPUS[task * 2], TaskId(task as u32));
        }
        let seen = |sched: &crate::Sched| {
            let ids: alloc::vec::Vec<_> =
                (0..8).map(|cpu| sched.llc_id(CpuId(cpu)).map_or(-1, i32::from)).collect();
            let prefer = sched.nr_prefer_llc_of(CpuId(0), CpuId(4));
            let at_home = sched.rqs[CpuId(4)].nr_pref_llc_running;
            format!("{ids:?}, {prefer} away, {at_home} at home")
        };
        expect!["[0, 0, 0, 0, 1, 1, 1, 1], 1 away, 1 at home"].assert_eq(&seen(sched));
        for cpu in 0..4 {
            sched.cpu_deactivate(CpuId(cpu), NOW);
        }
        sched.rebuild_domains(NOW);
        // New domains have counted none of the tasks.
        expect!["[-1, -1, -1, -1, 1, 1, 1, 1], 0 away, 1 at home"].assert_eq(&seen(sched));
        sched.cpu_activate(CpuId(2), NOW);
        sched.cpu_activate(CpuId(3), NOW);
        sched.rebuild_domains(NOW);
        expect!["[-1, -1, 0, 0, 1, 1, 1, 1], 0 away, 1 at home"].assert_eq(&seen(sched));
    }

    #[test]
    fn a_new_process_begins_in_the_epoch_of_the_last_cpu() {
        let mut drawn = ran("v7.2", [1, 1, 1, 1]);
        let sched = &mut drawn.sched;
        for (cpu, epoch) in [(0, 9), (7, 5)] {
            sched.sched_cache.cpu[CpuId(cpu)].epoch = epoch;
        }
        sched.sched_cache_exec(TaskId(0), 7, NOW);
        let group = sched.sched_cache.groups.get(7).unwrap();
        assert_eq!(group.epoch, 5);
    }

    #[test]
    fn a_hundred_thousand_processes_take_little_memory() {
        assert_eq!(size_of::<super::CacheGroup>(), 56);
    }

    #[test]
    fn one_cache_or_one_thread_need_none_of_this() {
        let drawn = draw("v7.2", "1x1x4 | 0[a*]");
        assert!(drawn.sched.sched_cache.groups.get(0).is_none());
        let mut drawn = draw("v7.2", "1x2x2 | 0[a*]");
        drawn.sched.sched_cache.groups.get_mut(0).unwrap().cpu = Some(CpuId(0));
        drawn.sched.account_mm_sched(CpuId(0), TaskId(0), 1_000_000);
        assert_eq!(drawn.sched.sched_cache.groups.get(0).unwrap().cpu, None);
    }
}
