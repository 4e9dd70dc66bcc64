//! perf.data, as `perf sched record` writes it, for `perf sched`, `perf script` and others.
//!
//! ```text
//! header | data: COMM, FORK, EXIT and SAMPLE records | features | attributes | ids
//! ```
//!
//! A sample contains the same binary record as a page of trace.dat, and the feature of tracing data contains the same
//! formats. perf takes names and parents of tasks from records of their own, which are written when an event shows
//! them.
//!
//! The header contains the length of the data, so data goes to a spool until the run is over.
//!
//! Kernel: struct perf_event_attr, enum perf_event_type, include/uapi/linux/perf_event.h;
//! tools/perf/Documentation/perf.data-file-format.txt.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek, Write};

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};

use crate::binary::tracepoints::RecordWriter;
use crate::comm::Comm;
use crate::event::{CLONE_THREAD, Event, Kind};
use crate::sink::Sink;
use crate::write::tracing_data::Descriptions;

/// Writes a perf.data. An error is kept until [`PerfData::finish`], and nothing is written after it.
#[derive(Debug)]
pub struct PerfData<W, S> {
    output: W,
    spool: S,
    records: RecordWriter,
    /// Bytes in the spool.
    spooled: u64,
    /// The events that occurred.
    ids: BTreeSet<u16>,
    comms: BTreeMap<Pid, Comm>,
    tgids: BTreeMap<Pid, Pid>,
    nr_cpus: u32,
    since_round: u32,
    first: Option<Time>,
    last: Time,
    decisions: bool,
    state: io::Result<()>,
}

const HEADER: u64 = 104;
/// Size of an attribute, bytes: its first version, which has everything that tracepoints need.
const ATTR: u32 = 64;

/// Types of records.
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const FINISHED_ROUND: u32 = 68;

/// The fields of a sample: address, task, time, CPU, period, the record, and first the event's id.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16;
/// Task, time and CPU also follow records other than samples.
const SAMPLE_ID_ALL: u64 = 1 << 18;
/// A reader gets the ids together with the values of counters.
const READ_FORMAT_ID: u64 = 4;
/// It happened in the kernel.
const MISC_KERNEL: u16 = 1;

/// Numbers of features.
const TRACING_DATA: u32 = 1;
const NRCPUS: u32 = 7;
const SAMPLE_TIME: u32 = 21;

/// A reader sorts what is between two marks of a finished round, so the marks bound its memory.
const ROUND: u32 = 10_000;

impl<W: Write, S: Read + Write + Seek> PerfData<W, S> {
    /// A writer for a machine with that many CPUs, with an empty spool.
    pub fn new(output: W, spool: S, nr_cpus: usize) -> PerfData<W, S> {
        PerfData {
            output,
            spool,
            records: RecordWriter::default(),
            spooled: 0,
            ids: BTreeSet::new(),
            comms: BTreeMap::new(),
            tgids: BTreeMap::new(),
            nr_cpus: nr_cpus as u32,
            since_round: 0,
            first: None,
            last: Time::ZERO,
            decisions: false,
            state: Ok(()),
        }
    }

    /// Writes the annotations that explain decisions, too.
    pub fn with_decisions(mut self) -> PerfData<W, S> {
        self.decisions = true;
        self
    }

    /// Adds an event, preceded by what it shows about tasks.
    fn add(&mut self, event: &Event) -> io::Result<()> {
        self.nr_cpus = self.nr_cpus.max(u32::from(event.cpu.0) + 1);
        self.first.get_or_insert(event.time);
        self.last = event.time;
        if let Some(tgid) = event.tgid {
            self.tgids.insert(event.pid, tgid);
        }
        match event.kind {
            Kind::SchedSwitch { prev_comm, prev_pid, next_comm, next_pid, .. } => {
                self.name(event, prev_pid, prev_comm)?;
                self.name(event, next_pid, next_comm)?;
            }
            Kind::SchedWaking { comm, pid, .. }
            | Kind::SchedWakeup { comm, pid, .. }
            | Kind::SchedWakeupNew { comm, pid, .. }
            | Kind::SchedMigrateTask { comm, pid, .. }
            | Kind::SchedProcessExit { comm, pid, .. }
            | Kind::SchedStatRuntime { comm, pid, .. } => self.name(event, pid, comm)?,
            Kind::TaskRename { pid, newcomm, .. } => self.name(event, pid, newcomm)?,
            Kind::TaskNewtask { pid, clone_flags, .. } if clone_flags & CLONE_THREAD != 0 => {
                self.tgids.insert(pid, self.tgid(event.pid));
            }
            Kind::SchedProcessFork { comm, pid, child_comm, child_pid } => {
                self.name(event, pid, comm)?;
                self.task(FORK, event, child_pid, pid)?;
                self.name(event, child_pid, child_comm)?;
            }
            _ => {}
        }
        // The name of the current task may be newer; it is better than none.
        if !self.comms.contains_key(&event.pid) {
            self.name(event, event.pid, event.comm)?;
        }
        self.sample(event)?;
        if let Kind::SchedProcessExit { pid, .. } = event.kind {
            self.task(EXIT, event, pid, pid)?;
        }
        self.since_round += 1;
        if self.since_round == ROUND {
            self.since_round = 0;
            self.put(FINISHED_ROUND, 0, &[])?;
        }
        Ok(())
    }

    /// The process of a task; a task whose process is unknown counts as a process.
    fn tgid(&self, pid: Pid) -> Pid {
        self.tgids.get(&pid).copied().unwrap_or(pid)
    }

    /// A task has a name; writes a record if it is new.
    fn name(&mut self, event: &Event, pid: Pid, comm: Comm) -> io::Result<()> {
        if pid == Pid::IDLE || comm.is_empty() || self.comms.get(&pid) == Some(&comm) {
            return Ok(());
        }
        self.comms.insert(pid, comm);
        let mut name = comm.as_bytes().to_vec();
        name.resize((name.len() + 1).next_multiple_of(8), 0);
        let mut body = ids(&[self.tgid(pid), pid]);
        body.extend_from_slice(&name);
        // The record belongs to the task that it names; perf relies on that.
        self.sample_id(event, pid, &mut body);
        self.put(COMM, 0, &body)
    }

    /// A task begins or ends.
    fn task(&mut self, kind: u32, event: &Event, pid: Pid, parent: Pid) -> io::Result<()> {
        let mut body = ids(&[self.tgid(pid), self.tgid(parent), pid, parent]);
        body.extend_from_slice(&event.time.0.to_le_bytes());
        self.sample_id(event, event.pid, &mut body);
        self.put(kind, 0, &body)
    }

    /// The end of records other than samples: the task that caused them, time and CPU.
    fn sample_id(&self, event: &Event, pid: Pid, body: &mut Vec<u8>) {
        body.extend_from_slice(&ids(&[self.tgid(pid), pid]));
        body.extend_from_slice(&event.time.0.to_le_bytes());
        body.extend_from_slice(&cpu(event.cpu));
        // No event id: the record belongs to none.
        body.extend_from_slice(&0u64.to_le_bytes());
    }

    fn sample(&mut self, event: &Event) -> io::Result<()> {
        let task = ids(&[self.tgid(event.pid), event.pid]);
        let record = self.records.record(event);
        let id = u16::from_le_bytes([record[0], record[1]]);
        self.ids.insert(id);
        let (ip, period) = (0u64, 1u64);
        let mut body = u64::from(id).to_le_bytes().to_vec();
        body.extend_from_slice(&ip.to_le_bytes());
        body.extend_from_slice(&task);
        body.extend_from_slice(&event.time.0.to_le_bytes());
        body.extend_from_slice(&cpu(event.cpu));
        body.extend_from_slice(&period.to_le_bytes());
        // The size includes the padding, so that the next record is aligned.
        let size = (record.len() + 4).next_multiple_of(8) - 4;
        body.extend_from_slice(&(size as u32).to_le_bytes());
        body.extend_from_slice(record);
        body.resize(body.len() + size - record.len(), 0);
        self.put(SAMPLE, MISC_KERNEL, &body)
    }

    /// Adds a record to the spool.
    fn put(&mut self, kind: u32, misc: u16, body: &[u8]) -> io::Result<()> {
        let size = 8 + body.len();
        let mut head = kind.to_le_bytes().to_vec();
        head.extend_from_slice(&misc.to_le_bytes());
        let size16 = u16::try_from(size).expect("a record is smaller than a page");
        head.extend_from_slice(&size16.to_le_bytes());
        self.spool.write_all(&head)?;
        self.spool.write_all(body)?;
        self.spooled += size as u64;
        Ok(())
    }

    /// Writes the file and returns the result of writing.
    pub fn finish(mut self) -> io::Result<W> {
        std::mem::replace(&mut self.state, Ok(()))?;
        let (features, bits) = self.features(HEADER + self.spooled);
        let attrs_at = HEADER + self.spooled + features.len() as u64;
        let (attrs, ids) = self.attrs(attrs_at);

        let mut header = b"PERFILE2".to_vec();
        let entry = u64::from(ATTR) + 16;
        for number in [HEADER, entry, attrs_at, attrs.len() as u64, HEADER, self.spooled, 0, 0, bits, 0, 0, 0]
        {
            header.extend_from_slice(&number.to_le_bytes());
        }
        assert_eq!(header.len() as u64, HEADER);
        self.output.write_all(&header)?;
        self.spool.rewind()?;
        io::copy(&mut self.spool.take(self.spooled), &mut self.output)?;
        for part in [features, attrs, ids] {
            self.output.write_all(&part)?;
        }
        self.output.flush()?;
        Ok(self.output)
    }

    /// The features at that position in the file, positions first, and which features there are.
    fn features(&self, at: u64) -> (Vec<u8>, u64) {
        let numbers = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        let times = [self.first.unwrap_or_default(), self.last];
        let features = [
            (TRACING_DATA, Descriptions::own(&self.records, &self.comms).block("0.6")),
            (NRCPUS, numbers(&[self.nr_cpus; 2])),
            (SAMPLE_TIME, times.iter().flat_map(|time| time.0.to_le_bytes()).collect()),
        ];
        let mut places = Vec::new();
        let mut place = at + 16 * features.len() as u64;
        for (_, content) in &features {
            places.extend_from_slice(&place.to_le_bytes());
            places.extend_from_slice(&(content.len() as u64).to_le_bytes());
            place += content.len() as u64;
        }
        let bits = features.iter().fold(0, |bits, (number, _)| bits | 1 << number);
        (features.into_iter().fold(places, |all, (_, content)| [all, content].concat()), bits)
    }

    /// One attribute per event that occurred, at that position in the file, and the ids after them.
    fn attrs(&self, at: u64) -> (Vec<u8>, Vec<u8>) {
        const TRACEPOINT: u32 = 2;
        let (mut attrs, mut ids) = (Vec::new(), Vec::new());
        let ids_at = at + self.ids.len() as u64 * (u64::from(ATTR) + 16);
        for id in &self.ids {
            let id = u64::from(*id);
            attrs.extend_from_slice(&TRACEPOINT.to_le_bytes());
            attrs.extend_from_slice(&ATTR.to_le_bytes());
            let period = 1;
            for number in [id, period, SAMPLE_TYPE, READ_FORMAT_ID, SAMPLE_ID_ALL, 0, 0] {
                attrs.extend_from_slice(&u64::to_le_bytes(number));
            }
            attrs.extend_from_slice(&(ids_at + ids.len() as u64).to_le_bytes());
            attrs.extend_from_slice(&8u64.to_le_bytes());
            // The id of a sample is that of its tracepoint; no other distinction is needed.
            ids.extend_from_slice(&id.to_le_bytes());
        }
        (attrs, ids)
    }
}

fn ids(pids: &[Pid]) -> Vec<u8> {
    pids.iter().flat_map(|pid| pid.0.to_le_bytes()).collect()
}

/// A CPU and four bytes of padding.
fn cpu(cpu: CpuId) -> [u8; 8] {
    u64::from(cpu.0).to_le_bytes()
}

impl<W: Write, S: Read + Write + Seek> Sink for PerfData<W, S> {
    fn event(&mut self, event: &Event) {
        if self.state.is_ok() {
            self.state = self.add(event);
        }
    }

    fn wants_decisions(&self) -> bool {
        self.decisions
    }
}
