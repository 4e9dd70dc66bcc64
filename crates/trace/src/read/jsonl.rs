//! JSON lines, as the laboratory writes them.

use std::borrow::Cow;
use std::fmt;
use std::io::BufRead;

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
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

    /// The place of the last record.
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
            let bytes = line.bytes.trim_ascii();
            if bytes.is_empty() {
                continue;
            }
            if let Some(event) = plain(bytes) {
                return Some(Ok(Record::Event(event)));
            }
            let json = serde_json::from_slice(bytes);
            let made = match &json {
                Ok(json) => event(json).map_err(str::to_owned),
                Err(error) => Err(format!("not a JSON object: {error}")),
            };
            return Some(made.map(Record::Event).or_else(|why| line.gap(why)));
        }
    }
}

/// The event of a line that looks exactly as we write it, without lists: nearly every line. `None` means that the
/// slower parser is needed.
fn plain(bytes: &[u8]) -> Option<Event> {
    let Plain { time, cpu, pid, tgid, comm, flags, event, fields } = serde_json::from_slice(bytes).ok()?;
    let field =
        |key: &str| fields.0.iter().rev().find(|(name, _)| *name == key).map(|(_, value)| value.clone());
    Some(Event {
        time: Time(time),
        cpu: CpuId(cpu),
        pid: Pid(pid),
        tgid: tgid.map(Pid),
        comm: comm.map_or(Comm::default(), Comm::from),
        flags: Flags::parse(flags.as_bytes())?,
        kind: Kind::from_fields(event, field)?,
    })
}

/// A line without escapes or lists.
#[derive(serde::Deserialize)]
struct Plain<'a> {
    time: u64,
    cpu: u16,
    pid: i32,
    tgid: Option<i32>,
    #[serde(borrow)]
    comm: Option<&'a str>,
    flags: &'a str,
    event: &'a str,
    fields: Fields<'a>,
}

/// The fields in their order; if a name occurs twice the last one counts.
struct Fields<'a>(Vec<(&'a str, Value<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields<'a>, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(8);
                while let Some(name) = map.next_key()? {
                    fields.push((name, map.next_value::<Scalar>()?.0));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// A value that is not a list.
struct Scalar<'a>(Value<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar<'a>, D::Error> {
        struct One;
        impl<'de> Visitor<'de> for One {
            type Value = Scalar<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number, text, true or false")
            }

            fn visit_bool<E>(self, yes: bool) -> Result<Scalar<'de>, E> {
                Ok(Scalar(Value::Bool(yes)))
            }

            fn visit_i64<E>(self, n: i64) -> Result<Scalar<'de>, E> {
                Ok(Scalar(Value::Int(n)))
            }

            fn visit_u64<E>(self, n: u64) -> Result<Scalar<'de>, E> {
                Ok(Scalar(i64::try_from(n).map_or(Value::Uint(n), Value::Int)))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
                Ok(Scalar(Value::text(text)))
            }
        }
        deserializer.deserialize_any(One)
    }
}

/// The event of an object; an error describes what is wrong with it.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of both parsers on a line, if they agree.
    fn read(line: &str) -> Option<Event> {
        let slow = serde_json::from_str(line).ok().and_then(|json| event(&json).ok());
        if let Some(plain) = plain(line.as_bytes()) {
            assert_eq!(Some(plain), slow, "{line}");
        }
        slow
    }

    #[test]
    fn a_plain_line_reads_as_any_other() {
        let head = r#""time":5,"cpu":1,"pid":7,"tgid":7,"comm":"a","flags":"d..1.","event":"#;
        let wakes = r#""sched_waking","fields":{"comm":"b","pid":8,"prio":120,"target_cpu":3}"#;
        let line = format!("{{{head}{wakes}}}");
        assert!(plain(line.as_bytes()).is_some());
        assert!(read(&line).is_some());
        for (from, to) in [
            (r#""target_cpu":3"#, r#""target_cpu":3,"target_cpu":4"#),
            (r#""comm":"b""#, r#""comm":"b\u0041""#),
            (r#""pid":8"#, r#""pid":"8""#),
            (r#""pid":8"#, r#""pid":null"#),
            (r#""pid":8"#, r#""pid":8.5"#),
            (r#""pid":8"#, r#""pid":18446744073709551615"#),
            (r#""prio":120"#, r#""prio":-1"#),
            (r#""target_cpu":3"#, r#""target_cpu":70000"#),
            (r#""flags":"d..1.","#, ""),
            (r#""flags":"d..1.""#, r#""flags":null"#),
            (r#""flags":"d..1.""#, r#""flags":"?""#),
            (r#""tgid":7"#, r#""tgid":null"#),
            (r#""tgid":7"#, r#""tgid":-70000000000"#),
            (r#""time":5"#, r#""time":-5"#),
            (r#""cpu":1"#, r#""cpu":"1""#),
            (r#""time":5"#, r#""time":5,"other":[1]"#),
            ("sched_waking", "no_such_event"),
        ] {
            assert!(line.contains(from), "{from}");
            read(&line.replace(from, to));
        }
    }
}
