//! `cargo xtask unknown`: the facts that no event shows, as the audit lists them, in `docs/fidelity/hidden-facts.md`.

use std::fmt::Write as _;

use schedlab::audit::Unknown;

use crate::source::{self, Section, head, read};

const LIST: Section = Section { document: "docs/fidelity/hidden-facts.md", name: "list", command: "unknown" };
const BEYOND: Section =
    Section { document: "docs/fidelity/hidden-facts.md", name: "beyond", command: "unknown" };

/// Writes the tables.
///
/// # Errors
/// A document without the sections, or one that cannot be written.
pub fn write() -> Result<(), String> {
    LIST.write(&list())?;
    BEYOND.write(&beyond())
}

/// Differences between the document and the list: a table, or a fact without a heading.
///
/// # Errors
/// A document without the sections, or one that cannot be read.
pub fn stale() -> Result<Vec<String>, String> {
    let document = read(&source::root().join(LIST.document))?;
    let mut wrong = Vec::new();
    for (section, text) in [(LIST, list()), (BEYOND, beyond())] {
        if section.split(&document)?[1].trim() != text.trim() {
            wrong.push(format!("{} is not what the audit lists; run `cargo xtask unknown`", LIST.document));
        }
    }
    let has = |unknown: &&Unknown| document.lines().any(|line| line == format!("## {}", unknown.name()));
    let without = Unknown::ALL.iter().filter(|unknown| !has(unknown));
    wrong.extend(without.map(|unknown| format!("{}: no heading {}", LIST.document, unknown.name())));
    Ok(wrong)
}

fn list() -> String {
    let mut text = head(&["fact", "what no event shows", "readings"]);
    for unknown in Unknown::ALL {
        let readings: Vec<&str> = unknown.readings().iter().map(|reading| reading.name()).collect();
        _ = writeln!(text, "| {} | {} | {} |", unknown.name(), unknown.sentence(), readings.join(", "));
    }
    text
}

fn beyond() -> String {
    let mut text = head(&["name", "what would have had to be different", "fact"]);
    for unknown in Unknown::ALL {
        for (name, had) in unknown.beyond() {
            _ = writeln!(text, "| {name} | {had} | {} |", unknown.name());
        }
    }
    text
}
