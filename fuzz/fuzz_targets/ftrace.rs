#![no_main]

use libfuzzer_sys::fuzz_target;
use schedlab_trace::read::ftrace;

fuzz_target!(|bytes: &[u8]| {
    ftrace::Reader::new(bytes).for_each(drop);
});
