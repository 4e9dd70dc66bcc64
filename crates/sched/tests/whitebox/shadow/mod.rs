//! A shadow of the kernel's run queues that follows a white-box recording.
//!
//! It charges tasks by the recorded run times, moves them between queues as recorded, compares its values
//! with the kernel's at each probe, and then adopts the kernel's. At a decision it calls this crate's
//! decider.

mod events;
mod pick;
mod place;
mod preempt;
mod queues;

use std::collections::BTreeMap;

use schedlab_sched::{
    CfsRqId, Entity, FairPolicy, LoadWeight, NewTask, Policy, Sched, SeId, Took, WakeupPreempt,
};
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Kind, Unknown};
use schedlab_units::{Pid, TaskId, Time};

use crate::recording::Recording;

/// What the shadow knows about a task besides its entity.
#[derive(Clone, Copy, Default)]
struct Known {
    /// vruntime and deadline are the kernel's.
    vruntime: bool,
    /// The lag with which it left is the kernel's.
    lag: bool,
    /// On a timeline.
    queued: bool,
    /// The lag with which it would leave now, if it runs.
    lag_if_it_left: Option<i64>,
}

/// A step whose result in the recording comes with a later event of the same CPU.
struct Expected<T> {
    /// The decider's answer, or why it cannot be called.
    says: Result<T, &'static str>,
    story: String,
}

/// Results of one step.
#[derive(Default)]
pub struct Tally {
    pub agree: u64,
    pub differ: u64,
    pub undecided: BTreeMap<&'static str, u64>,
}

pub struct Shadow<'a> {
    recording: &'a Recording,
    sched: Sched,
    now: Time,
    pids: BTreeMap<Pid, TaskId>,
    known: Vec<Known>,
    pub tallies: BTreeMap<&'static str, Tally>,
    /// Differences, as text.
    pub differences: Vec<String>,
    // By executing CPU:
    charging: BTreeMap<CpuId, Expected<bool>>,
    /// v6.1: a tick that may end the slice of a task.
    ticking: BTreeMap<CpuId, (TaskId, Expected<bool>)>,
    placing: BTreeMap<CpuId, (TaskId, Expected<(u64, u64)>)>,
    /// v6.1, by task: its placement shows when it is next seen.
    placing_cfs: BTreeMap<TaskId, Expected<u64>>,
    /// v6.1, by new task: its distance to the floor.
    forked: BTreeMap<TaskId, Expected<u64>>,
    /// By CPU, the wake-up that requests preemption.
    asking: BTreeMap<CpuId, preempt::Asking>,
    /// The same, waiting for a sleeper in the way to leave.
    waiting: BTreeMap<CpuId, preempt::Asking>,
    preempting: BTreeMap<CpuId, (CpuId, Expected<bool>)>,
    /// v6.1: a pick that waits until it is known whether the running task sleeps.
    choosing: BTreeMap<CpuId, pick::Choosing>,
}

/// The weight of a nice level with the kernel's own inverse, or any other.
fn load_weight(weight: u64) -> LoadWeight {
    (-20..20)
        .map(|nice| LoadWeight::of_task(Policy::Normal, nice))
        .find(|load| load.weight == weight)
        .unwrap_or_else(|| LoadWeight::new(weight))
}

/// A field of a probe; absent and unreadable ones are 0, as the probes leave them.
fn field(probe: &Unknown, key: &str) -> i64 {
    probe.int(key).unwrap_or(0)
}

fn field_u64(probe: &Unknown, key: &str) -> u64 {
    field(probe, key) as u64
}

impl<'a> Shadow<'a> {
    pub fn new(recording: &'a Recording) -> Shadow<'a> {
        Shadow {
            recording,
            sched: Sched::new(&recording.topology, &recording.kernel, Took::default(), 1),
            now: Time(0),
            pids: BTreeMap::new(),
            known: Vec::new(),
            tallies: BTreeMap::new(),
            differences: Vec::new(),
            charging: BTreeMap::new(),
            ticking: BTreeMap::new(),
            placing: BTreeMap::new(),
            placing_cfs: BTreeMap::new(),
            forked: BTreeMap::new(),
            asking: BTreeMap::new(),
            waiting: BTreeMap::new(),
            preempting: BTreeMap::new(),
            choosing: BTreeMap::new(),
        }
    }

    pub fn follow(&mut self, event: &Event) {
        self.now = event.time;
        self.settle(event);
        match &event.kind {
            Kind::Unknown(probe) => self.probe(event.cpu, probe),
            kind => self.tracepoint(event.cpu, kind),
        }
    }

    fn probe(&mut self, cpu: CpuId, probe: &Unknown) {
        match probe.name() {
            "selr" => self.selected(probe),
            "ni" => self.nothing_left(cpu),
            "tick" => self.ticks(cpu, probe),
            "plc" => self.placed(cpu, probe),
            "enq" => self.enqueued(cpu, probe),
            "wup" => self.asks(cpu, probe),
            "pickr" => self.picked(cpu, probe),
            "rsc" => self.requested(cpu, probe),
            _ => {}
        }
    }

    /// Drops expected results that have not come by this event of their CPU.
    fn settle(&mut self, event: &Event) {
        let cpu = event.cpu;
        let name = event.kind.name();
        if name != "sched_stat_runtime" {
            self.decide(cpu);
        }
        if name != "sched_switch" {
            // The same task was chosen again: no switch follows.
            self.chosen(cpu, false);
        }
        if name != "rsc"
            && let Some(expected) = self.charging.remove(&cpu)
        {
            self.count("slice", expected.says.map(|asks| !asks), || {
                format!("{}, no request", expected.story)
            });
        }
        if !["rsc", "sched_stat_runtime"].contains(&name)
            && let Some((_, expected)) = self.ticking.remove(&cpu)
        {
            self.count("slice", expected.says.map(|asks| !asks), || {
                format!("{}, no request", expected.story)
            });
        }
        let answers = ["rsc", "pickr", "sched_stat_runtime", "enq", "cpus", "cpus2"];
        if !answers.contains(&name)
            && let Some((_, expected)) = self.preempting.remove(&cpu)
        {
            self.count("preempt", expected.says.map(|asks| !asks), || {
                format!("{}, no request", expected.story)
            });
        }
    }

    fn count(
        &mut self,
        step: &'static str,
        agrees: Result<bool, &'static str>,
        story: impl FnOnce() -> String,
    ) {
        let tally = self.tallies.entry(step).or_default();
        match agrees {
            Ok(true) => tally.agree += 1,
            Ok(false) => {
                tally.differ += 1;
                let Recording { kernel, topology, load, .. } = self.recording;
                let place = format!("{} {} {load} {} us", kernel.name, topology.name, self.now.0 / 1000);
                self.differences.push(format!("{place}: {step}: {}", story()));
            }
            Err(why) => *tally.undecided.entry(why).or_default() += 1,
        }
    }

    fn task_of(&mut self, probe: &Unknown) -> TaskId {
        self.task(Pid(field(probe, "pid") as i32))
    }

    /// The task of a pid, created when first seen.
    fn task(&mut self, pid: Pid) -> TaskId {
        if let Some(&task) = self.pids.get(&pid) {
            return task;
        }
        let spec = NewTask::plain(self.sched.rqs.len());
        let task = self.sched.new_task(&spec, None, self.now);
        self.pids.insert(pid, task);
        self.known.push(Known::default());
        task
    }

    fn se(&mut self, task: TaskId) -> &mut Entity {
        &mut self.sched.tasks[task.index()].se
    }

    fn eevdf(&self) -> bool {
        self.sched.kernel.rules.policy == FairPolicy::Eevdf
    }

    /// v7.2: a wake-up that requests preemption picks as a switch does.
    fn wakeup_picks(&self) -> bool {
        self.sched.kernel.rules.wakeup_preempt == WakeupPreempt::PickOrLower
    }

    /// Compares vruntime and deadline of a task with the kernel's, and adopts those.
    fn meet(&mut self, task: TaskId, probe: &Unknown, prefix: &str) {
        let (vruntime, deadline) =
            (field_u64(probe, &format!("{prefix}vr")), field_u64(probe, &format!("{prefix}dl")));
        let se = &self.sched.task(task).se;
        let own = (se.vruntime, se.deadline);
        let agrees = own.0 == vruntime && (!self.eevdf() || own.1 == deadline);
        let result = if self.known[task.index()].vruntime { Ok(agrees) } else { Err("first seen") };
        self.count("charge", result, || {
            format!("{} task {} {own:?}, recorded {vruntime} {deadline}", probe.name(), task.0)
        });
        let (queued, cpu) = (self.known[task.index()].queued, self.sched.task(task).cpu);
        if queued && !agrees {
            self.leave_line(task);
        }
        self.take_over(task, probe, prefix);
        if queued && !agrees {
            self.enter(task, cpu);
        }
        if !agrees {
            let se = self.se(task);
            se.vprot = se.deadline;
        }
    }

    /// Adopts the kernel's values for a task that is on no timeline.
    fn take_over(&mut self, task: TaskId, probe: &Unknown, prefix: &str) {
        let number = |name: &str| field_u64(probe, &format!("{prefix}{name}"));
        let (weight, eevdf) = (number("w"), self.eevdf());
        let se = self.se(task);
        se.vruntime = number("vr");
        if weight > 0 && se.load.weight != weight {
            se.load = load_weight(weight);
        }
        if eevdf {
            se.deadline = number("dl");
            se.slice = number("slice");
            se.vlag = number("vlag") as i64;
        }
        self.known[task.index()].vruntime = true;
    }
}

fn root(cpu: CpuId) -> CfsRqId {
    CfsRqId(cpu.0 as u32)
}

fn se_of(task: TaskId) -> SeId {
    SeId(task.0)
}
