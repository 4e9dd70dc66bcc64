//! What trace.dat and perf.data begin their descriptions with: how pages, records and
//! each event's fields are laid out, and what tasks are called.

use std::collections::BTreeMap;

use schedlab_units::Pid;

use crate::binary::page::Layout;
use crate::binary::tracepoints::{
    KALLSYMS, PRINT, PRINT_ID, RecordWriter, TRACEPOINTS, id_of, id_of_text, text_format,
};
use crate::comm::Comm;

/// The layout of a page, as kernels tell it.
const HEADER_PAGE: &str = "\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;
";

/// The layout of a record's head, as kernels tell it.
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

/// The block, of the version that the file's format asks for.
pub(super) fn tracing_data(version: &str, records: &RecordWriter, comms: &BTreeMap<Pid, Comm>) -> Vec<u8> {
    let mut block = b"\x17\x08\x44tracing".to_vec();
    string(&mut block, version);
    // Little-endian, eight bytes to a long.
    block.extend_from_slice(&[0, 8]);
    block.extend_from_slice(&(Layout::USUAL.page_size as u32).to_le_bytes());
    for (name, text) in [("header_page", HEADER_PAGE), ("header_event", HEADER_EVENT)] {
        string(&mut block, name);
        long(&mut block, text);
    }
    block.extend_from_slice(&1u32.to_le_bytes());
    long(&mut block, &PRINT.format(PRINT_ID));
    formats(&mut block, records);
    block.extend_from_slice(&(KALLSYMS.len() as u32).to_le_bytes());
    block.extend_from_slice(KALLSYMS.as_bytes());
    // No formats of printk.
    block.extend_from_slice(&0u32.to_le_bytes());
    let mut cmdlines = Vec::new();
    for (pid, comm) in comms {
        cmdlines.extend_from_slice(format!("{pid} ").as_bytes());
        cmdlines.extend_from_slice(comm.as_bytes());
        cmdlines.push(b'\n');
    }
    block.extend_from_slice(&(cmdlines.len() as u64).to_le_bytes());
    block.extend_from_slice(&cmdlines);
    block
}

/// The formats of all events, system by system.
fn formats(block: &mut Vec<u8>, records: &RecordWriter) {
    let mut systems: Vec<(&str, Vec<String>)> = Vec::new();
    for (i, row) in TRACEPOINTS.iter().enumerate() {
        if systems.last().is_none_or(|(system, _)| *system != row.system) {
            systems.push((row.system, Vec::new()));
        }
        if let Some((_, formats)) = systems.last_mut() {
            formats.push(row.format(id_of(i)));
        }
    }
    let texts = records.texts().iter().enumerate();
    let texts: Vec<String> = texts.map(|(n, name)| text_format(name, id_of_text(n))).collect();
    if !texts.is_empty() {
        systems.push(("schedlab", texts));
    }
    block.extend_from_slice(&(systems.len() as u32).to_le_bytes());
    for (system, formats) in systems {
        string(block, system);
        block.extend_from_slice(&(formats.len() as u32).to_le_bytes());
        formats.iter().for_each(|format| long(block, format));
    }
}

/// Text with a NUL behind it.
fn string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Text behind its length.
fn long(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}
