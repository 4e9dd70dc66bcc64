//! A run for viewing, and where its tasks moved.

use schedlab_html::{Matrix, Packer};
use schedlab_sched::Kernel;
use schedlab_timeline::Builder;
use schedlab_topology::{CpuId, Topology};
use schedlab_trace::{Event, Kind, Sink, Tee};

use super::compare::Picture;
use crate::error::Error;
use crate::scenario::{Row, Scenario};

/// Counts moves of tasks between places of a machine.
#[derive(Debug)]
pub(super) struct Moves<'a> {
    topology: &'a Topology,
    by_llc: bool,
    nr_places: usize,
    counts: Vec<u64>,
}

impl<'a> Moves<'a> {
    pub fn new(topology: &'a Topology) -> Moves<'a> {
        let by_llc = topology.llcs().len() > 1;
        let nr_places = if by_llc { topology.llcs().len() } else { topology.nr_cpus() };
        Moves { topology, by_llc, nr_places, counts: vec![0; nr_places * nr_places] }
    }

    fn place(&self, cpu: CpuId) -> Option<usize> {
        let known = cpu.index() < self.topology.nr_cpus();
        known.then(|| if self.by_llc { self.topology.cpu(cpu).llc.into() } else { cpu.index() })
    }

    pub fn finish(self, name: &str) -> Matrix {
        Matrix {
            name: format!("migrations under {name}"),
            of: if self.by_llc { "LLC" } else { "CPU" }.to_owned(),
            places: (0..self.nr_places).map(|place| place.to_string()).collect(),
            counts: self.counts,
        }
    }
}

impl Sink for Moves<'_> {
    fn event(&mut self, event: &Event) {
        if let Kind::SchedMigrateTask { orig_cpu, dest_cpu, .. } = event.kind
            && let (Some(from), Some(to)) = (self.place(orig_cpu), self.place(dest_cpu))
        {
            self.counts[from * self.nr_places + to] += 1;
        }
    }
}

/// Runs a row of a scenario once more with its first seed, for a picture that takes the given number of bytes
/// of a page.
///
/// # Errors
/// As [`Scenario::run_row`].
pub fn picture(scenario: &Scenario, kernel: &Kernel, row: &Row, room: usize) -> Result<Picture, Error> {
    let mut packer = Packer::new(room);
    let topology = &scenario.machine.topology;
    let title = format!("{} on {} under {}", row.workload.name, topology.name, kernel.name);
    let builder = Builder::new(&title, Some(topology.clone()), |chunk| packer.add(chunk));
    let (_, Tee(builder, moves)) = scenario.run_row(kernel, row, |_| Tee(builder, Moves::new(topology)))?;
    let head = builder.finish();
    Ok(Picture { timeline: packer.finish(head), moves: moves.finish(&kernel.name) })
}
