//! Drawn machines and run queues, the language of this crate's tests.
//!
//! ```text
//! llc0: 0[kworker/0:1*] 1[] 2[make* cc1] 3[]
//! 2x2x2:distance=10/32 | 0[a*] 5[b* c ; load=500 util=300] llc2{cores scan=3}
//! ```
//!
//! A CPU is its number and, in brackets, its tasks, with `*` on the running one; without a star the idle task still
//! runs although a task is queued. The machine is a regular one named before the bar, and CPUs that are not drawn are
//! idle. Without a bar the drawing defines the machine: `llcN:` begins a last-level cache, `nodeN` before it a node
//! (at distance 21), parentheses enclose the threads of a core.
//!
//! Tasks have nice 0 and the averages of new ones (load 1024, nothing used yet). `kworker/N:M` is a kernel
//! thread bound to CPU N, `kworker/uN` one that is not; `idle:x` is a SCHED_IDLE task x. After a semicolon
//! come facts of the CPU: `load`, `util`, `runnable` (averages of its root queue), `capacity` (what pressure
//! leaves of it), `stamp` (idle stamp, ns), `exit` (exit latency of its idle state, ns), `avg_idle`,
//! `wake_avg_idle`, `delayed` (so many of the tasks), `pending` (a wake-up is on its way), `off` (not
//! active). Of a cache (named by its place): `cores` (a core may be idle), `scan` (nr_idle_scan; all its CPUs
//! if not said), `cost` (avg_scan_cost).

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};

use schedlab_topology::{Cpu, CpuId, CpuMask, NodeId, Topology};
use schedlab_units::{TaskId, Time};

use crate::{Curr, EnqueueFlags, Kernel, NewTask, Policy, Sched, TaskState, Took};

/// A machine by the name of a preset or of a regular one.
pub(crate) fn machine(name: &str) -> Topology {
    Topology::preset_or_regular(name).unwrap_or_else(|e| panic!("{e}"))
}

/// The instant of every drawing, ns.
pub(crate) const NOW: Time = Time(10_000_000_000);

/// A drawn state.
pub(crate) struct Drawn {
    /// The state.
    pub(crate) sched: Sched,
    /// Its tasks by name.
    pub(crate) tasks: BTreeMap<String, TaskId>,
}

impl Drawn {
    /// A task by name.
    #[track_caller]
    pub(crate) fn task(&self, name: &str) -> TaskId {
        *self.tasks.get(name).unwrap_or_else(|| panic!("no task \"{name}\" is drawn"))
    }

    /// The CPU on which a task is.
    #[track_caller]
    pub(crate) fn cpu_of(&self, name: &str) -> CpuId {
        self.sched.task(self.task(name)).cpu
    }

    /// A plain task that may run everywhere.
    pub(crate) fn spec(&self) -> NewTask {
        NewTask::plain(self.sched.rqs.len())
    }

    /// Creates a task, off its queue, with `cpu` as its last CPU.
    pub(crate) fn make(&mut self, name: &str, cpu: CpuId) -> TaskId {
        let nr_cpus = self.sched.rqs.len();
        let (policy, name) = match name.strip_prefix("idle:") {
            Some(name) => (Policy::Idle, name),
            None => (Policy::Normal, name),
        };
        let kworker = name.strip_prefix("kworker/");
        let bound = kworker.and_then(|rest| rest.split(':').next()).and_then(|cpu| cpu.parse().ok());
        let mut spec = NewTask { policy, kthread: kworker.is_some(), ..self.spec() };
        if let Some(cpu) = bound {
            spec.allowed = Arc::new(CpuMask::one(nr_cpus, CpuId(cpu)));
        }
        let task = self.sched.new_task(&spec, None, NOW);
        self.sched.set_cpu(task, cpu);
        assert!(self.tasks.insert(name.to_string(), task).is_none(), "two tasks \"{name}\"");
        task
    }

    /// Queues a task that `make` made.
    pub(crate) fn queue(&mut self, task: TaskId) {
        let cpu = self.sched.task(task).cpu;
        self.sched.task_mut(task).state = TaskState::Running;
        let flags = EnqueueFlags { initial: true, ..EnqueueFlags::default() };
        self.sched.activate(task, cpu, flags, NOW);
    }
}

/// Costs of the kernel's own work in a drawing.
const TOOK: Took = Took { scan_cpu: 18, pass: 300, pass_cpu: 50, pass_task: 300, blocked_update: 500 };

/// Reads a drawing under a kernel.
#[track_caller]
pub(crate) fn draw(kernel: &str, drawing: &str) -> Drawn {
    let kernel = Kernel::parse(kernel).unwrap_or_else(|e| panic!("{e}"));
    let (topology, queues) = match drawing.split_once('|') {
        Some((shape, queues)) => (machine(shape.trim()), queues),
        None => (drawn_topology(drawing), drawing),
    };
    let sched = Sched::new(&topology, &kernel, TOOK, 1);
    let mut drawn = Drawn { sched, tasks: BTreeMap::new() };
    for cpu in (0..topology.nr_cpus()).map(CpuId::from) {
        drawn.sched.update_rq_clock(cpu, NOW);
        drawn.sched.rqs[cpu].wake_stamp = drawn.sched.jiffies(NOW);
    }
    for (id, shared) in drawn.sched.domains.shared.iter_mut().enumerate() {
        let cpus = topology.llcs().get(id).map_or(topology.nr_cpus(), |llc| llc.weight());
        shared.nr_idle_scan = cpus as u32;
    }
    let items = items(queues);
    for item in &items {
        drawn.draw_item(item);
    }
    drawn.sched.effects.clear();
    drawn
}

/// `0[a* b]`, `llc0{cores}`, in the order drawn; brackets hold spaces together.
fn items(text: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            '(' | ')' => continue,
            _ if depth == 0 && c.is_whitespace() => {
                items.push(String::new());
                continue;
            }
            _ => {}
        }
        items.last_mut().unwrap().push(c);
    }
    items.retain(|item| !item.is_empty());
    items
}

impl Drawn {
    #[track_caller]
    fn draw_item(&mut self, item: &str) {
        if let Some(rest) = item.strip_prefix("llc") {
            if let Some((llc, facts)) = rest.trim_end_matches(':').split_once('{') {
                self.llc_facts(llc.parse().unwrap(), facts.trim_end_matches('}'));
            }
        } else if !item.starts_with("node") {
            let (cpu, content) = item.split_once('[').unwrap_or_else(|| panic!("what is \"{item}\"?"));
            let content = content.trim_end_matches(']');
            let (tasks, facts) = content.split_once(';').unwrap_or((content, ""));
            let cpu = CpuId(cpu.parse().unwrap_or_else(|_| panic!("\"{cpu}\" is not a CPU")));
            self.draw_queue(cpu, tasks);
            self.cpu_facts(cpu, facts);
        }
    }

    fn draw_queue(&mut self, cpu: CpuId, tasks: &str) {
        let mut running = None;
        for name in tasks.split_whitespace() {
            let task = self.make(name.trim_end_matches('*'), cpu);
            self.queue(task);
            if name.ends_with('*') {
                running = Some(task);
            }
        }
        if let Some(task) = running {
            self.sched.switch_to(cpu, Curr::Task(task), NOW);
        }
    }

    #[track_caller]
    fn cpu_facts(&mut self, cpu: CpuId, facts: &str) {
        for fact in facts.split_whitespace() {
            let (name, value) = fact.split_once('=').unwrap_or((fact, "1"));
            let value: u64 = value.parse().unwrap();
            let root = self.sched.root_cfs_id(cpu);
            let rq = &mut self.sched.rqs[cpu];
            match name {
                "capacity" => rq.cpu_capacity = value,
                "stamp" => rq.idle_stamp = value,
                "exit" => rq.idle_exit_latency = Some(value),
                "avg_idle" => rq.avg_idle = value,
                "wake_avg_idle" => rq.wake_avg_idle = value,
                "pending" => {
                    rq.ttwu_pending = true;
                    let waking = self.make(&format!("pending{cpu}"), cpu);
                    self.sched.task_mut(waking).state = TaskState::Waking;
                    self.sched.rqs[cpu].wake_list.push(waking);
                }
                "off" => rq.active = false,
                "load" => {
                    let avg = &mut self.sched.cfs_mut(root).avg;
                    (avg.load_avg, avg.runnable_load_avg) = (value, value);
                }
                "util" => self.sched.cfs_mut(root).avg.util_avg = value,
                "runnable" => self.sched.cfs_mut(root).avg.runnable_avg = value,
                "delayed" => self.sched.cfs_mut(root).h_nr_runnable -= value as u32,
                _ => panic!("what is \"{name}\" of a CPU?"),
            }
        }
    }

    #[track_caller]
    fn llc_facts(&mut self, llc: usize, facts: &str) {
        let first = self.sched.topology.llcs()[llc].first().unwrap();
        let shared = self.sched.domains.per_cpu[first].llc_shared;
        for fact in facts.split_whitespace() {
            let (name, value) = fact.split_once('=').unwrap_or((fact, "1"));
            let value: u64 = value.parse().unwrap();
            let shared = || shared.expect("an LLC domain").0 as usize;
            match name {
                "cores" => self.sched.domains.shared[shared()].has_idle_cores = true,
                "scan" => self.sched.domains.shared[shared()].nr_idle_scan = value as u32,
                "cost" => {
                    for cpu in self.sched.topology.llcs()[llc].clone().iter() {
                        let sd = self.sched.domains.per_cpu[cpu].llc.expect("an LLC domain");
                        self.sched.domains.sd_mut(sd).avg_scan_cost = value;
                    }
                }
                _ => panic!("what is \"{name}\" of a cache?"),
            }
        }
    }
}

/// The machine that a drawing without a name shows.
#[track_caller]
fn drawn_topology(drawing: &str) -> Topology {
    let mut cpus: BTreeMap<u16, Cpu> = BTreeMap::new();
    let (mut node, mut llc, mut core, mut in_core) = (0, 0, 0, false);
    // Remove the tasks; numbers, names and parentheses remain.
    let mut depth = 0;
    let bare: String = drawing
        .chars()
        .filter(|c| {
            depth += i32::from(matches!(c, '[' | '{'));
            let keep = depth == 0;
            depth -= i32::from(matches!(c, ']' | '}'));
            keep
        })
        .collect();
    for word in bare.replace('(', " ( ").replace(')', " ) ").split_whitespace() {
        let number = |prefix: &str| word.trim_end_matches(':').strip_prefix(prefix)?.parse::<u16>().ok();
        if let Some(id) = number("node") {
            node = id;
        } else if let Some(id) = number("llc") {
            llc = id;
        } else if word == "(" || word == ")" {
            in_core = word == "(";
            core += 1;
        } else {
            let id: u16 = word.parse().unwrap_or_else(|_| panic!("what is \"{word}\"?"));
            let place = Cpu {
                package: node,
                die: node,
                cluster: core,
                llc,
                core,
                thread: 0,
                node: NodeId(node),
                capacity: 1024,
                online: true,
            };
            assert!(cpus.insert(id, place).is_none(), "CPU {id} is drawn twice");
            core += u16::from(!in_core);
        }
    }
    assert!(cpus.keys().copied().eq(0..cpus.len() as u16), "draw all CPUs from 0 on");
    let nr_nodes = cpus.values().map(|c| c.node.0).max().unwrap_or(0) + 1;
    let distance = |a: u16| (0..nr_nodes).map(|b| if a == b { 10 } else { 21 }).collect();
    let distances: Vec<Vec<u32>> = (0..nr_nodes).map(distance).collect();
    Topology::new("drawn", cpus.into_values().collect(), distances).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs `of` under every preset, each with the parts of `with` added to its name, and
/// gathers presets in a row with the same outcome.
pub(crate) fn by_kernel(with: &str, of: impl Fn(&str) -> String) -> String {
    let mut rows: Vec<(Vec<&str>, String)> = Vec::new();
    for preset in crate::PRESETS {
        let outcome = of(&format!("{preset}{with}"));
        match rows.last_mut() {
            Some((presets, same)) if *same == outcome => presets.push(preset),
            _ => rows.push((vec![preset], outcome)),
        }
    }
    let row = |(presets, outcome): (Vec<&str>, String)| {
        let names = match presets[..] {
            [first, .., last] => format!("{first}..{last}"),
            _ => presets.concat(),
        };
        let space = if outcome.starts_with('\n') || outcome.is_empty() { "" } else { " " };
        format!("{names}:{space}{outcome}")
    };
    let rows: Vec<String> = rows.into_iter().map(row).collect();
    rows.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_is_a_state() {
        let drawn = draw(
            "v6.12",
            "node0 llc0: (0[a* b] 1[]) llc1: 2[kworker/2:1 ; load=7] node1 llc2{scan=1}: 3[] 4[]",
        );
        let sched = &drawn.sched;
        assert_eq!(sched.topology.core_mask(CpuId(0)).to_string(), "0-1");
        assert_eq!(sched.topology.nr_nodes(), 2);
        assert_eq!(sched.rqs[CpuId(0)].nr_running, 2);
        assert_eq!(sched.rqs[CpuId(0)].curr, Curr::Task(drawn.task("a")));
        assert_eq!(sched.rqs[CpuId(2)].curr, Curr::Idle, "queued, not switched to yet");
        assert!(sched.task(drawn.task("kworker/2:1")).is_per_cpu_kthread());
        assert_eq!(sched.cpu_load(CpuId(2)), 7);
        assert_eq!(sched.cpu_load(CpuId(0)), 2048);
    }
}
