//! A Perfetto trace: the events in the form the viewer knows from real kernels, and what only a simulator can add.
//!
//! Events go into bundles, one CPU each, from which the viewer draws CPUs and threads. Three kinds of tracks are added:
//! each decision as a point on its task's track with the reason, the numbers and the rejected CPUs; an arrow from waker
//! to wakee at the moment it runs; and the length of each run queue. Memory is bounded by CPUs and live tasks, whatever
//! the length of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};

use crate::event::{Event, Kind};
use crate::fields::Value;
use crate::follow::QueueLengths;
use crate::perfetto::{PAYLOADS, bundle, event as ftrace_event, packet};
use crate::proto::Encoder;
use crate::sink::Sink;

/// What to add to the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extras {
    /// The decisions, with their reasons.
    pub decisions: bool,
    /// Arrows from waker to wakee.
    pub flows: bool,
    /// The length of each run queue.
    pub counters: bool,
}

impl Extras {
    /// Everything.
    pub const ALL: Extras = Extras { decisions: true, flows: true, counters: true };
    /// Only the events.
    pub const NONE: Extras = Extras { decisions: false, flows: false, counters: false };
}

/// A point that is not an event of the trace.
#[derive(Clone, Debug)]
pub struct Remark<'a> {
    /// Time of the point.
    pub time: Time,
    /// The task that it is about; for the idle task, the CPU.
    pub pid: Pid,
    /// The CPU.
    pub cpu: CpuId,
    /// Category of the remark: the viewer can show a single category.
    pub category: &'a str,
    /// The text shown.
    pub name: &'a str,
    /// The notes shown on a click.
    pub notes: &'a [(&'a str, Value<'a>)],
}

/// A CPU's events are written when they fill this many bytes.
const BUNDLE_BYTES: usize = 16 << 10;

/// All packets have one writer.
const SEQUENCE: u64 = 1;

/// Writes a Perfetto trace. An error is kept until [`Perfetto::finish`], and nothing is written after it.
#[derive(Debug)]
pub struct Perfetto<W> {
    packets: Packets<W>,
    extras: Extras,
    /// The events of each CPU that are not yet written.
    bundles: Vec<Encoder>,
    payload: Encoder,
    queues: QueueLengths,
    /// The open arrow to each task that was woken and has not run since.
    flows: BTreeMap<Pid, u64>,
    next_flow: u64,
}

impl<W: Write> Perfetto<W> {
    /// A writer that has written the trace's clocks.
    pub fn new(output: W, extras: Extras) -> Perfetto<W> {
        let mut packets = Packets {
            output,
            state: Ok(()),
            packet: Encoder::default(),
            tracks: BTreeSet::new(),
            tgids: BTreeMap::new(),
            states: BTreeMap::new(),
        };
        packets.write(|packet| {
            packet.uint(packet::SEQUENCE_FLAGS, 1);
            packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                for clock in [MONOTONIC, BOOTTIME] {
                    snapshot.message(1, |reading| {
                        reading.uint(1, clock);
                        reading.uint(2, 0);
                    });
                }
                snapshot.uint(2, BOOTTIME);
            });
        });
        Perfetto {
            packets,
            extras,
            bundles: Vec::new(),
            payload: Encoder::default(),
            queues: QueueLengths::default(),
            flows: BTreeMap::new(),
            next_flow: 1,
        }
    }

    /// Puts a remark about the trace on the track of a task or of a CPU.
    pub fn remark(&mut self, remark: &Remark<'_>) {
        let track = match remark.pid {
            Pid::IDLE => Track::Cpu(remark.cpu),
            pid => Track::Thread(pid),
        };
        let point = Point { category: remark.category, name: remark.name, flow: None };
        self.packets.point(remark.time, track, point, |track_event| {
            for (name, value) in remark.notes {
                annotation(track_event, Some(name), value);
            }
        });
    }

    /// Writes what is still buffered and returns the result of writing.
    pub fn finish(mut self) -> io::Result<W> {
        for cpu in 0..self.bundles.len() {
            self.flush(cpu);
        }
        self.packets.state?;
        self.packets.output.flush()?;
        Ok(self.packets.output)
    }

    /// Writes a CPU's events.
    fn flush(&mut self, cpu: usize) {
        let events = &mut self.bundles[cpu];
        if !events.bytes().is_empty() {
            self.packets.write(|packet| {
                packet.message(packet::FTRACE_EVENTS, |bundle| {
                    bundle.uint(bundle::CPU, cpu as u64);
                    bundle.append(events.bytes());
                });
            });
            events.clear();
        }
    }

    /// Adds an event to its CPU's bundle.
    fn bundle(&mut self, event: &Event) {
        let cpu = event.cpu.index();
        if self.bundles.len() <= cpu {
            self.bundles.resize_with(cpu + 1, Encoder::default);
        }
        self.payload.clear();
        let number = payload(event, &mut self.payload);
        self.bundles[cpu].message(bundle::EVENT, |message| {
            message.uint(ftrace_event::TIMESTAMP, event.time.0);
            message.int(ftrace_event::PID, event.pid.0.into());
            if event.flags.is_known() {
                message.uint(ftrace_event::COMMON_FLAGS, event.flags.to_record().0.into());
            }
            message.raw(number, self.payload.bytes());
        });
        if self.bundles[cpu].bytes().len() >= BUNDLE_BYTES {
            self.flush(cpu);
        }
    }

    /// Writes the process of a task once.
    fn process(&mut self, event: &Event) {
        let Some(tgid) = event.tgid else { return };
        if event.pid == Pid::IDLE || self.packets.tgids.insert(event.pid, tgid) == Some(tgid) {
            return;
        }
        self.packets.write(|packet| {
            packet.uint(packet::TIMESTAMP, event.time.0);
            packet.message(packet::PROCESS_TREE, |tree| {
                if event.pid == tgid {
                    tree.message(1, |process| {
                        process.int(1, tgid.0.into());
                        process.text(3, event.comm.as_bytes());
                    });
                }
                tree.message(2, |thread| {
                    thread.int(1, event.pid.0.into());
                    thread.text(2, event.comm.as_bytes());
                    thread.int(3, tgid.0.into());
                });
            });
        });
    }

    /// Draws the arrow from the waker to the moment when the wakee runs.
    fn flow(&mut self, event: &Event) {
        match &event.kind {
            Kind::SchedWaking { comm, pid, .. } => self.departs(event, *pid, &format!("wakes {comm}")),
            Kind::SchedWakeup { pid, target_cpu, .. } => self.passes(event, *pid, *target_cpu),
            Kind::SchedWakeupNew { comm, pid, target_cpu, .. } => {
                self.departs(event, *pid, &format!("starts {comm}"));
                self.passes(event, *pid, *target_cpu);
            }
            Kind::SchedSwitch { next_pid, .. } => {
                if let Some(flow) = self.flows.remove(next_pid) {
                    let point = Point { category: "wakeup", name: "runs", flow: Some(Flow::Ends(flow)) };
                    self.packets.point(event.time, Track::Thread(*next_pid), point, |_| {});
                }
            }
            _ => {}
        }
    }

    fn departs(&mut self, event: &Event, wakee: Pid, name: &str) {
        let flow = self.next_flow;
        self.next_flow += 1;
        self.flows.insert(wakee, flow);
        let point = Point { category: "wakeup", name, flow: Some(Flow::Passes(flow)) };
        self.packets.point(event.time, Track::of_current(event), point, |_| {});
    }

    fn passes(&mut self, event: &Event, wakee: Pid, cpu: CpuId) {
        if let Some(&flow) = self.flows.get(&wakee) {
            let name = &format!("woken on CPU {cpu}");
            let point = Point { category: "wakeup", name, flow: Some(Flow::Passes(flow)) };
            self.packets.point(event.time, Track::Thread(wakee), point, |_| {});
        }
    }

    /// Puts a decision on the track of its task.
    fn decision(&mut self, event: &Event) {
        let (track, reason) = match &event.kind {
            Kind::Placement(p) => (Track::Thread(p.pid), &p.reason),
            Kind::Balance(b) => (Track::Cpu(b.dst_cpu), &b.reason),
            Kind::Newidle(n) => (Track::Cpu(n.dst_cpu), &n.reason),
            Kind::Preemption(p) => (Track::Thread(p.pid), &p.reason),
            Kind::Pick(p) if p.pid == Pid::IDLE => (Track::Cpu(event.cpu), &p.reason),
            Kind::Pick(p) => (Track::Thread(p.pid), &p.reason),
            _ => return,
        };
        let flow = match (&event.kind, track) {
            (Kind::Placement(p), _) => self.flows.get(&p.pid).map(|&flow| Flow::Passes(flow)),
            _ => None,
        };
        let category = event.kind.name().trim_start_matches("schedlab_");
        let point = Point { category, name: reason, flow };
        self.packets.point(event.time, track, point, |track_event| {
            event.kind.fields(|name, value| annotation(track_event, Some(name), &value));
        });
    }
}

impl<W: Write> Sink for Perfetto<W> {
    fn event(&mut self, event: &Event) {
        if event.kind.is_decision() {
            if self.extras.decisions {
                self.decision(event);
            }
            return;
        }
        if let Kind::State(state) = &event.kind {
            for (name, value) in &state.values {
                let track = format!("{} {} {name}", state.point, state.subject());
                self.packets.state(event.time, track, *value);
            }
            return;
        }
        self.bundle(event);
        self.process(event);
        if self.extras.flows {
            self.flow(event);
        }
        if self.extras.counters {
            let packets = &mut self.packets;
            self.queues.event(event, |cpu, nr| packets.counter(event.time, cpu, nr));
        }
        if let Kind::SchedSwitch { prev_pid, prev_state, .. } = event.kind
            && prev_state.is_dead()
        {
            self.packets.tgids.remove(&prev_pid);
            self.packets.tracks.remove(&Track::Thread(prev_pid));
            self.flows.remove(&prev_pid);
        }
    }

    fn wants_decisions(&self) -> bool {
        self.extras.decisions
    }
}

/// Encodes an event's payload and returns its number.
fn payload(event: &Event, out: &mut Encoder) -> u32 {
    if let Kind::Mark { .. } | Kind::Print(_) = event.kind {
        let mut text = Vec::new();
        crate::args::print(event, &mut text);
        text.push(b'\n');
        out.text(ftrace_event::PRINT_BUF, &text);
        return ftrace_event::PRINT;
    }
    let name = event.kind.name();
    if let Some(payload) = PAYLOADS.iter().find(|payload| payload.name == name) {
        event.kind.fields(|field, value| {
            if let Some((_, number)) = payload.fields.iter().find(|(name, _)| *name == field) {
                scalar(out, [*number; 4], &value);
            }
        });
        return payload.number;
    }
    out.text(ftrace_event::GENERIC_NAME, name.as_bytes());
    event.kind.fields(|name, value| {
        out.message(ftrace_event::GENERIC_FIELD, |field| {
            field.text(1, name.as_bytes());
            scalar(field, [4, 5, 3, 5], &value);
        });
    });
    ftrace_event::GENERIC
}

/// Encodes a value in one of four fields: signed, unsigned, text, boolean.
fn scalar(out: &mut Encoder, [int, uint, text, bool]: [u32; 4], value: &Value<'_>) {
    match value {
        Value::Int(n) => out.int(int, *n),
        Value::Uint(n) => out.uint(uint, *n),
        Value::Bool(yes) => out.uint(bool, u64::from(*yes)),
        Value::Text(bytes) => out.text(text, bytes),
        Value::State(state) => out.uint(uint, state.bits()),
        list => out.text(text, list.to_string().as_bytes()),
    }
}

/// Adds a debug annotation, with its name or as an item of an array.
fn annotation(out: &mut Encoder, name: Option<&str>, value: &Value<'_>) {
    const FIELD: u32 = 4;
    annotation_in(out, FIELD, name, value);
}

fn annotation_in(out: &mut Encoder, field: u32, name: Option<&str>, value: &Value<'_>) {
    const DICT: u32 = 11;
    const ARRAY: u32 = 12;
    out.message(field, |annotation| {
        if let Some(name) = name {
            annotation.text(10, name.as_bytes());
        }
        match value {
            Value::Numbers(numbers) => {
                for (name, n) in numbers.iter() {
                    annotation_in(annotation, DICT, Some(name), &Value::Int(*n));
                }
            }
            Value::Candidates(candidates) => {
                for candidate in candidates.iter() {
                    annotation.message(ARRAY, |item| {
                        annotation_in(item, DICT, Some("cpu"), &Value::Uint(candidate.cpu.0.into()));
                        if !candidate.refused.is_empty() {
                            annotation_in(item, DICT, Some("refused"), &Value::text(&candidate.refused));
                        }
                    });
                }
            }
            Value::Pids(pids) => {
                for pid in pids.iter() {
                    annotation_in(annotation, ARRAY, None, &Value::Int(pid.0.into()));
                }
            }
            value => scalar(annotation, [4, 3, 6, 2], value),
        }
    });
}

const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;

/// The output, packet by packet, and the tracks described so far.
#[derive(Debug)]
struct Packets<W> {
    output: W,
    state: io::Result<()>,
    packet: Encoder,
    tracks: BTreeSet<Track>,
    /// The processes of live tasks.
    tgids: BTreeMap<Pid, Pid>,
    /// Tracks of state by their names.
    states: BTreeMap<String, u32>,
}

/// What a point or a counter is drawn on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Track {
    /// A task.
    Thread(Pid),
    /// What happens on a CPU without a task: balancing, wake-ups in interrupts.
    Cpu(CpuId),
    /// The length of a CPU's run queue.
    Queue(CpuId),
    /// A value of the scheduler's state, by the number of its name.
    State(u32),
    /// The tracks of all CPUs.
    Cpus,
    /// The lengths of all run queues.
    Queues,
    /// All values of state.
    States,
}

impl Track {
    /// The track of the current task, unless it was only interrupted or is the idle task.
    fn of_current(event: &Event) -> Track {
        if event.pid == Pid::IDLE || event.flags.in_interrupt() {
            Track::Cpu(event.cpu)
        } else {
            Track::Thread(event.pid)
        }
    }

    fn uuid(self) -> u64 {
        let (class, number) = match self {
            Track::Thread(pid) => (1, pid.0 as u32),
            Track::Cpu(cpu) => (2, cpu.0.into()),
            Track::Queue(cpu) => (3, cpu.0.into()),
            Track::Cpus => (4, 0),
            Track::Queues => (5, 0),
            Track::State(number) => (6, number),
            Track::States => (7, 0),
        };
        class << 32 | u64::from(number)
    }

    fn parent(self) -> Option<Track> {
        match self {
            Track::Cpu(_) => Some(Track::Cpus),
            Track::Queue(_) => Some(Track::Queues),
            Track::State(_) => Some(Track::States),
            _ => None,
        }
    }

    fn name(self) -> Option<String> {
        match self {
            Track::Thread(_) | Track::State(_) => None,
            Track::States => Some("state".to_owned()),
            Track::Cpu(cpu) => Some(format!("CPU {cpu} scheduler")),
            Track::Queue(cpu) => Some(format!("CPU {cpu} nr_running")),
            Track::Cpus => Some("scheduler".to_owned()),
            Track::Queues => Some("run queues".to_owned()),
        }
    }
}

/// A point on a track.
struct Point<'a> {
    category: &'a str,
    name: &'a str,
    flow: Option<Flow>,
}

/// A point's role in an arrow.
#[derive(Clone, Copy)]
enum Flow {
    Passes(u64),
    Ends(u64),
}

impl<W: Write> Packets<W> {
    /// Writes one packet.
    fn write(&mut self, fill: impl FnOnce(&mut Encoder)) {
        if self.state.is_err() {
            return;
        }
        self.packet.clear();
        self.packet.message(1, |packet| {
            packet.uint(packet::SEQUENCE_ID, SEQUENCE);
            fill(packet);
        });
        self.state = self.output.write_all(self.packet.bytes());
    }

    /// Describes a track, and its parent, before its first use.
    fn describe(&mut self, track: Track) {
        if !self.tracks.insert(track) {
            return;
        }
        if let Some(parent) = track.parent() {
            self.describe(parent);
        }
        let tgid = match track {
            Track::Thread(pid) => self.tgids.get(&pid).copied().unwrap_or(pid),
            _ => Pid::IDLE,
        };
        let own_name = match track {
            Track::State(number) => {
                self.states.iter().find(|(_, n)| **n == number).map(|(name, _)| name.clone())
            }
            track => track.name(),
        };
        self.write(|packet| {
            packet.message(packet::TRACK_DESCRIPTOR, |descriptor| {
                descriptor.uint(1, track.uuid());
                if let Some(name) = own_name {
                    descriptor.text(2, name.as_bytes());
                }
                if let Some(parent) = track.parent() {
                    descriptor.uint(5, parent.uuid());
                }
                match track {
                    Track::Thread(pid) => descriptor.message(4, |thread| {
                        thread.int(1, tgid.0.into());
                        thread.int(2, pid.0.into());
                    }),
                    Track::Queue(cpu) => {
                        descriptor.message(8, |counter| counter.uint(3, 2));
                        descriptor.uint(12, cpu.0.into());
                    }
                    Track::Cpu(cpu) => descriptor.uint(12, cpu.0.into()),
                    Track::State(_) => descriptor.message(8, |_| {}),
                    Track::Cpus | Track::Queues | Track::States => descriptor.uint(11, 3),
                }
            });
        });
    }

    /// Writes a point.
    fn point(&mut self, time: Time, track: Track, point: Point<'_>, more: impl FnOnce(&mut Encoder)) {
        self.describe(track);
        self.write(|packet| {
            packet.uint(packet::TIMESTAMP, time.0);
            packet.message(packet::TRACK_EVENT, |event| {
                event.uint(9, 3);
                event.uint(11, track.uuid());
                event.text(22, point.category.as_bytes());
                event.text(23, point.name.as_bytes());
                match point.flow {
                    Some(Flow::Passes(flow)) => event.fixed64(47, flow),
                    Some(Flow::Ends(flow)) => event.fixed64(48, flow),
                    None => {}
                }
                more(event);
            });
        });
    }

    /// Writes a value of state on the track of its name.
    fn state(&mut self, time: Time, name: String, value: i64) {
        let number = self.states.len() as u32;
        let track = Track::State(*self.states.entry(name).or_insert(number));
        self.describe(track);
        self.write(|packet| {
            packet.uint(packet::TIMESTAMP, time.0);
            packet.message(packet::TRACK_EVENT, |event| {
                event.uint(9, 4);
                event.uint(11, track.uuid());
                event.int(30, value);
            });
        });
    }

    /// Writes the length of a run queue.
    fn counter(&mut self, time: Time, cpu: CpuId, nr: u32) {
        let track = Track::Queue(cpu);
        self.describe(track);
        self.write(|packet| {
            packet.uint(packet::TIMESTAMP, time.0);
            packet.message(packet::TRACK_EVENT, |event| {
                event.uint(9, 4);
                event.uint(11, track.uuid());
                event.int(30, nr.into());
            });
        });
    }
}
