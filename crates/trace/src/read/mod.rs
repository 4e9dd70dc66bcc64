//! Readers: a recording may have gaps.
//!
//! Each reader is an iterator that returns events one by one, and between them reports what was lost and what could not
//! be parsed. Only a file that cannot be read at all ends in an error; a damaged one is read as far as possible.

mod head;
mod html;
mod lines;
mod merge;
mod meta;
mod names;
mod open;

pub mod ftrace;
pub mod jsonl;
pub mod perf_data;
pub mod perf_script;
pub mod perfetto;
pub mod trace_dat;

pub(crate) use head::{blank, digits_in, eight, few_digits, number, position};
pub use open::{Format, Input, LOOK, Reader, Spool, detect, may_be_one, open};

use std::fmt;
use std::io;

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::event::Event;
use crate::sink::Sink;

/// What a reader finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// An event.
    Event(Event),
    /// Events that the recorder lost.
    Lost(Lost),
    /// A part of the file that the reader cannot parse.
    Gap(Gap),
}

/// Events that were never written to the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// The CPU, if the file states it.
    pub cpu: Option<CpuId>,
    /// How many, if the file states it.
    pub count: Option<u64>,
    /// Not before this time, if known.
    pub after: Option<Time>,
}

/// A part of the file that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where it begins; `None` for events that were sorted, as their place is no longer known.
    pub at: Option<Place>,
    /// What is wrong with it, as text.
    pub why: String,
}

impl Gap {
    /// An event that is older than one before it.
    fn out_of_order(cpu: CpuId, time: Time) -> Gap {
        Gap { at: None, why: format!("an event of CPU {cpu} at {time} is older than those before it") }
    }
}

/// The message about times from a clock that does not count time.
const NO_DURATION: &str = "they are taken for nanoseconds, and no duration is right; record with another: `echo mono > \
                           trace_clock` in tracefs, or trace-cmd record -C mono";

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A line of text, counted from 1.
    Line(u64),
    /// A byte of a binary file, counted from 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Byte(byte) => write!(f, "byte {byte:#x}"),
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "{at}: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            Some(1) => write!(f, "1 event")?,
            Some(count) => write!(f, "{count} events")?,
            None => write!(f, "an unknown number of events")?,
        }
        write!(f, " lost")?;
        if let Some(cpu) = self.cpu {
            write!(f, " on CPU {cpu}")?;
        }
        match self.after {
            Some(time) => write!(f, " after {time}"),
            None => Ok(()),
        }
    }
}

/// Why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes cannot be read.
    #[error("cannot read the trace: {0}")]
    Io(#[from] io::Error),
    /// The bytes are not of this format.
    #[error("{at}: {why}")]
    Format {
        /// Where the error is.
        at: Place,
        /// What is wrong, and what may help.
        why: String,
    },
}

/// What a reading found besides events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of events.
    pub events: u64,
    /// Number of events known to be lost.
    pub lost: u64,
    /// How many times events were lost, whether the number is known or not.
    pub losses: u64,
    /// Number of parts that could not be parsed.
    pub gaps: u64,
    /// The first few gaps.
    pub first_gaps: Vec<Gap>,
    /// The last gap.
    pub last_gap: Option<Gap>,
}

impl Summary {
    /// Maximum number of gaps kept for display.
    const SHOWN: usize = 10;

    /// Counts one record.
    pub fn count(&mut self, record: &Record) {
        match record {
            Record::Event(_) => self.events += 1,
            Record::Lost(lost) => {
                self.losses += 1;
                self.lost = self.lost.saturating_add(lost.count.unwrap_or(0));
            }
            Record::Gap(gap) => {
                self.gaps += 1;
                if self.first_gaps.len() < Summary::SHOWN {
                    self.first_gaps.push(gap.clone());
                }
                self.last_gap = Some(gap.clone());
            }
        }
    }
}

/// Feeds all events to a sink.
pub fn feed(
    reader: impl IntoIterator<Item = Result<Record, Error>>,
    sink: &mut impl Sink,
) -> Result<Summary, Error> {
    let mut summary = Summary::default();
    for record in reader {
        match record? {
            Record::Event(event) => {
                summary.events += 1;
                sink.take(event);
            }
            record => summary.count(&record),
        }
    }
    Ok(summary)
}
