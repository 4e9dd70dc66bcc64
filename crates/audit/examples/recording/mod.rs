//! A recording for the examples: a folder of `traces/`, read completely.

use std::fs;
use std::io::Read;
use std::path::Path;

use schedlab_recording::{FactTexts, Facts};
use schedlab_trace::Event;
use schedlab_trace::read::{feed, ftrace};

/// A recording and its fact files.
pub struct Recording {
    pub facts: Facts,
    pub text: Vec<u8>,
}

impl Recording {
    pub fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        feed(ftrace::Reader::new(&self.text[..]), &mut events).unwrap();
        events
    }
}

/// Reads `KERNEL/MACHINE/LOAD`.
pub fn read(folder: &Path) -> Recording {
    let texts = FactTexts::beside(folder, |path| fs::read_to_string(path)).unwrap();
    let facts = Facts::of_trace(folder, &texts).unwrap();
    let mut text = Vec::new();
    let file = fs::File::open(folder.join("trace.txt.gz")).unwrap();
    flate2::read::GzDecoder::new(file).read_to_end(&mut text).unwrap();
    Recording { facts, text }
}
