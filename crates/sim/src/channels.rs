//! Writing to pipes and sockets, and reading from them.
//!
//! A call on a pipe holds the pipe's mutex for part of its time. The data that it moves has arrived, or been taken,
//! when it releases the mutex, and only then does it wake the waiting tasks:
//!
//! ```text
//!   |-- enter --|== copy, held ==|-- wake --|-- update times, return to user --|
//! ```
//!
//! A task that is woken may preempt the waker, and the scheduler charges the waker for what it did until then, the task
//! for what follows. So the way in and the work of a wake-up up to its queueing are paid before the wake-up. A call that
//! wakes no task pays all unheld parts at the end.
//!
//! A call that finds nothing to do has only looked: it copies nothing and does not return to the program. It sleeps
//! without the mutex, checks again before it takes it, and is then paid as a whole. A call on a socket happens at one
//! moment and takes its time afterwards, also if it finds nothing.
//!
//! Kernel: pipe_read(), pipe_write(), fs/pipe.c, v4.13, v5.5, v6.12; unix_stream_sendmsg(),
//! unix_stream_read_generic(), net/unix/af_unix.c.

use schedlab_machine::{Mechanism, Work};
use schedlab_sched::{PipeWake, Scheduler, TaskState};
use schedlab_topology::CpuId;
use schedlab_units::{Duration, TaskId};
use schedlab_workload::{ChannelId, Section, exponential};

use crate::account::Part;
use crate::emit::Context;
use crate::engine::Engine;
use crate::locks::KernelLock;
use crate::objects::Channel;
use crate::task::{Mode, PipeCall, PipeDone, PipeWakes, Stage, Wait, Woken};
use crate::wait::Pipe;

impl<S: Scheduler> Engine<'_, S> {
    /// Writes as much as fits; sleeps if something is left. `resumed` is set after such a sleep.
    pub fn write(&mut self, cpu: CpuId, task: TaskId, id: ChannelId, left: u32, resumed: bool) {
        let call = Stage::Write { channel: id, left, resumed };
        match &mut self.objects.channels[id.index()] {
            Channel::Pipe(pipe) => {
                if resumed && pipe.is_full() && self.sched.kernel().rules.pipe_wake != PipeWake::All {
                    pipe.writers().add(task);
                    self.touch_waiters(cpu, id, self.machine.cost.waiters_held_ns.get());
                    return self.sleep(cpu, task, TaskState::Interruptible, Wait::Writable(id), call);
                }
                self.call_pipe(cpu, task, id, PipeCall { left, resumed, ..PipeCall::default() });
            }
            Channel::Socket(socket) => {
                let taken = socket.write(left);
                if taken > 0 {
                    socket.wrote_on(cpu);
                    socket.readers().take_one(&mut self.woken);
                }
                let (held, rest) = self.channel_ns(task, id, taken);
                self.touch_socket(cpu, id.index(), self.machine.cost.socket_held_ns.get());
                self.charge(cpu, held + rest);
                self.wake_all(cpu, id);
                self.wrote(cpu, task, id, left - taken);
            }
        }
    }

    /// Reads the available data; sleeps if there is none. `resumed` is set after such a sleep.
    pub fn read(&mut self, cpu: CpuId, task: TaskId, id: ChannelId, left: u32, resumed: bool) {
        let call = Stage::Read { channel: id, left, resumed };
        match &mut self.objects.channels[id.index()] {
            Channel::Pipe(pipe) => {
                if resumed && pipe.is_empty() && self.sched.kernel().rules.pipe_wake != PipeWake::All {
                    pipe.readers().add(task);
                    self.touch_waiters(cpu, id, self.machine.cost.waiters_held_ns.get());
                    return self.sleep(cpu, task, TaskState::Interruptible, Wait::Readable(id), call);
                }
                self.call_pipe(cpu, task, id, PipeCall { reads: true, left, resumed, ..PipeCall::default() });
            }
            Channel::Socket(socket) => {
                let taken = socket.read(left);
                if taken > 0 && socket.is_writable() {
                    socket.writers().take_all(&mut self.woken);
                }
                let writer = socket.written_on();
                let (held, rest) = self.channel_ns(task, id, taken);
                self.touch_socket(cpu, id.index(), self.machine.cost.socket_held_ns.get());
                self.charge(cpu, held + rest);
                let moved = writer.map_or(0, |from| self.bytes_ns(cpu, from, taken));
                self.charge_time(cpu, Part::Lines, moved);
                self.wake_all(cpu, id);
                self.was_read(cpu, task, id, left, taken);
            }
        }
    }

    /// Begins a call on a pipe by taking its mutex.
    fn call_pipe(&mut self, cpu: CpuId, task: TaskId, id: ChannelId, call: PipeCall) {
        self.tasks[task.index()].call = call;
        let lock = KernelLock::Pipe(id);
        if self.might_sleep(cpu) {
            self.tasks[task.index()].stage = Stage::KernelLock(lock);
        } else {
            self.lock_kernel(cpu, task, lock);
        }
    }

    /// A call on a pipe has the mutex: it holds it while what the last one wrote comes from
    /// that CPU, by the clock however fast this one works, and while it copies.
    pub fn hold_pipe(&mut self, task: TaskId, id: ChannelId) {
        let PipeCall { reads, left, .. } = self.tasks[task.index()].call;
        let Channel::Pipe(pipe) = &self.objects.channels[id.index()] else {
            unreachable!("a socket has no such mutex")
        };
        let in_vain = if reads { pipe.is_empty() } else { !pipe.has_room(left) };
        let pages = if reads { pipe.frees(left) } else { pipe.allocates(left) };
        let held = if in_vain { self.vain_ns() } else { self.channel_ns(task, id, left).0 };
        let held = held + pages as u64 * self.page_ns(reads);
        let left = if in_vain { 0 } else { left };
        let cpu = self.sched.task(task).cpu;
        let Channel::Pipe(pipe) = &mut self.objects.channels[id.index()] else {
            unreachable!("a socket has no such mutex")
        };
        let last = pipe.used_on(cpu).filter(|&last| last != cpu && self.machine.has(Mechanism::CacheLines));
        // A mutex that others want is not handed over in one line: they poll it, queue at it and are woken.
        let wanted = if self.places.lines.is_on() && self.is_wanted(KernelLock::Pipe(id)) {
            self.machine.cost.wanted_lines.get()
        } else {
            0
        };
        let count = self.machine.cost.pipe_lines.get() + wanted;
        let bytes = if reads { left } else { 0 };
        let lines = last.map_or(0, |last| count * self.line_ns(cpu, last) + self.bytes_ns(cpu, last, bytes));
        let held = Work::nanos(held);
        let entry = &mut self.cpus[cpu];
        entry.account.charge_within(Part::Lines, lines);
        entry.account.charge_within(Part::Call, held.time_at(entry.rate));
        let entry = &mut self.tasks[task.index()];
        entry.work = held.plus(Work::done_in(lines, self.cpus[cpu].rate));
        entry.mode = Mode::Kernel(Section { preempt_off: false, cond_resched_ns: 0 });
        entry.stage = Stage::PipeHeld(id);
    }

    /// The copy is done: the mutex is released. If tasks wait for what changed, the way in and the work of a wake-up up
    /// to its queueing come first.
    pub fn pipe_held(&mut self, cpu: CpuId, task: TaskId, id: ChannelId) {
        let rule = self.sched.kernel().rules.pipe_wake;
        let PipeCall { reads, left, resumed, .. } = self.tasks[task.index()].call;
        let Channel::Pipe(pipe) = &mut self.objects.channels[id.index()] else {
            unreachable!("a socket has no such mutex")
        };
        let move_bytes = if reads { read_pipe } else { write_pipe };
        let (taken, wakes) = move_bytes(pipe, rule, left, resumed);
        let waits = wakes.finds(pipe);
        let rest = if taken > 0 { self.channel_ns(task, id, taken).1 } else { 0 };
        let done = PipeDone { taken, wakes, rest };
        self.unlock_kernel(cpu, task, KernelLock::Pipe(id));
        self.tasks[task.index()].call.done = done;
        if !waits {
            return self.pipe_wakes(cpu, task, id, 0);
        }
        let decides = self.paths.wakeup.saturating_sub(self.paths.activate);
        let way_in = rest / 2;
        let entry = &mut self.cpus[cpu];
        entry.account.charge_within(Part::Wakeup, Work::nanos(decides).time_at(entry.rate));
        entry.account.charge_within(Part::Call, Work::nanos(way_in).time_at(entry.rate));
        let entry = &mut self.tasks[task.index()];
        entry.call.done.rest = rest - way_in;
        entry.work = Work::nanos(decides + way_in);
        entry.mode = Mode::Kernel(Section { preempt_off: false, cond_resched_ns: 0 });
        entry.stage = Stage::PipeWakes { channel: id, decides };
    }

    /// A call on a pipe wakes the tasks that wait now, and returns. `decides` of a wake-up is paid already.
    pub fn pipe_wakes(&mut self, cpu: CpuId, task: TaskId, id: ChannelId, decides: u64) {
        let PipeCall { reads, left, done: PipeDone { taken, wakes, rest }, .. } =
            self.tasks[task.index()].call;
        let Channel::Pipe(pipe) = &mut self.objects.channels[id.index()] else {
            unreachable!("a socket has no such mutex")
        };
        wakes.take(pipe, reads, &mut self.woken);
        let more = if !reads && taken > 0 && self.machine.has(Mechanism::KernelCosts) {
            self.machine.cost.pipe_write_ns.get()
        } else {
            0
        };
        self.decides_paid = decides;
        self.wake_all(cpu, id);
        self.decides_paid = 0;
        self.charge(cpu, rest + more);
        if reads {
            self.was_read(cpu, task, id, left, taken);
        } else {
            self.wrote(cpu, task, id, left - taken);
        }
    }

    /// A write has this much left.
    fn wrote(&mut self, cpu: CpuId, task: TaskId, id: ChannelId, left: u32) {
        if left == 0 {
            self.tasks[task.index()].stage = Stage::Fetch;
            return;
        }
        match &mut self.objects.channels[id.index()] {
            Channel::Pipe(pipe) => pipe.writers().add(task),
            Channel::Socket(socket) => socket.writers().add(task),
        }
        let stage = Stage::Write { channel: id, left, resumed: true };
        self.touch_waiters(cpu, id, self.machine.cost.waiters_held_ns.get());
        self.sleep(cpu, task, TaskState::Interruptible, Wait::Writable(id), stage);
    }

    /// A read of this size got this much.
    fn was_read(&mut self, cpu: CpuId, task: TaskId, id: ChannelId, left: u32, taken: u32) {
        if taken == left {
            self.tasks[task.index()].stage = Stage::Fetch;
        } else if taken > 0 {
            self.tasks[task.index()].stage = Stage::Read { channel: id, left: left - taken, resumed: false };
        } else {
            match &mut self.objects.channels[id.index()] {
                Channel::Pipe(pipe) => pipe.readers().add(task),
                Channel::Socket(socket) => socket.readers().add(task),
            }
            let stage = Stage::Read { channel: id, left, resumed: true };
            self.touch_waiters(cpu, id, self.machine.cost.waiters_held_ns.get());
            self.sleep(cpu, task, TaskState::Interruptible, Wait::Readable(id), stage);
        }
    }

    /// Price of one call of a task on a channel that moves `bytes` bytes: the time for which a pipe's mutex is held,
    /// and the rest. No two calls take exactly as long.
    fn channel_ns(&mut self, task: TaskId, id: ChannelId, bytes: u32) -> (u64, u64) {
        if !self.machine.has(Mechanism::KernelCosts) {
            return (0, 1);
        }
        let cost = &self.machine.cost;
        let copy = u64::from(bytes) * cost.copy_kb_ns.get() / 1024;
        let stream = &mut self.tasks[task.index()].spread;
        let mut spread = |ns: u64| {
            let part = ns * cost.call_spread_permille.get() / 1000;
            ns - part + drawn(part, || stream.next())
        };
        match self.objects.channels[id.index()] {
            Channel::Pipe(_) => {
                let call = spread(cost.pipe_ns.get() + copy);
                let held = call * cost.pipe_held_permille.get() / 1000;
                (held, call - held + self.paths.syscall)
            }
            Channel::Socket(_) => (0, self.paths.syscall + spread(cost.socket_ns.get() + copy)),
        }
    }

    /// Price of a call on a pipe that finds nothing to read or no room, up to its sleep.
    fn vain_ns(&self) -> u64 {
        let cost = &self.machine.cost;
        if self.machine.has(Mechanism::KernelCosts) {
            cost.pipe_ns.get() * cost.pipe_vain_permille.get() / 1000
        } else {
            0
        }
    }

    /// Price of freeing a page of a pipe, or of allocating one.
    fn page_ns(&self, frees: bool) -> u64 {
        let cost = &self.machine.cost;
        match self.machine.has(Mechanism::KernelCosts) {
            false => 0,
            true if frees => cost.pipe_free_page_ns.get(),
            true => cost.pipe_page_ns.get(),
        }
    }

    /// Wakes the tasks removed from a channel's queues, with the lock of its wait queue held; the waker soon sleeps.
    fn wake_all(&mut self, cpu: CpuId, id: ChannelId) {
        if self.woken.is_empty() {
            return;
        }
        let mut woken = std::mem::take(&mut self.woken);
        self.touch_waiters(cpu, id, 0);
        let before = self.cpus[cpu].overhead_ns();
        for task in woken.drain(..) {
            self.wake_up(cpu, Context::Task, task, true);
        }
        let held = self.cpus[cpu].overhead_ns().saturating_sub(before);
        self.hold_waiters(id, before, held);
        self.woken = woken;
    }
}

/// A draw with this mean from an exponential distribution; nothing is drawn for a mean of zero.
fn drawn(mean: u64, draw: impl FnOnce() -> u64) -> u64 {
    if mean == 0 { 0 } else { exponential(Duration(mean), draw()).0 }
}

/// Writes as much as fits; returns how much, and which tasks to wake.
fn write_pipe(pipe: &mut Pipe, rule: PipeWake, left: u32, resumed: bool) -> (u32, PipeWakes) {
    let was_empty = pipe.is_empty();
    let taken = pipe.write(left);
    let wakes = taken > 0 && (was_empty || rule == PipeWake::All);
    let one = matches!(rule, PipeWake::OneIfFull | PipeWake::OneIfFreed);
    let next = one && resumed && taken == left && !pipe.is_full();
    let readers = Woken::some(wakes, one);
    (taken, PipeWakes { readers, writers: Woken::some(next, true) })
}

/// Reads the available data; returns how much, and which tasks to wake.
fn read_pipe(pipe: &mut Pipe, rule: PipeWake, left: u32, resumed: bool) -> (u32, PipeWakes) {
    let (was_full, pages) = (pipe.is_full(), pipe.pages());
    let taken = pipe.read(left);
    let freed = pipe.pages() < pages;
    let wakes = match rule {
        PipeWake::All => freed,
        PipeWake::AllIfFull | PipeWake::OneIfFull => was_full,
        PipeWake::OneIfFreed => was_full && freed,
    };
    let one = matches!(rule, PipeWake::OneIfFull | PipeWake::OneIfFreed);
    let next = one && resumed && taken > 0 && !pipe.is_empty();
    (taken, PipeWakes { readers: Woken::some(next, true), writers: Woken::some(wakes, one) })
}
