//! `schedlab diff`: two traces of one program, side by side.

use std::path::Path;

use schedlab::diff::{Difference, Side};
use schedlab::html::{Packed, Packer, ROOM};
use schedlab::pages;
use schedlab::timeline::Builder;
use schedlab::topology::Topology;
use schedlab::trace::Tee;

use crate::args::Diff;
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::recorded::Recorded;
use crate::{facts, machine};

/// Compares two traces.
pub fn run(args: &Diff) -> Result<Status, Error> {
    let recorded = [Recorded::one(&args.a)?, Recorded::one(&args.b)?];
    let machines = match &args.machine {
        Some(name) => {
            let topology = machine::machine(name)?.topology;
            [Some(topology.clone()), Some(topology)]
        }
        None => [recorded[0].machine()?, recorded[1].machine()?],
    };
    let names = [&args.a, &args.b].map(|path| path.display().to_string());
    let [a, b] = [0, 1].map(|at| {
        let wants_picture = args.html.is_some();
        fold(&recorded[at], &names[at], machines[at].as_ref(), args.machine.is_some(), wants_picture)
    });
    let ((a, picture_a), (b, picture_b)) = (a?, b?);
    // Places are compared by LLC if both are on the same machine, or if only one of them names its machine.
    let machine = match &machines {
        [Some(a), Some(b)] if a.llcs() == b.llcs() => Some(a),
        [Some(one), None] | [None, Some(one)] => Some(one),
        _ => None,
    };
    let difference = Difference::of(names, &a, &b, machine);
    let text = match args.format {
        Format::Text => difference.to_string(),
        Format::Json => serde_json::to_string_pretty(&difference).expect("plain data") + "\n",
    };
    let output = args.output.as_deref();
    match args.format {
        Format::Text => output::write_report(output, |out| out.write_all(text.as_bytes()))?,
        Format::Json => output::write(output, |out| out.write_all(text.as_bytes()))?,
    }
    if let Some(path) = &args.html {
        let pictures = [picture_a, picture_b].into_iter().flatten().collect();
        let page = pages::difference(&difference, [&a, &b], pictures);
        output::write(Some(path as &Path), |out| page.write(out))?;
    }
    Ok(Status::Done)
}

/// Folds one trace, and turns it into columns if a picture is wanted.
fn fold(
    recorded: &Recorded,
    name: &str,
    machine: Option<&Topology>,
    is_named: bool,
    wants_picture: bool,
) -> Result<(Side, Option<Packed>), Error> {
    let kernel = facts::known_kernel(None, recorded.facts.as_deref(), recorded)?;
    let mut recording = recorded.open()?;
    if let Some(kernel) = &kernel {
        recording = recording.of_kernel(kernel);
    }
    if let (Some(machine), true) = (machine, is_named) {
        recording = recording.on_machine(&machine.name, machine.nr_cpus(), "--machine");
    }
    let mut packer = Packer::new(ROOM / 2);
    let builder = wants_picture.then(|| Builder::new(name, machine.cloned(), |chunk| packer.add(chunk)));
    let mut sinks = Tee(Side::default(), builder);
    recording.feed(&mut sinks, || false)?;
    let Tee(side, builder) = sinks;
    let head = builder.map(Builder::finish);
    Ok((side, head.map(|head| packer.finish(head))))
}
