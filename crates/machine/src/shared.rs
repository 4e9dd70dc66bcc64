//! Memory that several CPUs touch: which CPU holds it, and what a transfer costs (equation E13).
//!
//! An object is a few lines that move together: a run queue, a task, the buffer of a pipe. It
//! has an owner, the CPU that wrote it last, and sharers, the CPUs that have read it since.
//!
//! ```text
//!   CPU 3 reads    owner 0 --- way 0 to 3 --> sharer 3        CPU 0 loses the right to write
//!   CPU 0 writes   owner 0 <-- way 3 to 0 --- (a copy less)   and pays for it at its next write
//!   CPU 5 writes   owner 0 --- way 0 to 5 --> owner 5
//! ```
//!
//! The price of a line depends on how far it travels: one latency for each step of distance, from core-to-core
//! measurements ([`crate::LinePrices`]). One line moves at a time. A CPU that requests a line while it moves waits,
//! and a CPU that requests a lock waits until the holder releases it. An object at hand costs nothing here: the plain
//! work on it is part of the path that does it.
//!
//! A path of the kernel is executed at once and charged afterwards, so touches do not come in the order of their
//! times. Each move is stored with its beginning and its end. A touch that belongs before the beginning is served
//! before the move.
//!
//! Left out: several lines in transit at once, prefetching, and capacity (a line stays until another CPU takes it).

use schedlab_topology::{CpuId, Topology};

use crate::readers::{Many, Readers};
use crate::{Machine, Mechanism};

/// How far a line travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Step {
    /// The CPU has it already.
    Own,
    /// From the other thread of the core.
    Sibling,
    /// From a core of the same cluster, which shares an L2 or a part of the LLC.
    Cluster,
    /// From another core of the LLC.
    Llc,
    /// From another LLC of the package.
    Package,
    /// From another package.
    Remote,
}

const STEPS: usize = 6;

/// No CPU has it: it is in memory.
const NOBODY: u16 = u16::MAX;

/// One object.
#[derive(Clone, Copy, Debug)]
struct Object {
    /// The CPU that wrote last.
    owner: u16,
    /// The farthest sharer from the owner, and how many lines were read; 0 lines if no CPU has read since.
    far: Step,
    read: u8,
    /// CPUs that have read since the last write; for the first objects `SharedLines::sharers` has them.
    readers: Readers,
    /// LLCs, modulo 64, that hold a copy.
    llcs: u64,
    /// The current move, or the last one.
    from: u64,
    until: u64,
    /// The same for the lock.
    held_from: u64,
    held_until: u64,
}

/// All shared objects of a machine, numbered from 0.
#[derive(Clone, Debug)]
pub struct SharedLines {
    nr_cpus: usize,
    words: usize,
    /// Step from one CPU to another.
    steps: Vec<Step>,
    llc: Vec<u8>,
    prices: [u64; STEPS],
    memory: u64,
    shared: u64,
    contended: u64,
    objects: Vec<Object>,
    /// CPUs that have read since the last write, by object: of the first objects, one for each CPU, which all CPUs
    /// read.
    sharers: Vec<u64>,
    /// The same for objects that more CPUs have read than their entry has room for.
    many: Many,
    /// For each CPU, which of the first objects it has: one for each CPU, the run queues of the engine.
    has: Vec<u64>,
    on: bool,
}

/// Time that a touch took, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// Waiting for this CPU's turn.
    pub waited: u64,
    /// Moving the lines.
    pub moved: u64,
}

impl Took {
    /// The total.
    #[inline]
    pub fn ns(self) -> u64 {
        self.waited + self.moved
    }
}

impl SharedLines {
    /// No objects yet.
    pub fn new(machine: &Machine) -> SharedLines {
        let topology = &machine.topology;
        let nr_cpus = topology.nr_cpus();
        let cpus = || (0..nr_cpus).map(CpuId::from);
        let mut lines = SharedLines {
            nr_cpus,
            words: nr_cpus.div_ceil(64),
            steps: cpus().flat_map(|a| cpus().map(move |b| step(topology, a, b))).collect(),
            llc: cpus().map(|cpu| (topology.cpu(cpu).llc % 64) as u8).collect(),
            prices: [0; STEPS],
            memory: 0,
            shared: 0,
            contended: 1000,
            objects: Vec::new(),
            sharers: vec![0; nr_cpus * nr_cpus.div_ceil(64)],
            many: Many::new(nr_cpus),
            has: vec![0; nr_cpus * nr_cpus.div_ceil(64)],
            on: true,
        };
        lines.adapt(machine);
        lines
    }

    /// Takes prices from a machine of the same topology.
    pub fn adapt(&mut self, machine: &Machine) {
        let line = &machine.line;
        self.prices = [
            0,
            line.sibling_ns.get(),
            line.cluster_ns.get(),
            line.llc_ns.get(),
            line.node_ns.get(),
            line.remote_ns.get(),
        ];
        self.memory = machine.cache.local_ns.get();
        self.shared = line.shared_ns.get();
        self.contended = line.contended_permille.get();
        // An emulator that executes its CPUs in turn has one cache.
        self.on = machine.has(Mechanism::CacheLines) && !machine.shared_clock;
    }

    /// Reserves room for about this many more objects.
    pub fn expect(&mut self, count: usize) {
        self.objects.reserve(count);
    }

    /// Creates objects up to a number; new ones are in no cache.
    pub fn make(&mut self, count: usize) {
        let none = Object {
            owner: NOBODY,
            far: Step::Own,
            read: 0,
            readers: Readers::NONE,
            llcs: 0,
            from: 0,
            until: 0,
            held_from: 0,
            held_until: 0,
        };
        if count > self.objects.len() {
            self.objects.resize(count, none);
        }
    }

    /// An object belongs to a CPU from the beginning.
    pub fn give(&mut self, object: usize, cpu: CpuId) {
        let before = std::mem::replace(&mut self.objects[object].owner, cpu.0);
        if object < self.nr_cpus {
            if before != NOBODY {
                self.loses(object, CpuId(before));
            }
            self.gains(object, cpu);
        }
    }

    #[inline]
    fn gains(&mut self, object: usize, cpu: CpuId) {
        self.has[cpu.index() * self.words + object / 64] |= 1 << (object % 64);
    }

    #[inline]
    fn loses(&mut self, object: usize, cpu: CpuId) {
        self.has[cpu.index() * self.words + object / 64] &= !(1 << (object % 64));
    }

    /// A CPU reads `lines` lines of each of some of the first objects, one after the other from `at` on; `objects` is
    /// a word of 64 of them. Returns the time that took, ns.
    pub fn read_all(&mut self, cpu: CpuId, word: usize, objects: u64, lines: u64, at: u64) -> u64 {
        if !self.on {
            return 0;
        }
        let by = cpu.index();
        let mut lacks = objects & !self.has[by * self.words + word];
        self.has[by * self.words + word] |= lacks;
        // Two CPUs are as far apart in either direction.
        let steps = &self.steps[by * self.nr_cpus..(by + 1) * self.nr_cpus];
        let (of, bit, llc) = (by / 64, 1 << (by % 64), 1 << self.llc[by]);
        let mut took = 0;
        while lacks != 0 {
            let object = word * 64 + lacks.trailing_zeros() as usize;
            lacks &= lacks - 1;
            self.sharers[object * self.words + of] |= bit;
            let it = &mut self.objects[object];
            let step = if it.owner == NOBODY { Step::Own } else { steps[usize::from(it.owner)] };
            it.far = it.far.max(step);
            it.read = it.read.max(lines.min(255) as u8);
            if it.llcs & llc != 0 && step >= Step::Llc {
                // Another CPU of this cache has read it: the cache holds a copy, and copies are read concurrently.
                took += lines * self.shared;
                continue;
            }
            it.llcs |= llc;
            let way = if it.owner == NOBODY { self.memory } else { self.prices[step as usize] };
            took += it.fetch(lines * way, at + took, self.contended).ns();
        }
        took
    }

    /// Whether lines cost anything.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Number of objects.
    pub fn count(&self) -> usize {
        self.objects.len()
    }

    /// How far apart two CPUs are.
    #[inline]
    pub fn step(&self, a: CpuId, b: CpuId) -> Step {
        self.steps[a.index() * self.nr_cpus + b.index()]
    }

    /// Time to move a line between two CPUs.
    #[inline]
    pub fn way(&self, a: CpuId, b: CpuId) -> u64 {
        self.prices[self.step(a, b) as usize]
    }

    /// A CPU reads `lines` lines of an object at time `at`.
    pub fn read(&mut self, object: usize, cpu: CpuId, lines: u64, at: u64) -> Took {
        let it = &mut self.objects[object];
        if !self.on || it.owner == cpu.0 {
            return Took::default();
        }
        if object < self.nr_cpus {
            let (word, bit) = (object * self.words + cpu.index() / 64, 1 << (cpu.index() % 64));
            if self.sharers[word] & bit != 0 {
                return Took::default();
            }
            self.sharers[word] |= bit;
            self.gains(object, cpu);
        } else if !it.readers.add(cpu, &mut self.many) {
            return Took::default();
        }
        let llc = 1 << self.llc[cpu.index()];
        let owner = self.objects[object].owner;
        let step = if owner == NOBODY { Step::Own } else { self.step(CpuId(owner), cpu) };
        let it = &mut self.objects[object];
        it.far = it.far.max(step);
        it.read = it.read.max(lines.min(255) as u8);
        if it.llcs & llc != 0 && step >= Step::Llc {
            // Another CPU of this cache has read it: the cache holds a copy, and copies are read concurrently.
            return Took { waited: 0, moved: lines * self.shared };
        }
        it.llcs |= llc;
        let way = if owner == NOBODY { self.memory } else { self.prices[step as usize] };
        it.fetch(lines * way, at, self.contended)
    }

    /// Whether a CPU may write an object without fetching anything.
    #[inline]
    pub fn owns(&self, object: usize, cpu: CpuId) -> bool {
        let it = &self.objects[object];
        !self.on || it.owner == cpu.0 && it.read == 0
    }

    /// A CPU writes `lines` lines of an object at time `at`.
    #[inline]
    pub fn write(&mut self, object: usize, cpu: CpuId, lines: u64, at: u64) -> Took {
        if self.owns(object, cpu) {
            return Took::default();
        }
        self.move_to(object, cpu, lines, at)
    }

    /// Writes an object that other CPUs have.
    fn move_to(&mut self, object: usize, cpu: CpuId, lines: u64, at: u64) -> Took {
        let it = &self.objects[object];
        let owner = it.owner;
        let moved = if it.owner == cpu.0 {
            // Copies are invalidated.
            lines.min(it.read.into()) * self.prices[it.far as usize]
        } else if it.owner == NOBODY {
            lines * self.memory
        } else {
            lines * self.prices[self.step(CpuId(it.owner), cpu) as usize]
        };
        let read = it.read > 0 || it.owner == NOBODY;
        if read && object >= self.nr_cpus {
            self.objects[object].readers.clear(&mut self.many);
        } else if read {
            for word in 0..self.words {
                let mut gone = std::mem::take(&mut self.sharers[object * self.words + word]);
                let (of, bit) = (object / 64, 1 << (object % 64));
                while gone != 0 {
                    self.has[(word * 64 + gone.trailing_zeros() as usize) * self.words + of] &= !bit;
                    gone &= gone - 1;
                }
            }
        }
        if object < self.nr_cpus {
            if owner != NOBODY {
                self.loses(object, CpuId(owner));
            }
            self.gains(object, cpu);
        }
        let it = &mut self.objects[object];
        (it.owner, it.far, it.read, it.llcs) = (cpu.0, Step::Own, 0, 0);
        it.fetch(moved, at, self.contended)
    }

    /// A CPU takes the lock of an object at time `at`, writes `lines` of its lines and releases the lock after `hold`.
    #[inline]
    pub fn lock(&mut self, object: usize, cpu: CpuId, lines: u64, at: u64, hold: u64) -> Took {
        if !self.on {
            return Took::default();
        }
        let it = &self.objects[object];
        let held = if it.held_from <= at { it.held_until.saturating_sub(at) } else { 0 };
        let mut took = self.write(object, cpu, lines, at + held);
        took.waited += held;
        let it = &mut self.objects[object];
        if it.held_from <= at {
            (it.held_from, it.held_until) = (at, at + took.ns() + hold);
        }
        took
    }

    /// The lock of an object, taken at time `at`, is held for `held` ns.
    pub fn hold(&mut self, object: usize, at: u64, held: u64) {
        let it = &mut self.objects[object];
        if it.held_from <= at {
            (it.held_from, it.held_until) = (at, it.held_until.max(at + held));
        }
    }
}

impl Object {
    /// Puts a move in its turn.
    #[inline]
    fn fetch(&mut self, moved: u64, at: u64, contended: u64) -> Took {
        if at < self.from {
            return Took { waited: 0, moved };
        }
        let waited = self.until.saturating_sub(at);
        let moved = if waited > 0 { moved * contended / 1000 } else { moved };
        (self.from, self.until) = (at, at + waited + moved);
        Took { waited, moved }
    }
}

fn step(topology: &Topology, a: CpuId, b: CpuId) -> Step {
    let (x, y) = (topology.cpu(a), topology.cpu(b));
    if a == b {
        Step::Own
    } else if x.core == y.core {
        Step::Sibling
    } else if x.cluster == y.cluster && x.llc == y.llc {
        Step::Cluster
    } else if x.llc == y.llc {
        Step::Llc
    } else if x.package == y.package {
        Step::Package
    } else {
        Step::Remote
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packages of two LLCs of two clusters of two cores of two threads; steps cost 1, 10, 100, 1000, 10000 ns.
    fn lines() -> SharedLines {
        let topology = Topology::regular("2x2x4x2:smt=adjacent,cluster=2").unwrap();
        let mut machine = Machine::of(topology);
        for (name, ns) in [("sibling", 1), ("cluster", 10), ("llc", 100), ("node", 1000), ("remote", 10_000)]
        {
            machine.set(&format!("cacheline.{name}_ns"), ns).unwrap();
        }
        machine.set("cacheline.shared_ns", 7).unwrap();
        let mut lines = SharedLines::new(&machine);
        lines.make(2);
        lines.give(0, CpuId(0));
        lines
    }

    #[test]
    fn a_line_costs_the_way_it_comes() {
        for (cpu, ns) in [(0, 0), (1, 1), (2, 10), (4, 100), (8, 1000), (16, 10_000)] {
            assert_eq!(lines().write(0, CpuId(cpu), 1, 5).ns(), ns, "write by CPU {cpu}");
            assert_eq!(lines().read(0, CpuId(cpu), 3, 5).ns(), 3 * ns, "read by CPU {cpu}");
        }
    }

    /// The objects of the CPUs cost the same whether they are read together or one by one.
    #[test]
    fn reading_many_takes_as_long_as_reading_each() {
        let mut lines = lines();
        let cpus = lines.nr_cpus;
        lines.make(cpus + 1);
        (0..cpus).for_each(|cpu| lines.give(cpu, CpuId::from(cpu)));
        let mut each = lines.clone();
        let mut random = 7u64;
        for at in 0..5_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (object, cpu) =
                ((random >> 33) as usize % (cpus + 1), CpuId((random >> 50) as u16 % cpus as u16));
            if random >> 40 & 3 == 0 {
                assert_eq!(lines.write(object, cpu, 1, at), each.write(object, cpu, 1, at));
                assert!(lines.owns(object, cpu));
            } else if random >> 42 & 1 == 0 {
                assert_eq!(lines.read(object, cpu, 1, at), each.read(object, cpu, 1, at));
            }
            let set = random & (u64::MAX >> (64 - cpus));
            let one_by_one = (0..cpus).filter(|object| set >> object & 1 != 0);
            let took = one_by_one.fold(0, |took, object| took + each.read(object, cpu, 2, at + took).ns());
            assert_eq!(lines.read_all(cpu, 0, set, 2, at), took, "by CPU {cpu} at {at}");
        }
    }

    #[test]
    fn the_owner_pays_for_those_that_read() {
        let mut lines = lines();
        assert_eq!(lines.read(0, CpuId(4), 2, 0).ns(), 200);
        assert_eq!(lines.read(0, CpuId(4), 2, 900).ns(), 0, "it has a copy");
        assert_eq!(lines.read(0, CpuId(6), 2, 900).ns(), 14, "from the copy of the cache");
        assert_eq!(lines.write(0, CpuId(0), 3, 2_000).ns(), 200, "two lines were read");
        assert_eq!(lines.write(0, CpuId(0), 3, 3_000).ns(), 0, "nobody read since");
        assert_eq!(lines.read(0, CpuId(4), 2, 4_000).ns(), 200, "its copy is gone");
    }

    #[test]
    fn a_cpu_that_asks_while_a_line_moves_waits() {
        let mut lines = lines();
        assert_eq!(lines.write(0, CpuId(4), 1, 1_000), Took { waited: 0, moved: 100 });
        assert_eq!(lines.write(0, CpuId(2), 1, 1_040), Took { waited: 60, moved: 100 });
        assert_eq!(lines.write(0, CpuId(3), 1, 900), Took { waited: 0, moved: 1 }, "its time is earlier");
    }

    #[test]
    fn a_lock_is_waited_for() {
        let mut lines = lines();
        assert_eq!(lines.lock(0, CpuId(0), 2, 1_000, 500), Took::default());
        assert_eq!(lines.lock(0, CpuId(1), 2, 1_200, 500), Took { waited: 300, moved: 2 });
        assert_eq!(lines.lock(0, CpuId(0), 2, 5_000, 500), Took { waited: 0, moved: 2 });
        assert_eq!(lines.read(1, CpuId(0), 1, 5_000).ns(), 100, "the other object lies in memory");
    }

    #[test]
    fn without_the_mechanism_nothing_costs() {
        let topology = Topology::regular("2x2").unwrap();
        let machine = Machine::of(topology).without(crate::Without::parse("cache-lines").unwrap());
        let mut lines = SharedLines::new(&machine);
        lines.make(1);
        for cpu in 0..4 {
            assert_eq!(lines.lock(0, CpuId(cpu), 8, 0, 1_000), Took::default());
        }
    }
}
