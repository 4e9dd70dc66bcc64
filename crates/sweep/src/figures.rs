//! The result of a point: one row of named cells.

use std::panic::{AssertUnwindSafe, catch_unwind};

use schedlab::machine::Machine;
use schedlab::report::metrics::Cause;
use schedlab::sched::Kernel;
use schedlab::trace::NullSink;
use schedlab::{Folds, Limits, Row, Run, run_folding};

use crate::axis::{Axis, Spread};
use crate::plan::Plan;
use crate::point::Point;
use crate::resolve::Resolver;
use crate::value::Value;
use schedlab_columns::{Cell, Kind};

/// A row of a point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PointRow {
    /// Id of the point; empty if it could not be computed.
    pub id: String,
    /// Seed of the run.
    pub seed: Option<u64>,
    /// The figures, or the error.
    pub outcome: Result<Vec<Figure>, String>,
}

/// One figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    /// Name of its column.
    pub name: String,
    /// Its unit, and whether less is better; known of measures of the workload.
    pub unit: Option<(String, bool)>,
    /// Its value; empty if the run did not reach it.
    pub cell: Cell,
}

/// Runs a row.
pub(crate) fn measure(
    machine: &Machine,
    kernel: &Kernel,
    row: &Row,
    limits: Limits,
) -> Result<Vec<Figure>, String> {
    let folds = Folds::new(&row.workload).unexplained();
    let run = || run_folding(machine, kernel, row, limits, folds, |_| NullSink);
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok((run, NullSink))) => Ok(figures(row, &run)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
            Err(format!("the simulator stopped: {said}; please report this point"))
        }
    }
}

/// Reads a point and looks it up, or runs it.
pub(crate) fn row_of(
    resolver: &mut Resolver<'_>,
    point: &Point,
    known: impl FnOnce(&str) -> Option<Vec<Figure>>,
) -> PointRow {
    match resolver.resolve(point) {
        Ok(resolved) => {
            let outcome = known(&resolved.id).map_or_else(|| resolved.measure(), Ok);
            PointRow { id: resolved.id.clone(), seed: Some(resolved.seed), outcome }
        }
        Err(error) => PointRow { id: String::new(), seed: None, outcome: Err(error.to_string()) },
    }
}

fn figures(row: &Row, run: &Run) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (measure, marks) in row.workload.measures.iter().zip(&run.folds.marks) {
        figures.push(Figure {
            name: measure.name.clone(),
            unit: Some((measure.unit.to_owned(), measure.lower_is_better)),
            cell: marks.value().map_or(Cell::Nothing, Cell::Float),
        });
    }
    let folds = &run.folds;
    let mut count = |name: &str, value: u64| {
        // A measure of the same name comes first; the name of this one then says what it is.
        let taken = figures.iter().any(|figure| figure.name == name);
        let name = if taken { format!("run.{name}") } else { name.to_owned() };
        figures.push(Figure { name, unit: None, cell: Cell::Int(value as i64) });
    };
    count("elapsed_ns", run.elapsed.0);
    count("task_clock_ns", folds.busy.total().0);
    count("switches", folds.counts.switches);
    count("voluntary", folds.counts.voluntary);
    count("involuntary", folds.counts.involuntary);
    count("wakeups", folds.counts.wakeups);
    count("forks", folds.counts.forks);
    count("migrations", folds.migrations.total());
    for cause in Cause::ALL {
        count(
            &format!("migrations_{}", cause.name().replace([' ', '-', '/'], "_")),
            folds.migrations.of(cause),
        );
    }
    for (name, percent) in [("p50", 50.0), ("p99", 99.0), ("p999", 99.9)] {
        if let Some(ns) = folds.latency.histogram.percentile(percent) {
            count(&format!("wakeup_latency_{name}_ns"), ns);
        }
    }
    figures
}

/// The type of an axis' column.
pub(crate) fn kind_of(axis: &Axis) -> Kind {
    match &axis.spread {
        Spread::Between { whole: true, .. } => Kind::Int,
        Spread::Between { .. } => Kind::Float,
        Spread::List(values) if values.iter().all(|value| matches!(value, Value::Int(_))) => Kind::Int,
        Spread::List(values) if values.iter().all(|v| matches!(v, Value::Int(_) | Value::Float(_))) => {
            Kind::Float
        }
        Spread::List(_) => Kind::Text,
    }
}

/// The cells of a row: id, number, what was set, what was measured, what went wrong.
pub(crate) fn cells<'a>(
    plan: &'a Plan,
    point: &'a Point,
    row: &'a PointRow,
) -> impl Iterator<Item = (&'a str, Kind, Cell)> {
    let text = |text: &str| Cell::Text(text.to_owned());
    let mut cells: Vec<(&str, Kind, Cell)> =
        vec![("id", Kind::Text, text(&row.id)), ("point", Kind::Int, Cell::Int(point.index as i64))];
    for (axis, (path, value)) in plan.axes.iter().zip(&point.settings) {
        let kind = kind_of(axis);
        let cell = match value {
            Value::Int(int) => Cell::Int(*int),
            Value::Float(float) => Cell::Float(*float),
            other => Cell::Text(other.to_string()),
        };
        cells.push((path, kind, cell));
    }
    if plan.rows.len() > 1 {
        cells.push(("row", Kind::Text, text(&point.row)));
    }
    cells.push(("kernel", Kind::Text, text(&point.kernel)));
    cells.push(("repeat", Kind::Int, Cell::Int(point.repeat as i64)));
    cells.push(("seed", Kind::Int, row.seed.map_or(Cell::Nothing, |seed| Cell::Int(seed as i64))));
    let error = row.outcome.as_ref().err().map_or(Cell::Nothing, |error| text(error));
    cells.push(("error", Kind::Text, error));
    let figures = row.outcome.iter().flatten();
    cells.extend(figures.map(|figure| {
        let kind = if figure.unit.is_some() { Kind::Float } else { Kind::Int };
        (figure.name.as_str(), kind, figure.cell.clone())
    }));
    cells.into_iter()
}
