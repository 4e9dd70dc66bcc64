//! Executing programs: one op after another, each with its price.
//!
//! A task has work and a stage: when the work is done, the stage determines what comes next. Work of its own (`run`)
//! takes as long as the machine makes it. A system call acts at once and is paid for before the task continues; calls
//! that take long (a fork, the end of a task) are paid for first.

use schedlab_machine::Work;
use schedlab_sched::{Deactivate, Scheduler, TaskState};
use schedlab_topology::CpuId;
use schedlab_units::{Duration, TaskId, Time};
use schedlab_workload::{BarrierId, CondId, Expected, Op, STEADY, SemId, Timer, WordId};

use crate::emit::Context;
use crate::engine::Engine;
use crate::outcome::{End, Stuck};
use crate::shared::Object;
use crate::task::{Mode, Role, Stage, Wait, WakeFrom};
use crate::wait::{self, Arrival, Expiry};

/// Steps without time passing after which the run is aborted.
const STEPS_MAX: u32 = 1_000_000;

impl<S: Scheduler> Engine<'_, S> {
    /// Continues the execution of a CPU: stages whose work is done follow each other, then its next event is
    /// armed.
    pub fn go_on(&mut self, cpu: CpuId) {
        let mut steps = 0;
        loop {
            let Some(task) = self.curr(cpu) else { return self.has_looked(cpu) };
            if self.cpus[cpu].overhead != Work::NONE || self.cpus[cpu].stands_still() {
                break;
            }
            if self.path_ends(cpu, task) || self.point_reached(cpu, task) {
                continue;
            }
            if self.tasks[task.index()].work != Work::NONE {
                break;
            }
            steps += 1;
            if steps > STEPS_MAX {
                let (comm, pid) = self.who(task);
                let waits_for = "put a run or a sleep into it".to_string();
                self.end = Some(End::NoTime(Stuck { pid, comm: comm.to_string(), waits_for }));
                return;
            }
            self.stage_done(cpu, task);
            if self.end.is_some() {
                return;
            }
        }
        self.arm_next(cpu);
    }

    /// Arms the event at which the CPU has something to do.
    pub fn arm_next(&mut self, cpu: CpuId) {
        let Some(task) = self.curr(cpu) else { return };
        if self.cpus[cpu].stands_still() {
            return;
        }
        let overhead = self.cpus[cpu].overhead_ns();
        if overhead > 0 && self.sched.need_resched(cpu).any() {
            return self.arm(cpu, self.now + Duration(overhead));
        }
        if self.tasks[task.index()].work == Work::NONE && self.tasks[task.index()].stage == Stage::Fetch {
            self.fetch(task);
        }
        let entry = &mut self.tasks[task.index()];
        let mut ns = entry.work.time_at(self.cpus[cpu].work_rate);
        if let Stage::Wall { until, block } = entry.stage {
            // Time passes for a task that runs by the clock also while others run or it is slow.
            let left = until.since(self.now + Duration(overhead)).0;
            if left == 0 {
                entry.work = entry.work.left_of_block(block);
                ns = entry.work.time_at(self.cpus[cpu].work_rate);
            } else {
                ns = ns.min(left);
            }
        }
        if let Some(point) = self.point_in_work(cpu, task)
            && point.0 < ns
        {
            ns = point.0;
            self.cpus[cpu].resched_at = Some(self.now + Duration(overhead + ns));
        } else if self.tasks[task.index()].spins_for.is_some() {
            // It spins until another task ends that. An event after all that work would stay in the queue for ever.
            return;
        }
        self.arm(cpu, self.now + Duration(overhead + ns));
    }

    /// Takes the next op of a task's program; its own work begins at once.
    fn fetch(&mut self, task: TaskId) {
        let entry = &mut self.tasks[task.index()];
        let dice = &mut entry.dice;
        let op = entry.cursor.next(&self.workload.code, &mut self.objects.words, || dice.next());
        match op {
            Op::Run { work } => entry.work = Work::nanos(work.0),
            Op::RunDraw { dist } => {
                let span = self.workload.dists[dist.index()].draw(|| dice.next());
                entry.work = Work::nanos(span.0);
            }
            _ => entry.stage = Stage::Act(op),
        }
    }

    /// The work before a stage is done.
    fn stage_done(&mut self, cpu: CpuId, task: TaskId) {
        let stage = self.tasks[task.index()].stage;
        if self.tasks[task.index()].streams {
            self.tasks[task.index()].streams = false;
            self.cpus[cpu].work_rate = self.cpus[cpu].rate;
            self.memory.flow(cpu, task, false);
        }
        if self.tasks[task.index()].mode != Mode::User {
            self.tasks[task.index()].mode = Mode::User;
            self.cpus[cpu].in_kernel = true;
        }
        match stage {
            Stage::Fetch => self.fetch(task),
            Stage::Act(op) => {
                self.tasks[task.index()].stage = Stage::Fetch;
                self.act(cpu, task, op);
                let entry = &mut self.tasks[task.index()];
                let sleeps = entry.wait != Wait::Nothing || entry.stage != Stage::Fetch;
                if !sleeps && !matches!(op, Op::Heard { .. } | Op::InterruptOn { .. } | Op::ComeToWaker) {
                    (entry.heard, entry.interrupt_on, entry.comes_to_waker) = (None, None, false);
                }
            }
            Stage::Wall { until, block } => self.wall(task, until, block),
            Stage::Touched { bytes, left } => self.touched(cpu, task, bytes, left),
            Stage::Lock(mutex) => self.lock(cpu, task, mutex),
            Stage::SpunForMutex(_) if self.tasks[task.index()].killed => self.begin_exit(cpu, task),
            Stage::SpunForMutex(mutex) => self.spun_for_mutex(cpu, task, mutex),
            Stage::KernelLock(lock) => self.lock_kernel(cpu, task, lock),
            Stage::SpunForLock(lock) => self.spun_in_vain(cpu, task, lock),
            Stage::LockSlowly(lock) => self.lock_slowly(cpu, task, lock),
            Stage::LockWoken(lock) => self.lock_woken(cpu, task, lock),
            Stage::Locked(lock) => self.locked(task, lock),
            Stage::PipeHeld(pipe) => self.pipe_held(cpu, task, pipe),
            Stage::PipeWakes { channel, decides } => self.pipe_wakes(cpu, task, channel, decides),
            Stage::SemWait(sem) => self.sem_wait(cpu, task, sem),
            // The process ended while it was spinning, and the notice is still pending.
            Stage::SpunAtBarrier(_) if self.tasks[task.index()].killed => self.begin_exit(cpu, task),
            Stage::SpunAtBarrier(barrier) => {
                self.objects.barriers[barrier.index()].sleep(task);
                self.charge(cpu, self.paths.syscall + self.paths.futex);
                self.sleep(cpu, task, TaskState::Interruptible, Wait::Barrier(barrier), Stage::Fetch);
            }
            Stage::Wake { from, left } => self.wake_several(cpu, task, from, left),
            Stage::Write { channel, left, resumed } => self.write(cpu, task, channel, left, resumed),
            Stage::Read { channel, left, resumed } => self.read(cpu, task, channel, left, resumed),
            Stage::FutexWoken => {
                self.charge(cpu, self.paths.syscall);
                self.tasks[task.index()].stage = Stage::Fetch;
            }
            Stage::Cloned(spec) => self.cloned(cpu, task, spec),
            Stage::Execed(comm) => self.execed(cpu, task, comm),
            Stage::Exiting => self.exiting(cpu, task),
            Stage::Ended => self.ended(cpu, task),
            Stage::WaitChildren => self.wait_children(cpu, task),
            Stage::NextItem => self.next_item(cpu, task),
            Stage::Submit { device } => self.submit_for(cpu, task, device),
            Stage::Asked { device, done } => self.asked(cpu, task, device, done),
            Stage::Complete { device, woken } => self.complete_for(cpu, task, device, woken),
            Stage::Stopper => self.stopper_runs(cpu, task),
            Stage::Softirqs => self.ksoftirqd_runs(cpu, task),
            Stage::Noise => self.noise_runs(cpu, task),
        }
    }

    /// Executes an op, or begins to.
    fn act(&mut self, cpu: CpuId, task: TaskId, op: Op) {
        let call = self.paths.syscall;
        // At the end of a call, lazy requests of other CPUs are examined.
        self.cpus[cpu].in_kernel |= is_call(op);
        match op {
            Op::Run { .. } | Op::RunDraw { .. } => unreachable!("work is taken when it is fetched"),
            Op::RunKernel { work, section } => {
                let entry = &mut self.tasks[task.index()];
                entry.work = Work::nanos(work.0 + call);
                entry.mode = Mode::Kernel(section);
            }
            Op::RunWall { wall, block } => self.wall(task, self.now + wall, block.0),
            Op::Touch { region, bytes } => self.begin_touch(cpu, task, region, bytes),
            Op::Access { access } => {
                let spec = self.workload.objects.accesses[access.index()];
                self.begin_access(cpu, task, access, spec);
            }
            Op::Share { region, bytes, write } => self.share(cpu, region, bytes, write),
            Op::Sleep { span } => self.sleep_until(cpu, task, self.now + span, Stage::Fetch),
            Op::SleepDraw { dist } => {
                let dice = &mut self.tasks[task.index()].dice;
                let span = self.workload.dists[dist.index()].draw(|| dice.next());
                self.sleep_until(cpu, task, self.now + span, Stage::Fetch);
            }
            Op::Zero => self.zero = self.now,
            Op::Origin { delay } => {
                let origin = self.zero + delay;
                self.tasks[task.index()].origin = origin;
                if origin > self.now {
                    self.sleep_until(cpu, task, origin, Stage::Fetch);
                } else {
                    self.charge(cpu, call);
                }
            }
            Op::ComeToWaker => self.tasks[task.index()].comes_to_waker = true,
            Op::Heard { after } => self.tasks[task.index()].heard = Some(after),
            Op::InterruptOn { cpu } => self.tasks[task.index()].interrupt_on = Some(cpu),
            Op::Hotplug { cpu: other, to } => self.plug(cpu, other, to),
            Op::TimerWait { timer, period, miss } => {
                let now = self.now;
                let expiry = wait::advance(self.timer_of(task, timer), period, miss, now);
                match expiry {
                    Expiry::At(time) => self.sleep_until(cpu, task, time, Stage::Fetch),
                    Expiry::Missed => self.charge(cpu, call),
                }
            }
            Op::Lock { mutex } => self.lock(cpu, task, mutex),
            Op::Unlock { mutex } => self.unlock(cpu, task, mutex),
            Op::CondWait { cond, mutex } => {
                self.unlock(cpu, task, mutex);
                self.objects.conds[cond.index()].wait(task);
                self.touch_word(cpu, Object::Cond(cond.index()));
                self.charge(cpu, call + self.paths.futex);
                self.sleep(cpu, task, TaskState::Interruptible, Wait::Cond(cond), Stage::Lock(mutex));
            }
            Op::Signal { cond } => self.signal(cpu, task, cond, 1),
            Op::Broadcast { cond } => self.signal(cpu, task, cond, u32::MAX),
            Op::SemPost { sem } if self.workload.objects.sems[sem.index()].owes => self.owe(cpu, task, sem),
            Op::SemPost { sem } => {
                self.charge(cpu, self.atomic());
                self.touch_word(cpu, Object::Sem(sem.index()));
                if let Some(waiter) = self.objects.sems[sem.index()].post() {
                    self.charge(cpu, call + self.paths.futex);
                    self.wake_up(cpu, Context::Task, waiter, self.workload.objects.sems[sem.index()].sync);
                }
            }
            Op::SemWait { sem } if self.workload.objects.sems[sem.index()].owes => {
                self.wait_owed(cpu, task, sem)
            }
            Op::SemWait { sem } => self.sem_wait(cpu, task, sem),
            Op::Barrier { barrier } => self.barrier(cpu, task, barrier),
            Op::Write { channel, bytes } => self.write(cpu, task, channel, bytes, false),
            Op::Read { channel, bytes } => self.read(cpu, task, channel, bytes, false),
            Op::FutexWait { word, expected, timeout } => self.futex_wait(cpu, task, word, expected, timeout),
            Op::FutexWake { word, count } => {
                self.charge(cpu, call + self.paths.futex);
                self.touch_word(cpu, Object::Word(word.index()));
                let left = count.min(self.objects.futexes[word.index()].len() as u32);
                self.wake_several(cpu, task, WakeFrom::Word(word), left);
            }
            Op::BlockIo { device, bytes: _, write: _ } => self.block_io(cpu, task, device),
            Op::QueueWork { queue, work } => self.queue_work(cpu, queue, work),
            Op::Raise { source } => self.raise(cpu, source),
            Op::Fork { task: spec } => self.fork(cpu, task, spec),
            Op::Exec { comm } => self.exec(cpu, task, comm),
            Op::Exit => self.begin_exit(cpu, task),
            Op::ExitGroup => self.exit_group(cpu, task),
            Op::WaitChildren => self.wait_children(cpu, task),
            Op::Join { task: spec } => self.join(cpu, task, spec),
            Op::Yield => {
                self.charge(cpu, call);
                self.sched.yield_task(cpu, self.now);
                self.reschedule(cpu, Deactivate::Yielded);
            }
            Op::OwnComm => self.own_comm(cpu, task),
            Op::SetComm { comm } => self.set_comm(cpu, task, comm),
            Op::SetCpus { cpus } => self.set_cpus(cpu, task, cpus),
            Op::SetSched { attr } => self.set_sched(cpu, task, attr),
            Op::SetGroup { group } => self.set_group(cpu, task, group),
            Op::OfTask { task: spec, act } => self.act_on_task(cpu, spec, act),
            Op::OfGroup { group, act } => self.act_on_group(cpu, group, act),
            Op::Switch { part } => {
                self.charge(cpu, call);
                let part = &self.workload.parts[part.index()];
                self.sched.switch(part).expect("the part was tried before the run");
            }
            Op::Mark { label, value } => {
                if self.workload.labels[label.index()] == STEADY {
                    if let Some(span) = self.span_before_window(task) {
                        return self.sleep_until(cpu, task, self.now + span, Stage::Act(op));
                    }
                    self.warm = true;
                    self.begin_profile();
                }
                if self.tracing {
                    self.emit_mark(cpu, task, label, value);
                }
            }
            Op::MarkLate { label, timer } => {
                let late = self.now.since(*self.timer_of(task, Timer::Own(timer)));
                if self.tracing {
                    self.emit_mark(cpu, task, label, late.0 as i64);
                }
            }
            Op::Loop { .. }
            | Op::EndLoop { .. }
            | Op::Jump { .. }
            | Op::JumpIf { .. }
            | Op::JumpOdds { .. }
            | Op::WordSet { .. }
            | Op::WordAdd { .. }
            | Op::WordLoad { .. } => unreachable!("the cursor carries out control"),
        }
    }

    /// An atomic operation in user mode.
    pub fn atomic(&self) -> u64 {
        if self.machine.has(schedlab_machine::Mechanism::KernelCosts) {
            self.machine.cost.atomic_ns.get().max(1)
        } else {
            1
        }
    }

    /// Runs in blocks until a time by the clock; a block once begun is finished.
    fn wall(&mut self, task: TaskId, until: Time, block: u64) {
        let entry = &mut self.tasks[task.index()];
        if self.now >= until {
            entry.stage = Stage::Fetch;
            return;
        }
        // As many blocks as fit at full speed; slower ones are added at their end.
        let left = until.since(self.now).0;
        let block = block.max(1);
        entry.work = Work::nanos(left.div_ceil(block).max(1) * block);
        entry.stage = Stage::Wall { until, block };
    }

    /// The position of a timer, to advance it.
    fn timer_of(&mut self, task: TaskId, timer: Timer) -> &mut Time {
        let entry = &mut self.tasks[task.index()];
        let stands = match timer {
            Timer::Shared(id) => &mut self.objects.timers[id.index()],
            Timer::Own(number) => &mut entry.own_timers.get_or_insert_default()[usize::from(number)],
        };
        stands.get_or_insert(entry.origin)
    }

    /// Sleeps until a time, or a little longer because of timer slack, and continues with a stage.
    pub fn sleep_until(&mut self, cpu: CpuId, task: TaskId, time: Time, then: Stage) {
        let fair = self.sched.task(task).policy.is_fair();
        let slack = if fair && self.machine.has(schedlab_machine::Mechanism::KernelCosts) {
            self.machine.cost.timer_slack_ns.get()
        } else {
            0
        };
        self.charge(cpu, self.paths.syscall);
        let on = self.tasks[task.index()].interrupt_on.take().unwrap_or(cpu);
        self.set_timer(on, task, time + Duration(slack));
        self.sleep(cpu, task, TaskState::Interruptible, Wait::Timer, then);
    }

    fn sem_wait(&mut self, cpu: CpuId, task: TaskId, sem: SemId) {
        self.charge(cpu, self.atomic());
        self.touch_word(cpu, Object::Sem(sem.index()));
        if self.objects.sems[sem.index()].wait(task) {
            self.tasks[task.index()].stage = Stage::Fetch;
            return;
        }
        self.charge(cpu, self.paths.syscall + self.paths.futex);
        self.sleep(cpu, task, TaskState::Interruptible, Wait::Sem(sem), Stage::SemWait(sem));
    }

    fn barrier(&mut self, cpu: CpuId, task: TaskId, id: BarrierId) {
        self.charge(cpu, self.atomic());
        self.touch_word(cpu, Object::Barrier(id.index()));
        match self.objects.barriers[id.index()].arrive(task) {
            Arrival::Wait => {
                let spin = self.workload.objects.barriers[id.index()].spin;
                let entry = &mut self.tasks[task.index()];
                entry.work = Work::nanos(spin.0);
                entry.stage = Stage::SpunAtBarrier(id);
                self.turn_changes(cpu);
            }
            Arrival::Open(spinners) => {
                for spinner in spinners {
                    self.end_spin(spinner, Stage::Fetch);
                }
                let left = self.objects.barriers[id.index()].nr_sleepers() as u32;
                if left > 0 {
                    self.charge(cpu, self.paths.syscall + self.paths.futex);
                }
                self.wake_several(cpu, task, WakeFrom::Barrier(id), left);
            }
        }
    }

    fn signal(&mut self, cpu: CpuId, task: TaskId, cond: CondId, count: u32) {
        self.charge(cpu, self.atomic());
        self.touch_word(cpu, Object::Cond(cond.index()));
        let left = count.min(self.objects.conds[cond.index()].len() as u32);
        if left > 0 {
            self.charge(cpu, self.paths.syscall + self.paths.futex);
        }
        self.wake_several(cpu, task, WakeFrom::Cond(cond), left);
    }

    /// Wakes the next of several, pays for it, and comes back for the others.
    fn wake_several(&mut self, cpu: CpuId, task: TaskId, from: WakeFrom, left: u32) {
        self.tasks[task.index()].stage = Stage::Fetch;
        if left == 0 {
            return;
        }
        let next = match from {
            WakeFrom::Barrier(id) => self.objects.barriers[id.index()].wake(),
            WakeFrom::Cond(id) => self.objects.conds[id.index()].signal(),
            WakeFrom::Word(id) => self.objects.futexes[id.index()].wake(),
        };
        let Some(next) = next else { return };
        if left > 1 {
            self.tasks[task.index()].stage = Stage::Wake { from, left: left - 1 };
        }
        self.wake_up(cpu, Context::Task, next, false);
    }

    fn futex_wait(&mut self, cpu: CpuId, task: TaskId, word: WordId, expected: Expected, timeout: Duration) {
        self.charge(cpu, self.paths.syscall + self.paths.futex);
        self.touch_word(cpu, Object::Word(word.index()));
        let expected = match expected {
            Expected::Value(value) => value,
            Expected::Remembered => self.tasks[task.index()].cursor.remembered(),
        };
        if self.objects.words[word.index()] != expected {
            return;
        }
        self.objects.futexes[word.index()].wait(task);
        if timeout > Duration::ZERO {
            self.set_timer(cpu, task, self.now + timeout);
        }
        self.sleep(cpu, task, TaskState::Interruptible, Wait::Word(word), Stage::FutexWoken);
    }

    /// A timer ends a wait.
    pub fn timer_expired(&mut self, task: TaskId) {
        let entry = &mut self.tasks[task.index()];
        if let Wait::Word(word) = entry.wait {
            self.objects.futexes[word.index()].give_up(task);
        }
    }

    /// Sets a task's timer on a CPU.
    pub fn set_timer(&mut self, cpu: CpuId, task: TaskId, at: Time) {
        let entry = &mut self.tasks[task.index()];
        entry.timer = entry.timer.wrapping_add(1);
        entry.timer_cpu = cpu;
        entry.timer_set = true;
        self.pending += 1;
        let next = &mut self.cpus[cpu].next_timer;
        *next = if *next <= self.now { at } else { at.min(*next) };
        let number = entry.timer;
        if entry.wheel && self.ticks_at(cpu, at) {
            self.cpus[cpu].wheel.push((task, number));
        } else {
            self.queue.push(at, crate::event::Event::Timer { task, number });
        }
        self.timer_set(at);
    }

    /// Cancels a task's timer, if it is set.
    pub fn cancel_timer(&mut self, task: TaskId) {
        let entry = &mut self.tasks[task.index()];
        if std::mem::take(&mut entry.timer_set) {
            entry.timer = entry.timer.wrapping_add(1);
            self.pending -= 1;
        }
    }

    /// Whether a task is a worker of the kernel.
    pub fn is_worker(&self, task: TaskId) -> bool {
        matches!(self.tasks[task.index()].role, Role::Worker { .. })
    }
}

/// Whether an op is a system call in any case. Locks and similar ops call only if they must, and then sleep or wake a
/// task.
fn is_call(op: Op) -> bool {
    !matches!(
        op,
        Op::RunWall { .. }
            | Op::Touch { .. }
            | Op::Access { .. }
            | Op::Share { .. }
            | Op::Zero
            | Op::ComeToWaker
            | Op::Heard { .. }
            | Op::InterruptOn { .. }
            | Op::Lock { .. }
            | Op::Unlock { .. }
            | Op::Signal { .. }
            | Op::Broadcast { .. }
            | Op::SemPost { .. }
            | Op::SemWait { .. }
            | Op::Barrier { .. }
            | Op::Mark { .. }
            | Op::MarkLate { .. }
    )
}
