//! What a probe saw of every CPU, and how to set a scheduler to that state.

use std::collections::BTreeMap;
use std::sync::Arc;

use schedlab_sched::{Curr, NewTask, Sched, Took};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::Unknown;
use schedlab_units::{TaskId, Time};

use crate::recording::Recording;

/// The instant of every decision, in the scheduler's clock.
pub const NOW: Time = Time(10_000_000_000);

/// One CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuState {
    /// Running pid, 0 when idle.
    pub curr: i64,
    pub nr_running: u32,
    pub pending: bool,
    pub load: Option<u64>,
}

impl CpuState {
    pub fn is_idle(&self) -> bool {
        self.curr == 0 && self.nr_running == 0 && !self.pending
    }
}

/// All CPUs, and the shared state of caches.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub cpus: Vec<CpuState>,
    /// has_idle_cores and nr_idle_scan of each cache, by its first CPU.
    pub llcs: BTreeMap<usize, (bool, u32)>,
}

impl Snapshot {
    /// Reads a `cpus` or `cpus2` event.
    pub fn new(probe: &Unknown) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (key, value) in probe.fields() {
            let split = key.find(|c: char| c.is_ascii_digit()).unwrap_or(key.len());
            let (name, place) = key.split_at(split);
            let (Ok(place), Ok(value)) = (place.parse::<usize>(), value.parse::<i64>()) else { continue };
            if let "c" | "n" | "t" | "l" = name {
                if snapshot.cpus.len() <= place {
                    snapshot.cpus.resize(place + 1, CpuState::default());
                }
                let cpu = &mut snapshot.cpus[place];
                match name {
                    "c" => cpu.curr = value,
                    "n" => cpu.nr_running = value as u32,
                    "t" => cpu.pending = value != 0,
                    _ => cpu.load = Some(value as u64),
                }
            }
            match name {
                "hic" => snapshot.llcs.entry(place).or_default().0 = value != 0,
                "nis" => snapshot.llcs.entry(place).or_default().1 = value as u32,
                _ => {}
            }
        }
        snapshot
    }
}

/// A scheduler that can be set to recorded states, with its tasks by pid.
pub struct State {
    pub sched: Sched,
    tasks: BTreeMap<i64, TaskId>,
}

impl State {
    pub fn new(recording: &Recording) -> State {
        let sched = Sched::new(&recording.topology, &recording.kernel, Took::default(), 1);
        State { sched, tasks: BTreeMap::new() }
    }

    /// The task of a pid, created when first seen.
    pub fn task(&mut self, pid: i64) -> TaskId {
        assert_ne!(pid, 0, "the idle task is none");
        let nr_cpus = self.sched.rqs.len();
        let sched = &mut self.sched;
        *self.tasks.entry(pid).or_insert_with(|| sched.new_task(&NewTask::plain(nr_cpus), None, NOW))
    }

    /// Sets all CPUs to a recorded state.
    pub fn set(&mut self, snapshot: &Snapshot) {
        for (at, state) in snapshot.cpus.iter().enumerate() {
            let cpu = CpuId::from(at);
            let curr = if state.curr == 0 { Curr::Idle } else { Curr::Task(self.task(state.curr)) };
            let rq = &mut self.sched.rqs[cpu];
            rq.curr = curr;
            rq.nr_running = state.nr_running;
            rq.ttwu_pending = state.pending;
            let root = &mut self.sched.cfs_rqs[at];
            root.h_nr_queued = state.nr_running;
            root.h_nr_runnable = state.nr_running;
            root.h_nr_idle = 0;
            root.last_h_load_update.set(u64::MAX);
            if let Some(load) = state.load {
                root.avg.load_avg = load;
            }
        }
        for (&first, &(has_idle_cores, nr_idle_scan)) in &snapshot.llcs {
            let shared = self.sched.domains.per_cpu[CpuId::from(first)].llc_shared.expect("a cache");
            let shared = &mut self.sched.domains.shared[shared.0 as usize];
            shared.has_idle_cores = has_idle_cores;
            shared.nr_idle_scan = nr_idle_scan;
        }
    }

    /// Gives a task the requested load on a CPU: its queue's hierarchical load is set to 1, its average to
    /// that load times the queue's own plus 1.
    pub fn contribute(&mut self, task: TaskId, cpu: CpuId, load: u64) {
        self.sched.set_cpu(task, cpu);
        let jiffies = self.sched.jiffies(NOW);
        let root = &self.sched.cfs_rqs[cpu.index()];
        root.h_load.set(1);
        root.last_h_load_update.set(jiffies);
        let queue = root.avg.load_avg;
        self.sched.task_mut(task).se.avg.load_avg = load * (queue + 1);
    }

    /// Which CPUs a task may use.
    pub fn allow(&mut self, task: TaskId, mask: u64) {
        let nr_cpus = self.sched.rqs.len();
        let allowed = CpuMask::of(nr_cpus, (0..nr_cpus).filter(|cpu| mask >> cpu & 1 == 1).map(CpuId::from));
        let task = self.sched.task_mut(task);
        task.nr_cpus_allowed = allowed.weight() as u32;
        task.allowed = Arc::new(allowed);
    }
}
