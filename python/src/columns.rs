//! Columns that Arrow's C stream hands to Polars, pandas, DuckDB and pyarrow.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use schedlab_sweep::{Cell, Column, Kind, Table, Values};

use crate::error;

/// Columns of one length. `pandas`, `polars`, `duckdb` and `pyarrow` take them without a copy in Python.
#[pyclass(frozen, module = "schedlab._schedlab")]
pub struct Columns {
    schema: Arc<Schema>,
    batches: Vec<RecordBatch>,
}

impl Columns {
    /// Concatenates tables; columns that one lacks are empty there.
    pub fn of(head: &Table, tables: Vec<Table>) -> PyResult<Columns> {
        let fields: Vec<Field> = head.columns.iter().map(field).collect();
        let notes: HashMap<String, String> = head.notes.iter().cloned().collect();
        let schema = Arc::new(Schema::new(fields).with_metadata(notes));
        let batch = |table: Table| {
            let arrays = head
                .columns
                .iter()
                .map(|column| array(column.kind(), table.column(&column.name), table.rows));
            RecordBatch::try_new(Arc::clone(&schema), arrays.collect())
        };
        let batches = tables.into_iter().map(batch).collect::<Result<_, ArrowError>>().map_err(error)?;
        Ok(Columns { schema, batches })
    }
}

fn field(column: &Column) -> Field {
    let kind = match column.kind() {
        Kind::Int => DataType::Int64,
        Kind::Float => DataType::Float64,
        Kind::Text => DataType::Utf8,
    };
    Field::new(&column.name, kind, true)
}

fn array(kind: Kind, column: Option<&Column>, rows: usize) -> ArrayRef {
    match (kind, column.map(|column| &column.values)) {
        (Kind::Int, Some(Values::Int(values))) => Arc::new(Int64Array::from(values.clone())),
        (Kind::Float, Some(Values::Float(values))) => Arc::new(Float64Array::from(values.clone())),
        (Kind::Float, Some(Values::Int(values))) => {
            Arc::new(values.iter().map(|value| value.map(|int| int as f64)).collect::<Float64Array>())
        }
        (Kind::Text, Some(Values::Text(values))) => Arc::new(values.iter().collect::<StringArray>()),
        (Kind::Text, Some(_)) => {
            let column = column.expect("just seen");
            let shown = |row| match column.cell(row) {
                Cell::Int(int) => Some(int.to_string()),
                Cell::Float(float) => Some(format!("{float:?}")),
                _ => None,
            };
            Arc::new((0..rows).map(shown).collect::<StringArray>())
        }
        (Kind::Int, _) => Arc::new(Int64Array::from(vec![None; rows])),
        (Kind::Float, _) => Arc::new(Float64Array::from(vec![None; rows])),
        (Kind::Text, _) => Arc::new(StringArray::from(vec![None::<&str>; rows])),
    }
}

#[pymethods]
impl Columns {
    /// From a dict of lists: of ints, floats or texts, with None where there is no value.
    #[staticmethod]
    fn from_lists(columns: &Bound<'_, PyDict>) -> PyResult<Columns> {
        let mut table = Table::default();
        for (name, values) in columns {
            let name: String = name.extract()?;
            let values = values.cast::<PyList>().map_err(PyErr::from)?;
            table.rows = values.len();
            let values = if let Ok(ints) = values.extract::<Vec<Option<i64>>>() {
                Values::Int(ints)
            } else if let Ok(floats) = values.extract::<Vec<Option<f64>>>() {
                Values::Float(floats)
            } else {
                Values::Text(values.extract()?)
            };
            table.columns.push(Column { name, values });
        }
        Columns::of(&table.clone(), vec![table])
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// How many rows there are.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    /// A column as a list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let names = || self.column_names().join(", ");
        let at = self.schema.index_of(name);
        let at = at.map_err(|_| error(format!("there is no column \"{name}\"; there are {}", names())))?;
        let list = PyList::empty(py);
        for batch in &self.batches {
            let array = batch.column(at).as_any();
            if let Some(ints) = array.downcast_ref::<Int64Array>() {
                ints.iter().try_for_each(|value| list.append(value))?;
            } else if let Some(floats) = array.downcast_ref::<Float64Array>() {
                floats.iter().try_for_each(|value| list.append(value))?;
            } else if let Some(texts) = array.downcast_ref::<StringArray>() {
                texts.iter().try_for_each(|value| list.append(value))?;
            }
        }
        Ok(list)
    }

    /// The columns as an Arrow C stream, for any library that supports it. It can be requested more than
    /// once.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol allows returning the existing schema if another was requested.
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!("<{} rows of {}>", self.num_rows(), self.column_names().join(", "))
    }
}
