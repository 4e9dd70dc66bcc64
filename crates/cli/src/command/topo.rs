//! `schedlab topo`: a machine, and the domains a kernel builds on it.

use std::path::Path;

use schedlab::domain_tree;
use schedlab::facts::{Facts, domain_differences};
use schedlab::sched::{Domains, Kernel};
use schedlab::topology::{CpuId, Topology};
use serde_json::json;

use crate::args::{Export, Topo};
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::width::width;
use crate::{facts, files, machine};

/// Lists of CPUs are easier to read in lines no longer than this.
const WIDTH: usize = 100;

/// Number of printed differences; more add nothing new.
const DIFFERENCES_SHOWN: usize = 20;

/// Prints machine and domains, or compares them with recorded ones.
pub fn run(args: &Topo) -> Result<Status, Error> {
    let kernel = crate::scenario::named_kernel(&args.kernel)?;
    let topology = match &args.facts {
        Some(facts) => machine::folder(facts)?,
        None => machine::machine(&args.machine)?.topology,
    };
    if args.check {
        // If a machine is named, which excludes --facts, clap no longer enforces that --check requires
        // --facts.
        let Some(facts) = &args.facts else {
            return Err(Error::new(format!(
                "--check compares with the domains that a kernel built, and {} has none recorded; give the folder of \
                 facts in its place, as in --facts recording/facts --check",
                args.machine
            )));
        };
        return check(&topology, &kernel, facts, args.format);
    }
    if let Some(form) = args.export {
        let text = match form {
            Export::Sysfs => topology.to_sysfs().to_lines(),
            Export::Lscpu => topology.to_lscpu(),
            Export::Hwloc => topology.to_hwloc()?,
        };
        output::print(|out| out.write_all(text.as_bytes()))?;
        return Ok(Status::Done);
    }
    if let Some(cpu) = args.cpu
        && !topology.online().contains(CpuId(cpu))
    {
        let (name, online) = (&topology.name, topology.online());
        return Err(Error::new(format!("CPU {cpu} is not an online CPU of {name} ({online})")));
    }
    if args.format == Format::Json {
        let trees = domain_tree::trees(&topology, &kernel, args.cpu.map(CpuId));
        output::print_json(&json!({
            "machine": topology.name,
            "kernel": kernel.name,
            "cpus": topology.nr_cpus(),
            "online": topology.online().to_string(),
            "isolated": topology.isolated().to_string(),
            "trees": trees,
        }))?;
        return Ok(Status::Done);
    }
    let text = match args.cpu {
        Some(cpu) => domain_tree::draw_cpu(&topology, &kernel, CpuId(cpu)).expect("the CPU is online"),
        None => format!(
            "{}\n{}",
            topology.draw_within(width().min(WIDTH)),
            domain_tree::draw_summary(&topology, &kernel)
        ),
    };
    output::print(|out| out.write_all(text.as_bytes()))?;
    Ok(Status::Done)
}

fn check(topology: &Topology, kernel: &Kernel, folder: &Path, format: Format) -> Result<Status, Error> {
    let text = |name: &str| {
        let path = folder.join(name);
        facts::tell_strange_lines_of(&path);
        path.is_file().then(|| files::read(&path)).transpose()
    };
    let (domains, schedstat, dmesg) =
        (text("domains.txt")?, text("schedstat.txt")?, text("dmesg-sched.txt")?);
    if domains.is_none() && schedstat.is_none() && dmesg.is_none() {
        return Err(Error::new(format!(
            "{} has neither domains.txt nor schedstat.txt nor dmesg-sched.txt to compare with",
            folder.display()
        )));
    }
    let facts =
        Facts { domains: domains.as_deref(), schedstat: schedstat.as_deref(), dmesg: dmesg.as_deref() };
    let built = Domains::build(topology, kernel, &topology.in_domains());
    let differences = domain_differences(facts, kernel, &built);
    match format {
        Format::Json => output::print_json(&json!({
            "equal": differences.is_empty(),
            "kernel": kernel.name,
            "cpus": topology.nr_cpus(),
            "differences": differences,
        }))?,
        Format::Text => output::print(|out| {
            if differences.is_empty() {
                writeln!(out, "equal: the domains of all {} CPUs", topology.nr_cpus())?;
            }
            for difference in differences.iter().take(DIFFERENCES_SHOWN) {
                writeln!(out, "{difference}")?;
            }
            if differences.len() > DIFFERENCES_SHOWN {
                writeln!(out, "and {} more", differences.len() - DIFFERENCES_SHOWN)?;
            }
            Ok(())
        })?,
    }
    Ok(if differences.is_empty() { Status::Done } else { Status::Missed })
}
