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

use std::collections::BTreeMap;
use std::str::FromStr;

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::Pid;

use crate::comm::Label;
use crate::decision::{
    Affinity, Balance, Candidate, How, IdleType, Name, Number, Pick, Placement, Preemption, Resched,
};
use crate::event::Kind;

/// Prints a decision or an affinity; false for other kinds.
pub(super) fn print(kind: &Kind, out: &mut Vec<u8>) -> bool {
    let text = match kind {
        Kind::Placement(p) => format!(
            "pid={} how={} prev_cpu={} target={} cpu={} remote={} reason={}{}{}",
            p.pid,
            p.how,
            p.prev_cpu,
            p.target,
            p.cpu,
            u8::from(p.remote),
            word(&p.reason),
            numbers(&p.numbers),
            list("examined", p.examined.iter().map(candidate)),
        ),
        Kind::Balance(b) => format!(
            "dst_cpu={} idle={} domain={}{}{}{} reason={} migration={} imbalance={}{}{}",
            b.dst_cpu,
            b.idle,
            word(&b.domain),
            b.src_cpu.map(|cpu| format!(" src_cpu={cpu}")).unwrap_or_default(),
            mask("local", &b.local),
            mask("busiest", &b.busiest),
            word(&b.reason),
            word(&b.migration),
            b.imbalance,
            numbers(&b.numbers),
            list("moved", b.moved.iter().map(Pid::to_string)),
        ),
        Kind::Preemption(p) => format!(
            "pid={} curr={} at={} reason={} resched={}{}",
            p.pid,
            p.curr,
            word(&p.at),
            word(&p.reason),
            p.resched,
            numbers(&p.numbers),
        ),
        Kind::Pick(p) => format!("pid={} reason={}{}", p.pid, word(&p.reason), numbers(&p.numbers)),
        Kind::Affinity(a) => format!("pid={} allowed={}", a.pid, a.allowed),
        _ => return false,
    };
    out.extend_from_slice(text.as_bytes());
    true
}

/// Prints a mark as a counter of the process that reports it.
pub(super) fn print_mark(process: Pid, label: Label, value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("C|{process}|{label}|{value}").as_bytes());
}

/// Text that a program wrote: a counter that fits a mark is one.
pub(super) fn parse_mark(text: &str) -> Kind {
    mark(text).unwrap_or_else(|| Kind::Print(text.into()))
}

fn mark(text: &str) -> Option<Kind> {
    let (process, rest) = text.strip_prefix("C|")?.split_once('|')?;
    let (name, value) = rest.split_once('|')?;
    process.parse::<u32>().ok()?;
    let (label, value) = (Label::new(name), value.trim_end().parse().ok()?);
    (label.as_str() == name).then_some(Kind::Mark { label, value })
}

/// Reads a decision or an affinity; the outer None says that it is none.
pub(super) fn parse(name: &[u8], args: &[u8]) -> Option<Option<Kind>> {
    let make: fn(&Fields<'_>) -> Option<Kind> = match name {
        b"schedlab_placement" => placement,
        b"schedlab_balance" => balance,
        b"schedlab_preemption" => preemption,
        b"schedlab_pick" => pick,
        b"schedlab_affinity" => affinity,
        _ => return None,
    };
    Some(std::str::from_utf8(args).ok().and_then(|text| make(&Fields::new(text))))
}

fn placement(fields: &Fields<'_>) -> Option<Kind> {
    Some(Kind::Placement(Box::new(Placement {
        pid: fields.pid("pid")?,
        how: How::parse(fields.text("how")?.as_bytes())?,
        prev_cpu: fields.cpu("prev_cpu")?,
        target: fields.cpu("target")?,
        cpu: fields.cpu("cpu")?,
        remote: fields.text("remote")? == "1",
        reason: fields.name("reason")?,
        numbers: fields.numbers()?,
        examined: fields.list("examined", parse_candidate)?,
    })))
}

fn balance(fields: &Fields<'_>) -> Option<Kind> {
    Some(Kind::Balance(Box::new(Balance {
        dst_cpu: fields.cpu("dst_cpu")?,
        src_cpu: match fields.text("src_cpu") {
            Some(_) => Some(fields.cpu("src_cpu")?),
            None => None,
        },
        domain: fields.name("domain")?,
        idle: IdleType::parse(fields.text("idle")?.as_bytes())?,
        local: fields.mask("local")?,
        busiest: fields.mask("busiest")?,
        reason: fields.name("reason")?,
        migration: fields.name("migration")?,
        imbalance: fields.number("imbalance")?,
        numbers: fields.numbers()?,
        moved: fields.list("moved", |pid| pid.parse().ok().map(Pid))?,
    })))
}

fn preemption(fields: &Fields<'_>) -> Option<Kind> {
    Some(Kind::Preemption(Box::new(Preemption {
        pid: fields.pid("pid")?,
        curr: fields.pid("curr")?,
        at: fields.name("at")?,
        reason: fields.name("reason")?,
        resched: Resched::parse(fields.text("resched")?.as_bytes())?,
        numbers: fields.numbers()?,
    })))
}

fn pick(fields: &Fields<'_>) -> Option<Kind> {
    Some(Kind::Pick(Box::new(Pick {
        pid: fields.pid("pid")?,
        reason: fields.name("reason")?,
        numbers: fields.numbers()?,
    })))
}

fn affinity(fields: &Fields<'_>) -> Option<Kind> {
    Some(Kind::Affinity(Box::new(Affinity { pid: fields.pid("pid")?, allowed: fields.mask("allowed")? })))
}

/// A name with nothing in it that parts fields or the items of a list.
fn word(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_whitespace() || c.is_control() || ",:=".contains(c) { '_' } else { c })
        .collect()
}

/// A list behind a space and its key; nothing when it is empty.
fn list(key: &str, items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { String::new() } else { format!(" {key}={}", items.join(",")) }
}

fn numbers(numbers: &[Number]) -> String {
    list("numbers", numbers.iter().map(|(name, n)| format!("{}:{n}", word(name))))
}

fn mask(key: &str, mask: &CpuMask) -> String {
    if mask.is_empty() { String::new() } else { format!(" {key}={mask}") }
}

fn candidate(candidate: &Candidate) -> String {
    match &*candidate.refused {
        "" => candidate.cpu.to_string(),
        refused => format!("{}:{}", candidate.cpu, word(refused)),
    }
}

fn parse_candidate(text: &str) -> Option<Candidate> {
    let (cpu, refused) = text.split_once(':').unwrap_or((text, ""));
    Some(Candidate { cpu: CpuId(cpu.parse().ok()?), refused: refused.to_owned().into() })
}

/// The fields of one line, by their keys.
struct Fields<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Fields<'a> {
    fn new(text: &'a str) -> Fields<'a> {
        Fields(text.split_ascii_whitespace().filter_map(|word| word.split_once('=')).collect())
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).copied()
    }

    fn number<T: FromStr>(&self, key: &str) -> Option<T> {
        self.text(key)?.parse().ok()
    }

    fn pid(&self, key: &str) -> Option<Pid> {
        self.number(key).map(Pid)
    }

    fn cpu(&self, key: &str) -> Option<CpuId> {
        self.number(key).map(CpuId)
    }

    fn name(&self, key: &str) -> Option<Name> {
        self.text(key).map(|text| text.to_owned().into())
    }

    /// The items of a list; none when its key is missing.
    fn list<T>(&self, key: &str, item: impl Fn(&'a str) -> Option<T>) -> Option<Vec<T>> {
        self.text(key).map_or(Some(Vec::new()), |text| text.split(',').map(item).collect())
    }

    fn numbers(&self) -> Option<Vec<Number>> {
        self.list("numbers", |text| {
            let (name, n) = text.split_once(':')?;
            Some((name.to_owned().into(), n.parse().ok()?))
        })
    }

    /// A set of CPUs, as wide as its highest one; empty when its key is missing.
    fn mask(&self, key: &str) -> Option<CpuMask> {
        let Some(text) = self.text(key) else { return Some(CpuMask::default()) };
        let highest = text.rsplit([',', '-']).next()?.parse::<u16>().ok()?;
        CpuMask::parse_list(text, usize::from(highest) + 1).ok()
    }
}
