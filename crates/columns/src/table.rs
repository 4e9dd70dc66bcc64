//! Rows as columns, independent of any file format.

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Int,
    /// Numbers.
    Float,
    /// Texts.
    Text,
}

/// The values of a column; `None` if there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Int(Vec<Option<i64>>),
    /// Numbers.
    Float(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// None.
    Nothing,
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
}

/// A named column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Values,
}

impl Column {
    /// Its type.
    pub fn kind(&self) -> Kind {
        match self.values {
            Values::Int(_) => Kind::Int,
            Values::Float(_) => Kind::Float,
            Values::Text(_) => Kind::Text,
        }
    }

    /// The value in a row.
    pub fn cell(&self, row: usize) -> Cell {
        match &self.values {
            Values::Int(values) => values[row].map_or(Cell::Nothing, Cell::Int),
            Values::Float(values) => values[row].map_or(Cell::Nothing, Cell::Float),
            Values::Text(values) => values[row].clone().map_or(Cell::Nothing, Cell::Text),
        }
    }
}

/// Columns of one length, and the metadata of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// How many rows there are.
    pub rows: usize,
    /// Names and texts beside the rows.
    pub notes: Vec<(String, String)>,
}

impl Table {
    /// A column by its name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// A note by its name.
    pub fn note(&self, name: &str) -> Option<&str> {
        self.notes.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// Adds a row of named cells. A new name begins a column that is empty up to here.
    pub fn push<'a>(&mut self, cells: impl IntoIterator<Item = (&'a str, Kind, Cell)>) {
        for (name, kind, cell) in cells {
            let at = match self.columns.iter().position(|column| column.name == name) {
                Some(at) => at,
                None => {
                    let values = match kind {
                        Kind::Int => Values::Int(vec![None; self.rows]),
                        Kind::Float => Values::Float(vec![None; self.rows]),
                        Kind::Text => Values::Text(vec![None; self.rows]),
                    };
                    self.columns.push(Column { name: name.to_owned(), values });
                    self.columns.len() - 1
                }
            };
            self.columns[at].widen(&cell);
            match (&mut self.columns[at].values, cell) {
                (Values::Int(values), Cell::Int(int)) => values.push(Some(int)),
                (Values::Float(values), Cell::Float(float)) => values.push(Some(float)),
                (Values::Float(values), Cell::Int(int)) => values.push(Some(int as f64)),
                (Values::Text(values), Cell::Text(text)) => values.push(Some(text)),
                (Values::Text(values), Cell::Int(int)) => values.push(Some(int.to_string())),
                (Values::Text(values), Cell::Float(float)) => values.push(Some(format!("{float:?}"))),
                _ => self.columns[at].push_nothing(),
            }
        }
        self.rows += 1;
        for column in &mut self.columns {
            if column.len() < self.rows {
                column.push_nothing();
            }
        }
    }
}

impl Table {
    /// Adds columns of another table that this one, without rows, lacks or has with too narrow a type.
    pub fn include(&mut self, other: &Table) {
        for column in &other.columns {
            let kind = match self.column(&column.name).map(Column::kind) {
                None => column.kind(),
                Some(known) if known == column.kind() => continue,
                Some(Kind::Text) => continue,
                Some(_) if column.kind() == Kind::Text => Kind::Text,
                Some(_) => Kind::Float,
            };
            let values = match kind {
                Kind::Int => Values::Int(Vec::new()),
                Kind::Float => Values::Float(Vec::new()),
                Kind::Text => Values::Text(Vec::new()),
            };
            match self.columns.iter_mut().find(|known| known.name == column.name) {
                Some(known) => known.values = values,
                None => self.columns.push(Column { name: column.name.clone(), values }),
            }
        }
    }
}

impl Column {
    /// Makes room for a cell of another kind.
    fn widen(&mut self, cell: &Cell) {
        self.values = match (&self.values, cell) {
            (Values::Int(ints), Cell::Float(_)) => {
                Values::Float(ints.iter().map(|int| int.map(|int| int as f64)).collect())
            }
            (Values::Int(ints), Cell::Text(_)) => {
                Values::Text(ints.iter().map(|int| int.map(|int| int.to_string())).collect())
            }
            (Values::Float(floats), Cell::Text(_)) => {
                Values::Text(floats.iter().map(|float| float.map(|float| format!("{float:?}"))).collect())
            }
            _ => return,
        };
    }

    fn len(&self) -> usize {
        match &self.values {
            Values::Int(values) => values.len(),
            Values::Float(values) => values.len(),
            Values::Text(values) => values.len(),
        }
    }

    fn push_nothing(&mut self) {
        match &mut self.values {
            Values::Int(values) => values.push(None),
            Values::Float(values) => values.push(None),
            Values::Text(values) => values.push(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_widens_instead_of_losing_a_cell() {
        let mut table = Table::default();
        table.push([("a", Kind::Int, Cell::Int(1))]);
        table.push([("b", Kind::Text, Cell::Text("x".into()))]);
        table.push([("a", Kind::Float, Cell::Float(0.5))]);
        assert_eq!(table.columns[0].values, Values::Float(vec![Some(1.0), None, Some(0.5)]));
        table.push([("a", Kind::Text, Cell::Text("y".into())), ("b", Kind::Int, Cell::Int(3))]);
        assert_eq!(table.columns[0].cell(0), Cell::Text("1.0".into()));
        assert_eq!(table.columns[1].cell(3), Cell::Text("3".into()));
        let mut head = Table::default();
        head.include(&Table {
            columns: vec![Column { name: "a".into(), values: Values::Int(vec![]) }],
            ..Table::default()
        });
        head.include(&table);
        assert_eq!(head.columns.iter().map(Column::kind).collect::<Vec<_>>(), [Kind::Text, Kind::Text]);
    }
}
