//! The state of the scheduler, and the calls drivers make.

use alloc::vec;
use alloc::vec::Vec;

use schedlab_topology::{CpuId, CpuMask, PerCpu, Topology};
use schedlab_units::{TaskId, Time};

use crate::domain::capacity_orig;
use crate::group_sums::GroupSums;
use crate::level::entity_of;
use crate::{
    BalanceDecision, Bandwidth, CfsRq, CfsRqId, Domains, Effect, Entity, Feature, Kernel, KernelMover,
    Looked, Mover, NICE_0_LOAD, Newidle, Reason, Rq, RtPushLoop, Scaled, SchedCache, SeId, Task, TaskGroup,
    TgId, Took, Uclamp, Watched,
};

/// The scheduler of one machine under one kernel.
///
/// Fields are public to the drivers that build or repeat a recorded state; the
/// applying methods keep the invariants listed in `check.rs`.
#[derive(Clone)]
pub struct Sched {
    /// The machine.
    pub topology: Topology,
    /// The rules.
    pub kernel: Kernel,
    /// Tunables that depend on the CPUs online; [`Scaled::new`].
    pub scaled: Scaled,
    /// How long the kernel's own work takes, by the driver's clock.
    pub took: Took,
    /// Run queues that searches and passes examine, for a driver that needs them.
    pub looked: Looked,
    /// The driver reports when a CPU has switched to idle.
    pub lingers: bool,
    /// The CPU that acts next will stall on its way: after so many ns, for so many ns.
    pub stall: Option<(u64, u64)>,
    /// Domains, groups and the shared state of LLCs.
    pub domains: Domains,
    /// Run queues.
    pub rqs: Watched<PerCpu<Rq>>,
    /// Queues of all groups on all CPUs; the first ones are the roots.
    pub cfs_rqs: Watched<Vec<CfsRq>>,
    /// Tasks; never removed, but the place of a dead one may be reused (`new_task_in`).
    pub tasks: Vec<Task>,
    /// Group entities.
    pub group_ses: Vec<Entity>,
    /// Groups; the first is the root.
    pub tgs: Vec<TaskGroup>,
    /// Effects since the driver last took them.
    pub effects: Vec<Effect>,
    /// Jiffy of the next nohz balancing.
    pub nohz_next_balance: u64,
    /// Jiffy of the next update of idle CPUs' blocked load.
    pub nohz_next_blocked: u64,
    /// Some CPU has stopped its tick and blocked load.
    pub nohz_has_blocked: bool,
    /// CPUs whose tick is stopped.
    pub nohz_idle_cpus: CpuMask,
    /// A CPU stopped its tick since the next time was computed.
    pub nohz_needs_update: bool,
    /// The CPU that is making a pass on behalf of an idle CPU.
    pub nohz_balancing: Option<CpuId>,
    /// Longest balance interval, jiffies.
    pub max_load_balance_interval: u64,
    /// CPUs that are no longer active but still in domains.
    pub leaving: Vec<CpuId>,
    /// Tasks that the kernel put on a CPU that they may not use, as all of theirs were offline.
    pub out_of_place: Vec<TaskId>,
    /// v7.2: processes and where they run.
    pub sched_cache: SchedCache,
    pub(crate) group_sums: Option<GroupSums>,
    /// Balance passes since the driver last took them; `None` unless it requested them.
    pub balance_log: Option<Vec<BalanceDecision>>,
    /// What newly idle CPUs did since the driver last took it, if passes are kept.
    pub newidle_log: Vec<Newidle>,
    /// The rules of those passes, in order, if the driver requested them.
    pub balance_reasons: Vec<Reason>,
    /// The driver requested them.
    pub keeps_balance_reasons: bool,
    /// Carries out the moves that no caller requests.
    pub mover: &'static dyn Mover,
    /// Number of CPUs with so many RT tasks that some may be pushed.
    pub nr_rt_overloaded: u32,
    /// Progress of the push interrupts, among the CPUs in domains and among the isolated ones.
    pub rt_push_loops: [RtPushLoop; 2],
    /// The timer of RT throttling runs.
    pub rt_period_active: bool,
    /// When it expires, or last expired plus a period, ns.
    pub rt_period_expires: u64,
    /// Some group has a quota (the cfs_bandwidth_used static key).
    pub bandwidth_used: bool,
}

impl Sched {
    /// The scheduler of an idle machine at time 0: no task, every CPU running its
    /// idle task. `seed` feeds the per-CPU generators that the kernel draws from.
    ///
    /// Kernel: sched_init(), kernel/sched/core.c, v6.12.
    pub fn new(topology: &Topology, kernel: &Kernel, took: Took, seed: u64) -> Sched {
        let nr_cpus = topology.nr_cpus();
        let active = topology.online().clone();
        let capacity = capacity_orig(topology, kernel, &active);
        let migration_cost = kernel.tunables.migration_cost_ns;
        let rqs = PerCpu::new(nr_cpus, |cpu| {
            let mut rq = Rq::new(capacity[cpu], migration_cost, random_seed(seed, cpu));
            rq.online = active.contains(cpu);
            rq.active = rq.online;
            // Idle since the start: 0 would mean that it never went idle.
            rq.idle_stamp = 1;
            rq
        });
        let nr_load_avgs = if kernel.has(Feature::TgLoadAvgPerNode) { topology.nr_nodes() } else { 1 };
        let root = TaskGroup {
            parent: None,
            shares: NICE_0_LOAD,
            idle: false,
            load_avg: vec![0; nr_load_avgs],
            runnable_avg: 0,
            home_node: 0,
            cfs_rq: (0..nr_cpus as u32).map(CfsRqId).collect(),
            se: Vec::new(),
            blank: None,
            stamps: Vec::new(),
            bandwidth: Bandwidth::default(),
            uclamp_req: Uclamp::ROOT,
            uclamp: Uclamp::ROOT,
        };
        let cfs_rqs = (0..nr_cpus).map(|cpu| CfsRq::new(CpuId::from(cpu), TgId::ROOT)).collect();
        let domains = Domains::build(topology, kernel, &topology.in_domains());
        let mut sched = Sched {
            domains,
            topology: topology.clone(),
            kernel: kernel.clone(),
            scaled: Scaled::new(&kernel.tunables, active.weight()),
            took,
            looked: Looked::default(),
            lingers: false,
            stall: None,
            rqs: Watched::new(rqs),
            cfs_rqs: Watched::new(cfs_rqs),
            tasks: Vec::new(),
            group_ses: Vec::new(),
            tgs: vec![root],
            effects: Vec::new(),
            nohz_next_balance: 0,
            nohz_next_blocked: 0,
            nohz_has_blocked: false,
            nohz_idle_cpus: CpuMask::new(nr_cpus),
            nohz_needs_update: false,
            nohz_balancing: None,
            max_load_balance_interval: max_load_balance_interval(kernel, active.weight() - 1),
            leaving: Vec::new(),
            out_of_place: Vec::new(),
            sched_cache: SchedCache::default(),
            group_sums: None,
            balance_log: None,
            newidle_log: Vec::new(),
            balance_reasons: Vec::new(),
            keeps_balance_reasons: false,
            mover: &KernelMover,
            nr_rt_overloaded: 0,
            rt_push_loops: Default::default(),
            rt_period_active: false,
            rt_period_expires: 0,
            bandwidth_used: false,
        };
        sched.keep_group_sums();
        sched.number_llcs();
        sched
    }

    /// Rebuilds the domains for the active CPUs, as hotplug and cpusets do. Tunables follow the number of CPUs that
    /// are online then.
    ///
    /// Kernel: partition_sched_domains(), rq_attach_root(), kernel/sched/topology.c, v6.12; update_sysctl(),
    /// kernel/sched/fair.c, v6.12.
    pub fn rebuild_domains(&mut self, now: Time) {
        let active =
            CpuMask::of(self.rqs.len(), self.rqs.iter().filter(|(_, rq)| rq.active).map(|(cpu, _)| cpu));
        let capacity = capacity_orig(&self.topology, &self.kernel, &active);
        for (cpu, rq) in self.rqs.iter_mut() {
            rq.cpu_capacity_orig = capacity[cpu];
        }
        let in_domains = active.and(&self.topology.housekeeping());
        let online = self.online();
        let leaving_counts = self.kernel.has(Feature::LeavingCounts);
        let mut counted =
            if leaving_counts { online.and(&self.topology.housekeeping()) } else { in_domains.clone() };
        if self.kernel.has(Feature::NumaUpdate) {
            let mut of_nodes = CpuMask::new(self.rqs.len());
            let nodes = self.topology.nodes().iter().filter(|cpus| cpus.intersects(&in_domains));
            nodes.for_each(|cpus| of_nodes.or_with(cpus));
            counted.and_with(&of_nodes);
        }
        self.domains = self.domains.rebuild(&self.topology, &self.kernel, &in_domains, &counted);
        self.domains.set_online(&self.topology, &online);
        self.keep_group_sums();
        self.update_sysctl();
        self.leaving.clear();
        for cpu in in_domains.iter() {
            self.update_cpu_capacity(cpu);
        }
        self.after_rebuild(now);
    }

    /// Kernel: update_sysctl(), kernel/sched/fair.c, v6.12.
    pub(crate) fn update_sysctl(&mut self) {
        self.scaled = Scaled::new(&self.kernel.tunables, self.nr_online());
    }

    /// The CPUs that are online, active or not.
    pub(crate) fn online(&self) -> CpuMask {
        CpuMask::of(self.rqs.len(), self.rqs.iter().filter(|(_, rq)| rq.online).map(|(cpu, _)| cpu))
    }

    /// Number of online CPUs.
    pub(crate) fn nr_online(&self) -> usize {
        self.rqs.iter().filter(|(_, rq)| rq.online).count()
    }

    /// A CPU went offline or online: the longest balance interval depends on their number.
    ///
    /// Kernel: update_max_interval(), kernel/sched/fair.c, v6.12.
    pub(crate) fn update_max_interval(&mut self) {
        self.max_load_balance_interval = max_load_balance_interval(&self.kernel, self.nr_online());
    }

    /// Removes every CPU from its domains: nothing is balanced until they are rebuilt.
    ///
    /// Kernel: detach_destroy_domains(), kernel/sched/topology.c, v6.12.
    pub fn detach_domains(&mut self) {
        self.domains = Domains::build(&self.topology, &self.kernel, &CpuMask::new(self.rqs.len()));
        // No domain is left that keeps a time.
        self.after_rebuild(Time(0));
    }

    /// Length of a tick, ns.
    #[inline]
    pub fn tick_ns(&self) -> u64 {
        self.scaled.tick_ns
    }

    /// Ticks since the start.
    #[inline]
    pub fn jiffies(&self, now: Time) -> u64 {
        now.0 / self.tick_ns()
    }

    /// A task.
    #[inline]
    pub fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task.index()]
    }

    /// A task, mutable.
    #[inline]
    pub fn task_mut(&mut self, task: TaskId) -> &mut Task {
        &mut self.tasks[task.index()]
    }

    /// An entity.
    #[inline]
    pub fn se(&self, se: SeId) -> &Entity {
        if se.is_task() {
            &self.tasks[se.0 as usize].se
        } else {
            &self.group_ses[(se.0 & !SeId::GROUP) as usize]
        }
    }

    /// An entity, mutable.
    #[inline]
    pub fn se_mut(&mut self, se: SeId) -> &mut Entity {
        entity_of(&mut self.tasks, &mut self.group_ses, se)
    }

    /// A queue.
    #[inline]
    pub fn cfs(&self, id: CfsRqId) -> &CfsRq {
        &self.cfs_rqs[id.0 as usize]
    }

    /// A queue, mutable.
    #[inline]
    pub fn cfs_mut(&mut self, id: CfsRqId) -> &mut CfsRq {
        &mut self.cfs_rqs[id.0 as usize]
    }

    /// A group.
    #[inline]
    pub fn tg(&self, id: TgId) -> &TaskGroup {
        &self.tgs[id.0 as usize]
    }
}

/// The more CPUs balance, the less often each of them does. A CPU that comes online is not counted yet, so after boot the
/// last one is missing. Nothing updates it on a machine with one CPU.
///
/// Kernel: update_max_interval(), kernel/sched/fair.c, v6.12.
fn max_load_balance_interval(kernel: &Kernel, nr_online: usize) -> u64 {
    (kernel.tunables.hz * nr_online.max(1) as u64 / 10).max(1)
}

/// The seed of one CPU: the machine's seed, mixed by the finaliser of splitmix64; never 0.
fn random_seed(seed: u64, cpu: CpuId) -> u64 {
    let mut z = seed.wrapping_add((u64::from(cpu.0) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ z >> 31).max(1)
}
