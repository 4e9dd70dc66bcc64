#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use schedlab_trace::read::perfetto;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(reader) = perfetto::Reader::new(Cursor::new(bytes)) {
        reader.for_each(drop);
    }
});
