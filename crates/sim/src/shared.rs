//! What CPUs share: where its cache lines are, and which CPU pays for fetching them.
//!
//! The scheduler says what it touched ([`schedlab_sched::Shared`]); so do the parts of the engine that stand for the
//! rest of the kernel. [`schedlab_machine::SharedLines`] knows where each object is. How many lines of it a path
//! touches is counted in the structures of the kernel, not fitted; the counts are constants of the machine only
//! so that they can be pushed.
//!
//! A path is done at once and paid after, so a touch happens when what the CPU has to pay for before is paid.

use schedlab_machine::{Machine, Mechanism, SharedLines, Took};
use schedlab_sched::{Access, Scheduler, Shared};
use schedlab_topology::{CpuId, PerCpu};
use schedlab_units::{TaskId, Time};
use schedlab_workload::{ChannelId, RegionId, Workload};

use crate::account::Part;
use crate::engine::Engine;

/// Something that programs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    /// A pipe or a socket: its lock, its queue, its state.
    Channel(usize),
    /// The wait queue of one.
    Waiters(usize),
    /// A mutex in user memory, and its waiters.
    Mutex(usize),
    Cond(usize),
    Sem(usize),
    Barrier(usize),
    /// A word in user memory, and its waiters.
    Word(usize),
    /// Memory that tasks share.
    Region(usize),
}

/// How many lines a path touches.
#[derive(Clone, Copy, Debug)]
struct Counts {
    look: u64,
    pass: u64,
    queue: u64,
    task: u64,
    channel: u64,
}

/// Where everything is.
#[derive(Clone)]
pub(crate) struct Places {
    pub lines: SharedLines,
    nr_cpus: usize,
    counts: Counts,
    /// Where channels, their wait queues, mutexes, conditions, semaphores, barriers, words and regions begin, and
    /// tasks after them.
    begins: [usize; 9],
    /// What looking at one CPU took in the last balance pass of each CPU, ns.
    pass_cpu: PerCpu<u64>,
    /// What the lines of candidates took in the present balance pass, ns.
    candidates_ns: u64,
}

impl Places {
    pub fn new(machine: &Machine, workload: &Workload, nr_atomics: usize) -> Places {
        let objects = &workload.objects;
        let mut at = 2 * machine.topology.nr_cpus() + 2 + nr_atomics;
        let counts = [
            0,
            objects.channels.len(),
            objects.channels.len(),
            objects.mutexes.len(),
            objects.conds.len(),
            objects.sems.len(),
            objects.barriers.len(),
            objects.words.len(),
            objects.regions.len(),
        ];
        let begins = counts.map(|count| {
            at += count;
            at
        });
        let nr_cpus = machine.topology.nr_cpus();
        let mut places = Places {
            lines: SharedLines::new(machine),
            nr_cpus,
            counts: Counts { look: 0, pass: 0, queue: 0, task: 0, channel: 0 },
            begins,
            pass_cpu: PerCpu::new(nr_cpus, |_| 0),
            candidates_ns: 0,
        };
        places.adapt(machine);
        places.lines.make(places.tasks_from());
        let balance_cpu =
            if machine.has(Mechanism::SearchCosts) { machine.cost.balance_cpu_ns.get() } else { 0 };
        for cpu in (0..nr_cpus).map(CpuId::from) {
            places.lines.give(cpu.index(), cpu);
            places.lines.give(nr_cpus + cpu.index(), cpu);
            places.pass_cpu[cpu] = balance_cpu;
        }
        places
    }

    /// Takes prices from another machine of the same topology.
    pub fn adapt(&mut self, machine: &Machine) {
        self.lines.adapt(machine);
        let line = &machine.line;
        self.counts = Counts {
            look: line.look_lines.get(),
            pass: line.pass_lines.get(),
            queue: line.queue_lines.get(),
            task: line.task_lines.get(),
            channel: machine.cost.pipe_lines.get(),
        };
    }

    fn tasks_from(&self) -> usize {
        self.begins[8]
    }

    fn number(&self, object: Object) -> usize {
        match object {
            Object::Channel(index) => self.begins[0] + index,
            Object::Waiters(index) => self.begins[1] + index,
            Object::Mutex(index) => self.begins[2] + index,
            Object::Cond(index) => self.begins[3] + index,
            Object::Sem(index) => self.begins[4] + index,
            Object::Barrier(index) => self.begins[5] + index,
            Object::Word(index) => self.begins[6] + index,
            Object::Region(index) => self.begins[7] + index,
        }
    }

    /// About this many tasks will be made.
    pub fn expect_tasks(&mut self, count: usize) {
        self.lines.expect(count);
    }

    /// A task is made on a CPU.
    pub fn new_task(&mut self, task: TaskId, cpu: CpuId) {
        let object = self.tasks_from() + task.index();
        self.lines.make(object + 1);
        self.lines.give(object, cpu);
    }

    /// The number of an object, and how many lines are touched of it.
    #[inline]
    fn find(&self, what: Shared, how: Access) -> (usize, u64) {
        match what {
            Shared::Rq(cpu) if how == Access::Read => (cpu.index(), self.counts.look),
            Shared::Rq(cpu) => (cpu.index(), self.counts.queue),
            Shared::WakeList(cpu) => (self.nr_cpus + cpu.index(), 1),
            Shared::Nohz => (2 * self.nr_cpus, 1),
            Shared::Serialize => (2 * self.nr_cpus + 1, 1),
            Shared::Atomic(line) => (2 * self.nr_cpus + 2 + line as usize, 1),
            Shared::Task(task) => (self.tasks_from() + task.index(), self.counts.task),
            Shared::TgLoadAvg(_) => unreachable!("the line of a group has a queue of its own"),
        }
    }
}

impl<S: Scheduler> Engine<'_, S> {
    /// When a CPU gets to its current action.
    #[inline]
    pub fn comes_to_it(&self, cpu: CpuId) -> u64 {
        self.now.0 + self.cpus[cpu].overhead_ns()
    }

    /// A CPU touches something shared. A lock is held for `hold` ns.
    #[inline]
    pub fn touch(&mut self, by: CpuId, what: Shared, how: Access, hold: u64) {
        let (object, lines) = self.places.find(what, how);
        // What only this CPU touches is at hand, but for a lock that it may have let go a moment ago.
        if how != Access::Lock && self.places.lines.owns(object, by) {
            return;
        }
        let at = self.comes_to_it(by);
        let took = match how {
            Access::Read => self.places.lines.read(object, by, lines, at),
            Access::Write => self.places.lines.write(object, by, lines, at),
            Access::Lock => self.places.lines.lock(object, by, lines, at, hold),
        };
        // Only balance passes read tasks, and report themselves when they are over.
        if matches!((what, how), (Shared::Task(_), Access::Read)) {
            self.places.candidates_ns += took.ns();
        }
        self.pay_for(by, took);
    }

    /// A program on a CPU writes something shared in memory: one line, as an atomic operation does.
    #[inline]
    pub fn touch_word(&mut self, by: CpuId, object: Object) {
        let (object, at) = (self.places.number(object), self.comes_to_it(by));
        let took = self.places.lines.write(object, by, 1, at);
        self.pay_for(by, took);
    }

    /// A program on a CPU reads or writes memory that tasks share: lines that are not at hand come several at a time.
    pub fn share(&mut self, by: CpuId, region: RegionId, bytes: u32, write: bool) {
        let (object, at) = (self.places.number(Object::Region(region.index())), self.comes_to_it(by));
        let lines = u64::from(bytes).div_ceil(64 * self.machine.cache.mlp.get());
        // Nothing that a program does takes no time at all.
        self.charge(by, 1);
        let took = match write {
            true => self.places.lines.write(object, by, lines, at),
            false => self.places.lines.read(object, by, lines, at),
        };
        self.pay_for(by, took);
    }

    /// A call on a socket takes its lock for a while, and moves the lines of its state.
    pub fn touch_socket(&mut self, by: CpuId, channel: usize, hold: u64) {
        let (object, at) = (self.places.number(Object::Channel(channel)), self.comes_to_it(by));
        let took = self.places.lines.lock(object, by, self.places.counts.channel, at, hold);
        self.pay_for(by, took);
    }

    /// A CPU takes the lock of a channel's wait queue for a while: the lock, and the entry of the waiter before.
    pub fn touch_waiters(&mut self, by: CpuId, channel: ChannelId, hold: u64) {
        let (object, at) = (self.places.number(Object::Waiters(channel.index())), self.comes_to_it(by));
        let took = self.places.lines.lock(object, by, 2, at, hold);
        self.pay_for(by, took);
    }

    /// It has held that lock for so long, from when what it had to pay for then was paid.
    pub fn hold_waiters(&mut self, channel: ChannelId, after: u64, held: u64) {
        let object = self.places.number(Object::Waiters(channel.index()));
        self.places.lines.hold(object, self.now.0 + after, held);
    }

    /// Time in which the lines of `bytes` bytes come from the CPU that wrote them, several at a time.
    pub fn bytes_ns(&self, to: CpuId, from: CpuId, bytes: u32) -> u64 {
        if self.places.lines.is_on() {
            u64::from(bytes).div_ceil(64) * self.places.lines.way(from, to) / self.machine.cache.mlp.get()
        } else {
            0
        }
    }

    #[inline]
    fn pay_for(&mut self, cpu: CpuId, took: Took) {
        if took.moved > 0 {
            self.charge_time(cpu, Part::Lines, took.moved);
        }
        if took.waited > 0 {
            self.charge_time(cpu, Part::Waiting, took.waited);
        }
    }

    /// A CPU has searched, and examined `examined` CPUs.
    pub fn searched(&mut self, cpu: CpuId, examined: u32) {
        if examined == 0 {
            return;
        }
        let lines = self.places.counts.look;
        let plain = u64::from(examined) * self.paths.idle_scan_cpu;
        let (brought, _) = self.look_at_all(cpu, lines);
        self.charge_to(cpu, Part::Search, plain);
        self.charge_time(cpu, Part::Search, brought);
        self.sched.took().scan_cpu = (plain + brought) / u64::from(examined);
    }

    /// A CPU has made a balance pass.
    pub fn passed(&mut self, cpu: CpuId, examined: u32, moved: u32) {
        let (lines, paths) = (self.places.counts.pass, &self.paths);
        let plain = paths.balance_pass
            + u64::from(examined) * paths.balance_cpu
            + u64::from(moved) * paths.balance_task;
        let begin = Time(self.comes_to_it(cpu));
        let (brought, looked) = self.look_at_all(cpu, lines);
        self.charge_to(cpu, Part::Pass, plain);
        self.charge_time(cpu, Part::Pass, brought);
        let took = plain + brought + std::mem::take(&mut self.places.candidates_ns);
        self.counts.balance_ns += took;
        self.counts.balance_max_ns = self.counts.balance_max_ns.max(took);
        let end = Time(self.comes_to_it(cpu));
        self.cpus[cpu].passes.add(begin, end, examined);
        // Passes that follow each other are reported together: the first brings the lines of all.
        if let Some(each) = brought.checked_div(looked) {
            self.places.pass_cpu[cpu] = self.paths.balance_cpu + each;
        }
    }

    /// Fetches lines of all run queues that were examined: how long it takes, and how many queues there are.
    fn look_at_all(&mut self, cpu: CpuId, lines: u64) -> (u64, u64) {
        let (at, places) = (self.comes_to_it(cpu), &mut self.places.lines);
        let (mut brought, mut looked) = (0, 0);
        self.sched.looked().take(|word, cpus| {
            looked += u64::from(cpus.count_ones());
            brought += places.read_all(cpu, word, cpus, lines, at + brought);
        });
        (if self.searches { brought } else { 0 }, looked)
    }

    /// Gives the scheduler the time that its work takes on a CPU that is to act.
    #[inline]
    pub fn tell_times(&mut self, cpu: CpuId) {
        self.sched.took().pass_cpu = self.places.pass_cpu[cpu];
    }
}
