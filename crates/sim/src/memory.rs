//! Which node each page is on, and which tasks stream through it.
//!
//! A page has no node until it is touched; then it is on the node of the CPU that touched it. From a second later on
//! NUMA balancing passes over all memory, and pages found on another node than their task are moved to the task's node
//! (`page_scan`). A task that passes over memory in order is a flow: it progresses in bytes, at the rate that the
//! machine's bandwidth allows it among the other flows. All rates are recomputed whenever a flow begins, ends or
//! moves.

use schedlab_machine::{ByteRate, Flow, Mechanism, ONE, Rate, Work, at_random, latency, swept};
use schedlab_sched::Scheduler;
use schedlab_topology::{CpuId, NodeId, Topology};
use schedlab_units::{Duration, TaskId, Time};
use schedlab_workload::{AccessId, AccessSpec, Op, Pattern, RegionId, Section, Workload};

use crate::account::Part;
use crate::engine::Engine;
use crate::task::{Mode, Stage};

/// Bytes of a cache line.
const LINE: u64 = 64;
/// Bytes of a page, and of a huge one, the least that is touched in one go.
const PAGE: u64 = 4096;
const HUGE_PAGE: u64 = 2 << 20;
/// How long a process runs before its pages are scanned and follow its tasks.
pub const PAGES_FOLLOW: Duration = Duration::secs(1);

/// Memory in use.
#[derive(Clone)]
pub(crate) struct Memory {
    regions: Vec<Region>,
    /// Tasks on a CPU that stream, in order of CPU.
    flows: Vec<(CpuId, TaskId)>,
    dirty: bool,
    scan: PageScan,
}

#[derive(Clone)]
struct Region {
    bytes: u64,
    /// Bytes on each node.
    on_node: Vec<u64>,
    /// Bytes of this region that the scan had passed when pages were last moved.
    passed: u64,
}

impl Region {
    fn touched(&self) -> u64 {
        self.on_node.iter().sum()
    }
}

impl Memory {
    pub fn new(workload: &Workload, topology: &Topology) -> Memory {
        let region = |bytes| Region { bytes, on_node: vec![0; topology.nr_nodes()], passed: 0 };
        Memory {
            scan: PageScan::default(),
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
    fn touch(&mut self, region: RegionId, node: NodeId, bytes: u64, now: Time) {
        self.scan.first_page.get_or_insert(now);
        let region = &mut self.regions[region.index()];
        let left = region.bytes - region.touched();
        region.on_node[usize::from(node.0)] += bytes.min(left);
    }

    /// Untouched bytes of a region.
    fn untouched(&self, region: RegionId) -> u64 {
        let region = &self.regions[region.index()];
        region.bytes - region.touched()
    }

    /// Moves the part of a region that the scan has passed since the last call to `node`, on which its task runs.
    /// Returns the bytes moved.
    fn balance(&mut self, region: RegionId, node: NodeId, now: Time, mbps: u64) -> u64 {
        let all: u64 = self.regions.iter().map(|r| r.bytes).sum();
        let before: u64 = self.regions[..region.index()].iter().map(|r| r.bytes).sum();
        let region = &mut self.regions[region.index()];
        let passed = self.scan.passed(now, mbps, before, region.bytes, all);
        let new = passed - region.passed;
        // The part of this pass that was still ahead at the last call.
        let ahead = region.bytes - region.passed % region.bytes.max(1);
        region.passed = passed;
        let mut moved = 0;
        for (at, bytes) in region.on_node.iter_mut().enumerate() {
            if at != usize::from(node.0) {
                let found = (u128::from(*bytes) * u128::from(new) / u128::from(ahead.max(1))) as u64;
                moved += found.min(*bytes);
                *bytes -= found.min(*bytes);
            }
        }
        region.on_node[usize::from(node.0)] += moved;
        moved
    }

    /// When the scan began to count, after the start of a run at `began`, and how long it takes from when pages begin to
    /// follow to its first end. `None` if there is nothing that it passes over.
    pub fn goes_round(&self, mbps: u64, began: Time) -> Option<(Duration, Duration)> {
        let all: u64 = self.regions.iter().map(|region| region.bytes).sum();
        let round = |mbps| Duration((u128::from(all) * 1000 / u128::from(mbps)) as u64);
        let first = self.scan.first_page.unwrap_or(began);
        (all > 0 && mbps > 0).then(|| (Duration(first.0.saturating_sub(began.0)), round(mbps)))
    }

    /// The scan has been round once: each region moves to the node of the task that passes over it next. False if no page
    /// was touched yet.
    pub fn went_round(&mut self, mbps: u64, now: Time) -> bool {
        let Some((_, round)) = self.goes_round(mbps, now) else { return false };
        let before = Time(now.0.saturating_sub((PAGES_FOLLOW + round).0));
        self.scan.first_page = self.scan.first_page.map(|first| first.min(before));
        self.scan.first_page.is_some()
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

/// NUMA balancing's way over the memory of a process.
///
/// Kernel: task_numa_work(), kernel/sched/fair.c, v6.1 (simplified: steady, and pages move at
/// once when the task that uses them next passes over them; tasks do not follow their pages).
#[derive(Clone, Copy, Debug, Default)]
struct PageScan {
    /// When the first page was touched.
    first_page: Option<Time>,
}

impl PageScan {
    /// How many bytes of a region it has passed by now, in all its rounds; `before` bytes lie
    /// ahead of the region, `all` in the process.
    fn passed(&self, now: Time, mbps: u64, before: u64, bytes: u64, all: u64) -> u64 {
        let since = self.first_page.map_or(0, |first| now.since(first + PAGES_FOLLOW).0);
        let way = (u128::from(since) * u128::from(mbps) / 1000) as u64;
        let (rounds, rest) = (way / all.max(1), way % all.max(1));
        rounds * bytes + rest.saturating_sub(before).min(bytes)
    }
}

impl<S: Scheduler> Engine<'_, S> {
    /// Begins to touch some of a region for the first time.
    pub fn begin_touch(&mut self, cpu: CpuId, task: TaskId, region: RegionId, bytes: u64) {
        let left = bytes.min(self.memory.untouched(region));
        self.touch_next(cpu, task, region, left);
    }

    /// Touches the next stretch, or continues with the program.
    fn touch_next(&mut self, cpu: CpuId, task: TaskId, region: RegionId, left: u64) {
        if left == 0 {
            self.charge(cpu, self.paths.syscall);
            let entry = &mut self.tasks[task.index()];
            entry.stage = entry.then.take().map_or(Stage::Fetch, |access| Stage::Act(Op::Access { access }));
            return;
        }
        // Long stretches are split into enough steps to notice a migration in the middle.
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
        entry.region = Some(region);
        entry.stage = Stage::Touched { bytes: chunk, left: left - chunk };
    }

    /// A stretch is touched.
    pub fn touched(&mut self, cpu: CpuId, task: TaskId, bytes: u64, left: u64) {
        let region = self.tasks[task.index()].region.expect("it touches a region");
        let node = self.machine.topology.cpu(cpu).node;
        self.memory.touch(region, node, bytes, self.now);
        self.touch_next(cpu, task, region, left);
    }

    /// Begins a pass over memory.
    pub fn begin_access(&mut self, cpu: CpuId, task: TaskId, access: AccessId, spec: AccessSpec) {
        let untouched = self.memory.untouched(spec.region);
        if untouched > 0 {
            // The pass itself comes when all is touched.
            self.tasks[task.index()].then = Some(access);
            self.touch_next(cpu, task, spec.region, untouched);
            return;
        }
        let size = self.memory.regions[spec.region.index()].bytes;
        // The part that hits this CPU's share of the LLC, which other busy CPUs share.
        let hits = swept(self.llc_part(cpu), size);
        if spec.pattern == Pattern::Sequential && hits < ONE && self.machine.has(Mechanism::Bandwidth) {
            let node = self.machine.topology.cpu(cpu).node;
            let scan = self.machine.bandwidth.page_scan_mbps.get();
            let moved = self.memory.balance(spec.region, node, self.now, scan);
            let cost = &self.machine.cost;
            let faults = moved / PAGE * cost.page_fault_ns.get();
            self.charge(cpu, faults + moved * 1000 / cost.clear_mbps.get().max(1));
            // A streaming store does not fetch its line first.
            let fetches = if spec.streaming { 0 } else { self.machine.bandwidth.write_allocate.get() };
            let passes = spec.read_bytes + spec.write_bytes * (1 + fetches);
            let missed = ((u128::from(passes) * u128::from(ONE - hits)) >> 16) as u64;
            let lines = (passes - missed).div_ceil(LINE);
            self.charge_to(
                cpu,
                Part::Refill,
                lines * self.machine.cache.llc_ns.get() / self.machine.cache.mlp.get(),
            );
            let entry = &mut self.tasks[task.index()];
            entry.work = Work(missed.clamp(1, 1 << 47) << 16);
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

    /// A CPU's share of its L2, which a cluster may share.
    fn l2_part(&self, cpu: CpuId) -> u64 {
        let cluster = usize::from(self.machine.topology.cpu(cpu).cluster);
        let busy = if self.shares_l2 { self.clusters[cluster].busy.max(1) } else { 1 };
        self.machine.l2_bytes(cpu) / u64::from(busy)
    }

    /// A CPU's share of its LLC.
    fn llc_part(&self, cpu: CpuId) -> u64 {
        let llc = usize::from(self.machine.topology.cpu(cpu).llc);
        self.machine.llc_bytes(cpu) / u64::from(self.llcs[llc].busy.max(1))
    }

    /// The time of a pass that is not limited by bandwidth.
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
        // The share of touches that find their line in the part of each cache that this CPU has.
        let share = |part| match spec.pattern {
            Pattern::Sequential | Pattern::ChaseSequential => swept(part, size),
            Pattern::Random | Pattern::Chase => at_random(part, size),
        };
        let in_l2 = share(self.l2_part(cpu));
        let in_llc = share(self.llc_part(cpu)).max(in_l2);
        let llc = machine.cache.llc_ns.get();
        let memory = if in_llc < ONE { beyond() } else { 0 };
        let each = (in_l2 * (llc / 4) + (in_llc - in_l2) * llc + (ONE - in_llc) * memory) / ONE;
        let mlp = machine.cache.mlp.get();
        match spec.pattern {
            // Fetched ahead: a line at a time, several in transit.
            Pattern::Sequential => bytes.div_ceil(LINE) * each / mlp,
            Pattern::Random => bytes.div_ceil(stride.clamp(1, LINE)) * each / mlp,
            Pattern::ChaseSequential => bytes.div_ceil(stride) * each.div_ceil(mlp),
            Pattern::Chase => bytes.div_ceil(stride) * each,
        }
    }

    /// Sets the rate of every flow.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two regions of 1 GB; the scan does 1000 MB/s from 1 s after the first page on.
    #[test]
    fn the_scan_passes_over_one_region_after_the_other() {
        let scan = PageScan { first_page: Some(Time(5_000_000_000)) };
        let passed = |ms: u64, before| {
            scan.passed(Time((5_000 + ms) * 1_000_000), 1_000, before, 1_000_000_000, 2_000_000_000)
                / 1_000_000
        };
        for (ms, first, second) in
            [(900, 0, 0), (1_500, 500, 0), (2_500, 1_000, 500), (3_250, 1_250, 1_000), (4_600, 2_000, 1_600)]
        {
            assert_eq!([passed(ms, 0), passed(ms, 1_000_000_000)], [first, second], "after {ms} ms");
        }
        assert_eq!(PageScan::default().passed(Time(9_000_000_000), 1_000, 0, 1, 1), 0, "no page, no scan");
    }

    #[test]
    fn pages_may_be_put_where_the_scan_would_bring_them() {
        let regions = vec![Region { bytes: 1_000_000, on_node: vec![1_000_000, 0], passed: 0 }];
        let mut memory = Memory { regions, flows: Vec::new(), dirty: false, scan: PageScan::default() };
        let (now, mbps) = (Time(9_000_000_000), 1_000);
        assert!(!memory.went_round(mbps, now), "no page was touched");
        memory.scan.first_page = Some(Time(8_900_000_000));
        let began = Time(8_000_000_000);
        assert_eq!(
            memory.goes_round(mbps, began),
            Some((Duration::millis(900), Duration::millis(1))),
            "the first page came after 900 ms"
        );
        assert_eq!(memory.balance(RegionId(0), NodeId(1), now, mbps), 0, "pages do not follow yet");
        assert!(memory.went_round(mbps, now));
        assert_eq!(memory.balance(RegionId(0), NodeId(1), now, mbps), 1_000_000);
        assert_eq!(memory.regions[0].on_node, [0, 1_000_000]);
    }

    #[test]
    fn pages_that_were_passed_move_to_their_task() {
        let region = |here, there| Region { bytes: 1_000, on_node: vec![here, there], passed: 0 };
        let scan = PageScan { first_page: Some(Time::ZERO) };
        let regions = vec![region(1_000, 0), region(400, 600)];
        let mut memory = Memory { regions, flows: Vec::new(), dirty: false, scan };
        // 1000 bytes in 1 ms after the delay: the first region, then half of the second.
        let at = |us: u64| Time(1_000_000_000 + us * 1_000);
        assert_eq!(memory.balance(RegionId(0), NodeId(1), at(250), 1), 250);
        assert_eq!(memory.balance(RegionId(0), NodeId(1), at(1_000), 1), 750, "the rest of the pass");
        assert_eq!(memory.balance(RegionId(1), NodeId(1), at(1_500), 1), 200, "half of what is there");
        assert_eq!(memory.regions[1].on_node, [200, 800]);
        assert_eq!(memory.balance(RegionId(1), NodeId(1), at(1_500), 1), 0, "nothing new was passed");
    }
}
