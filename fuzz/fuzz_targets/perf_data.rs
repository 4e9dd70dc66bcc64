#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use schedlab_trace::read::perf_data;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(reader) = perf_data::Reader::new(Cursor::new(bytes)) {
        reader.for_each(drop);
    }
});
