//! What a target that takes events is given: ftrace text, with a machine and a kernel that its first byte chooses.

use std::sync::OnceLock;

use schedlab::machine::Machine;
use schedlab::sched::Kernel;
use schedlab::topology::Topology;
use schedlab::trace::read::{Record, ftrace};
use schedlab::trace::{Event, IdleExits};

const MACHINES: [&str; 4] = ["1x1x8", "2x2x4", "2x2x2x2", "1x1x1"];
const KERNELS: [&str; 5] = ["v6.1", "v6.12", "v7.2", "v4.13", "v5.18"];

/// The events that the machine may have made, as the command passes them on: it refuses others, and puts back what idle tasks did.
pub fn recording(bytes: &[u8]) -> Option<(&'static Topology, &'static Kernel, Vec<Event>)> {
    static ALL: OnceLock<(Vec<Topology>, Vec<Kernel>)> = OnceLock::new();
    let (machines, kernels) = ALL.get_or_init(|| {
        let machines = MACHINES.map(|name| Machine::preset(name).expect(name).topology);
        (machines.into(), KERNELS.map(|name| Kernel::parse(name).expect(name)).into())
    });
    let (&choice, text) = bytes.split_first()?;
    let topology = &machines[usize::from(choice) % machines.len()];
    let kernel = &kernels[usize::from(choice) / machines.len() % kernels.len()];
    let fits = |event: &Event| event.highest_cpu().index() < topology.nr_cpus();
    let event = |record| match record {
        Ok(Record::Event(event)) => Some(event),
        _ => None,
    };
    let (mut exits, mut events) = (IdleExits::default(), Vec::new());
    for event in ftrace::Reader::new(text).filter_map(event).filter(fits) {
        exits.pass(event, |event| events.push(event));
    }
    exits.end(|event| events.push(event));
    Some((topology, kernel, events))
}
