#![no_main]

mod text;

use libfuzzer_sys::fuzz_target;
use schedlab::audit::{Audit, Options};
use schedlab::trace::Sink;

// Whatever was recorded is followed to its end, the worst disagreements explained.
fuzz_target!(|bytes: &[u8]| {
    let Some((topology, kernel, events)) = text::recording(bytes) else { return };
    let options = Options { nearest: true, stories: 10, ..Options::default() };
    let mut audit = Audit::new(topology, kernel, options);
    events.iter().for_each(|event| audit.event(event));
    audit.finish();
});
