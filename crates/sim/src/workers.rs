//! Kernel workers and devices: work queued, requests served, interrupts at their end.
//!
//! All workqueues of one kind share the workers of a CPU (or of a node, if they are unbound), as in the
//! kernel.

use schedlab_sched::{Deactivate, Policy, Scheduler, TaskState};
use schedlab_topology::{CpuId, CpuMask, NodeId, Topology};
use schedlab_trace::Comm;
use schedlab_units::{Duration, TaskId};
use schedlab_workload::{Completion, Cursor, DeviceId, Dist, ProgramId, QueueId, QueueKind};

use crate::emit::Context;
use crate::engine::Engine;
use crate::event::Event;
use crate::softirq::Left;
use crate::task::{Role, Stage, Wait};
use crate::wait::{Needs, Pool, Request};

/// Work for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// Executes a program.
    Program(ProgramId),
    /// Serves a task's request to a device.
    Io { device: DeviceId, client: TaskId },
}

/// The pools of a machine: those of the CPUs, those of high priority, those of the nodes.
pub(crate) fn pools(topology: &Topology) -> Vec<Pool<Item>> {
    let bound = 2 * topology.nr_cpus();
    (0..bound + topology.nr_nodes()).map(|pool| Pool::new(pool < bound)).collect()
}

/// Where a pool's workers run.
enum Place {
    Cpu { cpu: CpuId, high: bool },
    Node(NodeId),
}

impl<S: Scheduler> Engine<'_, S> {
    fn pool_of(&self, queue: QueueId, cpu: CpuId) -> u32 {
        let cpus = self.machine.topology.nr_cpus();
        let at = match self.workload.objects.queues[queue.index()].kind {
            QueueKind::PerCpu => cpu.index(),
            QueueKind::PerCpuHighPri => cpus + cpu.index(),
            QueueKind::Unbound => 2 * cpus + usize::from(self.machine.topology.cpu(cpu).node.0),
        };
        at as u32
    }

    fn place_of(&self, pool: u32) -> Place {
        let (pool, cpus) = (pool as usize, self.machine.topology.nr_cpus());
        match pool.checked_sub(2 * cpus) {
            Some(node) => Place::Node(NodeId(node as u16)),
            None => Place::Cpu { cpu: CpuId::from(pool % cpus), high: pool >= cpus },
        }
    }

    /// A task queues work and continues.
    pub fn queue_work(&mut self, cpu: CpuId, queue: QueueId, work: ProgramId) {
        self.charge(cpu, self.paths.syscall + self.kernel_span(&self.machine.cost.queue_work_ns).0);
        let pool = self.pool_of(queue, cpu);
        self.queue_item(cpu, pool, Item::Program(work));
    }

    fn queue_item(&mut self, cpu: CpuId, pool: u32, item: Item) {
        let needs = self.objects.pools[pool as usize].queue(item);
        self.pool_needs(cpu, pool, needs);
    }

    fn pool_needs(&mut self, cpu: CpuId, pool: u32, needs: Needs) {
        match needs {
            Needs::Nothing => {}
            Needs::Wake(worker) => self.wake_up(cpu, Context::Task, worker, false),
            Needs::Worker => {
                let worker = self.make_worker(pool);
                self.objects.pools[pool as usize].add();
                self.wake_up(cpu, Context::Task, worker, false);
            }
        }
    }

    fn make_worker(&mut self, pool: u32) -> TaskId {
        let topology = &self.machine.topology;
        let cpus = topology.nr_cpus();
        let number = self.objects.pools[pool as usize].new_number();
        let (allowed, nice, name) = match self.place_of(pool) {
            Place::Cpu { cpu, high } => {
                let mark = if high { "H" } else { "" };
                (CpuMask::one(cpus, cpu), if high { -20 } else { 0 }, format!("kworker/{cpu}:{number}{mark}"))
            }
            Place::Node(node) => {
                let pool_number = 2 * cpus + usize::from(node.0);
                (topology.node_mask(node).clone(), 0, format!("kworker/u{pool_number}:{number}"))
            }
        };
        let role = Role::Worker { pool };
        self.make_kthread(Policy::Normal, nice, allowed, Comm::from(name.as_str()), role, Stage::NextItem)
    }

    fn pool_of_worker(&self, worker: TaskId) -> u32 {
        match self.tasks[worker.index()].role {
            Role::Worker { pool } => pool,
            role => unreachable!("{role:?} is no worker"),
        }
    }

    /// A worker sleeps in the middle of its work.
    pub fn worker_sleeps(&mut self, cpu: CpuId, worker: TaskId) {
        let pool = self.pool_of_worker(worker);
        let needs = self.objects.pools[pool as usize].sleeping();
        self.pool_needs(cpu, pool, needs);
    }

    /// It continues.
    pub fn worker_wakes(&mut self, worker: TaskId) {
        let pool = self.pool_of_worker(worker);
        self.objects.pools[pool as usize].waking();
    }

    /// A worker takes the next item, or goes idle.
    pub fn next_item(&mut self, cpu: CpuId, worker: TaskId) {
        let pool = self.pool_of_worker(worker);
        match self.objects.pools[pool as usize].next(worker) {
            Some(Item::Program(program)) => {
                let entry = &mut self.tasks[worker.index()];
                entry.cursor = Cursor::new(self.workload.programs[program.index()].entry);
                entry.stage = Stage::Fetch;
            }
            Some(Item::Io { device, client }) => {
                self.tasks[worker.index()].serves = Some(client);
                let ns = self.worker_ns(device);
                self.in_kernel_for(worker, ns, Stage::Submit { device });
            }
            None => self.sleep(cpu, worker, TaskState::Interruptible, Wait::Work, Stage::NextItem),
        }
    }

    fn worker_ns(&self, device: DeviceId) -> u64 {
        match self.workload.objects.devices[device.index()].completion {
            Completion::Worker { work, .. } => work.0.max(1),
            _ => 1,
        }
    }

    /// A task sends a request to a device and sleeps until it is done.
    pub fn block_io(&mut self, cpu: CpuId, task: TaskId, device: DeviceId) {
        self.charge(cpu, self.paths.syscall);
        let completion = self.workload.objects.devices[device.index()].completion;
        if let Completion::Worker { queue, softirq, .. } = completion {
            let pool = self.pool_of(queue, cpu);
            self.charge(cpu, self.kernel_span(&self.machine.cost.queue_work_ns).0);
            if !softirq || self.objects.devices[device.index()].stand_in_line(Request { task, cpu }) {
                self.queue_item(cpu, pool, Item::Io { device, client: task });
            }
        } else {
            self.submit(cpu, task, device);
            if self.turns.is_some() {
                // A request needs the host, and the other CPUs may have their turns before the task sleeps.
                self.end_turn(cpu);
                return self.in_kernel_for(task, self.paths.sleep, Stage::Asked { device, done: false });
            }
        }
        self.sleep(cpu, task, TaskState::Uninterruptible, Wait::Device(device), Stage::Fetch);
    }

    /// A task that has sent a request to a device sleeps, unless the device is already done.
    pub fn asked(&mut self, cpu: CpuId, task: TaskId, device: DeviceId, done: bool) {
        let entry = &mut self.tasks[task.index()];
        entry.stage = Stage::Fetch;
        if !done {
            entry.wait = Wait::Device(device);
            self.reschedule(cpu, Deactivate::Sleep(TaskState::Uninterruptible));
        }
    }

    fn submit(&mut self, cpu: CpuId, task: TaskId, device: DeviceId) {
        self.charge(cpu, self.kernel_span(&self.machine.cost.submit_io_ns).0);
        self.pending += 1;
        if let Some(slot) = self.objects.devices[device.index()].submit(Request { task, cpu }) {
            self.serve(device, slot);
        }
    }

    /// The device begins a request.
    fn serve(&mut self, device: DeviceId, slot: u32) {
        let dist = self.workload.objects.devices[device.index()].service;
        let dice = &mut self.objects.device_dice[device.index()];
        let span = self.workload.dists[dist.index()].draw(|| dice.next());
        self.queue.push(self.now + span, Event::Device { device, slot });
    }

    /// The device is done with a request: it begins the next and interrupts a CPU.
    pub fn device_done(&mut self, device: DeviceId, slot: u32) {
        if let Some(at) = self.host_is_done_at() {
            return self.queue.push(at, Event::Device { device, slot });
        }
        let (request, next) = self.objects.devices[device.index()].complete(slot);
        if next {
            // It does not wait for the CPU, which may have to wake up first.
            self.serve(device, slot);
        }
        let cpu = match self.workload.objects.devices[device.index()].completion {
            Completion::IrqAt(cpu) => cpu,
            Completion::IrqSubmitter | Completion::Worker { .. } => request.cpu,
        };
        if self.turns.is_some() {
            // The CPU may not have its turn.
            self.queue.push(self.now, Event::DeviceIrq { cpu, task: request.task });
        } else {
            self.device_irq(cpu, request.task);
        }
    }

    /// The interrupt at the end of a request, on a CPU that may have to wake up first.
    pub fn device_irq(&mut self, cpu: CpuId, task: TaskId) {
        let cpu = self.instead_of(cpu);
        if self.put_off(cpu, Event::DeviceIrq { cpu, task }) {
            return;
        }
        self.pending -= 1;
        let ns = self.kernel_span(&self.machine.cost.complete_io_ns).0;
        let hit = self.interrupt(cpu, ns);
        match &mut self.tasks[task.index()].stage {
            Stage::Asked { done, .. } => *done = true,
            _ => self.wake_up(cpu, Context::Hardirq, task, false),
        }
        self.irq_return(cpu, hit);
    }

    /// A worker has prepared a request: it submits it and sleeps.
    pub fn submit_for(&mut self, cpu: CpuId, worker: TaskId, device: DeviceId) {
        let service = self.workload.objects.devices[device.index()].service;
        if let Dist::Constant(Duration::ZERO) = self.workload.dists[service.index()] {
            // The data is in memory.
            return self.complete_for(cpu, worker, device, true);
        }
        self.submit(cpu, worker, device);
        let stage = Stage::Complete { device, woken: true };
        self.sleep(cpu, worker, TaskState::Uninterruptible, Wait::Device(device), stage);
    }

    /// The request of a worker is done: it works on it again, then wakes the client.
    pub fn complete_for(&mut self, cpu: CpuId, worker: TaskId, device: DeviceId, woken: bool) {
        if woken {
            let ns = self.worker_ns(device);
            return self.in_kernel_for(worker, ns, Stage::Complete { device, woken: false });
        }
        self.tasks[worker.index()].stage = Stage::NextItem;
        let Some(client) = self.tasks[worker.index()].serves.take() else { return };
        let Completion::Worker { softirq: true, .. } =
            self.workload.objects.devices[device.index()].completion
        else {
            return self.wake_up(cpu, Context::Task, client, false);
        };
        if let Some(next) = self.objects.devices[device.index()].next_in_line() {
            self.tasks[worker.index()].serves = Some(next.task);
            let ns = self.worker_ns(device);
            self.in_kernel_for(worker, ns, Stage::Submit { device });
        }
        self.complete_by_softirq(cpu, client);
    }

    /// A worker leaves waking the waiting task to the block softirq: on the worker's CPU if it shares a cache with the
    /// requesting CPU, otherwise on the requesting CPU.
    ///
    /// Kernel: blk_mq_complete_request_remote(), block/blk-mq.c, v6.12.
    fn complete_by_softirq(&mut self, cpu: CpuId, client: TaskId) {
        let asked = self.sched.task(client).cpu;
        if self.sched.cpus_share_cache(cpu, asked) {
            self.leave_to_ksoftirqd(cpu, Left::Request(client));
        } else {
            self.pending += 1;
            self.charge(cpu, self.paths.ipi_send);
            let at = self.now + Duration(self.cpus[cpu].overhead_ns() + self.paths.ipi_deliver);
            self.queue.push(at, Event::DeviceIrq { cpu: asked, task: client });
        }
    }
}
