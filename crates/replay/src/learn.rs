//! Learns from a recording what each task did.
//!
//! Work is time on a CPU: from switch to switch, with stretches joined if the task was only preempted in between. A
//! sleep is ended by the last `sched_waking` before the task runs again. If that came from an interrupt, or on an idle
//! CPU, there is no waker, and the end of the sleep is a time. If it came in a task's own context, it is a step of that
//! task.
//!
//! A waking may come before its sleep: the waker sees that the task is about to leave its CPU and waits. It may also
//! concern a task that never went to sleep. So the waker is known only when the task is switched in after a sleep;
//! until then a waking is a step that may be discarded. The same applies to a call of sched_yield(), until it is known
//! whether the task makes such calls ([`Yields`]). A runnable deadline task that is preempted is out of budget
//! ([`budgets`]).

mod before;
mod budgets;
mod context;
mod groups;
mod hotplug;
mod masks;
mod priorities;
mod programs;
mod switches;
mod unseen;
mod wakeups;

use std::collections::BTreeMap;

use schedlab_recording::{Clones, MadeGroups};
use schedlab_trace::{Comm, Event, Hotplugs, Kind, Sink};
use schedlab_units::{Pid, Time};
use schedlab_workload::Did;

use self::context::is_of_tick;
use self::priorities::Change;
use self::programs::{Programs, State};
use self::switches::Left;
use crate::error::Missing;
use crate::known::Known;
use crate::lags::Lags;
use crate::learned::{Begin, Learned, Step, TaskIndex};
use crate::yields::{Yields, between_calls};

/// A sink that learns. Times of events never go back (see [`schedlab_recording::Steady`]).
#[derive(Debug, Default)]
pub struct Learner {
    programs: Programs,
    cpus: Vec<Curr>,
    /// Since when each CPU has been idle, if it is.
    idle_since: Vec<Time>,
    /// Time of the last event of each CPU.
    seen_at: Vec<Time>,
    /// The new task that each busy CPU has not noticed yet.
    unheard: Vec<Option<TaskIndex>>,
    yields: Yields,
    lags: Lags,
    /// Changes of priority that may have come later than assumed.
    changes: Vec<Change>,
    hotplugs: Hotplugs,
    clones: Clones,
    known: Known,
    /// Groups that tasks were moved to, by the leader of the process or the thread that was moved last.
    moved: BTreeMap<Pid, u32>,
    /// Groups of tasks that are not created yet.
    unborn: BTreeMap<Pid, u32>,
    made: MadeGroups,
    /// Masks of tasks without an event yet.
    masks: BTreeMap<Pid, u32>,
    has_switches: bool,
    has_wakeups: bool,
}

/// The task known to run on a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Curr {
    #[default]
    Unknown,
    Idle,
    Task(TaskIndex),
}

impl Learner {
    /// Creates an empty learner.
    pub fn new() -> Learner {
        Learner::default()
    }

    /// Creates an empty learner for a recording with known facts: the process of each task that existed before, and the
    /// groups with the CPU controller.
    pub fn knowing(known: Known) -> Learner {
        let programs = Programs { capacities: known.capacities().to_vec(), ..Programs::default() };
        Learner { known, programs, ..Learner::default() }
    }

    /// Everything that was learned.
    ///
    /// # Errors
    /// What the recording lacks.
    pub fn finish(mut self) -> Result<Learned, Missing> {
        if !self.has_switches {
            return Err(Missing::Switches);
        }
        if !self.has_wakeups {
            return Err(Missing::Wakeups);
        }
        let last = self.programs.learned.last;
        for index in 0..self.programs.lives.len() {
            let task = TaskIndex(index as u32);
            if let State::On { .. } = self.programs.lives[index].state {
                self.programs.advance(task, last);
            }
            self.programs.flush(task);
            self.programs.drop_waking(task);
        }
        self.place_changes();
        for (index, task) in self.programs.learned.tasks.iter_mut().enumerate() {
            let known = self.known.of_task(task);
            task.lag = self.lags.owed(index);
            let awake = matches!(task.begin, Begin::Running(_) | Begin::Runnable(_));
            if awake || matches!(task.begin, Begin::Asleep(_)) {
                let all = last.since(self.programs.learned.first);
                let did = self.programs.lives[index].before.did(all, awake);
                // An awake task is not a new task, whose averages begin half full.
                let nothing = awake.then_some(Did { running: 0, runnable: 0, awake });
                task.did = did.filter(|_| !task.is_kthread(known)).or(nothing);
            }
            let [here, elsewhere] = self.programs.lives[index].woken;
            task.of_wakers_cpu = task.bound_by(&task.comm, known).is_some() && here > 0 && elsewhere == 0;
            let [in_softirqs, otherwise] = self.programs.lives[index].timers;
            task.wheel = in_softirqs > 0 && otherwise == 0;
            forget_own_interrupts(&mut task.steps);
            let yields = self.yields.yields(index);
            task.steps.retain(|step| *step != Step::Nothing && (yields || *step != Step::Yield));
            task.yields = between_calls(&task.steps);
            task.budget = self.programs.lives[index].budgets.learned();
            // A discarded step no longer separates the work before and after it.
            task.steps.dedup_by(|step, before| match (step, before) {
                (Step::Run(more), Step::Run(run)) => {
                    *run += *more;
                    true
                }
                _ => false,
            });
        }
        Ok(self.programs.learned)
    }

    /// The first event of a task.
    fn meet(&mut self, pid: Pid, comm: Comm, prio: i32, begin: Begin, state: State, now: Time) -> TaskIndex {
        self.lags.add(matches!(begin, Begin::Asleep(_)));
        let task = self.programs.add(pid, comm, prio, begin, state, now);
        self.programs.learned.tasks[task.index()].allowed = self.masks.remove(&pid);
        if !matches!(begin, Begin::Forked(_)) {
            self.programs.life(task).process = self.known.process_of(pid, &comm);
            self.was_moved(task);
        } else {
            self.programs.learned.tasks[task.index()].group = self.unborn.remove(&pid);
        }
        task
    }
}

/// Timer interrupts arrive where their task falls asleep, except for a few that are moved. Interrupts are
/// independent of the task only if one in four arrives elsewhere.
fn forget_own_interrupts(steps: &mut [Step]) {
    let (mut own, mut elsewhere) = (0, 0);
    for step in &*steps {
        if let Step::InterruptOn { cpu, task_on } = step {
            *(if cpu == task_on { &mut own } else { &mut elsewhere }) += 1;
        }
    }
    if elsewhere * 3 < own {
        for step in steps {
            if matches!(step, Step::InterruptOn { cpu, task_on } if cpu == task_on) {
                *step = Step::Nothing;
            }
        }
    }
}

impl Sink for Learner {
    fn event(&mut self, event: &Event) {
        if self.cpus.is_empty() {
            self.programs.learned.first = event.time;
        }
        self.programs.learned.last = event.time;
        if self.cpus.len() <= event.cpu.index() {
            self.cpus.resize(event.cpu.index() + 1, Curr::Unknown);
            self.idle_since.resize(event.cpu.index() + 1, Time::ZERO);
            self.seen_at.resize(event.cpu.index() + 1, event.time);
            self.unheard.resize(event.cpu.index() + 1, None);
            self.yields.cpus(event.cpu.index() + 1);
            self.programs.learned.nr_cpus = self.cpus.len();
            self.lags.cpus(self.cpus.len());
        }
        self.hears(event);
        self.see_running(event);
        let unasked = self.makes_way_unasked(event);
        if unasked || is_of_tick(event) {
            self.programs.learned.ticks.mark(event.time, event.cpu, unasked);
        } else if let Kind::SchedSwitch { prev_pid, prev_state, .. } = event.kind
            && prev_pid != Pid::IDLE
            && prev_state.is_runnable()
        {
            self.programs.learned.ticks.mark_asked(event.time, event.cpu);
        }
        self.plug(event);
        match event.kind {
            Kind::SchedSwitch {
                prev_comm,
                prev_pid,
                prev_prio,
                prev_state,
                next_comm,
                next_pid,
                next_prio,
            } => {
                self.has_switches = true;
                let task = |pid| self.programs.by_pid.get(&pid).copied();
                let (prev, next) = (task(prev_pid), task(next_pid));
                let is_runnable = prev_state.is_runnable();
                self.lags.switched(event.cpu.index(), prev, is_runnable, next, event.time);
                let left = Left {
                    pid: prev_pid,
                    comm: prev_comm,
                    prio: prev_prio,
                    state: prev_state,
                    unasked,
                    for_stopper: next_prio == 0,
                };
                self.switch_out(event, left);
                self.switch_in(event, next_pid, next_comm, next_prio, prev_pid == Pid::IDLE);
            }
            Kind::SchedWaking { comm, pid, prio, target_cpu } => {
                self.has_wakeups = true;
                self.programs.learned.has_waking = true;
                self.waking(event, pid, comm, prio, target_cpu);
            }
            Kind::SchedWakeup { comm, pid, prio, target_cpu } => {
                self.has_wakeups = true;
                let known = self.programs.by_pid.get(&pid).copied();
                let asleep = |task: TaskIndex| {
                    let life = &self.programs.lives[task.index()];
                    matches!(life.state, State::Asleep { .. } | State::Left { .. }) && life.waking.is_none()
                };
                // A recording without sched_waking.
                if known.is_none_or(asleep) {
                    self.waking(event, pid, comm, prio, target_cpu);
                }
                self.queued(event, pid, prio, target_cpu);
            }
            Kind::SchedWakeupNew { comm, pid, prio, target_cpu } => {
                self.wakeup_new(event, pid, comm, prio, target_cpu);
            }
            Kind::SchedMigrateTask { pid, orig_cpu: from, dest_cpu: cpu, .. } => {
                self.migrate(event, pid, from, cpu);
            }
            Kind::TaskNewtask { pid, clone_flags, .. } => self.clones.cloned(pid, clone_flags),
            Kind::SchedProcessFork { child_comm, child_pid, .. } => self.fork(event, child_comm, child_pid),
            Kind::SchedProcessExec { ref filename, .. } => {
                if let Some(task) = self.current(event) {
                    // The name on the line is the last one that the task ever had, in tracefs text.
                    let comm = Comm::from(filename.rsplit('/').next().unwrap_or_default());
                    self.programs.acts(task, event.time);
                    self.programs.step(task, Step::Exec(comm));
                    self.programs.life(task).comm = comm;
                }
            }
            Kind::TaskRename { newcomm, pid, .. } if pid == event.pid => {
                if let Some(task) = self.current(event) {
                    self.programs.acts(task, event.time);
                    self.programs.step(task, Step::Rename(newcomm));
                    self.programs.life(task).comm = newcomm;
                }
            }
            Kind::Affinity(ref told) => self.allowed(told, event.time),
            Kind::CgroupMkdir { root, id, ref path, .. } if self.known.shares_out(root) => {
                self.made.made(id, path);
            }
            Kind::Group(ref told) => {
                if let Some((path, given)) = self.made.given(told) {
                    self.programs.learned.given.insert(path.to_owned(), given);
                }
            }
            Kind::CgroupAttachTask { dst_root, ref dst_path, pid, .. } => {
                self.attached(dst_root, pid, dst_path, event.time);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
