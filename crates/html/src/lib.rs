//! Reports as one self-contained page.
//!
//! A [`Page`] is a list of blocks: sentences, tables, pictures, timelines. It is written as one HTML file that loads
//! nothing, so it opens from disk and from a mail. Sentences, tables and most pictures are plain HTML and SVG and need
//! no script. Timelines are columns, deflated and in base64, which the scripts in `assets/` decode and draw; without
//! scripts, tables show what each CPU and task did. The same input gives the same bytes.

mod escape;
mod pack;
mod page;
mod pictures;
mod serve;
mod tables;

pub use pack::{Packed, Packer, ROOM};
pub use page::{Block, Page, Place};
pub use pictures::{Cumulative, Curve, Dots, Matrix, Shares};
pub use serve::{Places, served_page};
pub use tables::Table;
