//! Where pages lie, and who streams through them.
//!
//! A page has no node until it is touched; then it lies at the node of the CPU that
//! touched it. A task that passes over memory in order is a flow: it progresses in
//! bytes, at the rate that the machine's bandwidth gives it beside the other flows.
//! All rates are shared out anew whenever a flow begins, ends or moves.

use schedlab_machine::{ByteRate, Flow, Mechanism, ONE, Rate, Work, latency};
use schedlab_topology::{CpuId, NodeId, Topology};
use schedlab_units::TaskId;
use schedlab_workload::{AccessSpec, Op, Pattern, RegionId, Section, Workload};

use crate::engine::Engine;
use crate::task::{Mode, Stage};

/// Bytes of a cache line.
const LINE: u64 = 64;
/// Bytes of a page, and of a huge one, the least that is touched in one go.
const PAGE: u64 = 4096;
const HUGE_PAGE: u64 = 2 << 20;

/// Memory in use.
pub(crate) struct Memory {
    regions: Vec<Region>,
    /// Tasks on a CPU that stream, in order of CPU.
    flows: Vec<(CpuId, TaskId)>,
    dirty: bool,
}

struct Region {
    bytes: u64,
    /// Bytes on each node.
    on_node: Vec<u64>,
}

impl Region {
    fn touched(&self) -> u64 {
        self.on_node.iter().sum()
    }
}

impl Memory {
    pub fn new(workload: &Workload, topology: &Topology) -> Memory {
        let region = |bytes| Region { bytes, on_node: vec![0; topology.nr_nodes()] };
        Memory {
            regions: workload.objects.regions.iter().map(|spec| region(spec.bytes)).collect(),
            flows: Vec::new(),
            dirty: false,
        }
    }

    /// Whether flows changed since bandwidth was last shared out.
    #[inline]
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// A streaming task runs on a CPU from now on, or no longer.
    pub fn flow(&mut self, cpu: CpuId, task: TaskId, on: bool) {
        let at = self.flows.partition_point(|&(c, _)| c < cpu);
        if on {
            self.flows.insert(at, (cpu, task));
        } else {
            let (c, t) = self.flows.remove(at);
            debug_assert_eq!((c, t), (cpu, task), "a flow that ends was there");
        }
        self.dirty = true;
    }

    /// Pages touched at a node, at most what is left of the region.
    fn touch(&mut self, region: RegionId, node: NodeId, bytes: u64) {
        let region = &mut self.regions[region.index()];
        let left = region.bytes - region.touched();
        region.on_node[usize::from(node.0)] += bytes.min(left);
    }

    /// Bytes of a region that nobody has touched.
    fn untouched(&self, region: RegionId) -> u64 {
        let region = &self.regions[region.index()];
        region.bytes - region.touched()
    }

    /// The share of a region on each node that has some, of 65536.
    fn shares(&self, region: RegionId, here: NodeId) -> Vec<(NodeId, u64)> {
        let region = &self.regions[region.index()];
        let all = region.touched();
        if all == 0 {
            return vec![(here, ONE)];
        }
        let share = |bytes: u64| (u128::from(bytes) * u128::from(ONE) / u128::from(all)) as u64;
        let nodes = region.on_node.iter().enumerate().filter(|&(_, &bytes)| bytes > 0);
        nodes.map(|(node, &bytes)| (NodeId(node as u16), share(bytes).max(1))).collect()
    }
}

impl Engine<'_> {
    /// Begins to touch some of a region for the first time.
    pub fn begin_touch(&mut self, cpu: CpuId, task: TaskId, region: RegionId, bytes: u64) {
        let left = bytes.min(self.memory.untouched(region));
        self.touch_next(cpu, task, region, left);
    }

    /// Touches the next stretch, or goes on with the program.
    fn touch_next(&mut self, cpu: CpuId, task: TaskId, region: RegionId, left: u64) {
        if left == 0 {
            self.charge(cpu, self.paths.syscall);
            let entry = &mut self.tasks[task.index()];
            entry.stage = entry.then.take().map_or(Stage::Fetch, Stage::Act);
            return;
        }
        // Long stretches in as many steps as can tell a migration in the middle.
        let chunk = left.min(HUGE_PAGE.max((left / 32).next_multiple_of(HUGE_PAGE)));
        let cost = &self.machine.cost;
        let clear = chunk * 1000 / cost.clear_mbps.get().max(1);
        let faults = if self.machine.has(Mechanism::KernelCosts) {
            chunk.div_ceil(PAGE) * cost.page_fault_ns.get()
        } else {
            0
        };
        let entry = &mut self.tasks[task.index()];
        entry.work = Work::nanos((clear + faults).max(1));
        entry.mode = Mode::Kernel(Section { preempt_off: false, cond_resched_ns: 100_000 });
        entry.stage = Stage::Touched { region, bytes: chunk, left: left - chunk };
    }

    /// A stretch is touched.
    pub fn touched(&mut self, cpu: CpuId, task: TaskId, region: RegionId, bytes: u64, left: u64) {
        let node = self.machine.topology.cpu(cpu).node;
        self.memory.touch(region, node, bytes);
        self.touch_next(cpu, task, region, left);
    }

    /// Begins a pass over memory.
    pub fn begin_access(&mut self, cpu: CpuId, task: TaskId, op: Op, spec: AccessSpec) {
        let untouched = self.memory.untouched(spec.region);
        if untouched > 0 {
            // The pass itself comes when all is touched.
            self.tasks[task.index()].then = Some(op);
            self.touch_next(cpu, task, spec.region, untouched);
            return;
        }
        let size = self.memory.regions[spec.region.index()].bytes;
        let own_cache = size <= self.machine.llc_bytes(cpu);
        if spec.pattern == Pattern::Sequential && !own_cache && self.machine.has(Mechanism::Bandwidth) {
            let written = spec.write_bytes * (1 + self.machine.bandwidth.write_allocate.get());
            let entry = &mut self.tasks[task.index()];
            entry.work = Work((spec.read_bytes + written).min(1 << 47) << 16);
            entry.streams = true;
            entry.mode = Mode::User;
            entry.stage = Stage::Fetch;
            entry.region = Some(spec.region);
            self.memory.flow(cpu, task, true);
            return;
        }
        let ns = self.access_ns(cpu, size, &spec);
        let entry = &mut self.tasks[task.index()];
        entry.work = Work::nanos(ns.max(1));
        entry.mode = Mode::User;
        entry.stage = Stage::Fetch;
    }

    /// How long a pass takes that is not limited by bandwidth.
    fn access_ns(&self, cpu: CpuId, size: u64, spec: &AccessSpec) -> u64 {
        let machine = self.machine;
        let bytes = spec.read_bytes + spec.write_bytes;
        let stride = u64::from(spec.stride).max(1);
        let here = machine.topology.cpu(cpu).node;
        let beyond = || -> u64 {
            let shares = self.memory.shares(spec.region, here);
            let sum: u64 = shares
                .iter()
                .map(|&(node, share)| share * latency(&machine.topology, &machine.cache, here, node))
                .sum();
            sum / ONE
        };
        let each = if size <= machine.l2_bytes(cpu) {
            machine.cache.llc_ns.get() / 4
        } else if size <= machine.llc_bytes(cpu) {
            machine.cache.llc_ns.get()
        } else {
            beyond()
        };
        let mlp = machine.cache.mlp.get();
        match spec.pattern {
            // Fetched ahead: a line at a time, several under way.
            Pattern::Sequential => bytes.div_ceil(LINE) * each / mlp,
            Pattern::Random => bytes.div_ceil(stride.clamp(1, LINE)) * each / mlp,
            Pattern::ChaseSequential => bytes.div_ceil(stride) * each.div_ceil(mlp),
            Pattern::Chase => bytes.div_ceil(stride) * each,
        }
    }

    /// Gives every flow its rate.
    pub fn share_bandwidth(&mut self) {
        self.memory.dirty = false;
        let flows = self.memory.flows.clone();
        let described: Vec<Flow> = flows
            .iter()
            .map(|&(cpu, task)| {
                let region = self.tasks[task.index()].region.expect("a flow passes over a region");
                Flow { cpu, shares: self.memory.shares(region, self.machine.topology.cpu(cpu).node) }
            })
            .collect();
        let rates = self.machine.bandwidth.share_out(&self.machine.topology, &self.machine.cache, &described);
        for ((cpu, _), ByteRate(rate)) in flows.into_iter().zip(rates) {
            let rate = Rate(rate.clamp(1, u64::from(u32::MAX)) as u32);
            if self.cpus[cpu].work_rate != rate {
                self.advance(cpu);
                self.cpus[cpu].work_rate = rate;
                self.arm_next(cpu);
            }
        }
    }
}
