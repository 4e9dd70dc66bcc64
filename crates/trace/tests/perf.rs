//! perf.data and the text of perf script: the same recording in both, and damaged versions of it.

use std::io::{Cursor, Read};

use schedlab_topology::CpuId;
use schedlab_trace::read::{Error, Record, perf_data, perf_script};
use schedlab_trace::{Comm, Event, Flags, Kind};

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).expect("it is whole");
    bytes
}

fn recording() -> Vec<u8> {
    unpacked(include_bytes!("data/perf-sched.data.gz"))
}

fn records(records: impl Iterator<Item = Result<Record, Error>>) -> Vec<Record> {
    records.map(|record| record.expect("memory can be read")).collect()
}

fn read(file: &[u8]) -> Vec<Record> {
    records(perf_data::Reader::new(Cursor::new(file)).expect("a perf.data"))
}

/// The events, without what only one of the two forms contains.
fn events(records: Vec<Record>) -> Vec<Event> {
    let event = |record| match record {
        Record::Event(mut event) => {
            (event.flags, event.tgid) = (Flags::UNKNOWN, None);
            // perf shows a kthread's work after its name, and most other names are removed.
            if !event.comm.as_bytes().starts_with(b"p") {
                event.comm = Comm::default();
            }
            event
        }
        other => panic!("{other:?}"),
    };
    records.into_iter().map(event).collect()
}

#[test]
fn a_recording_holds_what_perf_script_prints() {
    let file = recording();
    let reader = perf_data::Reader::new(Cursor::new(&file)).unwrap();
    let info = reader.info();
    assert_eq!((info.nr_cpus, info.arch.as_str()), (Some(2), "x86_64"));
    assert_eq!(info.topology.keys().copied().collect::<Vec<_>>(), [13, 14, 20]);
    let found = events(records(reader));
    let text = unpacked(include_bytes!("data/perf-sched.script.txt.gz"));
    let printed = events(records(perf_script::Reader::new(&text[..])));
    assert_eq!((found.len(), printed.len()), (773, 773));
    for (found, printed) in found.into_iter().zip(printed) {
        assert_eq!(found, printed);
    }
}

#[test]
fn flags_and_processes_are_in_the_file_alone() {
    let known = read(&recording()).into_iter().all(|record| match record {
        Record::Event(event) => event.flags.is_known(),
        _ => false,
    });
    assert!(known);
}

/// Where the records of a file are.
fn data(file: &[u8]) -> (usize, usize) {
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    (word(40), word(48))
}

/// A record with its head.
fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let size = (8 + body.len()) as u16;
    [&kind.to_le_bytes()[..], &[0, 0], &size.to_le_bytes(), body].concat()
}

/// The file with its records replaced.
fn with_data(file: &[u8], data_new: &[u8]) -> Vec<u8> {
    let (start, size) = data(file);
    let moved = data_new.len() as i64 - size as i64;
    let mut out = [&file[..start], data_new, &file[start + size..]].concat();
    out[48..56].copy_from_slice(&(data_new.len() as u64).to_le_bytes());
    // The table after the records contains the positions of the sections.
    let table = start + data_new.len();
    for i in 0..6 {
        let at = table + 16 * i;
        let offset = i64::from_le_bytes(out[at..at + 8].try_into().unwrap()) + moved;
        out[at..at + 8].copy_from_slice(&offset.to_le_bytes());
    }
    out
}

#[test]
fn compressed_records_are_read_like_plain_ones() {
    let file = recording();
    let (start, size) = data(&file);
    // One stream of zstd, cut anywhere, also inside a record.
    let stream = zstd::encode_all(&file[start..start + size], 1).unwrap();
    let first: Vec<u8> = stream.chunks(1000).flat_map(|chunk| record(81, chunk)).collect();
    assert_eq!(read(&with_data(&file, &first)), read(&file));
    let sized = |chunk: &[u8]| [&(chunk.len() as u64).to_le_bytes()[..], chunk, &[0; 3]].concat();
    let second: Vec<u8> = stream.chunks(777).flat_map(|chunk| record(83, &sized(chunk))).collect();
    assert_eq!(read(&with_data(&file, &second)), read(&file));
}

#[test]
fn a_recording_through_a_pipe_is_read_like_a_file() {
    let file = recording();
    let (start, size) = data(&file);
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let mut pipe = b"PERFILE2".to_vec();
    pipe.extend_from_slice(&16u64.to_le_bytes());
    let (attr_size, attrs, attrs_size) = (word(16), word(24), word(32));
    for entry in file[attrs..attrs + attrs_size].chunks(attr_size) {
        let (attr, ids) = entry.split_at(attr_size - 16);
        let ids_at = u64::from_le_bytes(ids[..8].try_into().unwrap()) as usize;
        let ids_size = u64::from_le_bytes(ids[8..].try_into().unwrap()) as usize;
        pipe.extend(record(64, &[attr, &file[ids_at..ids_at + ids_size]].concat()));
    }
    let formats = word(start + size)..word(start + size) + word(start + size + 8);
    pipe.extend(record(66, &(formats.len() as u32).to_le_bytes()));
    pipe.extend_from_slice(&file[formats.clone()]);
    pipe.resize(pipe.len() + formats.len().next_multiple_of(8) - formats.len(), 0);
    pipe.extend_from_slice(&file[start..start + size]);
    assert_eq!(read(&pipe), read(&file));
}

#[test]
fn losses_and_damage_are_reported_where_they_are() {
    let file = recording();
    let (start, size) = data(&file);
    let mut records = file[start..start + size].to_vec();
    // An id, a count, then what ends each record: task, time, CPU, id.
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let identifier = u64::from_le_bytes(file[word_of(&file)..word_of(&file) + 8].try_into().unwrap());
    records.extend(record(2, &words(&[identifier, 12, 0, 6_201_779_375_250, 1, identifier])));
    records.extend(record(9, &words(&[identifier, 0])));
    records.extend_from_slice(&[1, 2, 3, 4, 5, 6, 7, 0, 9]);
    let found = read(&with_data(&file, &records));
    let told: Vec<String> = found
        .iter()
        .filter_map(|record| match record {
            Record::Event(_) => None,
            Record::Lost(lost) => Some(lost.to_string()),
            Record::Gap(gap) => Some(gap.why.clone()),
        })
        .collect();
    let lost = format!("12 events lost on CPU {}", CpuId(1));
    let short = "a record is shorter than its head; the rest makes no sense".to_owned();
    assert_eq!(told, ["a sample is not whole".to_owned(), lost, short]);
    assert_eq!(found.len(), 773 + 3);
}

#[test]
fn what_was_lost_counts_once() {
    let file = recording();
    let (start, size) = data(&file);
    let identifier = u64::from_le_bytes(file[word_of(&file)..word_of(&file) + 8].try_into().unwrap());
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let time = 6_201_779_375_250;
    // The kernel's record, that of a processor which lost samples, and perf's count at the end.
    let lost = |count| record(2, &words(&[identifier, count, 0, time, 1, identifier]));
    let samples = |count| record(13, &words(&[count, 0, time, 1, identifier]));
    let total = |count| record(13, &words(&[count, 0, 0, 0, identifier]));
    for (records, expected) in [
        (vec![lost(12)], vec!["12 events lost on CPU 1"]),
        (vec![lost(12), total(12)], vec!["12 events lost on CPU 1"]),
        (
            vec![lost(2), lost(10), total(5), total(7)],
            vec!["2 events lost on CPU 1", "10 events lost on CPU 1"],
        ),
        (vec![lost(12), total(15)], vec!["12 events lost on CPU 1", "3 events lost"]),
        (vec![total(5), total(0)], vec!["5 events lost"]),
        (vec![samples(4)], vec!["4 events lost on CPU 1"]),
        (vec![samples(4), lost(3), total(3)], vec!["4 events lost on CPU 1", "3 events lost on CPU 1"]),
    ] {
        let found = read(&with_data(&file, &[&file[start..start + size], &records.concat()].concat()));
        let told: Vec<String> = found
            .iter()
            .filter_map(|record| match record {
                Record::Lost(lost) => Some(lost.to_string()),
                _ => None,
            })
            .collect();
        assert_eq!(told, expected);
    }
}

/// The position of the first event's id.
fn word_of(file: &[u8]) -> usize {
    let attr_size = u64::from_le_bytes(file[16..24].try_into().unwrap()) as usize;
    let attrs = u64::from_le_bytes(file[24..32].try_into().unwrap()) as usize;
    u64::from_le_bytes(file[attrs + attr_size - 16..attrs + attr_size - 8].try_into().unwrap()) as usize
}

#[test]
fn a_file_without_its_end_says_why() {
    let file = recording();
    let why = |file: &[u8]| perf_data::Reader::new(Cursor::new(file)).err().expect("an error").to_string();
    let cut = why(&file[..file.len() / 2]);
    assert!(cut.contains("the file is cut short"), "{cut}");
    let mut killed = file[..file.len() / 2].to_vec();
    killed[48..56].fill(0);
    let killed = why(&killed);
    assert!(killed.contains("perf record did not come to its end"), "{killed}");
}

#[test]
fn a_file_of_several_is_refused() {
    let mut file = recording();
    // The last feature with a section is replaced by the one that marks a folder.
    let word = u64::from_le_bytes(file[72..80].try_into().unwrap());
    let last = 63 - word.leading_zeros();
    file[72..80].copy_from_slice(&(word & !(1 << last) | 1 << 24).to_le_bytes());
    let why = perf_data::Reader::new(Cursor::new(file)).err().expect("an error").to_string();
    assert!(why.contains("the recording is spread over a folder; record without --threads"), "{why}");
}

#[test]
fn what_is_no_perf_data_is_refused() {
    let error = perf_data::Reader::new(Cursor::new(b"hello")).err().expect("an error");
    assert_eq!(error.to_string(), "byte 0x0: this is not a perf.data file: it does not begin with its mark");
}

#[test]
fn switches_show_what_ran_before_and_after() {
    let mut current = [None; 2];
    for record in read(&recording()) {
        let Record::Event(event) = record else { panic!("{record:?}") };
        if let Kind::SchedSwitch { prev_pid, next_pid, .. } = event.kind {
            let before = current[event.cpu.index()].replace(next_pid);
            assert!(before.is_none_or(|before| before == prev_pid), "{event:?}");
        }
    }
}
