//! A chunk: neighbouring points whose rows are one file.

use crate::error::Error;
use crate::figures::{self, PointRow};
use crate::plan::Plan;
use crate::resolve::Resolver;
use schedlab_columns::Table;

/// Runs a chunk: the bytes of its file, and the number of failed points.
///
/// # Errors
/// A chunk that the plan does not have.
pub fn run_chunk(plan: &Plan, chunk: u64) -> Result<(Vec<u8>, usize), Error> {
    if chunk >= plan.chunks() {
        return Err(Error::new(format!("there is no chunk {chunk}; the plan has {}", plan.chunks())));
    }
    let mut resolver = Resolver::new(plan);
    let run = |index| figures::row_of(&mut resolver, &plan.point(index), |_| None);
    let rows: Vec<PointRow> = plan.points_of(chunk).map(run).collect();
    chunk_bytes(plan, chunk, &rows)
        .map(|bytes| (bytes, rows.iter().filter(|row| row.outcome.is_err()).count()))
}

/// The bytes of a chunk's file.
pub(crate) fn chunk_bytes(plan: &Plan, chunk: u64, rows: &[PointRow]) -> Result<Vec<u8>, Error> {
    let points = plan.points_of(chunk);
    Ok(schedlab_columns::to_bytes(&table(plan, points.zip(rows), notes(plan, rows)))?)
}

fn table<'a>(plan: &Plan, rows: impl Iterator<Item = (u64, &'a PointRow)>, notes: Notes) -> Table {
    let mut table = Table { notes, ..Table::default() };
    for (index, row) in rows {
        let point = plan.point(index);
        table.push(figures::cells(plan, &point, row));
    }
    table
}

type Notes = Vec<(String, String)>;

/// The metadata of a file.
fn notes(plan: &Plan, rows: &[PointRow]) -> Notes {
    let mut units: Vec<String> = Vec::new();
    for figure in rows.iter().flat_map(|row| row.outcome.iter().flatten()) {
        if let Some((unit, lower)) = &figure.unit {
            let line = format!("{}\t{unit}\t{}", figure.name, if *lower { "lower" } else { "higher" });
            if !units.contains(&line) {
                units.push(line);
            }
        }
    }
    let failed = rows.iter().filter(|row| row.outcome.is_err()).count();
    vec![
        ("schedlab.engine".into(), plan.engine.clone()),
        ("schedlab.plan".into(), plan.fingerprint()),
        ("schedlab.measures".into(), units.join("\n")),
        ("schedlab.failed".into(), failed.to_string()),
    ]
}

/// The measures of a file: name, unit, and whether less is better.
pub(crate) fn measures(table: &Table) -> Vec<(String, String, bool)> {
    let lines = table.note("schedlab.measures").unwrap_or_default().lines();
    let measure = |line: &str| {
        let mut parts = line.split('\t');
        Some((parts.next()?.to_owned(), parts.next()?.to_owned(), parts.next()? == "lower"))
    };
    lines.filter_map(measure).collect()
}
