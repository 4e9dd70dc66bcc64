//! `schedlab detect`: what is wrong in a recording.

use schedlab::html::{Packer, ROOM};
use schedlab::pages;
use schedlab::report::detect::{Detect, Detected, Options, Thresholds, Who};
use schedlab::timeline::Builder;
use schedlab::topology::{CpuMask, NR_CPUS_MAX, Topology};
use schedlab::trace::{Comm, Tee};
use schedlab::units::Pid;
use serde::Serialize;

use crate::args;
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::recorded::Recorded;
use crate::recording::Missing;
use crate::{facts, machine};

/// What is found and what is missing, as JSON.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    detected: &'a Detected,
    missing: Missing,
}

/// Runs all detectors.
pub fn run(args: &args::Detect) -> Result<Status, Error> {
    let recorded = Recorded::one(&args.file)?;
    let topology: Option<Topology> = match (&args.machine, &args.facts) {
        (Some(name), _) => Some(machine::machine(name)?.topology),
        (None, Some(facts)) => Some(machine::folder(facts)?),
        (None, None) => recorded.machine()?,
    };
    if let (Some(named), Some(topology)) = (&args.machine, &topology) {
        facts::tell_other_machine(topology, named, "--machine", None, &recorded);
    }
    let folder = args.facts.as_deref().or(recorded.facts.as_deref());
    let affinity = args.affinity.iter().map(|text| affinity(text)).collect::<Result<_, _>>()?;
    let thresholds = Thresholds { worst: args.most, ..Thresholds::default() };
    let mut packer = Packer::new(ROOM);
    let title = args.file.display().to_string();
    let give = |chunk| packer.add(chunk);
    let builder = args.html.is_some().then(|| Builder::new(&title, topology.clone(), give));
    let detect = Detect::new(Options { topology, affinity, thresholds });
    let mut sinks = Tee(detect, builder);
    let kernel = facts::known_kernel(args.kernel.as_deref(), folder, &recorded)?;
    let mut recording = recorded.open()?;
    if let Some(kernel) = &kernel {
        recording = recording.of_kernel(kernel);
    }
    let missing = recording.feed(&mut sinks, || false)?.missing;
    let Tee(detect, builder) = sinks;
    let mut detected = detect.finish();
    if let Some(kernel) = kernel {
        detected.keep_ways(|switch| kernel.is_turned_by(switch));
    }
    if let (Some(path), Some(builder)) = (&args.html, builder) {
        let head = builder.finish();
        let page = pages::detected(&title, &detected, packer.finish(head));
        output::write(Some(path), |out| page.write(out))?;
    }
    match args.format {
        Format::Json => output::print_json(&Told { detected: &detected, missing })?,
        Format::Text => output::print(|out| out.write_all(detected.text().as_bytes()))?,
    }
    Ok(Status::Done)
}

/// `812=0-3` or `stream=0,16`.
fn affinity(text: &str) -> Result<(Who, CpuMask), Error> {
    let wrong = |why: &str| Error::new(format!("--affinity {text}: {why}"));
    let (task, list) = text.rsplit_once('=').ok_or_else(|| wrong("write it like 812=0-3 or stream=0,16"))?;
    let who = task.parse().map_or_else(|_| Who::Comm(Comm::from(task)), |pid| Who::Pid(Pid(pid)));
    let mask = CpuMask::parse_list(list, NR_CPUS_MAX).map_err(|error| wrong(&error))?;
    if mask.is_empty() { Err(wrong("a task needs a CPU")) } else { Ok((who, mask)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_named_by_number_or_name() {
        let (who, mask) = affinity("812=0-3").unwrap();
        assert_eq!((who, mask.to_string().as_str()), (Who::Pid(Pid(812)), "0-3"));
        assert_eq!(affinity("a=b=1,5").unwrap().0, Who::Comm(Comm::from("a=b")));
        for wrong in ["812", "812=", "812=x", "812=9-3"] {
            assert!(affinity(wrong).is_err(), "{wrong}");
        }
    }
}
