//! `docs/kernel-map.tsv`: which kernel function is modelled where.
//!
//! Collected from the `Kernel: function(), file, version.` lines of the sources,
//! so that it cannot go stale: tidy compares the file with what is collected.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::source;

const FILE: &str = "docs/kernel-map.tsv";

/// Writes the map.
pub fn write() -> Result<(), String> {
    fs::write(source::root().join(FILE), draw()?).map_err(|e| format!("{FILE}: {e}"))
}

/// Errors in the map in the tree.
pub fn stale() -> Result<Vec<String>, String> {
    let there = fs::read_to_string(source::root().join(FILE)).unwrap_or_default();
    Ok(if there == draw()? {
        vec![]
    } else {
        vec![format!("{FILE} is not what the sources say; run `cargo xtask kernel-map`")]
    })
}

fn draw() -> Result<String, String> {
    let mut map: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    for (file, text) in source::rust_files()? {
        for line in lines(&text) {
            let (functions, place) = split(&line);
            for function in functions {
                map.entry(function).or_default().insert((place.clone(), file.clone()));
            }
        }
    }
    let mut out = "function\tkernel_file\there\n".to_owned();
    for (function, places) in map {
        for (place, file) in places {
            out.push_str(&format!("{function}\t{place}\t{file}\n"));
        }
    }
    Ok(out)
}

/// The `Kernel:` lines of a file, each joined with the comment lines that continue it.
fn lines(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let Some(comment) = line.trim().strip_prefix("//").map(|c| c.trim_start_matches(['/', '!']).trim())
        else {
            open = false;
            continue;
        };
        if let Some(start) = comment.strip_prefix("Kernel: ") {
            found.push(start.to_string());
            open = true;
        } else if comment.is_empty() {
            open = false;
        } else if open && let Some(last) = found.last_mut() {
            last.push(' ');
            last.push_str(comment);
        }
    }
    found
}

/// `a(), b(), kernel/sched/fair.c, v6.12.` into the functions and the rest.
fn split(line: &str) -> (Vec<String>, String) {
    let mut functions = Vec::new();
    let mut rest = Vec::new();
    for part in line.trim_end_matches('.').split(", ") {
        match part.strip_suffix("()") {
            Some(name) if !name.contains(' ') && rest.is_empty() => functions.push(name.to_string()),
            _ => rest.push(part),
        }
    }
    if functions.is_empty() && !rest.is_empty() {
        functions.push(rest.remove(0).to_string());
    }
    (functions, rest.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_functions_then_the_place() {
        let line = "a(), b(), kernel/sched/fair.c, v6.12.";
        assert_eq!(split(line), (vec!["a".into(), "b".into()], "kernel/sched/fair.c, v6.12".into()));
    }

    #[test]
    fn a_line_goes_on_until_the_comment_breaks() {
        let text =
            "/// Does.\n///\n/// Kernel: a(), kernel/sched/fair.c,\n/// v6.12.\nfn a() {}\n// Kernel: no\n";
        assert_eq!(lines(text), ["a(), kernel/sched/fair.c, v6.12.", "no"]);
    }
}
