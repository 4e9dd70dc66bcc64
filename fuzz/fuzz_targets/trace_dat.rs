#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use schedlab_trace::read::trace_dat;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(reader) = trace_dat::Reader::new(Cursor::new(bytes)) {
        reader.for_each(drop);
    }
});
