//! `cargo xtask fidelity`: how often our rules agree with each recorded kernel, as a table.
//!
//! Audits every recording in `traces/` and writes the section between two marks of
//! `docs/fidelity.md`, and `docs/disagreements.md`, a line for each decision that differs; with `--check` it compares with what stands there: per kernel and kind of
//! decision, agreement must be what the document says, to some tenths of a percent.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use schedlab::audit::{AuditReport, Counts, Decision};

use crate::disagreements::Disagreements;
use crate::recording::Recording;
use crate::source::{self, Section, folders_in, head, name, read};

const SECTION: Section = Section { document: "docs/fidelity.md", name: "audit", command: "fidelity" };

pub const KERNELS: [&str; 3] = ["6.1", "6.12", "7.2"];
const MACHINES: [&str; 6] =
    ["1x1x8", "2x2x4", "2x2x2x2-smt", "2x1x8-cluster", "1x1x4-groups", "1x1x4-programs"];
pub const KINDS: [Decision; 6] = Decision::ALL;

/// Agreement that is asked for, in percent, by kind; none for balancing.
pub const GOALS: [f64; 6] = [99.0, 99.0, 99.0, 98.0, 98.0, 0.0];

/// Part that may be undecided, in percent.
const UNDECIDED_MAX: f64 = 5.0;

/// What stands above the table of nearest facts.
const EXPLAINED: &str = "Of each decision that differs, the nearest fact that would have led our rules to the kernel's choice, had it been \
otherwise ([each of them](disagreements.md)): how many it explains, by how much it would have to be off in microseconds, and in multiples \
of the error that is held of it.";

/// What stands above the list.
const LISTED: &str = "# Every disagreement\n\nWritten by `cargo xtask fidelity`: each decision in the ordinary recordings of `traces/` that our rules \
do not lead to,\nand the nearest fact that would have led there. What they have in common is in [fidelity.md](fidelity.md#audit).";

/// Writes the section, or with `--check` compares it.
///
/// # Errors
/// A file that cannot be read or written, or a section that is not what comes out.
pub fn run(args: &[String]) -> Result<(), String> {
    let (text, list) = tables()?;
    let listed = source::root().join("docs/disagreements.md");
    if args.iter().any(|arg| arg == "--check") {
        let docs = read(&source::root().join(SECTION.document))?;
        check(&docs, &SECTION.with(&docs, &text)?)?;
        let said = read(&listed)?;
        let other = said.lines().zip(list.lines()).position(|(said, line)| said != line);
        return match other {
            None if said.lines().count() == list.lines().count() => Ok(()),
            at => Err(format!(
                "docs/disagreements.md:{}: the audits give another list; look why, then run `cargo xtask fidelity`",
                at.map_or(0, |at| at + 1)
            )),
        };
    }
    fs::write(&listed, list).map_err(|e| e.to_string())?;
    SECTION.write(&text)
}

/// Differences in agreement that are no news, in percentage points.
const TOLERANCE: f64 = 0.3;

/// Whether the table per kernel says what comes out.
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
        let [kernel, kind, _, _, _, _, _, agreement] = cells[..] else { return None };
        let known = KINDS.iter().any(|known| known.name() == kind);
        let agreement = agreement.trim_matches('*').parse().ok().filter(|_| known)?;
        Some((line + 1, format!("{kernel} {kind}"), agreement))
    })
}

/// The section, and the list of what differs.
fn tables() -> Result<(String, String), String> {
    let mut disagreements = Disagreements::default();
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
                for (kind, goal) in KINDS.into_iter().zip(GOALS) {
                    rows += &cell(&report.of(kind).counts, goal);
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
    let text = format!(
        "### Per kernel\n\n{}{by_kernel}\n### Disagreements by rule, and what was hidden\n\n{}{reasons}\n\
         ### What would explain each disagreement\n\n{EXPLAINED}\n\n{}{}\n\
         ### Per recording\n\n{}{rows}",
        head(&[
            "kernel",
            "decision",
            "exact",
            "in a set",
            "choices per set",
            "differ",
            "undecided",
            "agree, %"
        ]),
        head(&["kernel", "decision", "differ, by our rule", "in a set, by hidden fact"]),
        head(&["kernel", "decision", "nearest fact", "differ", "us: median, most", "errors: median, most"]),
        disagreements.table(),
        head(&[
            "kernel",
            "machine",
            "load",
            "wake-ups",
            "forks",
            "execs",
            "picks",
            "preemption",
            "balancing"
        ]),
    );
    Ok((text, format!("{LISTED}\n{}", disagreements.list())))
}

/// The recordings in a machine's folder.
///
/// # Errors
/// A folder that cannot be read.
pub fn loads(folder: &Path) -> Result<Vec<String>, String> {
    let folders = folders_in(folder)?.into_iter();
    Ok(folders.filter(|folder| folder.join("trace.txt.gz").is_file()).map(|folder| name(&folder)).collect())
}

/// `99.8 (3394+949 d9)`: percent, exact and in a set, what differs and is undecided; bold
/// where a goal is missed.
pub fn cell(counts: &Counts, goal: f64) -> String {
    let Some(agreement) = counts.agreement() else { return " - |".to_owned() };
    let mut text = format!("{:.1} ({}+{}", agreement * 100.0, counts.agrees, counts.agrees_in_set);
    if counts.differs > 0 {
        _ = write!(text, " d{}", counts.differs);
    }
    if counts.undecided > 0 {
        _ = write!(text, " u{}", counts.undecided);
    }
    let undecided = counts.undecided_part().unwrap_or(0.0) * 100.0;
    let missed = agreement * 100.0 < goal || undecided > UNDECIDED_MAX;
    if missed { format!(" **{text})** |") } else { format!(" {text}) |") }
}

fn summary(kernel: &str, report: &AuditReport, kind: Decision, goal: f64) -> String {
    let of = report.of(kind);
    let Counts { agrees, agrees_in_set, differs, undecided } = of.counts;
    let per_set = of.choices_in_sets as f64 / agrees_in_set.max(1) as f64;
    let agreement = of.counts.agreement().unwrap_or(0.0) * 100.0;
    let mark = if agreement < goal { "**" } else { "" };
    format!(
        "| {kernel} | {} | {agrees} | {agrees_in_set} | {per_set:.1} | {differs} | {undecided} | \
         {mark}{agreement:.2}{mark} |\n",
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
