//! Tables of named columns, and Parquet files that hold them.
//!
//! A crate of its own because the Parquet library is slow to compile: a changed rule of the scheduler does not
//! build it again.

mod error;
mod parquet_file;
mod table;

pub use error::Error;
pub use parquet_file::{Reader, Writer, to_bytes};
pub use table::{Cell, Column, Kind, Table, Values};
