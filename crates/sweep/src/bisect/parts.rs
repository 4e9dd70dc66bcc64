//! The differences between two kernels, as parts of a kernel string.

use schedlab::sched::{Feature, Kernel, Preempt, Rules, Tunables};
use serde::Serialize;

use super::trees;
use crate::error::Error;

/// One setting in which two kernels differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The rule: `SIS_UTIL`, `IMB_NUMA_NR`, `base_slice_ns`, `preempt`.
    pub name: String,
    /// The part of a kernel string that makes the first kernel like the second: `NO_SIS_UTIL`,
    /// `base_slice_ns=3000000`.
    pub text: String,
    /// What the rule is.
    pub sentence: String,
    /// The preemption model itself, as no kernel string can change the build of a kernel.
    #[serde(skip)]
    pub(super) preempt: Option<Preempt>,
    /// For a kernel tree: the removed part of its string, and the added one.
    #[serde(skip)]
    pub(super) tree: Option<(Option<String>, Option<String>)>,
}

impl Part {
    /// A patch or a switch of a kernel tree.
    pub(super) fn of_tree(name: &str, from: Option<&str>, to: Option<&str>) -> Part {
        let is_patch = name.ends_with(".patch") || name.ends_with(".diff");
        Part {
            name: name.to_owned(),
            text: to.map_or_else(|| format!("without {name}"), str::to_owned),
            sentence: if is_patch { "A patch." } else { "A setting of the tree." }.to_owned(),
            preempt: None,
            tree: Some((from.map(str::to_owned), to.map(str::to_owned))),
        }
    }
}

/// The parts that turn the first kernel into the second.
///
/// # Errors
/// A kernel tree and our rules, or two trees: there is nothing between them.
pub fn parts(good: &Kernel, bad: &Kernel) -> Result<Vec<Part>, Error> {
    match trees::parts(good, bad)? {
        Some(parts) => Ok(parts),
        None => Ok(of_rules(good, bad)),
    }
}

fn of_rules(good: &Kernel, bad: &Kernel) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut part = |name: &str, text: String, sentence: &str| {
        parts.push(Part {
            name: name.to_owned(),
            text,
            sentence: sentence.to_owned(),
            preempt: None,
            tree: None,
        });
    };
    for row in Feature::TABLE.iter().filter(|row| good.has(row.feature) != bad.has(row.feature)) {
        let no = if bad.has(row.feature) { "" } else { "NO_" };
        part(row.name, format!("{no}{}", row.name), row.sentence);
    }
    for row in Rules::TABLE.iter().filter(|row| (row.get)(&good.rules) != (row.get)(&bad.rules)) {
        part(row.name, format!("{}={}", row.name, (row.get)(&bad.rules)), row.sentence);
    }
    for row in Tunables::ALL.iter().filter(|row| (row.get)(&good.tunables) != (row.get)(&bad.tunables)) {
        part(row.name, format!("{}={}", row.name, (row.get)(&bad.tunables)), row.sentence);
    }
    if good.preempt != bad.preempt {
        parts.push(Part {
            name: "preempt".to_owned(),
            text: format!("preempt={}", bad.preempt.name()),
            sentence: "Where a running task can be preempted.".to_owned(),
            preempt: Some(bad.preempt),
            tree: None,
        });
    }
    parts
}

/// The named kernels from one release to another, `v6.3..v6.12`, inclusive. An end without rules of its own is placed
/// where the kernel used for it is: `v6.6` at v6.3.
///
/// # Errors
/// An end that is not a release, and a range with fewer than two different kernels.
pub fn between(range: &str) -> Result<Vec<Kernel>, Error> {
    let (first, last) = range.split_once("..").ok_or_else(|| {
        Error::new(format!("--between takes two released kernels, as in v6.3..v6.12, not \"{range}\""))
    })?;
    let names = Kernel::names();
    let place = |name: &str| -> Result<(usize, Kernel), Error> {
        let known =
            || format!("--between {range}: \"{name}\" is not a release; known are {}", names.join(", "));
        let kernel = Kernel::parse(name).map_err(|_| Error::new(known()))?;
        let rules = kernel.stand_in().unwrap_or(name.trim());
        let place = names.iter().position(|name| *name == rules).ok_or_else(|| Error::new(known()))?;
        Ok((place, kernel))
    };
    let ((first, oldest), (last, newest)) = (place(first)?, place(last)?);
    let versions = [&oldest, &newest].map(|kernel| Kernel::version(&kernel.name));
    if versions[0] >= versions[1] {
        return Err(Error::new(format!("--between {range}: the older kernel comes first")));
    }
    if first == last {
        return Err(Error::new(format!(
            "--between {range}: both have the rules of {} here, so there is nothing to find; known are {}",
            names[first],
            names.join(", ")
        )));
    }
    let inner: Result<Vec<Kernel>, _> =
        names[first + 1..last].iter().map(|name| Kernel::parse(name)).collect();
    let mut kernels = inner.map_err(|error| Error::new(error.to_string()))?;
    kernels.insert(0, oldest);
    kernels.push(newest);
    Ok(kernels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisect::kernel_with;

    #[test]
    fn all_parts_together_make_the_second_kernel_of_the_first() {
        let kernels: Vec<Kernel> = Kernel::names().iter().map(|name| Kernel::parse(name).unwrap()).collect();
        for good in &kernels {
            for bad in &kernels {
                let parts = parts(good, bad).unwrap();
                let all: Vec<usize> = (0..parts.len()).collect();
                let made = kernel_with(good, &parts, &all).unwrap();
                assert_eq!(
                    (&made.features, &made.rules, &made.tunables, &made.preempt),
                    (&bad.features, &bad.rules, &bad.tunables, &bad.preempt),
                    "{} to {}",
                    good.name,
                    bad.name
                );
            }
        }
    }

    #[test]
    fn released_kernels_are_named_by_a_range() {
        let names = |range: &str| between(range).unwrap().into_iter().map(|k| k.name).collect::<Vec<_>>();
        assert_eq!(names("v6.1..v6.10"), ["v6.1", "v6.3", "v6.10"]);
        // Releases without rules of their own.
        assert_eq!(names("v6.4..v6.12"), ["v6.4", "v6.10", "v6.12"]);
        assert_eq!(names("v6.6..v6.12"), ["v6.6", "v6.12"]);
        for (range, says) in [
            ("v6.1", "two released"),
            ("v6.1..mine", "\"mine\" is not a release"),
            ("v6.1..v6.12+NO_SIS_UTIL", "is not a release"),
            ("v6.4..v6.5", "both have the rules of v6.3"),
            ("v6.10..v6.1", "older"),
            ("v6.6..v6.4", "older"),
        ] {
            assert!(between(range).unwrap_err().to_string().contains(says), "{range}");
        }
    }
}
