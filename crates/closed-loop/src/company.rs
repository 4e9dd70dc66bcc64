//! How two tasks share a CPU while they are alone together on it.
//!
//! The balancer decides which tasks share a CPU, and a small difference early in a run changes that for the rest; the
//! share of each of two tasks depends on their weights. So shares are compared by pair: the run times of a task of nice
//! value A and one of nice value B on a CPU whose queue contained only these two, over whole turns.

use std::collections::BTreeMap;

use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Kind, Sink};
use schedlab_units::{Duration, Pid, Time};

/// Run time by the nice values of the running and the waiting task.
#[derive(Clone, Debug, Default)]
pub struct Company {
    prefix: &'static str,
    nice: Vec<i8>,
    queued: BTreeMap<Pid, CpuId>,
    nice_of: BTreeMap<Pid, i8>,
    /// When the set of tasks on each CPU last changed, and when its task began to run.
    changed: BTreeMap<CpuId, Time>,
    began: BTreeMap<CpuId, Time>,
    ran: BTreeMap<(i8, i8), Duration>,
}

impl Company {
    /// For tasks whose name is a prefix and a number; the number selects the nice value.
    pub fn new(prefix: &'static str, nice: Vec<i8>) -> Company {
        Company { prefix, nice, ..Company::default() }
    }

    /// Adds the times of another run.
    pub fn merge(&mut self, other: &Company) {
        for (&pair, &ran) in &other.ran {
            *self.ran.entry(pair).or_default() += ran;
        }
    }

    /// Pairs of different nice values, the one with the larger share first: its share, and the total run time of both.
    pub fn shares(&self) -> Vec<((i8, i8), f64, Duration)> {
        let pairs = self.ran.keys().filter(|(a, b)| a < b);
        pairs
            .map(|&(a, b)| {
                let (first, second) = (self.ran[&(a, b)], self.ran.get(&(b, a)).copied().unwrap_or_default());
                let whole = first + second;
                ((a, b), first.0 as f64 / whole.0.max(1) as f64, whole)
            })
            .collect()
    }

    fn put(&mut self, pid: Pid, cpu: Option<CpuId>, now: Time) {
        let before = match cpu {
            Some(cpu) => self.queued.insert(pid, cpu),
            None => self.queued.remove(&pid),
        };
        if before != cpu {
            for cpu in [before, cpu].into_iter().flatten() {
                self.changed.insert(cpu, now);
            }
        }
    }

    fn named(&mut self, pid: Pid, comm: Comm) {
        let name = comm.to_str_lossy();
        let number = name.strip_prefix(self.prefix).and_then(|n| n.parse::<usize>().ok());
        if let Some(number) = number
            && !self.nice.is_empty()
        {
            self.nice_of.insert(pid, self.nice[number % self.nice.len()]);
        }
    }

    fn ends(&mut self, cpu: CpuId, pid: Pid, now: Time) {
        let Some(&began) = self.began.get(&cpu) else { return };
        if self.changed.get(&cpu).is_some_and(|&changed| changed > began) {
            return;
        }
        let mut others = self.queued.iter().filter(|&(&other, &at)| at == cpu && other != pid);
        let (Some((other, _)), None) = (others.next(), others.next()) else { return };
        let nice = (self.nice_of.get(&pid).copied(), self.nice_of.get(other).copied());
        if let (Some(a), Some(b)) = nice {
            *self.ran.entry((a, b)).or_default() += now.since(began);
        }
    }
}

impl Sink for Company {
    fn event(&mut self, event: &Event) {
        let now = event.time;
        match event.kind {
            Kind::SchedWakeup { pid, target_cpu, .. } | Kind::SchedWakeupNew { pid, target_cpu, .. } => {
                self.put(pid, Some(target_cpu), now);
            }
            Kind::SchedMigrateTask { pid, dest_cpu, .. } if self.queued.contains_key(&pid) => {
                self.put(pid, Some(dest_cpu), now);
            }
            Kind::SchedSwitch { prev_comm, prev_pid, prev_state, next_pid, .. } => {
                if prev_pid != Pid::IDLE {
                    self.named(prev_pid, prev_comm);
                    self.ends(event.cpu, prev_pid, now);
                    self.put(prev_pid, prev_state.is_runnable().then_some(event.cpu), now);
                }
                self.began.remove(&event.cpu);
                if next_pid != Pid::IDLE {
                    self.put(next_pid, Some(event.cpu), now);
                    self.began.insert(event.cpu, now);
                }
            }
            _ => {}
        }
    }
}
