//! Prints what an audit finds in recorded folders: `figures traces/6.1/2x2x4/pipes ...`.

use std::fs;
use std::io::BufReader;
use std::path::Path;

use schedlab_audit::{Answer, Audit, Decision, Options, apply_features, apply_tunables};
use schedlab_sched::Kernel;
use schedlab_topology::{SavedSysfs, Topology};
use schedlab_trace::read::{feed, ftrace};

fn main() {
    let verbose = std::env::var("V").map_or(0, |v| v.parse::<usize>().unwrap_or(1));
    for folder in std::env::args().skip(1) {
        let folder = Path::new(&folder);
        let machine = folder.parent().unwrap();
        let version = machine.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(machine.join("facts/topology.txt")).unwrap();
        let topology = Topology::from_sysfs("x", &SavedSysfs::from_lines("x", &text).unwrap()).unwrap();
        let mut kernel = Kernel::parse(&format!("v{version}")).unwrap();
        let fact = |name: &str| fs::read_to_string(machine.join("facts").join(name)).unwrap();
        apply_features(&mut kernel, &fact("sched_features.txt"));
        apply_tunables(&mut kernel, &fact("debug_sched.txt"), topology.online().weight());
        let mut options = Options { stories: verbose, ..Options::default() };
        let command = fs::read_to_string(folder.join("cmd.txt")).unwrap_or_default();
        options.affinity = schedlab_audit::hints_of_command(&command, topology.nr_cpus());
        let file = fs::File::open(folder.join("trace.txt.gz")).unwrap();
        let mut audit = Audit::new(&topology, &kernel, options);
        feed(ftrace::Reader::new(BufReader::new(flate2::read::GzDecoder::new(file))), &mut audit).unwrap();
        let (report, _) = audit.finish();
        print!("{:44}", folder.display());
        for decision in Decision::ALL {
            let counts = report.of(decision).counts;
            if counts.all() == 0 {
                continue;
            }
            print!(
                " {} {:.1}% ({}+{} d{} u{})",
                decision.name(),
                counts.agreement().unwrap_or(0.0) * 100.0,
                counts.agrees,
                counts.agrees_in_set,
                counts.differs,
                counts.undecided
            );
        }
        println!();
        if verbose > 0 {
            for decision in Decision::ALL {
                let of = report.of(decision);
                for (reason, counts) in &of.by_reason {
                    println!("    {:8} {reason:24} {counts:?}", decision.name());
                }
                for (hidden, counts) in &of.by_hidden {
                    println!("    {:8} hidden {hidden:20} {counts:?}", decision.name());
                }
            }
            for (fact, carried) in &report.carried {
                println!("    carried {fact:24} {carried:?}");
            }
            for story in &report.stories {
                assert_eq!(story.answer, Answer::Differs);
                println!("  {story}");
            }
        }
    }
}
