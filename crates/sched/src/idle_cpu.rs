//! Whether a CPU counts as idle for placement.

use schedlab_topology::CpuId;

use crate::{Curr, IdleTest, PendingWake, Sched};

impl Sched {
    /// Nothing runs, nothing is queued, no wake-up is pending, and the switch away from the last task is
    /// complete.
    ///
    /// Kernel: idle_cpu(), kernel/sched/core.c, v6.12 and v5.5.
    #[inline]
    pub fn idle_cpu(&self, cpu: CpuId) -> bool {
        let rq = &self.rqs[cpu];
        rq.curr_seen() == Curr::Idle && rq.nr_running == 0 && !self.wake_pending(cpu)
    }

    /// Whether a wake-up is pending for a CPU.
    #[inline]
    pub(crate) fn wake_pending(&self, cpu: CpuId) -> bool {
        let rq = &self.rqs[cpu];
        match self.kernel.rules.pending_wake {
            PendingWake::List => !rq.wake_list.is_empty(),
            PendingWake::Flag => rq.ttwu_pending,
        }
    }

    /// Idle for a waker, also if another has just chosen it and not queued its task yet. Preempted virtual CPUs do not
    /// exist here.
    ///
    /// Kernel: available_idle_cpu(), kernel/sched/core.c, v6.12.
    #[inline]
    pub fn available_idle_cpu(&self, cpu: CpuId) -> bool {
        self.idle_cpu(cpu) || (self.rqs[cpu].hides_queued && self.rqs[cpu].curr_seen() == Curr::Idle)
    }

    /// Only SCHED_IDLE tasks and idle groups run here.
    ///
    /// Kernel: sched_idle_cpu(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub fn sched_idle_cpu(&self, cpu: CpuId) -> bool {
        let nr_running = self.rqs[cpu].nr_running;
        nr_running > 0 && nr_running == self.root_cfs(cpu).h_nr_idle
    }

    /// Whether a wakee, which may be SCHED_IDLE itself, preempts the task that runs there.
    ///
    /// Kernel: choose_sched_idle_rq(), kernel/sched/fair.c, v7.2.
    #[inline]
    pub(crate) fn choose_sched_idle(&self, cpu: CpuId, has_idle_policy: bool) -> bool {
        match self.kernel.rules.idle_test {
            IdleTest::IdleCpu => false,
            IdleTest::Available => self.sched_idle_cpu(cpu),
            IdleTest::ChooseIdle => !has_idle_policy && self.sched_idle_cpu(cpu),
        }
    }

    /// Whether a wakee may be put there at once.
    ///
    /// Kernel: choose_idle_cpu(), kernel/sched/fair.c, v7.2.
    #[inline]
    pub(crate) fn choose_idle_cpu(&self, cpu: CpuId, has_idle_policy: bool) -> bool {
        self.available_idle_cpu(cpu) || self.choose_sched_idle(cpu, has_idle_policy)
    }

    /// Some core of the CPU's last-level cache may be wholly idle; in v7.2 of the domain with all capacities.
    ///
    /// Kernel: test_idle_cores(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub fn test_idle_cores(&self, cpu: CpuId) -> bool {
        let shared = self.domains.per_cpu[cpu].balance_shared;
        shared.is_some_and(|shared| self.domains.shared[shared.0 as usize].has_idle_cores)
    }

    /// Records whether some core of the CPU's last-level cache may be wholly idle.
    ///
    /// Kernel: set_idle_cores(), kernel/sched/fair.c, v6.12.
    pub fn set_idle_cores(&mut self, cpu: CpuId, may_be: bool) {
        if let Some(shared) = self.domains.per_cpu[cpu].balance_shared {
            self.domains.shared[shared.0 as usize].has_idle_cores = may_be;
        }
    }

    /// A CPU goes idle: if that makes its core idle, searches may look for one again.
    ///
    /// Kernel: __update_idle_core(), kernel/sched/fair.c, v6.12.
    pub fn update_idle_core(&mut self, cpu: CpuId) {
        if self.domains.smt_active && !self.test_idle_cores(cpu) && self.is_core_idle(cpu) {
            self.set_idle_cores(cpu, true);
        }
    }

    /// All other threads of the CPU's core are idle.
    ///
    /// Kernel: is_core_idle(), kernel/sched/fair.c, v6.12.
    pub fn is_core_idle(&self, cpu: CpuId) -> bool {
        self.domains.smt_mask[cpu].iter().all(|thread| thread == cpu || self.idle_cpu(thread))
    }

    /// The CPUs share a last-level cache.
    ///
    /// Kernel: cpus_share_cache(), kernel/sched/core.c, v6.12.
    #[inline]
    pub fn cpus_share_cache(&self, a: CpuId, b: CpuId) -> bool {
        a == b || self.domains.per_cpu[a].llc_id == self.domains.per_cpu[b].llc_id
    }

    /// The CPUs share a cluster, or a last-level cache where there are no clusters.
    ///
    /// Kernel: cpus_share_resources(), kernel/sched/core.c, v6.12.
    #[inline]
    pub fn cpus_share_resources(&self, a: CpuId, b: CpuId) -> bool {
        a == b || self.domains.per_cpu[a].share_id == self.domains.per_cpu[b].share_id
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::drawing::{NOW, by_kernel, draw};
    use crate::{Curr, Deactivate, EnqueueFlags, Sched, Scheduler, TaskState};

    #[test]
    fn a_wake_list_taken_but_not_queued_yet_keeps_a_cpu_busy_since_v5_8() {
        let state = |kernel: &str| {
            let mut drawn = draw(kernel, "llc0: 0[] 1[ ; pending]");
            assert!(!drawn.sched.idle_cpu(CpuId(1)), "on its way, by the list and by the flag");
            drawn.sched.rqs[CpuId(1)].wake_list.clear();
            if drawn.sched.idle_cpu(CpuId(1)) { "idle" } else { "busy" }.to_string()
        };
        expect![[r#"
            v4.13..v5.5: idle
            v5.18..v7.3: busy"#]]
        .assert_eq(&by_kernel("", state));
    }

    #[test]
    fn a_cpu_that_has_not_switched_to_idle_yet_is_busy_for_a_driver_that_says_when() {
        for (waits, lingers) in [(false, true), (true, true), (false, false)] {
            let mut drawn = draw("v6.12+NO_NI_RANDOM", "1x1x2x2 | 0[a*]");
            let (sched, cpu) = (&mut drawn.sched, CpuId(0));
            assert!(!lingers || sched.linger());
            sched.set_idle_cores(cpu, false);
            Sched::schedule(sched, cpu, Deactivate::Sleep(TaskState::Interruptible), NOW);
            assert_eq!((sched.rqs[cpu].curr, sched.idle_cpu(cpu)), (Curr::Idle, !lingers));
            assert_eq!(sched.test_idle_cores(cpu), !lingers, "its core is idle when it is");
            if waits {
                let [task] = ["a"].map(|name| drawn.task(name));
                let sched = &mut drawn.sched;
                sched.activate(task, cpu, EnqueueFlags { wakeup: true, ..EnqueueFlags::default() }, NOW);
                let switched = Sched::schedule(sched, cpu, Deactivate::Yielded, NOW);
                assert_eq!((switched.next, sched.rqs[cpu].idle_stamp), (Curr::Task(task), 0));
                assert!(sched.rqs[cpu].leaving.is_none() && !sched.test_idle_cores(cpu), "it never was idle");
            } else {
                sched.is_at_idle(cpu);
                assert!(sched.idle_cpu(cpu) && sched.test_idle_cores(cpu));
            }
        }
    }
}
