//! The judgement of each decision that a recording shows: what our rules lead to, given what no event shows.

pub mod balance;
pub mod exec;
pub mod fork;
pub mod nearest;
pub mod pick;
pub mod possibilities;
pub mod preempt;
pub mod push;
pub mod spare;
pub mod wakeup;

use std::collections::VecDeque;

use schedlab_topology::{CpuId, PerCpu};
use schedlab_trace::{Hotplugs, NullSink};
use schedlab_units::TaskId;

use crate::follow::pairing::Pairing;
use crate::judge::exec::Execs;
use crate::judge::fork::possible::Forking;
use crate::judge::preempt::possible::Asked;
use crate::judge::spare::Spare;
use crate::judge::wakeup::open::Opens;
use crate::options::Options;
use crate::report::counts::{AuditReport, Tally};
use crate::report::listener::Listener;
use crate::report::probe::Comparison;
use crate::report::verdict::{Answer, Choice, Decision, Verdict};
use crate::unknown::Shadow;
use crate::unknown::about::Reading;
use crate::unknown::list::Unknown;
use schedlab_recording::Steady;

/// Judges a trace and passes the events on to `sink`.
pub struct Audit<S = NullSink> {
    pub(crate) options: Options,
    pub(crate) shadow: Shadow,
    /// Lists of possible choices, for reuse.
    pub(crate) spare: Spare,
    pub(crate) pairing: Pairing,
    pub(crate) open: Opens,
    pub(crate) forking: Vec<Forking>,
    pub(crate) execs: Execs,
    /// For each CPU, whether a reschedule of its task is pending whose outcome the trace has not shown yet.
    pub(crate) asked: PerCpu<Asked>,
    /// For each CPU, the move for which its stopper was asked, judged at that time.
    pub(crate) stopper_asked: PerCpu<Option<Verdict>>,
    /// For each CPU, tasks whose move was judged together with the first move of the same pass.
    pub(crate) passed: PerCpu<Vec<TaskId>>,
    /// The recording contains moves (`sched_migrate_task`), and starts of wake-ups (`sched_waking`).
    pub(crate) moves_recorded: bool,
    pub(crate) wakings_recorded: bool,
    /// Generation of the state in which open decisions were last judged.
    pub(crate) judged: u64,
    pub(crate) steady: Steady,
    pub(crate) hotplugs: Hotplugs,
    /// Number of events processed.
    pub(crate) taken: u64,
    /// Where the recorder lost events: the number of events processed before the loss, and the CPU if known.
    pub(crate) losses: VecDeque<(u64, Option<CpuId>)>,
    pub(crate) begun: bool,
    /// Indexed by kind of decision.
    pub(crate) tallies: [Tally; Decision::ALL.len()],
    /// Comparison with the values that probes recorded.
    pub(crate) compared: Comparison,
    pub(crate) report: AuditReport,
    pub(crate) sink: S,
}

impl<S: Listener> Audit<S> {
    /// Whether a reading is not switched off.
    pub(crate) fn tries(&self, reading: Reading) -> bool {
        self.options.without != Some(reading)
    }

    pub(crate) fn give(&mut self, mut verdict: Verdict) {
        if matches!(verdict.decision, Decision::Wakeup | Decision::Fork | Decision::Exec)
            && let Some(task) = self.shadow.find(verdict.pid)
        {
            verdict.doubt(self.shadow.sched.task(task).nr_cpus_allowed as usize);
        }
        if verdict.answer == Answer::Differs
            && let Some(hidden) = self.hangs_on(&verdict)
        {
            verdict.without(hidden);
        }
        if verdict.answer == Answer::Differs {
            verdict.gravity = self.gravity(&verdict);
        }
        self.tallies[verdict.decision as usize].count(&verdict);
        if verdict.answer == Answer::Differs {
            self.report.tell(&verdict, self.options.stories);
        }
        self.sink.verdict(&verdict);
        if self.options.keep_verdicts {
            self.report.verdicts.push(verdict);
        } else {
            self.spare.give_back(verdict.ours);
        }
    }

    /// The fact, shown by no event, that may have led the kernel to another choice whatever the rules say.
    pub(crate) fn hangs_on(&self, verdict: &Verdict) -> Option<Unknown> {
        if let (Decision::Wakeup | Decision::Fork | Decision::Exec, Some(ours)) =
            (verdict.decision, verdict.ours.first())
            && let Choice::Cpu(cpu) = ours.choice
            && !self.shadow.cpu_known[cpu]
        {
            // It may have been busy the whole time.
            return Some(Unknown::Unmet);
        }
        let on = |choice| match choice {
            Choice::Cpu(cpu) => Some(cpu),
            Choice::Task(_) | Choice::Preempt(_) => Some(verdict.cpu),
            _ => None,
        };
        let choices = [Some(verdict.kernel), verdict.ours.first().map(|ours| ours.choice)];
        if choices.into_iter().flatten().filter_map(on).any(|cpu| self.shadow.switched_unseen_on(cpu)) {
            return Some(Unknown::UnseenSwitch);
        }
        hangs_on_quota(&self.shadow, verdict).then_some(Unknown::Quota)
    }

    /// How far the kernel's choice is from ours.
    pub(crate) fn gravity(&self, verdict: &Verdict) -> u64 {
        let Some(ours) = verdict.ours.first() else { return 0 };
        let between = |a: CpuId, b: CpuId| {
            let domains = self.shadow.sched.domains.walk(a);
            domains.filter(|(_, sd)| !sd.span.contains(b)).count() as u64
        };
        match (ours.choice, verdict.kernel) {
            (Choice::Cpu(ours), Choice::Cpu(theirs)) => between(ours, theirs),
            (Choice::Move { from: a, .. }, Choice::Move { from: b, .. }) => between(a, b),
            _ => ours.numbers.iter().map(|(_, number)| number.unsigned_abs()).max().unwrap_or(0),
        }
    }
}

/// Whether a verdict depends on a quota: that of its task, or of the task that we would have picked.
fn hangs_on_quota(shadow: &Shadow, verdict: &Verdict) -> bool {
    let decides = matches!(verdict.decision, Decision::Preempt | Decision::Balance);
    let of = |choice: Choice| match choice {
        Choice::Task(pid) | Choice::Move { pid, .. } => shadow.find(pid),
        _ => None,
    };
    let tasks =
        [shadow.find(verdict.pid), of(verdict.kernel), verdict.ours.first().and_then(|ours| of(ours.choice))];
    decides && tasks.into_iter().flatten().any(|task| shadow.limit_of(task).is_some())
}
