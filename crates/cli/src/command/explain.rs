//! `schedlab explain`: what a rule, a reason or a kernel is.

use schedlab::Rulebook;
use schedlab::sched::{Kernel, PRESETS};
use serde_json::json;

use crate::args::Explain;
use crate::command::features::runs;
use crate::error::{Error, Status};
use crate::output::{self, Format};

/// Prints the explanation.
pub fn run(args: &Explain) -> Result<Status, Error> {
    let book = Rulebook::of(&Kernel::preset(PRESETS.len() - 1));
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
    } else {
        return Err(Error::new(format!(
            "\"{}\" is no rule, reason or kernel; `schedlab features` lists the rules, `schedlab explain v7.2` a kernel",
            args.name
        )));
    };
    match args.format {
        Format::Json => output::print_json(&value)?,
        Format::Text => output::print(|out| out.write_all(text.as_bytes()))?,
    }
    Ok(Status::Done)
}

fn usage(name: &str, kind: &str, forms: &[&str]) -> String {
    match kind {
        "feature" => format!("v6.1+{name} or v6.1+NO_{name}"),
        "rule" => format!("v6.1+{name}={}", forms[0]),
        _ => format!("v6.1+{name}=NUMBER"),
    }
}

/// What a kernel changes against the preset before it, or against its own preset.
fn kernel(name: &str) -> Result<(serde_json::Value, String), Error> {
    let kernel = Kernel::parse(name)?;
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
