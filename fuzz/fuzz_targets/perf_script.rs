#![no_main]

use libfuzzer_sys::fuzz_target;
use schedlab_trace::read::perf_script;

fuzz_target!(|bytes: &[u8]| {
    perf_script::Reader::new(bytes).for_each(drop);
});
