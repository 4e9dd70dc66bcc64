//! CPUs that go offline and come back, on both sides.

use schedlab_kernel_tree::{CpuState, KernelTask};
use schedlab_sched::{Curr, Feature, Sched};
use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::pair::Pair;
use crate::settle::StopperWork;

impl Pair {
    /// A CPU begins to leave. The first CPU stays. While one leaves, no other leaves or returns (cpus_write_lock()).
    pub(crate) fn go_offline(&mut self, cpu: CpuId) -> bool {
        if cpu.0 == 0 || self.offline[cpu.index()] || self.leaving.contains(&true) {
            return false;
        }
        // Up to 5.10 the CPU is down at once, so threads that are bound to it sleep by then.
        let bound = |&(task, _): &(TaskId, KernelTask)| {
            let entry = self.sched.task(task);
            entry.cpu == cpu && entry.on_rq && entry.kthread_is_per_cpu()
        };
        if !self.sched.kernel.has(Feature::BalancePush) && self.tasks.iter().any(bound) {
            return false;
        }
        if self.kernel.offline(cpu).is_err() {
            // The clock shows whether the run queue was offline when the kernel found that.
            if self.kernel.cpu_state(cpu).clock == self.now {
                self.sched.cpu_stays(cpu, self.time());
            }
            return true;
        }
        self.sched.cpu_deactivate(cpu, self.time());
        self.rebuild_domains();
        if self.sched.rqs[cpu].curr != Curr::Idle && self.sched.kernel.has(Feature::BalancePush) {
            self.sched.rqs[cpu].need_resched.full = true;
        }
        self.leaving[cpu.index()] = true;
        true
    }

    /// The stopper of a CPU that is leaving takes it down, once the CPU has pushed away what it had to run. Up to 5.10 that
    /// is then moved.
    pub(crate) fn take_down(&mut self, cpu: CpuId) -> bool {
        if !self.leaving[cpu.index()] {
            return false;
        }
        let rq = &self.sched.rqs[cpu];
        let empty = rq.curr == Curr::Idle && rq.nr_running == 0;
        if !empty && self.sched.kernel.has(Feature::BalancePush) {
            return false;
        }
        self.leaving[cpu.index()] = false;
        self.kernel.take_down(cpu);
        self.ask_stopper(cpu, cpu, StopperWork::Die, true);
        self.after(format_args!("CPU {} is empty", cpu.0));
        true
    }

    fn rebuild_domains(&mut self) {
        self.sched.rebuild_domains(self.time());
        for cpu in (0..self.nr_cpus()).map(CpuId::from) {
            begin_as(&mut self.sched, cpu, &self.kernel.cpu_state(cpu));
        }
    }

    pub(crate) fn come_online(&mut self, cpu: CpuId) -> bool {
        if !self.offline[cpu.index()] || self.leaving.contains(&true) {
            return false;
        }
        self.kernel.starting(cpu);
        self.kernel.activate(cpu);
        self.offline[cpu.index()] = false;
        self.tick_stopped[cpu.index()] = false;
        self.kernel.nohz_exit(cpu);
        // Timers of its fair server may have read its clock.
        let state = self.kernel.cpu_state(cpu);
        let rq = &mut self.sched.rqs[cpu];
        (rq.clock, rq.clock_task, rq.clock_pelt) = (state.clock, state.clock_task, state.clock_pelt);
        self.sched.cpu_starting(cpu);
        self.sched.cpu_activate(cpu, self.time());
        self.rebuild_domains();
        true
    }
}

/// Two words of each new LLC, and of a domain with all capacities, that start with whatever their memory contained. In
/// 7.2 it contains a flag: `nr_idle_scan` and the flag by which a domain claims it are a union.
pub(crate) fn begin_as(sched: &mut Sched, cpu: CpuId, state: &CpuState) {
    let cut = &sched.domains.per_cpu[cpu];
    let asym = cut.asym_shared().map(|shared| (shared, state.balance_idle_scan));
    for (shared, scan) in cut.llc_shared.map(|shared| (shared, state.nr_idle_scan)).into_iter().chain(asym) {
        let shared = &mut sched.domains.shared[shared.0 as usize];
        shared.nr_idle_scan = scan as _;
        shared.has_idle_cores = state.has_idle_cores != 0;
    }
}
