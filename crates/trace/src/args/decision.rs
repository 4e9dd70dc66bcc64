//! The laboratory's own events in text: marks, decisions, affinity.
//!
//! They are printed as the kernel prints its own, `key=value` behind a name, so
//! that tools which know only the form carry them along. A mark is a counter in
//! the trace marker's notation, which viewers draw:
//!
//! ```text
//! tracing_mark_write: C|2711|ops|1200
//! schedlab_placement: pid=7 how=wakeup prev_cpu=3 target=3 cpu=5 remote=0 reason=IDLE_CPU \
//!                     numbers=nr_idle_scan:4 examined=3:BUSY,4:BUSY,5
//! ```

use std::borrow::Cow;

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::Pid;

use crate::comm::Label;
use crate::decision::{Affinity, Balance, Candidate, Pick, Placement, Preemption};
use crate::event::Kind;
use crate::fields::{Field, Value};

/// Makes `visit` and `build` from a table of the annotations and their fields.
macro_rules! annotations {
    ($($name:literal $type:ident: $($field:ident)*;)+) => {
        /// Gives the fields of an annotation; false for other kinds.
        pub(super) fn visit(kind: &Kind, give: &mut dyn FnMut(&'static str, Value<'_>)) -> bool {
            match kind {
                $(Kind::$type(annotation) => {
                    $(if let Some(value) = annotation.$field.value() {
                        give(stringify!($field), value);
                    })*
                    true
                })+
                _ => false,
            }
        }

        /// The annotation of that name; the outer None says that it is none.
        pub(super) fn build<'a>(
            name: &str,
            get: &mut dyn FnMut(&str) -> Option<Value<'a>>,
        ) -> Option<Option<Kind>> {
            $(if name == $name {
                let mut make = || Some(Kind::$type(Box::new($type {
                    $($field: Field::from_value(get(stringify!($field)))?),*
                })));
                return Some(make());
            })+
            None
        }
    };
}

annotations! {
    "schedlab_placement" Placement: pid how prev_cpu target cpu remote reason numbers examined;
    "schedlab_balance" Balance: dst_cpu idle domain src_cpu local busiest reason migration imbalance
        numbers moved;
    "schedlab_preemption" Preemption: pid curr at reason resched numbers;
    "schedlab_pick" Pick: pid reason numbers;
    "schedlab_affinity" Affinity: pid allowed;
}

/// Prints an annotation; false for other kinds.
pub(super) fn print(kind: &Kind, out: &mut Vec<u8>) -> bool {
    let mut text = String::new();
    let found = visit(kind, &mut |key, value| {
        if !text.is_empty() {
            text.push(' ');
        }
        text += &format!("{key}={}", show(&value));
    });
    out.extend_from_slice(text.as_bytes());
    found
}

/// Reads an annotation; the outer None says that it is none.
pub(super) fn parse(name: &[u8], args: &[u8]) -> Option<Option<Kind>> {
    let name = std::str::from_utf8(name).ok()?;
    let text = String::from_utf8_lossy(args);
    build(name, &mut |key| {
        let mut fields = text.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        read(key, fields.find(|(k, _)| *k == key)?.1)
    })
}

/// A value without anything in it that parts fields or the items of a list.
fn show(value: &Value<'_>) -> String {
    fn list<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
        items.iter().map(show).collect::<Vec<_>>().join(",")
    }
    match value {
        Value::Int(n) => n.to_string(),
        Value::Uint(n) => n.to_string(),
        Value::Bool(yes) => u8::from(*yes).to_string(),
        Value::Text(text) => word(&String::from_utf8_lossy(text)),
        Value::State(state) => state.to_string(),
        Value::Numbers(numbers) => list(numbers, |(name, n)| format!("{}:{n}", word(name))),
        Value::Candidates(candidates) => list(candidates, |candidate| match &*candidate.refused {
            "" => candidate.cpu.to_string(),
            refused => format!("{}:{}", candidate.cpu, word(refused)),
        }),
        Value::Pids(pids) => list(pids, Pid::to_string),
        Value::Cpus(cpus) => cpus.to_string(),
    }
}

/// A name in which nothing parts it.
fn word(name: &str) -> String {
    let parts = |c: char| c.is_whitespace() || c.is_control() || ",:=".contains(c);
    name.chars().map(|c| if parts(c) { '_' } else { c }).collect()
}

/// The value of a key's text. Which keys hold lists is the same in all annotations.
fn read<'a>(key: &str, text: &str) -> Option<Value<'a>> {
    fn list<T: Clone>(text: &str, item: impl Fn(&str) -> Option<T>) -> Option<Cow<'static, [T]>> {
        text.split(',').map(item).collect::<Option<Vec<T>>>().map(Cow::Owned)
    }
    Some(match key {
        "numbers" => Value::Numbers(list(text, |item| {
            let (name, n) = item.split_once(':')?;
            Some((name.to_owned().into(), n.parse().ok()?))
        })?),
        "examined" => Value::Candidates(list(text, |item| {
            let (cpu, refused) = item.split_once(':').unwrap_or((item, ""));
            Some(Candidate { cpu: CpuId(cpu.parse().ok()?), refused: refused.to_owned().into() })
        })?),
        "moved" => Value::Pids(list(text, |pid| pid.parse().ok().map(Pid))?),
        "local" | "busiest" | "allowed" => Value::Cpus(Cow::Owned(cpus(text)?)),
        _ => Value::Text(Cow::Owned(text.as_bytes().to_owned())),
    })
}

/// A set of CPUs, as wide as its highest one.
pub(crate) fn cpus(list: &str) -> Option<CpuMask> {
    let highest = list.rsplit([',', '-']).next()?.parse::<u16>().ok()?;
    CpuMask::parse_list(list, usize::from(highest) + 1).ok()
}

/// Prints a mark as a counter of the process that reports it.
pub(super) fn print_mark(process: Pid, label: Label, value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("C|{process}|{label}|{value}").as_bytes());
}

/// Text that a program wrote: a counter that fits a mark is one.
pub(crate) fn parse_mark(text: &str) -> Kind {
    mark(text).unwrap_or_else(|| Kind::Print(text.into()))
}

fn mark(text: &str) -> Option<Kind> {
    let (process, rest) = text.strip_prefix("C|")?.split_once('|')?;
    let (name, value) = rest.split_once('|')?;
    process.parse::<u32>().ok()?;
    let (label, value) = (Label::new(name), value.trim_end().parse().ok()?);
    (label.as_str() == name).then_some(Kind::Mark { label, value })
}
