//! `cargo xtask contested`: the decisions of recorded kernels on which kernels disagree, and the control.
//!
//! Every ordinary recording of `traces/` is audited by its own kernel's rules and by those of other presets. Only the
//! decisions on which at least two of them disagree are counted: on others no audit can fail. The rows of the other
//! presets are the control: rules of a wrong kernel must agree less.

use std::fmt::Write as _;

use schedlab::audit::{Contest, Contested};

use crate::fidelity::{KERNELS, KINDS, MACHINES, loads};
use crate::recording::Recording;
use crate::source::{self, Section};

const SECTION: Section = Section { document: "docs/fidelity.md", name: "contested", command: "contested" };

/// The rules that every recording is judged by besides its own kernel's.
const OTHERS: [&str; 5] = ["v5.5", "v5.18", "v6.1", "v6.12", "v7.2"];

/// Audits and writes the table.
///
/// # Errors
/// A recording that cannot be read, or a document without the section.
pub fn run() -> Result<(), String> {
    let mut text = String::from(
        "| recorded kernel | decision | decisions | contested | rules of | exact | in a set (mean size) | wrong | undecided | agree, % |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut totals = String::new();
    for kernel in KERNELS {
        let mut sum = Contest::default();
        for machine in MACHINES {
            let folder = source::root().join("traces").join(kernel).join(machine);
            for load in loads(&folder)? {
                let (contest, _) = Recording::of(&folder.join(&load))?.contest(&OTHERS)?;
                sum.add(&contest);
            }
        }
        for kind in KINDS {
            let Some(rules) = sum.of.get(&kind) else { continue };
            let asked = sum.asked.get(&kind).copied().unwrap_or_default();
            rows(&mut text, kernel, kind.name(), asked, rules);
        }
        rows(&mut totals, kernel, "all", sum.asked.values().sum(), &sum.total());
    }
    text += &totals;
    SECTION.write(&text)
}

/// A row for the kernel's own rules and one for each other preset.
fn rows(text: &mut String, kernel: &str, kind: &str, asked: u64, rules: &[Contested]) {
    let own = format!("**{kernel} itself**");
    let names = std::iter::once(own.as_str()).chain(OTHERS);
    for (number, (name, of)) in names.zip(rules).enumerate() {
        if name.strip_prefix('v') == Some(kernel) {
            // The preset of that name without the recorded switches gives almost the same.
            continue;
        }
        let first = number == 0;
        let contested = of.judged() + of.undecided;
        let mean = if of.in_set > 0 { of.set_sizes as f64 / of.in_set as f64 } else { 0.0 };
        let agreement = of.agreement().map_or_else(|| "-".to_owned(), |share| format!("{share:.2}"));
        let cell = |shown: String| if first { shown } else { String::new() };
        _ = writeln!(
            text,
            "| {} | {} | {} | {} | {name} | {} | {} ({mean:.1}) | {} | {} | {agreement} |",
            cell(kernel.to_owned()),
            cell(kind.to_owned()),
            cell(asked.to_string()),
            cell(contested.to_string()),
            of.exact,
            of.in_set,
            of.wrong,
            of.undecided,
        );
    }
}
