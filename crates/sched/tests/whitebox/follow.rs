//! What a recording shows about every CPU's queue: the running task, the waiting tasks, pending ones, and the order
//! in which the balancer would find them.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_sched::{Feature, Kernel};
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Kind, TaskState, Unknown};
use schedlab_units::Time;

use crate::recording::int;
use crate::snapshot::Snapshot;

/// A task as far as events show it.
#[derive(Clone, Debug)]
pub struct Followed {
    pub comm: String,
    /// CPUs it may use, once a choice of its CPU was recorded.
    pub mask: Option<u64>,
    /// When it was last charged, by the clock of its queue, which may have been stopped since a wake-up
    /// requested the switch; `None` if it was moved to another CPU since.
    pub charged: Option<Time>,
    /// Went to sleep, and has not been woken since.
    pub asleep: bool,
    /// Of the fair class.
    pub fair: bool,
}

impl Followed {
    fn new(comm: String) -> Followed {
        Followed { comm, mask: None, charged: None, asleep: false, fair: true }
    }
}

/// A CPU as far as events show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowedCpu {
    /// Running pid, 0 when idle.
    pub curr: i64,
    /// Tasks that are queued or may be, the running one included; most recently used first.
    pub list: Vec<i64>,
    /// Pending wake-ups.
    pub pending: Vec<i64>,
    /// An event of it was seen.
    pub known: bool,
}

impl FollowedCpu {
    /// Runs its idle task and has nothing queued or pending.
    pub fn is_idle(&self) -> bool {
        self.curr == 0 && self.list.is_empty() && self.pending.is_empty()
    }
}

/// All CPUs and tasks.
pub struct Follower {
    pub cpus: Vec<FollowedCpu>,
    pub tasks: BTreeMap<i64, Followed>,
    /// Pid and target of a wake list question that is open on each CPU.
    asked: Vec<Option<(i64, usize)>>,
    /// Pid whose CPU is being chosen on each CPU.
    choosing: Vec<i64>,
    /// Wake-ups that have begun, and their target CPUs as far as known.
    waking: BTreeMap<i64, CpuId>,
    /// For each CPU, the tasks that it has taken from one queue and not yet put on another.
    carried: Vec<Vec<(i64, CpuId)>>,
    /// What a probe saw last, and what was known then.
    seen: Option<(CpuId, Vec<FollowedCpu>, Snapshot)>,
    /// Sleepers leave their queue at once.
    leaves_at_once: bool,
    /// Picking the running task again counts as use.
    repick_counts: bool,
}

impl Follower {
    pub fn new(nr_cpus: usize, kernel: &Kernel) -> Follower {
        Follower {
            cpus: vec![FollowedCpu::default(); nr_cpus],
            tasks: BTreeMap::new(),
            asked: vec![None; nr_cpus],
            choosing: vec![0; nr_cpus],
            waking: BTreeMap::new(),
            carried: vec![Vec::new(); nr_cpus],
            seen: None,
            leaves_at_once: !kernel.has(Feature::DelayDequeue),
            repick_counts: kernel.has(Feature::MruOnRepick),
        }
    }

    pub fn task(&mut self, pid: i64) -> &mut Followed {
        self.tasks.entry(pid).or_insert_with(|| Followed::new(String::new()))
    }

    fn put(&mut self, pid: i64, cpu: CpuId) {
        self.remove(pid);
        self.cpus[cpu.index()].list.insert(0, pid);
    }

    fn remove(&mut self, pid: i64) {
        for cpu in &mut self.cpus {
            cpu.list.retain(|&p| p != pid);
            cpu.pending.retain(|&p| p != pid);
        }
    }

    /// No fair task is left on a CPU, but tasks being moved there may arrive at any moment.
    fn empty(&mut self, cpu: CpuId) {
        let carried: Vec<i64> = self.carried.iter().flatten().map(|carried| carried.0).collect();
        self.cpus[cpu.index()].list.retain(|pid| carried.contains(pid));
    }

    /// A candidate that was passed over moves to the near end of its list.
    pub fn pass_over(&mut self, pid: i64, cpu: CpuId) {
        let list = &mut self.cpus[cpu.index()].list;
        if list.contains(&pid) {
            list.retain(|&p| p != pid);
            list.insert(0, pid);
        }
    }

    /// CPUs whose queue another CPU may be changing at this moment, by a wake-up or a move that has begun.
    pub fn in_flight(&self) -> BTreeSet<CpuId> {
        let carried = self.carried.iter().flatten().map(|&(_, to)| to);
        self.waking.values().copied().chain(carried).collect()
    }

    /// Processes one event.
    pub fn event(&mut self, event: &Event) {
        self.compare(event);
        match &event.kind {
            Kind::SchedSwitch { prev_pid, prev_state, next_pid, next_comm, next_prio, prev_prio, .. } => {
                let (prev, next) = (i64::from(prev_pid.0), i64::from(next_pid.0));
                if prev != 0 {
                    self.leave(prev, event, *prev_state, *prev_prio >= 100, next == 0);
                }
                // The queue's clock is the one by which the previous task was charged.
                let clock = self.tasks.get(&prev).and_then(|task| task.charged).unwrap_or(event.time);
                if next != 0 {
                    self.put(next, event.cpu);
                    let task = self.task(next);
                    task.comm = next_comm.to_string();
                    task.fair = *next_prio >= 100;
                    task.asleep = false;
                    task.charged = Some(clock);
                } else {
                    self.empty(event.cpu);
                }
                let cpu = &mut self.cpus[event.cpu.index()];
                (cpu.curr, cpu.known) = (next, true);
                self.carried[event.cpu.index()].clear();
            }
            Kind::SchedWakeup { pid, target_cpu, comm, .. }
            | Kind::SchedWakeupNew { pid, target_cpu, comm, .. } => {
                let pid = i64::from(pid.0);
                // One that was still queued stays where it is in the list.
                if !self.cpus[target_cpu.index()].list.contains(&pid) {
                    self.put(pid, *target_cpu);
                }
                self.cpus[target_cpu.index()].pending.retain(|&p| p != pid);
                self.waking.remove(&pid);
                // It may arrive before the waker's event that it was sent.
                self.asked.iter_mut().for_each(|asked| *asked = asked.filter(|asked| asked.0 != pid));
                let task = self.task(pid);
                task.comm = comm.to_string();
                task.asleep = false;
            }
            Kind::SchedWaking { pid, target_cpu, .. } => {
                self.waking.insert(i64::from(pid.0), *target_cpu);
            }
            Kind::SchedMigrateTask { pid, dest_cpu, .. } => {
                let pid = i64::from(pid.0);
                // A task that is being woken was not queued, and will be.
                if self.waking.contains_key(&pid) {
                    self.remove(pid);
                } else {
                    self.put(pid, *dest_cpu);
                    self.carried[event.cpu.index()].push((pid, *dest_cpu));
                }
                self.task(pid).charged = None;
            }
            Kind::SchedStatRuntime { pid, runtime, .. } => {
                let task = self.task(i64::from(pid.0));
                let until = task.charged.map_or(event.time.0, |since| since.0 + runtime);
                task.charged = Some(Time(until.min(event.time.0)));
            }
            Kind::SchedProcessFork { child_pid, child_comm, .. } => {
                self.tasks.insert(i64::from(child_pid.0), Followed::new(child_comm.to_string()));
            }
            Kind::Unknown(probe) => self.probe(event.cpu, probe),
            _ => {}
        }
    }

    /// A task stops running.
    fn leave(&mut self, pid: i64, event: &Event, state: TaskState, fair: bool, to_idle: bool) {
        let at_once = self.leaves_at_once || to_idle || !fair || state.is_dead();
        let sleeps = !state.is_runnable();
        let task = self.task(pid);
        (task.asleep, task.fair) = (sleeps, fair);
        if sleeps && at_once {
            self.cpus[event.cpu.index()].list.retain(|&p| p != pid);
        }
    }

    fn probe(&mut self, cpu: CpuId, probe: &Unknown) {
        match probe.name() {
            // Those taken last are put on the other queue first.
            "lbr" => {
                for (pid, to) in std::mem::take(&mut self.carried[cpu.index()]).into_iter().rev() {
                    self.pass_over(pid, to);
                }
            }
            "selr" => {
                let to = CpuId(int(probe, "ret") as u16);
                if let Some(waking) = self.waking.get_mut(&self.choosing[cpu.index()]) {
                    *waking = to;
                }
            }
            "sel" => {
                self.choosing[cpu.index()] = int(probe, "pid");
                let task = self.task(int(probe, "pid"));
                task.mask = Some(int(probe, "mask") as u64);
            }
            "cpus" => self.seen = Some((cpu, self.cpus.clone(), Snapshot::new(probe))),
            "twl" => {
                self.asked[cpu.index()] =
                    Some((int(probe, "pid"), probe.int("cpu").unwrap_or_default() as usize));
            }
            "twlr" => {
                if let Some((pid, target)) = self.asked[cpu.index()].take()
                    && int(probe, "ret") == 1
                {
                    self.cpus[target].pending.push(pid);
                }
            }
            // No fair task is left; the one that still runs is going to sleep.
            "ni" => self.empty(cpu),
            "pickr"
                if ["(pick_next_task_fair", "(pick_task_fair"]
                    .iter()
                    .any(|by| probe.text().starts_with(by)) =>
            {
                self.picked(cpu, probe.int("pid").unwrap_or_default());
            }
            _ => {}
        }
    }

    /// A sleeper that is picked leaves; another task moves to the near end.
    fn picked(&mut self, cpu: CpuId, pid: i64) {
        match self.tasks.get(&pid) {
            Some(task) if task.asleep => self.remove(pid),
            Some(_) if self.repick_counts => self.pass_over(pid, cpu),
            _ => {}
        }
    }

    /// Determines from a probe's values which sleepers are queued, if it is all or none. The probe takes its
    /// time stamp before it reads, so only the next event shows whether anything happened in between.
    fn compare(&mut self, event: &Event) {
        let Some((at, before, snapshot)) = self.seen.take() else { return };
        if event.cpu != at || before != self.cpus {
            return;
        }
        for (place, seen) in snapshot.cpus.iter().enumerate() {
            let cpu = &mut self.cpus[place];
            cpu.known |= seen.is_idle();
            let awake = cpu.list.iter().filter(|pid| !self.tasks[pid].asleep).count();
            // This CPU's own numbers cannot have changed.
            if place == at.index() && awake == seen.nr_running as usize {
                let tasks = &self.tasks;
                cpu.list.retain(|pid| !tasks[pid].asleep);
            }
        }
    }
}
