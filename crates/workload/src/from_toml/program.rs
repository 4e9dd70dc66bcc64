//! A program written as a list of ops in words.

use std::collections::BTreeMap;

use super::names::Names;
use super::op::{self, Step};
use super::words;
use crate::tree::{Entry, File, Kind, Position};
use crate::{Op, ProgramBuilder, ProgramId, WorkloadError};

/// A program with its names resolved, ready to be written.
#[derive(Clone, Debug)]
pub(super) struct Source {
    steps: Vec<(Position, Step)>,
}

/// Reads a program: text, or a list of texts, of ops.
pub(super) fn read(file: File, entry: &Entry, names: &mut Names) -> Result<Source, WorkloadError> {
    read_numbered(file, entry, names, None)
}

/// Placeholders for the number of an instance of a task, of the next instance and of the previous one,
/// cyclically.
const NUMBERS: [(&str, u32); 3] = [("{n}", 0), ("{n+1}", 1), ("{n-1}", u32::MAX)];

/// Whether a text has such a number in it.
pub(super) fn is_numbered(text: &str) -> bool {
    NUMBERS.iter().any(|(word, _)| text.contains(word))
}

/// The same for one of several instances.
pub(super) fn read_numbered(
    file: File,
    entry: &Entry,
    names: &mut Names,
    nth: Option<(u32, u32)>,
) -> Result<Source, WorkloadError> {
    let texts = match &entry.value.kind {
        Kind::Array(values) => &values[..],
        _ => std::slice::from_ref(&entry.value),
    };
    let mut steps = Vec::new();
    for value in texts {
        let Kind::String(text) = &value.kind else {
            let why = format!("ops are written as text, not as {}", value.kind.name());
            return Err(file.bad(value.at, &entry.key, why));
        };
        let bad = |why: String| file.bad(value.at, &entry.key, why);
        let mut text = text.clone();
        if let Some((nth, count)) = nth {
            for (word, by) in NUMBERS {
                let by = if by == u32::MAX { count - 1 } else { by };
                text = text.replace(word, &((nth + by) % count).to_string());
            }
        }
        for words in words::ops(&text).map_err(bad)? {
            let step =
                op::read(&words, names).map_err(|why| bad(format!("in \"{}\": {why}", words.join(" "))))?;
            for part in std::mem::take(&mut names.fresh) {
                names.w.described_at(part, value.at.0, value.at.1);
            }
            steps.push((value.at, step));
        }
    }
    let source = Source { steps };
    source.check(file, entry)?;
    Ok(source)
}

impl Source {
    /// Loops have both ends and labels are where jumps expect them.
    fn check(&self, file: File, entry: &Entry) -> Result<(), WorkloadError> {
        let bad = |at: Position, why: String| Err(file.bad(at, &entry.key, why));
        let mut open = Vec::new();
        let mut labels = BTreeMap::new();
        for (at, step) in &self.steps {
            match step {
                Step::Loop(_) => open.push(*at),
                Step::End if open.pop().is_none() => return bad(*at, "an end without a loop".to_string()),
                Step::Label(name) if labels.insert(name, ()).is_some() => {
                    return bad(*at, format!("label \"{name}\" stands twice"));
                }
                _ => {}
            }
        }
        if let Some(at) = open.pop() {
            return bad(at, "a loop without an end".to_string());
        }
        for (at, step) in &self.steps {
            if let Step::Jump(name) | Step::JumpIf(.., name) | Step::JumpOdds(_, name) = step
                && !labels.contains_key(name)
            {
                return bad(*at, format!("there is no label \"{name}\""));
            }
        }
        Ok(())
    }

    /// Whether it does this op.
    pub fn does(&self, op: Op) -> bool {
        self.steps.iter().any(|(_, step)| *step == Step::Op(op))
    }

    /// Writes it into the workload; a forked task first takes its name, unless its program sets one.
    pub fn write(&self, names: &mut Names, name: &str, forked: bool) -> ProgramId {
        let takes_name =
            self.steps.iter().any(|(_, s)| matches!(s, Step::Op(Op::OwnComm | Op::SetComm { .. })));
        names.w.program(name, |p| {
            if forked && !takes_name {
                p.own_comm();
            }
            let mut labels = BTreeMap::new();
            for (_, step) in &self.steps {
                if let Step::Label(name) = step {
                    labels.insert(name.as_str(), p.label());
                }
            }
            write(p, &self.steps, &labels);
        })
    }
}

fn write(p: &mut ProgramBuilder, mut steps: &[(Position, Step)], labels: &BTreeMap<&str, crate::Label>) {
    while let Some(((at, step), rest)) = steps.split_first() {
        steps = rest;
        p.at(at.0, at.1);
        match step {
            Step::Op(op) => _ = p.op(*op),
            Step::Loop(times) => {
                let body = body_of(rest);
                p.repeat(*times, |p| write(p, &rest[..body], labels));
                steps = &rest[body + 1..];
            }
            Step::End => unreachable!("ends were matched with their loops"),
            Step::Label(name) => _ = p.place(labels[name.as_str()]),
            Step::Jump(to) => _ = p.jump(labels[to.as_str()]),
            Step::JumpIf(word, test, value, to) => _ = p.jump_if(*word, *test, *value, labels[to.as_str()]),
            Step::JumpOdds(permille, to) => _ = p.jump_odds(*permille, labels[to.as_str()]),
        }
    }
}

/// How many steps precede the end of the loop that was just entered.
fn body_of(steps: &[(Position, Step)]) -> usize {
    let mut depth = 0;
    for (i, (_, step)) in steps.iter().enumerate() {
        match step {
            Step::Loop(_) => depth += 1,
            Step::End if depth == 0 => return i,
            Step::End => depth -= 1,
            _ => {}
        }
    }
    unreachable!("loops were matched with their ends")
}
