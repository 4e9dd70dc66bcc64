//! The events of one balance pass, collected from a recording.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_sched::IdleType;
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Flags, Kind, Unknown};
use schedlab_units::Time;

use crate::follow::{Followed, FollowedCpu, Follower};
use crate::recording::{Recording, int, probe};

/// Time from an event to the CPU's next one without interruption, us; most of it is the probe's own work.
fn usual_us(event: &str) -> u64 {
    if event == "lb" { 7 } else { 3 }
}

/// Whether a CPU is in the middle of a switch after this event: a task that is charged
/// outside interrupts may be leaving its queue.
fn switches(event: &Event) -> bool {
    match &event.kind {
        Kind::SchedStatRuntime { pid, .. } => {
            *pid == event.pid && !event.flags.has(Flags::HARDIRQ) && !event.flags.has(Flags::SOFTIRQ)
        }
        kind => ["ni", "nir", "pickr", "plc", "enq"].contains(&kind.name()),
    }
}

/// How much longer it may take before the turn counts as lost.
const SLACK_US: u64 = 1;

/// One run of load_balance.
pub struct Pass {
    pub cpu: CpuId,
    pub begin: Time,
    pub lb: Unknown,
    pub idle: IdleType,
    /// CPUs of the domain.
    pub weight: u32,
    /// All CPUs when it began, and their tasks.
    pub cpus: Vec<FollowedCpu>,
    pub tasks: BTreeMap<i64, Followed>,
    pub searches: Vec<Search>,
    pub candidates: Vec<Asked>,
    /// Tasks taken, by pid.
    pub detached: Vec<i64>,
    pub ret: i64,
    pub end: Time,
    /// The stopper of the source was woken.
    pub active: bool,
    /// When the state may first have changed during the pass.
    pub disturbed: Option<Time>,
    /// Another CPU was making a pass over the whole machine.
    pub contended: bool,
    /// CPUs whose queue may have been changing when it began: a wake-up or a switch had begun.
    pub in_flight: BTreeSet<CpuId>,
}

/// One result of find_busiest_group.
pub struct Search {
    pub time: Time,
    pub group: Option<u64>,
    /// Migration type and imbalance, if they were recorded.
    pub kind: Option<(i64, i64)>,
}

/// One question of can_migrate_task and its answer.
#[derive(Clone)]
pub struct Asked {
    pub time: Time,
    pub question: Unknown,
    pub answer: bool,
    /// The known state of the task.
    pub task: Followed,
    /// It was running.
    pub running: bool,
    /// The destination had no task.
    pub dst_empty: bool,
    /// The answer took longer than usual.
    pub moved: bool,
}

impl Asked {
    pub fn int(&self, key: &str) -> i64 {
        int(&self.question, key)
    }

    pub fn cpu(&self, key: &str) -> CpuId {
        CpuId(self.int(key) as u16)
    }

    fn new(follower: &mut Follower, time: Time, question: &Unknown) -> Asked {
        let task = follower.task(int(question, "pid")).clone();
        let question = question.clone();
        let mut asked =
            Asked { time, question, answer: false, task, running: false, dst_empty: false, moved: false };
        let cpus = &follower.cpus;
        asked.running = cpus[asked.cpu("src").index()].curr == asked.int("pid");
        asked.dst_empty = cpus[asked.cpu("dst").index()].list.is_empty();
        asked
    }
}

impl Pass {
    pub fn int(&self, key: &str) -> i64 {
        int(&self.lb, key)
    }

    /// Whether the state known at the start may be out of date.
    pub fn moved(&self, until: Time) -> bool {
        self.disturbed.is_some_and(|time| time <= until)
    }
}

/// One run of newidle_balance up to its first domain.
pub struct Gate {
    pub cpu: CpuId,
    pub time: Time,
    pub ni: Unknown,
    /// A wake-up was pending.
    pub pending: bool,
    /// The CPU lost its turn.
    pub moved: bool,
    pub went_on: bool,
}

/// The cases for the balancer's rules in a recording, in order of their ends.
pub enum Item {
    Gate(Gate),
    Pass(Box<Pass>),
    /// A check outside passes: the stopper's.
    Active(Asked),
}

/// The unfinished operations of a CPU.
#[derive(Default)]
struct Open {
    gate: Option<Gate>,
    pass: Option<Box<Pass>>,
    asked: Option<Asked>,
    last: Option<(Time, String)>,
    switching: bool,
}

/// Collects the events of each pass.
pub fn items(recording: &Recording) -> Vec<Item> {
    let nr_cpus = recording.topology.nr_cpus();
    let mut follower = Follower::new(nr_cpus, &recording.kernel);
    let mut open: Vec<Open> = (0..nr_cpus).map(|_| Open::default()).collect();
    let mut done = Vec::new();
    let old_codes = recording.kernel.name.starts_with("6.1+");
    for event in &recording.events {
        disturb(&mut open, event);
        let all = |other: &Open| other.pass.as_ref().is_some_and(|pass| pass.weight as usize == nr_cpus);
        let contended = open.iter().any(all);
        let other = |cpu: &usize| *cpu != event.cpu.index() && open[*cpu].switching;
        let switching = (0..nr_cpus).filter(other).map(CpuId::from);
        let in_flight: BTreeSet<CpuId> = follower.in_flight().into_iter().chain(switching).collect();
        let at = &mut open[event.cpu.index()];
        if let Some(gate) = &mut at.gate {
            gate.moved |= (event.time.0 - gate.time.0) / 1000 > usual_us("ni") + SLACK_US;
        }
        if let Some(probe) = probe(event) {
            gather(at, &mut follower, &mut done, event, probe, (old_codes, contended), in_flight);
        } else if matches!(event.kind, Kind::SchedSwitch { .. }) {
            done.extend(at.gate.take().map(Item::Gate));
            at.pass = None;
        }
        follower.event(event);
        let at = &mut open[event.cpu.index()];
        at.last = Some((event.time, event.kind.name().to_string()));
        at.switching = switches(event);
    }
    done
}

/// What other CPUs do during a pass.
fn disturb(open: &mut [Open], event: &Event) {
    for (cpu, at) in open.iter_mut().enumerate() {
        let Some(pass) = &mut at.pass else { continue };
        let own = cpu == event.cpu.index();
        let gap = at
            .last
            .as_ref()
            .filter(|_| own)
            .is_some_and(|(time, name)| (event.time.0 - time.0) / 1000 > usual_us(name) + SLACK_US);
        if !own || gap {
            pass.disturbed.get_or_insert(event.time);
        }
    }
}

fn gather(
    at: &mut Open,
    follower: &mut Follower,
    done: &mut Vec<Item>,
    event: &Event,
    probe: &Unknown,
    (old_codes, contended): (bool, bool),
    in_flight: BTreeSet<CpuId>,
) {
    let time = event.time;
    match probe.name() {
        "ni" => {
            done.extend(at.gate.take().map(Item::Gate));
            let cpu = event.cpu;
            let pending = !follower.cpus[cpu.index()].pending.is_empty() || in_flight.contains(&cpu);
            at.gate = Some(Gate { cpu, time, ni: probe.clone(), pending, moved: false, went_on: false });
        }
        "nir" => done.extend(at.gate.take().map(Item::Gate)),
        "lb" => {
            let idle = match (int(probe, "idle"), old_codes) {
                (2, _) => IdleType::NewlyIdle,
                (0, true) | (1, false) => IdleType::Idle,
                _ => IdleType::NotIdle,
            };
            if let Some(gate) = at.gate.take() {
                done.push(Item::Gate(Gate { went_on: idle == IdleType::NewlyIdle, ..gate }));
            }
            let (cpus, tasks) = snapshot(follower);
            at.pass = Some(Box::new(Pass {
                cpu: CpuId(int(probe, "cpu") as u16),
                begin: time,
                lb: probe.clone(),
                idle,
                weight: int(probe, "sw") as u32,
                cpus,
                tasks,
                searches: Vec::new(),
                candidates: Vec::new(),
                detached: Vec::new(),
                ret: 0,
                end: time,
                active: false,
                disturbed: None,
                contended,
                in_flight,
            }));
        }
        "fsgr" => {
            let Some(pass) = &mut at.pass else { return };
            let group = probe.int("grp").map(|mask| mask as u64);
            let kind = probe.int("mt").map(|mt| (mt, int(probe, "imb")));
            pass.searches.push(Search { time, group, kind });
        }
        "cmt" => at.asked = Some(Asked::new(follower, time, probe)),
        "cmtr" => {
            let Some(mut asked) = at.asked.take() else { return };
            asked.answer = int(probe, "ret") == 1;
            asked.moved = (time.0 - asked.time.0) / 1000 > usual_us("cmt") + SLACK_US;
            if probe.text().contains("active_load_balance") {
                done.push(Item::Active(asked));
            } else if let Some(pass) = &mut at.pass {
                if !asked.answer {
                    follower.pass_over(asked.int("pid"), asked.cpu("src"));
                }
                pass.candidates.push(asked);
            }
        }
        // The pass that requested it is the last one that found nothing to move there.
        "alb" => {
            let from =
                |pass: &Pass| pass.candidates.last().is_some_and(|asked| asked.cpu("src") == event.cpu);
            let asker = done.iter_mut().rev().find_map(|item| match item {
                Item::Pass(pass) if pass.ret == 0 && from(pass) => Some(pass),
                _ => None,
            });
            if let Some(pass) = asker {
                pass.active = true;
            }
        }
        "det" => {
            let pid = int(probe, "pid");
            if let Some(pass) = &mut at.pass {
                pass.detached.push(pid);
            }
        }
        "lbr" => {
            let Some(mut pass) = at.pass.take() else { return };
            // A task that could have moved and did not was too large, and was passed over too.
            for asked in pass.candidates.iter().filter(|asked| asked.answer) {
                let pid = asked.int("pid");
                if !pass.detached.contains(&pid) {
                    follower.pass_over(pid, asked.cpu("src"));
                }
            }
            (pass.ret, pass.end) = (int(probe, "ret"), time);
            done.push(Item::Pass(pass));
        }
        _ => {}
    }
}

fn snapshot(follower: &Follower) -> (Vec<FollowedCpu>, BTreeMap<i64, Followed>) {
    let listed = follower.cpus.iter().flat_map(|cpu| &cpu.list);
    let tasks = listed.map(|pid| (*pid, follower.tasks[pid].clone())).collect();
    (follower.cpus.clone(), tasks)
}
