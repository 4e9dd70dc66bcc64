//! What an audit says of one decision of a recorded kernel.

use std::fmt;
use std::ops::Deref;

use schedlab_topology::CpuId;
use schedlab_trace::Comm;
use schedlab_units::{Pid, Time};
use serde::{Serialize, Serializer};

use crate::nearest::Nearest;

/// The kinds of decisions that are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Where a woken task goes.
    Wakeup,
    /// Where a new task goes.
    Fork,
    /// Where a task goes that executes another program.
    Exec,
    /// Who runs next.
    Pick,
    /// Whether a task that arrives interrupts the running one, and why a task had to make way.
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
    /// A missing fact forbids a judgement.
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

/// A fact that no event shows. In a set it is what leaves the choice open; in an undecided
/// verdict it is what is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hidden {
    /// Whether the waker said that it will sleep.
    SyncFlag,
    /// How many CPUs a search may look at.
    IdleScanLimit,
    /// Averages: loads that are close, or still hold what was before the recording.
    Loads,
    /// Whether a sleeper was still queued.
    DelayedDequeue,
    /// Which of the CPUs that were idle before the recording went idle last.
    IdleStamp,
    /// Which CPU the task used recently: before the recording, or where a wake-up does not tell.
    RecentCpu,
    /// Which of several CPUs that would do for a real-time or deadline task has its turn.
    CpuRotation,
    /// The deadlines and budgets of deadline tasks.
    Deadlines,
    /// Which CPUs the pool of a workqueue's worker has.
    WorkerPool,
    /// How often a task that lived before the recording changed its wakee.
    WakeeFlips,
    /// Whether some core of a cache is known to be idle.
    IdleCores,
    /// The state changed while the decision was made.
    InMotion,
    /// Virtual times are too close to tell apart by the times of events.
    VirtualTime,
    /// How long before a switch its clock was read: the CPU may have lost its turn in between.
    LostTurn,
    /// Whether a slice ended: the tick or timer that looked is not in the trace.
    SliceEnd,
    /// Whether the task yielded.
    Yield,
    /// Whether a group was out of its quota.
    Quota,
    /// Which CPU balances when: its intervals and failures so far.
    BalanceTime,
    /// In which order tasks stand in the list from which balancing takes them.
    TaskOrder,
    /// Whether affinity left the mark of an imbalance on a group.
    ImbalanceMark,
    /// In which cache a process ran most when that was looked at.
    CacheHome,
    /// In which groups tasks were, and with which shares.
    Groups,
    /// What became of the wake-up; its end is not in the trace.
    Fate,
    /// Whether the running task was asked to make way: it went to sleep before that showed.
    Request,
    /// A task that was not met before.
    Unmet,
    /// Who runs on a CPU, or waits there, since a switch that is not in the trace.
    UnseenSwitch,
}

impl Hidden {
    /// All of them.
    pub const ALL: [Hidden; 26] = [
        Hidden::SyncFlag,
        Hidden::IdleScanLimit,
        Hidden::Loads,
        Hidden::DelayedDequeue,
        Hidden::IdleStamp,
        Hidden::RecentCpu,
        Hidden::CpuRotation,
        Hidden::Deadlines,
        Hidden::WorkerPool,
        Hidden::WakeeFlips,
        Hidden::IdleCores,
        Hidden::InMotion,
        Hidden::VirtualTime,
        Hidden::LostTurn,
        Hidden::SliceEnd,
        Hidden::Yield,
        Hidden::Quota,
        Hidden::BalanceTime,
        Hidden::TaskOrder,
        Hidden::ImbalanceMark,
        Hidden::CacheHome,
        Hidden::Groups,
        Hidden::Fate,
        Hidden::Request,
        Hidden::Unmet,
        Hidden::UnseenSwitch,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Hidden::SyncFlag => "SYNC_FLAG",
            Hidden::IdleScanLimit => "IDLE_SCAN_LIMIT",
            Hidden::Loads => "LOADS",
            Hidden::DelayedDequeue => "DELAYED_DEQUEUE",
            Hidden::IdleStamp => "IDLE_STAMP",
            Hidden::RecentCpu => "RECENT_CPU",
            Hidden::CpuRotation => "CPU_ROTATION",
            Hidden::Deadlines => "DEADLINES",
            Hidden::WorkerPool => "WORKER_POOL",
            Hidden::WakeeFlips => "WAKEE_FLIPS",
            Hidden::IdleCores => "IDLE_CORES",
            Hidden::InMotion => "IN_MOTION",
            Hidden::VirtualTime => "VIRTUAL_TIME",
            Hidden::LostTurn => "LOST_TURN",
            Hidden::SliceEnd => "SLICE_END",
            Hidden::Yield => "YIELD",
            Hidden::Quota => "QUOTA",
            Hidden::BalanceTime => "BALANCE_TIME",
            Hidden::TaskOrder => "TASK_ORDER",
            Hidden::ImbalanceMark => "IMBALANCE_MARK",
            Hidden::CacheHome => "CACHE_HOME",
            Hidden::Groups => "GROUPS",
            Hidden::Fate => "FATE",
            Hidden::Request => "REQUEST",
            Hidden::Unmet => "UNMET",
            Hidden::UnseenSwitch => "UNSEEN_SWITCH",
        }
    }

    /// What it is, for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Hidden::SyncFlag => "whether the waker said that it will sleep",
            Hidden::IdleScanLimit => "how many CPUs the search may look at",
            Hidden::Loads => "load averages to the last bit",
            Hidden::DelayedDequeue => "whether the sleeper was still queued",
            Hidden::IdleStamp => "which of the CPUs idle since before the recording went idle last",
            Hidden::RecentCpu => "which CPU the task used recently",
            Hidden::CpuRotation => "which of several CPUs that would do has its turn",
            Hidden::Deadlines => "the deadlines and budgets of deadline tasks",
            Hidden::WorkerPool => "on which CPU of its pool a worker was woken",
            Hidden::WakeeFlips => "how often tasks changed their wakee before the recording",
            Hidden::IdleCores => "whether an idle core is known",
            Hidden::InMotion => "the state at the very moment, which was just changing",
            Hidden::VirtualTime => "virtual times closer than the times of events tell",
            Hidden::LostTurn => {
                "when a switch read its clock, of a CPU that may have lost its turn just then"
            }
            Hidden::SliceEnd => "when a tick or timer looked at the slice",
            Hidden::Yield => "whether the task called sched_yield(), as it seems to do",
            Hidden::Quota => "whether a group was out of its quota",
            Hidden::BalanceTime => "when each CPU balances, and how often it failed",
            Hidden::TaskOrder => "the order of the list from which balancing takes tasks",
            Hidden::ImbalanceMark => "whether affinity left the mark of an imbalance on a group",
            Hidden::CacheHome => "in which cache the threads of a process ran most when the kernel looked",
            Hidden::Groups => "in which groups tasks were: cgroups, or sessions by autogroup",
            Hidden::Request => "whether the running task was asked to make way, which it did not show",
            Hidden::Fate => "the end of the wake-up, which is not in the trace",
            Hidden::Unmet => "what there was before it was first seen",
            Hidden::UnseenSwitch => {
                "who ran and who waited on the CPU, since a switch that is not in the trace"
            }
        }
    }
}

impl Serialize for Hidden {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Choice {
    /// A CPU.
    Cpu(CpuId),
    /// A task; 0 is idle.
    Task(Pid),
    /// To interrupt the running task, or not.
    Preempt(bool),
    /// A task moved between CPUs.
    Move {
        /// Who.
        pid: Pid,
        /// From.
        from: CpuId,
        /// To.
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
    /// What.
    pub choice: Choice,
    /// By which rule.
    pub reason: &'static str,
    /// If it takes a hidden fact to lead there: which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Hidden>,
    /// The numbers that decided.
    #[serde(skip_serializing_if = "Numbers::is_empty")]
    pub numbers: Numbers,
}

/// A few numbers with their names, kept in place: a verdict is made at every third event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    len: u8,
    numbers: [(&'static str, i64); Numbers::MAX],
}

impl Numbers {
    /// Most numbers that decide one thing.
    const MAX: usize = 3;

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds one; a fourth is left out.
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
    /// When.
    #[serde(serialize_with = "seconds")]
    pub time: Time,
    /// CPU that decided.
    #[serde(serialize_with = "cpu")]
    pub cpu: CpuId,
    /// What was decided.
    pub decision: Decision,
    /// About whom.
    #[serde(serialize_with = "pid")]
    pub pid: Pid,
    /// Its name.
    #[serde(serialize_with = "comm")]
    pub comm: Comm,
    /// The judgement.
    pub answer: Answer,
    /// What the kernel chose.
    pub kernel: Choice,
    /// What our rules choose: the likeliest first. The first one's reason stands for the verdict.
    pub ours: Vec<Possible>,
    /// What is hidden or missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Hidden>,
    /// How far the kernel's choice is from ours: domains that hold our CPU and not the
    /// kernel's, or the difference in virtual time. Worse disagreements are told first.
    #[serde(skip)]
    pub gravity: u64,
    /// Of a decision that differs: what would have led our rules to the kernel's choice, if it was asked for and
    /// something was found.
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
    /// Of a decision about a task, of which nothing is said yet.
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

    /// The rule that speaks: of the possibility that happened, else of the likeliest.
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

    /// The judgement over what our rules lead to: agreement if all that is possible is what
    /// happened, agreement in a set if some of it is.
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

    /// Takes what follows if a hidden fact is otherwise, provided that it is what happened.
    pub fn takes(&mut self, possible: &[Possible], hidden: Hidden) -> bool {
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

    /// Where every CPU of those that could be chosen at all is possible, agreement says
    /// nothing: what is hidden is missing.
    pub fn doubt(&mut self, choices: usize) {
        if self.answer == Answer::AgreesInSet && self.ours.len() >= choices {
            self.answer = Answer::Undecided;
        }
    }

    /// Without a fact there is no judgement.
    pub fn without(&mut self, missing: Hidden) {
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
