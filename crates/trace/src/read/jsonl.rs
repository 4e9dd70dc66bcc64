//! JSON lines, as the laboratory writes them.

mod plain;

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
            if let Some(event) = plain::event(bytes) {
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
        if let Some(plain) = plain::event(line.as_bytes()) {
            assert_eq!(Some(plain), slow, "{line}");
        }
        slow
    }

    #[test]
    fn a_plain_line_reads_as_any_other() {
        let head = r#""time":5,"cpu":1,"pid":7,"tgid":7,"comm":"a","flags":"d..1.","event":"#;
        let wakes = r#""sched_waking","fields":{"comm":"b","pid":8,"prio":120,"target_cpu":3}"#;
        let line = format!("{{{head}{wakes}}}");
        assert!(plain::event(line.as_bytes()).is_some());
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
            ("time", "cpu"),
            (r#""time":5"#, r#""time":05"#),
            (r#""time":5"#, r#""time":5e3"#),
            (r#""pid":7"#, r#""pid":-0"#),
            (r#""pid":7"#, r#""pid":-"#),
            ("}}", "},}"),
            ("}}", "}} "),
            ("}}", "}"),
        ] {
            assert!(line.contains(from), "{from}");
            read(&line.replace(from, to));
        }
    }
    #[test]
    fn a_plain_decision_reads_as_any_other() {
        let head = r#""time":5,"cpu":1,"pid":7,"flags":"d..1.","event":"schedlab_placement","fields":"#;
        let fields =
            r#"{"pid":8,"how":"wakeup","prev_cpu":3,"target":3,"cpu":5,"remote":false,"reason":"IDLE_CPU""#;
        let numbers = r#""numbers":{"nr_idle_scan":4,"left":-1}"#;
        let examined = r#""examined":[{"cpu":3,"refused":"BUSY"},{"cpu":5}]"#;
        let line = format!("{{{head}{fields},{numbers},{examined}}}}}");
        assert!(plain::event(line.as_bytes()).is_some());
        assert!(read(&line).is_some());
        for (from, to) in [
            (r#""left":-1"#, r#""nr_idle_scan":5"#),
            (r#""left":-1"#, r#""left":1.5"#),
            (r#"{"nr_idle_scan":4,"left":-1}"#, "{}"),
            (r#"{"nr_idle_scan":4,"left":-1}"#, "[1,2]"),
            (r#"{"nr_idle_scan":4,"left":-1}"#, "[]"),
            (r#"{"nr_idle_scan":4,"left":-1}"#, "null"),
            (r#"{"cpu":5}"#, "{}"),
            (r#"{"cpu":5}"#, r#"{"cpu":70000}"#),
            (r#"{"cpu":5}"#, r#"{"cpu":5,"refused":""}"#),
            (r#"{"cpu":5}"#, r#"{"refused":"BUSY","cpu":5}"#),
            (r#"{"cpu":5}"#, "5"),
            (r#""remote":false"#, r#""remote":0"#),
            (r#""how":"wakeup""#, r#""how":"never""#),
        ] {
            assert!(line.contains(from), "{from}");
            read(&line.replace(from, to));
        }
    }
}
