#![no_main]

mod text;

use libfuzzer_sys::fuzz_target;
use schedlab::replay::{Form, Listener};
use schedlab::trace::Sink;

// What tasks did is learned from whatever was recorded, and made into programs.
fuzz_target!(|bytes: &[u8]| {
    let Some((topology, _, events)) = text::recording(bytes) else { return };
    let mut listener = Listener::new();
    events.iter().for_each(|event| listener.event(event));
    if let Ok(recorded) = listener.finish("fuzz") {
        let _ = recorded.row(&recorded.own(topology.clone(), Form::USUAL));
    }
});
