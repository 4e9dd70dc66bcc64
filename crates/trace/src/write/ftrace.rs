//! Trace text in the format of tracefs, which most scheduler tools read.
//!
//! ```text
//!             make-812     [000] d..2.     4.796689012: sched_waking: comm=cc1 pid=813 ...
//! ```
//!
//! Times have nine decimals unless the six of the kernel's own text are requested: with microseconds the order of
//! events on different CPUs is lost when they are sorted again. The process of a thread is not printed, as in tracefs
//! while its option `record-tgid` is off.
//!
//! Kernel: trace_print_context(), kernel/trace/trace_output.c.

use std::io::{self, Write};

use crate::args::{self, decimal};
use crate::event::Event;
use crate::sink::Sink;

/// How finely times are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Six decimals, as the kernel prints.
    Micro,
    /// Nine decimals, as `trace-cmd report -t` prints.
    #[default]
    Nano,
}

/// Writes trace text. An error is kept until [`Ftrace::finish`], and nothing is written after it.
#[derive(Debug)]
pub struct Ftrace<W> {
    output: W,
    line: Vec<u8>,
    precision: Precision,
    decisions: bool,
    state: io::Result<()>,
}

const PICTURE: &str = "\
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";

impl<W: Write> Ftrace<W> {
    /// A writer that has written the header.
    pub fn new(mut output: W, precision: Precision) -> Ftrace<W> {
        let state = write!(output, "# tracer: nop\n#\n{PICTURE}");
        Ftrace { output, line: Vec::with_capacity(256), precision, decisions: false, state }
    }

    /// Writes the annotations that explain decisions, too.
    pub fn with_decisions(mut self) -> Ftrace<W> {
        self.decisions = true;
        self
    }

    /// Ends the text and returns the result of writing.
    pub fn finish(mut self) -> io::Result<W> {
        self.state?;
        self.output.flush()?;
        Ok(self.output)
    }
}

impl<W: Write> Sink for Ftrace<W> {
    fn event(&mut self, event: &Event) {
        if self.state.is_ok() {
            self.line.clear();
            line(event, self.precision, &mut self.line);
            self.state = self.output.write_all(&self.line);
        }
    }

    fn wants_decisions(&self) -> bool {
        self.decisions
    }
}

/// Prints one event with its line end.
fn line(event: &Event, precision: Precision, out: &mut Vec<u8>) {
    let comm: &[u8] = match event.comm.as_bytes() {
        _ if event.pid.0 == 0 => b"<idle>",
        b"" => b"<...>",
        comm => comm,
    };
    out.resize(16 - comm.len(), b' ');
    out.extend(comm.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    out.push(b'-');
    let start = out.len();
    decimal(event.pid.0.max(0) as u64, 0, b' ', out);
    out.resize(out.len().max(start + 7) + 1, b' ');
    out.push(b'[');
    decimal(event.cpu.0.into(), 3, b'0', out);
    out.extend_from_slice(b"] ");
    out.extend_from_slice(&event.flags.letters());
    out.push(b' ');
    let (seconds, nanos) = (event.time.0 / 1_000_000_000, event.time.0 % 1_000_000_000);
    decimal(seconds, 5, b' ', out);
    out.push(b'.');
    match precision {
        Precision::Micro => decimal(nanos / 1_000, 6, b'0', out),
        Precision::Nano => decimal(nanos, 9, b'0', out),
    }
    out.extend_from_slice(b": ");
    out.extend_from_slice(event.kind.name().as_bytes());
    out.extend_from_slice(b": ");
    args::print(event, out);
    out.push(b'\n');
}
