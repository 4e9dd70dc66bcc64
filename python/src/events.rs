//! A trace as columns: a row for each event, a column for each field that a tracepoint has.

use std::fs::File;
use std::path::PathBuf;

use pyo3::prelude::*;
use schedlab::trace::read::{self, Record, Summary};
use schedlab::trace::{Event, Kind as EventKind, Value};
use schedlab_sweep::{Cell, Kind, Table};

use crate::call::interruptible;
use crate::columns::Columns;
use crate::error;

/// Rows of a batch.
const BATCH: usize = 1 << 16;

/// Reads a trace of any format: its events as columns, and a sentence for each kind of loss or parse error.
#[pyfunction]
pub fn read_trace(py: Python<'_>, path: PathBuf) -> PyResult<(Columns, Vec<String>)> {
    let (batches, notes) = interruptible(py, move || read(&path))?.map_err(error)?;
    let mut head = Table::default();
    for batch in &batches {
        head.include(batch);
    }
    Ok((Columns::of(&head, batches)?, notes))
}

fn read(path: &PathBuf) -> Result<(Vec<Table>, Vec<String>), String> {
    let name = path.display();
    let in_file = |error: &dyn std::fmt::Display| format!("{name}: {error}");
    let file = File::open(path).map_err(|error| in_file(&error))?;
    let reader = read::open(file, tempfile::tempfile).map_err(|error| in_file(&error))?;
    let (mut batches, mut table, mut summary) = (Vec::new(), Table::default(), Summary::default());
    for record in reader {
        let record = record.map_err(|error| in_file(&error))?;
        summary.count(&record);
        if let Record::Event(event) = record {
            push(&mut table, &event);
            if table.rows == BATCH {
                batches.push(std::mem::take(&mut table));
            }
        }
    }
    if table.rows > 0 || batches.is_empty() {
        batches.push(table);
    }
    Ok((batches, sentences(&summary)))
}

/// What is missing in it.
fn sentences(summary: &Summary) -> Vec<String> {
    let mut all = Vec::new();
    if summary.losses > 0 {
        all.push(format!("{} events were lost, in {} places", summary.lost, summary.losses));
    }
    if summary.gaps > 0 {
        let first = summary.first_gaps.first().map_or(String::new(), |gap| format!("; the first: {gap}"));
        all.push(format!("{} parts were not understood{first}", summary.gaps));
    }
    all
}

fn push(table: &mut Table, event: &Event) {
    let text = |text: &str| Cell::Text(text.to_owned());
    let mut cells: Vec<(String, Kind, Cell)> = vec![
        ("time_ns".into(), Kind::Int, Cell::Int(event.time.0 as i64)),
        ("cpu".into(), Kind::Int, Cell::Int(i64::from(event.cpu.0))),
        ("current_pid".into(), Kind::Int, Cell::Int(i64::from(event.pid.0))),
        ("current_comm".into(), Kind::Text, text(&event.comm.to_str_lossy())),
        ("event".into(), Kind::Text, text(event.kind.name())),
    ];
    if let EventKind::Mark { label, value } = &event.kind {
        cells.push(("label".into(), Kind::Text, text(&label.to_string())));
        cells.push(("value".into(), Kind::Int, Cell::Int(*value)));
    }
    event.kind.fields(|name, value| {
        let (kind, cell) = match value {
            Value::Int(int) => (Kind::Int, Cell::Int(int)),
            // A value of 2^63 or more is an address or a mask; as text nothing is lost.
            Value::Uint(int) => match i64::try_from(int) {
                Ok(int) => (Kind::Int, Cell::Int(int)),
                Err(_) => (Kind::Text, Cell::Text(int.to_string())),
            },
            Value::Bool(truth) => (Kind::Int, Cell::Int(i64::from(truth))),
            Value::Text(bytes) => (Kind::Text, Cell::Text(String::from_utf8_lossy(&bytes).into_owned())),
            other => (Kind::Text, Cell::Text(other.to_string())),
        };
        if !cells.iter().any(|(known, ..)| known == name) {
            cells.push((name.to_owned(), kind, cell));
        }
    });
    table.push(cells.iter().map(|(name, kind, cell)| (name.as_str(), *kind, cell.clone())));
}
