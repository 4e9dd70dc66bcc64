//! `schedlab explain`: describes a rule, a reason, a kernel, a kernel function or commit, a row of an audit or a
//! detector, and lists the entries that mention a word.

use schedlab::Rulebook;
use schedlab::audit::Unknown;
use schedlab::commits::{self, Commit};
use schedlab::figures::FIGURES;
use schedlab::report::detect::{Detect, Options};
use schedlab::sched::{Kernel, PRESETS, Reason};
use schedlab::topology::nearest;
use serde_json::json;

use crate::args::Explain;
use crate::command::features::runs;
use crate::error::{Error, Status};
use crate::output::{self, Format};

/// Prints the explanation.
pub fn run(args: &Explain) -> Result<Status, Error> {
    let book = Rulebook::of(&Kernel::preset(PRESETS.len() - 1));
    let is = |name: &str| name.eq_ignore_ascii_case(&args.name);
    let (value, text) = if let Some(entry) = book.entry(&args.name) {
        let mut text = format!("{} ({})\n{}\n", entry.name, entry.kind, entry.sentence);
        if !entry.source.is_empty() {
            text.push_str(&format!("source   {}\n", entry.source));
        }
        if !entry.forms.is_empty() {
            text.push_str(&format!("forms    {}\n", entry.forms.join(", ")));
        }
        text.push_str(&format!("presets  {}\n", runs(&book.presets, &entry.presets)));
        text.push_str(&format!("use      {}\n", usage(entry.name, entry.kind, &entry.forms)));
        (serde_json::to_value(entry).expect("an entry is plain data"), text)
    } else if let Some(reason) = schedlab::reason(&args.name) {
        let text = format!("{} (reason)\n{}\n", reason.name(), reason.sentence());
        (json!({"kind": "reason", "name": reason.name(), "sentence": reason.sentence()}), text)
    } else if args.name.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()) {
        kernel(&args.name)?
    } else if let Some((kind, name, sentence)) = others().into_iter().find(|(_, name, _)| is(name)) {
        let text = format!("{name} ({kind})\n{sentence}\n");
        (json!({"kind": kind, "name": name, "sentence": sentence}), text)
    } else if let Some(commit) = commits::commit(&args.name) {
        of_commit(commit, &book)
    } else if let Some(found) = of_function(&args.name, &book) {
        found
    } else if let Some(found) = of_word(&args.name, &book) {
        found
    } else {
        let others = others();
        let known = book.entries.iter().map(|entry| entry.name);
        let known = known.chain(Reason::ALL.iter().map(|reason| reason.name()));
        let known = known.chain(others.iter().map(|(_, name, _)| *name));
        // A switch that is off is the same rule.
        let upper = args.name.to_ascii_uppercase();
        let meant = nearest(upper.strip_prefix("NO_").unwrap_or(&upper), known);
        let meant = meant.map_or(String::new(), |meant| format!("; did you mean {meant}?"));
        let also = if meant.is_empty() { ";" } else { "" };
        return Err(Error::new(format!(
            "\"{}\" is not a rule, reason, kernel, function, commit, row of an audit or detector, and none mentions it{meant}{also} \
             `schedlab features` lists the rules, `schedlab explain v7.2` a kernel",
            args.name
        )));
    };
    match args.format {
        Format::Json => output::print_json(&value)?,
        Format::Text => output::print(|out| out.write_all(text.as_bytes()))?,
    }
    Ok(Status::Done)
}

/// Kind, name and sentence of everything else that tables of audits and reports name, besides rules and
/// reasons.
fn others() -> Vec<(&'static str, &'static str, String)> {
    let lacks = |unknown: &Unknown| {
        let sentence = format!("A recording does not show {}.", unknown.sentence());
        ("fact an audit lacks", unknown.name(), sentence)
    };
    let beyond = |unknown: &Unknown| {
        let of = unknown.name();
        let further = unknown.beyond().iter();
        further.map(move |&(name, had)| {
            (
                "fact an audit lacks",
                name,
                format!("What would have had to be different: {had}; {of} beyond its bounds."),
            )
        })
    };
    let none = "No rule known here determines the choice: it depends on something hidden.";
    let mut all: Vec<_> =
        Unknown::ALL.iter().map(lacks).chain(Unknown::ALL.iter().flat_map(beyond)).collect();
    all.push(("row of an audit", "NONE", none.to_owned()));
    let detectors = Detect::new(Options::default()).finish().detectors;
    all.extend(detectors.into_iter().map(|of| ("detector", of.detector, of.looks_for)));
    all
}

/// A commit of the kernel: its rules, of which there may be several.
fn of_commit(commit: &Commit, book: &Rulebook) -> (serde_json::Value, String) {
    let mut text = format!("{} (commit, in {} and later)\n{}\n", commit.id, commit.release, commit.sentence);
    if commit.parts.len() > 1 {
        text += &format!(
            "It is {} rules here; switching only one of them is not this commit.\n",
            commit.parts.len()
        );
    }
    for part in commit.parts {
        let entry = book.entry(part).expect("a commit names rules that exist");
        text += &format!("{} ({})  {}\n", entry.name, entry.kind, entry.sentence);
        text += &format!("  presets  {}\n", runs(&book.presets, &entry.presets));
        text += &format!("  use      {}\n", usage(entry.name, entry.kind, &entry.forms));
    }
    (json!({"kind": "commit", "commit": commit}), text)
}

/// Where each kernel function is modelled.
const KERNEL_MAP: &str = include_str!("../../../../docs/kernel-map.tsv");

/// A kernel function: where it is modelled, and the rules in it.
fn of_function(name: &str, book: &Rulebook) -> Option<(serde_json::Value, String)> {
    let bare = name.trim_end_matches("()");
    let is_named =
        |cell: &str| cell.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == bare);
    let mut places: Vec<(String, String)> = Vec::new();
    for line in KERNEL_MAP.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [function, kernel, file] = cells[..] else { continue };
        if is_named(function) && !places.iter().any(|(_, known)| known == file) {
            places.push((kernel.to_string(), file.to_string()));
        }
    }
    let rules: Vec<_> =
        book.entries.iter().filter(|entry| is_named(entry.source) && entry.source.contains("()")).collect();
    if places.is_empty() && rules.is_empty() {
        return None;
    }
    let mut text = format!("{bare}() (function of the kernel)\n");
    for (kernel, file) in &places {
        text += &format!("{kernel}: modelled in {file}\n");
    }
    for entry in &rules {
        text += &format!("{} ({})  {}\n", entry.name, entry.kind, entry.sentence);
    }
    let names: Vec<&str> = rules.iter().map(|entry| entry.name).collect();
    let files: Vec<&str> = places.iter().map(|(_, file)| file.as_str()).collect();
    Some((json!({"kind": "function", "name": bare, "files": files, "rules": names}), text))
}

/// A search word: the rules, reasons and metrics that mention it.
fn of_word(word: &str, book: &Rulebook) -> Option<(serde_json::Value, String)> {
    let wanted = word.to_lowercase();
    if wanted.chars().count() < 3 {
        return None;
    }
    // "newidle" is "newly idle" in sentences and NEWIDLE in names.
    let squeezed = |text: &str| text.to_lowercase().replace("newly idle", "newidle").replace(['-', '_'], " ");
    let wanted = squeezed(&wanted);
    let speaks = |text: &str| squeezed(text).contains(&wanted);
    let mut found: Vec<(&str, &str, String)> = Vec::new();
    for entry in book.entries.iter().filter(|e| speaks(e.name) || speaks(e.sentence)) {
        found.push((entry.kind, entry.name, entry.sentence.to_string()));
    }
    for reason in Reason::ALL.iter().filter(|r| speaks(r.name()) || speaks(r.sentence())) {
        found.push(("reason", reason.name(), reason.sentence().to_string()));
    }
    for figure in FIGURES.iter().filter(|f| speaks(f.name) || speaks(f.about)) {
        found.push(("metric", figure.name, figure.about.to_string()));
    }
    if found.is_empty() {
        return None;
    }
    let mut text = format!("{word}: {} entries mention it\n", found.len());
    for (kind, name, sentence) in &found {
        text += &format!("{name} ({kind})  {sentence}\n");
    }
    let told: Vec<_> = found
        .iter()
        .map(|(kind, name, sentence)| json!({"kind": kind, "name": name, "sentence": sentence}))
        .collect();
    Some((json!({"kind": "word", "name": word, "found": told}), text))
}

fn usage(name: &str, kind: &str, forms: &[&str]) -> String {
    match kind {
        "feature" => format!("v6.1+{name} or v6.1+NO_{name}"),
        "rule" | "preemption" => format!("v6.1+{name}={}", forms[0]),
        _ => format!("v6.1+{name}=NUMBER"),
    }
}

/// What a kernel changes against the preset before it, or against its own preset.
fn kernel(name: &str) -> Result<(serde_json::Value, String), Error> {
    let kernel = crate::scenario::named_kernel(name)?;
    let own = Kernel::preset(kernel.preset);
    let plain =
        own.features == kernel.features && own.rules == kernel.rules && own.tunables == kernel.tunables;
    let base = if !plain {
        own
    } else if kernel.preset > 0 {
        Kernel::preset(kernel.preset - 1)
    } else {
        let text = format!("{}, preempt={}: the oldest preset\n", kernel.name, kernel.preempt.name());
        return Ok((json!({"kernel": kernel.name, "against": null, "changes": []}), text));
    };
    let (before, after) = (Rulebook::of(&base), Rulebook::of(&kernel));
    let mut text = format!("{}, preempt={}: what differs from {}\n", kernel.name, after.preempt, base.name);
    let mut changes = Vec::new();
    for (old, new) in before.entries.iter().zip(&after.entries).filter(|(o, n)| o.value != n.value) {
        text.push_str(&format!("{}: {} -> {}  {}\n", new.name, old.value, new.value, new.sentence));
        changes.push(json!({"name": new.name, "from": old.value, "to": new.value, "sentence": new.sentence}));
    }
    Ok((json!({"kernel": kernel.name, "against": base.name, "changes": changes}), text))
}
