//! The `[workload]` of a scenario, as rows.

use schedlab_machine::Machine;
use schedlab_sched::Kernel;
use schedlab_topology::CpuId;
use schedlab_units::Duration;
use schedlab_workload::{Completion, Op, RtApp, Workload, WorkloadRead};

use crate::error::Error;
use crate::scenario::{Files, Row};

/// Reads the table from the text of a scenario.
pub(crate) fn of(file: &str, text: &str, machine: &Machine, files: &dyn Files) -> Result<Vec<Row>, Error> {
    let read = WorkloadRead::parse(text, file).map_err(|e| Error::new(e.to_string()))?;
    let rows = match read {
        WorkloadRead::RtApp(name) => {
            let text = files.text(&name).map_err(|e| Error::new(format!("{file}: {e}")))?;
            return Ok(vec![rt_app(&name, &text, machine)?]);
        }
        WorkloadRead::Rows(rows) => rows,
    };
    let check = |row: schedlab_workload::WorkloadRow| {
        check_cpus(file, text, &row.workload, machine)?;
        Ok(Row {
            key: row.key,
            workload: row.workload,
            notes: Vec::new(),
            prologue: Duration::ZERO,
            over: None,
        })
    };
    rows.into_iter().map(check).collect()
}

/// The one row of an rt-app file.
pub(crate) fn rt_app(file: &str, text: &str, machine: &Machine) -> Result<Row, Error> {
    let read = RtApp::parse(text, file).map_err(|e| Error::new(e.to_string()))?;
    check_cpus(file, text, &read.workload, machine)?;
    Ok(Row {
        key: String::new(),
        workload: read.workload,
        notes: read.notes,
        prologue: Duration::ZERO,
        over: None,
    })
}

/// Every CPU that a workload names must exist. `text` is where it was named, if known.
pub(crate) fn check_cpus(
    file: &str,
    text: &str,
    workload: &Workload,
    machine: &Machine,
) -> Result<(), Error> {
    let topology = &machine.topology;
    let lists = workload.cpu_lists.iter().flat_map(|list| list.cpus());
    let starts = || workload.tasks.iter().filter_map(|task| task.start_cpu.as_ref());
    let sources = || workload.objects.sources.iter().map(|source| &source.cpu);
    let devices = workload.objects.devices.iter().filter_map(|device| match &device.completion {
        Completion::IrqAt(cpu) => Some(cpu),
        _ => None,
    });
    let named = workload.code.iter().filter_map(|op| match op {
        Op::InterruptOn { cpu } | Op::Hotplug { cpu, .. } => Some(cpu),
        _ => None,
    });
    let calibrated = workload.calibrated_on.as_ref();
    let mut all = lists.chain(starts()).chain(named).chain(sources()).chain(devices).chain(calibrated);
    let missing = all.find(|cpu| cpu.index() >= topology.nr_cpus()).map(|cpu| {
        let last = topology.nr_cpus() - 1;
        (*cpu, format!("CPU {cpu} is not in machine \"{}\" (0-{last})", machine.name()))
    });
    // Tasks can start and interrupts can arrive only on CPUs in use.
    let offline = || {
        let cpu = starts().chain(sources()).find(|cpu| !topology.cpu(**cpu).online)?;
        let online = topology.online();
        Some((*cpu, format!("CPU {cpu} of machine \"{}\" is offline; {online} are online", machine.name())))
    };
    let Some((cpu, message)) = missing.or_else(offline) else { return Ok(()) };
    Err(match line_naming(text, cpu) {
        Some(line) => Error::at(file, line, &message),
        None => Error::new(format!("{file}: {message}")),
    })
}

/// Every part of a kernel string that a program switches to must exist in the kernels.
pub(crate) fn check_parts(
    file: &str,
    text: &str,
    workload: &Workload,
    kernels: &[Kernel],
) -> Result<(), Error> {
    for part in &workload.parts {
        for kernel in kernels {
            let Err(e) = kernel.clone().switch(part) else { continue };
            // `program = ["run 1ms; switch NO_SUCH"]`
            let names = |line: &str| {
                let mut words =
                    line.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | ','));
                words.any(|word| word == "switch") && words.any(|word| word == part)
            };
            let line = text.lines().position(names).map(|index| index + 1);
            let message = format!("switch {part}: {e}");
            return Err(match line {
                Some(line) => Error::at(file, line, &message),
                None => Error::new(format!("{file}: {message}")),
            });
        }
    }
    Ok(())
}

/// The first line with a key about CPUs and this number in its value (alone or inside a range), or with an operation
/// that names it.
fn line_naming(text: &str, cpu: CpuId) -> Option<usize> {
    let holds = |value: &str| {
        let parts = value.split(|c: char| !c.is_ascii_digit() && c != '-').filter(|part| !part.is_empty());
        parts.into_iter().any(|part| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let ends = low.parse::<u16>().ok().zip(high.parse::<u16>().ok());
            ends.is_some_and(|(low, high)| (low..=high).contains(&cpu.0))
        })
    };
    let names = |line: &str| {
        // `cpus = "0-3"`, `nic = { cpu = 3 }`, `"calibration": "CPU3"`, `program = "cpus 0-3"`
        let lower = line.to_ascii_lowercase();
        let mut values = lower.match_indices("cpu").map(|(at, word)| &line[at + word.len()..]);
        let mut words = line.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ';'));
        values.any(holds)
            || words.any(|word| matches!(word, "interrupt-on" | "hotplug")) && words.next().is_some_and(holds)
    };
    text.lines().position(names).map(|index| index + 1)
}
