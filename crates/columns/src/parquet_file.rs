//! Columns as Parquet, and back: the only place that knows the format and its crate.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use crate::error::Error;
use crate::table::{Column, Kind, Table, Values};

/// A file that is written table by table, all with the same columns.
pub struct Writer {
    to: To<BufWriter<File>>,
    name: String,
}

impl Writer {
    /// Creates a file of these columns, with notes as metadata.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn create(
        path: &Path,
        columns: Vec<(String, Kind)>,
        notes: &[(String, String)],
    ) -> Result<Writer, Error> {
        let file = File::create(path).map_err(|error| Error::file(path, &error))?;
        let to = To::new(BufWriter::new(file), columns, notes).map_err(|error| Error::file(path, &error))?;
        Ok(Writer { to, name: path.display().to_string() })
    }

    /// Adds a table. Columns that it lacks are empty.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, table: &Table) -> Result<(), Error> {
        self.to.write(table).map_err(|error| Error::new(format!("{}: {error}", self.name)))
    }

    /// Writes the end of the file and waits until it is on the disk.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<(), Error> {
        let wrong = |error: &dyn std::fmt::Display| Error::new(format!("{}: {error}", self.name));
        let file = self.to.inner.into_inner().map_err(|error| wrong(&error))?;
        file.into_inner().map_err(|error| wrong(&error))?.sync_all().map_err(|error| wrong(&error))
    }
}

struct To<W: Write + Send> {
    inner: SerializedFileWriter<W>,
    columns: Vec<(String, Kind)>,
}

impl<W: Write + Send> To<W> {
    fn new(to: W, columns: Vec<(String, Kind)>, notes: &[(String, String)]) -> Result<To<W>, ParquetError> {
        let fields = columns.iter().map(|(name, kind)| field(name, *kind)).collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("schedlab").with_fields(fields).build()?;
        let notes = notes.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
        let properties = WriterProperties::builder()
            // The bytes should depend on the version of the library as little as possible.
            .set_created_by("schedlab".to_owned())
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(notes))
            .build();
        let inner = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties))?;
        Ok(To { inner, columns })
    }

    fn write(&mut self, table: &Table) -> Result<(), ParquetError> {
        let mut group = self.inner.next_row_group()?;
        for (name, kind) in &self.columns {
            let mut writer = group.next_column()?.expect("as many columns as the schema has");
            let none = vec![0i16; table.rows];
            match (kind, table.column(name).map(|column| &column.values)) {
                (Kind::Int, Some(Values::Int(values))) => {
                    let (levels, values) = split(values, |value| *value);
                    writer.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
                }
                (Kind::Float, Some(Values::Float(values))) => {
                    let (levels, values) = split(values, |value| *value);
                    writer.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
                }
                (Kind::Float, Some(Values::Int(values))) => {
                    let (levels, values) = split(values, |value| *value as f64);
                    writer.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
                }
                (Kind::Text, Some(Values::Text(values))) => {
                    let (levels, values) = split(values, |value| ByteArray::from(value.as_bytes().to_vec()));
                    writer.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
                }
                (Kind::Int, _) => {
                    writer.typed::<Int64Type>().write_batch(&[], Some(&none), None)?;
                }
                (Kind::Float, _) => {
                    writer.typed::<DoubleType>().write_batch(&[], Some(&none), None)?;
                }
                (Kind::Text, _) => {
                    writer.typed::<ByteArrayType>().write_batch(&[], Some(&none), None)?;
                }
            }
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }
}

fn field(name: &str, kind: Kind) -> Result<TypePtr, ParquetError> {
    let builder =
        |physical| Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
    let field = match kind {
        Kind::Int => builder(Physical::INT64).build()?,
        Kind::Float => builder(Physical::DOUBLE).build()?,
        Kind::Text => builder(Physical::BYTE_ARRAY)
            .with_logical_type(Some(LogicalType::String))
            .with_converted_type(ConvertedType::UTF8)
            .build()?,
    };
    Ok(Arc::new(field))
}

fn split<T, U>(values: &[Option<T>], as_stored: impl Fn(&T) -> U) -> (Vec<i16>, Vec<U>) {
    let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
    (levels, values.iter().flatten().map(as_stored).collect())
}

/// A table as the bytes of a file.
///
/// # Errors
/// The library refuses the columns.
pub fn to_bytes(table: &Table) -> Result<Vec<u8>, Error> {
    let columns = table.columns.iter().map(|column| (column.name.clone(), column.kind())).collect();
    let write = || {
        let mut to = To::new(Vec::new(), columns, &table.notes)?;
        to.write(table)?;
        to.inner.into_inner()
    };
    write().map_err(|error: ParquetError| Error::new(format!("cannot write Parquet: {error}")))
}

/// A file that is read row group by row group.
pub struct Reader {
    inner: SerializedFileReader<File>,
    name: String,
}

impl Reader {
    /// Opens a file and reads its end.
    ///
    /// # Errors
    /// The file cannot be read, or is not a whole Parquet file.
    pub fn open(path: &Path) -> Result<Reader, Error> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| Error::file(path, &error))?;
        let inner = SerializedFileReader::new(file);
        let inner =
            inner.map_err(|error| Error::new(format!("{name}: this is no whole Parquet file: {error}")))?;
        Ok(Reader { inner, name })
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.inner.metadata()
    }

    /// A table without rows: columns and notes.
    pub fn head(&self) -> Table {
        let file = self.metadata().file_metadata();
        let notes = file.key_value_metadata().into_iter().flatten();
        let notes = notes.map(|note| (note.key.clone(), note.value.clone().unwrap_or_default())).collect();
        let columns = file.schema_descr().columns().iter().map(|column| {
            let values = match column.physical_type() {
                Physical::INT64 => Values::Int(Vec::new()),
                Physical::DOUBLE => Values::Float(Vec::new()),
                _ => Values::Text(Vec::new()),
            };
            Column { name: column.name().to_owned(), values }
        });
        Table { columns: columns.collect(), rows: 0, notes }
    }

    /// Rows of the whole file.
    pub fn rows(&self) -> u64 {
        self.metadata().file_metadata().num_rows().max(0) as u64
    }

    /// How many row groups there are.
    pub fn groups(&self) -> usize {
        self.metadata().num_row_groups()
    }

    /// The rows of one group.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn group(&self, group: usize) -> Result<Table, Error> {
        let damaged = |error: ParquetError| {
            Error::new(format!(
                "{}: the file is damaged ({error}); delete it and run the sweep again",
                self.name
            ))
        };
        let mut table = self.head();
        let group = self.inner.get_row_group(group).map_err(damaged)?;
        table.rows = group.metadata().num_rows().max(0) as usize;
        for (index, column) in table.columns.iter_mut().enumerate() {
            let reader = group.get_column_reader(index).map_err(damaged)?;
            column.values = read(reader, table.rows).map_err(damaged)?;
        }
        Ok(table)
    }
}

fn read(reader: ColumnReader, rows: usize) -> Result<Values, ParquetError> {
    macro_rules! read {
        ($reader:expr, $kind:ident, $convert:expr) => {{
            let (mut reader, mut levels, mut found) = ($reader, Vec::new(), Vec::new());
            while levels.len() < rows {
                let (records, ..) =
                    reader.read_records(rows - levels.len(), Some(&mut levels), None, &mut found)?;
                if records == 0 {
                    return Err(ParquetError::General("rows are missing".to_owned()));
                }
            }
            let mut found = found.into_iter();
            let place = |level: &i16| if *level > 0 { found.next().map($convert) } else { None };
            Values::$kind(levels.iter().map(place).collect())
        }};
    }
    Ok(match reader {
        ColumnReader::Int64ColumnReader(reader) => read!(reader, Int, |value| value),
        ColumnReader::DoubleColumnReader(reader) => read!(reader, Float, |value| value),
        ColumnReader::ByteArrayColumnReader(reader) => {
            read!(reader, Text, |value: ByteArray| String::from_utf8_lossy(value.data()).into_owned())
        }
        _ => return Err(ParquetError::General("a column is of a type that no sweep writes".to_owned())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Cell;

    fn table() -> Table {
        let mut table = Table { notes: vec![("units".into(), "x".into())], ..Table::default() };
        table.push([("a", Kind::Int, Cell::Int(-1)), ("t", Kind::Text, Cell::Text("ä".into()))]);
        table.push([("a", Kind::Int, Cell::Nothing), ("f", Kind::Float, Cell::Float(0.1))]);
        table.push([("f", Kind::Float, Cell::Nothing), ("t", Kind::Text, Cell::Nothing)]);
        table
    }

    fn file_of(bytes: &[u8]) -> Result<Reader, Error> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        Reader::open(file.path())
    }

    #[test]
    fn a_table_comes_back_as_it_was_written() {
        let reader = file_of(&to_bytes(&table()).unwrap()).unwrap();
        assert_eq!((reader.rows(), reader.groups()), (3, 1));
        assert_eq!(reader.group(0).unwrap(), table());
        assert_eq!(to_bytes(&table()).unwrap(), to_bytes(&table()).unwrap());
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let bytes = to_bytes(&table()).unwrap();
        let error = file_of(&bytes[..bytes.len() - 9]).err().unwrap();
        assert!(error.to_string().contains("no whole Parquet file"));
    }
}
