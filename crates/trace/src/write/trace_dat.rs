//! trace.dat version 6, which every trace-cmd, KernelShark and LISA reads.
//!
//! The file contains each CPU's pages in one piece, and before them the names of all tasks, so none of it can be
//! written before the run is over. Until then full pages go to a spool; only one page per CPU, the names, and eight
//! bytes for each page stay in memory.
//!
//! A binary record cannot exceed a page: a decision that examined hundreds of CPUs keeps as many as fit.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};

use schedlab_units::Pid;

use crate::binary::page::{Layout, PageWriter};
use crate::binary::tracepoints::RecordWriter;
use crate::comm::Comm;
use crate::event::Event;
use crate::sink::Sink;
use crate::write::tracing_data::Descriptions;

/// Writes a trace.dat. An error is kept until [`TraceDat::finish`], and nothing is written after it.
#[derive(Debug)]
pub struct TraceDat<W, S> {
    output: W,
    spool: S,
    records: RecordWriter,
    cpus: Vec<Cpu>,
    comms: BTreeMap<Pid, Comm>,
    /// Pages in the spool.
    spooled: u64,
    decisions: bool,
    state: io::Result<()>,
}

/// A CPU's events.
#[derive(Debug)]
struct Cpu {
    page: PageWriter,
    /// The pages of the spool that belong to this CPU.
    pages: Vec<u64>,
}

const PAGE: usize = Layout::USUAL.page_size;

/// Options before the pages.
const DONE: u16 = 0;
const TRACECLOCK: u16 = 4;
const UNAME: u16 = 5;

impl<W: Write, S: Read + Write + Seek> TraceDat<W, S> {
    /// A writer for a machine with that many CPUs, with an empty spool.
    pub fn new(output: W, spool: S, nr_cpus: usize) -> TraceDat<W, S> {
        let mut writer = TraceDat {
            output,
            spool,
            records: RecordWriter::default(),
            cpus: Vec::new(),
            comms: BTreeMap::new(),
            spooled: 0,
            decisions: false,
            state: Ok(()),
        };
        writer.grow(nr_cpus);
        writer
    }

    /// Writes the annotations that explain decisions, too.
    pub fn with_decisions(mut self) -> TraceDat<W, S> {
        self.decisions = true;
        self
    }

    fn grow(&mut self, nr_cpus: usize) {
        let nr_cpus = nr_cpus.max(self.cpus.len());
        self.cpus.resize_with(nr_cpus, || Cpu { page: PageWriter::new(), pages: Vec::new() });
    }

    /// Adds an event to its CPU's page.
    fn add(&mut self, event: &Event) -> io::Result<()> {
        self.grow(event.cpu.index() + 1);
        let cpu = &mut self.cpus[event.cpu.index()];
        let record = self.records.record(event);
        if !cpu.page.push(event.time.0, record) {
            cpu.pages.push(self.spooled);
            self.spooled += 1;
            self.spool.write_all(&cpu.page.take())?;
            let fits = cpu.page.push(event.time.0, record);
            assert!(fits, "a record of {} bytes does not fit on an empty page", record.len());
        }
        Ok(())
    }

    /// Writes the file and returns the result of writing.
    pub fn finish(mut self) -> io::Result<W> {
        std::mem::replace(&mut self.state, Ok(()))?;
        for cpu in &mut self.cpus {
            if !cpu.page.is_empty() {
                cpu.pages.push(self.spooled);
                self.spooled += 1;
                self.spool.write_all(&cpu.page.take())?;
            }
        }
        let descriptions = Descriptions::own(&self.records, &self.comms);
        let sizes: Vec<u64> = self.cpus.iter().map(|cpu| (cpu.pages.len() * PAGE) as u64).collect();
        let head = head(&descriptions, "[mono]", "", &sizes);
        self.output.write_all(&head)?;
        let mut page = vec![0; PAGE];
        for number in self.cpus.iter().flat_map(|cpu| &cpu.pages) {
            self.spool.seek(SeekFrom::Start(number * PAGE as u64))?;
            self.spool.read_exact(&mut page)?;
            self.output.write_all(&page)?;
        }
        self.output.flush()?;
        Ok(self.output)
    }
}

/// Everything before the pages, given the size of each CPU's pages.
pub(super) fn head(descriptions: &Descriptions, clock: &str, uname: &str, sizes: &[u64]) -> Vec<u8> {
    let mut head = descriptions.block("6");
    head.extend_from_slice(&(sizes.len() as u32).to_le_bytes());
    head.extend_from_slice(b"options  \0");
    for (option, text) in [(TRACECLOCK, clock), (UNAME, uname)] {
        if !text.is_empty() {
            head.extend_from_slice(&option.to_le_bytes());
            head.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
            head.extend_from_slice(text.as_bytes());
            head.push(0);
        }
    }
    head.extend_from_slice(&DONE.to_le_bytes());
    head.extend_from_slice(b"flyrecord\0");
    // The positions of the pages end the head, and the pages begin at a multiple of their size.
    let size = head.len() + 16 * sizes.len();
    let start = size.next_multiple_of(descriptions.page_size);
    let mut place = start as u64;
    for bytes in sizes {
        head.extend_from_slice(&place.to_le_bytes());
        head.extend_from_slice(&bytes.to_le_bytes());
        place += bytes;
    }
    head.resize(start, 0);
    head
}

impl<W: Write, S: Read + Write + Seek> Sink for TraceDat<W, S> {
    fn event(&mut self, event: &Event) {
        if self.state.is_ok() {
            if event.pid != Pid::IDLE && !event.comm.is_empty() {
                self.comms.insert(event.pid, event.comm);
            }
            self.state = self.add(event);
        }
    }

    fn wants_decisions(&self) -> bool {
        self.decisions
    }
}
