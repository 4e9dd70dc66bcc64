//! `cargo xtask fidelity`: how often our rules agree with each recorded kernel, as a table.
//!
//! Audits every recording in `traces/` and writes the sums into `docs/fidelity.md`, a row for each of them into
//! `docs/fidelity/audit-recordings.md`, and a line for each decision that differs into `docs/disagreements.tsv`. With
//! `--check` it compares with the documents: per kernel and kind of decision, agreement must match the document to some
//! tenths of a percent.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use schedlab::audit::{AuditReport, Counts, Decision};

use crate::disagreements::Disagreements;
use crate::recording::Recording;
use crate::source::{self, Section, folders_in, head, name, read};

const SUMMARY: Section = Section { document: "docs/fidelity.md", name: "audit", command: "fidelity" };
const RECORDINGS: Section =
    Section { document: "docs/fidelity/audit-recordings.md", name: "audit", command: "fidelity" };

pub const KERNELS: [&str; 3] = ["6.1", "6.12", "7.2"];
pub const MACHINES: [&str; 6] =
    ["1x1x8", "2x2x4", "2x2x2x2-smt", "2x1x8-cluster", "1x1x4-groups", "1x1x4-programs"];
pub const KINDS: [Decision; 7] = Decision::ALL;
/// Headings of their columns.
pub const COLUMNS: [&str; KINDS.len()] =
    ["wake-ups", "forks", "execs", "picks", "preemption", "balancing", "pushing"];

/// Required agreement in percent, by kind; none for balancing.
pub const GOALS: [f64; KINDS.len()] = [99.0, 99.0, 99.0, 98.0, 98.0, 0.0, 98.0];

/// Maximum of undecided decisions, in percent.
const UNDECIDED_MAX: f64 = 5.0;

/// The text above the table of nearest facts.
const EXPLAINED: &str = "For each decision that differs, the smallest change to the audit's state that would have produced the kernel's \
choice ([one by one](disagreements.tsv); [what the names mean](fidelity/hidden-facts.md#nearest-facts)): how many decisions it explains, its size in microseconds, and its size as a multiple of the error \
bound that the audit holds of that value.";

/// Writes the sections and the list, or with `--check` compares them.
///
/// # Errors
/// A file that cannot be read or written, or a section that differs from the result.
pub fn run(args: &[String]) -> Result<(), String> {
    let Tables { summary, recordings, list } = tables()?;
    let listed = source::root().join("docs/disagreements.tsv");
    if args.iter().any(|arg| arg == "--check") {
        let docs = read(&source::root().join(SUMMARY.document))?;
        check(&docs, &SUMMARY.with(&docs, &summary)?)?;
        let said = read(&listed)?;
        let other = said.lines().zip(list.lines()).position(|(said, line)| said != line);
        return match other {
            None if said.lines().count() == list.lines().count() => Ok(()),
            at => Err(format!(
                "docs/disagreements.tsv:{}: the audits give another list; look why, then run `cargo xtask fidelity`",
                at.map_or(0, |at| at + 1)
            )),
        };
    }
    fs::write(&listed, list).map_err(|e| e.to_string())?;
    RECORDINGS.write(&recordings)?;
    SUMMARY.write(&summary)
}

/// Differences in agreement that are ignored, in percentage points.
const TOLERANCE: f64 = 0.3;

/// Checks that the table per kernel matches the result.
fn check(docs: &str, fresh: &str) -> Result<(), String> {
    let said: BTreeMap<String, f64> = per_kernel(docs).map(|(_, key, agreement)| (key, agreement)).collect();
    for (line, key, agreement) in per_kernel(fresh) {
        let said = said.get(&key).copied().unwrap_or(f64::NAN);
        let off = (said - agreement).abs();
        if off.is_nan() || off >= TOLERANCE {
            return Err(format!(
                "docs/fidelity.md:{line}: {key}: the document says {said} %, the audit gives {agreement} %; look why, \
                 then run `cargo xtask fidelity`"
            ));
        }
    }
    Ok(())
}

/// Lines of the table per kernel: number, kernel and decision, agreement.
fn per_kernel(text: &str) -> impl Iterator<Item = (usize, String, f64)> + '_ {
    text.lines().enumerate().filter_map(|(line, text)| {
        let cells: Vec<&str> = text.trim_matches('|').split('|').map(str::trim).collect();
        let [kernel, kind, _, _, _, _, _, _, agreement] = cells[..] else { return None };
        let known = KINDS.iter().any(|known| known.name() == kind);
        let agreement = agreement.trim_matches('*').parse().ok().filter(|_| known)?;
        Some((line + 1, format!("{kernel} {kind}"), agreement))
    })
}

/// The tables that are written.
struct Tables {
    /// The sums over the recordings.
    summary: String,
    /// A row for each.
    recordings: String,
    /// A line for each decision that differs.
    list: String,
}

fn tables() -> Result<Tables, String> {
    let mut disagreements = Disagreements::default();
    let mut goals = KINDS.map(|_| Goal::default());
    let mut rows = String::new();
    let mut by_kernel = String::new();
    let mut reasons = String::new();
    for kernel in KERNELS {
        let mut sum = AuditReport::default();
        for machine in MACHINES {
            let folder = source::root().join("traces").join(kernel).join(machine);
            for load in loads(&folder)? {
                let report = Recording::of(&folder.join(&load))?.audit()?;
                disagreements.add(kernel, &format!("{machine}/{load}"), &report);
                _ = write!(rows, "| {kernel} | {machine} | {load} |");
                for ((kind, asked), goal) in KINDS.into_iter().zip(GOALS).zip(&mut goals) {
                    rows += &cell(&report.of(kind).counts, asked);
                    goal.add(&report.of(kind).counts, asked);
                }
                rows += "\n";
                sum.add(report, 0);
            }
        }
        for (kind, goal) in KINDS.into_iter().zip(GOALS) {
            by_kernel += &summary(kernel, &sum, kind, goal);
            reasons += &rules(kernel, &sum, kind);
        }
    }
    let goals: String =
        KINDS.into_iter().zip(GOALS).zip(&goals).map(|((kind, asked), goal)| goal.row(kind, asked)).collect();
    let summary = format!(
        "{}{goals}\n### Per kernel\n\n{}{by_kernel}\n### Disagreements by rule, and what was hidden\n\n{}{reasons}\n\
         ### What would explain each disagreement\n\n{EXPLAINED}\n\n{}{}\n### Where each rule differs\n\n{}{}",
        head(&[
            "decision",
            "agree, %: goal",
            "reached",
            "undecided, %: goal",
            "reached",
            "recordings that reach both"
        ]),
        head(&[
            "kernel",
            "decision",
            "exact",
            "in a set",
            "choices per set",
            "differ",
            "undecided",
            "undecided, %",
            "agree, %"
        ]),
        head(&["kernel", "decision", "differ, by our rule", "in a set, by hidden fact"]),
        head(&["kernel", "decision", "nearest fact", "differ", "us: median, most", "errors: median, most"]),
        disagreements.table(),
        head(&["decision", "our rule", "differ", "in the loads", "nearest facts"]),
        disagreements.by_rule(),
    );
    let columns = [&["kernel", "machine", "load"], &COLUMNS[..]].concat();
    let list = disagreements.list();
    Ok(Tables { summary, recordings: head(&columns) + &rows, list })
}

/// How many recordings reach the goals of one kind of decision, and their sums.
#[derive(Default)]
struct Goal {
    sum: Counts,
    recordings: usize,
    reach_it: usize,
}

impl Goal {
    fn add(&mut self, counts: &Counts, asked: f64) {
        self.sum.add(counts);
        if let Some(reached) = Reached::of(counts, asked) {
            self.recordings += 1;
            self.reach_it += usize::from(!reached.misses());
        }
    }

    fn row(&self, kind: Decision, asked: f64) -> String {
        let Goal { sum, recordings, reach_it } = self;
        let [undecided, agreement] = percents(sum, asked);
        let asked = if asked > 0.0 { format!("{asked:.0}") } else { "-".to_owned() };
        format!(
            "| {} | {asked} | {agreement} | {UNDECIDED_MAX:.0} | {undecided} | {reach_it} of {recordings} |\n",
            kind.name()
        )
    }
}

/// Counts in percent, and which of them miss their goals.
struct Reached {
    agreement: f64,
    misses_agreement: bool,
    undecided: f64,
    misses_undecided: bool,
}

impl Reached {
    /// `None` if nothing was decided.
    fn of(counts: &Counts, asked: f64) -> Option<Reached> {
        let agreement = counts.agreement()? * 100.0;
        let undecided = counts.undecided_part().unwrap_or(0.0) * 100.0;
        let (misses_agreement, misses_undecided) = (agreement < asked, undecided > UNDECIDED_MAX);
        Some(Reached { agreement, misses_agreement, undecided, misses_undecided })
    }

    fn misses(&self) -> bool {
        self.misses_agreement || self.misses_undecided
    }
}

/// The recordings in a machine's folder.
///
/// # Errors
/// A folder that cannot be read.
pub fn loads(folder: &Path) -> Result<Vec<String>, String> {
    let folders = folders_in(folder)?.into_iter();
    Ok(folders.filter(|folder| folder.join("trace.txt.gz").is_file()).map(|folder| name(&folder)).collect())
}

/// `99.8 (3394+949 d9)`: percent, exact and in a set, differing and undecided; bold if a goal is missed.
pub fn cell(counts: &Counts, asked: f64) -> String {
    let Some(reached) = Reached::of(counts, asked) else { return " - |".to_owned() };
    let mut text = format!("{:.1} ({}+{}", reached.agreement, counts.agrees, counts.agrees_in_set);
    if counts.differs > 0 {
        _ = write!(text, " d{}", counts.differs);
    }
    if counts.undecided > 0 {
        _ = write!(text, " u{}", counts.undecided);
    }
    format!(" {} |", bold(&(text + ")"), reached.misses()))
}

/// Undecided and agreeing decisions, in percent, each bold if it misses its goal.
fn percents(counts: &Counts, asked: f64) -> [String; 2] {
    let Some(reached) = Reached::of(counts, asked) else { return ["-"; 2].map(str::to_owned) };
    let Reached { agreement, misses_agreement, undecided, misses_undecided } = reached;
    [bold(&format!("{undecided:.2}"), misses_undecided), bold(&format!("{agreement:.2}"), misses_agreement)]
}

fn bold(text: &str, misses: bool) -> String {
    if misses { format!("**{text}**") } else { text.to_owned() }
}

fn summary(kernel: &str, report: &AuditReport, kind: Decision, asked: f64) -> String {
    let of = report.of(kind);
    let Counts { agrees, agrees_in_set, differs, undecided } = of.counts;
    let per_set = of.choices_in_sets as f64 / agrees_in_set.max(1) as f64;
    let [undecided_part, agreement] = percents(&of.counts, asked);
    format!(
        "| {kernel} | {} | {agrees} | {agrees_in_set} | {per_set:.1} | {differs} | {undecided} | {undecided_part} | \
         {agreement} |\n",
        kind.name()
    )
}

fn rules(kernel: &str, report: &AuditReport, kind: Decision) -> String {
    let of = report.of(kind);
    let list = |counts: Vec<(&str, u64)>| {
        let mut counts: Vec<_> = counts.into_iter().filter(|&(_, count)| count > 0).collect();
        counts.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
        let words: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
        if words.is_empty() { "-".to_owned() } else { words.join(", ") }
    };
    let hidden: BTreeMap<_, _> =
        of.by_hidden.iter().map(|(&name, counts)| (name, counts.agrees_in_set)).collect();
    format!(
        "| {kernel} | {} | {} | {} |\n",
        kind.name(),
        list(of.differs_by_reason.iter().map(|(&name, &count)| (name, count)).collect()),
        list(hidden.into_iter().collect()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_misses_a_goal_is_bold_in_every_table() {
        let counts = |agrees, differs, undecided| Counts { agrees, agrees_in_set: 0, differs, undecided };
        for (counts, in_row, in_summary) in [
            (counts(995, 5, 0), " 99.5 (995+0 d5) |", ["0.00", "99.50"]),
            (counts(980, 20, 0), " **98.0 (980+0 d20)** |", ["0.00", "**98.00**"]),
            (counts(990, 10, 100), " **99.0 (990+0 d10 u100)** |", ["**9.09**", "99.00"]),
            (counts(0, 0, 3), " - |", ["-", "-"]),
        ] {
            assert_eq!(cell(&counts, 99.0), in_row);
            assert_eq!(percents(&counts, 99.0), in_summary);
        }
    }
}
