//! A recording is recognised and read whatever its format and compression.

mod common;

use std::io::{Cursor, Write};

use schedlab_trace::read::{Reader, Record, ftrace, open};
use schedlab_trace::write::{Extras, Ftrace, Jsonl, Perfetto, Precision, TraceDat};
use schedlab_trace::{Event, Sink};

fn memory() -> std::io::Result<Cursor<Vec<u8>>> {
    Ok(Cursor::new(Vec::new()))
}

fn events(reader: Reader) -> Vec<Event> {
    reader
        .map(|record| match record.expect("memory can be read") {
            Record::Event(event) => event,
            other => panic!("{other:?}"),
        })
        .collect()
}

/// A recording, written in each format.
fn files() -> Vec<(&'static str, Vec<u8>, usize)> {
    let text = include_bytes!("data/tracefs-6.1.txt");
    let recorded: Vec<Event> = ftrace::Reader::new(&text[..])
        .filter_map(|record| match record.unwrap() {
            Record::Event(event) => Some(event),
            _ => None,
        })
        .collect();
    fn feed<S: Sink>(events: &[Event], mut sink: S) -> S {
        events.iter().for_each(|event| sink.event(event));
        sink
    }
    let spool = Cursor::new(Vec::new());
    let n = recorded.len();
    let data = include_bytes!("data/perf-sched.data.gz");
    let script = include_bytes!("data/perf-sched.script.txt.gz");
    vec![
        ("ftrace", feed(&recorded, Ftrace::new(Vec::new(), Precision::Nano)).finish().unwrap(), n),
        ("jsonl", feed(&recorded, Jsonl::new(Vec::new())).finish().unwrap(), n),
        ("perfetto", feed(&recorded, Perfetto::new(Vec::new(), Extras::ALL)).finish().unwrap(), n),
        ("trace.dat", feed(&recorded, TraceDat::new(Vec::new(), spool, 16)).finish().unwrap(), n),
        ("report", include_bytes!("data/report-plugin.txt").to_vec(), 58),
        ("perf.data", unpacked(data), 773),
        ("perf script", unpacked(script), 773),
    ]
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut bytes).unwrap();
    bytes
}

fn kind(reader: &Reader) -> &'static str {
    match reader {
        Reader::Ftrace(_) => "ftrace",
        Reader::PerfScript(_) => "perf script",
        Reader::Jsonl(_) => "jsonl",
        Reader::Perfetto(_) => "perfetto",
        Reader::TraceDat(_) => "trace.dat",
        Reader::PerfData(_) => "perf.data",
        Reader::Cut(_, reader) => kind(reader),
    }
}

#[test]
fn every_format_is_recognised_compressed_or_not() {
    for (name, file, count) in files() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&file).unwrap();
        let packed = [file.clone(), gzip.finish().unwrap(), zstd::encode_all(&file[..], 1).unwrap()];
        let mut plain = None;
        for bytes in packed {
            let reader = open(Cursor::new(bytes), memory).expect(name);
            assert_eq!(kind(&reader), if name == "report" { "ftrace" } else { name });
            let found = events(reader);
            assert_eq!(found.len(), count, "{name}");
            assert_eq!(*plain.get_or_insert_with(|| found.clone()), found, "{name}");
        }
    }
}

#[test]
fn what_is_not_known_is_refused_with_what_would_be() {
    for (bytes, expected) in [
        (&b""[..], "byte 0x0: the file is empty; was the recording started?"),
        (b"hello\nworld\n", "byte 0x0: the file is in none of the formats that are known: trace text"),
        (b"\n\n\n", "byte 0x0: the file is empty"),
        (&[0x1f, 0x8b, 1, 2, 3], "byte 0x0: the compressed file is cut short or damaged"),
        (
            b"  perf 20950 56496.336167:  sched:sched_waking: comm=a pid=18 prio=0 target_cpu=000\n",
            "byte 0x0: the text of perf script lacks a column of tasks, CPUs or times; print it with perf script -F",
        ),
        (
            b"\xfd7zXZ\0\0\x04",
            "byte 0x0: the file is compressed by xz, which is not read; unpack it first: unxz",
        ),
        (
            b"BZh91AY&SY",
            "byte 0x0: the file is compressed by bzip2, which is not read; unpack it first: bunzip2",
        ),
        (b"\x17\x08\x44tracing6\0\0", "byte 0xd: the file ends inside its header; it was cut short"),
    ] {
        let error = open(Cursor::new(bytes.to_vec()), memory).err().expect("an error").to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn of_a_compressed_file_that_is_cut_short_the_rest_is_read() {
    for (name, file, count) in files().into_iter().filter(|(name, ..)| *name != "perf.data") {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&file).unwrap();
        let mut packed = gzip.finish().unwrap();
        packed.truncate(packed.len() - 3);
        let (mut found, mut told) = (0, Vec::new());
        for record in open(Cursor::new(packed), memory).expect(name) {
            match record.unwrap() {
                Record::Event(_) => found += 1,
                Record::Gap(gap) => told.push(gap.to_string()),
                Record::Lost(_) => {}
            }
        }
        assert!(found > 0 && found <= count, "{name}: {found}");
        let tells = |gap: &String| gap.contains("nothing can be read") || gap.contains("cut short");
        assert!(told.iter().any(tells), "{name}: {told:?}");
    }
}

const LINE: &str = "            make-7       [003] d..2.     4.000001: sched_wake_idle_without_ipi: cpu=2\n";

#[test]
fn a_byte_order_mark_and_the_page_of_systrace_are_passed_over() {
    let page = format!(
        "<!DOCTYPE html>\n<script>viewer</script>\n<script class=\"trace-data\" type=\"application/text\">\n\
         # tracer: nop\n#\n{LINE}</script>\n</html>\n"
    );
    for text in [LINE.to_owned(), format!("\u{feff}{LINE}"), page.clone(), format!("\u{feff}{page}")] {
        let packed = zstd::encode_all(text.as_bytes(), 1).unwrap();
        for bytes in [text.into_bytes(), packed] {
            let reader = open(Cursor::new(bytes), memory).unwrap();
            assert_eq!(kind(&reader), "ftrace");
            assert_eq!(events(reader).len(), 1);
        }
    }
}

#[test]
fn what_is_no_recording_is_refused_by_what_it_lacks() {
    let utf_16: Vec<u8> = "\u{feff}# tracer: nop\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let table = [
        (&utf_16[..], "UTF-16"),
        (
            b" [000] 154.892148: sched_waking: comm=sugov:4 pid=491 prio=-1 target_cpu=007\n",
            "columns of tasks",
        ),
        (b"<html>\nno trace\n</html>\n", "a page without the text of a trace"),
    ];
    for (bytes, said) in table {
        let error = open(Cursor::new(bytes.to_vec()), memory).err().expect(said).to_string();
        assert!(error.contains(said), "{error}");
    }
}
