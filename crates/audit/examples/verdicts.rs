//! Prints every verdict over recordings, to compare before and after a change that must not change any: `verdicts
//! [--text] [--groups] [--perf] traces/6.1/2x2x4/pipes ...` prints a hash for each recording, or the verdicts.
//! `--groups` assumes that groups are hidden; `--perf` assumes a recording by `perf sched record`, which leaves out
//! `sched_wakeup`.

mod recording;

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use schedlab_audit::{Audit, Options};
use schedlab_trace::{Kind, Sink};

fn main() {
    let (options, folders): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    let has = |name: &str| options.iter().any(|option| option == name);
    for folder in folders {
        let folder = Path::new(&folder);
        let recording = recording::read(folder);
        let events = recording.events();
        let facts = recording.facts;
        let options = Options {
            groups_hidden: facts.groups_hidden.is_some() || has("--groups"),
            keep_verdicts: true,
            nearest: true,
            stories: 3,
            ..Options::of(&facts)
        };
        let mut audit = Audit::new(&facts.topology, &facts.kernel, options);
        for event in &events {
            if !has("--perf") || !matches!(event.kind, Kind::SchedWakeup { .. }) {
                audit.event(event);
            }
        }
        let (report, _) = audit.finish();
        let mut lines: Vec<String> =
            report.verdicts.iter().map(|verdict| format!("{verdict} {:?}", verdict.hidden)).collect();
        lines.push(serde_json::to_string(&report).unwrap());
        if has("--text") {
            lines.iter().for_each(|line| println!("{line}"));
        }
        let mut hasher = DefaultHasher::new();
        lines.iter().for_each(|line| hasher.write(line.as_bytes()));
        println!("{:50} {:016x} {} events", folder.display(), hasher.finish(), report.events);
    }
}
