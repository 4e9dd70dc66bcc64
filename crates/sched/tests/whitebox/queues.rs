//! A scheduler with real queues, set to the states that a recording shows.

use std::collections::BTreeMap;
use std::sync::Arc;

use schedlab_sched::{Curr, DequeueFlags, EnqueueFlags, NewTask, Sched, SdId, Took};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::TaskId;

use crate::follow::{Followed, FollowedCpu};
use crate::pass::Pass;
use crate::recording::Recording;
use crate::snapshot::NOW;
use crate::wake::is_bound_kthread;

/// A scheduler whose queues are those that a recording shows.
pub struct Queues {
    pub sched: Sched,
    tasks: BTreeMap<i64, TaskId>,
    /// The last state that was set.
    cpus: Vec<FollowedCpu>,
    /// Failures and interval of a CPU's domain after its last pass.
    pub after: BTreeMap<(CpuId, u32), (i64, i64)>,
}

impl Queues {
    pub fn new(recording: &Recording) -> Queues {
        let sched = Sched::new(&recording.topology, &recording.kernel, Took::default(), 1);
        let cpus = vec![FollowedCpu::default(); recording.topology.nr_cpus()];
        Queues { sched, tasks: BTreeMap::new(), cpus, after: BTreeMap::new() }
    }

    pub fn task(&mut self, pid: i64) -> TaskId {
        let nr_cpus = self.sched.rqs.len();
        let sched = &mut self.sched;
        *self.tasks.entry(pid).or_insert_with(|| sched.new_task(&NewTask::plain(nr_cpus), None, NOW))
    }

    /// The known state of a task: its mask, and how long ago it ran.
    pub fn describe(&mut self, pid: i64, followed: &Followed, ago: Option<u64>) -> TaskId {
        let id = self.task(pid);
        let nr_cpus = self.sched.rqs.len();
        let bound = bound_to(&followed.comm);
        let mask = bound.map(|cpu| 1 << cpu).or(followed.mask).unwrap_or(u64::MAX);
        let allowed = CpuMask::of(nr_cpus, (0..nr_cpus).filter(|cpu| mask >> cpu & 1 == 1).map(CpuId::from));
        let task = self.sched.task_mut(id);
        task.kthread = bound.is_some();
        task.nr_cpus_allowed = allowed.weight() as u32;
        if *task.allowed != allowed {
            task.allowed = Arc::new(allowed);
        }
        // A task that was moved since it ran has no stamp.
        task.se.exec_start = ago.map_or(0, |ago| NOW.0 - ago);
        id
    }

    /// Sets all CPUs to the state at the beginning of a pass.
    pub fn put(&mut self, pass: &Pass) {
        let differs = |at: &usize| self.cpus[*at] != pass.cpus[*at];
        let changed: Vec<usize> = (0..self.cpus.len()).filter(differs).collect();
        for &at in &changed {
            self.take_all(CpuId::from(at));
        }
        for at in changed {
            self.put_one(CpuId::from(at), &pass.cpus[at], &pass.tasks);
            self.cpus[at] = pass.cpus[at].clone();
        }
        for (pid, task) in &pass.tasks {
            let ago = task.charged.map(|charged| pass.begin.0 - charged.0);
            self.describe(*pid, task, ago);
        }
        self.sched.effects.clear();
    }

    /// Empties a CPU.
    fn take_all(&mut self, cpu: CpuId) {
        let rq = &mut self.sched.rqs[cpu];
        rq.ttwu_pending = false;
        rq.nr_running = self.sched.cfs_rqs[cpu.index()].h_nr_queued;
        if rq.curr.task().is_some_and(|curr| !self.sched.task(curr).se.on_rq) {
            self.sched.rqs[cpu].curr = Curr::Idle;
        } else {
            self.sched.switch_to(cpu, Curr::Idle, NOW);
        }
        let listed: Vec<TaskId> = self.sched.cfs_tasks(cpu).collect();
        for task in listed {
            self.sched.task_mut(task).on_cpu = false;
            self.sched.deactivate(task, DequeueFlags::default(), NOW);
        }
    }

    fn put_one(&mut self, cpu: CpuId, state: &FollowedCpu, tasks: &BTreeMap<i64, Followed>) {
        let fair = |pid: &i64| tasks[pid].fair;
        for &pid in state.list.iter().rev().filter(|pid| fair(pid)) {
            let task = self.task(pid);
            let mine = &mut self.sched;
            mine.set_cpu(task, cpu);
            mine.activate(task, cpu, EnqueueFlags { initial: true, ..EnqueueFlags::default() }, NOW);
            if pid == state.curr {
                mine.switch_to(cpu, Curr::Task(task), NOW);
            }
        }
        if state.curr != 0 && !state.list.iter().any(|pid| *pid == state.curr && fair(pid)) {
            // It is of another class, or no longer queued.
            let task = self.task(state.curr);
            self.sched.rqs[cpu].curr = Curr::Task(task);
        }
        let others = state.list.iter().filter(|pid| !fair(pid)).count() as u32;
        let rq = &mut self.sched.rqs[cpu];
        rq.nr_running += others;
        rq.ttwu_pending = !state.pending.is_empty();
    }

    pub fn domain(&self, cpu: CpuId, weight: u32) -> SdId {
        let found = self.sched.domains.walk(cpu).find(|(_, sd)| sd.span_weight == weight);
        found.expect("a domain of that size").0
    }

    /// Where active balancing takes place.
    pub fn lowest_with(&self, cpu: CpuId, other: CpuId) -> SdId {
        self.sched.domains.walk(cpu).find(|(_, sd)| sd.span.contains(other)).expect("a common domain").0
    }
}

/// The CPU whose number follows the slash in a kernel thread's name.
pub fn bound_to(comm: &str) -> Option<u32> {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    is_bound_kthread(comm).then(|| digits(comm.split_once('/').unwrap().1).parse().unwrap())
}
