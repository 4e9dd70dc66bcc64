//! The audit's judgement of one decision of a recorded kernel.

use std::fmt;
use std::ops::Deref;

use schedlab_topology::CpuId;
use schedlab_trace::Comm;
use schedlab_units::{Pid, Time};
use serde::{Serialize, Serializer};

use crate::unknown::list::Unknown;
use crate::unknown::otherwise::Nearest;

/// The kinds of decisions that are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Where a woken task goes.
    Wakeup,
    /// Where a new task goes.
    Fork,
    /// Where a task goes when it executes another program.
    Exec,
    /// Which task runs next.
    Pick,
    /// Whether an arriving task preempts the running one, and why a task was preempted.
    Preempt,
    /// Which task is moved from where to where.
    Balance,
    /// Which real-time or deadline task is pushed or pulled, and where to.
    Push,
}

impl Decision {
    /// All of them.
    pub const ALL: [Decision; 7] = [
        Decision::Wakeup,
        Decision::Fork,
        Decision::Exec,
        Decision::Pick,
        Decision::Preempt,
        Decision::Balance,
        Decision::Push,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Wakeup => "wakeup",
            Decision::Fork => "fork",
            Decision::Exec => "exec",
            Decision::Pick => "pick",
            Decision::Preempt => "preempt",
            Decision::Balance => "balance",
            Decision::Push => "push",
        }
    }
}

/// The judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Our rules leave one choice, and it is what happened.
    Agrees,
    /// A hidden fact leaves several choices open, and one of them happened.
    AgreesInSet,
    /// Our rules do not lead to what happened.
    Differs,
    /// A missing fact prevents a judgement.
    Undecided,
}

impl Answer {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Answer::Agrees => "agrees",
            Answer::AgreesInSet => "agrees_in_set",
            Answer::Differs => "differs",
            Answer::Undecided => "undecided",
        }
    }
}

/// What was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Choice {
    /// A CPU.
    Cpu(CpuId),
    /// A task; 0 is idle.
    Task(Pid),
    /// Whether to interrupt the running task.
    Preempt(bool),
    /// A task moved between CPUs.
    Move {
        /// The task.
        pid: Pid,
        /// The source.
        from: CpuId,
        /// The destination.
        to: CpuId,
    },
    /// Nothing.
    Nothing,
}

impl Choice {
    /// The CPU, if it is one.
    pub fn cpu(&self) -> Option<CpuId> {
        if let Choice::Cpu(cpu) = *self { Some(cpu) } else { None }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Cpu(cpu) => write!(f, "CPU {cpu}"),
            Choice::Task(Pid::IDLE) => f.write_str("idle"),
            Choice::Task(pid) => write!(f, "task {pid}"),
            Choice::Preempt(true) => f.write_str("preempt"),
            Choice::Preempt(false) => f.write_str("let run"),
            Choice::Move { pid: Pid::IDLE, from, to } => write!(f, "some task from CPU {from} to CPU {to}"),
            Choice::Move { pid, from, to } => write!(f, "task {pid} from CPU {from} to CPU {to}"),
            Choice::Nothing => f.write_str("nothing"),
        }
    }
}

impl Serialize for Choice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Choice::Cpu(cpu) => serializer.serialize_u16(cpu.0),
            Choice::Task(pid) => serializer.serialize_i32(pid.0),
            Choice::Preempt(preempt) => serializer.serialize_bool(*preempt),
            Choice::Move { .. } => serializer.collect_str(self),
            Choice::Nothing => serializer.serialize_none(),
        }
    }
}

/// A choice that our rules lead to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Possible {
    /// The choice.
    pub choice: Choice,
    /// The rule.
    pub reason: &'static str,
    /// The hidden fact that is needed to reach this choice, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Unknown>,
    /// The numbers that decided.
    #[serde(skip_serializing_if = "Numbers::is_empty")]
    pub numbers: Numbers,
}

/// A few numbers with their names, stored inline: every third event leads to a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    len: u8,
    numbers: [(&'static str, i64); Numbers::MAX],
}

impl Numbers {
    /// Maximum number of values.
    const MAX: usize = 3;

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds one; a fourth is dropped.
    pub fn push(&mut self, number: (&'static str, i64)) {
        if let Some(place) = self.numbers.get_mut(usize::from(self.len)) {
            *place = number;
            self.len += 1;
        }
    }
}

impl Deref for Numbers {
    type Target = [(&'static str, i64)];

    fn deref(&self) -> &[(&'static str, i64)] {
        &self.numbers[..usize::from(self.len)]
    }
}

impl Extend<(&'static str, i64)> for Numbers {
    fn extend<T: IntoIterator<Item = (&'static str, i64)>>(&mut self, numbers: T) {
        numbers.into_iter().for_each(|number| self.push(number));
    }
}

impl FromIterator<(&'static str, i64)> for Numbers {
    fn from_iter<T: IntoIterator<Item = (&'static str, i64)>>(numbers: T) -> Numbers {
        let mut few = Numbers::default();
        few.extend(numbers);
        few
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self[..].serialize(serializer)
    }
}

impl fmt::Display for Possible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.choice, self.reason)?;
        if let Some(hidden) = self.hidden {
            write!(f, " if {} is so", hidden.name())?;
        }
        for (i, (name, value)) in self.numbers.iter().enumerate() {
            write!(f, "{}{name} {value}", if i == 0 { " (" } else { ", " })?;
        }
        if self.numbers.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

/// One judgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Time of the decision.
    #[serde(serialize_with = "seconds")]
    pub time: Time,
    /// The CPU that decided.
    #[serde(serialize_with = "cpu")]
    pub cpu: CpuId,
    /// The kind of decision.
    pub decision: Decision,
    /// The task that it concerns.
    #[serde(serialize_with = "pid")]
    pub pid: Pid,
    /// The task's name.
    #[serde(serialize_with = "comm")]
    pub comm: Comm,
    /// The judgement.
    pub answer: Answer,
    /// What the kernel chose.
    pub kernel: Choice,
    /// The choices that our rules lead to, the likeliest first. Its reason stands for the verdict.
    pub ours: Vec<Possible>,
    /// What is hidden or missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Unknown>,
    /// Distance between the kernel's choice and ours: the number of domains that contain our CPU and not the kernel's,
    /// or the difference in virtual time. Graver disagreements are reported first.
    #[serde(skip)]
    pub gravity: u64,
    /// For a decision that differs: what would have led our rules to the kernel's choice, if that was looked for and
    /// found.
    #[serde(rename = "would_agree_if", skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Box<Nearest>>,
}

fn seconds<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

fn cpu<S: Serializer>(cpu: &CpuId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(cpu.0)
}

fn pid<S: Serializer>(pid: &Pid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i32(pid.0)
}

fn comm<S: Serializer>(comm: &Comm, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(comm)
}

impl Verdict {
    /// A new verdict on a decision about a task, without any choice of ours yet.
    pub(crate) fn begun(
        time: Time,
        cpu: CpuId,
        decision: Decision,
        (pid, comm): (Pid, Comm),
        kernel: Choice,
    ) -> Verdict {
        let (answer, ours) = (Answer::Undecided, Vec::new());
        let (hidden, gravity, nearest) = (None, 0, None);
        Verdict { time, cpu, decision, pid, comm, answer, kernel, ours, hidden, gravity, nearest }
    }

    /// The rule of the choice that happened, or else of the likeliest one.
    pub fn reason(&self) -> &'static str {
        match &self.ours[..] {
            [] => "NONE",
            [only] => only.reason,
            [likeliest, others @ ..] => {
                let happened = |possible: &&Possible| possible.choice == self.kernel;
                let other = if happened(&likeliest) { None } else { others.iter().find(happened) };
                other.unwrap_or(likeliest).reason
            }
        }
    }

    /// Judges by the choices that our rules lead to: agreement if the only one happened, agreement in a set if one of
    /// them did.
    pub fn judge(&mut self) {
        let happened = |possible: &Possible| possible.choice == self.kernel;
        let (mut some, mut others) = (false, false);
        self.ours.iter().map(happened).for_each(|so| (some, others) = (some | so, others | !so));
        self.answer = match (some, others) {
            (false, _) => Answer::Differs,
            (true, false) => Answer::Agrees,
            (true, true) => Answer::AgreesInSet,
        };
        self.hidden = match self.answer {
            Answer::AgreesInSet => self.ours.iter().find_map(|possible| possible.hidden),
            _ => None,
        };
    }

    /// Accepts the choices that follow from another value of a hidden fact, if what happened is among them.
    pub fn takes(&mut self, possible: &[Possible], hidden: Unknown) -> bool {
        let explains = possible.iter().any(|possible| possible.choice == self.kernel);
        if explains {
            for other in possible {
                if self.ours.iter().all(|ours| ours.choice != other.choice) {
                    self.ours.push(Possible { hidden: Some(hidden), ..other.clone() });
                }
            }
            (self.answer, self.hidden) = (Answer::AgreesInSet, Some(hidden));
        }
        explains
    }

    /// If every CPU that could be chosen at all is possible, agreement proves nothing: the hidden fact counts as
    /// missing.
    pub fn doubt(&mut self, choices: usize) {
        if self.answer == Answer::AgreesInSet && self.ours.len() >= choices {
            self.answer = Answer::Undecided;
        }
    }

    /// Makes the verdict undecided because a fact is missing.
    pub fn without(&mut self, missing: Unknown) {
        self.answer = Answer::Undecided;
        self.hidden = Some(missing);
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { time, cpu, decision, pid, comm, answer, kernel, .. } = self;
        write!(
            f,
            "{time} CPU {cpu} {} of {comm}-{pid}: {}; the kernel chose {kernel}",
            decision.name(),
            answer.name()
        )?;
        if let (Answer::Undecided, Some(hidden)) = (answer, self.hidden) {
            write!(f, "; missing: {}", hidden.sentence())?;
        }
        for (i, possible) in self.ours.iter().enumerate() {
            write!(f, "{}{possible}", if i == 0 { "; ours " } else { ", or " })?;
        }
        if let Some(nearest) = &self.nearest {
            write!(f, "; would agree if {nearest}")?;
        }
        Ok(())
    }
}
