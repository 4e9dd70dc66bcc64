//! The events of one choice of a CPU, collected from a recording.
//!
//! The emulated CPUs take turns. If a CPU kept its turn from the snapshot to the result, no other CPU changed anything.
//! It kept its turn if its own events follow each other as closely as usual.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_topology::CpuId;
use schedlab_trace::{Event, Flags, Kind, Unknown};
use schedlab_units::Time;

use crate::recording::{Recording, int, probe};
use crate::snapshot::Snapshot;

/// Time from an event to the CPU's next one without interruption, us; most of it is the probe's own work.
fn usual_us(event: &str) -> u64 {
    match event {
        "cpus" => 17,
        "cpus2" => 14,
        "fdgcpus" => 8,
        "sel" => 5,
        _ => 2,
    }
}

/// How much longer it may take before the turn counts as lost.
const SLACK_US: u64 = 1;

/// One run of select_task_rq_fair.
pub struct Choice {
    pub cpu: CpuId,
    /// The pid running on the CPU, 0 for its idle task.
    pub waker: i64,
    pub comm: String,
    pub in_task: bool,
    /// It is exiting.
    pub exiting: bool,
    pub sel: Unknown,
    /// The CPU's own events, from `sel` on.
    pub steps: Vec<(Time, String)>,
    pub cpus: (Time, Snapshot),
    pub wide: Option<Unknown>,
    pub weight: Option<Unknown>,
    pub target: Option<CpuId>,
    pub search: Option<(Time, Snapshot)>,
    /// CPUs that the search checked for idleness, if that was recorded.
    pub asked: Vec<CpuId>,
    pub groups: Vec<Group>,
    pub ret: (Time, CpuId),
    /// Queued through the target's wake list.
    pub remote: Option<(Time, bool)>,
    /// wake_affine was tried, and chose this CPU; from the wakee's next choice.
    pub affine: Option<(bool, bool)>,
}

/// One run of find_idlest_group.
pub struct Group {
    pub cpu: CpuId,
    pub weight: u32,
    pub util: Vec<u64>,
    pub runnable: Vec<u64>,
    /// The chosen group; `None` to stay.
    pub chosen: Option<u64>,
    /// When each CPU went idle, ns; 1 if that was before the recording.
    pub stamps: Vec<u64>,
    pub end: Time,
}

impl Choice {
    pub fn pid(&self) -> i64 {
        int(&self.sel, "pid")
    }

    pub fn has(&self, flag: i64) -> bool {
        int(&self.sel, "fl") & flag != 0
    }

    pub fn prev(&self) -> CpuId {
        CpuId(int(&self.sel, "prev") as u16)
    }

    pub fn is_wakeup(&self) -> bool {
        self.has(8)
    }

    pub fn sync(&self) -> bool {
        self.has(0x10) && !self.exiting
    }

    /// Whether the CPU lost its turn between two of its events, or another CPU acted.
    pub fn moved(&self, events: &[Event], from: Time, to: Time) -> bool {
        let first = events.partition_point(|event| event.time <= from);
        let other = |event: &Event| event.cpu != self.cpu;
        let seen = events[first..].iter().take_while(|event| event.time <= to).any(other);
        seen || self.steps.windows(2).any(|pair| {
            let ((begin, event), (end, _)) = (&pair[0], &pair[1]);
            *begin >= from && *end <= to && (end.0 - begin.0) / 1000 > usual_us(event) + SLACK_US
        })
    }
}

/// Collects the events of each choice.
pub fn choices(recording: &Recording) -> Vec<Choice> {
    let (events, nr_cpus) = (&recording.events, recording.topology.nr_cpus());
    let mut open: BTreeMap<CpuId, Choice> = BTreeMap::new();
    // For each CPU, the choice whose task is being queued.
    let mut queueing: BTreeMap<CpuId, usize> = BTreeMap::new();
    let mut last_of: BTreeMap<i64, usize> = BTreeMap::new();
    let mut done: Vec<Choice> = Vec::new();
    let mut exiting = BTreeSet::new();
    let mut stamps = Stamps(vec![1; nr_cpus]);
    for event in events {
        stamps.follow(event);
        if let Kind::SchedProcessExit { pid, .. } = &event.kind {
            exiting.insert(i64::from(pid.0));
        }
        let Some(probe) = probe(event) else { continue };
        let at = event.cpu;
        if let Some(choice) = open.get_mut(&at) {
            choice.steps.push((event.time, probe.name().to_string()));
        } else if let Some(&choice) = queueing.get(&at) {
            done[choice].steps.push((event.time, probe.name().to_string()));
        }
        match probe.name() {
            "sel" => {
                let pid = int(probe, "pid");
                if let Some(&before) = last_of.get(&pid) {
                    let before = &mut done[before];
                    let more = |key| int(probe, key) - int(&before.sel, key);
                    before.affine = Some((more("att") > 0, more("aff") > 0));
                }
                queueing.remove(&at);
                open.insert(
                    at,
                    Choice {
                        cpu: at,
                        waker: i64::from(event.pid.0),
                        comm: event.comm.to_string(),
                        in_task: !event.flags.has(Flags::HARDIRQ | Flags::SOFTIRQ | Flags::NMI),
                        exiting: exiting.contains(&i64::from(event.pid.0)),
                        sel: probe.clone(),
                        steps: vec![(event.time, "sel".to_string())],
                        cpus: (event.time, Snapshot::default()),
                        wide: None,
                        weight: None,
                        target: None,
                        search: None,
                        asked: Vec::new(),
                        groups: Vec::new(),
                        ret: (event.time, CpuId(0)),
                        remote: None,
                        affine: None,
                    },
                );
            }
            "twl" => {
                if queueing.get(&at).is_some_and(|&choice| done[choice].pid() != int(probe, "pid")) {
                    queueing.remove(&at);
                }
            }
            "twlr" => {
                if let Some(choice) = queueing.remove(&at) {
                    done[choice].remote = Some((event.time, int(probe, "ret") != 0));
                }
            }
            name => {
                let Some(choice) = open.get_mut(&at) else { continue };
                match name {
                    "cpus" => choice.cpus = (event.time, Snapshot::new(probe)),
                    "ww" => choice.wide = Some(probe.clone()),
                    "waw" => choice.weight = Some(probe.clone()),
                    "sis" => choice.target = Some(CpuId(int(probe, "target") as u16)),
                    "cpus2" => choice.search = Some((event.time, Snapshot::new(probe))),
                    "aic" if choice.target.is_some() => {
                        choice.asked.push(CpuId(int(probe, "cpu") as u16));
                    }
                    "fdg" => choice.groups.push(Group {
                        cpu: CpuId(int(probe, "cpu") as u16),
                        weight: int(probe, "sw") as u32,
                        util: Vec::new(),
                        runnable: Vec::new(),
                        chosen: None,
                        stamps: Vec::new(),
                        end: event.time,
                    }),
                    "fdgcpus" => {
                        let group = choice.groups.last_mut().unwrap();
                        let nr_cpus = choice.cpus.1.cpus.len();
                        group.util = (0..nr_cpus).map(|c| int(probe, &format!("u{c}")) as u64).collect();
                        group.runnable = (0..nr_cpus).map(|c| int(probe, &format!("r{c}")) as u64).collect();
                    }
                    "fdgr" => {
                        let group = choice.groups.last_mut().unwrap();
                        group.chosen = probe.int("grp").map(|mask| mask as u64);
                        group.stamps = stamps.0.clone();
                        group.end = event.time;
                    }
                    "selr" => {
                        let mut choice = open.remove(&at).unwrap();
                        choice.ret = (event.time, CpuId(int(probe, "ret") as u16));
                        last_of.insert(choice.pid(), done.len());
                        queueing.insert(at, done.len());
                        done.push(choice);
                    }
                    _ => {}
                }
            }
        }
    }
    done
}

/// Idle stamps of the run queues, as far as events show them.
struct Stamps(Vec<u64>);

impl Stamps {
    fn follow(&mut self, event: &Event) {
        match &event.kind {
            Kind::Unknown(probe) => match probe.name() {
                "ni" => self.0[event.cpu.index()] = event.time.0,
                // It pulled a task.
                "nir" if int(probe, "ret") > 0 => self.0[event.cpu.index()] = 0,
                _ => {}
            },
            Kind::SchedWakeup { target_cpu, .. } => self.0[target_cpu.index()] = 0,
            _ => {}
        }
    }
}
