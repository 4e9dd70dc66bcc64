//! `cargo xtask switches`: kernels with one switch flipped, judged with that switch and without.
//!
//! `groundtruth/guest/switches.sh` made the recordings, `traces/KERNEL/2x1x4-switches/SETTING-LOAD`; the active
//! settings are beside each. The table is a section of `docs/switches.md`. A switch that works as in the kernel
//! explains its recording; if the rules explain it equally well without the switch, the recording does not test it.

use std::fmt::Write as _;
use std::path::Path;

use rayon::prelude::*;
use schedlab::audit::{AuditReport, Counts};

use crate::fidelity::{COLUMNS, GOALS, KERNELS, KINDS, cell, loads};
use crate::recording::Recording;
use crate::source::{self, Section, head};

const SECTION: Section = Section { document: "docs/switches.md", name: "switches", command: "switches" };

/// The folder of each kernel.
pub const FOLDER: &str = "2x1x4-switches";

/// The setting in which nothing is changed.
pub const PLAIN: &str = "plain";

/// Writes the section.
///
/// # Errors
/// A file that cannot be read or written.
pub fn run() -> Result<(), String> {
    SECTION.write(&text(&audits()?))
}

/// A recording, judged with its active settings and with the defaults.
struct Switched {
    kernel: &'static str,
    setting: String,
    load: String,
    with: AuditReport,
    without: AuditReport,
}

impl Switched {
    /// How many decisions differ with the switch, and without it.
    fn differ(&self) -> [u64; 2] {
        [&self.with, &self.without]
            .map(|report| KINDS.iter().map(|&kind| report.of(kind).counts.differs).sum())
    }
}

fn audits() -> Result<Vec<Switched>, String> {
    let mut found = Vec::new();
    for kernel in KERNELS {
        let folder = source::root().join("traces").join(kernel).join(FOLDER);
        found.extend(loads(&folder)?.into_iter().map(|name| (kernel, folder.join(name))));
    }
    found.retain(|(_, folder)| !source::name(folder).starts_with(PLAIN));
    found.into_par_iter().map(|(kernel, folder)| judged(kernel, &folder)).collect()
}

fn judged(kernel: &'static str, folder: &Path) -> Result<Switched, String> {
    let name = source::name(folder);
    let (setting, load) = name.rsplit_once('-').ok_or(format!("{name} is no setting and load"))?;
    let mut recording = Recording::of(folder)?;
    let with = recording.audit()?;
    recording.with_switches_of_machine()?;
    let (setting, load) = (setting.to_string(), load.to_string());
    Ok(Switched { kernel, setting, load, with, without: recording.audit()? })
}

fn text(audits: &[Switched]) -> String {
    let mut sums = String::new();
    for kernel in KERNELS {
        let of = || audits.iter().filter(|switched| switched.kernel == kernel);
        _ = write!(sums, "| {kernel} | {} |", of().count());
        for (kind, goal) in KINDS.into_iter().zip(GOALS) {
            let mut counts = Counts::default();
            of().for_each(|switched| counts.add(&switched.with.of(kind).counts));
            sums += &cell(&counts, goal);
        }
        let [with, without] = [0, 1].map(|at| of().map(|switched| switched.differ()[at]).sum::<u64>());
        _ = writeln!(sums, " {with} | {without} |");
    }
    let mut rows = String::new();
    for switched in audits {
        let Switched { kernel, setting, load, with, without } = switched;
        _ = write!(rows, "| {kernel} | {setting} | {load} |");
        for kind in KINDS {
            let [with, without] = [with, without].map(|report| report.of(kind).counts);
            rows += &match (with.decided(), with.differs == without.differs) {
                (0, _) => " - |".to_string(),
                (decided, true) => format!(" {} of {decided} |", with.differs),
                (decided, false) => format!(" **{}** of {decided}, {} |", with.differs, without.differs),
            };
        }
        let [with, without] = switched.differ();
        _ = writeln!(rows, " {with} | {without} |");
    }
    let columns = |first: &[&'static str]| [first, &COLUMNS, &["differ with it", "without it"]].concat();
    format!(
        "{}{sums}\n{}{rows}",
        head(&columns(&["kernel", "recordings"])),
        head(&columns(&["kernel", "setting", "load"]))
    )
}

#[cfg(test)]
mod tests {
    use schedlab::audit::Decision;

    use super::*;

    /// Kernel, switch, and the minimum number of decisions of its recording that differ without it.
    const SHOWN: [(&str, &str, u64); 12] = [
        ("6.1", "NO_GENTLE_FAIR_SLEEPERS", 20),
        ("6.1", "NO_START_DEBIT", 30),
        ("6.1", "NO_WAKEUP_PREEMPTION", 10),
        ("6.1", "latency_ns=6000000", 40),
        ("6.1", "wakeup_granularity_ns=0", 100),
        ("6.1", "wakeup_granularity_ns=10000000", 60),
        ("6.12", "NO_DELAY_DEQUEUE", 8),
        ("6.12", "NO_WAKEUP_PREEMPTION", 8),
        ("7.2", "NEXT_BUDDY", 10),
        ("7.2", "NO_PLACE_LAG", 10),
        ("7.2", "NO_WAKEUP_PREEMPTION", 15),
        ("7.2", "base_slice_ns=700000", 40),
    ];

    #[test]
    fn a_switch_explains_what_a_kernel_does_with_it_turned_over() {
        let audits = audits().unwrap();
        for (kind, goal) in KINDS.into_iter().zip(GOALS) {
            let mut counts = Counts::default();
            audits.iter().for_each(|switched| counts.add(&switched.with.of(kind).counts));
            // No setting has real-time tasks that wait for each other.
            assert_eq!(counts.decided() == 0, kind == Decision::Push, "{}", kind.name());
            let agreement = counts.agreement().unwrap_or(1.0) * 100.0;
            assert!(agreement >= goal.max(97.0), "{}: {counts:?}", kind.name());
        }
        for (kernel, setting, least) in SHOWN {
            let of = |switched: &&Switched| (switched.kernel, switched.setting.as_str()) == (kernel, setting);
            let switched = audits.iter().find(of).unwrap_or_else(|| panic!("{kernel} {setting} is recorded"));
            let [with, without] = switched.differ();
            assert!(
                without >= least && with * 3 <= without,
                "{kernel} {setting}: {with} differ with it, {without} without"
            );
        }
    }
}
