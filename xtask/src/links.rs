//! Links between documents: the file exists, and so does the heading.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::source;

/// Dead links.
pub fn dead() -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    for (file, text) in source::documents()? {
        let path = source::root().join(&file);
        for (line, target) in links(&text) {
            let (to, anchor) = target.split_once('#').unwrap_or((target, ""));
            let to = if to.is_empty() { path.clone() } else { joined(&path, to) };
            if !to.exists() {
                wrong.push(format!("{file}:{line}: there is no {target}"));
            } else if !anchor.is_empty() && !anchors(&source::read(&to)?).contains(anchor) {
                wrong.push(format!("{file}:{line}: no heading makes #{anchor} in {}", source::name(&to)));
            }
        }
    }
    Ok(wrong)
}

/// A link's path, relative to its file.
fn joined(file: &Path, to: &str) -> PathBuf {
    let mut path = file.to_path_buf();
    path.pop();
    for part in Path::new(to).components() {
        match part {
            Component::ParentDir => _ = path.pop(),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

/// Lines outside blocks of code, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        (!code && !fence).then_some((at + 1, line))
    })
}

/// Targets of the links that stay in the checkout, each with its line.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, line) in lines(text) {
        for rest in line.split("](").skip(1) {
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            if !target.contains("://") {
                found.push((at, target));
            }
        }
    }
    found
}

/// The anchors of its headings: lower case, words joined by `-`, punctuation removed; the second of a name has `-1`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in lines(text).filter(|(_, line)| line.starts_with('#')) {
        let title = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        let name: String = title.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect();
        let mut again = (1..).map(|nth| format!("{name}-{nth}"));
        let free = if found.contains(&name) { again.find(|name| !found.contains(name)) } else { None };
        found.insert(free.unwrap_or(name));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_headings_are_read_as_they_are_shown() {
        let text = "# A map\n\n[x](a.md#b), [y](https://a.b) and\n```\n# no [z](z)\n```\n[w](#c)\n";
        assert_eq!(links(text), [(3, "a.md#b"), (7, "#c")]);
        let text =
            "# A map\n## `SYNC_FLAG`: both\n## Counts: recorded, simulated\n## A map\n```\n# no\n```\n";
        let all: Vec<String> = anchors(text).into_iter().collect();
        assert_eq!(all, ["a-map", "a-map-1", "counts-recorded-simulated", "sync_flag-both"]);
    }

    #[test]
    fn targets_are_beside_the_document_that_names_them() {
        let of = |file: &str, to: &str| joined(Path::new(file), to);
        assert_eq!(of("/top/docs/fidelity/x.md", "../models.md"), Path::new("/top/docs/models.md"));
        assert_eq!(of("/top/README.md", "docs/x.md"), Path::new("/top/docs/x.md"));
    }
}
