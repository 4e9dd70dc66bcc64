//! How fast each CPU works: capacity, clock, and the other threads of its core.
//!
//! The share of a core among its threads changes whenever one becomes busy or idle. Clocks are updated when a
//! CPU wakes up and at ticks; in between they are constant.

use schedlab_machine::{Clock, ClockDomain, Crowd, Freq, Law, Machine, Mechanism, Rate};
use schedlab_sched::Scheduler;
use schedlab_topology::CpuId;

use crate::engine::Engine;

/// The clocks of a machine.
#[derive(Clone)]
pub(crate) struct Clocks {
    /// One per core or package; empty when they never change.
    domains: Vec<Clock>,
    /// Busy cores of each package.
    active: Vec<u64>,
    /// Cores of each package.
    cores: Vec<u64>,
}

impl Clocks {
    pub fn new(machine: &Machine) -> Clocks {
        let topology = &machine.topology;
        let freq = &machine.freq;
        let flat = freq.one_core_mhz.get() == freq.all_cores_mhz.get();
        let fixed = !machine.has(Mechanism::Frequency) || (machine.law == Law::Fixed && flat);
        let count = match machine.clock_domain {
            _ if fixed => 0,
            ClockDomain::Core => topology.cores().len(),
            ClockDomain::Package => topology.packages().len(),
        };
        let mut cores = vec![0; topology.packages().len()];
        for core in topology.cores() {
            let first = core.first().expect("a core has a CPU");
            cores[usize::from(topology.cpu(first).package)] += 1;
        }
        Clocks {
            domains: vec![Clock::new(freq, machine.law); count],
            active: vec![0; topology.packages().len()],
            cores,
        }
    }

    /// Adopts other constants of the machine.
    pub fn adapt(&mut self, from: &Freq, machine: &Machine) {
        let fresh = Clocks::new(machine);
        if self.domains.len() == fresh.domains.len() {
            self.domains.iter_mut().for_each(|clock| clock.adapt(from, &machine.freq));
        } else {
            self.domains = fresh.domains;
        }
    }
}

impl<S: Scheduler> Engine<'_, S> {
    /// How fast a CPU works now.
    pub fn rate_of(&self, cpu: CpuId) -> Rate {
        let place = self.machine.topology.cpu(cpu);
        let mut rate = Rate::of(u64::from(place.capacity), 1024);
        if !self.clocks.domains.is_empty() {
            let package = usize::from(place.package);
            let clock = &self.clocks.domains[self.clock_domain(cpu)];
            let (active, cores) = (self.clocks.active[package], self.clocks.cores[package]);
            rate = rate.times(clock.rate(&self.machine.freq, active, cores));
        }
        let busy = self.cores[usize::from(place.core)].busy;
        if self.smt && busy > 1 {
            let memory_bound = self.curr(cpu).is_some_and(|task| self.tasks[task.index()].memory_bound);
            rate = rate.times(self.machine.smt.share(busy, memory_bound));
        }
        if self.crowds {
            rate = rate.times(self.crowding(cpu));
        }
        rate
    }

    /// How much the program on a CPU is slowed by other tasks on the same caches.
    fn crowding(&self, cpu: CpuId) -> Rate {
        let footprint = self.curr(cpu).map_or(0, |task| self.tasks[task.index()].footprint);
        if footprint == 0 {
            return Rate::FULL;
        }
        let (machine, place) = (self.machine, self.machine.topology.cpu(cpu));
        let wanted =
            if self.shares_l2 { self.clusters[usize::from(place.cluster)].wanted } else { footprint };
        let l2 = Crowd { bytes: machine.l2_bytes(cpu), wanted };
        let llc = Crowd { bytes: machine.llc_bytes(cpu), wanted: self.llcs[usize::from(place.llc)].wanted };
        machine.cache.crowding(footprint, l2, llc)
    }

    /// A program with this footprint starts or stops running on a CPU.
    pub fn crowd(&mut self, cpu: CpuId, footprint: u64, on: bool) {
        let place = self.machine.topology.cpu(cpu);
        let caches = [
            &mut self.clusters[usize::from(place.cluster)].wanted,
            &mut self.llcs[usize::from(place.llc)].wanted,
        ];
        for wanted in caches {
            *wanted = if on { *wanted + footprint } else { wanted.saturating_sub(footprint) };
        }
        if self.shares_l2 {
            // CPUs that share only the LLC notice when their rate is next examined.
            for other in self.machine.topology.cluster_mask(cpu).iter() {
                if other != cpu && !self.is_idle(other) {
                    let rate = self.rate_of(other);
                    self.set_rate(other, rate);
                }
            }
        }
    }

    fn clock_domain(&self, cpu: CpuId) -> usize {
        let place = self.machine.topology.cpu(cpu);
        usize::from(match self.machine.clock_domain {
            ClockDomain::Core => place.core,
            ClockDomain::Package => place.package,
        })
    }

    /// A CPU becomes busy or idle.
    #[inline]
    pub fn set_busy(&mut self, cpu: CpuId, busy: bool) {
        let place = self.machine.topology.cpu(cpu);
        let (core, package) = (usize::from(place.core), usize::from(place.package));
        self.count_busy_of(cpu, !busy);
        for busy_on in
            [&mut self.clusters[usize::from(place.cluster)].busy, &mut self.llcs[usize::from(place.llc)].busy]
        {
            *busy_on = if busy { *busy_on + 1 } else { *busy_on - 1 };
        }
        self.nr_busy = if busy { self.nr_busy + 1 } else { self.nr_busy - 1 };
        let state = &mut self.cores[core];
        if busy {
            state.busy += 1;
        } else {
            state.busy -= 1;
        }
        let edge = state.busy == u32::from(busy);
        if edge {
            let active = &mut self.clocks.active[package];
            *active = if busy { *active + 1 } else { *active - 1 };
        }
        if !self.clocks.domains.is_empty() {
            let entry = &mut self.cpus[cpu];
            if busy {
                entry.busy_since = self.now;
                self.sample_clock(cpu);
            } else {
                entry.busy_ns += self.now.since(entry.busy_since).0;
            }
        }
        if self.smt && !edge {
            for sibling in self.machine.topology.core_mask(cpu).iter() {
                if sibling != cpu && !self.is_idle(sibling) {
                    let rate = self.rate_of(sibling);
                    self.set_rate(sibling, rate);
                }
            }
        }
    }

    /// Chooses a new clock if its sample is over.
    pub fn sample_clock(&mut self, cpu: CpuId) {
        if self.clocks.domains.is_empty() {
            return;
        }
        let domain = self.clock_domain(cpu);
        let machine = self.machine;
        if !self.clocks.domains[domain].is_due(&machine.freq, self.now.0) {
            return;
        }
        let members = match machine.clock_domain {
            ClockDomain::Core => machine.topology.core_mask(cpu),
            ClockDomain::Package => machine.topology.package_mask(cpu),
        };
        let mut busy = 0;
        for member in members.iter() {
            let running = !self.is_idle(member);
            let entry = &mut self.cpus[member];
            if running {
                entry.busy_ns += self.now.since(entry.busy_since).0;
                entry.busy_since = self.now;
            }
            busy = busy.max(std::mem::take(&mut entry.busy_ns));
        }
        self.clocks.domains[domain].update(&machine.freq, machine.law, self.now.0, busy);
        for member in members.iter() {
            let rate = self.rate_of(member);
            self.set_rate(member, rate);
            self.sched.set_freq_scale(member, self.freq_scale(member));
        }
    }

    /// The clock as the scheduler sees it: of 1024, which it is where clocks do not change.
    pub(crate) fn freq_scale(&self, cpu: CpuId) -> u64 {
        if self.clocks.domains.is_empty() {
            return 1024;
        }
        let package = usize::from(self.machine.topology.cpu(cpu).package);
        let clock = &self.clocks.domains[self.clock_domain(cpu)];
        let freq = &self.machine.freq;
        clock.mhz(freq, self.clocks.active[package], self.clocks.cores[package]) * 1024
            / freq.one_core_mhz.get().max(1)
    }
}
