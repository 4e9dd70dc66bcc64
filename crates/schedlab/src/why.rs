//! Decisions as sentences: the choice, the reason, the rejected CPUs, the deciding number.
//!
//! Works on any trace with annotations, simulated or read from a file.

use std::collections::BTreeMap;

use schedlab_sched::Reason;
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::{
    Balance, Candidate, Comm, Event, How, Kind, Newidle, Number, Pick, Placement, Preemption, Resched, Sink,
};
use schedlab_units::{Pid, Time};
use serde::Serialize;

/// Selects the decisions to report.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Only those about tasks of this comm or pid.
    pub task: Option<String>,
    /// Only from this instant on.
    pub from: Option<Time>,
    /// Only up to this instant.
    pub to: Option<Time>,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// When, ns.
    pub time_ns: u64,
    /// CPU that decided.
    pub cpu: u16,
    /// `wakeup`, `fork`, `exec`, `push`, `pull`, `move`, `balance`, `newidle`, `preemption` or `pick`.
    pub kind: &'static str,
    /// Name of the rule.
    pub reason: String,
    /// The full sentence.
    pub sentence: String,
}

impl Answer {
    /// Whether two decisions are the same, whatever their reasons.
    pub fn decides_as(&self, other: &Answer) -> bool {
        let what = |answer: &Answer| answer.sentence.split(". ").next().map(str::len).unwrap_or_default();
        (self.time_ns, self.cpu, self.kind) == (other.time_ns, other.cpu, other.kind)
            && self.sentence[..what(self)] == other.sentence[..what(other)]
    }
}

/// Collects the answers to a question and hands each to `tell`.
pub struct Why<F> {
    question: Question,
    names: BTreeMap<Pid, Comm>,
    tell: F,
}

impl<F: FnMut(Answer)> Why<F> {
    /// Receives decisions.
    pub fn new(question: Question, tell: F) -> Why<F> {
        Why { question, names: BTreeMap::new(), tell }
    }

    fn name(&self, pid: Pid) -> String {
        match self.names.get(&pid) {
            Some(comm) if pid != Pid::IDLE => format!("{}-{pid}", comm.to_str_lossy()),
            _ if pid == Pid::IDLE => "the idle task".to_string(),
            _ => format!("task {pid}"),
        }
    }

    fn wanted(&self, time: Time, pids: &[Pid]) -> bool {
        let Question { task, from, to } = &self.question;
        let named = |wanted: &String| {
            pids.iter().any(|pid| {
                wanted == &pid.to_string()
                    || self.names.get(pid).is_some_and(|comm| comm.to_str_lossy() == wanted.as_str())
            })
        };
        from.is_none_or(|from| time >= from)
            && to.is_none_or(|to| time <= to)
            && task.as_ref().is_none_or(named)
    }

    fn learn(&mut self, event: &Event) {
        let mut note = |pid: Pid, comm: Comm| {
            if !comm.is_empty() {
                self.names.insert(pid, comm);
            }
        };
        match event.kind {
            Kind::SchedSwitch { prev_comm, prev_pid, next_comm, next_pid, .. } => {
                note(prev_pid, prev_comm);
                note(next_pid, next_comm);
            }
            Kind::SchedWaking { comm, pid, .. } | Kind::SchedWakeupNew { comm, pid, .. } => note(pid, comm),
            Kind::SchedProcessFork { child_comm, child_pid, .. } => note(child_pid, child_comm),
            Kind::TaskRename { pid, newcomm, .. } => note(pid, newcomm),
            _ => {}
        }
    }

    fn answer(&mut self, event: &Event, kind: &'static str, reason: &str, sentence: String) {
        (self.tell)(Answer {
            time_ns: event.time.0,
            cpu: event.cpu.0,
            kind,
            reason: reason.to_string(),
            sentence,
        });
    }

    fn placement(&self, waker: Pid, p: &Placement) -> String {
        let (who, wakee) = (self.name(waker), self.name(p.pid));
        let act = match p.how {
            How::Wakeup => format!("{who} wakes {wakee} (previous CPU {})", p.prev_cpu),
            How::Fork => format!("{who} forks {wakee}"),
            How::Exec => format!("{wakee} calls exec on CPU {}", p.prev_cpu),
            How::Push => format!("{wakee} waits behind {who} on CPU {}, which pushes it", p.prev_cpu),
            How::Pull => format!("{wakee} waits on CPU {}, and is pulled", p.prev_cpu),
            How::Move => format!("{wakee} is moved from CPU {}", p.prev_cpu),
        };
        let target = if p.how == How::Wakeup && p.target != p.prev_cpu {
            format!(" The search began at CPU {}.", p.target)
        } else {
            String::new()
        };
        let remote = if p.remote { " It is queued there by interrupt." } else { "" };
        let is_number =
            |(name, _): &&Number| crate::reason(name).is_none() || p.reason != Reason::TreeDecides.name();
        let told: Vec<Number> = p.numbers.iter().filter(is_number).cloned().collect();
        format!(
            "{act}: it goes to CPU {}. {}{}{target}{}{remote}",
            p.cpu,
            of_tree(p).unwrap_or_else(|| why(&p.reason)),
            numbers(&told),
            passed_over(&p.examined),
        )
    }

    fn balance(&self, b: &Balance) -> String {
        let moved = match b.moved.as_slice() {
            [] => "moves nothing".to_string(),
            pids => {
                let names: Vec<String> = pids.iter().map(|&pid| self.name(pid)).collect();
                let from = b.src_cpu.map_or(String::new(), |cpu| format!(" from CPU {cpu}"));
                format!("pulls {}{from}", names.join(", "))
            }
        };
        let busiest =
            if b.busiest.is_empty() { String::new() } else { format!(" Busiest group {}.", b.busiest) };
        let imbalance = if b.imbalance == 0 {
            String::new()
        } else {
            format!(" Imbalance {} {}.", b.imbalance, b.migration)
        };
        format!(
            "CPU {} ({}) balances domain {}: it {moved}. {}{}{busiest}{imbalance}",
            b.dst_cpu,
            b.idle,
            b.domain,
            why(&b.reason),
            numbers(&b.numbers)
        )
    }

    fn newidle(&self, n: &Newidle) -> String {
        let found = match n.pulled {
            0 => "finds nothing".to_string(),
            1 => "has a task".to_string(),
            tasks => format!("has {tasks} tasks"),
        };
        format!(
            "CPU {} is about to go idle and looks for work: it {found}. {}{}",
            n.dst_cpu,
            why(&n.reason),
            numbers(&n.numbers)
        )
    }

    fn preemption(&self, p: &Preemption) -> String {
        let (curr, woken) = (self.name(p.curr), self.name(p.pid));
        let outcome = match p.resched {
            Resched::None => format!("{woken} does not preempt {curr}"),
            Resched::Lazy => format!("{woken} preempts {curr} at the next exit to user mode or tick (lazy)"),
            Resched::Full => format!("{woken} preempts {curr}"),
        };
        format!("{}: {outcome}. {}{}", p.at, why(&p.reason), numbers(&p.numbers))
    }

    fn pick(&self, p: &Pick) -> String {
        format!("{} is picked. {}{}", self.name(p.pid), why(&p.reason), numbers(&p.numbers))
    }
}

impl<F: FnMut(Answer)> Sink for Why<F> {
    fn event(&mut self, event: &Event) {
        self.learn(event);
        match &event.kind {
            Kind::Placement(p) if self.wanted(event.time, &[p.pid, event.pid]) => {
                let sentence = self.placement(event.pid, p);
                self.answer(event, p.how.as_str(), &p.reason, sentence);
            }
            Kind::Balance(b) if self.wanted(event.time, &b.moved) => {
                let sentence = self.balance(b);
                self.answer(event, "balance", &b.reason, sentence);
            }
            Kind::Newidle(n) if self.wanted(event.time, &[event.pid]) => {
                let sentence = self.newidle(n);
                self.answer(event, "newidle", &n.reason, sentence);
            }
            Kind::Preemption(p) if self.wanted(event.time, &[p.pid, p.curr]) => {
                let sentence = self.preemption(p);
                self.answer(event, "preemption", &p.reason, sentence);
            }
            Kind::Pick(p) if self.wanted(event.time, &[p.pid]) => {
                let sentence = self.pick(p);
                self.answer(event, "pick", &p.reason, sentence);
            }
            _ => {}
        }
    }

    fn wants_decisions(&self) -> bool {
        true
    }
}

/// The kernel function that placed a task, and what our rules would have chosen, if a tree's code chose otherwise. The
/// choice of our rules is among the numbers, under the name of its reason.
fn of_tree(p: &Placement) -> Option<String> {
    if p.reason != Reason::TreeDecides.name() {
        return None;
    }
    let what = match p.how {
        How::Wakeup | How::Fork | How::Exec => "select_task_rq() of the tree chose it",
        How::Push | How::Pull | How::Move => return None,
    };
    let ours = p.numbers.iter().find_map(|(name, cpu)| Some((crate::reason(name)?, name, cpu)));
    let ours = ours.map(|(reason, name, cpu)| {
        format!("; our nearest rules choose CPU {cpu}: {} [{name}]", reason.sentence())
    });
    Some(format!("{what}{} [{}]", ours.unwrap_or_else(|| ".".to_string()), p.reason))
}

/// The reason's own sentence, if it is one of ours; its name in any case.
fn why(reason: &str) -> String {
    match crate::reason(reason) {
        Some(known) => format!("{} [{reason}]", known.sentence()),
        None => format!("[{reason}]"),
    }
}

fn numbers(numbers: &[Number]) -> String {
    match numbers {
        [] => String::new(),
        _ => {
            let parts: Vec<String> = numbers.iter().map(|(name, value)| format!("{name} {value}")).collect();
            format!(" ({})", parts.join(", "))
        }
    }
}

/// ` Passed over: busy 0-3,7; other llc 8-15.`
fn passed_over(examined: &[Candidate]) -> String {
    let mut by_cause: Vec<(&str, Vec<CpuId>)> = Vec::new();
    for candidate in examined.iter().filter(|c| !c.refused.is_empty()) {
        match by_cause.iter_mut().find(|(cause, _)| *cause == candidate.refused) {
            Some((_, cpus)) => cpus.push(candidate.cpu),
            None => by_cause.push((&candidate.refused, vec![candidate.cpu])),
        }
    }
    if by_cause.is_empty() {
        return String::new();
    }
    let parts: Vec<String> = by_cause
        .into_iter()
        .map(|(cause, cpus)| {
            let last = cpus.iter().map(|c| c.index()).max().unwrap_or(0);
            let cause = cause.to_lowercase().replace('_', " ");
            format!("{cause} {}", CpuMask::of(last + 1, cpus))
        })
        .collect();
    format!(" Passed over: {}.", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_trace::Flags;

    #[test]
    fn a_placement_reads_as_a_sentence() {
        let candidate = |cpu, refused: &'static str| Candidate { cpu: CpuId(cpu), refused: refused.into() };
        let placement = Placement {
            pid: Pid(11),
            how: How::Wakeup,
            prev_cpu: CpuId(2),
            target: CpuId(4),
            cpu: CpuId(6),
            reason: "IDLE_CPU".into(),
            numbers: vec![("nr_idle_scan".into(), 5)],
            examined: vec![candidate(4, "BUSY"), candidate(5, "BUSY"), candidate(1, "NOT_ALLOWED")],
            remote: false,
        };
        let mut told = Vec::new();
        let mut why = Why::new(Question::default(), |answer| told.push(answer));
        why.names.insert(Pid(11), Comm::new(b"cc1"));
        why.event(&Event {
            time: Time(5),
            cpu: CpuId(4),
            pid: Pid(0),
            tgid: None,
            comm: Comm::default(),
            flags: Flags::NONE,
            kind: Kind::Placement(Box::new(placement)),
        });
        assert_eq!(
            told[0].sentence,
            "the idle task wakes cc1-11 (previous CPU 2): it goes to CPU 6. An idle CPU was the first in scan \
             order. [IDLE_CPU] (nr_idle_scan 5) The search began at CPU 4. Passed over: busy 4-5; not allowed 1."
        );
    }

    #[test]
    fn what_a_tree_chose_stands_beside_our_choice() {
        let mut placement = Placement {
            pid: Pid(11),
            how: How::Wakeup,
            prev_cpu: CpuId(2),
            target: CpuId(2),
            cpu: CpuId(6),
            reason: "TREE_DECIDES".into(),
            numbers: vec![("PREV_IDLE".into(), 2), ("examined".into(), 3)],
            examined: Vec::new(),
            remote: false,
        };
        let said = |placement: &Placement| Why::new(Question::default(), |_| ()).placement(Pid(0), placement);
        let (act, chose) = (
            "the idle task wakes task 11 (previous CPU 2): it goes to CPU 6.",
            "select_task_rq() of the tree chose it",
        );
        let prev = crate::reason("PREV_IDLE").unwrap().sentence();
        assert_eq!(
            said(&placement),
            format!(
                "{act} {chose}; our nearest rules choose CPU 2: {prev} [PREV_IDLE] [TREE_DECIDES] (examined 3)"
            )
        );
        placement.numbers.remove(0);
        assert_eq!(said(&placement), format!("{act} {chose}. [TREE_DECIDES] (examined 3)"));
    }
}
