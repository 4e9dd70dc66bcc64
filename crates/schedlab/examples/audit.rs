//! Reads a recording and audits it: `cargo run --example audit -- traces/6.12/1x1x8/pipes`.
//!
//! The folder contains `trace.txt.gz`; the machine, the kernel and the tasks' masks come from the facts beside it.

use std::fs::{File, read_to_string};
use std::io::BufReader;
use std::path::Path;

use schedlab::audit::{Audit, Options};
use schedlab::recording::{FactTexts, Facts};
use schedlab::trace::read::{feed, ftrace};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("name the folder of a recording")?;
    let folder = Path::new(&folder);
    let texts = FactTexts::beside(folder, |path| read_to_string(path))?;
    let facts = Facts::of_trace(folder, &texts)?;
    let mut audit = Audit::new(&facts.topology, &facts.kernel, Options::of(&facts));
    let text = flate2::read::GzDecoder::new(File::open(folder.join("trace.txt.gz"))?);
    feed(ftrace::Reader::new(BufReader::new(text)), &mut audit)?;
    let (report, _) = audit.finish();
    println!("{} events on {} under {}", report.events, facts.topology.name, facts.kernel.name);
    for (kind, of) in [("wake-ups", &report.wakeup), ("forks", &report.fork), ("picks", &report.pick)] {
        let agreement =
            of.counts.agreement().map_or("none".to_owned(), |part| format!("{:.2} %", 100.0 * part));
        println!("{kind}: {agreement} of {} agree", of.counts.decided());
    }
    for story in report.stories.iter().take(3) {
        println!("{story}");
    }
    Ok(())
}
