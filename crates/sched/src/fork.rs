//! Making a task.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::{
    Curr, Entity, FairPolicy, Feature, ForkPlace, LoadWeight, NewTask, Policy, Sched, SeId, Task, TaskState,
    TaskWorks, Uclamp,
};

/// Bounds of the slice a task may request, ns.
///
/// Kernel: __setparam_fair(), kernel/sched/fair.c, v7.2.
const SLICE: core::ops::RangeInclusive<u64> = 100_000..=100_000_000;

impl Sched {
    /// Creates a task; `apply_fork` then chooses its CPU and queues it. It starts on the
    /// CPU of its parent, or on the first it may use.
    ///
    /// Kernel: sched_fork(), sched_cgroup_fork(), kernel/sched/core.c; task_fork_fair(), kernel/sched/fair.c, v6.1, v6.12.
    pub fn new_task(&mut self, spec: &NewTask, parent: Option<TaskId>, now: Time) -> TaskId {
        let id = TaskId(self.tasks.len() as u32);
        self.make_task(id, spec, parent, now);
        id
    }

    /// The same, in the slot of a dead task, which no longer exists after that: its number refers to the new task from
    /// now on.
    ///
    /// # Panics
    ///
    /// If the task in that place is not dead.
    pub fn new_task_in(&mut self, place: TaskId, spec: &NewTask, parent: Option<TaskId>, now: Time) {
        assert!(self.task(place).is_gone(), "{place:?} lives");
        self.make_task(place, spec, parent, now);
    }

    fn make_task(&mut self, id: TaskId, spec: &NewTask, parent: Option<TaskId>, now: Time) {
        let cpu = match parent {
            Some(parent) => self.task(parent).cpu,
            None => self.first_allowed(spec),
        };
        let mut task = Task::new(spec, cpu);
        if let Some(parent) = parent {
            // The rest of task_struct is copied, wakee statistics with it. The parameters of a deadline task are
            // cleared (__dl_clear_params()), but what is left of its runtime, and until when, is not. Until when it is
            // protected from preemption counts if it becomes fair while it runs.
            let parent = self.task(parent);
            task.dl_runtime = parent.dl_runtime;
            task.dl_deadline = parent.dl_deadline;
            task.se.vprot = parent.se.vprot;
            task.max_allowed_capacity = parent.max_allowed_capacity;
            task.wakee_flips = parent.wakee_flips;
            task.wakee_flip_decay = parent.wakee_flip_decay;
            task.last_wakee = parent.last_wakee;
        }
        task.se.load = self.kernel.divisor(LoadWeight::of_task(spec.policy, spec.nice));
        task.se.idle = spec.policy == Policy::Idle;
        let slice = spec.slice.filter(|_| self.kernel.has(Feature::CustomSlice));
        task.se.custom_slice = slice.is_some();
        task.se.slice = slice.map_or(self.scaled.base_slice, clamp_slice);
        task.nr_cpus_allowed = spec.allowed.weight() as u32;
        match self.tasks.get_mut(id.index()) {
            Some(place) => *place = task,
            None => self.tasks.push(task),
        }
        self.set_cpu(id, cpu);
        self.init_entity_runnable_average(SeId(id.0));
        self.sched_cache_fork(id, now);
        self.set_task_max_allowed_capacity(id);
        if spec.policy.is_fair() {
            self.task_fork_fair(id, cpu, parent, now);
        }
    }

    fn first_allowed(&self, spec: &NewTask) -> CpuId {
        let active = |cpu: &CpuId| self.rqs[*cpu].active;
        spec.allowed.iter().find(active).unwrap_or_else(|| spec.allowed.first().unwrap_or_default())
    }

    /// Places a child in virtual time, in kernels that do so at fork.
    ///
    /// Kernel: task_fork_fair(), kernel/sched/fair.c, v6.1, v6.10.
    fn task_fork_fair(&mut self, child: TaskId, cpu: CpuId, parent: Option<TaskId>, now: Time) {
        if self.kernel.rules.fork_place == ForkPlace::Chosen {
            return;
        }
        self.update_rq_clock(cpu, now);
        let se = SeId(child.0);
        let cfs = self.cfs_rq_of(se);
        let running = parent.filter(|&parent| self.rqs[cpu].curr == Curr::Task(parent));
        let beside = running.map(|parent| self.cfs_rq_of(SeId(parent.0)));
        if let Some(beside) = beside
            && let Some(curr) = self.cfs(beside).curr
        {
            self.update_curr(beside);
            let vruntime = self.se(curr).vruntime;
            self.se_mut(se).vruntime = vruntime;
        }
        match self.kernel.rules.policy {
            FairPolicy::Cfs => {
                let at = beside.unwrap_or(cfs);
                self.place_entity_cfs(at, se, true);
                let floor = self.cfs(at).min_vruntime;
                let entity = self.se_mut(se);
                entity.vruntime = entity.vruntime.wrapping_sub(floor);
            }
            // Placed again when it is queued.
            FairPolicy::Eevdf => {}
        }
    }
}

/// A slice within the bounds.
pub(crate) fn clamp_slice(slice: u64) -> u64 {
    slice.clamp(*SLICE.start(), *SLICE.end())
}

impl Task {
    /// Dead, in no queue and on no CPU: nothing in the scheduler refers to it any more.
    pub fn is_gone(&self) -> bool {
        self.state == TaskState::Dead && !self.on_rq && !self.on_cpu
    }

    /// A task that was just made, not yet woken.
    fn new(spec: &NewTask, cpu: CpuId) -> Task {
        Task {
            se: Entity::default(),
            policy: spec.policy,
            nice: spec.nice,
            allowed: spec.allowed.clone(),
            nr_cpus_allowed: 0,
            never_restricted: false,
            bound_by_user: false,
            cpu,
            wake_cpu: cpu,
            recent_used_cpu: None,
            on_cpu: false,
            on_rq: false,
            state: TaskState::New,
            wakee_flips: 0,
            wakee_flip_decay: 0,
            last_wakee: None,
            kthread: spec.kthread,
            exiting: false,
            tg: spec.tg,
            process: spec.process,
            util_est_enqueued: 0,
            util_est_ewma: 0,
            uclamp_req: Uclamp::default(),
            max_allowed_capacity: 1024,
            preferred_llc: None,
            cache_place: crate::balance::NO_PLACE,
            pref_llc_queued: false,
            list_next: None,
            list_prev: None,
            on_list: false,
            rr_ticks_left: 0,
            rt_waits_from: 0,
            dl_runtime: 0,
            dl_deadline: 0,
            dl_throttled: false,
            dl_yielded: false,
            dl_non_contending: false,
            dl_timer_queued: false,
            dl_inactive_at: None,
            works: TaskWorks::default(),
            throttled: false,
            wake_flags: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::lab::{Lab, MS};
    use crate::{NewTask, Scheduler, TaskState};

    /// Up to v6.3 a fork leaves a slice for a place in virtual time, which is far ahead early in a run.
    #[test]
    fn a_thread_that_sleeps_from_the_start_preempts_as_one_that_has_slept_for_long() {
        let mut lab = Lab::new("v6.1", "1x1x1").without_ticks();
        lab.hog("runs", 0);
        lab.run(3 * MS);
        let spec = NewTask { kthread: true, ..lab.spec() };
        let thread = lab.sched.new_task(&spec, None, lab.time());
        assert!(lab.sched.task(thread).se.vruntime > MS);
        Scheduler::set_state(&mut lab.sched, thread, TaskState::Interruptible);
        assert_eq!(lab.sched.task(thread).se.vruntime, 0);
    }

    #[test]
    fn a_child_has_the_mark_of_protection_of_its_parent() {
        let mut lab = Lab::new("v7.2", "1x1x1");
        let parent = lab.hog("parent", 0);
        lab.sched.task_mut(parent).se.vprot = 4_000_000;
        let (spec, now) = (lab.spec(), lab.time());
        let child = lab.sched.new_task(&spec, Some(parent), now);
        assert_eq!(lab.sched.task(child).se.vprot, 4_000_000);
    }
}
