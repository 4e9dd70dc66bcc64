//! Keeps the queues in step with the recording: which tasks join and leave them, move and run.

use schedlab_sched::{Curr, DequeueFlags, EnqueueFlags, Feature, MigrationCause, SeId, TaskState};
use schedlab_topology::CpuId;
use schedlab_trace::Comm;
use schedlab_units::{Duration, Pid, TaskId, Time};

use crate::follow::averages::Averages;
use crate::follow::clocks::Clock;
use crate::follow::running::{self, Arrived};
use crate::follow::shadow::Shadow;
use crate::follow::watch::Watch;

/// Utilisation assumed for a task that was running when the recording began; it is unlikely to be zero.
const UTIL_BEFORE: u64 = 256;

impl<W: Watch> Shadow<W> {
    /// Makes sure that a CPU runs the task that an event names as running. It nearly always does.
    #[inline]
    pub fn sync_curr(&mut self, cpu: CpuId, pid: Pid, comm: &Comm, now: Time) {
        let first = !std::mem::replace(&mut self.cpu_known[cpu], true);
        let runs = match self.sched.rqs[cpu].curr {
            Curr::Idle => pid == Pid::IDLE,
            Curr::Task(task) => self.find(pid) == Some(task) && self.known(task).comm == *comm,
        };
        if !runs {
            self.set_curr(cpu, pid, comm, first, now);
        }
    }

    /// A CPU turns out to run another task than in the shadow, or one of another name; `first`: its task was not known
    /// yet.
    fn set_curr(&mut self, cpu: CpuId, pid: Pid, comm: &Comm, first: bool, now: Time) {
        let curr = self.sched.rqs[cpu].curr;
        if pid == Pid::IDLE {
            if let Curr::Task(task) = curr {
                self.switched_unseen(cpu);
                self.leave(task, TaskState::Interruptible, now);
                self.run(cpu, Curr::Idle, self.clock_at(cpu, now), now);
            }
            return;
        }
        self.began_busy[cpu] |= first;
        let task = self.task(pid, comm, None, cpu, now);
        if curr == Curr::Task(task) {
            return;
        }
        if !first {
            self.switched_unseen(cpu);
        }
        if let Curr::Task(other) = curr {
            self.leave(other, TaskState::Interruptible, now);
        }
        if first && !self.sched.task(task).on_rq {
            // It was running when the recording began, and presumably had been for a while.
            let entry = self.sched.task_mut(task);
            entry.se.avg.load_avg = entry.se.load.weight >> 10;
            (entry.se.avg.util_avg, entry.se.avg.runnable_avg) = (UTIL_BEFORE, UTIL_BEFORE);
        }
        self.join(task, cpu, now);
        self.run(cpu, Curr::Task(task), self.clock_at(cpu, now), now);
    }

    /// A task joins the queue of a CPU without any decision that was seen.
    pub fn join(&mut self, task: TaskId, cpu: CpuId, now: Time) {
        W::joins(self, task, now);
        let on = self.sched.task(task).cpu;
        if self.sched.task(task).on_rq {
            if on == cpu && !self.sched.task(task).se.sched_delayed {
                return;
            }
            if self.sched.rqs[on].curr == Curr::Task(task) {
                self.leave(task, TaskState::Interruptible, now);
                self.run(on, Curr::Idle, self.clock_at(on, now), now);
            } else if !self.sched.task(task).se.sched_delayed {
                self.migrate(&[task], cpu, now);
                return;
            }
            // A task that has just left may still be queued, too.
            if self.sched.task(task).se.sched_delayed {
                self.sched.complete_delayed_dequeue(task, now);
            }
        }
        if on != cpu {
            self.gets_off(task, now);
        }
        self.forget_handed_over(task);
        self.sched.task_mut(task).state = TaskState::Waking;
        if on != cpu {
            self.moved(task, 0);
        }
        self.sched.set_task_cpu(task, cpu, MigrationCause::Wakeup, now);
        self.no_other_stopper(task, cpu, now);
        let flags = EnqueueFlags { wakeup: true, migrated: on != cpu, ..EnqueueFlags::default() };
        self.sched.activate(task, cpu, flags, now);
        self.sched.task_mut(task).state = TaskState::Running;
        self.queued(task);
        self.generation += 1;
    }

    /// A task that was last seen leaving its queue but not its CPU shows up elsewhere, so the CPU is idle now.
    pub(crate) fn gets_off(&mut self, task: TaskId, now: Time) {
        if self.runs(task) {
            let on = self.sched.task(task).cpu;
            self.leave(task, TaskState::Interruptible, now);
            self.run(on, Curr::Idle, self.clock_at(on, now), now);
        }
    }

    /// A task is on no wake list any more.
    pub(crate) fn forget_handed_over(&mut self, task: TaskId) {
        for (_, rq) in self.sched.rqs.iter_mut() {
            rq.wake_list.retain(|&waiting| waiting != task);
            rq.ttwu_pending = !rq.wake_list.is_empty();
        }
    }

    /// A task leaves its queue.
    pub fn leave(&mut self, task: TaskId, state: TaskState, now: Time) {
        if !self.sched.task(task).on_rq || self.sched.task(task).se.sched_delayed {
            return;
        }
        let cpu = self.sched.task(task).cpu;
        self.sched.update_rq_clock(cpu, now);
        self.charge_levels(task);
        self.steady(task);
        self.sched.task_mut(task).state = state;
        // A wake-up that was handed to this CPU found the task off its queue, and not just delayed.
        let special = state == TaskState::Dead || self.known(task).handed_over;
        let owed = !self.sched.task(task).policy.is_fair() || self.is_surely_owed(SeId(task.0));
        self.sched.deactivate(task, DequeueFlags { sleep: true, special, ..DequeueFlags::default() }, now);
        self.known_mut(task).may_stay = (!special && !owed).then_some(now);
        self.generation += 1;
    }

    /// A task that was woken while it was leaving its CPU has left: the wake-up now waits on that CPU's wake list.
    pub fn hand_over(&mut self, task: TaskId) {
        if std::mem::take(&mut self.known_mut(task).handed_over) {
            self.sched.task_mut(task).state = TaskState::Waking;
            let cpu = self.sched.task(task).cpu;
            let rq = &mut self.sched.rqs[cpu];
            rq.wake_list.push(task);
            rq.ttwu_pending = true;
        }
    }

    /// Tasks are moved, by one pass if there are several: all leave their queue before the first is queued again.
    /// Returns the tasks whose arrival may preempt the task running there.
    pub fn migrate(&mut self, tasks: &[TaskId], to: CpuId, now: Time) -> Vec<Arrived> {
        let mut queued = Vec::new();
        for &task in tasks {
            let from = self.sched.task(task).cpu;
            if from == to || self.runs(task) {
                continue;
            }
            self.generation += 1;
            if self.sched.task(task).on_rq && !self.sched.rqs[from].active {
                // The task itself leaves with this pick if it is taken for a sleeper.
                self.sched.pick_to_push(from, now);
            }
            if !self.sched.task(task).on_rq {
                self.sched.set_task_cpu(task, to, MigrationCause::Affinity, now);
                continue;
            }
            let left = self.average_error(self.sched.cfs_rq_of(SeId(task.0)));
            self.sched.deactivate(task, DequeueFlags { migrate: true, ..DequeueFlags::default() }, now);
            self.moved(task, left);
            self.sched.set_task_cpu(task, to, MigrationCause::Periodic, now);
            queued.push(task);
        }
        let mut arrived = Vec::new();
        for task in queued.into_iter().rev() {
            let before = running::before(self, to, task);
            self.no_other_stopper(task, to, now);
            self.sched.activate(task, to, EnqueueFlags { migrated: true, ..EnqueueFlags::default() }, now);
            let decided = self.sched.wakeup_preempt(to, task, 0);
            arrived.extend(before.map(|before| Arrived { before, task, decided }));
        }
        if self.sched.rqs[to].curr == Curr::Idle && self.sched.kernel.has(Feature::DelayDequeue) {
            self.roused.push((to, now));
        }
        arrived
    }

    /// An idle CPU that got only delayed sleepers picks a task, dequeues them and stays idle; no event shows that.
    #[inline]
    pub fn let_sleepers_go(&mut self, now: Time) {
        while let Some(&(cpu, since)) = self.roused.first().filter(|(_, since)| *since < now) {
            self.roused.remove(0);
            self.look_for_work(cpu, since);
        }
    }

    fn look_for_work(&mut self, cpu: CpuId, since: Time) {
        if self.sched.rqs[cpu].curr == Curr::Idle && self.sched.root_cfs(cpu).h_nr_runnable == 0 {
            self.sched.update_rq_clock(cpu, since);
            self.sched.choose_next(cpu);
            self.generation += 1;
        }
    }

    /// The clock that the scheduler used for the event at `now`.
    pub fn schedule_clock(&mut self, cpu: CpuId, now: Time) -> Clock {
        if self.tells_clock(cpu) {
            let read = Time(self.sched.rqs[cpu].clock.min(now.0));
            self.sched.rqs[cpu].skip_clock_update = false;
            return Clock { read, held: Duration::ZERO, most: Duration::ZERO };
        }
        let skips = self.sched.rqs[cpu].skip_clock_update;
        let most = if skips { self.clocks.queued_held(cpu) } else { self.held(cpu, now) };
        let read = self.sched.schedule_clock(cpu, now);
        self.clock(read, most)
    }

    pub(crate) fn clock_at(&self, cpu: CpuId, now: Time) -> Clock {
        self.clock(now, self.held(cpu, now))
    }

    /// A clock that was read within `most` before its event, given the other CPUs' turns.
    fn clock(&self, read: Time, most: Duration) -> Clock {
        Clock { read, held: most.min(self.slack.time()), most }
    }

    /// A task was queued on a CPU by `by`, which read the clock before its event. `asked`: whether the running task
    /// is preempted, if the trace shows it.
    pub fn queued_on(&mut self, cpu: CpuId, by: CpuId, asked: Option<bool>, now: Time) {
        self.clocks.queued(cpu, self.held(by, now), now);
        if let Some(asked) = asked {
            self.sched.rqs[cpu].skip_clock_update = asked;
        }
    }

    /// A CPU switches to the task that the trace names.
    pub fn run(&mut self, cpu: CpuId, next: Curr, clock: Clock, now: Time) {
        let prev = self.sched.rqs[cpu].curr;
        let held = clock.held;
        if next == Curr::Idle {
            self.sched.update_rq_clock(cpu, clock.read);
            self.at_idle[cpu] = Averages::of(self.sched.root_cfs(cpu));
            self.clocks.idles(cpu, held, now);
            if self.sched.rqs[cpu].nr_running == 0 && prev != Curr::Idle {
                self.sched.newidle_balance(cpu, now);
            }
            let rq = &mut self.sched.rqs[cpu];
            if rq.idle_stamp == 0 {
                rq.idle_stamp = rq.clock;
            }
        } else if prev != next {
            self.sched.update_rq_clock(cpu, clock.read);
            self.sched.balance_fair(cpu, prev, now);
        }
        if let Curr::Task(prev) = prev {
            if Curr::Task(prev) != next {
                self.ends_turn(prev, now);
            }
            self.steady(prev);
        }
        if let Curr::Task(task) = next
            && prev != next
        {
            let stays = prev.task().and_then(|prev| self.known(prev).may_stay);
            self.known_mut(task).beside_sleeper = stays == Some(clock.read);
        }
        self.sched.switch_to(cpu, next, clock.read);
        if next == Curr::Idle {
            // A charge that was processed ahead of its event may have advanced the clock.
            let rq = &mut self.sched.rqs[cpu];
            rq.clock_idle = rq.clock_idle.min(now.0);
            self.sched.nohz_run_idle_balance(cpu, now);
        }
        W::switched(self, cpu, prev, next, clock);
        if let Curr::Task(prev) = prev
            && Curr::Task(prev) != next
        {
            self.unpin(prev);
            let known = self.known_mut(prev);
            known.first_run &= known.later_prio.is_some();
            known.left = now;
            self.ran(prev, held, now);
            self.sched.finish_task_switch(prev);
        }
        match next {
            Curr::Idle => self.sched.nohz_balance_enter_idle(cpu),
            Curr::Task(task) => {
                let known = self.known_mut(task);
                known.seen_on.set(cpu);
                known.began = now;
                known.other_prio = false;
                self.runs_where_it_may(task, cpu);
                if Curr::Task(task) != prev {
                    self.begins(task, held);
                }
                if prev == Curr::Idle {
                    self.clocks.rouses(cpu, now);
                }
                self.pin(task);
                if self.changes_priority(task).is_some() {
                    self.changing.push(task);
                }
            }
        }
        self.generation += 1;
    }
}
