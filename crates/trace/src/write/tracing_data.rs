//! The descriptions at the start of trace.dat and in perf.data: the layout of pages, records and each event's fields,
//! and the names of tasks.

use std::collections::BTreeMap;

use schedlab_units::Pid;

use crate::binary::page::Layout;
use crate::binary::tracepoints::{
    KALLSYMS, PRINT, PRINT_ID, RecordWriter, TRACEPOINTS, id_of, id_of_text, text_format,
};
use crate::comm::Comm;

/// The layout of a page, in the kernel's form.
const HEADER_PAGE: &str = "\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;
";

/// The layout of a record's head, in the kernel's form.
const HEADER_EVENT: &str = "\
# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
";

/// Everything that describes the events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Descriptions {
    /// Bytes of a page.
    pub page_size: usize,
    /// The layout of a page, and of a record's head.
    pub header_page: Vec<u8>,
    pub header_event: Vec<u8>,
    /// Formats of the tracer's own events, and of all others by their system.
    pub ftrace: Vec<Vec<u8>>,
    pub systems: Vec<(String, Vec<Vec<u8>>)>,
    /// Names of functions, of formats in messages, and of tasks.
    pub kallsyms: Vec<u8>,
    pub printk: Vec<u8>,
    pub cmdlines: Vec<u8>,
}

impl Descriptions {
    /// The descriptions of the events that we write ourselves.
    pub fn own(records: &RecordWriter, comms: &BTreeMap<Pid, Comm>) -> Descriptions {
        Descriptions {
            page_size: Layout::USUAL.page_size,
            header_page: HEADER_PAGE.into(),
            header_event: HEADER_EVENT.into(),
            ftrace: vec![PRINT.format(PRINT_ID).into()],
            systems: formats(records),
            kallsyms: KALLSYMS.into(),
            printk: Vec::new(),
            cmdlines: cmdlines(comms),
        }
    }

    /// The block, in the version that the file format needs.
    pub fn block(&self, version: &str) -> Vec<u8> {
        let mut block = b"\x17\x08\x44tracing".to_vec();
        string(&mut block, version);
        // Little-endian, eight bytes per long.
        block.extend_from_slice(&[0, 8]);
        block.extend_from_slice(&(self.page_size as u32).to_le_bytes());
        for (name, text) in [("header_page", &self.header_page), ("header_event", &self.header_event)] {
            string(&mut block, name);
            long(&mut block, text);
        }
        list(&mut block, &self.ftrace);
        block.extend_from_slice(&(self.systems.len() as u32).to_le_bytes());
        for (system, formats) in &self.systems {
            string(&mut block, system);
            list(&mut block, formats);
        }
        for text in [&self.kallsyms, &self.printk] {
            block.extend_from_slice(&(text.len() as u32).to_le_bytes());
            block.extend_from_slice(text);
        }
        long(&mut block, &self.cmdlines);
        block
    }
}

/// Lines of a number and a name.
pub(super) fn cmdlines(comms: &BTreeMap<Pid, Comm>) -> Vec<u8> {
    let mut lines = Vec::new();
    for (pid, comm) in comms {
        lines.extend_from_slice(format!("{pid} ").as_bytes());
        lines.extend_from_slice(comm.as_bytes());
        lines.push(b'\n');
    }
    lines
}

/// The formats of all events, system by system.
fn formats(records: &RecordWriter) -> Vec<(String, Vec<Vec<u8>>)> {
    let mut systems: Vec<(String, Vec<Vec<u8>>)> = Vec::new();
    for (i, row) in TRACEPOINTS.iter().enumerate() {
        if systems.last().is_none_or(|(system, _)| system != row.system) {
            systems.push((row.system.to_owned(), Vec::new()));
        }
        if let Some((_, formats)) = systems.last_mut() {
            formats.push(row.format(id_of(i)).into());
        }
    }
    let texts = records.texts().iter().enumerate();
    let texts: Vec<Vec<u8>> = texts.map(|(n, name)| text_format(name, id_of_text(n)).into()).collect();
    if !texts.is_empty() {
        systems.push(("schedlab".to_owned(), texts));
    }
    systems
}

/// Text with a NUL after it.
fn string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Text after its length.
fn long(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text);
}

/// Texts after their number.
fn list(out: &mut Vec<u8>, texts: &[Vec<u8>]) {
    out.extend_from_slice(&(texts.len() as u32).to_le_bytes());
    texts.iter().for_each(|text| long(out, text));
}
