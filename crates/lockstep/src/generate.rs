//! Draws the next operation of a run.

use schedlab_kernel_tree::WakeFlag;
use schedlab_sched::Policy;
use schedlab_topology::{CpuId, CpuMask};

use crate::random::Random;
use crate::{Loads, Operation, Pair};

/// Number of groups in a run.
const GROUPS: usize = 4;

/// Whether a task of another class keeps fair ones waiting.
fn starves(pair: &Pair, cpu: CpuId) -> bool {
    let fair = |task| pair.sched.task(task).policy.is_fair();
    pair.sched.rqs[cpu].curr.task().is_some_and(|task| !fair(task))
        && pair.sched.root_cfs(cpu).h_nr_runnable > 0
}

/// The source of random operations.
pub(crate) struct Generator {
    random: Random,
    loads: Loads,
    tasks: usize,
}

impl Generator {
    pub(crate) fn new(seed: u64, loads: &Loads, tasks: usize) -> Generator {
        Generator { random: Random::new(seed), loads: loads.clone(), tasks }
    }

    /// Time that passes before the next operation, ns: usually little, sometimes much.
    pub(crate) fn pause(&mut self) -> Operation {
        let span = if self.random.once_in(20) { 3_000_000 } else { 60_000 };
        Operation::Pass(1000 + self.random.below(span))
    }

    /// The next operation, which may turn out to be impossible.
    pub(crate) fn next(&mut self, pair: &Pair) -> Operation {
        let nr_cpus = pair.nr_cpus();
        let cpu = CpuId::from(self.random.below(nr_cpus as u64) as usize);
        let alive = pair.ended.iter().filter(|ended| !**ended).count();
        if alive < self.tasks && self.random.once_in(3) {
            let kthread = self.loads.has("kthread") && self.random.once_in(4);
            let process = self.loads.has("cache") && self.random.once_in(6);
            return Operation::Fork { cpu, kthread, process };
        }
        if pair.tasks.is_empty() {
            return Operation::Sleep { cpu };
        }
        let task = self.random.below(pair.tasks.len() as u64) as usize;
        if let Some(operation) = self.special(pair, cpu, task) {
            return operation;
        }
        if self.random.once_in(2) {
            return Operation::Sleep { cpu };
        }
        let flag = match () {
            () if !self.loads.has("sync") => WakeFlag::None,
            () if self.random.once_in(3) => WakeFlag::Sync,
            () if self.random.once_in(10) => WakeFlag::CurrentCpu,
            () => WakeFlag::None,
        };
        let in_irq = self.loads.has("irq") && self.random.once_in(3);
        Operation::Wake { cpu, task, flag, in_irq }
    }

    /// An operation that the loads add.
    fn special(&mut self, pair: &Pair, cpu: CpuId, task: usize) -> Option<Operation> {
        let nr_cpus = pair.nr_cpus();
        let groups = pair.groups.len();
        let meant = |random: &mut Random, load: &str, n: u64| self.loads.has(load) && random.once_in(n);
        let random = &mut self.random;
        if meant(random, "groups", 60) {
            if groups < GROUPS {
                let parent = (groups > 0 && random.once_in(2)).then(|| random.below(groups as u64) as usize);
                return Some(Operation::Group { cpu, parent, shares: random.of(&[512, 1024, 3072]) });
            }
            let group = random.below(groups as u64 + 1) as usize;
            return Some(Operation::Move { cpu, task, group: (group < groups).then_some(group) });
        }
        if groups > 0 && meant(random, "shares", 60) {
            let group = random.below(groups as u64) as usize;
            return Some(Operation::Shares { group, shares: random.of(&[2, 128, 1024, 4096, 100_000]) });
        }
        if groups > 0 && meant(random, "quota", 60) {
            let group = random.below(groups as u64) as usize;
            let quota = random.of(&[None, Some(2_000), Some(5_000), Some(20_000)]);
            return Some(Operation::Quota { group, period: random.of(&[10_000, 100_000]), quota });
        }
        if groups > 0 && meant(random, "idle-groups", 60) {
            let group = random.below(groups as u64) as usize;
            return Some(Operation::IdleGroup { group, idle: random.once_in(2) });
        }
        if meant(random, "slice", 50) {
            return Some(Operation::Slice {
                cpu,
                task,
                slice: random.of(&[0, 100_000, 1_000_000, 20_000_000]),
            });
        }
        if meant(random, "freq", 40) {
            return Some(Operation::Frequency { cpu, scale: random.of(&[1024, 700, 350]) });
        }
        if meant(random, "hotplug", 40) {
            let operation = if pair.offline[cpu.index()] {
                Operation::Online { cpu }
            } else {
                Operation::Offline { cpu }
            };
            return Some(operation);
        }
        if meant(random, "steal", 15) {
            return Some(Operation::Steal { cpu, ns: random.of(&[700, 20_000, 400_000, 5_000_000]) });
        }
        if meant(random, "affinity", 40) {
            let all = random.once_in(3);
            let mut cpus: Vec<CpuId> =
                (0..nr_cpus).map(CpuId::from).filter(|_| all || random.once_in(3)).collect();
            if cpus.is_empty() {
                cpus.push(CpuId(0));
            }
            return Some(Operation::Affinity { cpu, task, mask: CpuMask::of(nr_cpus, cpus) });
        }
        // A kernel thread of one CPU: what it wakes there may stay.
        if meant(random, "kthread", 30) && pair.is_kthread(task) {
            let to = CpuId::from(random.below(nr_cpus as u64) as usize);
            if random.once_in(2) {
                return Some(Operation::Bind { task, cpu: to });
            }
            return Some(Operation::Affinity { cpu, task, mask: CpuMask::of(nr_cpus, [to]) });
        }
        if meant(random, "yield", 30) {
            return Some(Operation::Yield { cpu });
        }
        if meant(random, "exit", 40) {
            return Some(Operation::Exiting { cpu });
        }
        if meant(random, "exit", 40) {
            return Some(Operation::Exit { cpu });
        }
        if meant(random, "nice", 50) {
            return Some(Operation::Nice { cpu, task, nice: random.of(&[0, 5, -5, 10, 19, -20]) });
        }
        if meant(random, "batch", 50) {
            let policy = random.of(&[Policy::Normal, Policy::Batch, Policy::Idle]);
            return Some(Operation::Policy { cpu, task, policy });
        }
        if meant(random, "user", 6) {
            return Some(Operation::ExitToUser { cpu });
        }
        if meant(random, "exec", 20) {
            return Some(Operation::Exec { cpu });
        }
        if meant(random, "lazy", 4) {
            let asked = |cpu: &CpuId| pair.sched.rqs[*cpu].need_resched.lazy;
            let asked: Vec<CpuId> = (0..nr_cpus).map(CpuId::from).filter(asked).collect();
            if !asked.is_empty() {
                return Some(Operation::ReschedLazy { cpu: random.of(&asked) });
            }
        }
        if meant(random, "starve", 40) && (0..nr_cpus).map(CpuId::from).any(|cpu| starves(pair, cpu)) {
            return Some(Operation::Pass(1_000_000_000 + random.below(1_000_000_000)));
        }
        if meant(random, "deadline", 50) {
            let of = |runtime: u64, period: u64| Policy::Deadline { runtime, deadline: period, period };
            let policy = random.of(&[
                Policy::Normal,
                Policy::Normal,
                of(1_000_000, 10_000_000),
                of(3_000_000, 30_000_000),
            ]);
            return Some(Operation::Policy { cpu, task, policy });
        }
        if meant(random, "rt", 50) {
            let policy = random.of(&[
                Policy::Normal,
                Policy::Normal,
                Policy::Fifo(10),
                Policy::Rr(10),
                Policy::Fifo(50),
            ]);
            return Some(Operation::Policy { cpu, task, policy });
        }
        None
    }
}
