//! One JSON object per line: complete, including decisions, for scripts.
//!
//! ```json
//! {"time":4796689012,"cpu":0,"pid":812,"comm":"make","flags":"d..2.","event":"sched_waking",
//!  "fields":{"comm":"cc1","pid":813,"prio":120,"target_cpu":3}}
//! ```
//!
//! Keys do not change their meaning between versions. `time` is in nanoseconds; `tgid` and `flags` are left out if the
//! trace does not have them. The fields are those of the tracepoint, with the names it prints; sets of CPUs are lists
//! as the kernel writes them, `"0-3,8"`.

use std::io::{self, Write};

use crate::event::Event;
use crate::fields::Value;
use crate::sink::Sink;

/// Writes JSON lines. An error is kept until [`Jsonl::finish`], and nothing is written after it.
#[derive(Debug)]
pub struct Jsonl<W> {
    output: W,
    line: Vec<u8>,
    decisions: bool,
    state: io::Result<()>,
}

impl<W: Write> Jsonl<W> {
    /// Creates a writer.
    pub fn new(output: W) -> Jsonl<W> {
        Jsonl { output, line: Vec::with_capacity(512), decisions: false, state: Ok(()) }
    }

    /// Writes the annotations that explain decisions, too.
    pub fn with_decisions(mut self) -> Jsonl<W> {
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

impl<W: Write> Sink for Jsonl<W> {
    fn event(&mut self, event: &Event) {
        if self.state.is_ok() {
            self.line.clear();
            self.state = line(event, &mut self.line).and_then(|()| self.output.write_all(&self.line));
        }
    }

    fn wants_decisions(&self) -> bool {
        self.decisions
    }
}

/// Prints one event with its line end.
fn line(event: &Event, out: &mut Vec<u8>) -> io::Result<()> {
    write!(out, "{{\"time\":{},\"cpu\":{},\"pid\":{}", event.time.0, event.cpu, event.pid)?;
    if let Some(tgid) = event.tgid {
        write!(out, ",\"tgid\":{tgid}")?;
    }
    if !event.comm.is_empty() {
        out.extend_from_slice(b",\"comm\":");
        string(&event.comm.to_str_lossy(), out)?;
    }
    if event.flags.is_known() {
        write!(out, ",\"flags\":\"{}\"", event.flags)?;
    }
    out.extend_from_slice(b",\"event\":");
    string(event.kind.name(), out)?;
    out.extend_from_slice(b",\"fields\":{");
    let mut result = Ok(());
    let start = out.len();
    event.kind.fields(|name, field| {
        let comma = if out.len() > start { "," } else { "" };
        let written = write!(out, "{comma}\"{name}\":").and_then(|()| value(&field, out));
        result = std::mem::replace(&mut result, Ok(())).and(written);
    });
    out.extend_from_slice(b"}}\n");
    result
}

fn value(value: &Value<'_>, out: &mut Vec<u8>) -> io::Result<()> {
    match value {
        Value::Int(n) => write!(out, "{n}"),
        Value::Uint(n) => write!(out, "{n}"),
        Value::Bool(yes) => write!(out, "{yes}"),
        Value::Text(text) => string(&String::from_utf8_lossy(text), out),
        Value::State(_) | Value::Cpus(_) => write!(out, "\"{value}\""),
        Value::Numbers(numbers) => list(out, b"{}", numbers, |(name, n), out| {
            string(name, out)?;
            write!(out, ":{n}")
        }),
        Value::Candidates(candidates) => list(out, b"[]", candidates, |candidate, out| {
            write!(out, "{{\"cpu\":{}", candidate.cpu)?;
            if !candidate.refused.is_empty() {
                out.extend_from_slice(b",\"refused\":");
                string(&candidate.refused, out)?;
            }
            write!(out, "}}")
        }),
        Value::Pids(pids) => list(out, b"[]", pids, |pid, out| write!(out, "{pid}")),
    }
}

/// Items with commas between them, inside a pair of brackets.
fn list<T>(
    out: &mut Vec<u8>,
    brackets: &[u8; 2],
    items: &[T],
    show: impl Fn(&T, &mut Vec<u8>) -> io::Result<()>,
) -> io::Result<()> {
    for (i, item) in items.iter().enumerate() {
        out.push(if i == 0 { brackets[0] } else { b',' });
        show(item, out)?;
    }
    out.push(brackets[1]);
    Ok(())
}

fn string(text: &str, out: &mut Vec<u8>) -> io::Result<()> {
    serde_json::to_writer(out, text).map_err(io::Error::from)
}
