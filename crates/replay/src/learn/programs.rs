//! The programs of tasks, recorded step by step.

use std::collections::BTreeMap;

use schedlab_topology::CpuId;
use schedlab_trace::{Comm, is_disproved};
use schedlab_units::{Duration, Pid, Time};

use super::before::Before;
use super::budgets::Budgets;
use crate::learned::{Begin, Learned, Step, Task, TaskIndex};

/// The programs so far, and where each task is.
#[derive(Debug, Default)]
pub(super) struct Programs {
    pub learned: Learned,
    /// What is known about each task besides its program.
    pub lives: Vec<Life>,
    pub by_pid: BTreeMap<Pid, TaskIndex>,
    /// Capacities of the CPUs of the recorded machine, out of 1024; empty if it is not known.
    pub capacities: Vec<u16>,
}

/// Capacity of the largest CPU, whose time is counted as work.
const CAPACITY: u16 = 1024;

/// The work that a CPU of some capacity does in a time: a small CPU does less in the same time, and the learned program
/// must take as long there again.
pub(super) fn work(time: Duration, capacity: u16) -> Duration {
    Duration((u128::from(time.0) * u128::from(capacity) / u128::from(CAPACITY)) as u64)
}

/// The state of a task that is followed.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub state: State,
    pub comm: Comm,
    pub prio: i32,
    /// Its process, as the pid of its leader.
    pub process: Pid,
    /// When it was last switched in.
    pub began: Time,
    /// Capacity of the CPU where it runs.
    pub capacity: u16,
    /// Work since the last step.
    pub run: Duration,
    /// Its position in the program when it was switched in: number of steps, and work since the last one.
    pub stretch: (usize, Duration),
    pub waking: Option<Waking>,
    /// An event showed whether it is a thread.
    pub is_thread_told: bool,
    /// How often tasks woke it on its previous CPU, and elsewhere.
    pub woken: [u32; 2],
    /// When its last sleep without a waker ended.
    pub last_timer: Time,
    /// How many of its sleeps without a waker ended in softirqs, and how many otherwise.
    pub timers: [u32; 2],
    /// What it does, to guess what it did before.
    pub before: Before,
    /// Its budgets as a deadline task.
    pub budgets: Budgets,
    /// Since when it has been waiting to run, if it is.
    pub waits_since: Time,
    /// The step that records how late a CPU noticed the end of the last such sleep.
    pub late: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    On {
        since: Time,
    },
    Runnable,
    Asleep {
        since: Time,
        served: bool,
    },
    /// Off its CPU since then, for a reason that is not in the recording.
    Left {
        since: Time,
    },
    Dead,
}

/// A waking that may have ended a sleep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waking {
    pub at: Time,
    pub by: CpuId,
    /// The task's previous CPU.
    pub prev: CpuId,
    /// The waker and its step; `None` for an interrupt.
    pub waker: Option<(TaskIndex, usize)>,
    /// It came from a softirq.
    pub in_softirq: bool,
}

impl Programs {
    /// The first event of a task.
    pub fn add(
        &mut self,
        pid: Pid,
        comm: Comm,
        prio: i32,
        begin: Begin,
        state: State,
        now: Time,
    ) -> TaskIndex {
        let task = TaskIndex(self.lives.len() as u32);
        let is_left_out = comm.as_bytes().starts_with(b"migration/");
        self.learned.tasks.push(Task {
            pid,
            comm,
            prio,
            begin,
            placed: None,
            lag: Duration::ZERO,
            recent_used_cpu: None,
            of_wakers_cpu: false,
            wheel: false,
            is_thread: false,
            ran_elsewhere: false,
            is_left_out,
            did: None,
            yields: None,
            group: None,
            allowed: None,
            budget: None,
            ended: false,
            steps: Vec::new(),
        });
        let last_timer = if let Begin::Forked(_) = begin { now } else { self.learned.first };
        let life = Life {
            state,
            comm,
            prio,
            process: pid,
            began: now,
            capacity: CAPACITY,
            run: Duration::ZERO,
            stretch: (0, Duration::ZERO),
            waking: None,
            is_thread_told: false,
            woken: [0; 2],
            last_timer,
            timers: [0; 2],
            before: Before::default(),
            budgets: Budgets::default(),
            waits_since: if let Begin::Forked(_) = begin { now } else { self.learned.first },
            late: None,
        };
        self.lives.push(life);
        self.by_pid.insert(pid, task);
        task
    }

    pub fn life(&mut self, task: TaskIndex) -> &mut Life {
        &mut self.lives[task.index()]
    }

    /// Whether nothing is known about a task except that it was woken or moved to a group.
    pub fn is_taken_for_asleep(&self, task: TaskIndex) -> bool {
        let entry = &self.learned.tasks[task.index()];
        matches!(entry.begin, Begin::Asleep(_))
            && matches!(self.lives[task.index()].state, State::Asleep { .. })
            && entry.steps.iter().all(|step| matches!(step, Step::Group(_) | Step::Allowed(_)))
    }

    pub fn step(&mut self, task: TaskIndex, step: Step) {
        self.learned.tasks[task.index()].steps.push(step);
    }

    /// A task runs on a CPU from a time on.
    pub fn runs_since(&mut self, task: TaskIndex, cpu: CpuId, since: Time) {
        let capacity = self.capacities.get(cpu.index()).copied().unwrap_or(CAPACITY);
        let life = self.life(task);
        (life.state, life.capacity) = (State::On { since }, capacity);
    }

    /// Counts work up to now.
    pub fn advance(&mut self, task: TaskIndex, now: Time) {
        let first = self.learned.first;
        let life = self.life(task);
        if let State::On { since } = &mut life.state {
            life.run += work(now.since(*since), life.capacity);
            life.before.ran(since.since(first), now.since(first));
            *since = now;
        }
    }

    /// Records the work done so far.
    pub fn flush(&mut self, task: TaskIndex) {
        let run = std::mem::take(&mut self.life(task).run);
        if run > Duration::ZERO {
            self.step(task, Step::Run(run));
        }
    }

    /// A task acts now: its work so far comes before that, and an earlier waking found it awake.
    pub fn acts(&mut self, task: TaskIndex, now: Time) {
        if self.life(task).waking.is_some() {
            self.learned.wakeups_of_awake += 1;
            self.drop_waking(task);
        }
        self.advance(task, now);
        self.flush(task);
    }

    /// A task runs on a CPU, which may disprove its name. A new task is bound only after its first turn.
    pub fn runs_on(&mut self, task: TaskIndex, comm: &Comm, cpu: CpuId) {
        let has_run = self.life(task).run > Duration::ZERO;
        let entry = &mut self.learned.tasks[task.index()];
        let is_new = matches!(entry.begin, Begin::Forked(_)) && !has_run && entry.steps.is_empty();
        entry.ran_elsewhere |= !is_new && is_disproved(comm, cpu);
    }

    /// An event shows a task's name and priority. A change is assumed to have come when the task began to run, the last
    /// time it was known to be unchanged.
    pub fn seen(&mut self, task: TaskIndex, comm: Comm, prio: i32) {
        if self.life(task).prio != prio {
            self.life(task).prio = prio;
            let entry = &mut self.learned.tasks[task.index()];
            if entry.steps.is_empty() && !matches!(entry.begin, Begin::Forked(_)) {
                entry.prio = prio;
            } else {
                self.changed(task, Step::Prio(prio));
            }
        }
        if self.life(task).comm != comm && !comm.is_empty() {
            self.life(task).comm = comm;
            self.changed(task, Step::Rename(comm));
        }
    }

    /// Inserts a step where the task was switched in. Wakings that refer to steps by position move with it.
    fn changed(&mut self, task: TaskIndex, step: Step) {
        let (at, before) = self.life(task).stretch;
        let steps = &mut self.learned.tasks[task.index()].steps;
        let mut new = vec![step];
        if before > Duration::ZERO {
            new.insert(0, Step::Run(before));
            match steps.get_mut(at) {
                Some(Step::Run(run)) => *run = run.saturating_sub(before),
                _ => self.lives[task.index()].run = self.lives[task.index()].run.saturating_sub(before),
            }
        }
        let moved = new.len();
        let steps = &mut self.learned.tasks[task.index()].steps;
        steps.splice(at..at, new);
        for (place, step) in steps.iter().enumerate().skip(at + moved) {
            if let Step::Wake(wakee) = *step
                && let Some(Waking { waker: Some(waker), .. }) = &mut self.lives[wakee.index()].waking
                && *waker == (task, place - moved)
            {
                waker.1 = place;
            }
        }
        let life = self.life(task);
        life.stretch = (at + moved, Duration::ZERO);
        life.late = life.late.map(|place| if place < at { place } else { place + moved });
    }

    /// A CPU noticed the end of a sleep without a waker after this delay.
    pub fn late_timer(&mut self, task: TaskIndex, after: Duration) {
        self.life(task).late = Some(self.learned.tasks[task.index()].steps.len());
        self.step(task, Step::Heard(after));
    }

    /// The next such sleep lasts for `span`. If that is less than the CPU's last delay, a task that does its work a
    /// little later would miss the time to which it sleeps, and not sleep at all: it is woken at once instead.
    pub fn sleeps_longer_than_late(&mut self, task: TaskIndex, span: Duration) {
        let Some(place) = self.life(task).late.take() else { return };
        let step = &mut self.learned.tasks[task.index()].steps[place];
        if matches!(*step, Step::Heard(after) if span < after) {
            *step = Step::Nothing;
        }
    }

    /// A waking that had no effect.
    pub fn drop_waking(&mut self, task: TaskIndex) {
        if let Some(Waking { waker: Some((waker, place)), .. }) = self.life(task).waking.take() {
            self.learned.tasks[waker.index()].steps[place] = Step::Nothing;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Known;
    use crate::learn::tests::learn_knowing;

    #[test]
    fn a_task_on_another_cpu_than_its_name_says_is_no_kernel_thread() {
        // A new kernel thread is bound after its first turn, and a worker may run anywhere when its CPU is
        // offline.
        let short = |comm: &str, cpus: [u16; 2], verb: &str| {
            format!(
                "0 90 a-10 {verb} {comm}-11
                 {0} 100 b-12 out S {comm}-11
                 {0} 110 {comm}-11 out S b-12
                 0 120 a-10 wakes {comm}-11
                 {1} 130 c-13 out S {comm}-11
                 {1} 140 {comm}-11 out S c-13",
                cpus[0], cpus[1]
            )
        };
        for (comm, cpus, verb, ran_elsewhere) in [
            ("watchdog/1", [1, 1], "wakes", false),
            ("watchdog/1", [1, 2], "wakes", true),
            ("watchdog/1", [2, 1], "wakes", true),
            ("watchdog/1", [2, 1], "forks", false),
            ("watchdog/1", [1, 2], "forks", true),
            ("kworker/1:0", [2, 1], "wakes", false),
            ("pool/1", [1, 2], "wakes", false),
        ] {
            let learned = learn_knowing(Known::default(), &short(comm, cpus, verb)).unwrap();
            let task = learned.tasks.iter().find(|task| task.pid.0 == 11).unwrap();
            assert_eq!(task.ran_elsewhere, ran_elsewhere, "{comm} {verb} on {cpus:?}");
        }
    }
}
