//! Tables of named columns, and Parquet files of them.
//!
//! A separate crate because the Parquet library is slow to compile: a changed rule of the scheduler does not
//! rebuild it.

mod error;
mod parquet_file;
mod table;

pub use error::Error;
pub use parquet_file::{Reader, Writer, to_bytes};
pub use table::{Cell, Column, Kind, Table, Values};
