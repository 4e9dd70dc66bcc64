//! Compares the two states, field by field.

use std::fmt;

use schedlab_kernel_tree as tree;
use schedlab_sched::{
    CacheGroup, Curr, FairPolicy, Feature, Policy, Pressure, ServerState, SharedId, UtilEstForm,
};
use schedlab_topology::CpuId;
use serde::Serialize;

use crate::Pair;

/// A field that differs between the two sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The kernel's name of the field.
    pub field: &'static str,
    /// The object: `CPU 3`, `t5`, `group 1 on CPU 2`.
    pub of: String,
    /// The kernel's value.
    pub kernel: String,
    /// The value of our rules.
    pub ours: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}: the kernel has {}, our rules {}", self.field, self.of, self.kernel, self.ours)?;
        match (self.kernel.parse::<u64>(), self.ours.parse::<u64>()) {
            (Ok(kernel), Ok(ours)) => write!(f, " ({:+})", ours.wrapping_sub(kernel) as i64),
            _ => Ok(()),
        }
    }
}

/// Our clock of averages and writes to groups begins at this time, ns, so that no time is 0.
const OUR_EPOCH: u64 = 1 << 30;

/// A time of the kernel's clock of averages by ours. 0 means never in both.
fn ours_of(at: u64) -> u64 {
    if at == 0 { 0 } else { at + OUR_EPOCH }
}

/// Collects differences.
struct Collected(Vec<Difference>);

impl Collected {
    #[cold]
    #[inline(never)]
    fn numbers(&mut self, of: &dyn Fn() -> String, fields: &[(&'static str, u64, u64)]) {
        for &(field, kernel, ours) in fields {
            if kernel != ours {
                let (kernel, ours) = (kernel.to_string(), ours.to_string());
                self.0.push(Difference { field, of: of(), kernel, ours });
            }
        }
    }
}

/// Compares numbers. What differs is put into words only if something does.
macro_rules! same {
    ($all:expr, $of:expr, $(($field:expr, $kernel:expr, $ours:expr $(,)?)),* $(,)?) => {
        if $(u64::ne(&$kernel, &$ours))|* {
            $all.numbers(&$of, &[$(($field, $kernel, $ours)),*]);
        }
    };
}

impl Pair {
    /// All present differences.
    pub(crate) fn differences(&self) -> Vec<Difference> {
        let mut all = Collected(Vec::new());
        // A CPU that is offline runs nothing. Its clock may be read by a timer of its fair server.
        for cpu in (0..self.nr_cpus()).map(CpuId::from).filter(|cpu| !self.offline[cpu.index()]) {
            self.compare_cpu(cpu, &mut all);
        }
        for task in 0..self.tasks.len() {
            self.compare_task(task, &mut all);
        }
        if self.sched.sched_cache_active() {
            self.compare_processes(&mut all);
        }
        for group in 0..self.groups.len() {
            for cpu in (0..self.nr_cpus()).map(CpuId::from) {
                self.compare_group(group, cpu, &mut all);
            }
        }
        all.0
    }

    /// The running task in our rules.
    pub(crate) fn our_curr(&self, cpu: CpuId) -> tree::Curr {
        match self.sched.rqs[cpu].curr {
            Curr::Idle => tree::Curr::Idle,
            Curr::Task(task) => match task.index().checked_sub(self.nr_cpus()) {
                Some(task) => tree::Curr::Task(tree::KernelTask(task as u32)),
                None => tree::Curr::Stopper,
            },
        }
    }

    /// Time since the averages of a CPU's queue were updated, by the clock of averages, ns; 0 if they never were.
    fn avg_age(&self, cpu: CpuId) -> u64 {
        match self.sched.cfs_rqs[cpu.index()].avg.last_update_time {
            0 => 0,
            at => self.sched.rq_clock_pelt(cpu).wrapping_sub(at),
        }
    }

    /// Our fair server, as [`tree::CpuState`] describes it.
    fn server(&self, cpu: CpuId) -> [u64; 4] {
        let server = &self.sched.rqs[cpu].fair_server;
        let timer = self.sched.fair_server_timer_at(cpu).unwrap_or(0);
        let throttled = match server.state {
            ServerState::Off => return [0, 0, 0, timer],
            ServerState::Runs => 0,
            ServerState::Spent => 1,
            ServerState::Waits => 3,
        };
        let state = 1 + throttled + 4 * u64::from(server.starving) + 8 * u64::from(server.idle);
        [state, server.runtime as u64, server.deadline, timer]
    }

    fn compare_cpu(&self, cpu: CpuId, all: &mut Collected) {
        let of = || format!("CPU {}", cpu.0);
        let name = |curr: tree::Curr| match curr {
            tree::Curr::Idle => "idle".to_string(),
            tree::Curr::Stopper => "the stopper".to_string(),
            tree::Curr::Task(task) => format!("t{}", task.0),
        };
        let (theirs, ours) = (self.kernel.curr(cpu), self.our_curr(cpu));
        if theirs != ours {
            all.0.push(Difference { field: "curr", of: of(), kernel: name(theirs), ours: name(ours) });
        }
        let lazy = (self.kernel.pending(cpu).resched_lazy(), self.sched.rqs[cpu].need_resched.lazy);
        same!(all, of, ("TIF_NEED_RESCHED_LAZY", lazy.0.into(), lazy.1.into()));
        let theirs = self.kernel.cpu_state(cpu);
        let rq = &self.sched.rqs[cpu];
        let cfs = &self.sched.cfs_rqs[cpu.index()];
        // A timer that another CPU set is set by the interrupt.
        if !self.kernel.pending(cpu).ipi() {
            same!(all, of, ("hrtick_timer", theirs.hrtick, rq.hrtick.unwrap_or(0)));
        }
        same!(
            all,
            of,
            ("nr_running", theirs.nr_running, u64::from(rq.nr_running)),
            ("rq clock", theirs.clock, rq.clock),
            ("clock_task", theirs.clock_task, rq.clock_task),
            ("clock_pelt", theirs.clock_pelt, rq.clock_pelt),
            ("avg_idle", theirs.avg_idle, rq.avg_idle),
            ("idle_stamp", theirs.idle_stamp, rq.idle_stamp),
            ("sched_rnd_state", theirs.random, rq.random),
            ("next_balance", theirs.next_balance, rq.next_balance),
            ("cfs load_avg", theirs.load_avg, cfs.avg.load_avg),
            ("cfs util_avg", theirs.util_avg, cfs.avg.util_avg),
            ("cfs runnable_avg", theirs.runnable_avg, cfs.avg.runnable_avg),
            ("cfs weight", theirs.weight, cfs.load.weight),
            ("cpu_capacity", theirs.cpu_capacity, rq.cpu_capacity),
            ("max_idle_balance_cost", theirs.max_idle_balance_cost, rq.max_idle_balance_cost),
            ("h_load", theirs.h_load, cfs.h_load.get()),
            ("cfs load_sum", theirs.load_sum, cfs.avg.load_sum),
            ("cfs util_sum", theirs.util_sum, cfs.avg.util_sum),
            ("cfs removed.nr", theirs.removed, u64::from(cfs.removed.nr)),
            ("cfs removed.load_avg", theirs.removed_load, cfs.removed.load_avg),
            ("misfit_task_load", theirs.misfit_task_load, rq.misfit_task_load),
            ("h_nr_queued", theirs.h_nr_queued, u64::from(cfs.h_nr_queued)),
            ("on_list", theirs.on_list, u64::from(cfs.on_list)),
            ("vruntime of next", theirs.next, cfs.next.map_or(0, |next| self.sched.se(next).vruntime)),
            ("cfs util_est", theirs.util_est, u64::from(rq.util_est_enqueued)),
            ("last_h_load_update", theirs.last_h_load_update, cfs.last_h_load_update.get()),
        );
        // What is zero does not age.
        if cfs.avg.load_avg != 0 || cfs.avg.util_avg != 0 || cfs.avg.runnable_avg != 0 {
            same!(all, of, ("age of cfs averages", theirs.avg_age, self.avg_age(cpu)));
        }
        if self.sched.kernel.rules.pressure != Pressure::RtAvg {
            same!(
                all,
                of,
                ("util_avg of RT", theirs.rt_util_avg, rq.avg_rt.util_avg),
                ("util_avg of interrupts", theirs.irq_util_avg, rq.avg_irq.util_avg),
                ("util_avg of deadline tasks", theirs.dl_util_avg, rq.avg_dl.util_avg),
            );
        }
        let server = self.server(cpu);
        same!(
            all,
            || format!("the fair server of CPU {}", cpu.0),
            ("state", theirs.server_state, server[0]),
            ("runtime", theirs.server_runtime, server[1]),
            ("deadline", theirs.server_deadline, server[2]),
            ("timer", theirs.server_timer, server[3]),
        );
        if cpu == CpuId(0) {
            let ours = u64::from(self.sched.domains.overload);
            same!(all, || "the machine".to_string(), ("overloaded", theirs.overloaded, ours));
        }
        if self.zero_vruntime {
            same!(
                all,
                of,
                ("zero_vruntime", theirs.vruntime, cfs.zero_vruntime),
                ("sum of vruntimes", theirs.vruntime_sum, cfs.avg_vruntime as u64),
            );
        }
        let cut = &self.sched.domains.per_cpu[cpu];
        let shared = |of: SharedId| &self.sched.domains.shared[of.0 as usize];
        if let Some(llc) = cut.llc_shared {
            same!(all, of, ("nr_idle_scan", theirs.nr_idle_scan, u64::from(shared(llc).nr_idle_scan)));
        }
        if let Some(searched) = cut.balance_shared.map(shared) {
            let scan = u64::from(searched.nr_idle_scan);
            same!(
                all,
                of,
                ("nr_idle_scan of all capacities", theirs.balance_idle_scan, scan),
                ("has_idle_cores", theirs.has_idle_cores, u64::from(searched.has_idle_cores)),
            );
        }
        for (level, (_, sd)) in self.sched.domains.walk(cpu).enumerate() {
            let of = || format!("CPU {}, domain {level}", cpu.0);
            let Some(theirs) = self.kernel.domain_state(cpu, level) else {
                let (kernel, ours) = ("none".to_string(), "one".to_string());
                all.0.push(Difference { field: "domain", of: of(), kernel, ours });
                continue;
            };
            let sgc = &self.sched.domains.sgcs[self.sched.domains.sg(sd.groups.local()).sgc as usize];
            same!(
                all,
                of,
                ("last_balance", theirs.last_balance, sd.last_balance),
                ("balance_interval", theirs.balance_interval, sd.balance_interval),
                ("nr_balance_failed", theirs.nr_balance_failed, u64::from(sd.nr_balance_failed)),
                ("sgc->imbalance", theirs.imbalance, u64::from(sgc.imbalance)),
                ("sgc->capacity", theirs.capacity, sgc.capacity),
                ("sgc->min_capacity", theirs.min_capacity, sgc.min_capacity),
                ("sgc->max_capacity", theirs.max_capacity, sgc.max_capacity),
                ("sgc->next_update", theirs.next_update, sgc.next_update),
            );
        }
    }

    fn compare_processes(&self, all: &mut Collected) {
        for cpu in (0..self.nr_cpus()).map(CpuId::from) {
            let theirs = self.kernel.cpu_state(cpu);
            let (rq, epoch) = (&self.sched.rqs[cpu], &self.sched.sched_cache.cpu[cpu]);
            let counts: u64 =
                rq.llc_counts.iter().enumerate().map(|(llc, n)| u64::from(*n) << (8 * (llc % 8))).sum();
            same!(
                all,
                || format!("CPU {}", cpu.0),
                ("nr_pref_llc_running", theirs.nr_pref_llc_running, u64::from(rq.nr_pref_llc_running)),
                ("llc_counts", theirs.llc_counts, counts),
                ("cpu_epoch", theirs.cpu_epoch, epoch.epoch),
                ("cpu_epoch_next", theirs.cpu_epoch_next, self.sched.sched_cache.epoch_next[cpu]),
                ("cpu_runtime", theirs.cpu_runtime, epoch.runtime),
            );
        }
        for process in 0..self.processes {
            let group = self.sched.sched_cache.groups.get(process);
            let of = || format!("process {process}");
            let theirs = self.kernel.process_state(process, CpuId(0));
            let number = |of: &dyn Fn(&CacheGroup) -> u64| group.map_or(0, of);
            same!(
                all,
                of,
                ("cpu", theirs.cpu, number(&|group| group.cpu.map_or(0, |cpu| u64::from(cpu.0) + 1))),
                ("epoch", theirs.epoch, number(&|group| group.epoch)),
                ("next_scan", theirs.next_scan, number(&|group| group.next_scan)),
                ("nr_running_avg", theirs.nr_running_avg, number(&|group| group.nr_running_avg as u64)),
                ("nr_threads", theirs.nr_threads, number(&|group| group.nr_threads.into())),
            );
            for cpu in (0..self.nr_cpus()).map(CpuId::from) {
                let theirs = self.kernel.process_state(process, cpu).runtime;
                let of = || format!("process {process} on CPU {}", cpu.0);
                same!(all, of, ("runtime", theirs, number(&|group| group.runtime.of(cpu))));
            }
        }
    }

    fn compare_task(&self, number: usize, all: &mut Collected) {
        if self.ended[number] {
            return;
        }
        let of = || format!("t{number}");
        let theirs = self.kernel.task_state(self.tasks[number].1);
        let task = self.sched.task(self.tasks[number].0);
        let se = &task.se;
        same!(
            all,
            of,
            ("cpu", theirs.cpu, u64::from(task.cpu.0)),
            ("on_rq", theirs.on_rq, u64::from(task.on_rq)),
            ("sched_delayed", theirs.sched_delayed, u64::from(se.sched_delayed)),
            ("sum_exec_runtime", theirs.sum_exec_runtime, se.sum_exec_runtime),
            ("vruntime", theirs.vruntime, se.vruntime),
            ("load_avg", theirs.load_avg, se.avg.load_avg),
            ("util_avg", theirs.util_avg, se.avg.util_avg),
            ("runnable_avg", theirs.runnable_avg, se.avg.runnable_avg),
            ("load_sum", theirs.load_sum, se.avg.load_sum),
            ("util_sum", theirs.util_sum, se.avg.util_sum),
            ("weight", theirs.weight, se.load.weight),
            ("recent_used_cpu", theirs.recent_used_cpu, task.recent_used_cpu.map_or(0, |cpu| cpu.0.into()),),
            ("wake_cpu", theirs.wake_cpu, u64::from(task.wake_cpu.0)),
            ("preferred_llc", theirs.preferred_llc, task.preferred_llc.map_or(0, |llc| u64::from(llc) + 1),),
            ("last_update_time", ours_of(theirs.last_update_time), se.avg.last_update_time),
            ("util_est", theirs.util_est, self.sched.util_est_last(self.tasks[number].0).into()),
            ("pref_llc_queued", theirs.pref_llc_queued, task.pref_llc_queued.into()),
        );
        if self.sched.kernel.rules.util_est_form != UtilEstForm::Single {
            same!(all, of, ("util_est.ewma", theirs.util_est_ewma, task.util_est_ewma.into()));
        }
        if self.nr_cpus() > 1 {
            // The kernel counts them even for a single CPU, as its mask has room for more, and no rule reads them.
            same!(all, of, ("wakee_flips", theirs.wakee_flips, u64::from(task.wakee_flips)));
        }
        if matches!(task.policy, Policy::Deadline { .. }) {
            same!(
                all,
                of,
                ("dl.runtime", theirs.dl_runtime, task.dl_runtime as u64),
                ("dl.deadline", theirs.dl_deadline, task.dl_deadline),
                ("dl_throttled", theirs.dl_throttled, u64::from(task.dl_throttled)),
            );
        }
        if self.sched.kernel.rules.policy == FairPolicy::Eevdf {
            let relative = |deadline: u64, vruntime: u64| deadline.wrapping_sub(vruntime);
            same!(
                all,
                of,
                (
                    "deadline - vruntime",
                    relative(theirs.deadline, theirs.vruntime),
                    relative(se.deadline, se.vruntime),
                ),
                ("slice", theirs.slice, se.slice),
                ("vlag", theirs.vlag, se.vlag as u64),
            );
            if self.runs(number) {
                same!(all, of, ("vprot", theirs.vprot, se.vprot));
            }
        }
    }

    fn compare_group(&self, number: usize, cpu: CpuId, all: &mut Collected) {
        let of = || format!("group {number} on CPU {}", cpu.0);
        let (group, theirs) = self.groups[number];
        let theirs = self.kernel.group_state(theirs, cpu);
        let tg = self.sched.tg(group);
        let (queue, se) = self.sched.queue_and_entity(group, cpu);
        // Kernels without a limit on such writes keep no time of the last one.
        let tg_load_at = match theirs.last_update_tg_load_avg {
            0 => queue.last_update_tg_load_avg,
            at => ours_of(at),
        };
        let list = &self.sched.rqs[cpu].leaf_cfs_rqs;
        let list_at =
            self.sched.on_cpu(group, cpu).and_then(|(cfs, _)| list.iter().position(|&other| other == cfs));
        let list_at = list_at.map_or(0, |at| at as u64 + 1);
        let min_slice = match self.sched.kernel.has(Feature::GroupMinSlice) {
            true => queue.timeline.min_slice().unwrap_or(0),
            false => theirs.queue_min_slice,
        };
        // Other kernels have no average of a group's tasks.
        let concur = self.sched.kernel.has(Feature::ConcurShares);
        let of_concur = |average: u64| if concur { average } else { 0 };
        if cpu == CpuId(0) {
            let of = || format!("group {number}");
            let load = tg.load_avg.iter().sum::<i64>() as u64;
            same!(
                all,
                of,
                ("cfs_bandwidth.runtime", theirs.pool, tg.bandwidth.runtime),
                ("load_avg", theirs.tg_load_avg, load),
                ("runnable_avg", theirs.tg_runnable_avg, of_concur(tg.runnable_avg as u64)),
            );
        }
        same!(
            all,
            of,
            ("on_rq", theirs.on_rq, u64::from(se.on_rq)),
            ("weight", theirs.weight, se.load.weight),
            ("vruntime", theirs.vruntime, se.vruntime),
            ("load_avg", theirs.load_avg, se.avg.load_avg),
            ("util_avg", theirs.util_avg, se.avg.util_avg),
            ("queue's weight", theirs.queue_weight, queue.load.weight),
            ("queue's load_avg", theirs.queue_load_avg, queue.avg.load_avg),
            ("queue's util_avg", theirs.queue_util_avg, queue.avg.util_avg),
            ("throttled", theirs.throttled, u64::from(queue.throttled)),
            ("runtime_remaining", theirs.runtime_remaining, queue.runtime_remaining as u64),
            ("on_list", theirs.on_list, u64::from(queue.on_list)),
            ("queue's h_load", theirs.h_load, queue.h_load.get()),
            ("load_sum", theirs.load_sum, se.avg.load_sum),
            ("util_sum", theirs.util_sum, se.avg.util_sum),
            ("queue's load_sum", theirs.queue_load_sum, queue.avg.load_sum),
            ("queue's util_sum", theirs.queue_util_sum, queue.avg.util_sum),
            ("queue's last_update_time", ours_of(theirs.queue_last_update_time), queue.avg.last_update_time),
            ("queue's min_slice", theirs.queue_min_slice, min_slice),
            ("tg_load_avg_contrib", theirs.load_avg_contrib, queue.tg_load_avg_contrib),
            (
                "tg_runnable_avg_contrib",
                theirs.runnable_avg_contrib,
                of_concur(queue.tg_runnable_avg_contrib)
            ),
            ("last_update_tg_load_avg", tg_load_at, queue.last_update_tg_load_avg),
            ("place in leaf_cfs_rq_list", theirs.list_at, list_at),
            ("propagate", theirs.propagate, u64::from(queue.propagate)),
            ("prop_runnable_sum", theirs.prop_runnable_sum, queue.prop_runnable_sum as u64),
            ("removed.nr", theirs.removed, u64::from(queue.removed.nr)),
            ("removed.load_avg", theirs.removed_load, queue.removed.load_avg),
            ("throttle_count", theirs.throttle_count, queue.throttle_count.into()),
            ("h_nr_queued", theirs.h_nr_queued, queue.h_nr_queued.into()),
            ("vruntime of next", theirs.next, queue.next.map_or(0, |next| self.sched.se(next).vruntime)),
        );
        if self.sched.kernel.rules.policy == FairPolicy::Eevdf {
            same!(
                all,
                of,
                ("zero_vruntime", theirs.zero_vruntime, queue.zero_vruntime),
                ("sum of vruntimes", theirs.vruntime_sum, queue.avg_vruntime as u64),
                ("deadline", theirs.deadline, se.deadline),
                ("vlag", theirs.vlag, se.vlag as u64),
                ("sched_delayed", theirs.sched_delayed, u64::from(se.sched_delayed)),
                ("slice", theirs.slice, se.slice),
                ("rel_deadline", theirs.rel_deadline, u64::from(se.rel_deadline)),
            );
        }
    }
}
