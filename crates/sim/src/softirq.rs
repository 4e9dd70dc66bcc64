//! Soft interrupts: run after the hard ones, until there are too many.
//!
//! The work that a source leaves to its softirq runs at once, in time taken from whatever the CPU does.
//! Softirqs that follow each other without a gap are one burst; when it has lasted as long as the kernel
//! allows ([`schedlab_machine::Softirq`]), the rest is left to the CPU's `ksoftirqd`, an ordinary fair task,
//! and so are all later ones until the thread has caught up.
//!
//! Kernel: handle_softirqs(), invoke_softirq(), run_ksoftirqd(), kernel/softirq.c.

use schedlab_sched::{Policy, Scheduler, TaskState};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::Comm;
use schedlab_units::{Duration, TaskId, Time};
use schedlab_workload::SourceId;

use crate::emit::Context;
use crate::engine::Engine;
use crate::task::{Role, Stage, Wait};

/// The softirqs of a CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct SoftirqState {
    /// When the present burst began, and until when its work lasts.
    began: Time,
    until: Time,
    /// Work left to `ksoftirqd`.
    left: Vec<Left>,
    thread: Option<TaskId>,
    /// The thread is awake.
    thread_runs: bool,
}

/// A softirq left to `ksoftirqd`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Left {
    /// The work that a source left.
    Source(SourceId),
    /// The end of a request, for which a task waits.
    Request(TaskId),
}

impl<S: Scheduler> Engine<'_, S> {
    /// A source has interrupted `cpu` and raises a softirq: how long it takes now.
    pub fn softirq(&mut self, cpu: CpuId, source: SourceId) -> u64 {
        let soft = self.workload.objects.sources[source.index()].soft.0;
        let limits = &self.machine.softirq;
        let state = &mut self.softirqs[cpu];
        if state.thread_runs {
            state.left.push(Left::Source(source));
            return 0;
        }
        if self.now > state.until {
            state.began = self.now;
            state.until = self.now;
        }
        if state.until.since(state.began).0 >= limits.max_time_ns.get() {
            self.leave_to_ksoftirqd(cpu, Left::Source(source));
            return 0;
        }
        let entry = if state.until == self.now { limits.entry_ns.get() } else { 0 };
        state.until += Duration(entry + soft);
        self.softirq_posts(cpu, source);
        entry + soft
    }

    /// A softirq is left to the CPU's thread, which is woken unless it is awake.
    pub fn leave_to_ksoftirqd(&mut self, cpu: CpuId, left: Left) {
        let state = &mut self.softirqs[cpu];
        state.left.push(left);
        if !std::mem::replace(&mut state.thread_runs, true) {
            let thread = self.ksoftirqd(cpu);
            let context = if let Left::Source(_) = left { Context::Softirq } else { Context::Task };
            self.wake_up(cpu, context, thread, false);
        }
    }

    fn softirq_posts(&mut self, cpu: CpuId, source: SourceId) {
        if let Some(sem) = self.workload.objects.sources[source.index()].posts
            && let Some(waiter) = self.objects.sems[sem.index()].post()
        {
            self.wake_up(cpu, Context::Softirq, waiter, false);
        }
    }

    fn ksoftirqd(&mut self, cpu: CpuId) -> TaskId {
        if let Some(thread) = self.softirqs[cpu].thread {
            return thread;
        }
        let allowed = CpuMask::one(self.machine.topology.nr_cpus(), cpu);
        let comm = Comm::from(format!("ksoftirqd/{cpu}").as_str());
        let thread = self.make_kthread(Policy::Normal, 0, allowed, comm, Role::Softirqd, Stage::Softirqs);
        self.softirqs[cpu].thread = Some(thread);
        thread
    }

    /// `ksoftirqd` has the CPU: it does the next part of the work left to it, or sleeps.
    pub fn ksoftirqd_runs(&mut self, cpu: CpuId, thread: TaskId) {
        let budget = self.machine.softirq.net_budget.get() as usize;
        let state = &mut self.softirqs[cpu];
        if state.left.is_empty() {
            state.thread_runs = false;
            return self.sleep(cpu, thread, TaskState::Interruptible, Wait::Work, Stage::Softirqs);
        }
        let part: Vec<Left> = state.left.drain(..budget.min(state.left.len())).collect();
        let request = self.kernel_span(&self.machine.cost.complete_io_ns).0;
        let ns_of = |left: &Left| match *left {
            Left::Source(source) => self.workload.objects.sources[source.index()].soft.0,
            Left::Request(_) => request,
        };
        let ns = part.iter().map(ns_of).sum::<u64>();
        for left in part {
            match left {
                Left::Source(source) => self.softirq_posts(cpu, source),
                Left::Request(client) => self.wake_up(cpu, Context::Softirq, client, false),
            }
        }
        self.in_kernel_for(thread, ns.max(1), Stage::Softirqs);
    }
}
