//! The objects of a workload at run time: what tasks wait for, and what they share.

use schedlab_machine::Machine;
use schedlab_sched::{Feature, Kernel};
use schedlab_units::Time;
use schedlab_workload::{ChannelKind, ChannelSpec, Workload};

use crate::owed::Owed;
use crate::rng::Stream;
use crate::wait::{Barrier, Cond, Device, Futex, KernelMutex, Mutex, Pipe, Pool, Semaphore, Socket};
use crate::workers::{Item, pools};

/// A pipe or a socket.
#[derive(Clone)]
pub(crate) enum Channel {
    Pipe(Pipe),
    Socket(Socket),
}

/// Run-time state of the objects that tasks share.
#[derive(Clone)]
pub(crate) struct Objects {
    pub mutexes: Vec<Mutex>,
    /// Those of programs, then one for each channel.
    pub kernel_mutexes: Vec<KernelMutex>,
    pub conds: Vec<Cond>,
    pub sems: Vec<Semaphore>,
    /// The posts owed at each semaphore.
    pub owed: Vec<Owed>,
    pub barriers: Vec<Barrier>,
    pub channels: Vec<Channel>,
    /// The position of each shared timer; `None` before its first use.
    pub timers: Vec<Option<Time>>,
    pub words: Vec<i32>,
    pub futexes: Vec<Futex>,
    pub devices: Vec<Device>,
    pub device_dice: Vec<Stream>,
    pub source_dice: Vec<Stream>,
    pub pools: Vec<Pool<Item>>,
}

impl Objects {
    /// As they are when a run begins.
    pub fn new(workload: &Workload, machine: &Machine, kernel: &Kernel, seed: u64) -> Objects {
        let (objects, topology) = (&workload.objects, &machine.topology);
        let page = machine.cost.page_bytes.get() as u32;
        let spare = if kernel.has(Feature::TwoSparePages) { 2 } else { 1 };
        let channel = |spec: &ChannelSpec| match spec.kind {
            ChannelKind::Pipe => Channel::Pipe(Pipe::new(spec.capacity, page, spare)),
            ChannelKind::Socket => Channel::Socket(Socket::new(spec.capacity)),
        };
        let streams = |name: &str, count: usize| {
            (0..count as u64).map(|number| Stream::new(seed, name, number)).collect::<Vec<_>>()
        };
        Objects {
            owed: vec![Owed::default(); objects.sems.len()],
            mutexes: vec![Mutex::default(); objects.mutexes.len()],
            kernel_mutexes: vec![KernelMutex::default(); objects.mutexes.len() + objects.channels.len()],
            conds: vec![Cond::default(); objects.conds.len()],
            sems: objects.sems.iter().map(|spec| Semaphore::new(spec.initial)).collect(),
            barriers: objects.barriers.iter().map(|spec| Barrier::new(spec.parties)).collect(),
            channels: objects.channels.iter().map(channel).collect(),
            timers: vec![None; objects.timers.len()],
            words: workload.words(),
            futexes: vec![Futex::default(); objects.words.len()],
            devices: objects.devices.iter().map(|spec| Device::new(spec.depth)).collect(),
            device_dice: streams("device", objects.devices.len()),
            source_dice: streams("source", objects.sources.len()),
            pools: if objects.queues.is_empty() { Vec::new() } else { pools(topology) },
        }
    }
}
