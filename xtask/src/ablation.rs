//! `cargo xtask ablation`: what each reading of the audit gains, and which decisions depend on each rule.
//!
//! Every ordinary recording of `traces/` is audited again without each reading, with its own kernel's rules and with
//! those of another scheduler: a reading that explains as much with wrong rules excuses them. Then each rule of the
//! recorded kernel is flipped on its own. Additional decisions that then differ depend on the rule; a rule on which no
//! decision depends is not tested by these recordings. The table of readings goes into `docs/fidelity/hidden-facts.md`,
//! the summary of rules into `docs/fidelity.md`, and each rule by kind of decision into `docs/fidelity/rules.tsv`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use rayon::prelude::*;
use schedlab::audit::{AuditReport, Reading, Unknown};
use schedlab::sched::{Feature, Kernel};

use crate::fidelity::{COLUMNS, KERNELS, KINDS, MACHINES, loads};
use crate::recording::Recording;
use crate::source::{self, Section, head};

const READINGS: Section =
    Section { document: "docs/fidelity/hidden-facts.md", name: "readings", command: "ablation" };
const RULES: Section = Section { document: "docs/fidelity.md", name: "rules", command: "ablation" };

/// Rules of the other scheduler, by recorded kernel.
const WRONG: [(&str, &str); 3] = [("6.1", "v6.12"), ("6.12", "v6.1"), ("7.2", "v6.1")];

/// Rules with fewer additional differing decisions than this are only in the file.
const WORTH_A_ROW: u64 = 20;

/// Decisions by kind that agree exactly, and that differ.
#[derive(Clone, Copy, Default)]
struct Sum {
    exact: [u64; KINDS.len()],
    differ: [u64; KINDS.len()],
}

impl Sum {
    fn add(&mut self, report: &AuditReport) {
        for (at, kind) in KINDS.into_iter().enumerate() {
            let counts = report.of(kind).counts;
            self.exact[at] += counts.agrees;
            self.differ[at] += counts.differs;
        }
    }

    fn nr_exact(&self) -> u64 {
        self.exact.iter().sum()
    }

    fn nr_differ(&self) -> u64 {
        self.differ.iter().sum()
    }
}

/// Audits, and writes the results.
///
/// # Errors
/// A recording that cannot be read, or a document without the section.
pub fn run() -> Result<(), String> {
    let mut recordings = Vec::new();
    for kernel in KERNELS {
        for machine in MACHINES {
            let folder = source::root().join("traces").join(kernel).join(machine);
            for load in loads(&folder)? {
                recordings.push((kernel, Recording::of(&folder.join(load))?));
            }
        }
    }
    let sum = |kernel: Option<&str>, audit: &(dyn Fn(&Recording) -> Result<AuditReport, String> + Sync)| {
        let those = recordings.par_iter().filter(|(of, _)| kernel.is_none_or(|kernel| kernel == *of));
        let reports = those.map(|(_, recording)| audit(recording)).collect::<Result<Vec<_>, _>>()?;
        let mut sum = Sum::default();
        reports.iter().for_each(|report| sum.add(report));
        Ok::<Sum, String>(sum)
    };
    let wrong = |without: Option<Reading>| {
        WRONG.iter().try_fold(0, |all, (kernel, preset)| {
            let audit = |recording: &Recording| recording.audit_as(without, |own| of_preset(own, preset));
            Ok::<u64, String>(all + sum(Some(kernel), &audit)?.nr_differ())
        })
    };
    let own =
        |without: Option<Reading>| sum(None, &move |recording: &Recording| recording.audit_as(without, Ok));

    let (base, base_wrong) = (own(None)?, wrong(None)?);
    let mut rows = Vec::new();
    let readings =
        Unknown::ALL.iter().flat_map(|of| of.readings().iter().map(move |reading| (*of, *reading)));
    for (of, reading) in readings {
        let (other, other_wrong) = (own(Some(reading))?, wrong(Some(reading))?);
        rows.push((
            (of, reading),
            more(base.nr_differ(), other.nr_differ()),
            more(other.nr_exact(), base.nr_exact()),
            more(base_wrong, other_wrong),
        ));
        eprintln!("{}", reading.name());
    }
    rows.sort_by_key(|(_, differ, ..)| std::cmp::Reverse(*differ));
    write_readings(&rows)?;

    let mut table = Vec::new();
    for kernel in KERNELS {
        let plain = sum(Some(kernel), &|recording: &Recording| recording.audit_as(None, Ok))?;
        let first = recordings.iter().find(|(of, _)| *of == kernel).map(|(_, recording)| recording.kernel());
        let Some(on) = first.transpose()? else { continue };
        for row in Feature::TABLE.iter().filter(|row| on.has(row.feature)) {
            let turned = |mut own: Kernel| {
                own.features.set(row.feature, false);
                Ok(own)
            };
            let without = sum(Some(kernel), &|recording: &Recording| recording.audit_as(None, turned))?;
            table.push((kernel, row.name, plain, without));
        }
        eprintln!("rules of {kernel}");
    }
    write_rules(&table)
}

/// A preset with the numbers and the preemption model of a recorded kernel.
fn of_preset(own: Kernel, preset: &str) -> Result<Kernel, String> {
    let kernel = Kernel::parse(preset).map_err(|e| e.to_string())?;
    Ok(Kernel { tunables: own.tunables, preempt: own.preempt, ..kernel })
}

fn more(before: u64, after: u64) -> i64 {
    after as i64 - before as i64
}

fn path(name: &str) -> PathBuf {
    source::root().join("docs/fidelity").join(name)
}

fn write_file(name: &str, text: &str) -> Result<(), String> {
    let path = path(name);
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
}

type ReadingRow = ((Unknown, Reading), i64, i64, i64);

fn write_readings(rows: &[ReadingRow]) -> Result<(), String> {
    let mut text =
        head(&["reading", "of", "supposes or keeps", "buys, decisions", "of them exact", "buys wrong rules"]);
    for ((of, reading), differ, exact, wrong) in rows {
        _ = writeln!(
            text,
            "| {} | {} | {} | {differ} | {exact} | {wrong} |",
            reading.name(),
            of.name(),
            reading.sentence()
        );
    }
    READINGS.write(&text)
}

type RuleRow = (&'static str, &'static str, Sum, Sum);

fn write_rules(table: &[RuleRow]) -> Result<(), String> {
    let mut file = format!("kernel\trule\tdecisions more that differ\t{}\n", COLUMNS.join("\t"));
    let mut text = head(&["recorded kernel", "rules on", "on which recorded decisions depend", "the most"]);
    for kernel in KERNELS {
        let mut rows: Vec<(&str, i64, [i64; KINDS.len()])> = Vec::new();
        for (_, rule, plain, without) in table.iter().filter(|(of, ..)| *of == kernel) {
            let by_kind = std::array::from_fn(|at| more(plain.differ[at], without.differ[at]));
            rows.push((rule, more(plain.nr_differ(), without.nr_differ()), by_kind));
        }
        rows.sort_by_key(|(rule, differ, _)| (std::cmp::Reverse(*differ), *rule));
        for (rule, differ, by_kind) in &rows {
            let by_kind: Vec<String> = by_kind.iter().map(i64::to_string).collect();
            _ = writeln!(file, "{kernel}\t{rule}\t{differ}\t{}", by_kind.join("\t"));
        }
        let depend = rows.iter().filter(|(_, differ, _)| *differ > 0).count();
        let most: Vec<String> = rows
            .iter()
            .filter(|(_, differ, _)| *differ >= WORTH_A_ROW as i64)
            .map(|(rule, differ, _)| format!("{rule} {differ}"))
            .collect();
        _ = writeln!(text, "| {kernel} | {} | {depend} | {} |", rows.len(), most.join(", "));
    }
    write_file("rules.tsv", &file)?;
    RULES.write(&text)
}
