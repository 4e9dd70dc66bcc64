//! JSON lines, as the laboratory writes them.

use std::borrow::Cow;
use std::io::BufRead;

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};
use serde_json::Value as Json;

use super::lines::{Lines, Next};
use super::{Error, Place, Record};
use crate::comm::Comm;
use crate::decision::Candidate;
use crate::event::{Event, Kind};
use crate::fields::Value;
use crate::flags::Flags;

/// Reads JSON lines one by one.
pub struct Reader<R> {
    lines: Lines<R>,
}

impl<R: BufRead> Reader<R> {
    /// A reader at the beginning of the text.
    pub fn new(input: R) -> Reader<R> {
        Reader { lines: Lines::new(input) }
    }

    /// Where the last record stands.
    pub fn place(&self) -> Place {
        self.lines.place()
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Result<Record, Error>> {
        loop {
            let line = match self.lines.next() {
                Next::Line(line) => line,
                Next::Other(record) => return Some(record),
                Next::End => return None,
            };
            let json = match line.bytes.trim_ascii() {
                b"" => continue,
                bytes => serde_json::from_slice(bytes),
            };
            let made = match &json {
                Ok(json) => event(json).map_err(str::to_owned),
                Err(error) => Err(format!("not a JSON object: {error}")),
            };
            return Some(made.map(Record::Event).or_else(|why| line.gap(why)));
        }
    }
}

/// The event of an object; an error says what is wrong with it.
fn event(json: &Json) -> Result<Event, &'static str> {
    let number = |key: &str| json.get(key).and_then(Json::as_i64);
    let name = json.get("event").and_then(Json::as_str).ok_or("no name under `event`")?;
    let fields = json.get("fields").and_then(Json::as_object).ok_or("no object under `fields`")?;
    let kind = Kind::from_fields(name, |key| fields.get(key).and_then(value))
        .ok_or("`fields` does not hold what the event needs")?;
    let pid = |key| number(key).and_then(|n| n.try_into().ok()).map(Pid);
    Ok(Event {
        time: json.get("time").and_then(Json::as_u64).map(Time).ok_or("no nanoseconds under `time`")?,
        cpu: number("cpu").and_then(|n| n.try_into().ok()).map(CpuId).ok_or("no CPU under `cpu`")?,
        pid: pid("pid").ok_or("no task under `pid`")?,
        tgid: pid("tgid"),
        comm: json.get("comm").and_then(Json::as_str).map_or(Comm::default(), Comm::from),
        flags: match json.get("flags") {
            Some(flags) => flags
                .as_str()
                .and_then(|letters| Flags::parse(letters.as_bytes()))
                .ok_or("`flags` are not the five letters of a trace line")?,
            None => Flags::UNKNOWN,
        },
        kind,
    })
}

fn value(json: &Json) -> Option<Value<'_>> {
    Some(match json {
        Json::Bool(yes) => Value::Bool(*yes),
        Json::Number(n) => n.as_i64().map(Value::Int).or_else(|| n.as_u64().map(Value::Uint))?,
        Json::String(text) => Value::text(text),
        Json::Object(numbers) => {
            let number = |(name, n): (&String, &Json)| Some((name.clone().into(), n.as_i64()?));
            Value::Numbers(Cow::Owned(numbers.iter().map(number).collect::<Option<_>>()?))
        }
        Json::Array(items) if items.iter().all(Json::is_object) => {
            Value::Candidates(Cow::Owned(items.iter().map(candidate).collect::<Option<_>>()?))
        }
        Json::Array(items) => {
            let pid = |item: &Json| item.as_i64()?.try_into().ok().map(Pid);
            Value::Pids(Cow::Owned(items.iter().map(pid).collect::<Option<_>>()?))
        }
        Json::Null => return None,
    })
}

fn candidate(json: &Json) -> Option<Candidate> {
    let cpu = CpuId(json.get("cpu")?.as_u64()?.try_into().ok()?);
    let refused = json.get("refused").and_then(Json::as_str).unwrap_or_default();
    Some(Candidate { cpu, refused: refused.to_owned().into() })
}
