//! The `[workload]` of a scenario, as rows.

use schedlab_machine::Machine;
use schedlab_workload::{RtApp, Workload, WorkloadRead};

use crate::error::Error;
use crate::scenario::{Files, Row};

/// Reads the table out of the text of a scenario.
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
        check_cpus(file, &row.workload, machine)?;
        Ok(Row { key: row.key, workload: row.workload, notes: Vec::new() })
    };
    rows.into_iter().map(check).collect()
}

/// The one row of an rt-app file.
pub(crate) fn rt_app(file: &str, text: &str, machine: &Machine) -> Result<Row, Error> {
    let read = RtApp::parse(text, file).map_err(|e| Error::new(e.to_string()))?;
    check_cpus(file, &read.workload, machine)?;
    Ok(Row { key: String::new(), workload: read.workload, notes: read.notes })
}

/// Every CPU that a workload names must be there.
pub(crate) fn check_cpus(file: &str, workload: &Workload, machine: &Machine) -> Result<(), Error> {
    let topology = &machine.topology;
    let lists = workload.cpu_lists.iter().flat_map(|list| list.cpus());
    let starts = workload.tasks.iter().filter_map(|task| task.start_cpu.as_ref());
    match lists.chain(starts).copied().find(|cpu| cpu.index() >= topology.nr_cpus()) {
        None => Ok(()),
        Some(cpu) => Err(Error::new(format!(
            "{file}: CPU {cpu} is not in machine \"{}\" (0-{})",
            machine.name(),
            topology.nr_cpus() - 1
        ))),
    }
}
