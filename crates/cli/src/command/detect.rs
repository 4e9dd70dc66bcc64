//! `schedlab detect`: what is wrong in a recording.

mod ways;

use schedlab::html::{Packer, ROOM};
use schedlab::pages;
use schedlab::report::detect::{Detect, Detected, Options, Thresholds, Who};
use schedlab::sched::Kernel;
use schedlab::timeline::Builder;
use schedlab::topology::{CpuMask, NR_CPUS_MAX, Topology};
use schedlab::trace::{Comm, Tee};
use schedlab::units::Pid;
use serde::Serialize;
use serde_json::json;

use crate::args;
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::recorded::Recorded;
use crate::recording::Missing;
use crate::scenario::Source;
use crate::{facts, machine};

/// Findings and missing events, as JSON.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    detected: &'a Detected,
    missing: Missing,
}

/// Runs all detectors.
pub fn run(args: &args::Detect) -> Result<Status, Error> {
    if let Some(source) = simulated(args)? {
        if args.html.is_some() {
            return Err(Error::new(
                "--html draws a recording; `schedlab run SCENARIO --html FILE` shows a scenario's run",
            ));
        }
        return run_simulated(args, &source);
    }
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
    let size = topology.as_ref().map(|topology| (topology.name.clone(), topology.nr_cpus()));
    let detect = Detect::new(Options { topology, affinity, thresholds });
    let mut sinks = Tee(detect, builder);
    let kernel = facts::known_kernel(args.kernel.as_deref(), folder, &recorded)?;
    let mut recording = recorded.open()?;
    if let Some(kernel) = &kernel {
        recording = recording.of_kernel(kernel);
    }
    if let Some((name, nr_cpus)) = size {
        recording = recording.on_machine(&name, nr_cpus, "--machine");
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

/// The scenario that is named instead of a recording.
fn simulated(args: &args::Detect) -> Result<Option<Source>, Error> {
    let name = args.file.display().to_string();
    let is_file = args.file.exists() && args.file.extension().is_none_or(|ending| ending != "toml");
    if is_file || !(name.ends_with(".toml") || schedlab::embedded_scenario(&name).is_some()) {
        return Ok(None);
    }
    Source::read(&name, &what(args)).map(Some)
}

fn what(args: &args::Detect) -> args::What {
    args::What {
        scenario: args.file.display().to_string(),
        machine: args.machine.clone(),
        set: Vec::new(),
        limit: None,
        seed: None,
        without: None,
    }
}

/// Runs a scenario and reports what is wrong in it; then runs each remedy too and reports its effect.
fn run_simulated(args: &args::Detect, source: &Source) -> Result<Status, Error> {
    let kernels: Vec<String> = args.kernel.iter().cloned().collect();
    let scenario = source.scenario(&what(args), &kernels, &[], &[])?;
    let kernel = scenario.kernels.last().expect("a scenario has a kernel");
    let affinity = args.affinity.iter().map(|text| self::affinity(text)).collect::<Result<Vec<_>, _>>()?;
    let look = |kernel: &Kernel| {
        let thresholds = Thresholds { worst: args.most, ..Thresholds::default() };
        let topology = Some(scenario.machine.topology.clone());
        let detect = Detect::new(Options { topology, affinity: affinity.clone(), thresholds });
        let run = scenario.run_row(kernel, &scenario.rows[0], |_| detect);
        run.map(|(_, detect)| detect.finish()).map_err(Error::from)
    };
    let mut detected = look(kernel)?;
    detected.keep_ways(|switch| kernel.is_turned_by(switch));
    let ways = ways::tried(&detected, kernel, look)?;
    match args.format {
        Format::Json => output::print_json(&json!({"detected": detected, "ways": ways}))?,
        Format::Text => output::print(|out| {
            out.write_all(detected.text().as_bytes())?;
            out.write_all(ways.text(kernel).as_bytes())
        })?,
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
