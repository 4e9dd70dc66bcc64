//! The differences between two kernel trees of one folder: patches, and their own switches.
//!
//! The parts of `tree:DIR+a.patch` and `tree:DIR+a.patch+b.patch+NO_WA_IDLE` are `b.patch` and `NO_WA_IDLE`. A tree between
//! them has some of these, in the order in which they are written.

use schedlab::kernels::{TREE, is_tree, nearest};
use schedlab::sched::Kernel;

use super::Part;
use crate::error::Error;

/// The parts that turn the first kernel into the second; empty if both are our rules.
///
/// # Errors
/// Kernels between which there is nothing.
pub(super) fn parts(good: &Kernel, bad: &Kernel) -> Result<Option<Vec<Part>>, Error> {
    match (is_tree(good), is_tree(bad)) {
        (false, false) => Ok(None),
        (true, true) => of_names(&good.name, &bad.name).map(Some),
        _ => {
            let tree = if is_tree(good) { good } else { bad };
            let near =
                nearest(tree).map_or(String::new(), |near| format!(", nearest to it are those of {near}"));
            Err(Error::new(format!(
                "{}: between a tree and rules of ours there are no steps{near}; bisect those, or \
                 `schedlab compare FILE --kernel {},{}` shows the first decision that differs",
                tree.name, good.name, bad.name
            )))
        }
    }
}

fn of_names(good: &str, bad: &str) -> Result<Vec<Part>, Error> {
    let ([place, good_parts @ ..], [other, bad_parts @ ..]) = (&split(good)[..], &split(bad)[..]) else {
        unreachable!("a string has a first part")
    };
    if place != other {
        return Err(Error::new(format!(
            "{good} and {bad} are two trees, and what lies between them is known to git alone; bisect one tree with and \
             without patches or switches, as in {place} {place}+a.patch+b.patch+NO_WA_IDLE, or have `git bisect run` call \
             `schedlab compare` with an expectation"
        )));
    }
    let lacks = |parts: &[&str], part: &str| !parts.iter().any(|other| names(other) == names(part));
    let mut parts = Vec::new();
    for &part in bad_parts.iter().filter(|part| !good_parts.contains(part)) {
        let before = good_parts.iter().find(|other| names(other) == names(part));
        parts.push(Part::of_tree(names(part), before.copied(), Some(part)));
    }
    for &part in good_parts.iter().filter(|part| lacks(bad_parts, part)) {
        parts.push(Part::of_tree(names(part), Some(part), None));
    }
    Ok(parts)
}

fn split(name: &str) -> Vec<&str> {
    name.split('+').map(str::trim).collect()
}

/// The name of a part: two parts with one name exclude each other.
fn names(part: &str) -> &str {
    part.strip_prefix("NO_").unwrap_or_else(|| part.split('=').next().unwrap_or(part))
}

/// The string of a good tree with some parts.
pub(super) fn with<'a>(good: &str, set: impl Iterator<Item = &'a Part>) -> String {
    let mut parts: Vec<String> = split(good).into_iter().map(String::from).collect();
    for part in set {
        let Some((from, to)) = &part.tree else { continue };
        let at = from.as_ref().and_then(|from| parts.iter().position(|part| part == from));
        match (at, to) {
            (Some(at), Some(to)) => parts[at].clone_from(to),
            (Some(at), None) => drop(parts.remove(at)),
            (None, Some(to)) => parts.push(to.clone()),
            (None, None) => {}
        }
    }
    parts.join("+")
}

/// Whether a name is that of a tree.
pub(super) fn is(name: &str) -> bool {
    name.starts_with(TREE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_of_one_folder_differ_by_patches_and_switches() {
        let (good, bad) =
            ("tree:l+a.patch+NO_X+preempt=full+old.diff", "tree:l+a.patch+b.patch+X+preempt=none+NO_Y");
        let parts = of_names(good, bad).unwrap();
        let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
        assert_eq!(texts, ["b.patch", "X", "preempt=none", "NO_Y", "without old.diff"]);
        let some = |set: &[usize]| with(good, set.iter().map(|&part| &parts[part]));
        assert_eq!(some(&[]), good);
        assert_eq!(some(&[1, 2]), "tree:l+a.patch+X+preempt=none+old.diff");
        assert_eq!(some(&[0, 4]), "tree:l+a.patch+NO_X+preempt=full+b.patch");
        assert_eq!(some(&[0, 1, 2, 3, 4]), "tree:l+a.patch+X+preempt=none+b.patch+NO_Y");
    }

    #[test]
    fn between_two_folders_there_is_nothing() {
        let error = of_names("tree:l", "tree:m").unwrap_err().to_string();
        assert!(error.starts_with("tree:l and tree:m are two trees"), "{error}");
        let tree = Kernel { name: "tree:l".into(), ..Kernel::parse("v6.12").unwrap() };
        let error = parts(&tree, &Kernel::parse("v6.12").unwrap()).unwrap_err().to_string();
        assert!(error.contains("between a tree and rules of ours there are no steps"), "{error}");
    }
}
