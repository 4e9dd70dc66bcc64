//! Switches that are missing from the recording: filtered, lost, or left out by the kernel.
//!
//! An event shows the task that runs on its CPU. The task that ran there before is assumed to have left at the last
//! event of that CPU, and to sleep if it is woken before it runs again. The running task began at that time, or when
//! it was woken if that was later; or as long ago as `sched_stat_runtime` shows that it ran.

use schedlab_trace::{Event, Kind};
use schedlab_units::{Pid, Time};

use super::programs::State;
use super::{Curr, Learner};
use crate::learned::TaskIndex;

impl Learner {
    /// Makes the task that an event shows the current task of its CPU.
    pub(super) fn see_running(&mut self, event: &Event) {
        let pid = event.shown();
        let cpu = event.cpu.index();
        let last = std::mem::replace(&mut self.seen_at[cpu], event.time);
        match self.cpus[cpu] {
            Curr::Unknown => return,
            Curr::Idle if pid == Pid::IDLE => return,
            Curr::Task(task) if self.programs.learned.tasks[task.index()].pid == pid => return,
            Curr::Idle => {}
            Curr::Task(other) => {
                self.leaves_unseen(other, last);
                self.idle_since[cpu] = last;
            }
        }
        match self.programs.by_pid.get(&pid) {
            Some(&task) => self.comes_unseen(event, task, last),
            None => self.cpus[cpu] = Curr::Idle,
        }
    }

    fn leaves_unseen(&mut self, task: TaskIndex, last: Time) {
        if let State::On { since } = self.programs.life(task).state {
            self.programs.advance(task, last.max(since));
            self.programs.life(task).state = State::Left { since: last.max(since) };
        }
    }

    fn comes_unseen(&mut self, event: &Event, task: TaskIndex, last: Time) {
        let life = self.programs.life(task);
        let (comm, prio) = (life.comm, life.prio);
        let since = match event.kind {
            Kind::SchedStatRuntime { pid, runtime, .. } if pid == event.pid => {
                Time(event.time.0.saturating_sub(runtime))
            }
            _ => life.waking.map_or(event.time, |waking| waking.at),
        };
        // How long an idle CPU took to notice it is not known.
        self.cpus[event.cpu.index()] = Curr::Unknown;
        let came = Event { time: since.clamp(last, event.time), ..event.clone() };
        self.switch_in(&came, event.pid, comm, prio, false);
    }
}
