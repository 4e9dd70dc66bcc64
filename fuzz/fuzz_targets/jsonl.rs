#![no_main]

use libfuzzer_sys::fuzz_target;
use schedlab_trace::read::jsonl;

fuzz_target!(|bytes: &[u8]| {
    jsonl::Reader::new(bytes).for_each(drop);
});
