//! `schedlab topo`: a machine, and the domains a kernel builds on it.

use schedlab::domain_tree;
use schedlab::sched::Kernel;
use schedlab::topology::CpuId;

use crate::args::Topo;
use crate::error::{Error, Status};
use crate::machine;
use crate::output::{self, Format};

/// Prints them.
pub fn run(args: &Topo) -> Result<Status, Error> {
    let kernel = Kernel::parse(&args.kernel)?;
    let topology = machine::topology(&args.machine)?;
    if let Some(cpu) = args.cpu
        && !topology.online().contains(CpuId(cpu))
    {
        return Err(Error::new(format!(
            "CPU {cpu} is not an online CPU of {} ({})",
            topology.name,
            topology.online()
        )));
    }
    match (args.format, args.cpu) {
        (Format::Json, cpu) => {
            let mut trees = domain_tree::trees(&topology, &kernel);
            trees.retain(|tree| cpu.is_none_or(|cpu| tree.cpu == cpu));
            output::print_json(&trees)?;
        }
        (Format::Text, Some(cpu)) => {
            let text = domain_tree::draw_cpu(&topology, &kernel, CpuId(cpu)).expect("the CPU is online");
            output::print(|out| out.write_all(text.as_bytes()))?;
        }
        (Format::Text, None) => {
            let text = domain_tree::draw_summary(&topology, &kernel);
            output::print(|out| out.write_all(text.as_bytes()))?;
        }
    }
    Ok(Status::Done)
}
