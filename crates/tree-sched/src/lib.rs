//! The scheduler of a kernel tree, in a form that the engine can drive.
//!
//! [`TreeSched`] is a `Scheduler` for the engine whose decisions are all made by the tree's own C code. It stores the
//! task state that the engine reads, and translates the events of the C code (interrupts, moves, locks, examined CPUs)
//! into [`Effect`]s, which the engine charges like those of our rules.
//!
//! The rules of our nearest kernel run beside it. They provide what the library does not: the length of a tick, the
//! names of domains, and the state of a machine that has been up for a while. When decisions are explained they receive
//! each call too: where they decide the same, their reasons are reported, and elsewhere what they would have chosen
//! ([`Followed`]).

mod follow;
mod hotplug;
pub mod kernels;
mod past;
mod patched;
mod scheduler;
mod source;
mod task;
mod timers;
mod told;
mod tunables;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use schedlab_kernel_tree::{
    Curr as KernelCurr, Error, Heart, How, Kernel as Library, KernelTask, Library as Built, Prices,
};

pub use follow::Followed;
pub use schedlab_kernel_tree::{guarded, watched};
use schedlab_sched::{Curr, Effect, Feature, Kernel, Looked, MigrationCause, NeedResched, Sched, Task, Took};
use schedlab_topology::{CpuId, Topology};
use schedlab_units::{TaskId, Time};
pub use source::Source;
use told::Call;

/// A scheduler for one machine whose decisions are made by the C code of a tree.
pub struct TreeSched {
    library: Library,
    /// Our rules; their state equals the library's as long as they follow.
    rules: Sched,
    follows: bool,
    followed: Followers,
    /// The task state that the engine reads.
    tasks: Vec<Task>,
    cpus: Vec<OfCpu>,
    effects: Vec<Effect>,
    /// An empty buffer for events.
    spare: Vec<schedlab_kernel_tree::Event>,
    /// What the current call reported besides its effects.
    told: told::Told,
    /// The run queues that the library examined.
    looked: Looked,
    groups: u32,
    bandwidth_used: bool,
    /// The library's numbers of processes, by the engine's; none without cache-aware balancing, which alone reads them.
    processes: Option<BTreeMap<u32, u32>>,
    heart: Heart,
    warned: Warned,
}

impl Drop for TreeSched {
    /// The run is over: its warnings outlive it.
    fn drop(&mut self) {
        let (count, first) = self.library.warnings();
        if count > 0 {
            *self.warned.lock().expect("nobody fails here").entry(first).or_default() += 1;
        }
    }
}

/// What the library charges its own work with.
fn prices(took: &Took) -> Prices {
    let int = |ns: u64| i32::try_from(ns).unwrap_or(i32::MAX);
    Prices {
        scan_cpu: int(took.scan_cpu),
        pass: int(took.pass),
        pass_cpu: int(took.pass_cpu),
        pass_task: int(took.pass_task),
        blocked_update: int(took.blocked_update),
    }
}

/// How far our rules followed, for owners of the tree.
type Followers = Arc<Mutex<Followed>>;

/// File and line of the first `WARN()` of each run that had one, and in how many runs it was the first.
type Warned = Arc<Mutex<BTreeMap<String, u64>>>;

/// The CPU state that the engine reads, and the known state of its timers.
#[derive(Clone, Debug)]
struct OfCpu {
    curr: Curr,
    polling: bool,
    online: bool,
    /// Whether it takes all tasks, not only kernel threads that are bound to it.
    active: bool,
    /// Tasks that other CPUs woke for it.
    wake_list: Vec<TaskId>,
    stopper: Option<TaskId>,
    /// When the engine will call for its timers, ns.
    timer: u64,
    /// The CPU that has them in the library: another one if they were moved when this one went offline.
    timers: CpuId,
    /// The requests to reschedule that the engine knows about.
    asked: NeedResched,
}

impl TreeSched {
    /// Boots a library on a machine. `nearest` are our nearest rules, with the preemption model of both; `features` are the tree's own switches, on or
    /// off; `tunables` are set to what the rules have.
    ///
    /// # Errors
    /// The machine is too large, or the tree does not have a switch, a tunable or the preemption model.
    pub fn boot(
        library: &Built,
        topology: &Topology,
        nearest: &Kernel,
        features: &[(String, bool)],
        tunables: &[&str],
        took: Took,
        seed: u64,
    ) -> Result<TreeSched, String> {
        let mut kernel = library.boot(topology).map_err(|error: Error| error.to_string())?;
        for (name, on) in features {
            if kernel.feature(name, *on).is_none() {
                return Err(format!(
                    "this tree's scheduler has no feature {name}; see its kernel/sched/features.h"
                ));
            }
        }
        tunables::set(&mut kernel, tunables, nearest, topology.online().weight())?;
        let model = nearest.preempt.model.name();
        if !kernel.set_preempt(model) {
            return Err(format!("Linux {} refuses preempt={model}", kernel.release()));
        }
        kernel.set_prices(&prices(&took));
        let sched_cache = nearest.has(Feature::SchedCache);
        kernel.set_sched_cache(sched_cache);
        let mut rules = Sched::new(topology, nearest, took, seed);
        kernel.seed(seed);
        for cpu in (0..topology.nr_cpus()).map(CpuId::from) {
            kernel.seed_cpu(cpu, rules.rqs[cpu].random);
            if sched_cache {
                let booted = kernel.cpu_state(cpu);
                rules.begin_epoch(cpu, booted.cpu_epoch, booted.cpu_epoch_next, booted.cpu_runtime);
            }
        }
        kernel.note(true);
        let of_cpu = |cpu: CpuId| OfCpu {
            curr: Curr::Idle,
            polling: false,
            online: topology.online().contains(cpu),
            active: topology.online().contains(cpu),
            wake_list: Vec::new(),
            stopper: None,
            timer: u64::MAX,
            timers: cpu,
            asked: NeedResched::default(),
        };
        Ok(TreeSched {
            library: kernel,
            follows: false,
            followed: Followers::default(),
            tasks: Vec::new(),
            cpus: (0..topology.nr_cpus()).map(|cpu| of_cpu(CpuId::from(cpu))).collect(),
            effects: Vec::new(),
            spare: Vec::new(),
            told: told::Told::default(),
            looked: Looked::default(),
            groups: 0,
            bandwidth_used: false,
            processes: sched_cache.then(BTreeMap::new),
            heart: Heart::default(),
            warned: Warned::default(),
            rules,
        })
    }

    /// The heartbeat of calls, for [`watched`].
    pub fn heart(&self) -> Heart {
        self.heart.clone()
    }

    fn at(&mut self, now: Time) {
        self.heart.beat(now.0);
        self.library.now(now.0);
    }

    /// Sets the prices by which the library measures its work to those of the CPU that acts next.
    fn measures(&mut self) {
        self.library.set_prices(&prices(&self.rules.took));
    }

    fn of(&self, cpu: CpuId) -> &OfCpu {
        &self.cpus[cpu.index()]
    }

    fn of_mut(&mut self, cpu: CpuId) -> &mut OfCpu {
        &mut self.cpus[cpu.index()]
    }

    /// A task becomes a thread of a process.
    fn join_process(&mut self, task: TaskId, process: u32) {
        if let Some(processes) = &mut self.processes {
            let next = processes.len() as u32;
            let process = *processes.entry(process).or_insert(next);
            self.library.join_process(number(task), process);
        }
    }

    /// Copies the task state that the engine reads.
    fn sync(&mut self, task: TaskId) {
        use schedlab_sched::TaskState::{Dead, Interruptible, New, Running, Uninterruptible, Waking};
        let read = self.library.read(number(task));
        let entry = &mut self.tasks[task.index()];
        (entry.cpu, entry.on_rq, entry.on_cpu) = (read.cpu, read.on_rq, read.on_cpu);
        (entry.se.on_rq, entry.se.sched_delayed) = (read.on_rq, read.sched_delayed);
        entry.state = match entry.state {
            Dead => Dead,
            _ if read.waking => Waking,
            asleep @ (New | Interruptible | Uninterruptible) if read.sleeps => asleep,
            _ if read.sleeps => Interruptible,
            _ => Running,
        };
    }

    /// The task that a CPU runs now; `None` is a stopper of which the engine does not know.
    fn runs(&self, cpu: CpuId) -> Option<Curr> {
        Some(match self.library.curr(cpu) {
            KernelCurr::Idle => Curr::Idle,
            KernelCurr::Task(KernelTask(task)) => Curr::Task(TaskId(task)),
            KernelCurr::Stopper => Curr::Task(self.of(cpu).stopper?),
        })
    }

    /// The running stopper does its remaining work: it must not sleep with work left, as nothing would wake it again.
    fn rest_of_stopper(&mut self, cpu: CpuId) {
        if self.library.stopper_works(cpu) {
            self.told(cpu, MigrationCause::Active, Call::Other);
        }
    }

    /// What runs next, after a stopper that the engine did not request has done its work, which then takes no
    /// time.
    fn next_for_engine(&mut self, cpu: CpuId) -> Curr {
        loop {
            match self.runs(cpu) {
                Some(next) => return next,
                None => {
                    self.rest_of_stopper(cpu);
                    let pending = !self.of(cpu).wake_list.is_empty();
                    self.library.schedule(cpu, How::Sleeps, pending);
                }
            }
        }
    }

    fn cause_of(&self, task: TaskId, cause: MigrationCause) -> MigrationCause {
        match cause {
            MigrationCause::NewlyIdle | MigrationCause::Periodic
                if !self.tasks[task.index()].policy.is_fair() =>
            {
                MigrationCause::Pull
            }
            other => other,
        }
    }
}

/// The library and the engine number tasks the same way.
fn number(task: TaskId) -> KernelTask {
    KernelTask(task.0)
}
