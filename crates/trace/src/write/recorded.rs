//! A trace.dat made of unchanged pages of the kernel.
//!
//! Nothing is decoded: a head made from tracefs's own descriptions is followed by the pages of CPU 0, of CPU 1 and so
//! on, which the caller copies there.

use std::collections::BTreeMap;

use schedlab_units::Pid;

use super::trace_dat::head;
use super::tracing_data::{Descriptions, cmdlines};
use crate::comm::Comm;

/// The kernel's description of its pages. The texts are those of the files in tracefs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Bytes of a page.
    pub page_size: usize,
    /// `events/header_page`.
    pub header_page: Vec<u8>,
    /// `events/header_event`.
    pub header_event: Vec<u8>,
    /// `events/SYSTEM/EVENT/format` by system, including `ftrace`.
    pub formats: BTreeMap<String, Vec<Vec<u8>>>,
    /// `/proc/kallsyms`; may be empty, then functions are printed as numbers.
    pub kallsyms: Vec<u8>,
    /// `printk_formats`.
    pub printk_formats: Vec<u8>,
    /// The names of tasks.
    pub comms: BTreeMap<Pid, Comm>,
    /// `trace_clock`, with the chosen clock in brackets.
    pub clock: String,
    /// Kernel and machine, as printed by `uname`.
    pub uname: String,
}

impl Recorded {
    /// The file up to its first page, given the size of each CPU's pages.
    pub fn head(&self, bytes_of_cpu: &[u64]) -> Vec<u8> {
        let mut systems = self.formats.clone();
        let ftrace = systems.remove("ftrace").unwrap_or_default();
        let descriptions = Descriptions {
            page_size: self.page_size,
            header_page: self.header_page.clone(),
            header_event: self.header_event.clone(),
            ftrace,
            systems: systems.into_iter().collect(),
            kallsyms: self.kallsyms.clone(),
            printk: self.printk_formats.clone(),
            cmdlines: cmdlines(&self.comms),
        };
        head(&descriptions, &self.clock, &self.uname, bytes_of_cpu)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::binary::page::PageWriter;
    use crate::read::{Record, trace_dat};

    const FORMAT: &str = "\
name: sched_process_wait
ID: 77
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;

print fmt: \"comm=%s pid=%d prio=%d\", REC->comm, REC->pid, REC->prio
";

    #[test]
    fn pages_of_the_kernel_are_read_by_its_own_formats() {
        let recorded = Recorded {
            page_size: 4096,
            header_page: b"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n".into(),
            formats: [("sched".to_owned(), vec![FORMAT.into()])].into(),
            comms: [(Pid(812), Comm::from("make"))].into(),
            clock: "local [mono] boot".into(),
            uname: "Linux 6.12".into(),
            ..Recorded::default()
        };
        let mut record = vec![77, 0, 0, 0, 0x2c, 3, 0, 0];
        record.extend_from_slice(b"make\0\0\0\0\0\0\0\0\0\0\0\0");
        record.extend_from_slice(&[0x2c, 3, 0, 0, 120, 0, 0, 0]);
        let mut page = PageWriter::new();
        assert!(page.push(1_000_000_007, &record));
        // The first CPU recorded nothing.
        let mut file = recorded.head(&[0, 4096]);
        assert_eq!(file.len() % 4096, 0);
        file.extend(page.take());
        let reader = trace_dat::Reader::new(Cursor::new(&file)).unwrap();
        let info = reader.info();
        assert_eq!((info.nr_cpus, info.clock.as_str(), info.uname.as_str()), (2, "mono", "Linux 6.12"));
        let told: Vec<String> = reader
            .map(|record| match record.unwrap() {
                Record::Event(event) => format!("{event:?}"),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(told.len(), 1);
        for part in ["time: Time(1000000007)", "CpuId(1)", "Pid(812)", "SchedProcessWait", "make", "120"] {
            assert!(told[0].contains(part), "{part} in {}", told[0]);
        }
    }
}
