//! Reads recordings of any format and does nothing with the events: `read FILE ...`. It prints the number of events of
//! each, so that instructions for each event can be counted: `valgrind --tool=callgrind target/quick/examples/read FILE`.

use std::fs::File;
use std::io::Cursor;

use schedlab_trace::NullSink;
use schedlab_trace::read::{feed, open};

fn main() {
    for path in std::env::args().skip(1) {
        let file = File::open(&path).expect("the file exists");
        let reader = open(file, || Ok(Cursor::new(Vec::new()))).expect("a recording");
        let summary = feed(reader, &mut NullSink).expect("the file can be read");
        println!("{path}: {} events, {} gaps", summary.events, summary.gaps);
    }
}
