//! Background activity of a machine that seems idle.
//!
//! Each CPU has a kernel worker that now and then does housekeeping, and a few daemons that may run anywhere
//! wake up on their own. They are made by the engine, not by the workload, so that any workload can be run
//! with or without them. A run has no noise unless requested.

use std::sync::Arc;

use schedlab_sched::{NewTask, Policy, Scheduler, TaskState, TgId};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::Comm;
use schedlab_units::{Duration, TaskId};
use schedlab_workload::{Dist, Pc};

use crate::create::Birth;
use crate::engine::Engine;
use crate::rng::Stream;
use crate::task::{Role, Stage, Wait};

/// How much noise there is. Times between wake-ups are memoryless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Mean time between the housekeeping of a CPU; zero for none.
    pub per_cpu: Duration,
    /// How long that takes.
    pub per_cpu_work: Duration,
    /// Daemons.
    pub daemons: u32,
    /// Mean time between two wake-ups of a daemon.
    pub daemon: Duration,
    /// How long it then works.
    pub daemon_work: Duration,
}

impl Noise {
    /// None.
    pub const QUIET: Noise = Noise {
        per_cpu: Duration::ZERO,
        per_cpu_work: Duration::ZERO,
        daemons: 0,
        daemon: Duration::ZERO,
        daemon_work: Duration::ZERO,
    };

    /// An idle server: estimates. The statistics of virtual memory are gathered once a second on each CPU; a
    /// handful of daemons wake up several times a second.
    pub const IDLE_SERVER: Noise = Noise {
        per_cpu: Duration::secs(1),
        per_cpu_work: Duration::micros(15),
        daemons: 6,
        daemon: Duration::millis(200),
        daemon_work: Duration::micros(150),
    };
}

impl<S: Scheduler> Engine<'_, S> {
    /// Creates the sources of noise; each waits for its first time.
    pub fn make_noise(&mut self, noise: Noise) {
        self.noise = noise;
        if noise.per_cpu > Duration::ZERO {
            let cpus: Vec<CpuId> = self.machine.topology.online().iter().collect();
            for cpu in cpus {
                let allowed = self.one_cpu(cpu);
                let comm = Comm::from(format!("kworker/{cpu}:0").as_str());
                self.make_noisy(cpu, comm, allowed, true);
            }
        }
        let first = self.machine.topology.online().first().unwrap_or_default();
        for number in 0..noise.daemons {
            let comm = Comm::from(format!("daemon{number}").as_str());
            self.make_noisy(first, comm, self.all_cpus.clone(), false);
        }
    }

    fn make_noisy(&mut self, cpu: CpuId, comm: Comm, allowed: Arc<CpuMask>, kthread: bool) {
        let process = self.own_process();
        let new = NewTask {
            policy: Policy::Normal,
            nice: 0,
            allowed,
            tg: TgId::ROOT,
            kthread,
            process,
            slice: None,
        };
        let birth =
            Birth { comm, role: Role::Noise, spec: None, entry: Pc(0), parent: None, stage: Stage::Noise };
        let task = self.make_task(&new, birth);
        self.tasks[task.index()].dice = Stream::new(self.seed, "noise", u64::from(task.0));
        self.sched.set_state(task, TaskState::Interruptible);
        self.tasks[task.index()].wait = Wait::Work;
        self.noise_timer(cpu, task);
    }

    /// Sets the timer for the next wake-up; it does not keep a run alive.
    fn noise_timer(&mut self, cpu: CpuId, task: TaskId) {
        let mean = if self.sched.task(task).kthread { self.noise.per_cpu } else { self.noise.daemon };
        let dice = &mut self.tasks[task.index()].dice;
        let span = Dist::Exponential { mean }.draw(|| dice.next());
        self.set_timer(cpu, task, self.now + span);
        self.pending -= 1;
    }

    /// A noisy task was woken: it works, then waits for its next wake-up.
    pub fn noise_runs(&mut self, cpu: CpuId, task: TaskId) {
        let kthread = self.sched.task(task).kthread;
        if std::mem::replace(&mut self.tasks[task.index()].noisy, true) {
            self.tasks[task.index()].noisy = false;
            self.noise_timer(cpu, task);
            return self.sleep(cpu, task, TaskState::Interruptible, Wait::Work, Stage::Noise);
        }
        let work = if kthread { self.noise.per_cpu_work } else { self.noise.daemon_work };
        self.in_kernel_for(task, work.0.max(1), Stage::Noise);
    }
}
