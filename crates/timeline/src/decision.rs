//! Decisions with their reasons, numbers and candidates, as columns.
//!
//! Other fields of a decision, besides its task and its reason, are kept by name, so that a new field is shown without
//! a change here.

use schedlab_trace::write::Remark;
use schedlab_trace::{Event, Kind, Value};

use crate::columns::Columns;
use crate::names::Names;
use crate::tasks::{IDLE, Tasks};

/// Columns of decisions of one class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions {
    times: Vec<u64>,
    cpus: Vec<u16>,
    kinds: Vec<u32>,
    reasons: Vec<u32>,
    /// Number of the task plus one; 0 if the decision is about no task.
    tasks: Vec<u32>,
    nr_numbers: Vec<u32>,
    number_names: Vec<u32>,
    numbers: Vec<i64>,
    nr_texts: Vec<u32>,
    text_names: Vec<u32>,
    texts: Vec<u32>,
    nr_candidates: Vec<u32>,
    candidates: Vec<u16>,
    /// Number of the word for the rejection, plus one; 0 if the CPU was not rejected.
    refused: Vec<u32>,
}

impl Decisions {
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Adds a decision.
    pub fn push(&mut self, event: &Event, now: u64, tasks: &mut Tasks, names: &mut Names) {
        let (about, kind, reason) = match &event.kind {
            Kind::Placement(p) => (Some(p.pid), p.how.as_str(), &p.reason),
            Kind::Balance(b) => (b.moved.first().copied(), "balance", &b.reason),
            Kind::Preemption(p) => (Some(p.pid), "preemption", &p.reason),
            Kind::Pick(p) => (Some(p.pid), "pick", &p.reason),
            _ => return,
        };
        self.times.push(now);
        self.cpus.push(event.cpu.0);
        self.kinds.push(names.number(kind));
        self.reasons.push(names.number(reason));
        self.tasks.push(about.map_or(0, |pid| tasks.number(pid, now) + 1));
        let (numbers, texts, candidates) = (self.numbers.len(), self.texts.len(), self.candidates.len());
        event.kind.fields(|name, value| self.field(name, &value, names));
        self.nr_numbers.push((self.numbers.len() - numbers) as u32);
        self.nr_texts.push((self.texts.len() - texts) as u32);
        self.nr_candidates.push((self.candidates.len() - candidates) as u32);
    }

    /// Adds a remark, with its category as the kind of decision and its name as the reason.
    pub fn remark(&mut self, remark: &Remark<'_>, now: u64, tasks: &mut Tasks, names: &mut Names) {
        self.times.push(now);
        self.cpus.push(remark.cpu.0);
        self.kinds.push(names.number(remark.category));
        self.reasons.push(names.number(remark.name));
        let task = tasks.number(remark.pid, now);
        self.tasks.push(if task == IDLE { 0 } else { task + 1 });
        let texts = self.texts.len();
        for (name, value) in remark.notes {
            let text = value.str().map_or_else(|| value.to_string(), |text| text.into_owned());
            self.text_names.push(names.number(name));
            self.texts.push(names.number(&text));
        }
        self.nr_numbers.push(0);
        self.nr_texts.push((self.texts.len() - texts) as u32);
        self.nr_candidates.push(0);
    }

    fn field(&mut self, name: &'static str, value: &Value<'_>, names: &mut Names) {
        match (name, value) {
            // Stored in separate columns.
            ("pid" | "reason" | "how", _) => {}
            (_, Value::Numbers(numbers)) => {
                for (name, number) in numbers.iter() {
                    self.number(name, *number, names);
                }
            }
            (_, Value::Candidates(candidates)) => {
                for candidate in candidates.iter() {
                    self.candidates.push(candidate.cpu.0);
                    let refused = &candidate.refused;
                    self.refused.push(if refused.is_empty() { 0 } else { names.number(refused) + 1 });
                }
            }
            (_, Value::Pids(pids)) => pids.iter().for_each(|pid| self.number(name, pid.0.into(), names)),
            (_, Value::Int(_) | Value::Uint(_)) => self.number(name, value.int().unwrap_or(0), names),
            (_, value) => {
                self.text_names.push(names.number(name));
                self.texts.push(names.number(&value.to_string()));
            }
        }
    }

    fn number(&mut self, name: &str, number: i64, names: &mut Names) {
        self.number_names.push(names.number(name));
        self.numbers.push(number);
    }

    /// The columns, and separately those of the candidates; empties both for the next chunk.
    pub fn encode(&mut self, from: u64) -> (Vec<u8>, Vec<u8>) {
        let mut columns = Columns::default();
        columns.put(self.times.len() as u64);
        columns.put_times(&self.times, from);
        columns.put_all(&self.cpus);
        columns.put_all(&self.kinds);
        columns.put_all(&self.reasons);
        columns.put_all(&self.tasks);
        columns.put_all(&self.nr_numbers);
        columns.put_all(&self.number_names);
        self.numbers.iter().for_each(|&number| columns.put_signed(number));
        columns.put_all(&self.nr_texts);
        columns.put_all(&self.text_names);
        columns.put_all(&self.texts);
        let mut candidates = Columns::default();
        candidates.put_all(&self.nr_candidates);
        candidates.put_all(&self.candidates);
        candidates.put_all(&self.refused);
        *self = Decisions::default();
        (columns.into_bytes(), candidates.into_bytes())
    }
}
