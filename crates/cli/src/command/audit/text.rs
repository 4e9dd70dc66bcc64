//! An audit as text: a table by rule and by fact, then the worst disagreements.

use std::cmp::Reverse;
use std::io::{self, Write};

use schedlab::audit::{AuditReport, Choice, Counts, Decision, DecisionReport, Verdict};
use schedlab::sched::Reason;

use super::contest;
use crate::count::{are_switches, counted};

/// Number of reasons printed per kind; the rest are rare.
const REASONS_SHOWN: usize = 8;

/// Prints the whole audit: first the decisions on which kernels differ, as only these can fail.
pub fn print(
    out: &mut dyn Write,
    head: &str,
    contest: Option<&contest::Explained>,
    report: &AuditReport,
) -> io::Result<()> {
    writeln!(out, "{head}, {}", counted(report.events, "event"))?;
    if report.unseen_switches > 0 {
        writeln!(
            out,
            "{} missing among them: what hangs on those is undecided. Was one task recorded (perf record without -a), \
             or were events filtered or lost?",
            are_switches(report.unseen_switches)
        )?;
    }
    if let Some(contest) = contest {
        contest::print(out, contest)?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "{:<26} {:>9} {:>9} {:>9} {:>9}   agreement",
        "all decisions", "agrees", "in a set", "differs", "undecided"
    )?;
    let judged = || Decision::ALL.into_iter().filter(|&decision| report.of(decision).counts.all() > 0);
    for decision in judged() {
        rows(out, decision, report.of(decision))?;
    }
    for decision in judged() {
        stories(out, decision, report)?;
    }
    if !report.verdicts.is_empty() {
        writeln!(out, "\nevery verdict:")?;
    }
    for verdict in &report.verdicts {
        writeln!(out, "{verdict}")?;
    }
    Ok(())
}

fn rows(out: &mut dyn Write, decision: Decision, of: &DecisionReport) -> io::Result<()> {
    row(out, decision.name(), &of.counts)?;
    let mut reasons: Vec<_> = of.by_reason.iter().collect();
    reasons.sort_by_key(|(_, counts)| Reverse(counts.all()));
    let differs = |counts: &Counts| counts.differs > 0;
    for (nth, (reason, counts)) in reasons.into_iter().enumerate() {
        if nth < REASONS_SHOWN || differs(counts) {
            row(out, &format!("  {reason}"), counts)?;
        }
    }
    for (hidden, counts) in &of.by_hidden {
        row(out, &format!("  without {hidden}"), counts)?;
    }
    Ok(())
}

fn row(out: &mut dyn Write, name: &str, counts: &Counts) -> io::Result<()> {
    let Counts { agrees, agrees_in_set, differs, undecided } = counts;
    let agreement =
        counts.agreement().map_or_else(|| "-".to_owned(), |part| format!("{:.1} %", part * 100.0));
    writeln!(out, "{name:<26} {agrees:>9} {agrees_in_set:>9} {differs:>9} {undecided:>9} {agreement:>11}")
}

/// The worst disagreements of a kind, those of the rule that fails most first.
fn stories(out: &mut dyn Write, decision: Decision, report: &AuditReport) -> io::Result<()> {
    let differs = &report.of(decision).differs_by_reason;
    let mut reasons: Vec<(&str, u64)> = differs.iter().map(|(&reason, &count)| (reason, count)).collect();
    reasons.sort_by_key(|&(_, count)| Reverse(count));
    for (reason, count) in reasons {
        let of_rule = |story: &&Verdict| story.decision == decision && story.reason() == reason;
        let mut told: Vec<&Verdict> = report.stories.iter().filter(of_rule).collect();
        if told.is_empty() {
            continue;
        }
        told.sort_by_key(|story| (Reverse(story.gravity), story.time));
        let sentence = schedlab::reason(reason).map_or("", Reason::sentence);
        let are = if count == 1 { "1 differs, this one" } else { "differ, the worst" };
        let count = if count == 1 { String::new() } else { format!("{count} ") };
        writeln!(out, "\n{} by {reason}: {count}{are}. {sentence}", decision.name())?;
        told.iter().try_for_each(|story| tell(out, story))?;
    }
    Ok(())
}

fn tell(out: &mut dyn Write, story: &Verdict) -> io::Result<()> {
    let Verdict { time, cpu, decision, pid, comm, kernel, .. } = story;
    let what = match (decision, kernel) {
        (Decision::Wakeup, Choice::Cpu(to)) => {
            format!("{comm}-{pid} is woken; the kernel places it on CPU {to}")
        }
        (Decision::Fork, Choice::Cpu(to)) => {
            format!("{comm}-{pid} is forked; the kernel places it on CPU {to}")
        }
        (Decision::Exec, Choice::Cpu(to)) => {
            format!("{comm}-{pid} executes a program; the kernel moves it to CPU {to}")
        }
        (Decision::Preempt, Choice::Preempt(true)) => {
            format!("{comm}-{pid} runs; the kernel preempts it")
        }
        (Decision::Preempt, Choice::Preempt(false)) => format!("{comm}-{pid} runs; the kernel lets it run"),
        (Decision::Pick, next) => format!("{comm}-{pid} is switched out; the kernel runs {next}"),
        (Decision::Push, choice) => format!("{comm}-{pid} waits; the kernel moves {choice}"),
        (_, choice) => format!("{comm}-{pid}: the kernel chooses {choice}"),
    };
    writeln!(out, "  {time} on CPU {cpu}: {what}")?;
    for (nth, possible) in story.ours.iter().enumerate() {
        writeln!(out, "    {} {possible}", if nth == 0 { "ours" } else { "  or" })?;
    }
    match &story.nearest {
        Some(nearest) => writeln!(out, "    would agree if {nearest}"),
        None => Ok(()),
    }
}
